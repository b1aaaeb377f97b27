"""Directives: what they do, and the configurations that are refused."""

import base64
import gzip
import json
import os
import re
import time

from files import read, read_bytes, write
from nginx import (
    LOG,
    ON,
    STORE,
    Nginx,
    Upstream,
    read_answer,
    record,
    request_bytes,
)
from patience import PATIENCE, until
from tap import TOP, equal, main, note, test

SCOPED = STORE + "idempotency on;"


def refused():
    """Configurations that must not start: (what is wrong, http, more of the file)."""
    on = STORE + "idempotency on; idempotency_scope global;"
    yield "idempotency_scope", SCOPED, {}
    yield "idempotency_scope", SCOPED.replace(" on;", " required;"), {}
    yield "idempotency_store", "idempotency on; idempotency_scope global;", {}
    yield "is not a time from 2s to 36525d (500ms, 30s", on + "idempotency_lease 1s;", {}
    for store in "dynamodb://idem?region=local", "postgres:///x", "postgresql:///x":
        yield "must be 4s or more with a store in DynamoDB or PostgreSQL", (
            f"idempotency_store {store};" + on[len(STORE) :] + "idempotency_lease 3s;"), {}
    yield "idempotency_retention", on + "idempotency_retention 30s;", {}
    yield 'idempotency_retention: "soon" is not a time', on + "idempotency_retention soon;", {}
    yield '"60" is not a time', on + "idempotency_retention 60;", {}
    yield "bytes from 0 to 67108864", on + "idempotency_max_response 65m;", {}
    yield "HTTP statuses from 200 to 599", on + "idempotency_outcome 700=complete;", {}
    yield "HTTP statuses from 200 to 599", on + "idempotency_outcome 100=complete;", {}
    yield "an outcome is", on + "idempotency_outcome 500=keep;", {}
    yield "expected STATUS=OUTCOME", on + "idempotency_outcome 500 complete;", {}
    yield "invalid number of arg", on + "idempotency_outcome;", {}
    yield "is not a number from 0 to 4294967295", on + "idempotency_max_failures 4294967296;", {}
    yield "is not a time", on + "idempotency_retry_after 100000d;", {}
    yield "can never match", on + "idempotency_outcome 5xx=retry 503=release;", {}
    yield "without a status", on + "idempotency_outcome none=release;", {}
    yield "duplicate", on + "idempotency_outcome 500=retry; idempotency_outcome 501=retry;", {}
    yield "never replayed", on + "idempotency_replay_headers Set-Cookie;", {}
    yield "never replayed", on + "idempotency_replay_headers X-A Authorization;", {}
    yield "is not the name of a header", on + "idempotency_replay_headers 'a b';", {}
    yield "invalid value", on + "idempotency_methods GET;", {}
    yield "is not one of rerun, hold", on + "idempotency_on_expired_lease maybe;", {}
    yield "invalid value", on + "idempotency_on_store_error retry;", {}
    yield "invalid parameter", on + "idempotency_fingerprint cookies;", {}
    yield "either", on + "idempotency_fingerprint off body;", {}
    yield "failed", on + "idempotency_fingerprint body key_file=none;", {}
    yield "is not a time", on + "idempotency_wait long;", {}
    yield "invalid parameter", on + "idempotency_wait 1s maybe=2;", {}
    yield "invalid parameter", on + "idempotency_key 'a b';", {}
    yield "invalid parameter", "idempotency_store nowhere;" + on[len(STORE) :], {}
    for bad in ("end_timeout=", "end_timeout=0", "end_timeout=soon"):
        store = STORE.replace(";", f" {bad};")
        yield 'end_timeout: "', store + on[len(STORE) :], {}
    yield "invalid parameter", STORE[:-1] + " colour=red;" + on[len(STORE) :], {}
    for rate in "8", "8r", "8r/", "0r/d", "r/d", "8r/x", "-1r/s", "8r/0s", "8r/367d":
        yield "invalid rate", on + f"idempotency_limit a $arg_a {rate};", {}
    yield "invalid rate", on + "idempotency_limit a $arg_a 1000000000001r/d;", {}
    yield "invalid number of arg", on + "idempotency_limit a 8r/d;", {}
    yield "a name, a value and a rate", on + "idempotency_limit a;", {}
    yield "has a name", on + "idempotency_limit '' $arg_a 8r/d;", {}
    yield "has a name", on + f"idempotency_limit {'a' * 256} $arg_a 8r/d;", {}
    yield "duplicate", on + 2 * "idempotency_limit a $arg_a 8r/d;", {}
    yield "cannot combine", on + "idempotency_limit off; idempotency_limit a $arg_a 8r/d;", {}
    yield "cannot combine", on + "idempotency_limit a $arg_a 8r/d; idempotency_limit off;", {}
    yield "at most 8", on + "".join(
        f"idempotency_limit {name} $arg_a 8r/d;" for name in "abcdefghi"), {}
    yield "works in one worker only", on.replace("sqlite:idem.db", "memory:"), {"workers": 2}
    yield "duplicate", on + STORE, {}
    yield "duplicate", on + "idempotency_scope global;", {}
    yield "other parameters", on, {
        "location": "idempotency_store sqlite:idem.db timeout=1s;"}
    for what in ("proxy", "fastcgi", "uwsgi", "scgi", "grpc"):
        text = f"{what}_next_upstream error non_idempotent;"
        yield f"{what}_next_upstream non_idempotent", on, {"location": text}
    yield "grpc_pass", on, {"server": "location /g { grpc_pass grpc://127.0.0.1:1; }"}
    yield "error_page 502", on, {
        "location": "error_page 502 = @other;",
        "server": "location @other { proxy_pass http://app; }"}
    yield "post_action", on, {"location": "post_action /after;"}
    yield "unknown directive", on + "idempotency_colour red;", {}
    yield "not allowed here", on, {"main": "idempotency on;"}


