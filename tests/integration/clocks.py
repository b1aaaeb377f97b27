"""Clocks that jump, and hosts that sleep, under real processes."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from box import case, contains, finish, is_gone
from files import read
from moved_clocks import Clocks
from patience import until
from procfs import stop
from tap import equal, main

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
RERUN = ("--on-expired-lease", "rerun")


def reboot(b):
    """What the store was used in before was another boot."""
    with sqlite3.connect(b.file("idem.db")) as db:
        db.execute("UPDATE idem_clock SET boot_id = randomblob(16)")
    db.close()


def supervisor_of(process):
    """The only child of a runner."""
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    (child,) = read(path).split()
    return int(child)


def wall_ms(clocks):
    """The wall clock as a program started with @clocks sees it."""
    command = [sys.executable, "-c", "import time; print(int(time.time() * 1000))"]
    env = {**os.environ, **clocks.env}
    return int(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


@case(rows=[22], slow=True)
def a_wall_clock_that_jumps_changes_nothing(b):
    """An hour back, a day on and more, while work goes on: no early takeover, no early
    expiry, and leases are renewed as ever."""
    clocks = Clocks(b)
    env = clocks.env
    work = "while [ ! -e stop ]; do sleep 0.1; done; echo effect >> ledger; echo done"
    long = b.start_run("long", work, "--lease", "12s", *RERUN, env=env)
    until(lambda: b.has_status("long", "in_progress"), "the key is claimed")
    token = b("begin", "-k", "held", *RERUN, env=env).stdout.decode().strip()
    equal(b.run("short", "echo short", "--retention", "10m", env=env).status, 0)

    jumps = (-HOUR, DAY, -2 * DAY, 365 * DAY, -HOUR, 0)
    for number, jump in enumerate(jumps):
        before = wall_ms(clocks)
        clocks.move(wall=jump)
        assert abs(wall_ms(clocks) - before - jump) < MINUTE  # The control.
        for key in ("long", "held"):
            equal((key, b.run(key, work, *RERUN, "--fingerprint", "none", env=env).status), (key, 75))
        equal(b.run("short", "echo short", env=env)[:2], (0, b"short\n"))
        equal(b.run(f"new{number}", "echo new", env=env)[:2], (0, b"new\n"))
        equal(b("purge", env=env).status, 0)
        equal(b.run("short", "echo short", env=env)[:2], (0, b"short\n"))
        equal(b("renew", "--token", token, env=env).status, 0)
        time.sleep(2.5)  # Six of them outlast the lease.
    b.write("stop", "")
    equal(finish(long), (0, b"done\n", b""))
    equal(b("complete", "--token", token, env=env).status, 0)
    equal((b.effects(), b.record("long")["attempts"]), (1, 1))

    # The control: the boot clock is what counts.
    equal(b("begin", "-k", "late", *RERUN, env=env).status, 0)
    clocks.move(boot=2 * MINUTE)
    got = b("begin", "-k", "late", *RERUN, env=env)
    equal(got.status, 0)
    contains(got.stderr, b"takeover")


@case(rows=[8, 23], slow=True)
def a_host_that_slept_starts_nothing_more(b):
    """Runner, supervisor and command sleep past the lease while the boot clock goes on and
    the monotonic one stands still, as on a suspended host: no further effect, and
    the successor is not touched: 80."""
    clocks = Clocks(b)
    script = (
        "if [ -e go ]; then echo effect $IDEM_FENCE >> ledger; exit 0; fi; "
        "trap '' TERM; echo $$ > pid; "
        "while :; do echo effect $IDEM_FENCE >> ledger; sleep 0.02; done"
    )
    options = ("--lease", "12s", *RERUN)
    runner = b.start_run("k", script, *options, env=clocks.env)
    child = b.await_pid()
    asleep = (supervisor_of(runner), runner.pid, child)
    stop(*asleep)
    began = time.monotonic()
    b.write("go", "")
    after = until(
        lambda: next((g for g in [b.run("k", script, *options)] if g.status != 75), None),
        "the lease is over",
    )
    equal(after.status, 0)
    slept_ms = int((time.monotonic() - began) * 1000)
    clocks.move(monotonic=-slept_ms)
    effects = b.effects()
    for pid in asleep[:2]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    until(lambda: is_gone(child), "the command is ended")
    got = finish(runner)
    equal((got.status, b.effects()), (80, effects))
    contains(got.stderr, b"lost")
    fences = [int(line.split()[1]) for line in b.read("ledger").splitlines()]
    equal(fences, sorted(fences))
    equal((b.record("k")["status"], b.record("k")["attempts"]), ("completed", 2))
    print(f"# slept for {slept_ms} ms of the boot clock, 0 ms of the monotonic one")


@case(rows=[22])
def a_clock_that_is_ahead_at_a_boot_expires_nothing(b):
    """Three days ahead for one command, and right after the next boot: an order of two
    days' retention is not charged again, unless the clock was said to be right. Then
    the store's time is set back."""
    clocks = Clocks(b)
    pay = ("echo effect >> ledger", "--retention", "2d")
    for n, how in enumerate(("no", "denied", "yes")):
        key = f"order-{how}"
        clocks.keep_right("yes")
        equal(b.run(key, *pay, env=clocks.env).status, 0)
        reboot(b)
        clocks.move(wall=3 * DAY)
        clocks.keep_right(how)
        equal(b.run(f"other-{how}", "true", env=clocks.env).status, 0)
        watched = b("watch", "--once", "--json", env=clocks.env)
        contains(watched.stdout, b'"clock"', b'"jump_ms"')
        equal(watched.status, 1)
        contains(b("doctor", env=clocks.env).stdout, b"warn  clock: the store's time advanced")
        reboot(b)
        clocks.move(wall=-3 * DAY)
        clocks.keep_right("yes")
        equal(b.run(key, *pay, env=clocks.env).status, 0)
        # The control: what is said to be right is believed, here for good.
        equal((how, b.effects()), (how, n + 1 + (how == "yes")))
    told = json.loads(b("store", "set-clock", "--yes", "--json", env=clocks.env).stdout)
    assert DAY < told["from_ms"] - told["to_ms"] < 4 * DAY, told
    effects = b.effects()
    equal(b.run("order-yes", *pay, env=clocks.env).status, 0)
    equal(b.effects(), effects)
    reboot(b)
    equal(b("store", "check", env=clocks.env).stdout.count(b"clock"), 0)


if __name__ == "__main__":
    main()
