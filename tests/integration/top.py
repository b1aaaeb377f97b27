"""idem top on a real pseudo-terminal: what is open, first what needs a person, and what
failed; in windows of all sizes, in a pipe and in an outage."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import dynamo
from line import Line
from patience import PATIENCE, until
from tap import PROGRAM, Idem, environment, equal, kill_session, main, skip, test


class Screen:
    """A terminal of so many rows and columns, and what a command shows on it."""

    def __init__(self, store, rows, columns, *args, env=None):
        self.rows = rows
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = b""
        self.process = subprocess.Popen(
            [PROGRAM, "top", *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env=environment({"IDEM_STORE": store.store, "TERM": "xterm", "TZ": "UTC", **(env or {})}))

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.process.pid, signal.SIGWINCH)  # It has no terminal that would send it.

    def wait_for(self, holds, end=0):
        """The next frame of which @holds is true, and its end."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines, end = self.frame(end)
            if holds(lines):
                return lines, end
            assert time.monotonic() < deadline, lines

    def frame(self, after=0):
        """The lines of a whole frame that begins behind @after bytes; and its end."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = re.search(rb"\x1b\[H(.*?)\x1b\[J", self.seen[after:], re.S)
            if found:
                lines = re.sub(rb"\x1b\[[0-9;]*[Km]", b"", found[1]).decode().split("\r\n")
                return [line.rstrip() for line in lines[:-1]], after + found.end()
            assert select.select([self.master], [], [], deadline - time.monotonic())[0], self.seen
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
        lines, end = screen.wait_for(lambda lines: "0 overdue" in lines[0], end)
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


@test
def what_failed_and_who_is_at_work_is_shown():
    """A lease that runs is shown with its end and its renewal, what is to be run again
    as retry, and failures with their exit status, alone after f."""
    store = Idem()
    begin(store, "live")
    equal(store("begin", "-k", "gone", "--lease", "2s", "--owner", "web/1").status, 0)
    equal(store("run", "-k", "deploy", "--on-failure", "retry", "--", "sh", "-c", "exit 1").status, 1)
    equal(store("run", "-k", "backup", "--", "sh", "-c", "exit 3").status, 3)
    equal(store("run", "-k", "done", "--", "true").status, 0)
    screen = Screen(store, 20, 140, "--every", "200ms")
    try:
        lines, end = screen.wait_for(lambda lines: "1 overdue" in lines[0])
        assert lines[0].startswith("2 in progress, 1 overdue, 0 unknown, 0 failed, 1 retry, 1 failed outcomes"), lines
        equal(lines[3].split(), ["STATUS", "EXIT", "SINCE", "LEASE", "RENEWED", "TRIES", "OWNER", "SCOPE", "KEY"])
        equal([(line.split()[0], line.split()[-1]) for line in lines[4:]],
              [("overdue", "gone"), ("retry", "deploy"), ("in_progress", "live"), ("completed", "backup")])
        assert re.search(r" [0-9.ms]+ over +- +1 +web/1 ", lines[4]), lines
        assert re.search(r" 59m left +[0-9.ms]+ ago +1 +web/1 ", lines[6]), lines
        assert re.match(r"completed +3 ", lines[7]), lines
        os.write(screen.master, b"f")
        lines, end = screen.wait_for(lambda lines: len(lines) == 5, end)
        assert lines[4].startswith("completed") and "f: all" in lines[2], lines
        os.write(screen.master, b"f")
        screen.wait_for(lambda lines: len(lines) == 8, end)
    finally:
        screen.close()


@test
def the_window_may_change():
    """A window of another size is filled at once, with the columns that it has room
    for; Ctrl-C gives the terminal back."""
    store = Idem()
    begin(store, "order-42", "-s", "eu")
    screen = Screen(store, 20, 140, "--every", "1h")
    try:
        lines, end = screen.frame()
        assert "RENEWED" in lines[3] and "SCOPE" in lines[3], lines
        for columns, shown, left_out in ((110, "TRIES", "RENEWED"), (80, "OWNER", "SCOPE"), (40, "SINCE", "EXIT")):
            screen.resize(20, columns)
            lines, end = screen.frame(end)
            assert shown in lines[3] and left_out not in lines[3] and "order-42" in lines[4], (columns, lines)
            assert all(len(line) <= columns for line in lines), (columns, lines)
        screen.resize(6, 40)
        equal(len(screen.frame(end)[0]), 5)
        screen.process.send_signal(signal.SIGINT)
        equal(screen.process.wait(PATIENCE), 0)
        equal(termios.tcgetattr(screen.slave), screen.modes)
        screen.seen += os.read(screen.master, 65536)
        assert screen.seen.endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l"), screen.seen[-80:]
    finally:
        screen.close()


@test
def a_stopped_one_gives_the_terminal_back():
    """Ctrl-Z leaves the shell its screen and its modes; fg takes them again."""
    store = Idem()
    begin(store, "a")
    screen = Screen(store, 12, 90, "--every", "1h")
    try:
        _, end = screen.frame()
        screen.process.send_signal(signal.SIGTSTP)

        def stopped():
            with open(f"/proc/{screen.process.pid}/stat", encoding="ascii") as f:
                return f.read().rpartition(")")[2].split()[0] == "T"

        until(stopped, "it is stopped")
        equal(termios.tcgetattr(screen.slave), screen.modes)
        screen.process.send_signal(signal.SIGCONT)
        screen.frame(end)
        assert termios.tcgetattr(screen.slave) != screen.modes
    finally:
        screen.close()


@test
def a_pipe_gets_one_look():
    """Where stdout is not a terminal one look is printed, as plain text and whole."""
    store = Idem()
    key = "long-" + "x" * 200
    begin(store, key)
    done = store("top")
    lines = done.stdout.decode().splitlines()
    equal((done.status, done.stderr, len(lines)), (0, b"", 5))
    assert lines[0].startswith("1 in progress, 0 overdue") and lines[4].endswith(key), lines
    assert "\x1b" not in done.stdout.decode() and re.match(r"\d{4}-\d\d-\d\dT", lines[2]), lines
    equal(store("top", "order-42").status, 64)


@test
def colours_can_be_read_and_left_out():
    """Nothing is dim, yellow or cyan, which cannot be read on white or on black; with
    NO_COLOR nothing is painted, and the words are the same."""
    store = Idem()
    begin(store, "late", "--expect", "1ms")
    equal(store("fail", "--token", "-", "--error", "x", input=begin(store, "bad")).status, 0)
    time.sleep(0.05)
    seen = {}
    for env in ({}, {"NO_COLOR": "1"}):
        screen = Screen(store, 12, 120, "--every", "200ms", env=env)
        try:
            lines, _ = screen.frame()
            painted = set(re.findall(rb"\x1b\[[0-9;]*m", screen.seen))
            seen[bool(env)] = (painted, [line.split()[0] for line in lines[4:]])
        finally:
            screen.close()
    equal(seen[True], (set(), ["overdue", "failed"]))
    equal(seen[False], ({b"\x1b[0m", b"\x1b[1m", b"\x1b[1;31m", b"\x1b[31m", b"\x1b[1;35m"}, ["overdue", "failed"]))


@test
def an_outage_is_shown_and_survived():
    """Where the store does not answer what was seen last stays, with the reason, and
    the next look shows what is there again; at the start it is an error."""
    why = dynamo.missing("dynoxide")
    if why is not None:
        skip(why)
    with dynamo.server("dynoxide") as url:
        line = Line(url)
        env = dynamo.environment()
        store = Idem(f"dynamodb://idem-test?endpoint={line.url}")
        for made in (("store", "create"), ("begin", "-k", "order-42", "--lease", "1h")):
            equal(store(*made, env=env).status, 0)
        screen = Screen(store, 12, 160, "--every", "200ms", env=env)
        try:
            _, end = screen.frame()
            line.dead = True
            lines, end = screen.wait_for(lambda lines: "does not answer" in lines[1], end)
            assert line.url in lines[1] and "order-42" in lines[4] and lines[2].startswith("as of "), lines
            line.dead = False
            screen.wait_for(lambda lines: "does not answer" not in lines[1], end)
            line.dead = True
            os.write(screen.master, b"q")
            equal(screen.process.wait(PATIENCE), 0)
        finally:
            screen.close()
        away = store("top", env=env)
        equal((away.status, away.stdout), (69, b""))
        assert line.url.encode() in away.stderr, away


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
    seen = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more.
        while piece := os.read(master, 65536):
            seen += piece
    os.close(master)
    equal(done.returncode, 0)
    assert b"ended with 124" in seen, seen


if __name__ == "__main__":
    main()
