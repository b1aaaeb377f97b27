"""Histories of the simulator's clients: the checker explains each of them.

Usage: simulated.py CHECK SIM ARCHIVE... COMPILER [ARGUMENT ...]
"""

import itertools
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import histories  # noqa: E402
from patience import in_time
import tap  # noqa: E402

ARGUMENTS = tap.arguments()
CHECK, SIM = (Path(arg).resolve() for arg in ARGUMENTS[:2])
ARCHIVES = [Path(arg).resolve() for arg in ARGUMENTS[2:] if arg.endswith(".a")]
COMPILER = ARGUMENTS[2 + len(ARCHIVES) :] or ["cc"]

MODES = ("embedded", "remote")
WRAPPED = ["-Wl,--wrap=clock_gettime", "-Wl,--wrap=getpid"]


def live(program, mode, schedules, *more):
    """Live through @schedules; return the file of their histories."""
    command = [program, "--mode", mode, "--schedules", schedules, *more]
    command += ["--history", f"{mode}.txt"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{mode}.txt.0"


def add_mode(mode):
    def are_explained():
        schedules = 50_000 if tap.LONG else 400 if tap.SANITIZED else 4000
        histories.explained(CHECK, live(SIM, mode, schedules))

    def long_ones_are_explained():
        schedules = 3_000 if tap.LONG else 20 if tap.SANITIZED else 100
        part = 500  # So that the file stays small.
        ops = 0
        for start in range(0, schedules, part):
            number = min(part, schedules - start)
            more = ["--seed", 1 + start, "--clients", 8, "--rounds", 100]
            path = live(SIM, mode, number, *more)
            # A few of thousands have more orders than fit into memory.
            undecided = part // 100 if tap.LONG else 0
            count, found, slowest = histories.explained(CHECK, path, undecided=undecided)
            tap.equal(count, number)
            ops += found
            if not tap.SANITIZED:
                in_time(slowest, 60 if tap.LONG else 4, "one")
        assert ops >= 8 * 100 * schedules, ops
        print(f"{mode}: {schedules} histories of 8 clients, {ops} operations")

    tap.add(f"{mode}: what short schedules answer is explained", are_explained)
    if mode == "dynamodb":
        return  # Without knowledge of its clocks a long one has too many orders.
    tap.add(
        f"{mode}: what 8 clients are answered in a long one is explained, "
        "each in less than four seconds",
        long_ones_are_explained,
    )


for _mode in (*MODES, "dynamodb"):
    add_mode(_mode)


# The numbers of those tests/sim/mutants whose mistakes callers see. The simulator itself
# finds those that no caller sees, such as an effect that begins too late.
MUTANTS = {
    1: "a completion is taken from whoever comes with one",
    2: "an end looks at the status only",
    4: "the fence of a new life starts at 1",
    5: "a takeover keeps the fence",
    7: "anybody may renew",
    9: "a request does not recognise itself",
    12: "a lease without an end is over",
    15: "what is held is run again",
    17: "the fingerprint is not compared",
    20: "a second completion replaces the first",
    24: "nothing was done, says who cannot know",
    61: "what was given up is forgotten early",
    86: "a release forgets what may have happened",
    89: "a retry is a release",
    91: "what was reopened is begun as if nothing had happened",
    92: "a live owner is overruled without force",
    96: "what was retried is renewed",
    101: "a live owner is overruled, and ends its attempt",
}


# Most show soon; two need rare schedules, which are tried first.
PART, ENOUGH = 1000, 50_000
RARE = {86: 6001, 101: 6001}


def add_mutant(number, what):
    def is_refused():
        if tap.SANITIZED:
            tap.skip("the archive needs the sanitizer that it was built with")
        name, program = histories.mutant_program(
            number, SIM, ARCHIVES, COMPILER, WRAPPED
        )
        starts = [RARE.get(number, 1), *range(1, ENOUGH, PART)]
        for first, mode in itertools.product(starts, MODES):
            path = live(program.resolve(), mode, PART, "--seed", first)
            status, output = histories.check(
                CHECK, "--quiet", "--budget", 50_000, path
            )
            if status == 1:
                print(f"{name}, {mode}, from seed {first}: {histories.summary(output)}")
                return
        raise AssertionError("check explains all of it")

    tap.add(f"mutant {number}, {what}: refused", is_refused)


for _number, _what in MUTANTS.items():
    add_mutant(_number, _what)

if __name__ == "__main__":
    tap.main()
