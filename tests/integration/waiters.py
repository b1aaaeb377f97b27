"""Waiters of idem run and idem begin: a crowd, and a store that others keep busy."""

import contextlib
import fcntl
import os
import struct
import time

from box import case, contains, finish, until
from tap import LONG, PROGRAM, equal, main, note, start

# With IDEM_TEST_LONG as many as a busy host may have. Each is two processes.
CROWD = 1000 if LONG else 40
USUAL = 10  # Seconds that whoever does not wait has for the lock.

WORK = "echo effect >> ledger; read x < gate; echo done"


@contextlib.contextmanager
def hogged(b):
    """Somebody has the store's lock. Gives its file: to close another descriptor of
    it would let the lock go."""
    with open(b.file("idem.db-lock"), "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
        yield file
        fcntl.lockf(file, fcntl.LOCK_UN, 1, 0)


def in_line(lock):
    """How many processes wait for it."""
    following, served = struct.unpack("=II", os.pread(lock.fileno(), 8, 512))
    return following - served


def start_crowd(b, count, *options):
    """@count that start at the same moment: all exec when the gate opens."""
    gate, opener = os.pipe()
    env = {
        "HOME": b.path,
        "IDEM_JOURNAL_DIR": b.file("journal"),
        "IDEM_STORE": b.idem.store,
    }
    command = [PROGRAM, "run", "-k", "k", *options, "--", "sh", "-c", WORK]
    crowd = []
    for _ in range(count):
        script = f'read x <&{gate}; exec "$@" {gate}<&-'
        argv = ["sh", "-c", script, "sh", *command]
        crowd.append(start(argv, env, cwd=b.path, pass_fds=[gate]))
    b.processes += crowd
    os.close(gate)
    os.close(opener)
    return crowd


@case
def who_waits_is_not_refused(b):
    """The lock is held for longer than who does not wait has patience: those who wait
    come to their turn, all are given the one outcome, and the end is recorded."""
    owner = b.start_run("k", WORK)
    until(b.effects, "the work has begun")
    began = time.monotonic()
    with hogged(b) as lock:
        crowd = start_crowd(b, CROWD, "--wait", "300s")
        begin = b.start("begin", "-k", "k", "--wait", "300s")
        impatient = b.start_run("other", "echo effect >> ledger")
        until(lambda: in_line(lock) > CROWD, "all stand in line", 300 if LONG else 60)
        until(lambda: impatient.poll() is not None, "it is refused")
        refused = finish(impatient)
        contains(refused.stderr, b"other processes held its lock for too long")
        equal(refused.status, 69)
        assert time.monotonic() - began >= USUAL - 1
        assert begin.poll() is None
        equal({p.poll() for p in crowd}, {None})
        b.open_gate()  # The owner's command ends, and has to be recorded.
        time.sleep(1)
    freed = time.monotonic()
    equal(finish(owner), (0, b"done\n", b""))
    note(f"the owner's end was recorded {time.monotonic() - freed:.2f} s later")
    results = [finish(p, timeout=300) for p in crowd]
    equal({r[:2] for r in results}, {(0, b"done\n")})
    equal(finish(begin, timeout=300).stdout.count(b"done"), 1)
    equal(b.effects(), 1)


if __name__ == "__main__":
    main()
