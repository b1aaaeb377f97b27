"""However many records a store has, and however much is open, commands take the same memory."""

import json
import os

from files import read
from records import NEVER, NOW, line_of, write_export
from tap import LONG, Idem, equal, main, note, skip, test

# More than watch names; and so many that to keep them takes 10 MB.
FEW = 3300
MANY = 100000 if LONG else 15000
MARGIN_KB = 4096  # SQLite's cache of pages fills.
SANITIZED = os.environ.get("IDEM_TEST_SANITIZER", "none") != "none"


def record(n, status):
    return {
        "status": status, "policy": 1, "fence": n + 10, "lease_end": NOW - 1000,
        "expires": NOW + 9**14 if status == 2 else NEVER, "owner": b"worker-%d" % n,
        "meta": b"exit 1\n" if status == 2 else b"", "error": b"account closed" if status == 3 else b"",
        "note": b"its lease ended" if status == 4 else b"",
    }  # fmt: skip


def filled(name, many):
    """A store with failed and unknown work, and outcomes that failed."""
    store = Idem("sqlite:" + os.path.abspath(name))
    records = (record(n, (3, 4, 2)[n % 3]) for n in range(many))
    write_export(name + ".jsonl", (line_of(b"s", b"order-%06d" % n, r) for n, r in enumerate(records)))
    equal(store("import", name + ".jsonl").status, 0)
    return store


def peak_kb(store, *args):
    """The most memory of the command, its exit status, and its messages."""
    done = store(*args, env={"LD_PRELOAD": os.environ["IDEM_PEAK_MODULE"], "IDEM_PEAK": "peak"})
    return int(read("peak").split()[0]), done.status, done.stderr.decode()


@test
def memory_does_not_grow_with_the_store():
    """Each command that goes through the records takes about as much for many as for few."""
    if SANITIZED:
        skip("a sanitizer keeps what is freed")
    few, many = filled("few.db", FEW), filled("many.db", MANY)
    for args in (
        ["stats"], ["stats", "--format", "prometheus"], ["watch", "--once"], ["watch", "--once", "--json"],
        ["doctor"], ["list", "--json"], ["list", "--failed", "--max", "20"],
        ["list", "--failed", "--json"], ["list", "--failed"],
        ["list", "-s", "none"], ["purge"], ["export", "-"],
        ["resolve", "--status", "failed", "--release", "--reason", "x"],
        ["resolve", "--status", "failed", "--release", "--reason", "x", "--yes", "--count", "1"],
    ):  # fmt: skip
        small, status, _ = peak_kb(few, *args)
        large, other, said = peak_kb(many, *args)
        equal(status, other)
        note(f"{' '.join(args)}: {small} KB with {FEW}, {large} KB with {MANY}")
        # Of lines to be sorted, twice a part is held.
        room = 16384 if args == ["list", "--failed", "--json"] else MARGIN_KB
        # It holds as much with 100,000 records, but the caches alone are the margin.
        room = 2 * MARGIN_KB if args[0] == "watch" else room
        assert large - small < room, (args, small, large, said[-300:])
    for verb in ("import", "export --open --wait 0s"):
        peaks = []
        for store, name in ((few, "few.db"), (many, "many.db")):
            into = Idem("sqlite:" + os.path.abspath("into-" + name))
            moving = verb != "import"
            args = [*verb.split(), ("moved-" if moving else "") + name + ".jsonl"]
            kb, status, said = peak_kb(store if moving else into, *args)
            equal((status, said if status else ""), (0, ""))
            peaks.append(kb)
        note(f"{verb}: {peaks[0]} KB with {FEW}, {peaks[1]} KB with {MANY}")
        # A batch, and what SQLite writes at a time.
        assert peaks[1] - peaks[0] < 16384, (verb, peaks)


@test
def what_is_left_out_is_counted():
    """watch names so many, and counts the rest."""
    store = filled("store.db", 3300)
    seen = [json.loads(line) for line in store("watch", "--once", "--json").stdout.splitlines()]
    more = {line["kind"]: line["more"] for line in seen if line["event"] == "more"}
    equal(more, {"failed": 100, "unknown": 100, "failed_outcome": 100})
    equal(sum(line["event"] == "failed" for line in seen), 1000)


@test
def a_sorted_list_is_printed_in_parts():
    """What an index finds is sorted part by part: each record once."""
    store = filled("store.db", MANY)
    down = store("list", "--failed", "-f", "key").stdout.decode().splitlines()
    equal(sorted(down), [f"order-{n:06d}" for n in range(MANY) if n % 3 != 1])
    first = store("list", "--failed", "-f", "key", "--max", "5000").stdout.decode().splitlines()
    equal(first, down[:5000])


@test
def a_scope_is_found_after_many_others():
    """A list of one scope goes on where thousands of newer records are of another."""
    store = Idem("sqlite:" + os.path.abspath("store.db"))
    write_export("first.jsonl", [line_of(b"first", b"order", record(0, 3))])
    equal(store("import", "first.jsonl").status, 0)
    filled("store.db", 22000)
    equal(store("list", "-s", "first", "--fields", "key").stdout, b"order\n")


if __name__ == "__main__":
    main()
