"""One execution and its replays: the promise, and its control without the module."""

import json

from nginx import ON, Nginx, Upstream
from tap import equal, main, note, test


def same(first, again):
    """@again is @first, but for what says that it is a replay."""
    ours = ("idempotent-replayed", "cache-control", "date", "connection")
    kept = ("content-type", "content-length", "location", "idempotency-expires")
    equal((again.status, again.body), (first.status, first.body))
    for name in kept:
        equal((name, again.headers.get(name)), (name, first.headers.get(name)))
    extra = set(again.headers) - set(first.headers) - set(ours)
    equal(extra, set())
    assert again.replayed and not first.replayed, again.headers


@test
def the_second_request_is_answered_from_the_record():
    """201, then the same 201 with Idempotent-Replayed: true, and one execution."""
    with Upstream() as up, Nginx(up) as nginx:
        first = nginx.post("/pay", '"order-42"', b"amount=5")
        equal((first.status, first.body), (201, b"order 1 amount=5\n"))
        for key in '"order-42"', "order-42", '  "order-42"  ':
            same(first, nginx.post("/pay", key, b"amount=5"))
        equal(up.executions(), 1)
    stats = nginx.stats()
    equal((stats["started"], stats["replayed"], stats["completed"]), (1, 3, 1))


@test
def without_the_module_it_is_executed_twice():
    """The control: without the module, and without a key, there are two executions."""
    with Upstream() as up, Nginx(up, http="", module=False) as nginx:
        for _ in range(2):
            equal(nginx.post("/pay", "order-42", b"x").status, 201)
        equal(up.executions(), 2)
    with Upstream() as up, Nginx(up) as nginx:
        answers = [nginx.post("/pay", None, b"x") for _ in range(2)]
        equal([a.replayed for a in answers], [False, False])
        equal(up.executions(), 2)


@test
def another_request_with_the_key_is_refused():
    """What differs in method, host, path, query, type or body is a mismatch: 422."""
    others = [
        dict(method="PATCH"),
        dict(host="other"),
        dict(path="/pay/"),
        dict(path="/pay?"),
        dict(path="/pay?a=1"),
        dict(path="/pa%79"),
        dict(body=b"amount=6"),
        dict(body=b""),
        dict(headers=[("Content-Type", "text/x")]),
    ]
    with Upstream() as up, Nginx(up) as nginx:
        first = nginx.post("/pay", "k", b"amount=5")
        equal(first.status, 201)
        for other in others:
            got = nginx.request(**{"path": "/pay", "key": "k", "body": b"amount=5", **other})
            equal((other, got.status, got.problem), (other, 422, "request-mismatch"))
        equal(up.executions(), 1)
        same = [("User-Agent", "other"), ("Accept", "text/html"), ("Range", "bytes=0-1")]
        for headers in (), same:
            assert nginx.request("/pay", "k", b"amount=5", headers=headers).replayed
    note(f"{len(others)} requests that differ in one thing")


@test
def answers_of_every_shape_are_replayed():
    """No body, 204, every size around the buffers, chunked: the same bytes again."""
    sizes = [0, 1, 4095, 4096, 4097, 8191, 65535, 65536, 65537, 300_000, 3_000_000]
    paths = ["/a?status=204", "/a?status=200&mode=chunked&size=0"]
    paths += [f"/a?size={size}" for size in sizes]
    paths += [f"/a?mode=chunked&size={size}" for size in sizes]
    with Upstream() as up:
        for more in "", "proxy_buffering off;":
            with Nginx(up, http=ON + more) as nginx:
                for path in paths:
                    key = f"{path}{more}".translate(str.maketrans(";", "_", " "))
                    first = nginx.post(path, key)
                    again = nginx.post(path, key)
                    assert again.replayed and not first.replayed, path
                    equal((again.status, len(again.body)), (first.status, len(first.body)))
                    assert again.body == first.body, path
        equal(up.executions(), 2 * len(paths))
    note(f"{2 * len(paths)} shapes")


@test
def the_trace_of_the_caller_is_kept_and_passed_on():
    """One traceparent; of two the record has none."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with Upstream() as up, Nginx(up) as nginx:
        for key, n in ("one", 1), ("two", 2):
            equal(nginx.request("/pay", key, b"5", headers=[("Traceparent", trace)] * n).status, 201)
        equal([call.headers["traceparent"] for call in up.calls], [trace, trace])
        shown = nginx.idem("list", "--json").stdout
        kept = {r["key"]: r.get("traceparent") for r in map(json.loads, shown.splitlines())}
        equal(kept, {"one": trace, "two": None})


@test
def nothing_is_executed_once_the_store_was_moved():
    """503 for a new key and for a known one; the error log says where the store went."""
    with Upstream() as up, Nginx(up) as nginx:
        equal(nginx.post("/pay", "a").status, 201)
        leave = ("export", "--open", "--to", "sqlite:new.db", "moved.jsonl")
        equal(nginx.idem(*leave).status, 0)
        for key in "ab":
            got = nginx.post("/pay", key)
            equal((got.status, got.problem), (503, "store-unavailable"))
            assert b"new.db" not in got.body, got
        equal(up.executions(), 1)
        equal(nginx.errors().count("the store was moved to sqlite:new.db"), 2)


if __name__ == "__main__":
    main()
