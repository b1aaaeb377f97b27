"""The control: a rate limit that counts calls, without idem."""

import collections

DAY_MS = 86_400_000
calls = collections.Counter()


def handler(event, _context):
    place = event["user"], event["timestamp"] // DAY_MS
    calls[place] += 1
    return {"limited": calls[place] > 8}
