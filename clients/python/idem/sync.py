"""The blocking form, for any number of threads."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, TypeVar

from .core import Claim, Core, CoreAttempt, Decision, Duration, Key, Limit, run

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Attempt(CoreAttempt):
    """Has the key until one of its ends; see `check`."""

    def complete(self, result: Any = None, *, text: Optional[str] = None) -> Any:
        """The work is done. Returns the result as a replay has it."""
        return run(self._complete("complete", result, text=text))

    def fail(self, text: str = "", *, result: Any = None) -> None:
        """The work failed, and a person must look."""
        run(self._complete("fail", result, text=text))

    def release(self, text: str = "") -> None:
        """Nothing happened, and another may try."""
        run(self._end("release", text=text))

    def retry(self, text: str = "", *, failures_max: int = 0, after: Duration = 0) -> None:
        """It failed and may have had effects; the next caller runs it again."""
        run(self._retry(text, failures_max, after))

    def unknown(self, text: str = "") -> None:
        """It may have happened."""
        run(self._end("unknown", text=text))

    def statement(self, result: Any = None) -> Dict[str, Any]:
        """The SQL ("text", "values") that completes it in your own transaction on PostgreSQL."""
        return run(self._statement(result))

    def recorded(self) -> None:
        """The transaction with the statement was committed."""
        run(self._end("recorded"))

    def renew(self, lease: Duration = 0) -> Optional[float]:
        """Extend the lease, by default by its length; return what is left of it."""
        return run(self._renew(lease))

    def check(self) -> None:
        """Raise Lost where the lease is over: call it before each effect."""
        run(self._check())


class Store(Core):
    """A store, from open()."""

    kind = Attempt

    def begin(self, key: Key, **claim: Unpack[Claim]) -> Attempt:
        """Claim a key: an attempt that must be ended, or a replay (`replayed`, `result`)."""
        return run(self.begin_(key, claim))

    def once(self, key: Key, function: Callable[..., T], **claim: Unpack[Claim]) -> T:
        """Return what `function` returns, now or when it ran. It gets the attempt where
        it has a parameter `attempt`."""
        return run(self.once_(key, function, claim))

    def idempotent(self, *, key: Callable[..., Optional[Key]], **claim: Any) -> Callable[[F], F]:
        """A decorator for once(); `key`, and whatever else is a function, is called with
        the arguments of the call."""

        def decorate(function: F) -> F:
            if inspect.iscoroutinefunction(function):
                raise TypeError("idempotent: a coroutine needs a store of open_async()")
            of = self.arguments(function, key, claim)

            @functools.wraps(function)
            def wrapper(*args: Any, **words: Any) -> Any:
                return run(self.once_(*of(args, words)))

            return wrapper  # type: ignore[return-value]

        return decorate

    def limit(self, name: str, subject: str, request: str, **limit: Unpack[Limit]) -> Decision:
        """Count a request against a limit, once for each `request`."""
        return run(self.limit_(name, subject, request, limit))

    def advance(self, time: Duration) -> None:
        """For tests: move the time of a "memory:" store forward."""
        run(self.advance_(time))

    def close(self) -> None:
        """End the child. Refused while attempts are open."""
        run(self.close_())

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
