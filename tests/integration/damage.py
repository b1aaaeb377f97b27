"""Files that are damaged: nothing runs, and nothing is made anew."""

import collections
import contextlib
import hashlib
import os
import sqlite3

from files import read, read_bytes, write
from tap import Idem, equal, main, test

WORK = ("--", "sh", "-c", "echo effect >> ledger; echo out")
PAGE = 4096


def sha(name):
    return hashlib.sha256(read_bytes(name)).digest()


def cut(name, size):
    os.truncate(name, size)


def put(name, at, data):
    with open(name, "r+b") as f:
        f.seek(at)
        f.write(data)


def replace(name, data):
    write(name, data)


DAMAGES = {
    "a letter in its place": (replace, b"Dear all, " * 50),
    "no header": (put, 0, bytes(100)),
    "another page size": (put, 16, b"\x02\x01"),
    "half of it": (cut, PAGE * 5 // 2),
    "no schema": (put, 100, b"\xff" * 1000),
    "no table": (put, PAGE, bytes(PAGE)),
    "no index": (put, 2 * PAGE, b"\xff" * PAGE),
    "no clock": (put, 4 * PAGE, b"\xa5" * PAGE),
}


def put_back(whole):
    """The file as it was, with nothing beside it."""
    replace("idem.db", whole)
    for name in ("idem.db-wal", "idem.db-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


@test(rows=[38])
def a_damaged_store_runs_nothing():
    """Whatever the damage, nothing runs, and what meets it says so: 74. The file
    stays as it is."""
    idem = Idem()
    equal(idem("run", "-k", "k", *WORK)[:2], (0, b"out\n"))
    with contextlib.closing(sqlite3.connect("idem.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = read_bytes("idem.db")
    tally = collections.Counter()
    for name, (damage, *how) in DAMAGES.items():
        put_back(whole)
        damage("idem.db", *how)
        before = sha("idem.db")
        for command in (
            ("run", "-k", "k", *WORK),
            ("run", "-k", "another", *WORK),
            ("begin", "-k", "k"),
            ("begin", "-k", "another"),
            ("show", "k"),
            ("list",),
        ):
            got = idem(*command)
            tally[got.status] += 1
            # A list may have no need of the page.
            allowed = {74} if command != ("list",) else {74, 0}
            assert got.status in allowed, (name, command, got)
        equal((name, sha("idem.db")), (name, before))
        equal((name, read("ledger")), (name, "effect\n"))
    print(f"# {len(DAMAGES)} damages; {dict(tally)}")

    # The control: as it was, it works.
    put_back(whole)
    equal(idem("run", "-k", "k", *WORK)[:2], (0, b"out\n"))
    equal(idem("run", "-k", "another", *WORK)[:2], (0, b"out\n"))


if __name__ == "__main__":
    main()
