"""The child, `idem serve --stdio`, and the thread that speaks to it.

A call is written by the thread that makes it; what the pipe does not take at once, the
answers and the heartbeats are the work of the one thread here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import platform
import secrets
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .errors import Error, Invalid, NoProgram, Unavailable, refusal

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from .core import Core

READ_MAX = 1 << 14  # More is decoded without a pause: an event loop has no turn meanwhile.
SECRET = secrets.token_hex(8)
PATIENCE = 10.0  # For a server that was told to end.
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class Gone(Exception):
    """The child died, or was closed, before it answered."""


def find_program(program: Optional[str]) -> str:
    """The path of the program, from `program`, IDEM_PROGRAM, our folder or PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "idem")
    path = program or os.environ.get("IDEM_PROGRAM") or (own if os.path.exists(own) else None)
    path = path or shutil.which("idem")
    if not path:
        machine = MACHINES.get(platform.machine(), platform.machine())
        raise NoProgram(f"no idem program for {sys.platform}-{machine} here: set IDEM_PROGRAM")
    return path


class Call:
    """A request. Its id cannot be guessed, so that no answer to another is taken for its."""

    count = itertools.count()
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.id = f"{SECRET}-{os.getpid()}-{next(self.count)}"
        message = f'"jsonrpc": "2.0", "id": "{self.id}", "method": "{method}", "params": '
        self.line = f"{{{message}{self.encode(params)}}}\n".encode()
        self.is_settled, self.value = False, None
        self.error: Optional[Exception] = None
        self.settled = threading.Lock()
        self.settled.acquire()
        self.told: Optional[Tuple[AbstractEventLoop, Future[None]]] = None  # Of asyncio.

    def settle(self, value: Any, error: Optional[Exception] = None) -> None:
        self.value, self.error = value, error
        self.is_settled = True  # Set before tell() reads `told`.
        self.settled.release()

    def result(self) -> Any:
        """Wait for the answer."""
        with self.settled:
            pass
        if self.error:
            raise self.error
        return self.value


def tell(calls: Iterable[Call]) -> None:
    """Wake each loop once for all of its calls."""
    told: Dict[AbstractEventLoop, List[Future[None]]] = {}
    for call in calls:
        if call.told:
            loop, future = call.told
            told.setdefault(loop, []).append(future)
    for loop, futures in told.items():
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(wake, futures)


