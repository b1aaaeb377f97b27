"""Containers of one host that share a store: each with process numbers, and a view
of the file systems, of its own."""

import contextlib
import os
import signal
import subprocess
import time

from box import case, contains, finish
from files import read
from patience import until
from procfs import children
from tap import PROGRAM, equal, main, skip

NEW = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--mount"]
if os.getuid() != 0:
    NEW[1:1] = ["--user", "--map-root-user"]


def contained(b, *command):
    """Start @command as the first process of a container."""
    if subprocess.run([*NEW, "true"], capture_output=True, check=False).returncode:
        skip("no containers can be made here")
    env = {**os.environ, "IDEM_STORE": b.idem.store, "HOME": b.path}
    process = subprocess.Popen(
        [*NEW, *command],
        cwd=b.path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    b.processes.append(process)
    return process


def first_of(process):
    """The first process of a container, by its number out here."""
    return until(lambda: children(process.pid), "the container has a process")[0]


@case(rows=[44])
def a_race_between_containers_has_one_winner(b):
    """Two containers, in each of which the runner is process 1, race for a key: one
    execution, and both get its outcome."""
    script = "echo effect >> ledger; grep ^NSpid /proc/self/status >> numbers; echo out $$"
    rounds = 25
    command = (PROGRAM, "run", "--wait", "20s", "-k")
    for n in range(rounds):
        pair = [
            contained(b, *command, f"k{n}", "--", "sh", "-c", script) for _ in range(2)
        ]
        first, second = map(finish, pair)
        equal(first, second)
        equal((first.status, first.stdout[:4]), (0, b"out "))
        equal(b.effects(), n + 1)
    numbers = {line.split()[-1] for line in b.read("numbers").splitlines()}
    print(f"# {rounds} races; the work had the numbers {sorted(numbers)}")
    assert all(int(number) < 10 for number in numbers), numbers


@case(rows=[44])
def a_container_is_killed_as_one(b):
    """With its first process a container dies, supervisor and all: the store is free at
    once, and the key when its lease is over."""
    b.write("work", "echo effect $IDEM_FENCE >> ledger; test -e go || sleep 60\n")
    run = f"{PROGRAM} run -k k --lease 15s --on-expired-lease rerun -- sh work"
    victim = contained(b, "sh", "-c", f"{run} & wait")
    until(b.effects, "the work has begun")
    os.kill(first_of(victim), signal.SIGKILL)
    killed = time.monotonic()
    victim.wait()
    equal(finish(contained(b, PROGRAM, "begin", "-k", "other")).status, 0)
    free_after = time.monotonic() - killed

    b.write("go", "")
    equal(finish(contained(b, "sh", "-c", run)).status, 75)  # It was not told.
    after = until(
        lambda: next(
            (g for g in [finish(contained(b, "sh", "-c", run))] if g.status != 75), None
        ),
        "the lease is over",
    )
    took = time.monotonic() - killed
    equal(after.status, 0)
    fences = [int(line.split()[1]) for line in b.read("ledger").splitlines()]
    equal((len(fences), fences[1]), (2, fences[0] + 1))
    print(f"# the store was free after {free_after:.2f} s, the key after {took:.2f} s")
    assert took > 1


@case
def signals_reach_what_the_first_process_runs(b):
    """A container is stopped by a signal to its first process: idem run passes it on to
    its command, records how that ended, and leaves nothing of it."""
    b.write("work", "trap 'echo ended; exit 3' TERM\n(sleep 60 &)\necho effect >> ledger\n"
            "while :; do sleep 0.1; done\n")
    container = contained(b, PROGRAM, "run", "-k", "k", "--", "sh", "work")
    until(b.effects, "the work has begun")
    os.kill(first_of(container), signal.SIGTERM)
    got = finish(container)
    equal((got.status, got.stdout), (3, b"ended\n"))
    record = b.record("k")
    equal((record["status"], record["exit_status"]), ("completed", 3))


@case
def a_signal_ends_any_command_that_is_the_first_process(b):
    """The kernel drops signals for the first process that it would end; they end idem
    there, too."""
    token = b("begin", "-k", "held").stdout.strip().decode()
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        # Of nohup a program inherits that a signal is ignored, and idem leaves it so.
        default = ("env", f"--default-signal={int(number)}")
        waiter = contained(b, *default, PROGRAM, "begin", "-k", "held", "--wait", "100s")
        first = first_of(waiter)
        until(lambda: is_idem(first), "the first process is idem")
        # Sent until it has effect: idem may not have begun yet.
        until(lambda: is_over(waiter) or send(first, number), f"{number!r} ends it")
        equal(finish(waiter).status, 128 + number)
    equal(b("release", "--token", token).status, 0)


def is_idem(pid):
    return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(PROGRAM)


def is_over(process):
    return process.poll() is not None


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@case(rows=[44])
def no_namespace_moves_the_clock(b):
    """In a time namespace the boot clock is shifted; a lease is not over for that."""
    far = ["unshare", "--time", "--fork", "--boottime", "1000000"]
    command = "sed -n 1p /proc/uptime"
    shifted = subprocess.run([*far, "sh", "-c", command], capture_output=True, check=False)
    if shifted.returncode != 0:
        skip("no time namespaces here")
    equal(float(shifted.stdout.split()[0]) > float(read("/proc/uptime").split()[0]) + 999999, True)

    run = ("run", "-k", "k", "--on-expired-lease", "rerun", "--", "sh", "-c")
    token = b("begin", "-k", "k", "--on-expired-lease", "rerun").stdout.strip()
    env = {**os.environ, "IDEM_STORE": b.idem.store}

    def there(*args):
        return subprocess.run(
            [*far, PROGRAM, *args], cwd=b.path, env=env, capture_output=True, check=False
        )

    got = there(*run, "echo effect >> ledger")
    equal((got.returncode, b.effects()), (75, 0))
    contains(got.stderr, b"lease")
    # And what is claimed there is not over, nor without an end, here.
    equal(there("begin", "-k", "l", "--on-expired-lease", "rerun").returncode, 0)
    equal(b("begin", "-k", "l", "--on-expired-lease", "rerun").status, 75)
    left = b.record("l")["lease_end_ms"] - b.record("k")["lease_end_ms"]
    assert 0 <= left < 20000, left
    equal(b("complete", "--token", token.decode()).status, 0)
    equal(there("begin", "-k", "k").returncode, 10)


if __name__ == "__main__":
    main()
