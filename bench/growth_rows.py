"""The rows of bench/growth: tables, as data.

A row is measured on a store by a function of the place and its size; it gives a
dict: "us" and "cpu_us" for one of what the row counts, and "peak_kib". A row says
how its cost grows; `most` is the greatest CPU at the largest size, by that at the
smallest, and `speed` the least speed.
"""

from dataclasses import dataclass
from typing import Callable, Optional

CONSTANT = "constant"
LINEAR = "linear in what it shows: each record is constant"
CACHES = "constant in pages, but no cache holds those of many"
SMALL = "constant: of more than 16 MiB it reads what opening reads"
PAGES = "linear in what goes: a page of the index for each, which no cache holds of many"


@dataclass
class Row:
    name: str
    measure: Callable
    grows: str = CONSTANT
    most: float = 2.0
    speed: Optional[float] = None  # At the largest size, by that at the smallest.
    per_record: bool = False  # The command's cost is divided by the records.
    fresh: bool = False  # On a copy of its own, where the store is not the largest.
    once: bool = False  # Not in each round.
    warm: bool = False  # The stores are read into the kernel's cache before it.
    peer: str = ""  # Whose cost is measured beside it, as peer_us and peer_cpu_us.


@dataclass
class Table:
    title: str
    unit: str  # What the sizes count.
    sizes: tuple
    prepare: Callable  # (bench, size) makes what the rows need; gives a place.
    rows: list


# ---- How a row is measured ----


def load(what, callers):
    """bench-idem: callers that ask as fast as they are answered."""

    def measure(bench, place, n):
        args = ["--callers", callers, *bench.times()]
        if what == "replay":
            args += ["--records", n, "--bytes", 128]
        got = bench.program("idem", what, place.db, *args)
        return {**got, "us": callers * 1e6 / max(got["per_s"], 0.1)}

    return measure


def beside_sqlite(what, callers):
    """The same, and then of SQLite alone: rows as long, in as many transactions that
    are durable. Of several callers it has what they do at once in one."""

    def measure(bench, place, n):
        got = load(what, callers)(bench, place, n)
        args = ["--callers", callers, *bench.times()]
        if what == "replay":
            args += ["--records", n, "--bytes", 128]
        kind = "queue" if what == "new" and callers > 1 else what
        peer = bench.program("sqlite", kind, place.peer, *args)
        got["peer_us"] = callers * 1e6 / max(peer["per_s"], 0.1)
        got["peer_cpu_us"] = peer["cpu_us"]
        return got

    return measure


def hot(callers):
    """Duplicates of one key."""

    def measure(bench, place, _n):
        got = bench.program(
            *("idem", "replay", place.db, "--records", 1, "--bytes", 128),
            *("--callers", callers, *bench.times()),
        )
        return {**got, "us": callers * 1e6 / max(got["per_s"], 0.1)}

    return measure


def command(*words, ok=(0,), times=3):
    """idem with these words; {new} is another word each time."""

    def measure(bench, place, _n):
        return bench.idem(place, words, ok, times)

    return measure


def beside(measure, callers=8):
    """The same beside writers, and how these fare."""

    def measured(bench, place, n):
        alone = bench.program(
            "idem", "new", place.db, "--callers", callers, *bench.times()
        )
        writers = bench.start("idem", "new", place.db, "--callers", callers, "--seconds", 3600, "--warm", 0.2)
        bench.sleep(0.5)
        try:
            got = measure(bench, place, n)
        finally:
            writers.terminate()
            theirs = bench.result(writers)
        got["beside"] = theirs["per_s"] / max(alone["per_s"], 0.1)
        got["wait_ms"] = theirs["max_us"] / 1000
        return got

    return measured


