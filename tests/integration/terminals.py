"""idem run --pty: the command has a terminal of its own."""

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from patience import PATIENCE, until
from tap import PROGRAM, Idem, equal, main, test

SIZE = "HHHH"


class Outer:
    """A terminal with idem in its foreground, as a person has it."""

    def __init__(self, *args, rows=31, columns=97):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["IDEM_STORE"] = "sqlite:" + os.path.abspath("idem.db")
            os.environ["TERM"] = "xterm"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack(SIZE, rows, columns, 0, 0))
            os.execv(PROGRAM, [PROGRAM, *args])
        self.seen = b""
        self.status = None

    def modes(self):
        return termios.tcgetattr(self.fd)

    def is_raw(self):
        return self.modes()[3] & termios.ICANON == 0

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack(SIZE, rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys)

    def read(self):
        """What comes within a moment; False: nothing more ever will."""
        if not select.select([self.fd], [], [], 0.05)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.seen += got
        return got != b""

    def wait_for(self, words):
        end = time.monotonic() + PATIENCE
        while words not in self.seen:
            assert self.read() and time.monotonic() < end, (words, self.seen)

    def end(self, again=b""):
        """The exit status; @again is typed until then."""
        until(lambda: self._has_ended(again), "idem has not ended")
        return os.waitstatus_to_exitcode(self.status)

    def _has_ended(self, again):
        self.type(again)
        self.read()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = status if pid else None
        return pid != 0


@contextlib.contextmanager
def outer(*args, **more):
    it = Outer("run", "--pty", *args, **more)
    try:
        yield it
    finally:
        if it.status is None:
            os.kill(it.pid, signal.SIGKILL)
            os.waitpid(it.pid, 0)
        os.close(it.fd)


def shell(script):
    return ("--", "sh", "-c", script)


THREE = "for fd in 0 1 2; do test -t $fd || echo no $fd; done; "


@test
def the_command_sees_a_terminal_also_in_pipes():
    """All three descriptors are one terminal, also its controlling one, with pipes around
    idem; what it prints is recorded as one stream and replayed byte by byte. The control
    is a run without --pty."""
    idem = Idem()
    script = THREE + "tty >/dev/null && echo on; echo to stderr >&2; echo to the tty >/dev/tty"
    first = idem("run", "--pty", "-k", "a", *shell(script))
    equal((first.status, first.stderr), (0, b""))
    equal(first.stdout, b"on\r\nto stderr\r\nto the tty\r\n")
    equal(idem("run", "-k", "a", *shell(script)), first)
    equal(idem("show", "a", "--output").stdout, first.stdout)
    plain = idem("run", "-k", "b", *shell(THREE))
    assert b"no 1\n" in plain.stdout, plain
    equal(idem("run", "--pty", "-k", "c", *shell("exit 7")).status, 7)
    equal(idem("run", "--pty", "--capture", "none", "-k", "d", "--", "true").status, 64)


@test
def standard_input_of_a_pipe_is_passed_on_with_its_end():
    """What is written to idem's stdin is read by the command, without an echo; its end is
    an end of file to each command that reads, also after half a line."""
    idem = Idem()
    got = idem("run", "--pty", "-k", "a", *shell("cat; cat; echo end"), input=b"one\ntwo")
    equal((got.status, got.stdout), (0, b"one\r\ntwoend\r\n"))
    got = idem("run", "--pty", "-k", "b", *shell("cat; cat; echo end"), input=b"")
    equal((got.status, got.stdout), (0, b"end\r\n"))
    lines = b"".join(b"%06d\n" % n for n in range(20000))
    got = idem("run", "--pty", "-k", "c", *shell("wc -l; wc -c"), input=lines)
    equal((got.status, got.stdout.split()), (0, [b"20000", b"0"]))
    got = idem("run", "--pty", "--input", "text\n", "-k", "d", *shell("cat; test -t 1 && echo 1"))
    equal((got.status, got.stdout), (0, b"text\r\n1\r\n"))


@test
def nothing_that_was_printed_last_is_lost():
    """The end of a long output is there, however soon the command exits."""
    idem = Idem()
    for n in range(20):
        got = idem("run", "--pty", "-k", f"a{n}", *shell("seq 1 3000"))
        equal((got.status, got.stdout.split()), (0, [b"%d" % i for i in range(1, 3001)]))
    got = idem("run", "--pty", "-k", "large", "--", "head", "-c", "3000000", "/dev/zero")
    equal((got.status, len(got.stdout)), (0, 3000000))


@test
def size_keys_and_echo_are_those_of_a_terminal():
    """The command has the size of our terminal, also after a change of it; what is typed is
    echoed once, and read; Ctrl-D ends it; our terminal is raw meanwhile, and then as it
    was."""
    # A trap may end a read: that is not the end of the input.
    script = "trap 'stty size; again=1' WINCH; stty size; while read x || [ $again ]; do "
    script += "again=; [ $x ] && echo got-$x; x=; done; echo end"
    with outer("-k", "a", *shell(script)) as it:
        before = it.modes()
        it.wait_for(b"31 97\r\n")
        until(it.is_raw, "the terminal is not raw")
        it.resize(40, 120)
        os.kill(it.pid, signal.SIGWINCH)
        it.wait_for(b"40 120\r\n")
        it.type(b"x\r")
        it.wait_for(b"got-x\r\n")
        equal(it.end(again=b"\x04"), 0)
        equal(it.modes(), before)
        equal(it.seen.count(b"x\r\n"), 2)  # The echo, and the answer.
        assert it.seen.endswith(b"end\r\n"), it.seen


