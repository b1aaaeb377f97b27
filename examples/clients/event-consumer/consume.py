"""A consumer of a queue of orders: each is booked once, however often the queue delivers its
message, and if several messages name it.

The service takes keys: after a death the next delivery sends the same key, and gets the same
answer. An order that kills the function is tried twice.
"""

import os
import urllib.error
import urllib.request
from urllib.parse import quote

import idem

store = idem.open(os.environ.get("IDEM_STORE", "sqlite:orders.db"))


def consume(event, _context, *, attempt):
    (record,) = event["Records"]  # The event has one message in it.
    headers = {"Idempotency-Key": quote(attempt.key, safe="")}
    request = urllib.request.Request(os.environ["SERVICE_URL"], record["body"].encode(), headers)
    try:
        urllib.request.urlopen(request).close()
    except urllib.error.HTTPError as error:
        if error.code == 422:
            raise idem.Failed("the order is wrong") from error  # Not tried again.
        raise


handler = idem.lambda_handler(
    consume,
    store=store,
    key=".body | fromjson | .orderId",
    attempts_max=2,
    on_death="now",  # Only this process calls the service: its successor need not await the lease.
)
