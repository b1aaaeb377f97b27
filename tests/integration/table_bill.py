"""A dry run on a whole DynamoDB table says what the work costs, and that is what the
server counts when it is done.

The table has 300 records, and 10,000 in the long form; some are past their retention.
"""

import contextlib
import json
import os
import subprocess
import tempfile
from collections import Counter

import counting
import dynamo
from tap import LONG, PROGRAM, Skip, equal, main, note, test

FILL = os.path.join(os.path.dirname(PROGRAM), "tests", "integration", "fill_table")
RECORDS = 10_000 if LONG else 300
EXPIRED = max(100, RECORDS // 10)  # Those come first of each thousand ...
IN_PROGRESS = RECORDS // 1000 * 8  # ... and these last.
COPIED = RECORDS - EXPIRED - IN_PROGRESS
CLOSE = (0.8, 1.25)  # An estimate and the truth.


class Box:
    """Tables behind a proxy that counts, and a directory."""

    def __init__(self, url, counted, folder):
        self.url = url
        self.counted = counted
        self.folder = folder
        self.env = dict(dynamo.environment(), XDG_STATE_HOME=folder)

    def table(self, name, query=""):
        return f"dynamodb://{name}?endpoint={self.counted.url}{query}"

    def file(self, name="s.db"):
        return f"sqlite:{self.folder}/{name}"

    def make(self, name, records=0):
        """A table that is there, with so many records."""
        self("store", "create", "--store", self.table(name))
        made = subprocess.run([FILL, name, str(records)], capture_output=True, check=True)
        for line in made.stdout.splitlines():
            answer = dynamo.call(self.url, "BatchWriteItem", json.loads(line))
            equal(answer.get("UnprocessedItems"), {})
        self.used()

    def __call__(self, *args, status=0):
        done = subprocess.run(
            [PROGRAM, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True
        )
        equal((done.returncode, done.stderr if done.returncode != status else b""), (status, b""))
        return done.stdout.decode() if status != 64 else done.stderr.decode()

    def copy(self, *args, status=0):
        return json.loads(self("store", "copy", "--json", *args, status=status))

    def used(self):
        """Requests by operation, write and read units, since the last look."""
        seen = self.counted.take()
        return Counter(one[0] for one in seen), sum(s[1] for s in seen), sum(s[2] for s in seen)


servers = contextlib.ExitStack()  # One for all tests: it is slow to start.
started = []


@contextlib.contextmanager
def box():
    """Tables that are new in each test."""
    why = dynamo.missing("local")
    if why is not None:
        raise Skip(why)
    if not started:
        started.append(servers.enter_context(dynamo.server("local")))
    with tempfile.TemporaryDirectory() as folder, counting.proxy(started[0]) as counted:
        try:
            yield Box(started[0], counted, folder)
        finally:
            for name in dynamo.call(started[0], "ListTables", {})["TableNames"]:
                dynamo.call(started[0], "DeleteTable", {"TableName": name})


def close(told, real):
    assert CLOSE[0] * real <= told <= CLOSE[1] * real, (told, real)


@test
def a_copy_of_a_table_says_before_what_it_costs():
    """A dry run of a copy asks for the size of the table, which costs no units, makes
    nothing at the target, and says what the copy then takes of either side; a table
    that the service has not counted says so."""
    with box() as b:
        b.make("orders", RECORDS)
        b.make("new")
        where = "--from", b.table("orders"), "--to", b.file()
        reads = b.copy("-n", *where)
        requests, write, read = b.used()
        equal((set(requests), write, read), ({"DescribeTable"}, 0, 0))
        equal(os.path.exists(f"{b.folder}/s.db"), False)
        equal((reads["records"], reads["estimated"]), (RECORDS, True))
        equal((reads["target_read_units"], reads["target_write_units"]), (0, 0))
        text = b("store", "copy", "--dry-run", *where)
        assert f"would have copied about {RECORDS} records; nothing was changed\n" in text, text
        assert f"about {reads['source_read_units']} read units of the source\n" in text, text

        back = "--from", b.table("new"), "--to", b.table("orders")
        equal(b.copy("-n", *back), {"dry_run": True, "counted": False, "estimated": True})
        assert "has not counted the items" in b("store", "copy", "-n", *back)

        where = "--from", b.table("orders"), "--to", b.table("new")
        b.used()
        told = b.copy("-n", *where)
        equal(set(b.used()[0]), {"DescribeTable"})
        equal(told["source_read_units"], reads["source_read_units"])
        equal(b.copy(*where, status=75 if LONG else 0)["copied"], COPIED)
        requests, write, read = b.used()
        note(f"copy of {RECORDS}: {dict(requests)}, {write} written, {read} read; {told}")
        # Those that are left out were told as well, for only the copy looks at them.
        close(told["source_read_units"] + told["target_read_units"], read + 2 * EXPIRED)
        assert COPIED <= write <= told["target_write_units"] + RECORDS // 50, (told, write)


@test
def a_copy_to_a_table_says_before_what_it_writes():
    """The records of a file are counted, those that a copy leaves out are not, and each
    is sized as the table will hold it: with its index, and with large results."""
    with box() as b:
        b.make("orders")
        env = dict(b.env, IDEM_STORE=b.file())
        for n, command in enumerate([
            "true", "exit 1", "head -c 20000 /dev/urandom", "head -c 900 /dev/urandom",
            "printf ok",
        ] * 3):
            subprocess.run([PROGRAM, "run", "-k", f"order-{n}", "--", "sh", "-c", command],
                           env=env, stdout=subprocess.DEVNULL)
        subprocess.run([PROGRAM, "begin", "-k", "open"], env=env, check=True,
                       stdout=subprocess.DEVNULL)
        b.used()
        where = "--from", b.file(), "--to", b.table("orders")
        told = b.copy("-n", *where)
        equal(dict(b.used()[0]), {})
        equal((told["records"], told["source_read_units"]), (15, 0))
        equal(b.copy("-n", "--open", "unknown", *where)["records"], 16)
        equal(b.copy(*where, status=75)["copied"], 15)
        _requests, write, read = b.used()
        close(told["target_write_units"], write)
        # Before anything else it asks whether the table is there; and where the machine
        # stood still, it asks again.
        assert 0 <= read - told["target_read_units"] <= 3, (told, read)


@test
def a_dry_run_is_refused_elsewhere():
    """No other action takes it for its own and goes ahead; and a copy that could not be
    made is not told of either."""
    with tempfile.TemporaryDirectory() as folder:
        b = Box(None, None, folder)
        store = b.file()
        b("run", "-k", "a", "--store", store, "--", "true")
        for action in "check", "set-clock", "mark-restored", "create":
            said = b("store", "--store", store, "-n", "--yes", action, status=64)
            assert "only copy takes --dry-run" in said, said
        for wrong in (), ("--to", store), ("--to", "memory:"):
            b("store", "copy", "-n", "--from", store, *wrong, status=64)
        told = b.copy("-n", "--from", store, "--to", b.file("new.db"))
        equal((told["records"], told["estimated"], told["target_write_units"]), (1, False, 0))
        equal(os.path.exists(f"{folder}/new.db"), False)


with servers:
    main()
