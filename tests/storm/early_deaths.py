"""A runner that dies before its command, or is told to end after it.

One that dies before: nothing was run by it, and where it had taken
over from another, the next one is told that too."""

import json
import os
import signal

import points
import procfs
from patience import PATIENCE, until
from tap import PROGRAM, Idem, environment, equal, main, run, start, test

STORM_IDEM = os.path.join(os.path.dirname(PROGRAM), "tests", "storm", "storm-idem")
RERUN = ("--on-expired-lease", "rerun", "--fingerprint", "none")


def died_at(idem, key, point, *command):
    """A run that is killed at @point; what its supervisor then makes of the record."""
    counters = points.Counters("hits", points.names_in("src", "aws", "cli"))
    env = {**environment(points.environment(counters, [(point, 1)])), "IDEM_STORE": idem.store}
    with start([STORM_IDEM, "run", "-k", key, *RERUN, "--", *command], env) as runner:
        runner.communicate()
        equal((runner.returncode, counters.kills(point)), (-9, 1))

    def settled():
        r = record(idem, key)
        return r if r and (r["status"] != "in_progress" or r.get("overdue")) else None

    return until(settled, "the supervisor has told the store")


def record(idem, key):
    shown = idem("show", "--json", key)
    return json.loads(shown.stdout) if shown.status == 0 else None


def took_over(idem, key):
    """The record of an attempt that ended without a word."""
    env = {"IDEM_STORE": idem.store}
    equal(run([PROGRAM, "run", "-k", key, *RERUN, "--", "sh", "-c", "kill -9 $$"], env).status, 137)


# After the claim, before the order to start; and after it, where there is nothing to start.
DEATHS = {"run/claim/answered": ("true",), "run/launch/ready": ("true",),
          "run/launch/ordered": ("/no/such/program",)}  # fmt: skip


@test
def a_takeover_is_not_released():
    """A runner that took over and died before its command ends its lease, and releases
    nothing: the next one is told that it takes over."""
    for n, (point, command) in enumerate(DEATHS.items()):
        idem = Idem(f"sqlite:{os.path.abspath(f'{n}.db')}")
        took_over(idem, "k")
        left = died_at(idem, "k", point, *command)
        equal((point, left["status"], left["attempts"]), (point, "in_progress", 2))
        got = idem("run", "-k", "k", *RERUN, "--", "sh", "-c", "echo $IDEM_TAKEOVER")
        equal((got.status, got.stdout), (0, b"1\n"))


@test
def a_first_claim_is_released():
    """The control: without an earlier attempt nothing has happened, and the key is free."""
    for n, (point, command) in enumerate(DEATHS.items()):
        idem = Idem(f"sqlite:{os.path.abspath(f'{n}.db')}")
        equal((point, died_at(idem, "k", point, *command)["status"]), (point, "released"))
        got = idem("run", "-k", "k", *RERUN, "--", "sh", "-c", "echo $IDEM_TAKEOVER")
        equal((got.status, got.stdout), (0, b"0\n"))


# ---- Told to end while the outcome is recorded ----


def told_to_end(key, size):
    """A runner that gets SIGTERM between its outcome and its output of @size bytes."""
    counters = points.Counters("hits", points.names_in("src", "aws", "cli"))
    stop = points.environment(counters, [], "run/finish/recorded")
    env = {**environment(stop), "IDEM_STORE": "sqlite:" + os.path.abspath("idem.db")}
    command = ("sh", "-c", f"head -c {size} /dev/zero")
    runner = start([STORM_IDEM, "run", "-k", key, "--", *command], env)
    until(lambda: procfs.is_stopped(runner.pid), "it stands at its outcome")
    runner.send_signal(signal.SIGTERM)
    runner.send_signal(signal.SIGCONT)
    return runner


@test
def a_signal_at_the_outcome_ends_a_runner_whose_reader_is_slow():
    """The outcome is on record, and nobody reads: the runner ends by the signal."""
    runner = told_to_end("k", 100_000)
    equal(runner.wait(PATIENCE), -signal.SIGTERM)
    runner.communicate()
    idem = Idem("sqlite:" + os.path.abspath("idem.db"))
    equal(record(idem, "k")["status"], "completed")


@test
def a_signal_at_the_outcome_takes_nothing_from_a_reader():
    """Where all output can be written at once, it is, and the exit status is the command's."""
    runner = told_to_end("k", 1000)
    equal(runner.communicate(timeout=PATIENCE), (bytes(1000), b""))
    equal(runner.returncode, 0)


if __name__ == "__main__":
    main()
