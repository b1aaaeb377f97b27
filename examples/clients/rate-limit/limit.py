"""Eight requests of a user per day: a request counts once, however often the handler is asked.

The caller chooses its id, and the time of the event gives its day: a retry after midnight has
the same ones.
"""

import os
from datetime import timedelta

import idem

store = idem.open(os.environ.get("IDEM_STORE", "sqlite:limits.db"))


def handler(event, _context):
    decision = store.limit(
        "requests", event["user"], event["request"],
        max=8, per=timedelta(days=1), at_ms=event["timestamp"],
    )  # fmt: skip
    return {"limited": not decision.admitted}
