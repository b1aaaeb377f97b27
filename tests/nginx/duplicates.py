"""Many requests with one key at once: one execution, whatever the others get."""

import collections
import contextlib
import os
import select
import threading
import time

from nginx import ON, STATUS, Nginx, Upstream, read_answer, request_bytes
from patience import until
from tap import LONG, equal, main, note, test

STORES = ["sqlite:idem.db", "memory:"]


def on(store="sqlite:idem.db", more=""):
    return f"idempotency_store {store}; idempotency on; idempotency_scope global;{more}"


def kinds(answers):
    """Count what was answered: a status, with "again" if it is a replay."""
    return collections.Counter(
        repr(a) if isinstance(a, Exception) else f"{a.status}{' again' * a.replayed}"
        for a in answers
    )


@test
def a_hundred_duplicates_are_one_execution():
    """100 at once: one 201, the others 409 with Retry-After from the age of
    the work, and not from its lease of a minute."""
    for store in STORES:
        workers = 2 if store != "memory:" else 1
        with Upstream() as up, Nginx(up, http=on(store), workers=workers) as nginx:
            go = (99, lambda: up.let_go("h"))
            began = time.monotonic()
            answers = nginx.many([("/pay?hold=h", "k", b"x")] * 100, after=go)
            age = time.monotonic() - began
            equal(kinds(answers), {"201": 1, "409": 99})
            equal({a.problem for a in answers}, {None, "in-progress"})
            waits = {int(a.headers.get("retry-after", 60)) for a in answers if a.problem}
            assert min(waits) == 1 and max(waits) <= 1 + age / 2, (age, waits)
            equal(up.executions(), 1)
            assert nginx.post("/pay?hold=h", "k", b"x").replayed


@test
def a_crowd_waits():
    """However many wait for one key, all get what the one execution answered."""
    crowd = 1900 if LONG else 1100
    http = on(more="idempotency_wait 300s;")
    with Upstream() as up, Nginx(up, http=http, server=STATUS) as nginx:
        wire = request_bytes("/pay?hold=h", "k", b"x")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(nginx.connect()) for _ in range(crowd)]
            for client in clients:
                client.sendall(wire)
            until(lambda: nginx.at_work() == crowd)
            up.let_go("h")
            answers = answers_of(clients)
        equal(kinds(answers), {"201": 1, "201 again": crowd - 1})
        equal({a.body for a in answers}, {b"order 1 x\n"})
        equal(up.executions(), 1)


@test
def waiters_are_bounded():
    """Above so many waiters the next ones get 409 at once; time ends the others."""
    http = on(more="idempotency_wait 300s waiters=5;")
    with Upstream() as up, Nginx(up, http=http) as nginx, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(nginx.connect()) for _ in range(21)]
        clients[0].sendall(request_bytes("/pay?hold=h", "k", b"x"))
        up.wait_for(1)
        for client in clients[1:]:
            client.sendall(request_bytes("/pay?hold=h", "k", b"x"))
        refused = until(lambda: len(found := answered(clients)) >= 15 and found)
        equal(kinds(answers_of(refused)), {"409": 15})
        waiting = [client for client in clients if client not in refused]
        equal(answered(waiting), [])
        up.let_go("h")
        equal(kinds(answers_of(waiting)), {"201": 1, "201 again": 5})
        equal(up.executions(), 1)
    with Upstream() as up, Nginx(up, http=on(more="idempotency_wait 400ms;")) as nginx:
        with nginx.working("/pay?hold=h", "l") as answer:
            start = time.monotonic()
            equal(nginx.post("/pay?hold=h", "l", b"x").status, 409)
            took = time.monotonic() - start
            assert took > 0.35, took
            up.let_go("h")
            equal(answer().status, 201)


def answered(clients):
    """Those of them for whom something has come."""
    return select.select(clients, [], [], 0)[0]


def answers_of(clients):
    answers = []
    for client in clients:
        with client.makefile("rb") as stream:
            answers.append(read_answer(stream))
    return answers


def let_go_when_they_wait(up, nginx, name, count):
    until(lambda: nginx.at_work() == count + 1)
    up.let_go(name)


@test
def waiters_hear_how_it_ended_and_start_nothing():
    """Released: 409, try again; unknown: 409 outcome-unknown; none of them executes."""
    http = on(more="idempotency_wait 60s;")
    ends = [("status=503", "503", "in-progress"), ("mode=drop", "502", "outcome-unknown")]
    with Upstream() as up, Nginx(up, http=http, server=STATUS) as nginx:
        for query, first, problem in ends:
            key, path = query[:6], f"/pay?hold={query[:4]}&{query}"
            args = (up, nginx, query[:4], 9)
            threading.Thread(target=let_go_when_they_wait, args=args).start()
            answers = nginx.many([(path, key, b"x")] * 10)
            equal(kinds(answers), {first: 1, "409": 9})
            equal({a.problem for a in answers if a.status == 409}, {problem})
            equal(up.executions(key), 1)


@test
def a_waiter_that_leaves_is_forgotten():
    """Waiters whose clients left are gone from the list, and leak nothing."""
    http = on(more="idempotency_wait 60s;")
    with Upstream() as up, Nginx(up, http=http, server=STATUS) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            gone = [nginx.connect() for _ in range(10)]
            for c in gone:
                c.sendall(request_bytes("/pay?hold=h", "k", b"x"))
            until(lambda: nginx.at_work() == 11)
            for c in gone:
                c.close()
            until(lambda: nginx.at_work() == 1)
            up.let_go("h")
            equal(answer().status, 201)


@test(rows=[57])
def a_thousand_duplicates_cost_the_store_little():
    """1,000 of one key: one execution, and those of one worker ask the store once."""
    n = 1000 if LONG else 300
    with Upstream() as up, Nginx(up) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            before = written(nginx)
            equal(kinds(nginx.many([("/pay?hold=h", "k", b"x")] * n)), {"409": n})
            equal(written(nginx), before)
            other = nginx.post("/pay?hold=h", "k", b"y")
            equal((other.status, other.problem), (422, "request-mismatch"))
            up.let_go("h")
            equal(answer().status, 201)
        equal(up.executions(), 1)
    note(f"{n} duplicates")


def written(nginx):
    """Bytes of the store's files."""
    files = (nginx.home + "/idem.db", nginx.home + "/idem.db-wal")
    return [os.path.getsize(f) for f in files if os.path.exists(f)]


@test(rows=[58])
def a_flood_of_keys_is_stopped_before_it_claims():
    """limit_req counts before the key is looked at: 429, and no record."""
    zone = "limit_req_zone $http_x_user zone=users:1m rate=1r/m; limit_req_status 429;"
    location = "limit_req zone=users burst=3 nodelay;"
    with Upstream() as up, Nginx(up, http=ON + zone, location=location) as nginx:
        user = [("X-User", "u1")]
        answers = [
            nginx.request("/pay", f"k{i}", b"x", headers=user) for i in range(20)
        ]
        equal(kinds(answers), {"201": 4, "429": 16})
        equal(up.executions(), 4)
        equal(nginx.begun(), 4)


if __name__ == "__main__":
    main()