def wake(futures: List[Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


class Child:
    """One process of the server, and its pipes."""

    decode = json.JSONDecoder().decode

    def __init__(self, owner: Core) -> None:
        argv, pipe = [owner.program, "serve", "--stdio"], subprocess.PIPE
        env = {**os.environ, "IDEM_STORE": owner.url}  # Not an argument: others read those.
        try:
            self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=env, bufsize=0)
        except OSError as error:
            raise NoProgram(f"cannot start {owner.program}: {error.strerror}") from error
        self.owner = owner
        assert self.process.stdin and self.process.stdout
        self.to, self.from_ = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.wakes, self.woken = socket.socketpair()
        for fd in (self.to, self.wakes.fileno(), self.woken.fileno()):
            os.set_blocking(fd, False)
        self.lock = threading.Lock()
        self.over = False  # Under the lock, as the three below.
        self.pending: Dict[str, Call] = {}
        self.unsent = bytearray()
        self.flushing: Optional[AbstractEventLoop] = None  # Calls flush() soon.
        self.lost: Dict[int, str] = {}  # Attempts that the server says are lost.
        self.beat: Optional[float] = None  # Seconds between heartbeats; None: no attempts.
        self.line_max = 0
        self.thread = threading.Thread(target=self._serve, name="idem", daemon=True)
        self.thread.start()

    def hello(self) -> None:
        call = Call("hello", {"protocol": 1, "pid": os.getpid()})
        try:
            self.line_max = self.send(call).result()["line_max"]
        except Gone:
            status = self.process.wait(PATIENCE)
            raise Unavailable(
                f"idem serve ended with status {status}; standard error has its reason"
            ) from None
        except Error:
            self.cut()  # It is there, and refuses us.
            raise

    def send(self, call: Call) -> Call:
        with self.lock:
            if self.over:
                raise Gone
            self.pending[call.id] = call
            was_empty = not self.unsent
            self.unsent += call.line
            if not self.owner.flushes(self):
                self._send(was_empty)
        return call

    def flush(self) -> None:
        with self.lock:
            self.flushing = None
            if self.unsent and not self.over:
                self._send()

    def post(self, method: str, **params: Any) -> None:
        """Send a request whose answer does not matter."""
        with contextlib.suppress(Gone):
            self.send(Call(method, params))

    def ping(self) -> None:
        self.post("ping")

    def beat_within(self, seconds: float) -> None:
        """Send heartbeats at least that often while attempts are open."""
        with self.lock:
            if not self.over and (self.beat is None or seconds < self.beat):
                self.beat = seconds
                self._wake()

    def close(self) -> None:
        """Say goodbye, and see it end. It stays for attempts that nobody ended."""
        with contextlib.suppress(Gone, Invalid):
            self.send(Call("bye", {})).result()
            self.thread.join(PATIENCE)
        self.cut()

    def cut(self) -> None:
        """The thread closes its pipes, at whose end of file it ends."""
        with self.lock:
            if not self.over:
                self.over = True
                self._wake()

    def abandon(self) -> None:
        """After fork(): the pipes are those of our parent, and the thread is not here."""
        self.over = True
        self.process.returncode = 0
        self._close()

    # ---- The thread ----

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.wakes.send(b"w")

    def _send(self, now: bool = True) -> None:
        """As much as the pipe takes; the thread sends the rest."""
        if now:
            self._flush()
        if self.unsent:
            self._wake()

    def _flush(self) -> None:
        try:
            del self.unsent[: os.write(self.to, self.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.unsent.clear()  # It has gone, and its end of file comes.

    def _serve(self) -> None:
        with contextlib.suppress(Exception):
            self._exchange()
        with self.lock:
            was_cut, self.over = self.over, True
            calls, self.pending = self.pending, {}
            self._close()
        for call in calls.values():
            call.settle(None, Gone())
        tell(calls.values())
        if not was_cut:
            self.owner.gone(self)
        self.process.wait()

    def _close(self) -> None:
        assert self.process.stdin and self.process.stdout
        for end in (self.process.stdin, self.process.stdout, self.wakes, self.woken):
            with contextlib.suppress(OSError):
                end.close()

    def _exchange(self) -> None:
        """Until the end of file, or anything that is not of the protocol."""
        poll = select.poll()
        poll.register(self.from_, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        got, due = bytearray(), math.inf
        while not self.over:
            if self.unsent:
                poll.register(self.to, select.POLLOUT)
            now = time.monotonic()
            due = self._beat(now, due)
            left = None if due == math.inf else (due - now) * 1000
            ready = {fd for fd, _ in poll.poll(left)}
            if self.woken.fileno() in ready:
                self.woken.recv(READ_MAX)
            if self.to in ready:
                poll.unregister(self.to)
                with self.lock:
                    self._flush()
            if self.from_ in ready:
                more = os.read(self.from_, READ_MAX)
                if not more:
                    return
                self._take(got, more)

    def _beat(self, now: float, due: float) -> float:
        """Send a heartbeat that is due; return when the next one is."""
        with self.lock:
            if now >= due and not self.owner.open:
                self.beat = None
            beat = self.beat
        if beat is None:
            return math.inf
        if now >= due:
            self.owner.pulse(self)
        return now + beat if now >= due else min(due, now + beat)

    def _take(self, got: bytearray, more: bytes) -> None:
        *lines, rest = more.split(b"\n")
        answered = []
        try:
            for line in lines:
                message = self.decode((got + line if got else line).decode())
                got.clear()
                if "method" in message:
                    self.lost[message["params"]["attempt"]] = message["params"]["reason"]
                    continue
                call = self.pending.pop(message["id"])  # An id that is not ours ends it.
                error = message.get("error")
                call.settle(message.get("result"), refusal(error) if error else None)
                answered.append(call)
        finally:
            tell(answered)
        got += rest
