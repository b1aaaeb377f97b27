"""A place for tests of idem run: a store, a ledger of effects, a terminal."""

import concurrent.futures
import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import sqlite3
import subprocess
import tempfile
import termios
import time

from patience import PATIENCE, until
from tap import PROGRAM, TIMEOUT, Idem, Result, add, end_session, equal, sentence_of, start

class Box:
    """A directory with a store, a ledger of effects and a gate to wait at."""

    def __init__(self, path):
        self.path = path
        self.idem = Idem("sqlite:" + self.file("idem.db"))
        self.processes = []
        os.mkfifo(self.file("gate"))
        os.symlink(PROGRAM, self.file("idem"))

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(self.file(name), encoding="utf-8") as f:
                return f.read()
        return ""

    def effects(self):
        """Return how many times work had its effect."""
        return self.read("ledger").count("effect")

    def start(self, *args, env=None, cwd=None, status=None, **popen):
        """Start idem. @status: the file to which idem run writes its status line."""
        ours = {
            "HOME": self.path,
            "IDEM_AUDIT_LOG": self.file("audit.log"),
            "IDEM_JOURNAL_DIR": self.file("journal"),
        }
        env = {**ours, **(env or {})}
        with open(self.file(status) if status else os.devnull, "wb") as line:
            if status:
                args = (args[0], "--status-fd", str(line.fileno()), *args[1:])
                popen["pass_fds"] = [line.fileno()]
            process = self.idem.start(*args, env=env, cwd=cwd or self.path, **popen)
        self.processes.append(process)
        return process

    def __call__(self, *args, input=None, timeout=PATIENCE, **more):
        if input is not None:
            more["stdin"] = subprocess.PIPE
        return finish(self.start(*args, **more), input, timeout)

    def run(self, key, script, *options, **more):
        """Run a line of shell under idem run."""
        return self("run", "-k", key, *options, "--", "sh", "-c", script, **more)

    def start_run(self, key, script, *options, **popen):
        """Start the same, and leave it running."""
        return self.start("run", "-k", key, *options, "--", "sh", "-c", script, **popen)

    def run_refused(self, key, script, *options, **popen):
        """Return how a run ends whose store refuses its outcome: @script waits at the gate."""
        worker = self.start_run(key, script, *options, **popen)
        self.await_pid()
        with locked(self):
            self.open_gate()
            got = finish(worker)
        os.unlink(self.file("pid"))
        return got

    def record(self, key):
        """Return the record as idem show prints it, or None."""
        shown = self("show", "--json", key)
        return json.loads(shown.stdout) if shown.status == 0 else None

    def shell(self, command):
        """Run @command in a shell whose `idem` is the program under test."""
        env = {**os.environ, "IDEM_STORE": self.idem.store}
        env["PATH"] = self.path + ":" + env["PATH"]
        typed = ["bash", "-c", command]
        return subprocess.run(typed, cwd=self.path, env=env, capture_output=True)

    def await_pid(self):
        """Wait for the process id that the command writes to its file "pid"."""
        return int(until(lambda: self.read("pid").partition("\n")[0], "it is at work"))

    def has_status(self, key, status):
        record = self.record(key)
        return record is not None and record["status"] == status

    def open_gate(self):
        """Let the process through that reads from the gate."""

        def opened():
            try:
                return os.open(self.file("gate"), os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                assert error.errno == errno.ENXIO, error
                return None

        gate = until(opened, "somebody waits at the gate")
        os.write(gate, b"\n")
        os.close(gate)

    def clean(self):
        for process in self.processes:
            end_session(process)


@contextlib.contextmanager
def box():
    with tempfile.TemporaryDirectory(prefix="idem-run-") as path:
        b = Box(path)
        try:
            yield b
        finally:
            b.clean()


class Worker:
    """A process of the box that waits for a line before it goes on, and prints lines."""

    def __init__(self, b, argv, env):
        self.process = start(argv, env, cwd=b.path, stdin=subprocess.PIPE, stderr=None)
        b.processes.append(self.process)

    def reads(self):
        return self.process.stdout.readline().decode().strip()

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def ends(self):
        out = self.process.communicate(timeout=TIMEOUT)[0].decode()
        equal(self.process.returncode, 0)
        return out

    def kill(self):
        self.process.kill()
        self.process.wait()


def finish(process, input=None, timeout=PATIENCE):
    """Wait for a process that ends by itself, and return its result."""
    try:
        stdout, stderr = process.communicate(input, timeout)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{late}\n{late.stdout}\n{late.stderr}") from None
    return Result(process.returncode, stdout, stderr)


def is_gone(pid):
    """True if that process has ended, reaped or not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # It may go while we look.
        return True


def contains(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in {text!r}"


def plainly(path, script):
    """Run the same command without idem, as a control."""
    return subprocess.run(["sh", "-c", script], cwd=path, capture_output=True)


_slow = []
_futures = {}


def case(function=None, *, rows=(), slow=False):
    """Register a test that gets a box. Slow ones wait for leases to end; they
    all start with the first of them, side by side."""

    def body(f):
        with box() as b:
            return f(b)

    def register(f):
        def call():
            if not slow:
                return body(f)
            if not _futures:
                pool = concurrent.futures.ThreadPoolExecutor(len(_slow))
                _futures.update((g, pool.submit(body, g)) for g in _slow)
            return _futures[f].result()

        call.__name__ = f.__name__
        add(f"{f.__name__}: {sentence_of(f)}", call, rows)
        if slow:
            _slow.append(f)
        return f

    return register(function) if function else register


@contextlib.contextmanager
def locked(b):
    """Keep everybody from writing to the store, for a with block."""
    db = sqlite3.connect(b.file("idem.db"), isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")
        db.close()


class Terminal:
    """A pseudo-terminal, and a process that has it."""

    def __init__(self, b, *argv):
        self.master, slave = pty.openpty()
        self.modes = termios.tcgetattr(slave)  # Before anybody changes them.
        self.text = b""

        def take_it():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = start(
            argv,
            {"IDEM_STORE": b.idem.store, "HOME": b.path},
            cwd=b.path,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=take_it,
        )
        b.processes.append(self.process)
        os.close(slave)

    def type(self, keys):
        os.write(self.master, keys)

    def expect(self, words, seconds=PATIENCE):
        """Read until @words appear; return what came so far."""
        deadline = time.monotonic() + seconds
        while words not in self.text:
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.master], [], [], left)[0]
            assert ready, f"no {words!r} in {self.text!r}"
            try:
                self.text += os.read(self.master, 65536)
            except OSError:  # EIO: nobody has it open any more.
                assert words in self.text, f"no {words!r} in {self.text!r}"
        return self.text


def at_terminal(b, key, script, *options):
    return Terminal(
        b, PROGRAM, "run", "-k", key, *options, "--", "sh", "-c", script
    )
