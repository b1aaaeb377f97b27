"""One table, two libraries: idem and the real Powertools for TypeScript, on Amazon's
DynamoDB Local.

What each does to keys of the other, both ways round; and, as controls, what Powertools
does to attempts of ours because it writes without a condition.
"""

import functools
import json
import time

import dynamo
import powertools
import sides
from tap import each, equal, for_all, main, note

TABLE = "shared"
LAYOUT = "powertools-typescript"
# The shortest lease on a table, what a taker of ours waits beyond the end of one, and what
# Powertools is told to wait beyond one of ours.
LEASE, MARGIN, CLOCKS = 10, 2, 2


# Every attribute by another name, and the key as a sort key.
NAMES = {
    "keyAttr": "pk",
    "sortKeyAttr": "sk",
    "staticPkValue": "idempotency#pay",
    "statusAttr": "state",
    "expiryAttr": "until",
    "inProgressExpiryAttr": "lock",
    "dataAttr": "body",
}
SETTINGS = (
    "&key-attr=pk&sort-key-attr=sk&static-pk-value=idempotency%23pay&status-attr=state"
    "&expiry-attr=until&in-progress-expiry-attr=lock&data-attr=body"
)


class Sides(sides.Side):
    """Both libraries on one table, whose attributes may have other names."""

    def __init__(self, url, do, table=TABLE, names=None, settings=""):
        super().__init__(url, table, LAYOUT, settings)
        self.do, self.table, self.names = do, table, names or {}
        self.ours = self

    def key(self, payload_id):
        done = self.ours(
            *("key", "--flavour", "typescript", "--prefix", "pay", "--key-from", ".id", "-"),
            input=json.dumps({"id": payload_id}).encode(),
        )
        equal(done.status, 0)
        return done.stdout.decode().rstrip("\n")

    def theirs(self, payload_id, remaining_ms=60000, **rest):
        return self.do(
            "begin",
            url=self.url,
            tableName=self.table,
            attributes=self.names,
            id=payload_id,
            remainingMs=remaining_ms,
            **rest,
        )

    def item(self, payload_id):
        key = {"id": {"S": self.key(payload_id)}}
        if self.names:
            key = {"sk": key["id"], "pk": {"S": self.names["staticPkValue"]}}
        body = {"TableName": self.table, "Key": key, "ConsistentRead": True}
        return dynamo.call(self.url, "GetItem", body).get("Item")

    def expiry(self, payload_id):
        return int(self.item(payload_id)[self.names.get("expiryAttr", "expiration")]["N"])


USUAL, OTHER = "with_the_usual_names", "with_other_names"


@functools.cache
def both_with(names):
    """Both libraries, with a table of these names."""
    url, do = dynamo.shared("local"), powertools_do()
    both = Sides(url, do) if names == USUAL else Sides(url, do, "named", NAMES, SETTINGS)
    equal(both.ours("store", "create").status, 0)
    return both


@functools.cache
def powertools_do():
    return for_all(powertools.process())


def on(*names):
    """Register a test that is given both libraries, for each of these names."""
    return each(names, given=both_with)



@on(USUAL, OTHER)
def our_attempt_blocks_theirs(both):
    """What idem has in progress Powertools does not run."""
    answer = both.started("a1")
    theirs = both.theirs("a1")
    equal((theirs["executed"], theirs["error"]), (False, "IdempotencyAlreadyInProgressError"))
    equal(both.end("complete", answer, "--result", "1").status, 0)


@on(USUAL, OTHER)
def their_attempt_blocks_ours(both):
    """What Powertools has in progress is busy for idem."""
    theirs = both.theirs("b1")
    equal(theirs["executed"], True)
    status, answer = both.begin("b1")
    equal((status, answer["verdict"], answer["owner"]), (75, "BUSY", "Powertools"))
    equal(both.do("finish", number=theirs["number"], result={"ok": True})["result"], {"ok": True})


