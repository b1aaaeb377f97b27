"""The control: an order, without idem."""

import json
import os
import urllib.error
import urllib.request


def handler(event, _context):
    try:
        with urllib.request.urlopen(os.environ["SERVICE_URL"], json.dumps(event).encode()) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return {"error": f"the API answered {error.code}"}
