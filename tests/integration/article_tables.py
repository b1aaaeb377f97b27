"""Tables laid out as in three articles, on Amazon's DynamoDB Local: their programs and
idem on the same keys, both ways round, and the way to a table of idem's own.
"""

import json
import time

import articles
import dynamo
from articles import EventHandler, LockTokens, http_begin, http_finish, http_take, idempotent
import sides
from tap import equal, main, test

NOW = int(time.time())
LEASE = 10
CLOCKS = 2


class Side(sides.Side):
    """idem on a table of @layout that the article's template made."""

    def end(self, verb, answer, *options):
        return super().end(verb, answer, *options).status

    def show(self, key):
        done = self("show", "--json", key)
        equal((done.status, done.stderr), (0, b""))
        return json.loads(done.stdout)

    def result(self, key):
        done = self("show", "--output", key)
        equal((done.status, done.stderr), (0, b""))
        return done.stdout

    def own(self, name):
        """A new table of idem's own."""
        other = Side(self.url, name, "")
        equal(other("store", "create").status, 0)
        return other

    def moved(self, to):
        """Move it to the store @to, where what is in progress is unknown."""
        done = self("export", "--open", "--wait", "0s", "moved.jsonl", timeout=170)
        equal(done.status, 0)
        for _ in range(2):
            equal(to("import", "moved.jsonl").status, 0)

    def warnings(self):
        """What a check says of the layout, and so doctor."""
        found = []
        for command in ("store", "check"), ("doctor",):
            answer = json.loads(self(*command, "--json").stdout)
            texts = [f["text"] for f in answer["findings"] if f["about"] == "layout"]
            found.append(texts)
        equal(found[0], found[1])
        return found[0]


def made(layout, name, key, expiry, **more):
    """A table of @layout as its article has it, and idem on it."""
    url = dynamo.shared("local")
    return articles.create(url, name, key, expiry, **more), Side(url, name, layout)


def lines(side, *options):
    done = side("list", "--json", *options)
    equal(done.status, 0)
    return {row["key"]: row for row in map(json.loads, done.stdout.splitlines())}


# ---- Lock tokens ----


@test
def lock_tokens_keep_each_other_out():
    """A lock of either is busy for the other, a result of either is replayed by the
    other, what failed is an error for both, and a release makes way."""
    table, idem = made("lock-token", "tokens", "lockToken", "ttl", index="status")
    locks = LockTokens(table)
    equal(locks.begin("order_1"), None)
    status, answer = idem.begin("order_1")
    equal((status, answer["owner"]), (75, "order_update_lambda/1"))
    locks.success("order_1", {"n": 1})
    status, answer = idem.begin("order_1")
    equal((status, answer["result"]), (10, '{"n": 1}'))

    ours = idem.started("order_2")
    there = locks.begin("order_2")
    equal((there["status"], there.get("result")), ("inProgress", None))
    equal(idem.end("complete", ours, "--result", '{"n":2}'), 0)
    there = locks.begin("order_2")
    equal((there.get("status"), json.loads(there["result"])), (None, {"n": 2}))
    words = "echo hello; echo a note >&2"
    done = idem("run", "-k", "order_3", "--on-expired-lease", "hold", "--", "sh", "-c", words)
    equal((done.status, done.stdout, done.stderr), (0, b"hello\n", b"a note\n"))
    equal(json.loads(locks.begin("order_3")["result"]), "hello\n")

    equal(idem.end("fail", idem.started("order_4"), "--reason", "card refused"), 0)
    there = locks.begin("order_4")
    equal((there["status"], json.loads(there["result"])), ("error", "card refused"))
    equal(locks.begin("order_5"), None)
    locks.failure("order_5", {"error": "oh no"})
    status, answer = idem.begin("order_5")
    equal((status, answer["verdict"], answer["error"]), (79, "FAILED", '{"error": "oh no"}'))

    equal(idem.end("release", idem.started("order_6")), 0)
    equal(locks.begin("order_6"), None)


