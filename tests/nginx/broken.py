"""Upstreams, clients and workers that break off: no effect is lost or doubled."""

import os
import select
import signal
import socket
import time

from kept import kept
from nginx import (
    ON,
    STATUS,
    Nginx,
    Upstream,
    held,
    read_answer,
    record,
    request_bytes,
)
from patience import PATIENCE, until
from ports import free_port
from tap import equal, main, note, test

PATIENT = ON.replace("idem.db;", "idem.db timeout=60s;")


@test(rows=[50])
def a_refused_connection_is_not_an_execution():
    """Nothing was sent: 502, the key is released, and the retry is executed."""
    port = free_port()
    with Nginx(port) as nginx:
        first = nginx.post("/pay", "k", b"x")
        equal((first.status, record(nginx)["status"]), (502, "released"))
        with Upstream(port) as up:
            equal(nginx.post("/pay", "k", b"x").status, 201)
            assert nginx.post("/pay", "k", b"x").replayed
            equal(up.executions(), 1)


@test(rows=[51, 55])
def an_answer_that_breaks_off_is_unknown():
    """Sent, and no whole answer: 502 or 504, then 409 outcome-unknown, one execution."""
    modes = ["drop", "reset", "cut", "cutreset", "chunkcut", "garbage", "halfhead"]
    modes += ["nohttp"]
    http = ON + "idempotency_max_response 100k;"
    server = "location /late { proxy_read_timeout 300ms; proxy_pass http://app; }"
    with Upstream() as up, Nginx(up, http=http, server=server) as nginx:
        for mode in modes:
            for size in ("", "&size=100000") if "cut" in mode else ("",):
                path = f"/pay?mode={mode}{size}"
                key = mode + size.replace("&", "")
                first = nginx.post(path, key, b"x")
                equal((mode, first.status), (mode, 502))
                again = nginx.post(path, key, b"x")
                equal((mode, again.status, again.problem), (mode, 409, "outcome-unknown"))
                equal("retry-after" in again.headers, False)
                equal(up.executions(key), 1)
                equal(record(nginx, key)["status"], "unknown")
        equal(nginx.post("/late?hold=late", "late", b"x").status, 504)
        equal(nginx.post("/late?hold=late", "late", b"x").problem, "outcome-unknown")
        up.wait_for(1, "late")
        equal(up.executions("late"), 1)
    note(f"{len(modes) + 3} ways to break off")


@test
def an_answer_that_cannot_be_whole_is_unknown():
    """Two lengths, a length that is no number, an interim response as the last one, a
    101 that nobody asked for: 502 at once, never a record that is cut. What nginx says in
    place of an answer is not the word of the upstream, whatever its status releases."""
    modes = ["twolengths", "threelengths", "badlength", "early", "early&then=close", "switch"]
    modes += ["garbage", "drop"]
    http = ON + "idempotency_outcome 502,504=release;"
    with Upstream() as up:
        for more in "", "proxy_buffering off;":
            with Nginx(up, http=http + more) as nginx:
                for mode in modes:
                    path = f"/pay?mode={mode}"
                    key = mode.replace("&", "-") + str(len(more))
                    first = nginx.request(path, key, b"x", timeout=PATIENCE / 2)
                    equal((mode, first.status), (mode, 502))
                    equal(nginx.post(path, key, b"x").problem, "outcome-unknown")
                    if mode not in ("garbage", "drop"):
                        equal((mode, first.problem), (mode, "upstream-broke-off"))
                    equal(up.executions(key), 1)
    note(f"{2 * len(modes)} answers")


@test(rows=[52, 53])
def the_status_says_what_became_of_the_work():
    """401, 407, 408, 425, 429, 503 release; 502, 504 are unknown; all else is stored."""
    stored = [200, 201, 202, 204, 301, 400, 403, 404, 409, 410, 422, 500, 501, 505]
    with Upstream() as up, Nginx(up) as nginx:
        for status in [*stored, 401, 407, 408, 425, 429, 503, 502, 504]:
            key = f"s{status}"
            first = nginx.post(f"/pay?status={status}", key)
            equal(first.status, status)
            again = nginx.post(f"/pay?status={status}", key)
            if status in stored:
                equal((status, again.status, again.replayed), (status, status, True))
                equal((again.body, up.executions(key)), (first.body, 1))
            elif status in (502, 504):
                equal((status, again.problem), (status, "outcome-unknown"))
                equal(up.executions(key), 1)
            else:
                equal((status, again.status, again.replayed), (status, status, False))
                equal(up.executions(key), 2)
    note(f"{len(stored) + 8} statuses")


