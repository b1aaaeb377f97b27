"""Processes in /proc: their children, their states, their memory."""

import contextlib
import os
import signal

from patience import until


def children(pid):
    """Return the processes that a thread of @pid has started; none, if it has ended."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as f:
                    found += map(int, f.read().split())
    return found


def descendants(pid):
    """Return its children, and theirs."""
    own = children(pid)
    return own + [below for child in own for below in descendants(child)]


def status(pid):
    """Return /proc/PID/status as {name: value}; nothing, if the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def waits_in(pid):
    """Return the name of the kernel's function in which @pid waits; an empty text, if it has
    ended."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
            return f.read()
    except OSError:
        return ""


def named(pids):
    """Return {pid: name} of those that have not ended."""
    found = {pid: status(pid).get("Name") for pid in pids}
    return {pid: name for pid, name in found.items() if name}


def below(pid):
    """Return {pid: name} of its children, and of theirs."""
    return named(descendants(pid))


def own_kb(pid):
    """Return the private memory of @pid, in kilobytes."""
    return int(status(pid)["RssAnon"].split()[0])


def is_stopped(pid):
    """Return whether a signal has stopped @pid, or a process below it."""
    return any(status(p).get("State", "")[:1] == "T" for p in (pid, *descendants(pid)))


def marked(marker):
    """Return the processes with @marker in their environment, without zombies."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:
            if marker in f.read() and status(pid).get("State", "Z")[0] != "Z":
                found.append(pid)
    return found


def until_it_waits(pid, file):
    """Wait until @pid has opened @file, and slept five times since: a waiter polls, so it
    has looked by then."""
    name = "voluntary_ctxt_switches"

    def opened():
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}").endswith(file):
                        return True
        return False

    until(opened, f"{pid} opens {file}")
    since = int(status(pid).get(name, 0))
    until(lambda: int(status(pid).get(name, since + 5)) >= since + 5, f"{pid} waits")


def _states(pid):
    """Return the letters of the states of its threads; none, if it has ended."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{thread}/stat", encoding="latin-1") as f:
                    yield f.read().rsplit(")", 1)[1].split()[0]


def stop(*pids):
    """Send SIGSTOP to each of @pids, and wait until each of its threads has stopped or
    ended: kill() returns before that, and a thread may go on meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        until(lambda pid=pid: all(state in "TtZX" for state in _states(pid)), f"{pid} has stopped")


def unread(port):
    """Return how many bytes, and how many connections, have come to the TCP @port of this
    machine and wait there."""
    count = 0
    for table in "tcp", "tcp6":
        with open(f"/proc/net/{table}", encoding="ascii") as f:
            for row in [line.split() for line in f][1:]:
                if row[1].endswith(f":{port:04X}"):
                    count += int(row[4].partition(":")[2], 16)
    return count
