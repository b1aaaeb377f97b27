"""The control: a consumer of orders, without idem."""

import os
import urllib.request


def handler(event, _context):
    for record in event["Records"]:
        with urllib.request.urlopen(os.environ["SERVICE_URL"], record["body"].encode()):
            pass
