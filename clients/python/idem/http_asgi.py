"""A middleware for ASGI: Starlette, FastAPI, Django and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Iterable, List

from .aio import AsyncAttempt, AsyncStore
from .core import Terms
from .http import BODY_MAX, Guard, Headers, Scope

if TYPE_CHECKING:
    from typing_extensions import Unpack

Message = Dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def asgi(
    app: Application,
    *,
    store: AsyncStore,
    scope: Scope,
    required: bool = False,
    replay_headers: Iterable[str] = (),
    outcome: str = "",
    **claim: Unpack[Terms],
) -> Application:
    """`app` behind an idempotency key. `scope` may be a function of the connection's
    scope, in which the application finds its attempt as "idem.attempt"."""
    guard = Guard(store, scope, required, replay_headers, outcome, claim)

    async def middleware(of: Message, receive: Receive, send: Send) -> None:
        headers = text(of.get("headers", []))
        if of["type"] != "http" or not guard.takes(of["method"], headers):
            return await app(of, receive, send)
        came = [await receive()]
        while came[-1].get("more_body") and size(came) <= BODY_MAX:
            came.append(await receive())
        if came[-1]["type"] == "http.disconnect":
            return None  # Half of a request is not one, and nobody waits.
        body = b"".join(one.get("body", b"") for one in came)
        begun = await store._run(guard.begin(of["method"], target_of(of), headers, body, of))
        if not isinstance(begun, AsyncAttempt):
            status, headers, answer = begun
            await send(start(status, headers))
            return await send({"type": "http.response.body", "body": answer})

        async def again() -> Message:
            return came.pop(0) if came else await receive()

        held = Held(guard, store, begun, send)
        try:
            await app({**of, "idem.attempt": begun}, again, held.take)
        except BaseException as error:
            if not begun._ending:
                await store._run(begun._end_as(error))
            raise

    return middleware


class Held:
    """Messages that wait until the response is on record."""

    def __init__(self, guard: Guard, store: AsyncStore, attempt: AsyncAttempt, send: Send) -> None:
        self.guard, self.store, self.attempt, self.send = guard, store, attempt, send
        self.messages: List[Message] = []
        self.is_open = False

    async def take(self, message: Message) -> None:
        if self.is_open:
            return await self.send(message)
        kind = message["type"]
        if kind == "http.response.start" or self.messages:  # No hint goes before it.
            self.messages.append(message)
        is_body = kind == "http.response.body"
        is_known = is_body or kind == "http.response.start"
        is_long = size(self.messages) > BODY_MAX or not is_known
        if self.messages and (is_long or (is_body and not message.get("more_body"))):
            await self.settle(is_long)

    async def settle(self, is_long: bool) -> None:
        """A body that does not come as bytes counts as too long."""
        first, *rest = self.messages
        body = None if is_long else b"".join(one.get("body", b"") for one in rest)
        headers = text(first.get("headers", []))
        steps = self.guard.end(self.attempt, first["status"], headers, body)
        added = (await self.store._run(steps))[len(headers) :]
        raw = [*first.get("headers", []), *start(0, added)["headers"]]
        self.is_open = True
        for message in ({**first, "headers": raw}, *rest):
            await self.send(message)


def size(messages: List[Message]) -> int:
    return sum(len(one.get("body", b"")) for one in messages)


def text(headers: Iterable[Any]) -> Headers:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def start(status: int, headers: Headers) -> Message:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": raw}


def target_of(of: Message) -> str:
    path = of.get("raw_path") or of["path"].encode()
    query = of.get("query_string")
    return (path + (b"?" + query if query else b"")).decode("latin-1")
