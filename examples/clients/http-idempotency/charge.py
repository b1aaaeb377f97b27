"""A payment with API Gateway in front, once for each Idempotency-Key of a client: a decorator
wraps the function that pays.

rerun: the bank takes keys. After a death the next request sends the same key, and the bank
answers as before.
"""

import json
import os
import urllib.request
from urllib.parse import quote

import idem

store = idem.open(os.environ.get("IDEM_STORE", "sqlite:payments.db"))


def key_of(event):
    return event["headers"].get("idempotency-key")


def client_of(event):
    return event["requestContext"]["authorizer"]["principalId"]


@store.idempotent(
    key=key_of,
    scope=client_of,
    fingerprint=lambda event: json.loads(event["body"]),
    on_expired_lease="rerun",
    on_death="now",  # Only this process calls the bank: its successor need not await the lease.
)
def charge(event):
    # The keys of one client are not those of another, at the bank too.
    key = quote(client_of(event), safe="") + "/" + quote(key_of(event), safe="")
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    request = urllib.request.Request(os.environ["SERVICE_URL"], event["body"].encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return {"statusCode": 201, "body": answer.read().decode()}


def handler(event, _context):
    try:
        return charge(event)
    except idem.MissingKey as error:
        return {"statusCode": 400, "body": str(error)}
    except idem.Busy as error:
        return {"statusCode": 409, "body": str(error)}
    except idem.Mismatch as error:
        return {"statusCode": 422, "body": str(error)}
    # After any other error Lambda answers 5xx, and the same key tries again.
