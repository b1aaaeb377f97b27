"""The control: a payment, without idem."""

import os
import urllib.request


def charge(event):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["SERVICE_URL"], event["body"].encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return {"statusCode": 201, "body": answer.read().decode()}


def handler(event, _context):
    return charge(event)