@test(rows=[56])
def no_second_server_is_tried_once_one_may_have_worked():
    """Two servers, the first dies with the request: one execution, for every method."""
    methods = "idempotency_methods POST PATCH PUT DELETE;"
    with Upstream() as one, Upstream() as two:
        servers = "".join(f"server 127.0.0.1:{u.port} max_fails=0;" for u in (one, two))
        http = f"upstream pair {{ {servers} }}"
        location = "location /pair { proxy_pass http://pair; }"
        for more, wanted in (ON + methods, 1), ("", 2):
            with Nginx(one, http=more + http, server=location) as nginx:
                for method in "POST", "PATCH", "PUT", "DELETE":
                    key = f"{method}{wanted}"
                    got = nginx.request("/pair?mode=drop", key, b"", method)
                    equal((method, got.status), (method, 502))
                    count = one.executions(key) + two.executions(key)
                    retried = method in ("PUT", "DELETE") and not more
                    equal((method, count), (method, 2 if retried else 1))


@test(rows=[48])
def a_client_that_leaves_does_not_stop_the_work():
    """FIN and RST while the upstream works: it finishes, and the retry is a replay."""
    with Upstream() as up, Nginx(up, server=STATUS) as nginx:
        for i, linger in enumerate([None, b"\x01\0\0\0\0\0\0\0"] * 3):
            key = f"gone{i}"
            path = f"/pay?hold={key}" + ("&size=200000" if i > 3 else "")
            s = nginx.connect()
            s.sendall(request_bytes(path, key, b"x"))
            up.wait_for(1, key)
            if linger:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            s.close()
            busy = nginx.post(path, key, b"x")
            equal((busy.status, busy.problem), (409, "in-progress"))
            up.let_go(key)
            until(lambda: record(nginx, key)["status"] == "completed")
            # On record is before the worker has heard that it is.
            until(lambda: nginx.post(path, key, b"x").replayed)
            equal(up.executions(key), 1)
        equal(nginx.at_work(), 0)


@test
def it_goes_on_wherever_the_work_is_sent():
    """Through variables, try_files, a mirror, and a key that is met in a named
    location: one execution, although the client leaves."""
    with Upstream() as up:
        proxy = "proxy_pass http://app;"
        server = (
            f"location /variable {{ set $at 127.0.0.1:{up.port};"
            " proxy_pass http://$at; }"
            f"location /try {{ try_files /none @app; }} location @app {{ {proxy} }}"
            f"location /mirrored {{ mirror /mirror; {proxy} }}"
            f"location /mirror {{ internal; idempotency off; proxy_set_header"
            f" Idempotency-Key copy; {proxy} }}"
            f"location /named {{ idempotency off; try_files /none @named; }}"
            f"location @named {{ {proxy} }}"
        )
        with Nginx(up, server=server) as nginx:
            for path in "/variable", "/try", "/mirrored", "/named":
                key = path.strip("/")
                with nginx.working(path + "?delay=150", key):
                    pass  # The client leaves.
                until(lambda: (record(nginx, key) or {}).get("status") == "completed")
                assert nginx.post(path + "?delay=150", key, b"x").replayed
                equal((key, up.executions(key)), (key, 1))
            up.wait_for(1, "copy")
            equal(up.executions("copy"), 1)


@test
def without_the_module_it_stops_the_work():
    """The control: plain proxy_pass drops its upstream when the client leaves."""
    with Upstream() as up, Nginx(up, http="", module=False) as nginx:
        s = nginx.connect()
        s.sendall(request_bytes("/pay?hold=h", "k", b"x"))
        up.wait_for(1)
        s.close()
        until(lambda: any(" 499 " in line for line in nginx.log()))


