"""idempotency_limit: new keys are counted once, what is known is not counted."""

import os
import signal
import threading
import time

from nginx import LOG, ON, Nginx, Upstream, read_answer, record, request_bytes
from patience import until
from procfs import own_kb
from tap import LONG, at_once, equal, main, note, test

USER = "idempotency_limit uploads $http_x_user 3r/d;"


def ask(nginx, key, user="ann", path="/pay", body=b"x"):
    return nginx.request(path, key, body, headers=[("X-User", user)])


def far_from_the_end(per):
    """Sleep over the end of a window that could come in the middle of a test."""
    left = per - time.time() % per
    if left < 30:
        time.sleep(left + 0.1)


def ann_has_three(nginx):
    for i in range(3):
        equal(ask(nginx, f"k{i}").status, 201)


def next_window(per):
    """Sleep until a window has begun, and return when it ends."""
    now = time.time()
    end = now - now % per + per
    time.sleep(end - now + 0.02)
    return end + per


@test
def the_next_new_key_is_told_to_wait():
    """429 with RateLimit, RateLimit-Policy and Retry-After; nothing is claimed."""
    with Upstream() as up, Nginx(up, http=ON + USER + LOG, log="idem") as nginx:
        far_from_the_end(86400)
        first = ask(nginx, "k0")
        equal(first.headers["ratelimit-policy"], '"uploads";q=3;w=86400')
        equal(first.headers["ratelimit"].rsplit("=", 1)[0], '"uploads";r=2;t')
        ann_has_three(nginx)
        before = 86400 - time.time() % 86400
        got = ask(nginx, "k3")
        left = 86400 - time.time() % 86400
        equal((got.status, got.problem), (429, "rate-limited"))
        equal(got.headers["ratelimit-policy"], '"uploads";q=3;w=86400')
        equal(got.headers["ratelimit"].rsplit("=", 1)[0], '"uploads";r=0;t')
        for number in got.headers["retry-after"], got.headers["ratelimit"].split("t=")[1]:
            assert left - 1 < int(number) < before + 1, (number, left, before)
        equal(ask(nginx, "k3").status, 429)
        equal(up.executions(), 3)
        until(lambda: len(nginx.log()) == 6)
        equal([line.split()[1] for line in nginx.log()[4:6]], ["limited"] * 2)
        equal(record(nginx, "k3"), None)

        # Another one has a limit of his own, and an empty value has none.
        equal(ask(nginx, "b", user="bob").status, 201)
        for i in range(5):
            got = ask(nginx, f"n{i}", user="")
            equal((got.status, "ratelimit" in got.headers), (201, False))
        equal(ask(nginx, "l", user="u" * 256).problem, "scope-missing")
        equal(ask(nginx, None).status, 201)


@test
def without_the_directive_all_are_let_in():
    """The control: no limit, or one that is off in an inner location."""
    for more in dict(http=ON), dict(http=ON + USER, location="idempotency_limit off;"):
        with Upstream() as up, Nginx(up, **more) as nginx:
            equal([ask(nginx, f"{len(more)}{i}").status for i in range(6)], [201] * 6)
            equal(up.executions(), 6)


@test
def what_is_known_is_not_counted():
    """Replay, mismatch, unknown and busy pass a limit that is used up."""
    with Upstream() as up, Nginx(up, http=ON + USER) as nginx:
        far_from_the_end(86400)
        first = ask(nginx, "k0")
        for _ in range(5):
            equal(ask(nginx, "k0").body, first.body)
        equal(ask(nginx, "gone", path="/pay?mode=drop").status, 502)
        slow = threading.Thread(target=ask, args=(nginx, "slow", "ann", "/pay?hold=h"))
        slow.start()
        up.wait_for(1, "slow")
        equal(ask(nginx, "more").problem, "rate-limited")
        again = ask(nginx, "k0")
        equal((again.replayed, "ratelimit" in again.headers), (True, False))
        equal(ask(nginx, "k0", body=b"y").problem, "request-mismatch")
        equal(ask(nginx, "gone", path="/pay?mode=drop").problem, "outcome-unknown")
        equal(ask(nginx, "slow", path="/pay?hold=h").problem, "in-progress")
        up.let_go("h")
        slow.join()
        equal(up.executions(), 3)


@test
def a_released_key_is_counted_once():
    """The same key anew hears its first decision, in a limit that is used up."""
    with Upstream() as up, Nginx(up, http=ON + USER) as nginx:
        far_from_the_end(86400)
        equal(ask(nginx, "again", path="/pay?status=503").status, 503)
        equal([ask(nginx, f"k{i}").status for i in range(3)], [201, 201, 429])
        for _ in range(3):
            got = ask(nginx, "again", path="/pay?status=503")
            equal((got.status, got.headers["ratelimit"][:13]), (503, '"uploads";r=2'))
        equal(up.executions("again"), 4)


