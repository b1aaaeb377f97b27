"""Ends that a process sent before it was killed, and that reached the table after the
next process had looked: that one is right to say that the record is at work, although
it is completed when somebody looks after that.

Nothing but the wire can tell this from a wrong answer. It must show all of:

- the write that completed the record came from a process that had ended when the one
  that answered was started;
- the process that answered was shown the record by the server, in this delivery, and
  it was the very record that the write found there and replaced;
- the server may have done the write after that look: it had not answered the write
  before the look came. A look that came later and was still shown the old record
  would be a stale one.
"""

import base64
from typing import NamedTuple

ACCESS_KEY = "AKIDFUNCTION"


class Delivery(NamedTuple):
    """The @process that answered a delivery, and when that began and ended."""

    process: int
    began: float
    ended: float


def access_key(process):
    """Of the @process-th process of a function, by which it is known on the wire."""
    return f"{ACCESS_KEY}{process}"


def process_of(call):
    """The number of the process that made @call; 0: no function's."""
    number = call.client.removeprefix(ACCESS_KEY)
    return int(number) if number.isdigit() else 0


def _record(item):
    """The bytes of a record, of which each change makes others."""
    return base64.b64decode(item["rec"]["B"])


def _replaced(write):
    """The record that @write replaced."""
    return base64.b64decode(write.asked["ExpressionAttributeValues"][":r"]["B"])


def _is_of(call, key):
    return f'"key":{{"S":"{key}"}}' in call.request and call.operation == "PutItem"


def _completes(call):
    return call.status == 200 and call.asked["Item"]["status"]["S"] == "completed"


def end_of(calls, key):
    """The write that completed @key; None: the wire has not seen its answer."""
    ends = [call for call in calls if _is_of(call, key) and _completes(call)]
    assert len(ends) <= 1, f"{key} was completed {len(ends)} times: {ends}"
    return ends[0] if ends else None


def landed_late(calls, key, delivery):
    """Whether @calls prove that the end of @key is such a one for what @delivery was
    answered."""
    end = end_of(calls, key)
    looks = [call for call in calls if _is_of(call, key) and
             process_of(call) == delivery.process and
             delivery.began <= call.came and call.answered <= delivery.ended]
    if end is None or not looks:
        return False
    look = looks[-1]
    return (0 < process_of(end) < delivery.process
            and look.status == 400 and _record(look.told["Item"]) == _replaced(end)
            and look.came < end.answered)