@test(rows=[49])
def a_client_that_leaves_in_its_body_claims_nothing():
    """At every part of the request: no record, and the retry is executed."""
    data = request_bytes("/pay", "k", b"0123456789")
    with Upstream() as up, Nginx(up) as nginx:
        for n in range(len(data)):
            with nginx.connect() as s:
                s.sendall(data[:n])
        time.sleep(0.1)
        equal((record(nginx), up.executions()), (None, 0))
        equal(nginx.post("/pay", "k", b"0123456789").status, 201)
    note(f"left at {len(data)} bytes")


@test(rows=[46])
def a_killed_worker_leaves_its_keys_in_progress():
    """409 until the lease is over, then unknown under hold, and a takeover under rerun."""
    for policy in "hold", "rerun":
        http = ON + f"idempotency_lease 10s; idempotency_on_expired_lease {policy};"
        with Upstream() as up, Nginx(up, http=http) as nginx:
            for turn in range(5):
                key = f"{policy}{turn}"
                busy, took = killed_at_work(up, nginx, key)
                if busy.problem == "in-progress" or took < 6:
                    break
            else:
                raise AssertionError("too slow to tell")
            equal((busy.status, busy.problem), (409, "in-progress"))
            assert 1 <= int(busy.headers["retry-after"]) <= 10, busy.headers
            again = until(lambda: later(nginx, key))
            if policy == "hold":
                equal((again.status, again.problem), (409, "outcome-unknown"))
                equal(up.executions(key), 1)
            else:
                equal(again.status, 201)
                calls = [c.headers for c in up.calls if c.key == key]
                equal([c["idempotency-attempts"] for c in calls], ["1", "2"])
                equal([c.get("idempotency-takeover") for c in calls], [None, "true"])
                assert int(calls[1]["idempotency-fence"]) > int(
                    calls[0]["idempotency-fence"]
                )


def killed_at_work(up, nginx, key):
    """Kill the worker while it works; return what the next one answers, and how long
    after the kill that was."""
    with nginx.working(f"/pay?hold={key}", key):
        worker = nginx.workers()
        killed = time.monotonic()
        os.kill(worker[0], signal.SIGKILL)
        until(lambda: nginx.workers() not in ([], worker))
    up.let_go(key)
    return until(lambda: tried(nginx, key)), time.monotonic() - killed


def tried(nginx, key):
    try:
        return nginx.post(f"/pay?hold={key}", key, b"x")
    except OSError:
        return None


def later(nginx, key):
    got = nginx.post(f"/pay?hold={key}", key, b"x")
    return None if got.problem == "in-progress" else got


@test(rows=[47, 69])
def a_reload_loses_nothing():
    """The old worker ends its work; the new one answers 409 meanwhile, then replays."""
    with Upstream() as up, Nginx(up) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            old = set(nginx.workers())
            nginx.reload()
            until(lambda: set(nginx.workers()) - old)
            until(lambda: "gracefully shutting down" in nginx.errors())
            busy = nginx.post("/pay?hold=h", "k", b"x")
            equal((busy.status, busy.problem), (409, "in-progress"))
            up.let_go("h")
            equal(answer().status, 201)
        assert nginx.post("/pay?hold=h", "k", b"x").replayed
        equal(up.executions(), 1)
        until(lambda: not old & set(nginx.workers()))


@test
def the_lease_of_long_work_is_renewed():
    """Work that outlasts its lease keeps its key; nobody takes over."""
    http = ON + "idempotency_lease 10s; idempotency_on_expired_lease rerun;"
    ends = set()
    with Upstream() as up, Nginx(up, http=http) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            end = time.monotonic() + 12
            while time.monotonic() < end or len(ends) <= 3:
                equal(nginx.post("/pay?hold=h", "k", b"x").problem, "in-progress")
                ends.add(record(nginx)["lease_end_ms"])
                time.sleep(0.3)
            up.let_go("h")
            equal(answer().status, 201)
        assert nginx.post("/pay?hold=h", "k", b"x").replayed
        equal(up.executions(), 1)
    note(f"{len(ends) - 1} renewals")