@test
def the_next_window_decides_anew():
    """What was refused is let in; a replay is one, however full the window is."""
    http = ON + "idempotency_limit uploads $http_x_user 2r/3s;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        for turn in range(10):
            if two_windows(nginx, [f"{name}{turn}" for name in "abcde"]):
                break
        else:
            raise AssertionError("too slow to tell")
        executed = [up.executions(f"{name}{turn}") for name in "abcde"]
        equal(executed, [1, 1, 1, 1, 0])
        note(f"{turn + 1} turns")


def two_windows(nginx, keys):
    """Fill two windows of 3 s; False where the machine was too slow for that."""
    a, b, c, d, e = keys
    end = next_window(3)
    got = [ask(nginx, key) for key in (a, b, c)]
    if time.time() >= end:
        return False
    equal([answer.status for answer in got], [201, 201, 429])
    time.sleep(int(got[2].headers["retry-after"]))
    assert time.time() >= end, "Retry-After is too short"
    got = [ask(nginx, key) for key in (c, d, e, a, b, c, d, e)]
    if time.time() >= end + 3:
        return False
    equal([answer.status for answer in got], [201, 201, 429, 201, 201, 201, 201, 429])
    equal([answer.replayed for answer in got], [False] * 3 + [True] * 4 + [False])
    return True


@test
def a_takeover_is_not_counted():
    """What was let in and then stopped without a word goes on, and is not asked."""
    http = ON + USER + "idempotency_lease 2s; idempotency_on_expired_lease rerun;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        far_from_the_end(86400)
        with nginx.working("/pay?hold=h", headers=[("X-User", "ann")]):
            os.kill(nginx.workers()[0], signal.SIGKILL)
        up.let_go("h")

        def taken_over():
            got = ask(nginx, "k", path="/pay?hold=h")
            return got if got.problem != "in-progress" else None

        got = until(taken_over, "the lease is over")
        equal((got.status, "ratelimit" in got.headers), (201, False))
        equal(up.calls[-1].headers["idempotency-takeover"], "true")
        equal([ask(nginx, f"k{i}").status for i in range(3)], [201, 201, 429])


@test
def each_limit_must_let_it_in():
    """Several limits, each with its own headers; the one that refuses is the last."""
    http = ON + "idempotency_limit small $http_x_user 1r/d;"
    http += "idempotency_limit all global 2r/1h;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        far_from_the_end(3600)
        got = ask(nginx, "a")
        equal(got.headers["ratelimit-policy"], '"small";q=1;w=86400, "all";q=2;w=3600')
        got = ask(nginx, "b")
        equal((got.status, got.headers["ratelimit-policy"]), (429, '"small";q=1;w=86400'))
        equal(ask(nginx, "c", user="bob").status, 201)
        got = ask(nginx, "d", user="cat")
        equal(got.status, 429)
        assert '"all";r=0' in got.headers["ratelimit"], got.headers
        assert int(got.headers["retry-after"]) <= 3600, got.headers
        equal(up.executions(), 2)


@test
def with_the_store_away_it_is_as_without_a_limit():
    """reject: 503; pass: executed, and marked as not recorded."""
    for word, status in ("reject", 503), ("pass", 201):
        http = (ON.replace("sqlite:idem.db", "sqlite:none/idem.db") + USER
                + f"idempotency_on_store_error {word};")
        with Upstream() as up, Nginx(up, http=http) as nginx:
            got = [ask(nginx, f"k{i}") for i in range(4)]
            equal([a.status for a in got], [status] * 4)
            equal(up.executions(), 4 * (word == "pass"))
            equal(got[3].headers.get("idempotency-recorded"),
                  "false" if word == "pass" else None)


@test(rows=[58])
def a_flood_of_fresh_keys_stops_before_it_claims():
    """Of many fresh keys at once exactly the quota claims; memory stays flat."""
    count = 100_000 if LONG else 2_000
    quota = 50
    http = ON.replace("global", "$http_x_user")
    http += f"idempotency_limit keys $http_x_user {quota}r/30d;"
    with Upstream() as up, Nginx(up, http=http, workers=2) as nginx:
        far_from_the_end(30 * 86400)
        seen = []

        def one(numbers):
            with nginx.connect() as s, s.makefile("rb") as stream:
                for n in numbers:
                    s.sendall(request_bytes("/pay", f"f{n}", b"x",
                                            headers=[("X-User", "mallory")]))
                    seen.append(read_answer(stream).status)

        sizes = []
        for part in range(2):
            half = range(part * count // 2, (part + 1) * count // 2)
            at_once(one, [half[i::8] for i in range(8)])
            sizes.append([own_kb(worker) for worker in nginx.workers()])
        equal((seen.count(201), seen.count(429), len(seen)),
              (quota, count - quota, count))
        equal(up.executions(), quota)
        equal(nginx.begun(), quota)
        equal(ask(nginx, "f0", user="ann").status, 201)
    if "IDEM_NGINX_PRELOAD" not in os.environ:
        assert sum(sizes[1]) - sum(sizes[0]) < 2048, sizes
    note(f"{count} fresh keys, {quota} let in; resident {sizes} KB")


if __name__ == "__main__":
    main()