@test
def a_lock_without_a_lease_is_never_taken():
    """Work of theirs that died is overdue and busy, whatever the policy of a claim, until
    a person decides; and a check says that this is so."""
    table, idem = made("lock-token", "held", "lockToken", None, index="status")
    locks = LockTokens(table)
    equal(locks.begin("dead", at=NOW - 7200, ttl=NOW - 3600), None)
    for policy in ("rerun", "hold"):
        status, answer = idem.begin("dead", policy=policy)
        equal((status, answer["verdict"]), (75, "BUSY"))
    row = lines(idem, "--overdue")["dead"]
    equal((row["status"], row["expected_ms"]), ("in_progress", (NOW - 7200 + 60) * 1000))
    assert any("never taken over" in text for text in idem.warnings()), idem.warnings()
    done = idem("resolve", "--complete", "7", "--reason", "the log says so",
                "--force", "dead")  # fmt: skip
    equal((done.status, done.stderr), (0, b""))
    there = locks.begin("dead")
    equal((there.get("status"), there["result"]), (None, "7"))


# ---- The consumer of events ----


@test
def events_keep_each_other_out():
    """What the consumer has in progress idem leaves alone, what it completed idem
    replays; and the other way round, with the value that idem recorded."""
    table, idem = made("idempotency-store", "IdempotencyStore", "idempotencyKey", "expiryTimestamp")
    with EventHandler(table, "m1", result={"status": "success", "n": 3}) as handler:
        assert handler is not None
        status, answer = idem.begin("m1")
        equal((status, answer["owner"]), (75, "idempotency-store"))
    status, answer = idem.begin("m1")
    equal(status, 10)
    equal(json.loads(answer["result"]), {"status": "success", "n": 3})

    ours = idem.started("m2", policy="hold")
    equal(refusal(table, "m2"), ("DuplicateInProgressException", None))
    equal(idem.end("complete", ours, "--result", '{"order": "o-2"}'), 0)
    equal(refusal(table, "m2"), ("DuplicateCompletedException", {"order": "o-2"}))
    equal(idem.end("fail", idem.started("m3"), "--reason", "no"), 0)
    equal(refusal(table, "m3"), ("DuplicateInProgressException", None))
    equal(idem.end("release", idem.started("m4")), 0)
    with EventHandler(table, "m4"):
        pass
    equal(idem.begin("m4")[0], 10)
    done = idem("run", "-k", "m5", "--on-expired-lease", "rerun", "--", "echo", '{"x": "y"}')
    equal(done.status, 0)
    equal(refusal(table, "m5"), ("DuplicateCompletedException", {"x": "y"}))


def refusal(table, key):
    """The exception of a duplicate, and its response data."""
    try:
        with EventHandler(table, key):
            raise AssertionError("it runs")
    except articles.IdempotencyException as error:
        return type(error).__name__, getattr(error, "response_data", None)


@test
def an_expired_event_is_taken_over_late():
    """Its time is over before its function is: idem waits for the longest function, takes
    over with what it knows, and is told when the one that was late writes over it."""
    table, idem = made("idempotency-store", "late", "idempotencyKey", None)
    late = EventHandler(table, "e1", timeout_seconds=-60)
    stale = EventHandler(table, "e2", timeout_seconds=-300)
    held = EventHandler(table, "e3", timeout_seconds=-300)
    for each in (late, stale, held):
        each.__enter__()  # pylint: disable=unnecessary-dunder-call
    equal(idem.begin("e1")[0], 75)
    ours = idem.started("e2")
    equal((ours["takeover"], ours["attempts"]), (True, 2))
    equal(idem.begin("e3", policy="hold")[1]["verdict"], "UNKNOWN")
    equal(refusal(table, "e3"), ("DuplicateInProgressException", None))
    # Control: the consumer ends whatever is IN_PROGRESS.
    stale.result = {"by": "stale"}
    stale.__exit__(None, None, None)
    equal(idem.end("complete", ours, "--result", "1"), 80)
    equal(json.loads(idem.begin("e2")[1]["result"]), {"by": "stale"})


