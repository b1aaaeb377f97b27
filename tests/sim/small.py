"""Explore small worlds completely: two clients, one key, every interleaving.

Complete means: every execution of the scripts (script.c) in which store calls and
clients meet no more than so many faults, of every kind at every store call, and
in which time passes no more than so often while somebody could have gone on.

Usage: small.py SIM
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

SIM = Path(*tap.arguments()).resolve()

JOBS = min(2, os.cpu_count() or 1)
WORLDS = 22  # Eleven scripts, two kinds of store.

# Faults, delays, mode (None: both). A delay more costs the remote store, whose
# requests are more and may be late one by one, a hundred times the executions:
# two faults and one delay take it hours.
SHORT = [(2, 0, "embedded"), (1, 0, "remote"), (1, 1, "embedded")]
LONG = [(3, 0, None), (1, 1, None), (0, 2, None), (2, 1, "embedded"), (1, 2, "embedded")]
DEPTHS = [(1, 0, None)] if tap.SANITIZED else LONG if tap.LONG else SHORT


def small(faults, delays, mode, *options):
    """Run it; return what it prints and {world: {what: number}}."""
    command = [SIM, "--small", "all", "--jobs", str(JOBS), *options]
    command += ["--faults", str(faults), "--delays", str(delays)]
    command += ["--mode", mode] if mode else []
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    worlds = {}
    for line in re.findall(r"^small +(\w+ \w+): (\S.*?) +(\d+)$", done.stdout, re.M):
        worlds.setdefault(line[0], {})[line[1]] = int(line[2])
    tap.equal(len(worlds), WORLDS // (2 if mode else 1))
    assert re.search(r"^total +incomplete +0$", done.stdout, re.M), done.stdout
    return done.stdout, worlds


def add_depth(faults, delays, mode):
    def everything_holds():
        text, worlds = small(faults, delays, mode)
        print(text)
        for what in ("executions", "states"):
            print(what, sum(world[what] for world in worlds.values()))
        least = min(world["most store calls"] for world in worlds.values())
        print("store calls of the longest execution, least of all worlds", least)
        if faults > 1:
            assert least >= 12, "it does not go deep enough"
            met = re.findall(r"^fault +(\S.*?) +(\d+)$", text, re.M)
            tap.equal([what for what, n in met if n == "0"], [])

    where = f"{mode} store" if mode else "both stores"
    words = f"{faults} faults and {delays} delays at most, {where}"
    tap.add(f"everything_holds: {words}: no invariant breaks", everything_holds)


for depth in DEPTHS:
    add_depth(*depth)


@tap.test
def a_state_is_all_that_matters():
    """The same choices in the same state lead to the same states, on any path."""
    for faults, delays in ((1, 0), (0, 1)):
        _, pruned = small(faults, delays, None)
        _, again = small(faults, delays, None, "--twice")
        for name, world in again.items():
            tap.equal(world["states"], pruned[name]["states"])
            tap.equal(world["steps elsewhere"], 0)
            assert world["steps again"] > 0, "nothing was compared"
        total = sum(world["steps again"] for world in again.values())
        print(f"{total} steps taken again from another path")


if __name__ == "__main__":
    tap.main()