@test
def a_store_that_cannot_be_opened_refuses():
    """503 and Retry-After, nothing is executed; with pass it is, and says so."""
    bad = "idempotency_store sqlite:no/such/place.db; idempotency on;"
    bad += "idempotency_scope global;"
    with Upstream() as up, Nginx(up, http=bad) as nginx:
        got = nginx.post("/pay", "k", b"x")
        equal((got.status, got.problem), (503, "store-unavailable"))
        assert int(got.headers["retry-after"]) >= 1
        said = [line for line in nginx.errors().splitlines() if "cannot look up a key: " in line]
        assert said and "look up a key: the store is away" in said[0], said
        equal(up.executions(), 0)
        equal(nginx.post("/pay", None, b"x").status, 201)
    with Upstream() as up:
        with Nginx(up, http=bad + "idempotency_on_store_error pass;") as nginx:
            got = nginx.post("/pay", "k", b"x")
            equal((got.status, got.headers["idempotency-recorded"]), (201, "false"))
            equal(up.executions(), 1)


@test
def a_store_that_is_away_at_the_end_costs_no_answer():
    """The real answer with Idempotency-Recorded: false; the outcome in the journal."""
    http = ON.replace("idem.db;", "idem.db timeout=60s end_timeout=2s;")
    with Upstream() as up, Nginx(up, http=http) as nginx:
        equal(nginx.post("/warm", "warm").status, 201)
        with nginx.working("/pay?hold=h") as answer:
            with held(nginx.home + "/idem.db"):
                up.let_go("h")
                got = answer()
                equal(len(kept(nginx.home + "/idem.db.journal")), 1)
            equal((got.status, got.headers["idempotency-recorded"]), (201, "false"))
            assert b"order" in got.body
        until(lambda: not kept(nginx.home + "/idem.db.journal"))
        again = nginx.post("/pay?hold=h", "k", b"x")
        equal((again.replayed, again.body), (True, got.body))
        equal(up.executions("k"), 1)


@test
def no_byte_goes_out_before_the_record():
    """The upstream has answered, the store has not: the client sees nothing, and a
    reload in that moment loses nothing."""
    with Upstream() as up, Nginx(up, http=PATIENT, workers=1) as nginx:
        equal(nginx.post("/warm", "warm").status, 201)
        for path in "/pay", "/pay?size=200000", "/pay?status=204", "/pay?mode=chunked":
            with nginx.connect() as s, s.makefile("rb") as stream:
                s.sendall(request_bytes(path + "&hold=h" if "?" in path else
                                        path + "?hold=h", path, b"x"))
                up.wait_for(1, path)
                old = set(nginx.workers())
                with held(nginx.home + "/idem.db"):
                    up.let_go("h")
                    equal(select.select([s], [], [], 0.2)[0], [])
                    if path == "/pay":
                        nginx.reload()
                        until(lambda: set(nginx.workers()) - old)
                        equal(select.select([s], [], [], 0.2)[0], [])
                assert read_answer(stream).status in (201, 204)
            up.hold_again("h")
        equal(up.executions(), 5)


@test
def a_reload_while_the_store_is_asked_loses_nothing():
    """The old worker waits for its claim, executes it, and answers."""
    with Upstream() as up, Nginx(up, http=PATIENT) as nginx:
        equal(nginx.post("/warm", "warm").status, 201)
        with nginx.connect() as s, s.makefile("rb") as stream:
            with held(nginx.home + "/idem.db"):
                s.sendall(request_bytes("/pay", "k", b"x"))
                old = set(nginx.workers())
                time.sleep(0.1)
                nginx.reload()
                until(lambda: set(nginx.workers()) - old)
                time.sleep(0.5)
                equal(up.executions("k"), 0)
            equal(read_answer(stream).status, 201)
        equal(up.executions("k"), 1)
        assert nginx.post("/pay", "k", b"x").replayed


@test(rows=[39])
def a_store_that_is_locked_refuses_new_keys_only():
    """Its lock is held too long: 503 for a new key, replays go on, nothing is executed."""
    http = ON.replace("idem.db;", "idem.db timeout=8s;")
    with Upstream() as up, Nginx(up, http=http) as nginx:
        equal(nginx.post("/pay", "old", b"x").status, 201)
        with held(nginx.home + "/idem.db"):
            got = nginx.post("/pay", "new", b"x")
            equal((got.status, got.problem), (503, "store-unavailable"))
            assert nginx.post("/pay", "old", b"x").replayed
        equal(up.executions(), 1)
        equal(nginx.post("/pay", "new", b"x").status, 201)


if __name__ == "__main__":
    main()
