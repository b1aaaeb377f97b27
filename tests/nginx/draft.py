"""The IETF draft, draft-ietf-httpapi-idempotency-key-header, rule by rule; and the
headers that Stripe's users expect.

The rules are told in the words of the draft's sections; what a client or the owner
of a service must do is said where the server can see it.
"""

import contextlib
import email.utils
import functools
import json
import time

from nginx import Nginx, Upstream
from tap import equal, main, test

PAY = ("/pay", '"8e03978e-40d5-43e8-bc93-6894a57f9324"', b"x=1")


def problem(answer, status, kind, title):
    """@answer is a problem of RFC 9457 with this title."""
    equal(answer.headers["content-type"], "application/problem+json")
    body = json.loads(answer.body)
    equal(answer.status, status)
    equal((body["status"], body["title"]), (status, title))
    equal(body["type"], f"urn:idem:problem:{kind}")
    assert body["detail"], body
    equal(answer.headers["cache-control"], "no-store")


@contextlib.contextmanager
def usual():
    server = (
        "location /required { idempotency required; proxy_pass http://app; }"
        "location /u { idempotency_scope $http_x_user; proxy_pass http://app; }"
    )
    with Upstream() as up, Nginx(up, server=server) as nginx:
        yield nginx


rule = functools.partial(test, given=usual)


@rule
def what_is_not_a_request_of_its_key_is_told(nginx):
    """MUST NOT (2.2), SHOULD (2.7): another payload is 422, a key that is not valid 400."""
    nginx.post(*PAY)
    again = nginx.post(PAY[0], PAY[1], b"x=2")
    problem(again, 422, "request-mismatch", "Idempotency-Key is already used")
    problem(nginx.post("/a", "a b", b""), 400, "key-invalid", "Idempotency-Key is not valid")
    equal(nginx.up.executions(), 1)


@rule
def uniqueness_is_the_owners(nginx):
    """MUST (2.2): the owner defines what is unique: a scope is told apart in full."""
    for user, key in ("a", "bc"), ("ab", "c"), ("abc", "x"):
        got = nginx.request("/u", key, b"", headers=[("X-User", user)])
        equal((got.status, got.replayed), (201, False))
    equal(nginx.request("/u", "bc", b"").status, 400)
    equal(nginx.request("/u", "bc", b"").problem, "scope-missing")
    equal(nginx.up.executions(), 3)


@rule
def expiry_is_told(nginx):
    """MUST (2.3): the expiry is published; here also with each answer."""
    first = nginx.post(*PAY)
    again = nginx.post(*PAY)
    told = email.utils.parsedate_to_datetime(first.headers["idempotency-expires"])
    equal(first.headers["idempotency-expires"], email.utils.format_datetime(told, True))
    assert 86300 < told.timestamp() - time.time() <= 86401, told
    equal(again.headers["idempotency-expires"], first.headers["idempotency-expires"])


@rule
def a_concurrent_one_conflicts(nginx):
    """SHOULD (2.6, 2.7): while the first is processed, 409."""
    with nginx.working("/pay?hold=h") as answer:
        title = "A request is outstanding for this Idempotency-Key"
        got = nginx.post("/pay?hold=h", "k", b"x")
        problem(got, 409, "in-progress", title)
        assert 1 <= int(got.headers["retry-after"]) <= 60
        nginx.up.let_go("h")
        equal(answer().status, 201)


@rule
def a_missing_key_is_told(nginx):
    """SHOULD (2.7): where it is documented as required, 400."""
    for method in "POST", "PATCH":
        got = nginx.request("/required", None, b"x", method)
        problem(got, 400, "key-missing", "Idempotency-Key is missing")
    equal(nginx.request("/required", None, b"", "GET").status, 201)
    equal(nginx.request("/required", "k", b"x").status, 201)


@rule
def only_what_is_not_idempotent(nginx):
    """1.: POST and PATCH. Safe methods go through, and nothing is stored."""
    for method in "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
        for _ in range(2):
            got = nginx.request("/pay", "k", b"", method)
            equal((method, got.replayed), (method, False))
    equal(nginx.up.executions("k"), 10)
    equal(nginx.post("/pay", "k", b"").status, 201)
    got = nginx.request("/pay", "k", b"", "GET")
    equal((got.status, got.replayed), (201, False))


@rule
def replays_are_marked(nginx):
    """Stripe: Idempotent-Replayed: true, only by us, and not on the first answer."""
    first = nginx.post("/pay?mode=lying", "k", b"x")
    equal("idempotent-replayed" in first.headers, False)
    assert first.headers["idempotency-expires"] != "never"
    assert nginx.post("/pay?mode=lying", "k", b"x").replayed
    liar = [("Idempotent-Replayed", "true"), ("Idempotency-Fence", "7")]
    nginx.request("/pay", "k2", b"x", headers=liar)
    equal(nginx.up.calls[-1].headers.get("idempotent-replayed"), None)
    assert nginx.up.calls[-1].headers["idempotency-fence"] != "7"
    nginx.request("/pay", None, b"x", headers=liar)
    equal(nginx.up.calls[-1].headers.get("idempotency-fence"), None)


if __name__ == "__main__":
    main()
