"""Wait for what comes about in its own time, and bound how long a thing may take."""

import time

# Seconds. A machine may stand still for many of them, and who waits for what does
# come about never takes so long.
PATIENCE = 60


def until(holds, what="what was waited for", seconds=PATIENCE, every=0.01):
    """What @holds gives, as soon as that is true; @what says it in words. It is looked at
    @every so many seconds."""
    began = time.monotonic()
    deadline = began + seconds
    while not (truth := holds()):
        now = time.monotonic()
        assert now < deadline, f"never: {what}"
        # To look often costs more than it gains where a look starts a program.
        time.sleep(max(every, min(4 * (now - began), 0.1)))
        began = time.monotonic()
    return truth


# A program whose cases failed by being late alone, and in no other way, exits with this:
# tools/test runs it once more, alone. tests/lib/test.h has the same number for C.
LATE_STATUS = 98


class Late(AssertionError):
    """A case did what it should, but took longer than it may."""


def in_time(took, most, what="it"):
    """Fail as late unless @took is less than @most, both in seconds."""
    if took >= most:
        raise Late(f"late: {what} took {took:.2f} s; less than {most} s is wanted")
