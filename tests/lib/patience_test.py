"""A failure on a machine that stands still is tried again, and no other."""

import ctypes

import patience
from tap import equal, main, test


def outcome(times, stalls):
    """How a case ends that fails @times times, and what is said of it meanwhile."""
    calls, said = [], []

    def case():
        calls.append(0)
        if stalls:  # It keeps the lock of the interpreter: no thread goes on.
            ctypes.PyDLL(None).usleep(400_000)
        assert len(calls) > times, "no"
        return "held"

    try:
        end = patience.again_if_stalled(case, said.append)
    except AssertionError as failure:
        end = str(failure)
    return end, len(calls), [line.partition(",")[0] for line in said]


@test
def a_failure_is_a_failure():
    """Where nothing stood still, a case that fails is not tried again."""
    assert ("no", 1, []) in [outcome(1, stalls=False) for _ in range(5)]


@test
def what_stood_still_is_tried_again():
    """Where time stood still it is, and the results say so; but not for ever."""
    again = "tried again"
    equal(outcome(0, stalls=True), ("held", 1, []))
    equal(outcome(1, stalls=True), ("held", 2, [again]))
    equal(outcome(2, stalls=True), ("held", 3, [again, again]))
    equal(outcome(3, stalls=True), ("no", 3, [again, again]))


if __name__ == "__main__":
    main()
