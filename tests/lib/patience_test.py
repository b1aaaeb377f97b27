"""A program that failed by being late alone says so, and is judged by its second run."""

import json
import os
import sys

import tap
from patience import LATE_STATUS
from tap import TOP, equal, main, run, test

SUMMARY = os.path.join(TOP, "tools", "tap-summary")
HEAD = "import tap\nfrom patience import in_time\n"
CASE = "@tap.test\ndef case_{n}():\n    '''It is case {n}.'''\n    {body}\n"
LATE, WRONG, FINE = "in_time(2, 1, 'it')", "tap.equal(1, 2)", "in_time(1, 2)"


def program(*bodies):
    """The result of a program with these cases."""
    text = HEAD + "".join(CASE.format(n=n, body=body) for n, body in enumerate(bodies))
    return run([sys.executable, "-c", text + "tap.main()\n"], {"PYTHONPATH": os.path.dirname(tap.__file__)})


@test
def late_is_told_from_wrong():
    """Only where each failure was a late one does the status say so."""
    equal(program(FINE).status, 0)
    equal(program(LATE, FINE, LATE).status, LATE_STATUS)
    equal(program(LATE, WRONG).status, 1)
    equal(program(WRONG).status, 1)
    assert b"# late: it took 2.00 s; less than 1 s is wanted" in program(LATE).stdout


def logged(path, *runs):
    with open(path, "w", encoding="utf-8") as log:
        for name, done in runs:
            how = "OK" if done.status == 0 else "ERROR"
            entry = {"name": f"idem:{name} / {name}", "result": how, "duration": 1,
                     "returncode": done.status, "stdout": done.stdout.decode()}
            print(json.dumps(entry), file=log)


def summed(*options):
    done = run([SUMMARY, *options, "log"])
    lines = done.stdout.decode().splitlines()
    return done.status, lines[-1], [each for each in lines if each.startswith("late once")]


@test
def the_second_run_counts():
    """A late program passes by its run alone, which the summary names; one that is late
    again, or wrong then, has failed. A wrong one is not run again."""
    late, wrong, fine = program(LATE), program(WRONG), program(FINE)
    logged("log", ("a", late), ("b", wrong), ("c", fine))
    equal(run([SUMMARY, "--late", "log"]).stdout, b"a\n")
    equal(summed(), (1, "1 passed, 2 failed, 0 skipped", []))
    logged("again", ("a", fine))
    equal(summed("--again", "again"),
          (1, "2 passed, 1 failed, 0 skipped", ["late once, passed alone: 1 (a)"]))
    for second in (late, wrong):
        logged("again", ("a", second))
        equal(summed("--again", "again"), (1, "1 passed, 2 failed, 0 skipped", []))
    logged("log", ("a", late), ("c", fine))
    logged("again", ("a", fine))
    equal(summed("--again", "again")[:2], (0, "2 passed, 0 failed, 0 skipped"))
    logged("again", ("c", fine))  # A program that was not late is not replaced.
    equal(summed("--again", "again")[:2], (1, "1 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    main()
