"""Machines that share a table, through a proxy that does one request in five wrong.

Usage: chaos.py CHECK DRIVER
"""

import contextlib
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

from machines import drive, faults_of, hold, idem  # noqa: E402, I001

import dynamo  # noqa: E402
import faults  # noqa: E402
import judge  # noqa: E402
import postgres  # noqa: E402
import postgres_line  # noqa: E402
import proxy  # noqa: E402
import tap  # noqa: E402

OPS = 100_000 if tap.LONG else 10_000
DATABASE_OPS = 100_000 if tap.LONG else 640
KILLS = 10_000 if tap.LONG else 200
STARTS = 100 if tap.LONG else 6
RATE = 0.2


@contextlib.contextmanager
def table(kind):
    """A server with an empty table on it."""
    why = dynamo.missing(kind)
    if why is not None:
        tap.skip(why)
    with dynamo.server(kind) as url:
        made = idem(url, "store", "create")
        assert made.returncode == 0, made.stderr
        yield url


def show(between):
    """Print how often each class was met; the least of them."""
    total = sum(between.hits.values())
    print(f"# {between.requests} requests, {total} of them faulted")
    for name in faults.CLASSES:
        print(f"#   {between.hits[name]:6} {name}")
    return min(between.hits[name] for name in faults.CLASSES)


