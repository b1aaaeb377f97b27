"""A runner that dies before its command: nothing was run by it, and where it had taken
over from another, the next one is told that too."""

import json
import os

import points
from patience import until
from tap import PROGRAM, Idem, environment, equal, main, run, start, test

STORM_IDEM = os.path.join(os.path.dirname(PROGRAM), "tests", "storm", "storm-idem")
RERUN = ("--on-expired-lease", "rerun", "--fingerprint", "none")


def died_at(idem, key, point, *command):
    """A run that is killed at @point; what its supervisor then makes of the record."""
    counters = points.Counters("hits", points.names_in("src", "cli"))
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


if __name__ == "__main__":
    main()
