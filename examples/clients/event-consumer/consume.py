"""A consumer of a queue of orders: each is booked once, however often its message comes and
whichever message it comes in.

The service takes keys: what died is run again, with the same key, and is answered as before.
An order that kills the function is tried twice.
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
    on_death="now",  # This process alone calls the service: the next need not wait for the lease.
)
