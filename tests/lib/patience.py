"""Wait for what comes about in its own time, and know when time stood still."""

import threading
import time

# Seconds. A machine may stand still for many of them, and who waits for what does
# come about never takes so long.
PATIENCE = 60


def until(holds, what="what was waited for", seconds=PATIENCE):
    """What @holds gives, as soon as that is true; @what says it in words."""
    deadline = time.monotonic() + seconds
    while not (truth := holds()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
    return truth


# ---- A machine that stands still ----

# Who wants to sleep for TICK and sleeps for STALL longer is on a machine on which
# times mean nothing. Programs with leases are right to end differently on it.
TICK = 0.05
STALL = 0.25
TRIES = 3

_stalls = []  # (when it was over, seconds)


def _tick():
    before = time.monotonic()
    while True:
        time.sleep(TICK)
        now = time.monotonic()
        if now - before > TICK + STALL:
            _stalls.append((now, now - before))
        before = now


def watch():
    """Look out for times at which the machine stands still, from now on."""
    threading.Thread(target=_tick, daemon=True).start()


def _longest_since(began):
    time.sleep(2 * TICK)  # What is going on is seen by then.
    return max((gap for over, gap in _stalls if over > began), default=0)


def again_if_stalled(function, tell):
    """Call @function. Where it fails, and the machine stood still meanwhile, call it
    again, and @tell so: on a machine that did not, a failure is a failure."""
    for left in reversed(range(TRIES)):
        began = time.monotonic()
        try:
            return function()
        except Exception as failure:  # pylint: disable=broad-except
            gap = _longest_since(began)
            if left == 0 or gap == 0:
                raise
            first = (str(failure).splitlines() or [repr(failure)])[0]
            tell(f"tried again, for the machine stood still for {gap:.1f} s: {first}")
