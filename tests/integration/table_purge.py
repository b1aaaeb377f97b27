"""A purge of a DynamoDB table: what it costs, that it says so, that it keeps to its
budget, and that a table which is throttled loses nothing by it.

The table has 1,000 records, and 10,000 in the long form; a tenth is past its
retention.
"""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections import Counter

import counting
import dynamo
from tap import LONG, PROGRAM, equal, main, test

FILL = os.path.join(os.path.dirname(PROGRAM), "tests", "integration", "fill_table")
TABLE = "orders"
RECORDS = 10_000 if LONG else 1_000
EXPIRED = RECORDS // 10
OPEN = RECORDS // 100
PAGE = 100
ITEM = 560  # Bytes of the records that fill_table makes, about.


class Table:
    """A table with records, behind a proxy that counts."""

    def __init__(self, counted, state):
        self.counted = counted
        self.env = dict(
            dynamo.environment(),
            IDEM_STORE=f"dynamodb://{TABLE}?endpoint={counted.url}",
            XDG_STATE_HOME=state,
        )

    def idem(self, *args, status=0):
        done = subprocess.run(
            [PROGRAM, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True
        )
        equal((done.returncode, done.stderr.decode() if status == 0 else ""), (status, ""))
        return done.stdout.decode()

    def used(self):
        """Requests by operation, and read and write units, since the last look."""
        seen = self.counted.take()
        return Counter(one[0] for one in seen), sum(s[2] for s in seen), sum(s[1] for s in seen)

    def records(self):
        """How many records there are by status."""
        lines = self.idem("list", "--json").splitlines()
        return Counter(json.loads(line)["status"] for line in lines)


def fill(url, records):
    made = subprocess.run([FILL, TABLE, str(records)], capture_output=True, check=True)
    for line in made.stdout.splitlines():
        equal(dynamo.call(url, "BatchWriteItem", json.loads(line)).get("UnprocessedItems"), {})


@contextlib.contextmanager
def table(records=RECORDS):
    """A table with records, which is new in each test."""
    url = dynamo.shared("local")
    with tempfile.TemporaryDirectory() as state, counting.proxy(url) as counted:
        t = Table(counted, state)
        t.idem("store", "create")
        fill(url, records)
        t.used()
        try:
            yield t
        finally:
            dynamo.call(url, "DeleteTable", {"TableName": TABLE})


def check_purged(told, counted):
    """All that is past its retention was deleted. A delete that the client did not wait
    for to its end, on a machine that stood still, is made again and finds nothing, or
    its page is read again without that record: it is counted as nobody's."""
    unheard = counted.unheard()
    assert EXPIRED - unheard <= told["purged"] <= EXPIRED, (told, unheard)


def left():
    """What a purge leaves of the table."""
    return {"completed": RECORDS - EXPIRED - OPEN, "in_progress": 8 * RECORDS // 1000,
            "failed": RECORDS // 1000, "unknown": RECORDS // 1000}


@test
def costs_what_it_says():
    """A purge reads the table once, not strongly, whatever --max has left out before;
    each record that goes is one conditional delete; and what it says of units is what
    the server counted."""
    with table() as t:
        t.counted.bodies = Counter()

        def note(operation, body):
            t.counted.bodies[operation, body] += 1
            return False

        t.counted.throttles = note
        told = json.loads(t.idem("purge", "--json", "--max", "37"))
        requests, read, write = t.used()
        first = told["purged"]
        assert first <= 37, told
        # A tenth of each page is expired: it takes four to find 37.
        assert requests["Scan"] <= 12, requests

        told = json.loads(t.idem("purge", "--json"))
        requests, read, write = t.used()
        equal(set(requests), {"Scan", "DeleteItem"})
        assert requests["Scan"] <= RECORDS // PAGE + 2, requests
        assert read <= RECORDS * ITEM / 8192 * 1.2 + requests["Scan"], read
        equal(told["throttled"], 0)
        if max(t.counted.bodies.values()) == 1:  # None had to be made again.
            equal((first, told["purged"]), (37, EXPIRED - 37))
            equal((told["write_units"], write), (EXPIRED - 37, EXPIRED - 37))
            assert 0 <= told["read_units"] - read < 1, (told, read)
        else:
            print("# slow: the units were not compared")
        equal(t.records(), left())


@test
def keeps_to_its_budget():
    """No more units are used in the time that it takes than --rate, but for a page."""
    budget = 40  # And a page has no more items.
    with table() as t:
        begun = time.monotonic()
        told = json.loads(t.idem("purge", "--json", "--max", "75",
                                 "--rate", str(budget)))
        took = time.monotonic() - begun
        assert told["purged"] <= 75, told
        used = told["read_units"] + told["write_units"]
        page = budget * ITEM / 8192 + budget
        assert used <= took * budget + page, (used, took)


@test
def a_throttled_table_loses_nothing():
    """Every third request is throttled: a purge deletes what it is to, and nothing
    else; a list shows all; a command runs once; and the purge says how often it was
    refused."""
    with table() as t:
        turn = Counter()

        def every_third(_operation, _body):
            turn["n"] += 1
            return turn["n"] % 3 == 0

        t.counted.throttles = every_third
        told = json.loads(t.idem("purge", "--json", "--rate", "100000"))
        check_purged(told, t.counted)
        assert EXPIRED // 3 <= told["throttled"] <= t.counted.throttled, told
        equal(t.records(), left())
        for _ in range(3):
            equal(t.idem("run", "-k", "order", "--", "echo", "charged"), "charged\n")
        t.counted.throttles = None
        equal(json.loads(t.idem("show", "order", "--json"))["attempts"], 1)


main()
