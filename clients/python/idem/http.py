"""One request over HTTP: run it, or answer it. What WSGI and ASGI have in common."""

from __future__ import annotations

import base64
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from . import errors
from .core import Core, CoreAttempt, Steps, Terms

BODY_MAX = 16 << 20  # A longer response is passed on, and not kept.
METHODS = ("POST", "PATCH")
UNRECORDED = ("Idempotency-Recorded", "false")
Headers = List[Tuple[str, str]]
Scope = Union[str, Callable[[Any], Optional[str]]]


class Guard:
    """What a middleware is told once."""

    def __init__(
        self,
        store: Core,
        scope: Scope,
        required: bool,
        replay_headers: Iterable[str],
        outcome: str,
        claim: Terms,
    ) -> None:
        if not isinstance(scope, str) and not callable(scope):
            raise errors.Invalid("scope is a text, or a function of the request")
        self.store, self.scope, self.required, self.claim = store, scope, required, claim
        self.rules = {"replay_headers": ",".join(replay_headers), "outcome": outcome}

    def takes(self, method: str, headers: Headers) -> bool:
        has_key = any(name.lower() == "idempotency-key" for name, _ in headers)
        return method in METHODS and (has_key or self.required)

    def begin(self, method: str, target: str, headers: Headers, body: bytes, of: Any) -> Steps:
        """The answer to the request, which then is not run; or its attempt."""
        request = {"method": method, "target": target, "headers": headers, **self.rules}
        who = self.scope(of) if callable(self.scope) else self.scope
        if who or not callable(self.scope):
            request["scope"] = who
        return self.store.http_({**request, "body": encoded(body)}, self.claim)

    def end(
        self, attempt: CoreAttempt, status: int, headers: Headers, body: Optional[bytes]
    ) -> Steps:
        """The headers to send; without a body it was too long."""
        kept: Dict[str, Any] = {"not_kept": True} if body is None else {"body": encoded(body)}
        response = {"http_status": status, "headers": headers, **kept, **self.rules}
        recorded = yield from attempt._respond(response)
        return headers if recorded else [*headers, UNRECORDED]


def encoded(body: bytes) -> str:
    return base64.b64encode(body).decode()
