"""Tables of libraries that are not run here: what their source says that they write is
read, copied to our own layout, and left alone where it must be.
"""

import contextlib
import json
import time
import urllib.error

import dynamo
from tap import Idem, equal, main, note, skip, test

NOW = int(time.time())


@contextlib.contextmanager
def table(layout):
    """A server with a table of @layout: its URL, and idem on it."""
    reason = dynamo.missing("dynoxide")
    if reason is not None:
        skip(reason)
    with dynamo.server("dynoxide") as url:
        idem = On(url, f"&layout={layout}")
        equal(idem("store", "create").status, 0)
        yield url, idem


class On(Idem):
    """idem on the table of @url."""

    def __init__(self, url, settings="", name="theirs"):
        super().__init__(f"dynamodb://{name}?endpoint={url}&region=eu-west-1{settings}")

    def __call__(self, *args, **rest):
        return super().__call__(*args, env=dynamo.environment(), **rest)

    def begin(self, key, policy="rerun"):
        done = self("begin", "--json", "-k", key, "--on-expired-lease", policy)
        assert done.stdout, done.stderr
        return done.status, json.loads(done.stdout)


def refused(url, operation, body):
    """True: the condition of a write does not hold."""
    try:
        dynamo.call(url, operation, {"TableName": "theirs", **body})
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        assert answer["__type"].endswith("ConditionalCheckFailedException"), answer
        return True
    return False


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def locker_puts(url, token, locked_by="theirs", **more):
    """What Locker writes to take a lock. True: it did not get it."""
    item = {
        "token": {"S": token},
        "lockedBy": {"S": locked_by},
        "created": {"S": iso(NOW)},
        "expectedCompletion": {"S": iso(NOW + 60)},
        "status": {"S": "inProgress"},
        "ttl": {"NULL": True},
        **more,
    }
    return refused(
        url,
        "PutItem",
        {
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#token)",
            "ExpressionAttributeNames": {"#token": "token"},
        },
    )


def locker_ends(url, token, locked_by="theirs", result="null"):
    """What Locker writes when its work succeeded. True: it was refused."""
    return refused(
        url,
        "UpdateItem",
        {
            "Key": {"token": {"S": token}},
            "UpdateExpression": "SET #actualCompletion = :actualCompletion, "
            "#result = :result REMOVE #status",
            "ConditionExpression": "attribute_exists(#token) AND #lockedBy = :lockedBy",
            "ExpressionAttributeNames": {
                f"#{name}": name
                for name in ("actualCompletion", "result", "status", "lockedBy", "token")
            },
            "ExpressionAttributeValues": {
                ":lockedBy": {"S": locked_by},
                ":actualCompletion": {"S": iso(NOW + 1)},
                ":result": {"S": result},
            },
        },
    )


def locker_errs(url, token, error):
    dynamo.call(
        url,
        "UpdateItem",
        {
            "TableName": "theirs",
            "Key": {"token": {"S": token}},
            "UpdateExpression": "SET #a = :a, #e = :e, #s = :s",
            "ExpressionAttributeNames": {
                **{"#a": "actualCompletion", "#e": "error", "#s": "status"}
            },
            "ExpressionAttributeValues": {
                **{":a": {"S": iso(NOW + 1)}, ":e": {"S": error}, ":s": {"S": "error"}}
            },
        },
    )


@test
def locker_and_idem_keep_each_other_out():
    """A lock of either is busy for the other; nobody of Locker's ends one of ours."""
    with table("locker") as (url, idem):
        equal(locker_puts(url, "a"), False)
        status, answer = idem.begin("a")
        equal((status, answer["verdict"], answer["owner"]), (75, "BUSY", "theirs"))
        equal(locker_ends(url, "a", result='{"n":1}'), False)
        status, answer = idem.begin("a")
        equal((status, answer["result"]), (10, '{"n":1}'))

        _, ours = idem.begin("b")
        equal(locker_puts(url, "b"), True)
        equal(locker_ends(url, "b", locked_by=ours["owner"]), True)
        equal(idem("complete", "--token", ours["token"], "--result", "7").status, 0)
        equal(locker_puts(url, "b"), True)
        equal(idem.begin("b")[1]["result"], "7")


@test
def a_release_makes_way_for_locker():
    """Locker knows what was released as an item that is not there."""
    with table("locker") as (url, idem):
        _, ours = idem.begin("a")
        equal(idem("release", "--token", ours["token"]).status, 0)
        equal(locker_puts(url, "a"), False)
        equal(idem.begin("a")[0], 75)


@test
def locks_move_to_our_own_layout():
    """A table of Locker's is copied: tokens, results, errors, and a ttl in either unit;
    the copy can be repeated. What is past its ttl stays behind."""
    with table("locker") as (url, idem):
        own = On(url, name="own")
        equal(own("store", "create").status, 0)
        day = NOW + 86400
        units = {"ms": day * 1000, "s": day, "past-ms": (NOW - 9) * 1000, "past-s": NOW - 9}
        for name, ttl in units.items():
            locker_puts(url, name, ttl={"N": str(ttl)})
            locker_ends(url, name, result=json.dumps({"unit": name}))
        locker_puts(url, "for ever")
        locker_ends(url, "for ever")
        locker_puts(url, "failed")
        locker_errs(url, "failed", "oh no")
        for _ in range(2):
            done = own("store", "copy", "--from", idem.store, "--to", own.store)
            equal(done.status, 0)
        for name in ("ms", "s"):
            status, answer = own.begin(name)
            equal((status, answer["result"]), (10, json.dumps({"unit": name})))
            equal(answer["expires_ms"], day * 1000)
            equal(answer["created_ms"], NOW * 1000)
        for name in ("past-ms", "past-s"):
            equal(own.begin(name)[0], 0)
        status, answer = own.begin("for ever")
        equal((status, answer["expires_ms"]), (10, None))
        status, answer = own.begin("failed")
        equal((status, answer["error"]), (79, "oh no"))
        note("6 locks, 4 with a ttl in seconds or milliseconds")