@test
def what_cannot_be_safe_does_not_start():
    """Each is refused with a sentence that names it, and the line."""
    count = 0
    with Upstream() as up:
        nginx = Nginx(up)
        for word, http, more in refused():
            text = dict(server="", location="", main="", workers=1)
            text.update(more)
            got = nginx.check(http=http, **text)
            errors = got.stderr.decode() + nginx.errors()
            assert got.status != 0, f"{http} {more} was taken"
            lines = [line for line in errors.splitlines() if "[emerg]" in line]
            assert any(word in line for line in lines), f"{word}: {lines}"
            count += 1
            if os.path.exists(nginx.home + "/error.log"):
                os.unlink(nginx.home + "/error.log")
        everything = (
            ON + "idempotency_methods POST PUT; idempotency_lease 2s;"
            "idempotency_retention never; idempotency_on_expired_lease rerun;"
            "idempotency_wait 5s waiters=7; idempotency_key $arg_key;"
            "idempotency_fingerprint method path $http_x_version body;"
            "idempotency_outcome 409,500-502=unknown '503=release none=retry' 5xx=fail;"
            "idempotency_max_failures 4294967295; idempotency_retry_after 10m;"
            "idempotency_replay_headers X-A X-B;"
            "idempotency_max_request 1m; idempotency_max_response 64m;"
            "idempotency_keep_input on; idempotency_on_store_error pass;"
            "idempotency_limit a $arg_a 8r/s; idempotency_limit 'b b' x$arg_b 1r/30m;"
            "idempotency_limit c 1 1000000000000r/366d; idempotency_chain off;"
        )
        lease = ON.replace("sqlite:idem.db", "postgres:///x") + "idempotency_lease 4s;"
        for http in everything, lease:
            got = nginx.check(http=http, location="", main="")
            equal((got.status, got.stderr.count(b"[emerg]")), (0, 0))
    note(f"{count} configurations")


@test
def each_directive_is_documented():
    """idem-nginx(7) has every directive and variable of the module, and no other."""
    page = read(TOP, "man", "idem-nginx.7")
    source = read(TOP, "nginx", "ngx_http_idempotency_module.c")
    directives = re.findall(r'ngx_http_idem_\w+\("(idempotency\w*)",', source)
    assert len(directives) > 15, directives
    equal(re.findall(r"^\.It Ic (\w+)", page, re.M), directives)
    source = read(TOP, "nginx", "ngx_http_idempotency_variables.c")
    variables = re.findall(r'{ ngx_string\("(idempotency\w*)"\)', source)
    equal(re.findall(r"^\.It Li \$(\w+)", page, re.M), variables)


@test
def who_may_not_ask_learns_nothing():
    """Authentication comes before the look-up, and again before a replay."""
    users = ON.replace("global", "$remote_user")
    auth = "auth_basic x; auth_basic_user_file users;"

    def as_user(name, password="p"):
        word = base64.b64encode(f"{name}:{password}".encode()).decode()
        return [("Authorization", f"Basic {word}")]

    with Upstream() as up, Nginx(up, http=users, location=auth) as nginx:
        path = nginx.home + "/users"
        write(path, "ann:{PLAIN}p\nbob:{PLAIN}p\n")
        for _ in range(2):
            equal(nginx.post("/pay", "k", b"x").status, 401)
        equal(nginx.begun(), 0)
        first = nginx.request("/pay", "k", b"x", headers=as_user("ann"))
        equal(first.status, 201)
        assert nginx.request("/pay", "k", b"x", headers=as_user("ann")).replayed
        other = nginx.request("/pay", "k", b"x", headers=as_user("bob"))
        equal((other.replayed, up.executions()), (False, 2))
        write(path, "bob:{PLAIN}p\n")
        revoked = nginx.request("/pay", "k", b"x", headers=as_user("ann"))
        equal((revoked.status, up.executions()), (401, 2))