RESULTS = [
    {"status": "paid", "n": [1, 2.5, -3, 9007199254740991], "deep": {"a": {"b": None}}, "t": True},
    ["\u00e9", "\U0001f600", "", "line\nline", 'say "no"'],
    "text",
    12345,
    0,
    False,
    [],
    {},
]


# Numbers that are none in JavaScript: Powertools is given the JSON text.
TEXTS = ["9007199254740992", '{"n":[1,-9007199254740993]}', "9007199254740991.5", "[1e20]"]


@on(USUAL, OTHER)
def our_result_is_replayed_by_them(both):
    """What idem completed Powertools answers with, and does not run."""
    told = [(json.dumps(result), result) for result in RESULTS]
    for number, (text, result) in enumerate(told + [(text, text) for text in TEXTS]):
        answer = both.started(f"c{number}")
        done = both.end("complete", answer, "--result", text)
        equal((done.status, done.stderr), (0, b""))
        theirs = both.theirs(f"c{number}")
        equal((text, theirs["executed"], theirs["result"]), (text, False, result))
        equal(both.begin(f"c{number}")[1]["result"], text)
    note(f"{len(RESULTS)} results")


@on(USUAL, OTHER)
def their_result_is_replayed_by_us(both):
    """What Powertools completed idem replays, as JSON; undefined is a tombstone."""
    for number, result in enumerate(RESULTS):
        theirs = both.theirs(f"d{number}")
        both.do("finish", number=theirs["number"], result=result)
        status, answer = both.begin(f"d{number}")
        equal((status, answer["verdict"]), (10, "REPLAY"))
        equal(json.loads(answer["result"]), result)
        equal(answer["content_type"], "application/json")
    theirs = both.theirs("d-none")
    both.do("finish", number=theirs["number"])
    status, answer = both.begin("d-none")
    equal((status, answer["verdict"], answer["not_kept"]), (82, "REPLAY", True))
    note(f"{len(RESULTS)} results")


@on(USUAL)
def our_result_keeps_its_bytes(both):
    """Powertools reads the value; we replay the very bytes, spaces and digits too."""
    result = ' {"b": 1.50, "a": [1e2]} '
    answer = both.started("e1")
    equal(both.end("complete", answer, "--result", result).status, 0)
    equal(both.theirs("e1")["result"], {"b": 1.5, "a": [100]})
    equal(both.begin("e1")[1]["result"], result)


@on(USUAL, OTHER)
def what_we_release_they_run(both):
    """What idem released Powertools runs at once, and the other way round."""
    answer = both.started("f1")
    equal(both.end("release", answer).status, 0)
    theirs = both.theirs("f1")
    equal(theirs["executed"], True)
    equal(both.do("fail", number=theirs["number"])["error"], "RangeError")
    both.started("f1")


@on(USUAL)
def what_is_to_be_run_again_they_run(both):
    """Control: what idem is to run again Powertools takes over at once, also under hold,
    and the record is its own then."""
    equal(both.end("retry", both.started("r1", policy="hold"), "--reason", "again").status, 0)
    equal(both.end("complete", both.started("r2", policy="hold"), "--result", "1").status, 0)
    equal(both.theirs("r2")["executed"], False)
    reopened = both.ours("reopen", both.key("r2"), "--reason", "the cause is mended")
    equal((reopened.status, reopened.stderr), (0, b""))
    for payload_id in ("r1", "r2"):
        equal(both.item(payload_id)["in_progress_expiration"], {"N": "1"})
        theirs = both.theirs(payload_id)
        equal(theirs["executed"], True)
        assert "idem" not in both.item(payload_id), both.item(payload_id)
        both.do("finish", number=theirs["number"], result="theirs")
        status, answer = both.begin(payload_id)
        equal((status, json.loads(answer["result"]), answer["attempts"]), (10, "theirs", 1))