def machines(kind, ops, seed, least):
    with table(kind) as url:
        began = time.monotonic()
        with proxy.chaos(url, seed, RATE) as between:
            into = drive(
                *(between.url, "--processes", 4, "--threads", 16, "--keys", 4),
                *("--calls", -(-ops // 64), "--seed", seed),
            )
        print(f"# {time.monotonic() - began:.1f} s")
        assert show(between) >= least
        hold(faults_of(into, url), into)


@tap.test(rows=[10, 11, 13, 15, 16, 17, 26])
def machines_on_dynoxide():
    """On dynoxide, with clocks that are seconds apart: no acknowledged completion is
    lost, none is made by a stale fence, all replays are equal, every completed record
    has one effect, and the history is explained."""
    machines("dynoxide", OPS, seed=1, least=OPS // 100 if tap.LONG else 1)


@tap.test
def machines_on_dynamodb_local():
    """The same on DynamoDB Local."""
    if not tap.LONG:
        tap.skip("only in the long run")
    machines("local", OPS // 5, seed=2, least=OPS // 1000)


@tap.test
def machines_on_postgresql():
    """On PostgreSQL, through a line that cuts connections before, in and after a
    transaction, delays it, has it done later, cancels it and loses its answer: all that
    holds, too."""
    postgres.need()
    with postgres.server() as server:
        made = idem(server.url, "store", "create")
        assert made.returncode == 0, made.stderr
        with postgres_line.before(server, postgres_line.by_seed(7, RATE)) as line:
            into = drive(
                *(line.url, "--processes", 4, "--threads", 8, "--keys", 4),
                *("--calls", -(-DATABASE_OPS // 32), "--seed", 7),
            )
        print(f"# {line.batches} batches, {line.hits.total()} of them faulted")
        for name in postgres_line.FAULTS:
            print(f"#   {line.hits[name]:6} {name}")
        assert min(line.hits[name] for name in postgres_line.FAULTS) > 0, line.hits
        hold(faults_of(into, server.url), into)


@tap.test
def machines_that_do_not_know_the_time():
    """Machines that all start at once claim with clocks that are seconds off, before any
    answer could tell: through the proxy all that holds too."""
    with table("dynoxide") as url:
        places = []
        for n in range(STARTS):
            with proxy.chaos(url, seed=n, rate=RATE) as between:
                places += [drive(
                    *(between.url, "--processes", 4, "--threads", 8, "--keys", 4, "--cold"),
                    *("--calls", 8, "--seed", n), into=f"into-{n}",
                )]
        with open("ledger", "w", encoding="ascii") as f:
            f.writelines((into / "ledger").read_text() for into in places)
        found = faults_of(Path(), url)
        assert not found, "\n".join(found[:20])


@tap.test
def machines_that_are_killed():
    """Machines are killed at any moment, and others go on with their journals: all
    that holds too."""
    with table("dynoxide") as url:
        into = drive(
            *(url, "--processes", 4, "--threads", 4, "--keys", 4, "--calls", 100000),
            *("--kills", KILLS, "--every", 40 if tap.LONG else 60, "--seed", 4),
        )
        hold(faults_of(into, url), into)


# ---- Controls ----


@tap.test
def control_without_answer_is_not_undone():
    """Control: who takes a lost answer for "not done" and goes on has two effects
    through the same proxy."""
    with table("dynoxide") as url:
        with proxy.chaos(url, seed=5, rate=0.6) as between:
            into = drive(
                *(between.url, "--processes", 2, "--threads", 8, "--keys", 2),
                *("--calls", 60, "--seed", 5, "--naive"),
            )
        found = faults_of(into, url)
        print(f"# {len(found)} faults, the first: {(found or ['none'])[0]}")
        assert any("effect" in text for text in found)


GOOD = """\
B h1 1 0
S h1 1 100
B h1 2 0
E h1 1 100
C h1 1 100
A h1 1 100 100.a
R h1 2 100 100.a
B r1 1 0
S r1 1 200
E r1 1 200
B r1 2 0
S r1 2 201
E r1 2 201
C r1 1 200
T r1 1 200
C r1 2 201
A r1 2 201 201.a
"""
RECORDS = {
    "h1": judge.Record("completed", 100, 1, "100.a"),
    "r1": judge.Record("completed", 201, 2, "201.a"),
}
# What is planted: lines instead of others, records, and what must be said.
PLANTED = [
    ("a second effect", {"E h1 1 100": "E h1 1 100\nE h1 1 100"}, {}),
    ("effects under hold", {"E h1 1 100": "E h1 1 100\nB h1 3 0\nS h1 3 101\nE h1 3 101"},
     {"h1": judge.Record("completed", 100, 2, "100.a")}),
    ("without an attempt", {"E h1 1 100": "E h1 2 100"}, {}),
    ("started twice", {"S r1 2 201": "S r1 2 201\nB r1 3 0\nS r1 3 201"}, {}),
    ("was started after", {"S r1 2 201": "S r1 2 199"}, {}),
    ("an effect with fence 200 after", {"E r1 1 200\nB r1 2 0\nS r1 2 201\n":
                                        "B r1 2 0\nS r1 2 201\nE r1 1 200\n"}, {}),
    ("completed by 200 after", {"T r1 1 200": "A r1 1 200 200.a"}, {}),
    ("acknowledged 100.a, on record", {}, {"h1": judge.Record("unknown", 100, 1, "")}),
    ("acknowledged 201.a, on record", {}, {"r1": judge.Record("completed", 201, 2, "201.b")}),
    ("nothing is on record", {}, {"h1": None}),
    ("has the outcomes", {"R h1 2 100 100.a": "R h1 2 100 100.b"}, {}),
    ("replayed 100.b", {"R h1 2 100 100.a": "R h1 2 100 100.b"}, {}),
    ("that nobody made", {"R h1 2 100 100.a": "X h1 2 100"}, {}),
    ("with 0 effects", {"E h1 1 100\n": ""}, {}),
    ("0 effects, on record", {"E h1 1 100\n": "", "A h1 1 100 100.a\n": "",
                              "R h1 2 100 100.a\n": ""}, {}),
    ("effects in 1 attempts", {}, {"r1": judge.Record("completed", 201, 1, "201.a")}),
    ("was started, on record", {}, {"r1": judge.Record("in_progress", 200, 2, "")}),
    ("completed twice", {"R h1 2 100 100.a": "W h1 1 100 100.b"}, {}),
    ("LOST within its lease", {"T r1 1 200": "V r1 1 200"}, {}),
    ("nobody followed", {"C r1 2 201\nA r1 2 201 201.a\n": "C r1 2 201\nT r1 2 201\n"},
     {"r1": judge.Record("in_progress", 201, 2, "")}),
]


def judged(changes, other):
    """What the judge says of GOOD with these changes."""
    text = GOOD
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    Path("ledger").write_text(text)
    records = {k: r for k, r in {**RECORDS, **other}.items() if r is not None}
    return judge.judge(judge.read_ledger("ledger"), records)


@tap.test
def control_the_judge_finds_what_is_planted():
    """Control: the judge says of every planted ledger what is wrong with it, and
    nothing of a good one."""
    tap.equal(judged({}, {}), [])
    for wanted, changes, records in PLANTED:
        found = judged(changes, records)
        assert any(wanted in text for text in found), (wanted, found)
    print(f"# {len(PLANTED)} planted ledgers, all of them found")


if __name__ == "__main__":
    tap.main()