@test
def two_values_of_a_scope_are_refused():
    """Twice what a scope, a key or a limit is made of: 400, and nothing is executed or
    replayed, whichever of the two names another client. A list is one value."""
    def pairs(name):
        return [(name, "alice"), (name, "bob")]

    mapped = "map $http_x_client $client { default $http_x_client; }"
    cases = [
        ("$http_x_client", "", "/pay", "X-Client", "x-client"),
        ("a-${http_x_client}", "", "/pay", "X-Client", "X-CLIENT"),
        ("$client", mapped, "/pay", "X-Client", "x-Client"),
        ("$http_accept", "", "/pay", "Accept", "Accept"),
    ]
    for i, (scope, http, path, one, two) in enumerate(cases):
        key = f"k{i}"
        http += ON.replace("global", f"'{scope}'")
        with Upstream() as up, Nginx(up, http=http) as nginx:
            for who in "alice", "bob":
                equal(nginx.request(path, key, b"x", headers=[(one, who)]).replayed, False)
            for first, second in ("alice", "bob"), ("bob", "alice"), ("bob", "bob"), ("bob", ""):
                more = [(one, first), (two, second)]
                got = nginx.request(path, key, b"x", headers=more)
                equal((scope, got.status, got.problem), (scope, 400, "scope-ambiguous"))
            assert nginx.request(path, key, b"x", headers=[(one, "alice")]).replayed
            # What a proxy joined is one value, and names neither of them.
            equal(nginx.request(path, key, b"x", headers=[(one, "alice, bob")]).replayed, False)
            equal(nginx.request(path, None, b"x", headers=pairs(one)).status, 201)
            equal(up.executions(key), 3)

    refused = [
        ("$arg_client", "/pay?client=alice&client=bob", []),
        ("$arg_client", "/pay?a=1&CLIENT=alice&client=", []),
        ("$cookie_client", "/pay", [("Cookie", "client=alice; client=bob")]),
        ("$cookie_client", "/pay", [("Cookie", "client=alice"), ("Cookie", "a=b;client=bob")]),
        ("$remote_user", "/pay", [("Authorization", "Basic YWxpY2U6cA=="),
                                  ("Authorization", "Basic Ym9iOnA=")]),
    ]
    once = [
        ("$arg_client", "/pay?client=alice&xclient=bob&client2=c&client", []),
        ("$cookie_client", "/pay", [("Cookie", "client=alice; xclient=bob")]),
        ("$remote_user", "/pay", [("Authorization", "Basic YWxpY2U6cA==")]),
        ("$http_x_client", "/pay", [("X-Client", "alice"), ("X-Clients", "bob"),
                                    ("Accept", "a"), ("Accept", "b")]),
        ("$client", "/pay", [("X-Client", "alice"), ("Accept", "a"), ("Accept", "b")]),
    ]
    for wanted, several in (400, refused), (201, once):
        for scope, path, headers in several:
            http = mapped + "map $http_accept $any { default 1; }"
            http += ON.replace("global", f"'{scope}'")
            with Upstream() as up, Nginx(up, http=http) as nginx:
                got = nginx.request(path, scope, b"x", headers=headers)
                equal((scope, headers, got.status), (scope, headers, wanted))

    http = ON + "idempotency_key $http_x_key;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        got = nginx.request("/pay", None, b"x", headers=[("X-Key", "a"), ("X-Key", "b")])
        equal((got.status, got.problem), (400, "key-invalid"))
    http = ON + "idempotency_limit few $http_x_client 1r/d;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        got = nginx.request("/pay", "k", b"x", headers=pairs("X-Client"))
        equal((got.status, got.problem, up.executions()), (400, "scope-ambiguous", 0))


