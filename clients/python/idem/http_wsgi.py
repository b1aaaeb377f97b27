"""A middleware for WSGI: Flask, Django and their like."""

from __future__ import annotations

import http
import io
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List
from urllib.parse import quote

from .core import Terms, run
from .http import BODY_MAX, Guard, Headers, Scope
from .sync import Attempt, Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

Environ = Dict[str, Any]
Start = Callable[..., Any]
Application = Callable[[Environ, Start], Iterable[bytes]]


def wsgi(
    app: Application,
    *,
    store: Store,
    scope: Scope,
    required: bool = False,
    replay_headers: Iterable[str] = (),
    outcome: str = "",
    **claim: Unpack[Terms],
) -> Application:
    """`app` behind an idempotency key. `scope` may be a function of the environ, in which
    the application finds its attempt as "idem.attempt"."""
    guard = Guard(store, scope, required, replay_headers, outcome, claim)

    def middleware(environ: Environ, start_response: Start) -> Iterable[bytes]:
        method, headers = environ["REQUEST_METHOD"], headers_of(environ)
        if not guard.takes(method, headers):
            return app(environ, start_response)
        body = environ["wsgi.input"].read(length_of(environ))
        environ["wsgi.input"] = io.BytesIO(body)
        begun = run(guard.begin(method, target_of(environ), headers, body, environ))
        if isinstance(begun, Attempt):
            environ["idem.attempt"] = begun
            return held(app, environ, start_response, guard, begun)
        status, headers, answer = begun
        phrase = http.HTTPStatus(status).phrase if status in set(http.HTTPStatus) else ""
        start_response(f"{status} {phrase}", headers)
        return [answer]

    return middleware


def held(
    app: Application, environ: Environ, start_response: Start, guard: Guard, attempt: Attempt
) -> Iterator[bytes]:
    """The response, once it is on record."""
    head: List[Any] = []
    body: List[bytes] = []
    length = 0

    def start(status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
        head[:] = [status, headers]
        return body.append

    result: Any = ()
    try:
        try:
            result = app(environ, start)
            rest = iter(result)
            for piece in rest:
                body.append(piece)
                length += len(piece)
                if length > BODY_MAX:
                    break
            status, headers = head
        except BaseException as error:
            if not attempt._ending:
                run(attempt._end_as(error))
            raise
        kept = b"".join(body) if length <= BODY_MAX else None
        start_response(status, run(guard.end(attempt, int(status[:3]), headers, kept)))
        yield from body
        yield from rest
    finally:
        if hasattr(result, "close"):
            result.close()


def headers_of(environ: Environ) -> Headers:
    names = ("CONTENT_TYPE", "CONTENT_LENGTH")
    return [
        (name[5 * (name not in names) :].replace("_", "-").title(), value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name in names and value)
    ]


def length_of(environ: Environ) -> int:
    """What is read of a body; one that is too long is refused."""
    if environ.get("wsgi.input_terminated"):
        return BODY_MAX + 1
    return min(int(environ.get("CONTENT_LENGTH") or 0), BODY_MAX + 1)


def target_of(environ: Environ) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING")
    return (quote(path, encoding="latin-1") or "/") + (f"?{query}" if query else "")
