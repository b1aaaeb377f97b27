"""Wait for events that come in their own time, and bound how long a step may take."""

import time

# Seconds. A machine may stand still for many of them; a wait for an event that does come
# never takes so long.
PATIENCE = 60


def until(holds, what="what was waited for", seconds=PATIENCE, every=0.01):
    """Return the result of @holds() as soon as it is true; @what describes it. Call it again
    after @every seconds."""
    began = time.monotonic()
    deadline = began + seconds
    while not (truth := holds()):
        now = time.monotonic()
        assert now < deadline, f"never: {what}"
        # A look that starts a program costs more than it gains, if it comes often.
        time.sleep(max(every, min(4 * (now - began), 0.1)))
        began = time.monotonic()
    return truth


# A program exits with this if all its failures were Late. tools/test runs it once more,
# alone. tests/lib/test.c has the same number for C.
LATE_STATUS = 98


class Late(AssertionError):
    """Raised if a case did what it should, but took too long."""


def in_time(took, most, what="it"):
    """Fail as late unless @took is less than @most, both in seconds."""
    if took >= most:
        raise Late(f"late: {what} took {took:.2f} s; less than {most} s is wanted")