def purge(bench, place, n):
    """A tenth of the records, or what can be purged in some seconds."""
    got = bench.program("idem", "purge", place.db, "--records", n // 10, "--seconds", bench.options.purge_seconds)
    return {**got, "us": 1e6 / max(got["per_s"], 0.1)}


def exported(bench, place, _n):
    return bench.idem(place, ("export", place.path("out.jsonl")), (0,), 1)


def imported(bench, place, _n):
    url = f"sqlite:{place.path('imported.db')}"
    bench.remove(place.path("imported.db"))
    return bench.idem(place, ("import", "--store", url, place.path("out.jsonl")), (0,), 1)


def told(name):
    """What the program that made the place has told of it."""

    def measure(_bench, place, _n):
        us = place.told[f"{name}_us"]
        return {
            "us": us,
            "cpu_us": place.told.get(f"cpu_{name}_us", us),
            "peak_kib": place.told["peak_kib"],
        }

    return measure


# ---- Places ----


def records(bench, n):
    return bench.records(n)


def with_busy_key(bench, n):
    place = records(bench, n)
    bench.idem(place, ("begin", "-k", "busy", "--lease", "6h"), (0,), 1)
    bench.idem(place, ("run", "-k", "replayed", "--", "true"), (0,), 1)
    return place


def made(what, *more):
    """By bench-growth: a store and what is told of the making."""

    def prepare(bench, n):
        place = bench.place(f"{what}-{n}")
        args = [place.path("journal") if word == "{journal}" else word for word in more]
        place.told = bench.program("growth", what, place.db, n, *args)
        return place

    return prepare


BUSY, FOUND = 75, (0, 1, 2)

TABLES = [
    Table(
        "Records",
        "records",
        (10**4, 10**5, 10**6, 10**7),
        with_busy_key,
        [
            Row("new operation, 1 caller", beside_sqlite("new", 1), CACHES, speed=0.9, warm=True, peer="SQLite alone", fresh=True),
            Row("new operation, 32 callers", beside_sqlite("new", 32), CACHES, speed=0.8, warm=True, peer="SQLite alone", fresh=True),
            Row("replay, 1 caller", beside_sqlite("replay", 1), CACHES, speed=0.6, warm=True, peer="SQLite alone"),
            Row("replay, 8 callers", beside_sqlite("replay", 8), CACHES, speed=0.6, warm=True, peer="SQLite alone"),
            Row("replay of one key, 32 callers", hot(32)),
            Row("idem begin, of a busy key", command("begin", "-k", "busy", ok=(BUSY,))),
            Row("idem run, new", command("run", "-k", "{new}", "--", "true")),
            Row("idem run, replayed", command("run", "-k", "replayed", "--", "true")),
            Row("idem show", command("show", "replayed")),
            Row("idem list, the newest 20", command("list", "--max", "20")),
            Row("idem list, 20 failed or unknown", command("list", "--max", "20", "--status", "failed,unknown")),
            Row("idem list, of a scope that nobody has", command("list", "-s", "nobody", "--max", "20"), "linear: scopes have no index", per_record=True),
            Row("idem watch", command("watch", "--once", ok=FOUND)),
            Row("idem stats", command("stats")),
            Row("idem doctor", command("doctor", ok=FOUND), SMALL),
            Row("idem store check, beside 8 writers", beside(command("store", "check", ok=FOUND, times=1)), LINEAR, per_record=True, once=True),
            Row("idem store check, whole", command("store", "check", ok=FOUND, times=1), LINEAR, per_record=True, once=True),
            Row("idem export", exported, LINEAR, per_record=True, once=True),
            Row("idem import", imported, LINEAR, per_record=True, once=True),
            Row("purge of 10 %, for a record", purge, PAGES, most=5, fresh=True, once=True),
            Row("purge of 10 % beside 8 writers", beside(purge), PAGES, most=3, fresh=True, once=True),
        ],
    ),
    Table(
        "Open attempts",
        "open attempts",
        (10**3, 10**4, 10**5),
        made("open"),
        [
            Row("new operation, 1 caller", load("new", 1)),
            Row("new operation, 32 callers", load("new", 32)),
            Row("idem watch", command("watch", "--once", ok=FOUND), "linear: each open attempt is looked at", per_record=True),
            Row("idem stats", command("stats"), "linear: each open attempt is looked at", per_record=True),
            Row("idem list, the newest 20", command("list", "--max", "20")),
            Row("idem list --overdue, 20", command("list", "--overdue", "--max", "20"), "linear: each open attempt is looked at", per_record=True),
        ],
    ),
    Table(
        "Claims whose leases run out",
        "claims",
        (10**3, 10**4, 10**5),
        made("claims", 6000),
        [
            Row("claim, 128 in flight", told("claim"), CACHES, most=4),
            Row("renewal, 128 in flight", told("renew"), CACHES, most=4),
            Row("takeover when all leases are over", told("takeover"), CACHES, most=4),
            Row("idem watch", command("watch", "--once", ok=FOUND), "linear: each open attempt is looked at", per_record=True),
            Row("idem list --overdue, 20", command("list", "--overdue", "--max", "20"), "linear: each open attempt is looked at", per_record=True),
        ],
    ),
    Table(
        "Subjects of a limit",
        "subjects",
        (10**3, 10**4, 10**5, 10**6),
        made("subjects"),
        [
            Row("check of a new request", told("check"), CACHES, most=6),
            Row("check of a retry", told("retry"), CACHES, most=3),
            Row("idem limit", command("limit", "-qn", "growth", "-u", "user-1", "-r", "{new}", "-m", "10000", "-p", "day")),
            Row("idem stats", command("stats")),
            Row("idem purge, nothing is due", command("purge", "-q")),
        ],
    ),
    Table(
        "Entries of the journal",
        "entries",
        (10**4, 10**5),
        made("journal", "{journal}"),
        [
            Row("an outcome put", told("put")),
            Row("a look for one key", told("look")),
            # Each tells the store up to a thousand of them, so that thousands have to be there.
            Row("idem run, new, beside them", command("run", "-k", "{new}", "--", "true", times=1)),
            Row("idem reconcile", command("reconcile", "-q", times=1), LINEAR, per_record=True, once=True),
        ],
    ),
    Table(
        "Waiters of one key",
        "waiters",
        (10, 100, 1000),
        made("waiters"),
        [
            Row("a waiter, for a second", told("a_second")),
            Row("the owner's end", told("end"), most=10),
            Row("from the end to the last answer, for a waiter", told("last"), "linear: each is woken", per_record=True),
        ],
    ),
]
