"""The same for asyncio: each verb is awaited, and what is cancelled is ended.

Heartbeats come from the event loop: one that hangs loses its leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Optional

from .child import Call, Child
from .core import Claim, Core, CoreAttempt, Decision, Duration, Key, Limit, Steps, Wait

if TYPE_CHECKING:
    from typing_extensions import Unpack


async def _answer(call: Call) -> Any:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    call.told = loop, future
    if not call.is_settled:  # Set before `told` is read.
        await future
    return call.result()


async def _wait(wait: Wait) -> Any:
    if wait.future:
        return await _answer(wait.future)
    if not wait.is_work:
        return await asyncio.get_running_loop().run_in_executor(None, wait.function)
    value = wait.function()
    return await value if inspect.isawaitable(value) else value


async def run(steps: Steps) -> Any:
    step: Callable[..., Wait] = steps.send
    value: Any = None
    while True:
        try:
            wait = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = steps.send, await _wait(wait)
        except BaseException as error:  # A cancellation too: the steps end the attempt.
            step, value = steps.throw, error


class AsyncAttempt(CoreAttempt):
    """As Attempt."""

    async def complete(self, result: Any = None, *, text: Optional[str] = None) -> Any:
        return await run(self._complete("complete", result, text=text))

    async def fail(self, text: str = "", *, result: Any = None) -> None:
        await run(self._complete("fail", result, text=text))

    async def release(self, text: str = "") -> None:
        await run(self._end("release", text=text))

    async def retry(self, text: str = "", *, failures_max: int = 0, after: Duration = 0) -> None:
        await run(self._retry(text, failures_max, after))

    async def unknown(self, text: str = "") -> None:
        await run(self._end("unknown", text=text))

    async def statement(self, result: Any = None) -> Dict[str, Any]:
        return await run(self._statement(result))

    async def recorded(self) -> None:
        await run(self._end("recorded"))

    async def renew(self, lease: Duration = 0) -> Optional[float]:
        return await run(self._renew(lease))

    async def check(self) -> None:
        await run(self._check())


class AsyncStore(Core):
    """As Store, from open_async()."""

    kind = AsyncAttempt
    _loop: Optional[asyncio.AbstractEventLoop] = None

    def pulse(self, child: Child) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            if self._loop:
                self._loop.call_soon_threadsafe(child.ping)

    def flushes(self, child: Child) -> bool:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # Another thread's, which has none.
            return False
        if child.flushing is not loop:  # One that has ended flushes nothing.
            child.flushing = loop
            loop.call_soon(child.flush)
        return True

    async def _run(self, steps: Steps) -> Any:
        self._loop = asyncio.get_running_loop()
        return await run(steps)

    async def begin(self, key: Key, **claim: Unpack[Claim]) -> AsyncAttempt:
        return await self._run(self.begin_(key, claim))

    async def once(self, key: Key, function: Callable[..., Any], **claim: Unpack[Claim]) -> Any:
        """`function` returns its result, or a coroutine."""
        return await self._run(self.once_(key, function, claim))

    def idempotent(
        self, *, key: Callable[..., Optional[Key]], **claim: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
            of = self.arguments(function, key, claim)

            @functools.wraps(function)
            async def wrapper(*args: Any, **words: Any) -> Any:
                return await self._run(self.once_(*of(args, words)))

            return wrapper

        return decorate

    async def limit(
        self, name: str, subject: str, request: str, **limit: Unpack[Limit]
    ) -> Decision:
        return await self._run(self.limit_(name, subject, request, limit))

    async def advance(self, time: Duration) -> None:
        await self._run(self.advance_(time))

    async def close(self) -> None:
        await self._run(self.close_())

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