@test
def keys_are_signals_there():
    """Ctrl-C is SIGINT to the command, which may live on; Ctrl-\\ ends it; in a shell with
    job control Ctrl-Z stops a job, which fg continues."""
    with outer("-k", "a", *shell("trap 'echo caught' INT; echo up; while :; do sleep 0.1; done")) as it:
        it.wait_for(b"up\r\n")
        until(it.is_raw, "the terminal is not raw")
        it.type(b"\x03")
        it.wait_for(b"caught")
        before = it.modes()
        assert before[3] & termios.ICANON == 0
        it.type(b"\x1c")
        equal(it.end(), 128 + signal.SIGQUIT)
        assert it.modes()[3] & termios.ICANON != 0
    with outer("-k", "b", "--", "bash", "--norc", "--noediting", "-i") as it:
        it.type(b"PS1=; sleep 1000\r")
        until(lambda: is_alive("sleep"), "no sleep")
        it.type(b"\x1a")
        it.wait_for(b"Stopped")
        it.type(b"fg\r")
        until(lambda: state_of(is_alive("sleep")) == "S", "the job does not go on")
        it.type(b"\x03exit 5\r")
        equal(it.end(), 5)


def is_alive(name):
    """The process called @name that works in this directory, or None."""
    here = os.path.abspath(".")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read().strip() == name and os.readlink(f"/proc/{pid}/cwd") == here:
                    return pid
        except OSError:
            pass
    return None


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0]


@test
def suspending_gives_the_terminal_back():
    """Under a shell with job control Ctrl-Z stops idem and its command, our terminal is as
    it was, and fg goes on with both."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(IDEM_STORE="sqlite:" + os.path.abspath("idem.db"), PS1="", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
    it = Outer.__new__(Outer)
    it.pid, it.fd, it.seen, it.status = pid, fd, b"", None
    work = "echo up; read x; echo got-$x; touch done"
    try:
        it.type(f"{PROGRAM} run --pty -k a -- sh -c '{work}'\r".encode())
        it.wait_for(b"\nup\r\n")
        until(it.is_raw, "the terminal is not raw")
        it.type(b"\x1a")
        it.wait_for(b"Stopped")
        until(lambda: not it.is_raw(), "the terminal stays raw")
        assert not os.path.exists("done")
        it.type(b"fg\r")
        until(it.is_raw, "the terminal is not raw again")
        it.type(b"y\r")
        it.wait_for(b"got-y")
        until(lambda: not it.is_raw(), "the terminal stays raw")
        it.type(b"exit 3\r")
        equal(it.end(), 3)
    finally:
        if it.status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


@test
def a_killed_idem_leaves_a_terminal_that_can_be_used():
    """The supervisor ends the command, and sets the terminal as it was."""
    script = f"{PROGRAM} run --pty -k a -- sh -c 'echo up; exec sleep 1000'; cat"
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["IDEM_STORE"] = "sqlite:" + os.path.abspath("idem.db")
        os.execv("/bin/sh", ["sh", "-c", script])
    it = Outer.__new__(Outer)
    it.pid, it.fd, it.seen, it.status = pid, fd, b"", None
    try:
        it.wait_for(b"up\r\n")
        until(it.is_raw, "the terminal is not raw")
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            os.kill(int(f.read().split()[0]), signal.SIGKILL)
        until(lambda: not it.is_raw(), "the terminal stays raw")
        # A line, and an end of file to cat: a read that began while the terminal was raw
        # is not ended by the latter.
        equal(it.end(again=b"\r\x04"), 0)
    finally:
        os.close(fd)
    until(lambda: not is_alive("sleep"), "the command lives on")


@test
def what_is_left_behind_gets_no_terminal():
    """A process that the command leaves is hung up with the terminal, and keeps nothing
    open: idem ends, and so does who reads its output."""
    idem = Idem()
    script = (
        "(trap 'echo hup >hup; exit' HUP; touch set; while :; do sleep 0.1; done) >log 2>&1 & "
        "until test -e set; do sleep 0.1; done; echo up"
    )
    got = idem("run", "--pty", "--allow-background", "-k", "a", *shell(script))
    equal((got.status, got.stdout), (0, b"up\r\n"))
    until(lambda: os.path.exists("hup"), "no SIGHUP")
    script = "setsid sh -c 'sleep 1000 & echo $! >pid; wait' & until test -s pid; do sleep 0.1; done"
    with subprocess.Popen(
        [PROGRAM, "run", "--pty", "--allow-background", "-k", "b", *shell(script)],
        stdout=subprocess.PIPE,
        env={**os.environ, "IDEM_STORE": idem.store},
    ) as it:
        equal(it.stdout.read(), b"")
        equal(it.wait(), 0)
    with open("pid", encoding="ascii") as f:
        pid = int(f.read())
    equal(state_of(pid), "S")
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
