"""idem top on a real pseudo-terminal: what is open, first what needs a person."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from patience import PATIENCE
from tap import PROGRAM, Idem, environment, equal, kill_session, main, test


class Screen:
    """A terminal of so many rows and columns, and what a command shows on it."""

    def __init__(self, store, rows, columns, *args):
        self.rows = rows
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = b""
        self.process = subprocess.Popen(
            [PROGRAM, "top", *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env=environment({"IDEM_STORE": store.store, "TERM": "xterm"}))

    def frame(self, after=0):
        """The lines of a whole frame that begins behind @after bytes; and its end."""
        until = time.monotonic() + PATIENCE
        while True:
            found = re.search(rb"\x1b\[H(.*?)\x1b\[J", self.seen[after:], re.S)
            if found:
                lines = found[1].replace(b"\x1b[K", b"").decode().split("\r\n")
                return [line.rstrip() for line in lines[:-1]], after + found.end()
            assert select.select([self.master], [], [], until - time.monotonic())[0], self.seen
            self.seen += os.read(self.master, 65536)

    def close(self):
        kill_session(self.process)
        os.close(self.master)
        os.close(self.slave)


def begin(store, key, *options):
    done = store("begin", "-k", key, "--lease", "1h", "--owner", "web/1", *options)
    equal(done.status, 0)
    return done.stdout


@test
def what_is_open_is_shown_live():
    """Late work stands first, escapes in keys do nothing, lines fit the window, what
    is resolved goes away, and q gives the terminal back as it was."""
    store = Idem()
    begin(store, "live")
    late = "late-\x1b[2J-\u2028"
    begin(store, late, "--expect", "1ms")
    equal(store("fail", "--token", "-", "--error", "x", input=begin(store, "bad")).status, 0)
    time.sleep(0.05)
    screen = Screen(store, 12, 90, "--every", "200ms")
    try:
        lines, end = screen.frame()
        assert "2 in progress, 1 overdue, 0 unknown, 1 failed" in lines[0], lines
        equal([line.split()[0] for line in lines[4:]], ["overdue", "failed", "in_progress"])
        assert all(len(line) <= 90 and "\x1b" not in line for line in lines), lines
        assert "late-\\x1b[2J" in lines[4], lines
        equal(store("resolve", late, "--force", "--release", "--reason", "x").status, 0)
        until = time.monotonic() + PATIENCE
        while "0 overdue" not in lines[0]:
            assert time.monotonic() < until, lines
            lines, end = screen.frame(end)
        equal([line.split()[0] for line in lines[4:]], ["failed", "in_progress"])
        os.write(screen.master, b"q")
        equal(screen.process.wait(PATIENCE), 0)
        equal(termios.tcgetattr(screen.slave), screen.modes)
    finally:
        screen.close()


@test
def it_fits_into_a_small_window():
    """More operations than rows scroll nothing away."""
    store = Idem()
    for i in range(12):
        begin(store, f"k{i}")
    screen = Screen(store, 8, 40, "--every", "200ms")
    try:
        lines, _ = screen.frame()
        equal(len(lines), 7)
        assert all(len(line) <= 40 for line in lines), lines
        screen.process.terminate()
        equal(screen.process.wait(PATIENCE), 0)
    finally:
        screen.close()
    equal(store("top").status, 64)


@test
def it_ends_in_the_background():
    """timeout(1) puts it in the background: there it draws, and ends when told to."""
    store = Idem()
    begin(store, "a")
    master, slave = pty.openpty()
    done = subprocess.run(
        ["setsid", "-c", "sh", "-c", f"timeout 1 {PROGRAM} top; echo ended with $?"],
        stdin=slave, stdout=slave, stderr=slave, timeout=PATIENCE, check=False,
        env=environment({"IDEM_STORE": store.store, "TERM": "xterm"}))
    os.close(slave)
    seen = os.read(master, 65536)
    os.close(master)
    equal(done.returncode, 0)
    assert b"ended with 124" in seen, seen


if __name__ == "__main__":
    main()