@test
def a_lock_of_the_first_handler_is_held():
    """The article's first handler stores no status: nobody knows whether its work is
    done, so that it becomes unknown once its time is over."""
    table, idem = made("idempotency-store", "first", "idempotencyKey", None)
    equal(articles.first_pass(table, "f1"), True)
    equal(idem.begin("f1")[1]["verdict"], "BUSY")
    table.put_item(Item={"idempotencyKey": "f2", "expiryTimestamp": NOW - 300})
    equal(idem.begin("f2")[1]["verdict"], "UNKNOWN")


# ---- HTTP ----

BODY = json.dumps({"status": "success"})
CREATED = {"statusCode": 201, "body": BODY}


def answer_of(side, key):
    """The HTTP status and the body that are on record."""
    done = side("show", key)
    equal(done.status, 0)
    found = [line.split() for line in done.stdout.decode().splitlines()]
    status = [words[2] for words in found if words[:2] == ["HTTP", "status"]]
    return int(status[0]), side.result(key).decode()


@test
def requests_keep_each_other_out():
    """What their function has in progress is busy for idem, what it answered is replayed,
    also a failure; and the other way round."""
    table, idem = made("http-idempotency", "requests", "idempotencyKey", "expiry")
    equal(http_begin(table, "u1:a"), None)
    status, answer = idem.begin("u1:a")
    equal((status, answer["owner"]), (75, "http-idempotency"))
    http_finish(table, "u1:a", CREATED)
    equal(idem.begin("u1:a")[1]["result"], BODY)
    equal(answer_of(idem, "u1:a"), (201, BODY))

    def broken(_key):
        raise ValueError("no funds")

    equal(idempotent(table)(broken)("u1:b")["statusCode"], 500)
    status, answer = idem.begin("u1:b")
    equal((status, answer["verdict"]), (79, "FAILED"))
    assert "no funds" in answer["error"], answer
    status, body = answer_of(idem, "u1:b")
    equal((status, json.loads(body)["message"]), (500, "no funds"))

    ours = idem.started("u1:c", policy="hold")
    equal(http_begin(table, "u1:c"), articles.answer_409())
    equal(idem.end("complete", ours, "--result", json.dumps(CREATED)), 0)
    equal(http_begin(table, "u1:c"), CREATED)
    equal(idem.end("fail", idem.started("u1:d"), "--reason", "no funds"), 0)
    there = http_begin(table, "u1:d")
    equal((there["statusCode"], json.loads(there["body"])), (500, {"error": "no funds"}))
    equal(idem.end("unknown", idem.started("u1:e"), "--reason", "cut off"), 0)
    equal(http_begin(table, "u1:e"), articles.answer_409())
    equal(idem("run", "-k", "u1:f", "--on-expired-lease", "hold", "--", "true").status, 0)
    equal(json.loads(table.get_item(Key={"idempotencyKey": "u1:f"})["Item"]["responsePayload"]),
          None)  # fmt: skip
    equal(idem.end("release", idem.started("u1:g")), 0)
    equal(http_begin(table, "u1:g"), None)
    equal(idem.begin("u1:g")[1]["verdict"], "BUSY")


@test
def requests_are_taken_over():
    """A lock that is over is taken by either side from the other, and the loser is told
    if it is idem; what is held they never take."""
    table, idem = made("http-idempotency", "takeovers", "idempotencyKey", "expiry")
    equal(http_begin(table, "t1", lock_seconds=-3), None)
    ours = idem.started("t1")
    equal((ours["takeover"], ours["attempts"]), (True, 2))
    lost = idem.started("t2", "--lease", f"{LEASE}s")
    idem.started("t3", "--lease", f"{LEASE}s", policy="hold")
    equal(http_begin(table, "t2"), articles.answer_409())
    time.sleep(LEASE + CLOCKS + 1.5)
    equal(http_begin(table, "t2"), None)
    equal(http_begin(table, "t3"), articles.answer_409())
    equal(idem.end("complete", lost, "--result", "1"), 80)
    http_finish(table, "t2", CREATED)
    equal(idem.begin("t2")[1]["result"], BODY)
    # Their takeover tests only the lock: of what idem has just completed there is none.
    old = table.get_item(Key={"idempotencyKey": "t1"})["Item"]["lockExpiry"]
    equal(idem.end("complete", ours, "--result", "1"), 0)
    equal(http_take(table, "t1", old, NOW + 60), articles.answer_409())
    # Control: they end without a condition.
    http_finish(table, "t1", CREATED)
    equal(idem.begin("t1")[1]["result"], BODY)