@test
def only_harmless_headers_are_replayed():
    """The allow-list and what is added to it; never cookies, credentials or CORS."""
    http = ON + "idempotency_replay_headers X-Kept; proxy_buffer_size 64k;"
    http += "proxy_buffers 4 64k; proxy_busy_buffers_size 64k;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        first = nginx.post("/pay?mode=secrets", "k", b"x")
        again = nginx.post("/pay?mode=secrets", "k", b"x")
        for name in "etag", "content-language", "x-kept", "location", "last-modified":
            equal((name, again.headers.get(name)), (name, first.headers[name]))
        never = ["set-cookie", "www-authenticate", "authorization", "x-request"]
        for name in [*never, "access-control-allow-origin"]:
            assert name in first.headers and name not in again.headers, name
        equal(again.headers["cache-control"], "no-store")
        range_ = [("Range", "bytes=0-1"), ("If-None-Match", '"e1"')]
        got = nginx.request("/pay?mode=secrets", "k", b"x", headers=range_)
        equal((got.status, got.body), (201, first.body))
        compared = [("If-None-Match", '"e1"')]
        path = "/pay?mode=secrets&status=200"
        for i in range(2):
            got = nginx.request(path, "etag", b"x", headers=compared)
            equal((got.status, got.replayed, len(got.body) > 0), (200, i == 1, True))
        raw = nginx.idem("show", "--json", "k").stdout
        assert b"session=" not in raw and b"X-Kept: kept" in raw, raw
        for i in range(2):
            got = nginx.post("/pay?mode=manyheaders", "many", b"x")
            equal(got.status, (201, 409)[i])
        equal(got.problem, "response-not-kept")


@test
def an_encoding_is_not_forced_on_a_client():
    """A recorded gzip body goes to those who take it; others get 406, nothing runs."""
    gz = [("Accept-Encoding", "gzip, br")]
    takers = [], [("Accept-Encoding", "*")], [("Accept-Encoding", "GZIP;q=0.1")]
    with Upstream() as up, Nginx(up) as nginx:
        first = nginx.request("/pay?mode=gzip", "k", b"x", headers=gz)
        for taker in gz, *takers:
            again = nginx.request("/pay?mode=gzip", "k", b"x", headers=taker)
            equal((again.body, again.headers["content-encoding"]), (first.body, "gzip"))
        for accept in "", "identity", "br", "gzip;q=0, *":
            other = [("Accept-Encoding", accept)]
            got = nginx.request("/pay?mode=gzip", "k", b"x", headers=other)
            equal((got.status, got.problem), (406, "encoding-not-acceptable"))
        equal(up.executions(), 1)
    with Upstream() as up, Nginx(up, http=ON + "gunzip on;") as nginx:
        first = nginx.request("/pay?mode=gzip", "k", b"x", headers=gz)
        again = nginx.request("/pay?mode=gzip", "k", b"x")
        equal(gzip.decompress(first.body), again.body)
        equal("content-encoding" in again.headers, False)
    filters = "gzip on; gzip_min_length 1; gzip_types text/plain; gzip_proxied any;"
    with Upstream() as up, Nginx(up, http=ON + filters) as nginx:
        first = nginx.request("/pay?status=200&size=5000", "z", b"x", headers=gz)
        equal(first.headers["content-encoding"], "gzip")
        again = nginx.request("/pay?status=200&size=5000", "z", b"x", headers=gz)
        plain = nginx.request("/pay?status=200&size=5000", "z", b"x")
        equal(gzip.decompress(again.body), plain.body)
        equal("content-encoding" in plain.headers, False)
        equal(gzip.decompress(first.body), plain.body)


@test(rows=[54])
def a_response_above_the_cap_is_passed_and_not_kept():
    """The first client gets it; then 409 response-not-kept; an endless one flows."""
    http = ON + "idempotency_max_response 100k;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        for mode in "plain", "chunked":
            for size, kept in (102400, True), (102401, False), (5_000_000, False):
                path = f"/pay?size={size}&mode={mode}"
                key = f"{mode}{size}"
                first = nginx.post(path, key, b"x")
                equal((first.status, len(first.body)), (201, size))
                again = nginx.post(path, key, b"x")
                if kept:
                    assert again.replayed and again.body == first.body
                else:
                    equal((again.status, again.problem), (409, "response-not-kept"))
                equal(up.executions(key), 1)
        with nginx.connect() as s:
            s.sendall(request_bytes("/pay?mode=noend", "noend", b"x"))
            got = b""
            end = time.monotonic() + PATIENCE
            while len(got) < 150_000 and time.monotonic() < end:
                got += s.recv(65536)
            assert got.startswith(b"HTTP/1.1 201"), got[:50]
            equal(nginx.post("/pay?mode=noend", "noend", b"x").problem, "response-not-kept")
        for status in 206, 304:
            key = f"s{status}"
            equal(nginx.post(f"/pay?status={status}", key, b"x").status, status)
            equal(nginx.post(f"/pay?status={status}", key, b"x").problem,
                  "response-not-kept")


