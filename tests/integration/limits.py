"""Processes that have too few descriptors: nothing runs without its record."""

import resource

from patience import PATIENCE
from files import lines
from tap import Idem, equal, main, test


def with_descriptors(most, idem, *args):
    """Run the program with so many of them."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    with idem.start(*args, preexec_fn=limit) as process:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    return process.returncode, stdout, stderr


def effects():
    return lines("ledger")


@test(rows=[40])
def too_few_descriptors_run_nothing():
    """Where there is no descriptor for a file or a pipe nothing runs, 69, and what is
    claimed by then is given back; with enough of them all is as ever."""
    idem = Idem()
    equal(idem("run", "-k", "other", "--", "true").status, 0)
    few, enough = [], []
    for most in range(3, 64):
        if b"error while loading" in with_descriptors(most, idem, "--version")[2]:
            continue  # The program does not even begin.
        work = ("sh", "-c", f"echo {most} >> ledger; echo out")
        got = with_descriptors(most, idem, "run", "-k", f"k{most}", "--", *work)
        record = idem("show", f"k{most}").stdout
        if got[0] == 69:
            few.append(most)
            assert str(most) not in effects(), got
            assert not record or b"released" in record, record
        else:
            enough.append(most)
            equal((most, got), (most, (0, b"out\n", b"")))
            equal(effects().count(str(most)), 1)
            assert b"completed" in record, record
    print(f"# 69 with {few[0]} to {few[-1]} descriptors, 0 from {enough[0]} on")
    assert max(few) < min(enough), (few, enough)


if __name__ == "__main__":
    main()
