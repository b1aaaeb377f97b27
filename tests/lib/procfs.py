"""Processes as /proc has them: who is whose child, and who has stopped."""

import contextlib
import os
import signal

from patience import until


def children(pid):
    """The processes that @pid has started; none, where it has ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def descendants(pid):
    """Its children, and theirs."""
    own = children(pid)
    return own + [below for child in own for below in descendants(child)]


def status(pid):
    """What /proc/PID/status has, as {name: value}; nothing, where it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def _states(pid):
    """The letters of the states of its threads; none, where it has ended."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{thread}/stat", encoding="latin-1") as f:
                    yield f.read().rsplit(")", 1)[1].split()[0]


def stop(*pids):
    """SIGSTOP to each of @pids, until each of its threads has stopped or ended: kill()
    returns before that, and what a thread does in between, it does."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        until(lambda pid=pid: all(state in "TtZX" for state in _states(pid)), f"{pid} has stopped")