@test
def requests_are_moved():
    """A copy brings answers and failures over, with what they said."""
    table, idem = made("http-idempotency", "answers", "idempotencyKey", "expiry")
    for number in range(20):
        http_begin(table, f"a{number}")
        answer = {"statusCode": 201 + number, "body": f"n{number}"}
        http_finish(table, f"a{number}", answer, number % 2 == 0)
    http_begin(table, "open", lock_seconds=60)
    own = idem.own("answers-own")
    idem.moved(own)
    for number in range(20):
        there = own.show(f"a{number}")
        equal(there["status"], ("completed", "failed")[number % 2])
        equal(answer_of(own, f"a{number}"), (201 + number, f"n{number}"))
    # A function on Lambda looks for them in a scope of its own.
    scoped = idem.own("answers-scoped")
    for again in "added 21, kept 0", "added 0, kept 21":
        done = scoped("import", "--scope", "charge", "moved.jsonl")
        equal(done.status, 0)
        assert again.encode() in done.stdout, done.stdout
    equal({row["scope"] for row in lines(scoped).values()}, {"charge"})
    equal(scoped("begin", "-k", "a2", "-s", "charge", "--on-expired-lease", "hold").status, 10)
    equal(own.show("open")["status"], "unknown")


# ---- Items that are not as they should be ----

STRANGE = {
    "lock-token": ("lockToken", [
        ({"status": "stuck"}, "status"),
        ({"status": 7}, "status"),
        ({"created": 1714226560}, "created"),
        ({"expectedCompletion": "tomorrow"}, "expectedCompletion"),
        ({"ttl": "soon"}, "ttl"),
        ({"ttl": 10**14 * 9}, "ttl"),
        ({"lockedBy": {"a": 1}}, "lockedBy"),
        ({"result": {"a": 1}}, "result"),
    ]),
    "idempotency-store": ("idempotencyKey", [
        ({"status": "DONE"}, "status"),
        ({"status": "COMPLETED", "expiryTimestamp": "soon"}, "expiryTimestamp"),
        ({"status": "IN_PROGRESS", "expiryTimestamp": -5}, "expiryTimestamp"),
        ({"status": "IN_PROGRESS", "expiryTimestamp": 10**13}, "expiryTimestamp"),
    ]),
    "http-idempotency": ("idempotencyKey", [
        ({"expiry": NOW + 60}, "status"),
        ({"status": "IN_PROGRESS", "lockExpiry": "soon"}, "lockExpiry"),
        ({"status": "IN_PROGRESS", "lockExpiry": NOW * 1000}, "lockExpiry"),
        ({"status": "COMPLETED", "responsePayload": {"statusCode": 200}}, "responsePayload"),
        ({"status": "FAILED", "responsePayload": 7}, "responsePayload"),
    ]),
}  # fmt: skip


@test
def strange_items_are_refused():
    """What is not an item of the layout is not believed and not taken for absent: nothing
    runs, and the message names the attribute."""
    for layout, (key, rows) in STRANGE.items():
        table, idem = made(layout, f"strange-{layout}", key, None)
        for number, (item, word) in enumerate(rows):
            table.put_item(Item={key: f"k{number}", **item})
            done = idem("begin", "-k", f"k{number}", "--on-expired-lease", "rerun")
            equal((layout, item, done.status), (layout, item, 74))
            assert f'"{word}"'.encode() in done.stderr, (item, done.stderr)
        own = idem.own(f"strange-{layout}-own")
        equal(idem("export", "strange.jsonl").status, 74)
        equal(own("import", "strange.jsonl").status, 0)
        equal(lines(own), {})


if __name__ == "__main__":
    main()
