"""Large results and inputs on a table go with their records: nothing of them stays.

TTL is acted out: what it would delete by a given time is deleted by hand.
"""

import contextlib
import functools
import json
import os
import tempfile
import time

import dynamo
from checks import TABLE, server
from files import write
from patience import until
from tap import PROGRAM, equal, main, run, test

DAY = 86_400
LARGE = "head -c 5000 /dev/urandom | od -An -tx1"


@contextlib.contextmanager
def table(kind):
    """A function that runs idem on a new table, and the table."""
    with server(kind) as (url, store), tempfile.TemporaryDirectory() as state:
        env = dict(dynamo.environment(), IDEM_STORE=store, XDG_STATE_HOME=state)
        body = os.path.join(state, "body")
        write(body, os.urandom(3000))

        def idem(*args, status=0, token=None):
            extra = {} if token is None else {"IDEM_TOKEN": token}
            done = run([PROGRAM, *args], {**env, **extra})
            equal((args, done.status), (args, status))
            return done.stdout

        idem("store", "create")
        yield idem, Table(url, store, env), f"@{body}"


class Table:
    """What lies in the table."""

    def __init__(self, url, store, env):
        self.url, self.store, self.env = url, store, env

    def items(self):
        found = dynamo.call(self.url, "Scan", {"TableName": TABLE})
        assert "LastEvaluatedKey" not in found
        return found["Items"]

    def heads(self):
        return [item for item in self.items() if "rec" in item]

    def parts(self, kind):
        return [item for item in self.items() if f"#{kind}#" in item["id"]["S"]]

    def delete(self, item):
        dynamo.call(self.url, "DeleteItem", {"TableName": TABLE, "Key": {"id": item["id"]}})

    def act_out_ttl(self, later):
        """Delete what TTL would have deleted @later seconds from now."""
        for item in self.items():
            if int(item.get("ttl", {"N": "9" * 12})["N"]) < time.time() + later:
                self.delete(item)

    def part_outlives_its_head(self, kind):
        head, part = self.heads(), self.parts(kind)
        equal((len(head), len(part)), (1, 1))
        assert int(part[0]["ttl"]["N"]) >= int(head[0]["ttl"]["N"]) + DAY, (head, part)


def on_both(function):
    """Register a test that is made with a new table on each server."""

    @functools.wraps(function)
    def case():
        for kind in dynamo.KINDS:
            with table(kind) as given:
                function(*given)

    return test(case)


@on_both
def an_input_goes_with_its_record(idem, found, body):
    """The input of an attempt that is ended, or dies, goes a day after its record."""
    idem("run", "-k", "a", "--input", body, "--", "true")
    found.part_outlives_its_head("i")
    found.act_out_ttl(5 * DAY)
    equal(found.items(), [])
    idem("begin", "-k", "b", "--input", body, "--on-expired-lease", "rerun")
    found.part_outlives_its_head("i")
    found.act_out_ttl(5 * DAY)
    equal(found.items(), [])


@on_both
def an_input_stays_with_a_failure(idem, found, body):
    """What failed waits for a person without an end, and so does its input."""
    token = idem("begin", "-k", "a", "--input", body, "--on-expired-lease", "rerun").strip()
    idem("fail", "--self", "--reason", "no", token=token.decode())
    found.act_out_ttl(1000 * DAY)
    equal((len(found.heads()), len(found.parts("i"))), (1, 1))
    shown = json.loads(idem("show", "a", "--json"))
    equal(shown["status"], "failed")


@on_both
def a_new_life_leaves_nothing_of_the_old_one(idem, found, body):
    """A key past its retention is used again: result and input of its former life go
    at once."""
    idem("run", "-k", "a", "--retention", "5s", "--lease", "5s", "--input", body,
         "--fingerprint", "none", "--", "sh", "-c", LARGE)
    equal((len(found.parts("r")), len(found.parts("i"))), (1, 1))
    until(lambda: idem("run", "-k", "a", "--fingerprint", "none", "--", "echo", "new")
          == b"new\n")
    equal(len(found.items()), 1)


@on_both
def a_resolved_failure_leaves_nothing(idem, found, _body):
    """The large result of failed work goes when a person lets it run again."""
    idem("run", "-k", "a", "--outcome", "3=fail", "--", "sh", "-c", f"{LARGE}; exit 3",
         status=3)
    equal(len(found.parts("r")), 1)
    idem("resolve", "a", "--release", "--reason", "mended")
    equal(idem("run", "-k", "a", "--fingerprint", "none", "--", "echo", "new"), b"new\n")
    equal(len(found.items()), 1)


def put_part(found, age):
    dynamo.call(found.url, "PutItem", {
        "TableName": TABLE,
        "Item": {
            "id": {"S": f"{age:064x}#i#{7:032x}#0"},
            "body": {"B": "AAAA"},
            "made": {"N": str(int((time.time() - age) * 1000))},
        },
    })


@on_both
def orphans_are_purged(idem, found, body):
    """Parts that no record names are purged; parts of records, and parts that were just
    written, stay."""
    idem("run", "-k", "a", "--input", body, "--", "sh", "-c", LARGE)
    put_part(found, 2 * DAY)
    put_part(found, DAY // 2)
    told = idem("purge").splitlines()[0]
    equal(told, b"purged 0 records, and 1 part of results and inputs without a record")
    equal(len(found.items()), 4)
    told = json.loads(idem("purge", "--json"))
    equal((told["purged"], told["parts"]), (0, 0))


if __name__ == "__main__":
    main()