@functools.cache
def left_to_expire():
    """What both have begun, by payload id; by now its leases and retentions are over."""
    both = both_with(USUAL)
    ours = {i: both.started(i, "--lease", f"{LEASE}s") for i in ("h1", "l0", "l1")}
    equal(both.end("fail", both.started("g1"), "--reason", "card refused").status, 0)
    equal(both.end("unknown", both.started("g2"), "--reason", "cut off").status, 0)
    both.started("g3", "--lease", f"{LEASE}s", policy="hold")
    equal(both.theirs("h1")["executed"], False)
    kept = both.started("h2", "--lease", f"{LEASE}s", "--retention", f"{LEASE}s")
    equal(both.end("complete", kept, "--result", "1").status, 0)
    both.theirs("h3", remaining_ms=LEASE * 1000)
    equal(both.begin("h3")[0], 75)
    old = both.theirs("h4", expiresAfterSeconds=1)
    both.do("finish", number=old["number"], result=1)
    stale = {i: both.theirs(i, remaining_ms=300)["number"] for i in ("j1", "j2", "k1")}
    time.sleep(LEASE + max(CLOCKS, MARGIN) + 1.5)
    return ours | stale


@on(USUAL)
def what_a_person_must_see_they_leave(both):
    """What failed, is unknown or held Powertools never runs, whatever time it is."""
    left_to_expire()
    for payload_id in ("g1", "g2", "g3"):
        theirs = both.theirs(payload_id)
        equal(
            (theirs["executed"], theirs["error"]), (False, "IdempotencyAlreadyInProgressError")
        )
    verdicts = [both.begin(i)[1]["verdict"] for i in ("g1", "g2", "g3")]
    equal(verdicts, ["FAILED", "UNKNOWN", "UNKNOWN"])


@on(USUAL)
def what_is_over_is_retaken(both):
    """A lease that is over is taken over, a retention that is over begins anew: by them
    from us, and by us from them; the loser is told."""
    ours = left_to_expire()["h1"]
    taken = both.theirs("h1")
    equal(taken["executed"], True)
    equal(both.end("complete", ours, "--result", "late").status, 80)
    equal(both.theirs("h2")["executed"], True)
    answer = both.started("h3")
    equal((answer["takeover"], answer["attempts"]), (True, 2))
    equal(both.started("h4")["attempts"], 1)
    equal(both.do("finish", number=taken["number"], result="theirs")["result"], "theirs")
    equal(json.loads(both.begin("h1")[1]["result"]), "theirs")


@on(USUAL)
def a_margin_is_left_to_clocks(both):
    """Powertools may take over only two seconds after the end of our lease."""
    answer = both.started("i1", "--lease", "60s")
    until = int(both.item("i1")["in_progress_expiration"]["N"])
    equal(until, answer["lease_end_ms"] + CLOCKS * 1000)


@on(USUAL)
def a_stale_completion_of_theirs_overwrites_ours(both):
    """Control: an invocation that was paused past its lease writes over our attempt.
    We cannot keep it from that; our owner is told that it lost."""
    stale = left_to_expire()
    ours = both.started("j1")
    equal(both.do("finish", number=stale["j1"], result="stale")["result"], "stale")
    equal(both.end("complete", ours, "--result", "ours").status, 80)
    status, answer = both.begin("j1")
    equal((status, json.loads(answer["result"])), (10, "stale"))

    # And over what we completed, in whatever second.
    ours = both.started("j2")
    equal(both.end("complete", ours, "--result", "ours").status, 0)
    both.do("finish", number=stale["j2"], result="stale")
    equal(json.loads(both.begin("j2")[1]["result"]), "stale")


@on(USUAL)
def a_stale_deletion_of_theirs_frees_ours(both):
    """Control: one that throws deletes our attempt, and a third begins; ours is LOST."""
    stale = left_to_expire()["k1"]
    ours = both.started("k1")
    equal(both.do("fail", number=stale)["error"], "RangeError")
    equal(both.item("k1"), None)
    third = both.started("k1")
    equal(both.end("complete", ours, "--result", "ours").status, 80)
    equal(both.end("complete", third, "--result", "third").status, 0)


