"""idem: one recorded outcome for each idempotency key.

    store = idem.open("sqlite:/var/lib/app/idem.db")
    receipt = store.once("order-42", lambda: charge(42))
"""

from __future__ import annotations

from typing import Optional

from .aio import AsyncAttempt, AsyncStore
from .core import Decision
from .errors import Busy, Error, Failed, Invalid, Lost, Mismatch, MissingKey, NoProgram
from .errors import NothingHappened, NotKept, NotRecorded, NotStarted, Released, StoreError
from .errors import Unavailable, Unknown
from .http_asgi import asgi
from .http_wsgi import wsgi
from .lambda_ import lambda_handler
from .sync import Attempt, Store

# fmt: off
__all__ = [  # A plain list: type checkers read no other.
    "Attempt", "AsyncAttempt", "AsyncStore", "Busy", "Decision", "Error", "Failed",
    "Invalid", "Lost", "Mismatch", "MissingKey", "NoProgram", "NotKept", "NotRecorded",
    "NotStarted", "NothingHappened", "Released", "Store", "StoreError", "Unavailable",
    "Unknown", "asgi", "lambda_handler", "open", "open_async", "wsgi",
]
# fmt: on


def open(url: str, program: Optional[str] = None) -> Store:
    """A store, once for each process; its child starts with the first call."""
    return Store(url, program)


def open_async(url: str, program: Optional[str] = None) -> AsyncStore:
    """The same for asyncio."""
    return AsyncStore(url, program)