@test
def what_a_record_cannot_hold_is_not_kept():
    """An answer of gRPC has its status in a trailer or in headers that are not kept: a
    grpc_pass with variables passes the check, and its answer is not replayed."""
    with Upstream() as up, Nginx(up) as nginx:
        for number, (kind, kept) in enumerate((
            ("application/grpc", False), ("application/grpc%2Bproto", False),
            ("Application/GRPC;a=b", False), ("application/grpc-web", True),
            ("application/grp", True),
        )):
            path = f"/pay?mode=grpc&type={kind}"
            equal(nginx.post(path, f"k{number}", b"x").status, 201)
            again = nginx.post(path, f"k{number}", b"x")
            equal((kind, again.replayed), (kind, kept))
            if not kept:
                equal(again.problem, "response-not-kept")
            equal(up.executions(f"k{number}"), 1)


@test
def internal_redirects_are_one_request():
    """error_page and X-Accel-Redirect: what the client saw is what is replayed."""
    server = (
        "location = /gone.html { internal; return 404 'gone\\n'; }"
        "location = /file.txt { internal; root .; }"
        "location /stopped { return 410 'stopped\\n'; }"
    )
    location = "proxy_intercept_errors on; error_page 404 410 /gone.html;"
    with Upstream() as up, Nginx(up, server=server, location=location) as nginx:
        write(nginx.home + "/file.txt", "from a file\n")
        for path, status, body in (
            ("/pay?status=404", 404, b"gone\n"),
            ("/pay?mode=accel", 200, b"from a file\n"),
        ):
            key = path[-3:]
            for i in range(2):
                got = nginx.post(path, key, b"x")
                equal((got.status, got.body, got.replayed), (status, body, i == 1))
            equal(up.executions(key), 1)
        for _ in range(2):
            equal(nginx.post("/stopped", "r", b"x").replayed, False)


@test
def outcomes_can_be_chosen():
    """idempotency_outcome: by status, range and class, the first one counts; a location has its own."""
    http = ON + "idempotency_outcome 503=complete 5xx=unknown 400-403,409=release;"
    own = "location /own { idempotency_outcome 404=release; proxy_pass http://app; }"
    with Upstream() as up, Nginx(up, http=http, server=own) as nginx:
        for status, runs in (404, 2), (400, 1), (503, 2):
            key = f"o{status}"
            for _ in range(2):
                nginx.post(f"/own?status={status}", key, b"x")
            equal((status, up.executions(key)), (status, runs))
        for status, runs in (500, 1), (503, 1), (400, 2), (403, 2), (404, 1), (409, 2):
            key = f"s{status}"
            nginx.post(f"/pay?status={status}", key, b"x")
            again = nginx.post(f"/pay?status={status}", key, b"x")
            equal((status, up.executions(key)), (status, runs))
            wanted = "outcome-unknown" if status == 500 else None
            equal((status, again.problem), (status, wanted))


@test
def failed_work_can_be_run_again():
    """retry: the answer goes out, and the next request is executed at once, as a takeover
    that the upstream is told of, also under hold, however often; fail: 409 failed. What
    nginx says of an upstream that did not answer may be run again too."""
    http = ON + (
        "idempotency_outcome 500,none=retry 422=fail;"
        "idempotency_lease 10m; proxy_read_timeout 500ms;"
    )
    with Upstream() as up, Nginx(up, http=http) as nginx:
        for turn in range(8):
            got = nginx.post("/pay?status=500", "k", b"x")
            equal((got.status, got.replayed, got.body[:5]), (500, False, b"order"))
            equal(record(nginx)["status"], "retry")
        heads = [call.headers for call in up.calls]
        equal([h["idempotency-attempts"] for h in heads], list("12345678"))
        equal([h.get("idempotency-takeover") for h in heads], [None] + ["true"] * 7)
        equal(nginx.post("/pay?status=500", "k", b"y").problem, "request-mismatch")

        for path in "/pay?mode=drop", "/pay?mode=cut", "/pay?mode=twolengths", "/pay?delay=900":
            key = path.replace("?", "").replace("=", "")
            equal(nginx.post(path, key, b"x").status, 504 if "delay" in path else 502)
            equal((path, record(nginx, key)["status"]), (path, "retry"))
            nginx.post(path, key, b"x")
            equal((path, up.executions(key)), (path, 2))
            equal(up.calls[-1].headers["idempotency-takeover"], "true")

        for turn in range(2):
            got = nginx.post("/pay?status=422", "f", b"x")
            equal((got.status, got.problem), [(422, None), (409, "failed")][turn])
        shown = record(nginx, "f")
        equal((shown["status"], up.executions("f")), ("failed", 1))
        assert "answered 422" in str(shown), shown
    counted = nginx.stats()
    equal((counted["retried"], counted["failed"]), (16, 1))


