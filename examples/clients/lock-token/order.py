"""One call of an API that takes no keys, for each order: the steps of Locker."""

import json
import os
import urllib.error
import urllib.request

import idem

locker = idem.open(os.environ.get("IDEM_STORE", "sqlite:orders.db"))


def handler(event, _context):
    try:
        lock = locker.begin(f"order/create/{event['orderId']}", expect=60)
    except idem.Failed as error:
        return {"error": str(error)}  # The text that fail() recorded.
    # Busy is raised if another process makes the call; Unknown if a person must look.
    if lock.replayed:
        return lock.result
    try:
        with urllib.request.urlopen(os.environ["SERVICE_URL"], json.dumps(event).encode()) as answer:
            receipt = json.load(answer)
    except urllib.error.HTTPError as error:
        text = f"the API answered {error.code}"
        lock.fail(text)
        return {"error": text}
    except Exception as error:
        if isinstance(getattr(error, "reason", None), ConnectionRefusedError):
            lock.release("the API was not reached")  # The next delivery calls it.
        else:
            lock.unknown(str(error))  # The order may have been made.
        raise
    return lock.complete(receipt)
