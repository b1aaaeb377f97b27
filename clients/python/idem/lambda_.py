"""A handler of AWS Lambda with idem around it. The program knows the sources of events, as
`idem lambda` does: which units an event has, their keys, and what Lambda is told."""

from __future__ import annotations

import functools
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Tuple

from . import errors
from .core import Terms, run, takes_attempt
from .http import UNRECORDED, Guard, Scope
from .lambda_http import body_of, headers_of, marked, request_of, response_of, whole
from .sync import Attempt, Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

Event = Dict[str, Any]
Handler = Callable[..., Any]
START_MIN_MS = 1000  # With less time than this no unit is started.
MARGIN = 2  # Seconds for which a lease outlives the function.


def lambda_handler(
    handler: Handler,
    *,
    store: Store,
    scope: Scope = lambda event: None,
    key: str = "",
    source: str = "",
    required: bool = False,
    replay_headers: Iterable[str] = (),
    outcome: str = "",
    **claim: Unpack[Terms],
) -> Handler:
    """`handler`, called once for each unit: the event, or a record of a batch. It gets the
    attempt where it has a parameter `attempt`. `scope` is for events of HTTP, and `key` a
    selector, where the source has none."""
    takes = takes_attempt(handler)

    def call(event: Event, context: Any, attempt: Optional[Attempt]) -> Any:
        return handler(event, context, **({"attempt": attempt} if takes else {}))

    def claim_of(context: Any) -> Terms:
        lease = context.get_remaining_time_in_millis() / 1000 + MARGIN
        return {"on_expired_lease": "rerun", "lease": lease, **claim}  # type: ignore[typeddict-item]

    def http(event: Event, context: Any) -> Any:
        guard = Guard(store, scope, required, replay_headers, outcome, claim_of(context))
        method, target, headers, body = request_of(event)
        if not guard.takes(method, headers):
            return call(event, context, None)
        begun = run(guard.begin(method, target, headers, body, event))
        if not isinstance(begun, Attempt):
            return response_of(begun, event)
        try:
            value = call(event, context, begun)
        except BaseException as error:
            if not begun._ending:
                run(begun._end_as(error))
            raise
        value = whole(value)
        status, sent = int(value["statusCode"]), headers_of(value)
        recorded = run(guard.end(begun, status, sent, body_of(value))) == sent
        return value if recorded else marked(value, *UNRECORDED)

    def once(unit: Dict[str, Any], event: Event, context: Any) -> Any:
        if "error" in unit:
            raise errors.Invalid(unit["error"])
        if context.get_remaining_time_in_millis() < START_MIN_MS:
            raise errors.Unavailable("there is too little time left to start")
        own = {**claim_of(context), "scope": unit["scope"]}
        if "fingerprint" in unit:
            own["fingerprint"] = unit["fingerprint"]
        return store.once(unit["key"], lambda attempt: call(event, context, attempt), **own)

    def batch(units: List[Dict[str, Any]], context: Any) -> Tuple[str, Optional[Exception]]:
        """One after the other: what follows a failure in its group has to wait for it."""
        states, failed = "", set()
        first: Optional[Exception] = None
        for unit in units:
            if unit.get("group") in failed:
                states += "w"
                continue
            if "first" in unit:
                states += states[unit["first"]]
            else:
                try:
                    once(unit, unit["event"], context)
                    states += "d"
                except Exception as error:
                    traceback.print_exc()
                    first = first or error
                    states += "f"
            if states[-1] != "d" and "group" in unit:
                failed.add(unit["group"])
        return states, first

    @functools.wraps(handler)
    def idempotent(event: Event, context: Any) -> Any:
        asked = {"event": event, "source": source, "key_from": key}
        asked.update(function=context.function_name, request_id=context.aws_request_id)
        got = ask(store, "event.begin", asked)
        if got["answer"] == "http":
            return http(event, context)
        if got["answer"] == "value":
            return once(got["units"][0], event, context)
        states, first = batch(got["units"], context)
        if got["answer"] == "failures":
            return ask(store, "event.end", {**asked, "states": states})
        if first is not None:
            raise first
        return None

    return idempotent


def ask(store: Store, method: str, params: Dict[str, Any]) -> Any:
    return run(store.ask(method, lambda child: {}, params))[1]
