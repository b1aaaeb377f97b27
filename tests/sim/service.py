"""Schedules with the store of a service: its tasks, its codec, and a table.

Usage: service.py SIM dynamodb|postgres
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

SIM, MODE = tap.arguments()
SIM = Path(SIM).resolve()

JOBS = min(2, os.cpu_count() or 1)
USUAL = {"dynamodb": 10**5, "postgres": 10**5}
SCHEDULES = 10**6 if tap.LONG else 2000 if tap.SANITIZED else USUAL[MODE]
# What happens to requests: the lines of the service.
FATES = {"dynamodb": "net", "postgres": "pg"}

# What belongs to the other stores.
FAULTS_OF_OTHERS = {
    "lost answer",
    "dropped, said unknown",
    "dropped, said unavailable",
    "doubled write",
    "failed commit reappeared",
    "disk full",
    "answer corrupted",
    "booted with a clock that is days ahead",
    "its time shown to be over, and kept",
    "clock put right in doubt",
    "clock never put right, and believed",
}


def sim(*args):
    """Run it in its mode and return what it prints; a violation fails the test."""
    command = [SIM, "--mode", MODE, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@tap.test
def invariants_hold():
    """Every request goes its own way: no invariant breaks, every fate is met."""
    text = sim("--seed", 1, "--schedules", SCHEDULES, "--jobs", JOBS)
    print(text)
    found = {}
    for kind, what, n in re.findall(r"^(\w+) +(\S.*?) +(\d+)$", text, re.M):
        found.setdefault(kind, {})[what] = int(n)
    tap.equal(found["total"]["schedules"], SCHEDULES)
    never = {what for what, n in found["fault"].items() if n == 0}
    tap.equal(never, FAULTS_OF_OTHERS)
    for kind in (FATES[MODE], "scene", "verdict"):
        never = [what for what, n in found[kind].items() if n == 0]
        assert tap.SANITIZED or never == [], never


@tap.test
def same_seed_same_trace():
    """A seed gives the same trace in any process, whatever ran before it."""
    run = ["--hashes", "--seed", 1000, "--schedules"]
    alone = re.findall(r"^seed (\d+) (\w+)$", sim(*run, 600), re.M)
    again = re.findall(r"^seed (\d+) (\w+)$", sim(*run, 600, "--jobs", 2), re.M)
    tap.equal(sorted(again), sorted(alone))
    tap.equal(len({trace for _, trace in alone}), 600)


if __name__ == "__main__":
    tap.main()
