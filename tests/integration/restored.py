"""A store that was put back from a copy, by hand and at the command line."""

import json
import os
import signal
import sqlite3
import subprocess
import time

from box import case, contains, finish
from procfs import stop
from tap import PROGRAM, equal, main


def back_up(b):
    """A copy as an operator makes it, while the store is in use."""
    source = sqlite3.connect(f"file:{b.file('idem.db')}?mode=ro", uri=True)
    with sqlite3.connect(b.file("copy.db")) as target:
        source.backup(target)
    source.close()


def put_back(b):
    for name in ("idem.db-wal", "idem.db-shm"):
        if os.path.exists(b.file(name)):
            os.unlink(b.file(name))
    with open(b.file("copy.db"), "rb") as f, open(b.file("idem.db"), "wb") as to:
        to.write(f.read())


def forget_how_new(b):
    """Take the time of the newest commit out of the lock file."""
    with open(b.file("idem.db-lock"), "r+b") as f:
        f.seek(64)
        f.write(bytes(32))


def marked(b, *options):
    got = b("store", "mark-restored", "--yes", "--json", *options)
    equal((got.status, got.stderr), (0, b""))
    return json.loads(got.stdout)


def begin(b, key):
    """(token, fence) of a key that is claimed and left."""
    got = b("begin", "-k", key, "--lease", "1h")
    equal(got.status, 0)
    return got.stdout.decode().strip(), b.record(key)["fence"]


def wait_for_the_clock():
    """How new a store is it notes once a second."""
    time.sleep(1.1)


@case(rows=[32])
def a_copy_is_put_back(b):
    """Work goes on after the copy: marked, what was open is unknown, old owners are
    LOST, and no fence comes again."""
    equal(b.run("done", "echo effect >> ledger").status, 0)
    token, fence = begin(b, "open")
    back_up(b)
    wait_for_the_clock()
    later_token, later_fence = begin(b, "later")
    equal(b("complete", "--token", token, "--result", "first").status, 0)
    put_back(b)

    equal(b.run("done", "echo effect >> ledger").status, 78)
    equal(json.loads(b("store", "info", "--json").stdout)["is_copy"], True)
    told = marked(b)
    equal((told["unknown"], told["corrupt"], told["times"]), (1, 0, 1))
    assert told["fence"] > max(fence, later_fence), told
    assert told["known_ms"] < told["marked_ms"], told

    equal(b.run("done", "echo effect >> ledger").status, 0)
    equal(b.effects(), 1)
    equal(b.run("open", "echo effect >> ledger").status, 76)
    contains(b.record("open")["note"], "restored from a copy")
    for lost in (token, later_token):
        equal(b("complete", "--token", lost, "--result", "late").status, 80)
    equal(b("resolve", "open", "--release", "--reason", "looked").status, 0)
    for key in ("open", "later"):
        assert begin(b, key)[1] > told["fence"]
    info = json.loads(b("store", "info", "--json").stdout)
    equal((info["is_copy"], info["restores"]), (False, 1))
    equal(info["restored_ms"], told["marked_ms"])


@case(rows=[32])
def unnoticed_and_unmarked(b):
    """The control: where nothing notices the copy, and without the mark, the work runs
    twice at once, under fences that come again."""
    b("begin", "-k", "k", "--lease", "2s", "--on-expired-lease", "rerun")
    first = b.record("k")["fence"]
    back_up(b)
    fences = []
    for _ in range(2):
        time.sleep(2.1)
        got = b.run("k", "exit 75", "--on-expired-lease", "rerun", "--fingerprint", "none")
        fences.append(b.record("k")["fence"])
        put_back(b)
        forget_how_new(b)
    equal(got.status, 75)
    equal(fences, [first + 1, first + 1])


@case(rows=[32])
def who_lives_through_it_is_lost(b):
    """A runner that was at work all the time is told so, and records nothing."""
    runner = b.start_run("k", "echo $$ > pid; read x < gate; echo effect >> ledger")
    b.await_pid()
    back_up(b)
    stop(runner.pid)
    wait_for_the_clock()
    equal(b.run("other", "true").status, 0)
    put_back(b)
    equal(marked(b)["unknown"], 1)
    record = b.record("k")
    os.kill(runner.pid, signal.SIGCONT)
    b.open_gate()
    got = finish(runner)
    equal(got.status, 80)
    equal(b.record("k"), record)
    equal(record["status"], "unknown")


@case
def it_wants_a_yes(b):
    """Without --yes it says what it does, and changes nothing; without a file it says so."""
    begin(b, "open")
    got = b("store", "mark-restored")
    equal(got.status, 64)
    contains(got.stderr, b"cannot be undone", b"--yes")
    equal(b.record("open")["status"], "in_progress")
    os.unlink(b.file("idem.db"))
    os.unlink(b.file("idem.db-lock"))
    got = b("store", "mark-restored", "--yes")
    equal(got.status, 78)
    contains(got.stderr, b"no store")
    equal(b("store", "mark-restored", "--yes", "--store", "memory:").status, 64)


@case
def others_wait_meanwhile(b):
    """Callers that come while it is marked get their answer before or after."""
    begin(b, "open")
    line = f'for i in 1 2 3 4 5 6 7 8 9; do "{PROGRAM}" run -qk "k$i" -- true & done; wait'
    env = {**os.environ, "IDEM_STORE": b.idem.store}
    with subprocess.Popen(["sh", "-c", line], env=env) as callers:
        told = marked(b)
    equal((callers.returncode, told["corrupt"]), (0, 0))
    statuses = [b.record(f"k{n}")["status"] for n in range(1, 10)]
    print(f"# {told['unknown']} unknown; then {statuses}")
    assert set(statuses) <= {"completed", "unknown"}, statuses
    equal(b.record("open")["status"], "unknown")


if __name__ == "__main__":
    main()
