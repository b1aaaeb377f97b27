"""Who looks for what is open reads what is open, however much is on record.

A store with many records and the same store with few of them, 50 of them open in
both, are looked at by the same commands: what they read is counted, and is the same.
"""

import json
import os
import time

import counting
import dynamo
from checks import server
from files import read
from records import NOW, line_of, write_export
from tap import LONG, Idem, equal, main, note, test

AWS = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}
LATE, LIVE, FAILED, UNKNOWN = 10, 20, 10, 10
OPEN = LATE + LIVE + FAILED + UNKNOWN
BAD = 5  # Completed with a failure.
# Both end as far after a row from which claims enter the index, each 64th.
FEW, MANY = (1024, 1_000_000) if LONG else (312, 3000)
FEW_ITEMS, MANY_ITEMS = (500, 30_000) if LONG else (100, 800)
OVERDUE = ("list", "--overdue", "--json")
WATCH = ("watch", "--once", "--json")
FAILURES = ("list", "--failed", "--json")
ALL = ("list", "--json")


def open_record(i):
    if i >= LATE + LIVE:
        return {"status": 3 if i < LATE + LIVE + FAILED else 4}
    return {"status": 1, "lease_end": NOW - 3600_000 if i < LATE else NOW + 3600_000}


def write(path, many):
    """@many records; the open ones have the same keys in every store, and are spread
    over all of it."""
    every = many // OPEN

    def line(n):
        i = n // every
        key, r = b"order-%d" % n, {"result": b"ok"}
        if n % every == 0 and i < OPEN:
            key, r = b"open-%d" % i, open_record(i)
        elif n % every == 1 and i < BAD:
            key, r = b"bad-%d" % i, {"result": b"ok", "meta": b"exit 3\n"}
        return line_of(b"", key, {"fence": n + 10, "lease_end": NOW + 3600_000, **r})

    write_export(path, map(line, range(many)))


def fill(store, many):
    write("records.jsonl", many)
    done = store("import", "--json", "records.jsonl", env=AWS, timeout=1500)
    equal((done.status, json.loads(done.stdout)["added"]), (0, many))
    os.unlink("records.jsonl")


def answered(command, done):
    """How many records the command told of; they are the right ones."""
    told = [json.loads(line) for line in done.stdout.splitlines()]
    if command == WATCH:
        equal(done.status, 2)
        equal((told[0]["overdue"], told[0]["in_progress"]), (LATE, LATE + LIVE))
        equal((told[0]["failed"], told[0]["unknown"]), (FAILED, UNKNOWN))
        equal(told[0]["failed_outcome"], BAD)
        return OPEN - LIVE + BAD
    equal(done.status, 0)
    if command == OVERDUE:
        equal(len(told), LATE)
    if command == FAILURES:
        equal(len(told), FAILED + BAD)
    return len(told)


# ---- SQLite: rows, and steps of its machine ----


def rows_of(store, command):
    env = {"LD_PRELOAD": os.environ["IDEM_ROWS"], "ROWS": os.path.abspath("rows")}
    begun = time.monotonic()
    done = store(*command, env=env, timeout=120)
    took = time.monotonic() - begun
    answered(command, done)
    return [int(word) for word in read("rows").split()], took


@test
def a_file_is_read_where_it_is_open():
    """list --overdue, list --failed and watch read the rows of a file that they tell of,
    or that are open, and the newest row, near which claims are that are not in the index;
    and no others."""
    seen = {}
    for many in (FEW, MANY):
        store = Idem("sqlite:" + os.path.abspath(f"{many}.db"))
        fill(store, many)
        for command in (OVERDUE, WATCH, FAILURES):
            (rows, scanned, steps), took = rows_of(store, command)
            seen[many, command] = rows, scanned, steps
            note(f"{many} records, {' '.join(command)}: {rows} rows, {steps} steps, {took * 1000:.0f} ms")
        equal(seen[many, OVERDUE][:2], (LATE + LIVE + 1, 0))
        equal(seen[many, WATCH][:2], (OPEN + BAD + 1, 0))
        equal(seen[many, FAILURES][0], FAILED + BAD)
    for command in (OVERDUE, WATCH, FAILURES):
        equal(seen[FEW, command], seen[MANY, command])

    # The control: who lists everything reads everything, and the counter sees it.
    (rows, _, steps), _ = rows_of(Idem("sqlite:" + os.path.abspath(f"{FEW}.db")), ALL)
    assert rows >= FEW and steps > seen[FEW, WATCH][2], (rows, steps)


# ---- DynamoDB: requests and units ----


def units_of(name, counted, command):
    counted.take()
    store = Idem(f"dynamodb://{name}?endpoint={counted.url}")
    answered(command, store(*command, env=AWS, timeout=120))
    asked = counted.take()
    return sorted((op, units) for op, written, units in asked), sum(a[2] for a in asked)


@test
def a_table_is_read_where_it_is_open():
    """list --overdue, list --failed and watch read the index of a table and its items."""
    with server("dynoxide") as (endpoint, _), counting.proxy(endpoint) as counted:
        for many in (FEW_ITEMS, MANY_ITEMS):
            store = Idem(f"dynamodb://orders{many}?endpoint={endpoint}")
            equal(store("store", "create", env=AWS).status, 0)
            fill(store, many)

        def seen(many, command):
            asked, units = units_of(f"orders{many}", counted, command)
            equal({op for op, _ in asked} - {"Query", "BatchGetItem"}, set())
            note(f"{many} items, {' '.join(command)}: {len(asked)} requests, {units} units")
            return len(asked), units

        for command in (OVERDUE, WATCH, FAILURES):
            for _ in range(3):  # What is answered late is asked again, and counts twice.
                few, many = seen(FEW_ITEMS, command), seen(MANY_ITEMS, command)
                if few == many:
                    break
            equal(few, many)
            assert many[1] <= 2 * OPEN, many

        # The control: who lists everything pays for everything.
        _, few = units_of(f"orders{FEW_ITEMS}", counted, ALL)
        _, many = units_of(f"orders{MANY_ITEMS}", counted, ALL)
        assert many > 2 * few, (few, many)
        note(f"list of all: {few} and {many} units")


if __name__ == "__main__":
    main()
