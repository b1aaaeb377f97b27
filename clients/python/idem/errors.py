"""The exceptions. None of them has a token or a result in its text."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Type


class Error(Exception):
    """All errors of idem, with the name of the C library where it has one."""

    name: str = ""


class NoProgram(Error):
    """There is no idem program to start."""


class MissingKey(Error, ValueError):
    """A key is missing; the work was not started."""


class Invalid(Error, ValueError):
    """The request is not valid."""


class Unavailable(Error):
    """The store is away or busy: ask again later."""


class Lost(Error):
    """The attempt is not the caller's any more: start no further effect."""


class StoreError(Error):
    """A person must look after the store."""


class NotRecorded(Error):
    """The work is done, and that is not on record; `result` has what it returned."""

    result: Any = None


class NotKept(Error):
    """The work is done, and its result is not on record: it was too long, or not JSON.
    `result` has it where this process did the work."""

    result: Any = None


# ---- Verdicts: the work was not started ----


class NotStarted(Error):
    """The record of the key decides against a start; `record` has it."""

    record: Mapping[str, Any] = {}


class Busy(NotStarted):
    """Another attempt is in progress; its lease has `lease_left` seconds, or no end."""

    lease_left: Optional[float] = None


class Mismatch(NotStarted):
    """The key was used for another request."""


class Unknown(NotStarted):
    """It may have happened: a person must look."""


class Released(NotStarted):
    """The attempt that was waited for did nothing."""


class Failed(NotStarted):
    """The work failed, and a person must look. A function raises it to record that."""

    def __init__(self, text: str = "", result: Any = None) -> None:
        super().__init__(text)
        self.result = result


class NothingHappened(Exception):
    """A function raises it, or a subclass: nothing happened, and another may try."""


VERDICTS: Mapping[str, Type[NotStarted]] = {
    "BUSY": Busy,
    "MISMATCH": Mismatch,
    "UNKNOWN": Unknown,
    "FAILED": Failed,
    "RELEASED": Released,
}
KINDS: Mapping[str, Type[Error]] = {"retry": Unavailable, "lost": Lost, "caller": Invalid}


def refusal(error: Mapping[str, Any]) -> Error:
    """The exception for an error of the server."""
    data = error.get("data") or {}
    kind = KINDS.get(data.get("kind", ""), StoreError if "kind" in data else Invalid)
    found = kind(error["message"])
    found.name = data.get("name", "")
    return found
