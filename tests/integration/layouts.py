"""A table of Powertools for Python, which is not run here: what its source says that it
writes is read, copied to our own layout, and left alone where it must be.
"""

import contextlib
import json
import time
import urllib.error

import dynamo
from sides import Side
from tap import equal, main, test

NOW = int(time.time())


@contextlib.contextmanager
def table(layout):
    """A server with a table of @layout: its URL, and idem on it."""
    with dynamo.server("dynoxide") as url:
        idem = Side(url, "theirs", layout)
        equal(idem("store", "create").status, 0)
        yield url, idem


def refused(url, operation, body):
    """True: the condition of a write does not hold."""
    try:
        dynamo.call(url, operation, {"TableName": "theirs", **body})
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        assert answer["__type"].endswith("ConditionalCheckFailedException"), answer
        return True
    return False


def powertools_completes(url, key, data, expires=NOW + 3600):
    """What Powertools for Python writes when a function returned."""
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
    """The JSON texts that Python stores are replayed, and moved."""
    data = json.dumps({"b": [1, 2.5, None], "a": "\u00e9"}, sort_keys=True)
    with table("powertools-python") as (url, idem):
        own = Side(url, "own", "")
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
        done = idem("export", "--open", "--wait", "0s", "moved.jsonl", timeout=170)
        equal(done.status, 0)
        for _ in range(2):
            equal(own("import", "moved.jsonl").status, 0)
        status, answer = own.begin("f#1")
        equal((status, answer["result"]), (10, data))
        equal(answer["expires_ms"], (NOW + 3600) * 1000)
        equal(own.begin("f#2")[1]["result"], "[1]")
        equal(own.begin("f#3")[0], 76)


@test
def a_table_of_two_languages_is_found_out():
    """A result of another language's kind is not replayed, and not taken for absent."""
    with table("powertools-typescript") as (url, _):
        python = Side(url, "theirs", "powertools-python")
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