@test
def failures_have_a_budget_and_a_pause():
    """The third answer that is a retry, or the third time that there is none, goes out and
    makes the record failed, with the status and body of the last; who comes after it is told
    the error. In a pause a request is told how long it lasts, and after it is executed."""
    outcome = ON + LOG + "idempotency_outcome 500,none=retry; idempotency_max_failures 3;"
    with Upstream() as up, Nginx(up, http=outcome, log="idem") as nginx:
        for path, key in ("/pay?status=500", "s"), ("/pay?mode=drop", "d"):
            for status in "retry", "retry", "failed":
                equal(nginx.post(path, key, b"x").problem in (None, "upstream-broke-off"), True)
                equal(record(nginx, key)["status"], status)
            got = nginx.post(path, key, b"x")
            equal((got.status, got.problem, up.executions(key)), (409, "failed", 3))
        equal(json.loads(nginx.post("/pay?status=500", "s", b"x").body)["error"],
              "the service answered 500")
        shown = record(nginx, "s")
        equal((shown["failures"], shown["meta"].split()[1]), (3, "500"))
        equal(shown["result_len"], len(b"order 3 x\n"))
        until(lambda: len(nginx.log()) == 9)
        names = [line.split()[2] for line in nginx.log() if "started" in line]
        equal(names, ["retry", "retry", "failed"] * 2)
    with Upstream() as up, Nginx(up, http=outcome + "idempotency_retry_after 1h;") as nginx:
        equal(nginx.post("/pay?status=500", "k", b"x").status, 500)
        got = nginx.post("/pay?status=500", "k", b"x")
        equal((got.status, got.problem, up.executions()), (409, "in-progress", 1))
        assert 3500 < int(got.headers["retry-after"]) <= 3600, got.headers
    with Upstream() as up, Nginx(up, http=outcome + "idempotency_retry_after 2s;") as nginx:
        equal(nginx.post("/pay?status=500", "p", b"x").status, 500)
        until(lambda: nginx.post("/pay?status=500", "p", b"x").status == 500)
        equal(up.executions(), 2)


@test
def what_is_named_complete_is_a_success():
    """A 503 that the table names complete is recorded as a success, and replayed as it was; a 500 by default is a failure."""
    with Upstream() as up, Nginx(up, http=ON + "idempotency_outcome 503=complete;") as nginx:
        for _ in range(2):
            for status in 503, 500:
                equal(nginx.post(f"/pay?status={status}", f"s{status}", b"x").status, status)
        assert record(nginx, "s503")["meta"].startswith("HTTP 503 complete\n"), record(nginx, "s503")
        assert record(nginx, "s500")["meta"].startswith("HTTP 500\n"), record(nginx, "s500")
        failed = nginx.idem("list", "--failed").stdout
        equal((b"s500" in failed, b"s503" in failed), (True, False))


@test
def no_answer_follows_the_policy():
    """An incomplete answer leaves no status: unknown under hold, a retry under rerun, what none= says in either; "*" is not about it."""
    paths = "/pay?mode=drop", "/pay?mode=cut", "/pay?mode=twolengths", "/pay?delay=900"
    for more, wanted in (
        ("", "unknown"),
        ("idempotency_outcome *=complete;", "unknown"),
        ("idempotency_outcome none=fail;", "failed"),
        ("idempotency_on_expired_lease rerun;", "retry"),
        ("idempotency_on_expired_lease rerun; idempotency_outcome none=unknown;", "unknown"),
    ):
        http = ON + "proxy_read_timeout 500ms;" + more
        with Upstream() as up, Nginx(up, http=http) as nginx:
            for n, path in enumerate(paths):
                key = f"{wanted}{len(more)}{n}"
                nginx.post(path, key, b"x")
                equal((more, path, record(nginx, key)["status"]), (more, path, wanted))


@test
def a_waiter_is_not_kept_from_a_retry():
    """Who waits for an attempt that is to be run again is told to come at once."""
    http = ON + "idempotency_outcome 500=retry; idempotency_wait 30s;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        with nginx.connect() as s, s.makefile("rb") as stream:
            with nginx.connect() as t, t.makefile("rb") as other:
                path = "/pay?status=500&hold=h"
                s.sendall(request_bytes(path, "k", b"x"))
                up.wait_for(1)
                t.sendall(request_bytes(path, "k", b"x"))
                time.sleep(2)  # It needs a moment to come to its wait.
                up.let_go("h")
                equal(read_answer(stream).status, 500)
                got = read_answer(other)
                equal((got.status, got.problem), (409, "in-progress"))
                equal(got.headers["retry-after"], "1")
        equal(nginx.post(path, "k", b"x").status, 500)
        equal(up.executions(), 2)