@on(USUAL)
def a_stale_owner_of_ours_harms_nobody(both):
    """The other way round nothing is lost: an owner of ours whose lease is over can end
    nothing that Powertools has since begun, completed or deleted."""
    ours = [left_to_expire()[key] for key in ("l0", "l1")]
    first, second = both.theirs("l0"), both.theirs("l1")
    equal((first["executed"], second["executed"]), (True, True))
    both.do("finish", number=second["number"], result="theirs")
    for verb, answer in (("complete", ours[0]), ("release", ours[0]), ("fail", ours[1])):
        equal(both.end(verb, answer).status, 80)
    equal(both.item("l0")["status"], {"S": "INPROGRESS"})
    equal(both.do("finish", number=first["number"], result="theirs")["result"], "theirs")
    equal(json.loads(both.begin("l1")[1]["result"]), "theirs")


@on(USUAL)
def without_the_layout_both_run(both):
    """Control: with a table each, one key is run twice."""
    own = f"dynamodb://own-table?endpoint={both.url}&region=eu-west-1"
    equal(both.ours("store", "create", "--store", own).status, 0)
    done = both.ours("run", "-k", both.key("m1"), "--store", own, "--", "true")
    equal((done.status, both.theirs("m1")["executed"]), (0, True))


@on(USUAL, OTHER)
def their_records_are_imported(both):
    """idem export and import bring what Powertools completed to our own layout: keys,
    results, retention; again and again."""
    to = f"dynamodb://moved-{both.table}?endpoint={both.url}&region=eu-west-1&clock=host"
    equal(both.ours("store", "create", "--store", to).status, 0)
    for number in range(20):
        theirs = both.theirs(f"n{number}")
        both.do("finish", number=theirs["number"], result={"n": number})
    copies = []
    for _ in range(2):
        equal(both.ours("export", "theirs.jsonl").status, 0)
        equal(both.ours("import", "--store", to, "theirs.jsonl").status, 0)
        listed = both.ours("list", "--json", "--store", to).stdout.splitlines()
        # A lease of another case may end between the two.
        copies.append([{**json.loads(line), "overdue": None} for line in listed])
    equal(copies[0], copies[1])
    for number in range(20):
        done = both.ours(
            *("begin", "--json", "-k", both.key(f"n{number}"), "--store", to),
            *("--on-expired-lease", "rerun"),
        )
        answer = json.loads(done.stdout)
        equal((done.status, json.loads(answer["result"])), (10, {"n": number}))
        equal(answer["expires_ms"], both.expiry(f"n{number}") * 1000)
    note("20 records, twice")


@on(OTHER)
def another_function_is_left_alone(both):
    """With a sort key a list, a purge and a copy read the records of one function, and
    the key of another's stands in nobody's way."""
    theirs = {**both.names, "staticPkValue": "idempotency#ship"}
    begun = both.do(
        *("begin",),
        **{"url": both.url, "tableName": both.table, "attributes": theirs},
        **{"id": "o1", "remainingMs": 60000},
    )
    equal(begun["executed"], True)
    listed = both.ours("list", "--json").stdout.decode()
    assert both.key("o1") not in listed, listed
    answer = both.started("o1")
    listed = both.ours("list", "--json").stdout.decode()
    equal(listed.count(both.key("o1")), 1)
    equal(both.end("complete", answer, "--result", "1").status, 0)
    done = both.do("finish", number=begun["number"], result={"of": "ship"})
    equal(done["result"], {"of": "ship"})
    equal(json.loads(both.begin("o1")[1]["result"]), 1)


@on(OTHER)
def a_check_names_what_is_wrong(both):
    """A check of a table whose names are not those of the URL says which to give."""
    done = both.ours("store", "check")
    equal(done.status, 0)
    assert b'the key is "pk", a string, with the sort key sk' in done.stdout, done.stdout
    assert b"dynamodb:Query, to list" in done.stdout, done.stdout
    usual = both.store.split("&key-attr")[0]
    done = both.ours("store", "check", "--store", usual)
    equal(done.status, 78)
    assert b"sort-key-attr=NAME" in done.stdout, done.stdout


if __name__ == "__main__":
    main()