@test
def what_is_in_progress_is_not_moved():
    """A lock whose work goes on is left out, and said; or becomes unknown on demand."""
    with table("locker") as (url, idem):
        own = On(url, name="own")
        equal(own("store", "create").status, 0)
        locker_puts(url, "a")
        copy = ("store", "copy", "--from", idem.store, "--to", own.store)
        equal(own(*copy).status, 75)
        equal(own("show", "a").status, 1)
        own(*copy, "--open", "unknown")
        equal(own.begin("a")[1]["verdict"], "UNKNOWN")


def powertools_completes(url, key, data, expires=NOW + 3600):
    """What Powertools for Python, Java and .NET write when a function returned."""
    dynamo.call(
        url,
        "UpdateItem",
        {
            "TableName": "theirs",
            "Key": {"id": {"S": key}},
            "UpdateExpression": "SET #response_data = :response_data, #expiry = :expiry, "
            "#status = :status",
            "ExpressionAttributeNames": {
                **{"#response_data": "data", "#expiry": "expiration", "#status": "status"}
            },
            "ExpressionAttributeValues": {
                ":response_data": {"S": data},
                ":expiry": {"N": str(expires)},
                ":status": {"S": "COMPLETED"},
            },
        },
    )


def powertools_claims(url, key):
    """Its condition for a claim. True: it is refused."""
    return refused(
        url,
        "PutItem",
        {
            "Item": {
                "id": {"S": key},
                "status": {"S": "INPROGRESS"},
                "expiration": {"N": str(NOW + 3600)},
                "in_progress_expiration": {"N": str((NOW + 60) * 1000)},
            },
            "ConditionExpression": "attribute_not_exists(#id) OR #expiry < :now OR "
            "(#status = :inprogress AND attribute_exists(#in_progress_expiry) AND "
            "#in_progress_expiry < :now_in_millis)",
            "ExpressionAttributeNames": {
                "#id": "id",
                "#expiry": "expiration",
                "#status": "status",
                "#in_progress_expiry": "in_progress_expiration",
            },
            "ExpressionAttributeValues": {
                ":now": {"N": str(NOW)},
                ":now_in_millis": {"N": str(NOW * 1000)},
                ":inprogress": {"S": "INPROGRESS"},
            },
        },
    )


@test
def texts_of_powertools_are_read_and_moved():
    """The JSON texts that Python, Java and .NET store are replayed, and copied."""
    data = json.dumps({"b": [1, 2.5, None], "a": "\u00e9"}, sort_keys=True)
    for layout in ("powertools-python", "powertools-java", "powertools-dotnet"):
        with table(layout) as (url, idem):
            own = On(url, name="own")
            equal(own("store", "create").status, 0)
            equal(powertools_claims(url, "f#1"), False)
            equal(idem.begin("f#1")[0], 75)
            powertools_completes(url, "f#1", data)
            status, answer = idem.begin("f#1")
            equal((status, answer["result"]), (10, data))
            _, ours = idem.begin("f#2")
            equal(powertools_claims(url, "f#2"), True)
            equal(idem("complete", "--token", ours["token"], "--result", "[1]").status, 0)
            equal(powertools_claims(url, "f#2"), True)
            _, ours = idem.begin("f#3")
            equal(idem("release", "--token", ours["token"]).status, 0)
            equal(powertools_claims(url, "f#3"), False)
            for _ in range(2):
                done = own("store", "copy", "--from", idem.store, "--to", own.store)
                equal(done.status, 75)  # f#3 is in progress.
            status, answer = own.begin("f#1")
            equal((status, answer["result"]), (10, data))
            equal(answer["expires_ms"], (NOW + 3600) * 1000)
            equal(own.begin("f#2")[1]["result"], "[1]")


@test
def a_table_of_two_languages_is_found_out():
    """A result of another language's kind is not replayed, and not taken for absent."""
    with table("powertools-typescript") as (url, _):
        python = On(url, "&layout=powertools-python")
        dynamo.call(
            url,
            "PutItem",
            {
                "TableName": "theirs",
                "Item": {
                    "id": {"S": "f#1"},
                    "status": {"S": "COMPLETED"},
                    "expiration": {"N": str(NOW + 3600)},
                    "data": {"M": {"a": {"N": "1"}}},
                },
            },
        )
        done = python("begin", "-k", "f#1", "--on-expired-lease", "rerun")
        equal(done.status, 74)
        assert b"another library" in done.stderr, done.stderr


@test
def a_layout_says_what_it_cannot_hold():
    """Scopes, keys that are no text, rate limits: refused with a sentence."""
    with table("powertools-python") as (_, idem):
        done = idem("run", "-s", "shop", "-k", "a", "--", "true")
        equal(done.status, 64)
        assert b"has no scopes" in done.stderr, done.stderr
        done = idem("store", "check")
        equal(done.status, 0)
        assert b'"expiration"' in done.stdout, done.stdout


if __name__ == "__main__":
    main()
