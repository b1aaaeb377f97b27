"""What the blocking and the asyncio form share: each verb is a generator of waits.

A driver does each wait in its own way and sends the answer in: run() below blocks, and
that of aio.py awaits.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import inspect
import json
import os
import secrets
import threading
import time
import traceback
from datetime import timedelta
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Set, Tuple
from typing import TypedDict, Union

from . import errors
from .child import Call, Child, Gone, find_program

Duration = Union[int, float, timedelta, None]  # Seconds.
Key = Union[str, List[Union[str, int, float, bool]]]
JSON, BYTES = "application/json", "application/octet-stream"
DEPTH_MAX = 190  # Of JSON in a request.
CLAIMS = ("begin", "http.begin")
TRIES = 5  # Children that die of one call.
_stores: Set[Core] = set()


class Terms(TypedDict, total=False):
    """What a claim may say, also where a request gives the rest; docs/serve.json has each."""

    on_expired_lease: str  # "hold", the default: a person looks; or "rerun".
    lease: Duration  # 60; None: no end.
    retention: Duration  # A day; None: no end.
    expect: Duration
    wait: Duration  # For the attempt of another.
    attempts_max: int
    on_death: str  # "lease"; or "now": the work dies with this process.
    max_time: Duration  # 15 minutes: how long heartbeats renew the lease.
    owner: str


class Claim(Terms, total=False):
    """What it may say beside its key."""

    scope: str
    fingerprint: Any  # JSON that a request with the same key must have in common.
    wait_then_run: bool
    traceparent: str  # The caller's place in a trace; kept with the record.


class Limit(TypedDict, total=False):
    """A limit: `max` in each window of length `per`."""

    max: int
    per: Duration
    cost: int
    at_ms: int
    start_ms: int
    late: Duration


class Decision(NamedTuple):
    """The answer of a limit."""

    admitted: bool
    repeated: bool
    remaining: int
    start_ms: int
    end_ms: int


TIMES = {n for kind in (Claim, Limit) for n, of in kind.__annotations__.items() if "Duration" in str(of)}


# ---- Waits ----


class Wait(NamedTuple):
    """For `future`; or for what `function` returns: work of the user, or ours that blocks."""

    future: Optional[Call] = None
    function: Callable[[], Any] = lambda: None
    is_work: bool = False


Steps = Generator[Wait, Any, Any]


def run(steps: Steps) -> Any:
    """Do them all in this thread."""
    step: Callable[..., Wait] = steps.send
    value: Any = None
    while True:
        try:
            wait = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = steps.send, wait.future.result() if wait.future else wait.function()
        except BaseException as error:  # The steps decide about it.
            step, value = steps.throw, error


# ---- Values ----


def boot_time() -> float:
    """Seconds that go on while the machine or this process is frozen."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def milliseconds(value: Duration) -> Optional[int]:
    """None: it does not end."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return None if seconds is None else round(seconds * 1000)


def words_of(words: Any, kind: Any) -> Dict[str, Any]:
    """The parameters for the words of a Claim or a Limit."""
    params = {}
    for name, value in words.items():
        if name not in kind.__annotations__:
            raise TypeError(f"unexpected argument {name!r}")
        is_time = name in TIMES
        params[name + "_ms" if is_time else name] = milliseconds(value) if is_time else value
    return params


def params_of(key: Key, claim: Claim) -> Dict[str, Any]:
    """The parameters of begin."""
    if not key or (not isinstance(key, str) and None in key):
        raise errors.MissingKey("a key is missing, and without one nothing is protected")
    params: Dict[str, Any] = {"key": key, "nonce": secrets.token_hex(16)}
    params.update(words_of(claim, Claim))
    if params.get("fingerprint", 0) is None:
        del params["fingerprint"]
    if any(isinstance(v, (dict, list, tuple)) for v in params.values()) and is_deep(params):
        raise errors.Invalid("the fingerprint is too deep")
    return params


def is_deep(value: Any) -> bool:
    """Is it JSON that a line of the protocol cannot have?"""
    level = [value]
    for _ in range(DEPTH_MAX):
        if not level:
            return False
        level = [v for v in level if isinstance(v, (dict, list, tuple))]
        level = [x for v in level for x in (v.values() if isinstance(v, dict) else v)]
    return bool(level)


def encode(value: Any) -> Tuple[Dict[str, Any], Any]:
    """A result of the protocol, and the value as a replay will have it."""
    if isinstance(value, str):
        value.encode()  # As the line will be: it fails here if it must.
        return {"text": value}, value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode(), "content_type": BYTES}, bytes(value)
    text = json.dumps(value, allow_nan=False)
    return {"text": text, "content_type": JSON}, json.loads(text)


def decode(result: Optional[Dict[str, Any]]) -> Any:
    """The value of a recorded result."""
    result = result or {}
    if "not_kept" in result or "too_long" in result:
        raise errors.NotKept("the work is done, and its result is not on record")
    if "base64" in result:
        return base64.b64decode(result["base64"])
    if "json" in result:
        return result["json"]
    text, kind = result.get("text"), result.get("content_type")
    if text is None or kind is None and not text:
        return None
    if kind == JSON:  # Too deep for the protocol.
        return json.loads(text)
    return text.encode() if kind == BYTES else text


def takes_attempt(function: Callable[..., Any]) -> bool:
    """Does it have a parameter of that name?"""
    code = getattr(function, "__code__", None)
    if code and "attempt" not in code.co_varnames and not hasattr(function, "__wrapped__"):
        return False  # As of most; to compute a signature takes 20 us.
    try:
        return "attempt" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


# ---- Attempts ----


class CoreAttempt:
    """An attempt that was started, or a replay, whose `result` is there."""

    def __init__(self, core: Core, params: Dict[str, Any], got: Dict[str, Any]) -> None:
        self.key, self.scope = params.get("key"), params.get("scope", "")
        self.replayed = got["verdict"] == "REPLAY"
        self.record, self._result = got.get("record", {}), got.get("result")
        self.fence = int(got.get("fence") or self.record.get("fence", 0))
        self.attempts: int = got.get("attempts", 0)
        self.takeover: bool = got.get("takeover", False)
        self._core, self._params, self._pid = core, params, os.getpid()
        self._method = "begin" if self.key else "http.begin"
        self._token: str = got.get("token", "")
        self._ending, self._taken = False, False
        self._child: Optional[Child] = None
        self._number, self._until = 0, 0.0

    @property
    def result(self) -> Any:
        """The recorded result, of a replay."""
        return decode(self._result)

    def _belongs(self, child: Child, number: int, until: float) -> None:
        self._child, self._number, self._until = child, number, until

    def _name(self, child: Child) -> Dict[str, Any]:
        if child is self._child:
            return {"attempt": self._number}
        return {"token": self._token}  # The server that gave the number has gone.

    def _close(self) -> None:
        self._core.open.pop(self._params["nonce"], None)
        if self._child:
            self._child.lost.pop(self._number, None)

    def _ours(self) -> None:
        if self.replayed or self._ending or self._pid != os.getpid():
            raise errors.Lost("the attempt has ended, or is that of another process")

    def _end(self, verb: str, **params: Any) -> Steps:
        self._ours()
        self._ending = True
        try:
            return (yield from self._core.ask(verb, self._name, params))[1]
        except Exception as error:
            self._ending = isinstance(error, errors.Lost)  # Else it may be tried again.
            raise
        finally:  # Also when interrupted: it was sent.
            if self._ending:
                self._close()

    def _complete(self, verb: str, value: Any, **params: Any) -> Steps:
        """Return the value as a replay has it. What cannot be kept is done all the same."""
        params = {name: value for name, value in params.items() if value is not None}
        unfit: Optional[BaseException] = None
        back = value
        try:
            result, back = encode(value)
            got = yield from self._end(verb, result=result, **params)
        except (TypeError, ValueError, RecursionError) as error:
            if getattr(error, "name", ""):
                raise  # Not the form of the result is wrong, but the call.
            unfit = error
            got = yield from self._end(verb, result={"not_kept": True}, **params)
        if got.get("not_kept"):
            found = errors.NotKept(f"the work is done; its result is not kept: {unfit or 'too long'}")
            found.result = value
            raise found from unfit
        return back

    def _statement(self, value: Any) -> Steps:
        self._ours()
        params = {"result": encode(value)[0]}
        return (yield from self._core.ask("statement", self._name, params))[1]

    def _respond(self, response: Dict[str, Any]) -> Steps:
        """The end of a request over HTTP; False: it is not on record."""
        if self._ending:
            return True  # The application itself said how it ended.
        try:
            try:
                yield from self._end("http.end", **response)
            except errors.Invalid as error:
                if error.name:
                    raise  # Not the form of the response is wrong, but the call.
                unfit = {"headers": [], "body": "", "not_kept": True}
                yield from self._end("http.end", **{**response, **unfit})
        except errors.Error:
            self._close()
            return False
        return True

    def _retry(self, text: str, failures_max: int, after: Duration) -> Steps:
        more = {"retry_after_ms": milliseconds(after), "failures_max": failures_max}
        return self._end("retry", text=text, **{n: v for n, v in more.items() if v})

    def _renew(self, lease: Duration = 0) -> Steps:
        self._ours()
        asked = boot_time()
        params = {} if lease == 0 else {"lease_ms": milliseconds(lease)}
        _, got = yield from self._core.ask("renew", self._name, params)
        self._until = until(asked, got)
        return None if got["lease_left_ms"] is None else got["lease_left_ms"] / 1000

    def _check(self) -> Steps:
        self._ours()
        if self._taken or (self._child and self._number in self._child.lost):
            raise errors.Lost("the lease is over: start no further effect")
        if boot_time() >= self._until:  # As we know it; the server may have renewed it.
            yield from self._renew()

    def _end_as(self, error: BaseException) -> Steps:
        """The end of work that raised `error`."""
        text = "".join(traceback.format_exception_only(type(error), error)).strip()[:1000]
        text = text.encode(errors="replace").decode()
        if isinstance(error, errors.NothingHappened):
            yield from self._end("release", text=text)
        elif isinstance(error, errors.Failed):
            with contextlib.suppress(errors.NotKept):
                yield from self._complete("fail", error.result, text=str(error))
        elif self._params.get("on_expired_lease") == "rerun":
            yield from self._end("retry", text=text)
        else:
            yield from self._end("unknown", text=text)


def until(asked: float, got: Dict[str, Any]) -> float:
    """The lease that is left was counted after we had asked."""
    left = got["lease_left_ms"]
    return float("inf") if left is None else asked + left / 1000


# ---- Stores ----


class Core:
    """The child of this process, and the attempts that are open."""

    kind = CoreAttempt  # Of attempts.

    def __init__(self, url: str, program: Optional[str]) -> None:
        if not url:
            raise errors.Invalid("the URL of the store is missing")
        self.url, self.program = url, find_program(program)
        self.child: Optional[Child] = None
        self.closed = False
        self.forget()
        _stores.add(self)

    def forget(self) -> None:
        """In a new process nothing of our parent is ours."""
        if self.child is not None:
            self.child.abandon()
        self.child, self.pid, self.lock = None, os.getpid(), threading.Lock()
        self.open: Dict[str, CoreAttempt] = {}  # By nonce.

    def connected(self) -> Optional[Child]:
        """The child, if it is there."""
        if self.pid != os.getpid():
            self.forget()
        return self.child if self.child and not self.child.over else None

    def connect(self) -> Child:
        """The child; a new one takes over the attempts that are open."""
        with self.lock:
            child = self.connected()
            if child is None:
                if self.closed:
                    raise errors.Invalid("the store is closed")
                child = Child(self)
                child.hello()
                for attempt in list(self.open.values()):
                    self.adopt(child, attempt)
                self.child = child
            return child

    def adopt(self, child: Child, attempt: CoreAttempt) -> None:
        """The same nonce finds the same claim, which this child renews from now on."""
        if attempt._ending or attempt._child is child:
            return
        params = {n: v for n, v in attempt._params.items() if not n.startswith("wait")}
        asked = boot_time()
        try:
            got = child.send(Call(attempt._method, {**params, "again": True})).result()
        except (errors.Error, Gone) as error:
            attempt._taken = isinstance(error, errors.Lost)
            return
        if got["verdict"] == "STARTED" and int(got["fence"]) == attempt.fence:
            attempt._belongs(child, got["attempt"], until(asked, got))
            self.beat(child, got)
            return
        attempt._taken = True
        if got["verdict"] == "STARTED":
            child.post("release", attempt=got["attempt"])

    def gone(self, child: Child) -> None:
        """The child died. Who else renews what is open?"""
        if child is self.child and self.open:
            with contextlib.suppress(Exception):
                self.connect()

    def pulse(self, child: Child) -> None:
        """A heartbeat is due."""
        child.ping()

    def flushes(self, child: Child) -> bool:
        """Whether child.flush() is called in a moment, which sends what comes till then."""
        return False

    def beat(self, child: Child, got: Dict[str, Any]) -> None:
        if got["lease_left_ms"] is not None:
            child.beat_within(got["lease_left_ms"] / 4000)

    # ---- Steps ----

    def ask(self, method: str, name: Callable[[Child], Dict[str, Any]], params: Any) -> Steps:
        """Ask, and ask a new child where one died before it answered."""
        for _ in range(TRIES):
            child = self.connected() or (yield Wait(function=self.connect))
            call = Call(method, {**name(child), **params})
            if len(call.line) > child.line_max:
                raise errors.Invalid("the request is longer than a line may be")
            try:
                child.send(call)
                return child, (yield Wait(call))
            except Gone:
                if method in CLAIMS:
                    params = {**params, "again": True}
            except errors.Error:
                raise
            except BaseException:  # We are interrupted, or cancelled: start nothing.
                if method in CLAIMS:
                    child.post("cancel", id=call.id)
                raise
        raise errors.Unavailable(f"idem serve ended {TRIES} times before it answered")

    def begin_(self, key: Key, claim: Claim) -> Steps:
        params = params_of(key, claim)
        got, attempt = yield from self.claim("begin", params)
        if got["verdict"] in errors.VERDICTS:
            raise not_started(key, got)
        return attempt or self.kind(self, params, got)

    def claim(self, method: str, params: Dict[str, Any]) -> Steps:
        """The answer, and the attempt where one was started."""
        asked = boot_time()
        child, got = yield from self.ask(method, lambda child: {}, params)
        if got.get("verdict") != "STARTED":
            return got, None
        attempt = self.kind(self, params, got)
        attempt._belongs(child, got["attempt"], until(asked, got))
        self.open[params["nonce"]] = attempt
        self.beat(child, got)
        if child.over:  # Perhaps gone() came too early to see it.
            yield Wait(function=lambda: self.adopt(self.connect(), attempt))
        return got, attempt

    def http_(self, request: Dict[str, Any], claim: Terms) -> Steps:
        """An attempt; or the status, the headers and the body of the whole answer."""
        params = {**request, "nonce": secrets.token_hex(16), **words_of(claim, Claim)}
        got, attempt = yield from self.claim("http.begin", params)
        if attempt is None:
            answer = got["answer"]
            headers = [(name, value) for name, value in answer["headers"]]
            body = base64.b64decode(answer["body"])
            if answer["status"] != 204:
                headers.append(("Content-Length", str(len(body))))
            return answer["status"], headers, body
        try:
            yield from attempt._check()
        except BaseException:
            yield from attempt._end("release", text="the work was not started")
            raise
        return attempt

    def once_(self, key: Key, function: Callable[..., Any], claim: Claim) -> Steps:
        attempt = yield from self.begin_(key, claim)
        if attempt.replayed:
            return attempt.result
        began = False
        try:
            yield from attempt._check()
            began = True
            words = {"attempt": attempt} if takes_attempt(function) else {}
            value = yield Wait(function=lambda: function(**words), is_work=True)
        except GeneratorExit:
            raise
        except BaseException as error:
            if not attempt._ending:
                release = attempt._end("release", text="the work was not started")
                yield from attempt._end_as(error) if began else release
            raise
        if attempt._ending:  # The function itself said how it ended.
            return value
        try:
            return (yield from attempt._complete("complete", value))
        except errors.NotKept:
            raise
        except errors.Error as error:
            attempt._close()
            found = errors.NotRecorded(f"the work is done, and that is not on record: {error}")
            found.name, found.result = error.name, value
            raise found from error

    def limit_(self, name: str, subject: str, request: str, limit: Limit) -> Steps:
        params = words_of(limit, Limit)
        params.update(name=name, subject=subject, request=request)
        _, got = yield from self.ask("limit", lambda child: {}, params)
        return Decision(**got)

    def advance_(self, time: Duration) -> Steps:
        yield from self.ask("advance", lambda child: {}, {"ms": milliseconds(time)})

    @staticmethod
    def arguments(
        function: Callable[..., Any], key: Callable[..., Optional[Key]], claim: Dict[str, Any]
    ) -> Callable[..., Any]:
        """For a decorator: from the arguments of a call to those of once_()."""
        if not callable(key):
            raise TypeError("idempotent: key is a function of the arguments")
        takes = takes_attempt(function)

        def arguments(args: Any, words: Any) -> Any:
            of = {n: v(*args, **words) if callable(v) else v for n, v in claim.items()}

            def work(attempt: CoreAttempt) -> Any:
                return function(*args, **words, **({"attempt": attempt} if takes else {}))

            return key(*args, **words), work, of

        return arguments

    def close_(self) -> Steps:
        child = self.connected()
        if self.open:
            raise errors.Invalid(f"{len(self.open)} attempts were not ended")
        self.closed = True
        if child is not None:
            yield Wait(function=child.close)
        _stores.discard(self)


def not_started(key: Key, got: Dict[str, Any]) -> errors.NotStarted:
    """The exception for a verdict."""
    record = got["record"]
    kind, status = errors.VERDICTS[got["verdict"]], record["status"]
    has_note = kind in (errors.Failed, errors.Unknown)
    note = has_note and (record.get("error") or record.get("note"))
    error = kind(note or f"the key {key!r} is {status}: {got['verdict']}")
    error.record = record
    if isinstance(error, errors.Busy) and got.get("lease_left_ms") is not None:
        error.lease_left = got["lease_left_ms"] / 1000
    if isinstance(error, errors.Failed):
        with contextlib.suppress(errors.NotKept):
            error.result = decode(got.get("result"))
    return error


def forked() -> None:
    """In the child of fork()."""
    for store in _stores:
        store.forget()


def at_exit() -> None:
    """Attempts that are open stay with the server, which sees our process end."""
    for store in list(_stores):
        child = store.connected()
        if child is not None:
            child.close()


os.register_at_fork(after_in_child=forked)
atexit.register(at_exit)
