"""Headers of requests and responses, and what each front end over HTTP does with them.

The service takes POST of JSON, {"status": 201, "headers": [[NAME, VALUE], ...], "text": "..."}:
the answer that it gives, with "NUMBER text" as its body, where NUMBER counts what it did. Its
front end takes the client from X-User, and has REPLAY besides what each replays.
"""

import http.client
import json
from typing import NamedTuple

from patience import PATIENCE
from tap import equal

REPLAY = ("X-Order", "Link")

# Headers of a response, and whether a replay has them.
RESPONSE = (
    ("Location", "/orders/42?a=b", True),
    ("ETag", '"v1"', True),
    ("Last-Modified", "Sat, 21 Nov 2026 08:24:00 GMT", True),
    ("Content-Language", "de", True),
    ("Content-Type", "text/plain; charset=utf-8", True),
    ("X-Order", "42, \t43", True),
    ("Link", "</a>; rel=next", True),
    ("Link", "</b>; rel=prev", True),
    ("X-Other", "1", False),
    ("Set-Cookie", "secret=1", False),
    ("Access-Control-Allow-Origin", "*", False),
    ("WWW-Authenticate", "Basic", False),
    ("Strict-Transport-Security", "max-age=1", False),
    ("X-CSRF-Token", "secret", False),
)

# The lines of Idempotency-Key, and the status of the response to them.
KEYS = (
    (['"key-1"'], 201),
    (["key-1"], 201),
    (['  "key-1"\t'], 201),
    (['"key-1"', '"key-1"'], 400),
    (["key-1, key-2"], 400),
    (['"key-1";a=1'], 400),
    (['"key-1'], 400),
    ([""], 400),
    (["k" * 256], 400),
    (["k" * 255], 201),
)

# A status, and the status and the count of the next request.
STATUSES = ((200, 200, 1), (500, 500, 1), (404, 404, 1), (503, 503, 2), (429, 429, 2), (502, 409, 1))


class Answer(NamedTuple):
    status: int
    headers: list
    body: bytes

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]


class Front:
    """A front end at @port, for a service that notes each effect in a file."""

    def __init__(self, port, effects):
        self.port, self.effects = port, effects

    def __call__(self, *keys, target="/pay", user="ann", body=None, more=(), **answer):
        answer = {"status": 201, "headers": [], "text": "paid", **answer}
        body = json.dumps(answer) if body is None else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest("POST", target, skip_accept_encoding=True)
        given = [("Idempotency-Key", key) for key in keys] + [("X-User", user)] * (user is not None)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", len(body)), *given, *more]:
            connection.putheader(name, value)
        connection.endheaders(body.encode())
        got = connection.getresponse()
        found = Answer(got.status, got.getheaders(), got.read())
        connection.close()
        return found

    def did(self, call):
        before = self.effects()
        call()
        return self.effects() - before


def check_control(front):
    """Fail unless a repeated request has its effect twice without a front end."""
    equal(front.did(lambda: [front('"k"') for _ in range(2)]), 2)


def check(front):
    check_keys(front)
    check_requests(front)
    check_responses(front)


def check_keys(front):
    equal(front.did(lambda: [front() for _ in range(2)]), 2)  # It has no key.
    for keys, status in KEYS:
        found = front(*keys)
        equal((keys, found.status), (keys, status))
        if status == 400:
            equal(found.all("Content-Type"), ["application/problem+json"])
            equal(json.loads(found.body)["type"], "urn:idem:problem:key-invalid")
    equal(front('"key-1"').body, front("key-1").body)


def check_requests(front):
    """Fail unless requests of one meaning are replayed, and others with the key refused."""
    first = front('"r"', text="a", target="/pay?x=1")
    same = '{ "text": "\\u0061", "headers": [], "status": 201.0 }'
    found = front('"r"', body=same, target="/pay?x=1")
    equal((found.body, found.all("Idempotent-Replayed")), (first.body, ["true"]))
    equal(first.all("Idempotent-Replayed"), [])
    equal(front('"r"', text="b", target="/pay?x=1").status, 422)
    equal(front('"r"', text="a").status, 422)
    found = front('"r"', user="bob", text="b")
    equal((found.status, found.all("Idempotent-Replayed")), (201, []))
    equal(front('"r"', user=None).status, 400)
    equal(front('"up"', more=[("Upgrade", "websocket"), ("Connection", "Upgrade")]).status, 400)


def check_responses(front):
    headers = [(name, value) for name, value, _ in RESPONSE]
    first, again = (front('"h"', headers=headers) for _ in range(2))
    names = {name for name, _, _ in RESPONSE}
    for name in names:
        values = [value for n, value, _ in RESPONSE if n == name]
        kept = [value for n, value, is_kept in RESPONSE if n == name and is_kept]
        equal((name, ", ".join(first.all(name))), (name, ", ".join(values)))
        equal((name, ", ".join(again.all(name))), (name, ", ".join(kept)))
    equal(again.all("Cache-Control"), ["no-store"])
    for status, then, count in STATUSES:
        key = f'"s{status}"'
        equal(front.did(lambda: equal(front(key, status=status).status, status)), 1)
        equal(front.did(lambda: equal(front(key, status=status).status, then)), count - 1)
    gzipped = [("Content-Encoding", "gzip")]
    front('"z"', headers=gzipped, more=[("Accept-Encoding", "gzip")])
    for accept, status in (("gzip", 201), ("identity", 406), ("gzip;q=0, *", 406)):
        found = front('"z"', headers=gzipped, more=[("Accept-Encoding", accept)])
        equal((accept, found.status), (accept, status))