@test
def the_chain_goes_on():
    """The upstream gets fence and attempts with the client's key; off means off."""
    with Upstream() as up, Nginx(up) as nginx:
        nginx.post("/pay?status=503", "k", b"x")
        nginx.post("/pay?status=503", "k", b"x")
        one, two = (c.headers for c in up.calls)
        equal(int(two["idempotency-fence"]) > int(one["idempotency-fence"]), True)
        equal(two["idempotency-attempts"], "2")
        equal("idempotency-takeover" in two, False)
    with Upstream() as up, Nginx(up, http=ON + "idempotency_chain off;") as nginx:
        nginx.request("/pay", "k", b"x", headers=[("Idempotency-Fence", "1")])
        equal("idempotency-fence" in up.calls[0].headers, False)


@test
def headers_that_are_ours_are_taken_out_wherever_they_stand():
    """Client headers that only we may send are gone, and none of the others is."""
    ours = ("Idempotency-Fence", "Idempotent-Replayed", "Idempotency-Takeover")
    count = 0
    with Upstream() as up, Nginx(up) as nginx:
        for others in 0, 1, 15, 16, 17, 18, 19, 20, 21, 40:
            for at in {0, 1, others // 2, max(others - 1, 0), others}:
                more = [(f"X-{i}", f"v{i}") for i in range(others)]
                more[at:at] = [(name, "spoofed") for name in ours]
                for key in (f"k{others}-{at}", None):
                    got = nginx.request("/pay", key, b"x", headers=more)
                    equal(got.status, 201)
                    seen = up.calls[-1].headers
                    assert "spoofed" not in seen.values(), seen
                    for i in range(others):
                        equal(seen[f"x-{i}"], f"v{i}")
                    count += 1
    note(f"{count} requests")


@test
def what_counts_can_be_chosen():
    """idempotency_fingerprint: off, some parts, variables, and a secret."""
    keys = iter(range(100))

    def asked(http):
        key = f"k{next(keys)}"
        with Upstream() as up, Nginx(up, http=ON + http) as nginx:
            nginx.post("/a?x=1", key, b"b")
            path = nginx.post("/b?x=1", key, b"b").status
            body = nginx.post("/a?x=1", key, b"c").status
            more = [("X-Version", "2")]
            version = nginx.request("/a?x=1", key, b"b", headers=more).status
            return path, body, version

    equal(asked(""), (422, 422, 201))
    equal(asked("idempotency_fingerprint off;"), (201, 201, 201))
    equal(asked("idempotency_fingerprint path;"), (422, 201, 201))
    equal(asked("idempotency_fingerprint body $http_x_version;"), (201, 422, 422))
    os.makedirs("ngx", exist_ok=True)
    write("ngx/secret", os.urandom(32))
    equal(asked(f"idempotency_fingerprint default key_file={os.getcwd()}/ngx/secret;"),
          (422, 422, 201))


@test
def a_body_counts_by_what_its_type_means():
    """JSON by its canonical form and a form by its parts, in memory or in a file; where
    they are not that, and of every other type, by the bytes."""
    text = "application/json"
    form = "multipart/form-data; boundary="
    pad = " " * 100_000  # Goes to a file.
    part = 'Content-Disposition: form-data; name="f"; filename="a"\r\n\r\n\x00\xff{}'
    more = "x" * 2_000_000

    def of(boundary, content):
        return f"--{boundary}\r\n{part.format(content)}\r\n--{boundary}--\r\n"

    rows = [
        (text, '{"a":1,"b":2}', text, '{ "b": 2.0, "\\u0061": 10e-1 }', 201),
        (text, '{"a":1,"b":2}', text, '{"b":2,' + pad + '"a":1}', 201),
        (text, "[1]", text, '["1"]', 422),
        (text, "9007199254740993", text, "9007199254740992", 422),
        (text, "1e999999999", text, "10e999999998", 201),
        (text, '{"a":1,"a":2}', text, '{"a":1, "a":2}', 422),
        (text, "[1]" + 11 * pad, text, " [1]" + 11 * pad, 422),
        (text, "[1]", text + "; charset=utf-8", "[1]", 422),
        ("text/plain", "[1]", "text/plain", "[1 ]", 422),
        (None, "[1]", None, "[1 ]", 201),
        (None, "1", None, "1.0", 422),
        (form + "one", of("one", ""), form + '"two"', of("two", ""), 201),
        ("multipart/form-data ; boundary=a", of("a", ""),
         "Multipart/Form-Data ;boundary=b", of("b", ""), 201),
        (form + "one", of("one", more), form + "other", of("other", more), 201),
        (form + "one", of("one", ""), form + "one", of("one", "\xff"), 422),
        (form + "one", of("one", ""), form + "one", of("two", ""), 422),
        ("multipart/mixed; boundary=b", of("b", ""), "multipart/mixed; boundary=c", of("c", ""), 422),
    ]
    with Upstream() as up, Nginx(up, http=ON) as nginx:
        for i, (first_type, first, type_, body, status) in enumerate(rows):
            for content_type, content, want in (first_type, first, 201), (type_, body, status):
                got = nginx.post("/pay", f"k{i}", content.encode("latin-1"),
                                 headers=[("Content-Type", content_type)] if content_type else ())
                equal((i, got.status), (i, want))
            equal((i, got.replayed), (i, status == 201))


@test
def the_key_can_be_another_header():
    """idempotency_key: the name of a header, or a variable."""
    for http, headers in (
        ("idempotency_key X-Request-Key;", [("X-Request-Key", "k")]),
        ("idempotency_key $http_x_a-$http_x_b;", [("X-A", "1"), ("X-B", "2")]),
    ):
        with Upstream() as up, Nginx(up, http=ON + http) as nginx:
            for i in range(2):
                got = nginx.request("/pay", None, b"x", headers=headers)
                equal((got.status, got.replayed), (201, i == 1))


@test
def the_request_can_be_kept():
    """idempotency_keep_input: what a person needs who looks at an unknown outcome."""
    with Upstream() as up:
        with Nginx(up, http=ON + "idempotency_keep_input on;") as nginx:
            more = [("Content-Type", "text/x"), ("Authorization", "Bearer s3cret")]
            nginx.request("/pay?mode=drop", "k", b"amount=5", headers=more)
            shown = record(nginx)
            equal(shown["status"], "unknown")
            kept = b"POST /pay?mode=drop HTTP/1.1\r\nHost: h\r\n"
            kept += b"Content-Type: text/x\r\n\r\namount=5"
            equal(shown["input_len"], len(kept))
            # A request without a body is kept, too.
            head = b"POST /pay HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"
            for _ in range(2):
                got = nginx.raw(head + b"Idempotency-Key: empty\r\n\r\n")
                equal(got[0].status, 201)
        kept_files = b"".join(
            read_bytes(nginx.home, name) for name in ("idem.db", "idem.db-wal")
        )
        assert kept in kept_files and b"s3cret" not in kept_files


@test
def the_log_tells_the_story():
    """Variables for the log: verdict, outcome, identity, fence; no key in clear."""
    with Upstream() as up:
        with Nginx(up, http=ON + LOG, log="idem") as nginx:
            nginx.post("/pay", "s3cret-key", b"x")
            nginx.post("/pay", "s3cret-key", b"x")
            nginx.post("/pay", "s3cret-key", b"y")
            nginx.post("/pay", None, b"y")
            until(lambda: len(nginx.log()) == 4)
            lines = [line.split() for line in nginx.log()]
            equal([line[:3] for line in lines], [
                ["201", "started", "completed"], ["201", "replayed", "-"],
                ["422", "mismatch", "-"], ["201", "-", "-"]])
            equal(len({line[3] for line in lines[:3]}), 1)
            equal((len(lines[0][3]), lines[0][5]), (16, "1"))
            assert "s3cret" not in nginx.errors() + "".join(nginx.log())


@test
def the_meter_of_the_host_counts_too():
    """With IDEM_METER in the environment idem stats counts what nginx asked of the
    store, errors and times too; a meter that is none is said, and nothing else."""
    meter = {"IDEM_METER": os.path.abspath("meter")}
    look = ("stats", "--format", "prometheus")
    with Upstream() as up:
        with Nginx(up, env=meter, main="env IDEM_METER;") as nginx:
            for body in (b"x", b"x", b"y"):
                nginx.post("/pay", "a", body)
        text = nginx.idem(*look, env=meter).stdout.decode()
        calls = dict(re.findall(r'^idem_store_call_seconds_count\{.*call="(\w+)"} (\d+)$', text, re.M))
        equal((calls["begin"], calls["end"]), ("3", "1"))
        assert b"idem_store_call" not in nginx.idem(*look).stdout

        write("meter", "dear aunt")
        with Nginx(up, env=meter, main="env IDEM_METER;") as nginx:
            equal(nginx.post("/pay", "b", b"x").status, 201)
            assert "IDEM_METER: " in nginx.errors(), nginx.errors()


if __name__ == "__main__":
    main()
