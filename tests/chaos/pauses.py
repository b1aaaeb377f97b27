"""Owners that are stopped for a tenth of their lease to three times of it, or get no
processor: nobody follows them early, and what they say too late is refused.

Usage: pauses.py CHECK DRIVER
"""

import concurrent.futures
import contextlib
import functools
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from machines import CHECK, drive, faults_of, history_of  # noqa: E402, I001

import histories  # noqa: E402
from tap import LONG, Idem, equal, main, test  # noqa: E402

PAUSES = 10000 if LONG else 100
CONTROLS = 300 if LONG else 100
OWNERS = 150 if LONG else 36
SPINNERS = 6
# Where the clock of all is one, a lease ends when it says.
EXACT = "early=1 late=1"

# Owners, pauses, and milliseconds between them.
STORMS = {
    "pauses": (OWNERS, PAUSES, 60),
    "starvation": (OWNERS // 2, PAUSES // 8, 240),
    "careless": (OWNERS, CONTROLS, 60),
    "hasty": (OWNERS, CONTROLS // 3, 60),
}


@contextlib.contextmanager
def spun():
    """Others take the processors."""
    code = [sys.executable, "-c", "while True: pass"]
    spinners = [subprocess.Popen(code) for _ in range(SPINNERS)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def live(name):
    """What is wrong after a storm, whether its history is explained, how many took over,
    and how many were told that they are LOST."""
    owners, pauses, every = STORMS[name]
    seed = int.from_bytes(os.urandom(3), "big")
    control = [f"--{name}"] if name in ("careless", "hasty") else []
    with tempfile.TemporaryDirectory(prefix="idem-pauses-") as directory:
        url = f"sqlite:{directory}/idem.db"
        equal(Idem(url)("run", "-k", "made", "--", "true").status, 0)
        with spun() if name == "starvation" else contextlib.nullcontext():
            into = drive(
                *(url, "--processes", owners, "--threads", 1, "--keys", 3, "--slow"),
                *("--calls", 10**6, "--pauses", pauses, "--every", every, "--seed", seed),
                *control,
                into=f"{directory}/into",
            )
        found = faults_of(into, url)
        history = history_of(into, EXACT)
        status, told = histories.check(CHECK, "--quiet", history)
        text = history.read_text(encoding="ascii")
        lost = (into / "ledger").read_text(encoding="ascii").count("\nT ")
    assert status in (0, 1), told
    print(f"# {name}, seed {seed}: {histories.summary(told)}")
    return found, status == 0, text.count(" takeover=1"), lost


@functools.cache
def storms():
    """All of them at once, for most of the time is slept."""
    pool = concurrent.futures.ThreadPoolExecutor(len(STORMS))
    return {name: pool.submit(live, name) for name in STORMS}


@test(rows=[74])
def pauses_make_nobody_early_and_nothing_stale():
    """Stopped for up to three leases: no takeover comes early, no effect or completion
    late."""
    found, explained, takeovers, _ = storms()["pauses"].result()
    equal((found, explained), ([], True))
    for _ in range(3):  # The pauses may all have met owners that held nothing.
        if takeovers == 0:
            found, explained, takeovers, _ = live("pauses")
            equal((found, explained), ([], True))
    assert takeovers > 0


@test(rows=[74])
def starvation_makes_nobody_early_and_nothing_stale():
    """While others take the processors: likewise."""
    found, explained, _, _ = storms()["starvation"].result()
    equal((found, explained), ([], True))


def control(name, shows):
    """A storm that has to show something: on a busy machine it may be too slow for
    that once, but not three times."""
    seen = storms()[name].result()
    for _ in range(2):
        if shows(*seen):
            break
        seen = live(name)
    assert shows(*seen), seen
    return seen


@test
def who_does_not_look_at_the_lease_is_late():
    """The control: owners that never look have effects beside their successors; the
    store refuses what they say, all the same."""
    found, explained, *_ = control("careless", lambda found, _, __, lost: found and lost)
    equal([text for text in found if "an effect with fence" not in text], [])
    equal(explained, True)


@test
def a_clock_that_is_ahead_is_early():
    """The control: where every other owner has a clock that is ahead by most of a
    lease, early takeovers are seen."""
    control("hasty", lambda _, explained, *__: not explained)


if __name__ == "__main__":
    main()
