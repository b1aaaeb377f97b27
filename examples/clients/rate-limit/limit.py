"""Eight requests of a user on a day: a request counts once, however often it is asked about.

Its id comes from the one who sends it, and its day from the time of the event: both are the
same for a retry after midnight.
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
