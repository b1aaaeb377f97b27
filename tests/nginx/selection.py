"""Key and fingerprint that a jq program selects from the request."""

import contextlib
import glob
import json
import os
import signal
import socket
import time

from nginx import ON, Nginx, Upstream, record, request_bytes
from patience import until
from tap import equal, main, test

KEY = "idempotency_key_from '.body.order';"
BODY = "idempotency_fingerprint_from '.body | del(.sent_at)';"
# One that does not end, where it is asked to; and one that takes its time.
SLOW = (
    "idempotency_key_from 'if .body.slow then def f: f; f else .body.order end'"
    " timeout={};"
)
LONG = (
    "idempotency_key_from 'if .body.long then reduce range(500000) as $i (0; . + 1) |"
    ' "long" else .body.order end\' timeout=60s;'
)


def send(nginx, path="/pay", headers=(), **body):
    return nginx.post(path, None, json.dumps(body).encode(), headers=headers)


def children(nginx):
    """Return {pid: state} of the processes of all workers."""
    workers = nginx.workers()
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            with open(path, encoding="latin-1") as f:
                pid, rest = f.read().split(" (", 1)
            state, parent = rest.rsplit(")", 1)[1].split()[:2]
            if int(parent) in workers:
                found[int(pid)] = state
    return found


def no_zombies(nginx):
    until(lambda: "Z" not in children(nginx).values())


def start_slow(nginx):
    """A connection whose request is being selected without an end."""
    s = nginx.connect()
    before = set(children(nginx))
    s.sendall(request_bytes("/pay", None, b'{"slow":1}', "POST"))
    until(lambda: "R" in children(nginx).values() or set(children(nginx)) - before)
    return s


@test
def the_selected_key_counts():
    """Two bodies with one order are one operation; its key is on record as it is."""
    with Upstream() as up, Nginx(up, http=ON + KEY + BODY) as nginx:
        first = send(nginx, order="o-1", amount=12, sent_at=1)
        equal((first.status, first.replayed), (201, False))
        again = send(nginx, order="o-1", amount=12, sent_at=2)
        equal((again.status, again.replayed), (201, True))
        equal(again.body, first.body)
        equal(send(nginx, order="o-1", amount=13).status, 422)
        equal(send(nginx, "/refund", order="o-1", amount=12).status, 422)
        equal(send(nginx, order="o-2", amount=12).replayed, False)
        equal(record(nginx, "o-1")["status"], "completed")
        equal(len(up.calls), 2)

        # The header is not looked at; numbers keep their digits.
        got = nginx.post("/pay", "k", b'{"order":12345678901234567890}')
        equal((got.status, got.replayed), (201, False))
        assert send(nginx, order=12345678901234567890).replayed
        equal(record(nginx, "12345678901234567890")["status"], "completed")


@test
def without_a_program_the_body_counts():
    """As JSON; a fingerprint program goes with a header's key, too."""
    with Upstream() as up, Nginx(up, http=ON + KEY) as nginx:
        equal(send(nginx, order="o", sent_at=1).status, 201)
        equal(send(nginx, order="o", sent_at=2).status, 422)
        assert send(nginx, sent_at=1, order="o").replayed
    with Upstream() as up, Nginx(up, http=ON + BODY) as nginx:
        equal(nginx.post("/pay", "k", b'{"a":1,"sent_at":1}').status, 201)
        assert nginx.post("/pay", "k", b'{ "a":1, "sent_at":2 }').replayed
        assert nginx.post("/pay", "k", b'{"a":1.0}').replayed
        equal(nginx.post("/pay", "k", b'{"a":2,"sent_at":1}').status, 422)
        equal(nginx.post("/pay", None, b'{"a":2}').replayed, False)


@test
def every_part_of_a_request_can_be_the_key():
    """Method, path, query, headers, and a body that is no JSON."""
    program = '[.method, .path, .query.a, .headers["x-id"], .body] | join("|")'
    conf = ON + f"idempotency_key_from '{program}';"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        got = nginx.post("/p%20q?a=1%2b&b=2", None, b"a=1", headers=[("X-Id", "7")])
        equal(got.status, 201)
        equal(record(nginx, "POST|/p%20q|1+|7|a=1")["status"], "completed")


@test
def what_lacks_a_key_is_refused():
    """400 with what to mend, and nothing is executed; no byte of the request is in
    the answer, and the log has the program's own words."""
    with Upstream() as up, Nginx(up, http=ON + KEY + BODY) as nginx:
        for body in (b"{}", b'{"order":null}', b"", b"text", b"\xff\xfe", b'{"order":""}',
                     b'{"order":"a","order":"b"}', b'{"order":"a"',
                     b'{"order":"%s"}' % (b"x" * 256)):  # fmt: skip
            got = nginx.post("/pay", None, body)
            equal((body[:20], got.status, got.problem), (body[:20], 400, "key-not-selected"))
        got = send(nginx, order="o" * 255)
        equal(got.status, 201)
        equal(len(up.calls), 1)
        assert "idempotency_key_from: the program selects null" in nginx.errors()
        assert "Cannot index" in nginx.errors()
        no_zombies(nginx)
    lacks = ON + "idempotency_key_from .body.order; idempotency_fingerprint_from .body.a;"
    with Upstream() as up, Nginx(up, http=lacks) as nginx:
        got = send(nginx, order="o")
        equal((got.status, got.problem), (400, "fingerprint-not-selected"))
        equal(send(nginx, order="o", a=1).status, 201)
        got = nginx.post("/pay", None, b'{"order":"o","a":1}', headers=[("Upgrade", "x")])
        equal((got.status, got.problem), (400, "upgrade"))


@test
def bodies_of_every_size():
    """In memory, in a file, above the limit of the location and of a program."""
    http = ON + KEY + "client_body_buffer_size 16k; idempotency_max_request 64m;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        for size in 1, 10_000, 100_000, 3_000_000:
            got = send(nginx, order=f"o-{size}", more="m" * size)
            equal((size, got.status), (size, 201))
            assert send(nginx, order=f"o-{size}", more="m" * size).replayed
        got = send(nginx, order="o", more="m" * 17_000_000)
        equal((got.status, got.problem), (413, "request-too-large"))
        equal(len(up.calls), 4)
        no_zombies(nginx)


@test
def a_bad_program_is_an_error_of_the_configuration():
    """nginx -t names file and line, the directive and what jq says."""
    with Upstream() as up:
        nginx = Nginx(up)
        for conf, *words in (
            ("idempotency_key_from '.a +';", '"idempotency_key_from": not a valid jq program'),
            ("idempotency_fingerprint_from 'nix';", "nix/0 is not defined"),
            ("idempotency_key_from . timeout=0;", "takes a timeout from 1ms to 60s"),
            ("idempotency_key_from . x;", "takes a program and timeout=TIME"),
            ("idempotency_key_from .; idempotency_key_from .;", "is duplicate"),
            ("idempotency_select_processes 65;", "takes a number from 1 to 64"),
            ("idempotency_select_processes 1 waiting=x;", "and waiting=NUMBER"),
            ("idempotency_key X-Key; idempotency_key_from .;", "both say where the key is"),
            ("idempotency_key_from .; idempotency_key X-Key;", "both say where the key is"),
            ("idempotency_fingerprint off; idempotency_fingerprint_from .;",
             'contradicts "idempotency_fingerprint off"'),
            ("idempotency_fingerprint_from .; idempotency_fingerprint off;",
             'off contradicts "idempotency_fingerprint_from"'),
        ):  # fmt: skip
            got = nginx.check(http=ON + conf)
            equal((conf, got.status), (conf, 1))
            for word in (*words, "nginx.conf:"):
                assert word in got.stderr.decode(), got.stderr
        got = nginx.check(
            http=ON + KEY + BODY,
            location="idempotency_key X-Key; idempotency_fingerprint off;",
        )
        equal((got.status, got.stderr), (0, got.stderr))


@test
def an_inner_level_decides():
    """A location with a header of its own, or off, leaves the program of the server."""
    server = "location /own { idempotency_key X-Key; proxy_pass http://app; }"
    server += "location /off { idempotency_key_from off; proxy_pass http://app; }"
    with Upstream() as up, Nginx(up, http=ON + KEY, server=server) as nginx:
        for path, header in ("/own", "X-Key"), ("/off", "Idempotency-Key"):
            equal(send(nginx, path).status, 201)
            for replayed in False, True:
                got = send(nginx, path, [(header, path)])
                equal((path, got.status, got.replayed), (path, 201, replayed))
        equal(send(nginx).problem, "key-not-selected")


@test
def a_slow_program_is_cut_off():
    """At its time, with 503 and Retry-After; the worker serves others meanwhile, the
    process has none of its descriptors, and is gone afterwards."""
    conf = ON + SLOW.format("3s") + "idempotency_select_processes 2;"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        with start_slow(nginx) as slow:
            (pid,) = children(nginx)
            with contextlib.suppress(FileNotFoundError):
                until(lambda: set(os.listdir(f"/proc/{pid}/fd")) == set("0123"))
            for i in range(20):
                equal(send(nginx, order=f"o-{i}").status, 201)
            with slow.makefile("rb") as stream:
                text = stream.read(len("HTTP/1.1 503")) + stream.read1()
        assert text.startswith(b"HTTP/1.1 503"), text
        assert b"selection-unavailable" in text and b"\r\nRetry-After: 1\r\n" in text
        assert "takes longer than 3 s" in nginx.errors()
        equal(len(up.calls), 20)
        until(lambda: pid not in children(nginx))
        no_zombies(nginx)


@test
def many_at_once():
    """64 connections, two processes: each gets its own key, and nobody is refused."""
    conf = ON + KEY + BODY + "idempotency_select_processes 2;"
    body = b'{"order":"o-%d","sent_at":%d}'
    requests = [("/pay", None, body % (i % 320, i)) for i in range(640)]
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        answers = nginx.many(requests, threads=64)
        equal({getattr(a, "status", a) for a in answers} - {201, 409}, set())
        for i in range(320):
            got = send(nginx, order=f"o-{i}", sent_at=-i)
            assert got.replayed and b"o-%d\"" % i in got.body, got
        equal(len(up.calls), 320)
        assert len(children(nginx)) <= 4, children(nginx)
        no_zombies(nginx)


@test
def too_many_are_refused():
    """As many run and wait as are allowed, and the next one is told to come again;
    who waited longer than the program may take, too."""
    conf = ON + SLOW.format("2s") + "idempotency_select_processes 1 waiting=0;"
    with Upstream() as up, Nginx(up, http=conf) as nginx, start_slow(nginx):
        got = send(nginx, order="o")
        equal((got.status, got.problem), (503, "selection-unavailable"))
        assert "too many selections wait" in nginx.errors()
    conf = ON + SLOW.format("1s") + "idempotency_select_processes 1 waiting=1;"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        with start_slow(nginx):
            equal(send(nginx, order="o").status in (201, 503), True)
        until(lambda: send(nginx, order="o").status == 201)
        equal(len(up.calls), 1)


@test
def a_client_that_leaves_takes_its_selection_along():
    """Closed or reset, running or waiting: the one process is free again."""
    conf = ON + SLOW.format("60s") + "idempotency_select_processes 1;"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        for i, reset in enumerate((False, True)):
            slow = start_slow(nginx)
            waiting = nginx.connect()
            waiting.sendall(request_bytes("/pay", None, b'{"order":"w"}', "POST"))
            time.sleep(0.1)
            for s in waiting, slow:
                if reset:
                    linger = b"\1\0\0\0\0\0\0\0"
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                s.close()
            equal(send(nginx, order=f"o-{i}").status, 201)
        equal({call.body for call in up.calls}, {b'{"order": "o-0"}', b'{"order": "o-1"}'})
        until(lambda: "R" not in children(nginx).values())
        no_zombies(nginx)


@test
def a_reload_waits_for_a_selection():
    """The old worker answers, and leaves; so does its process."""
    with Upstream() as up, Nginx(up, http=ON + LONG) as nginx:
        (old,) = nginx.workers()
        with nginx.connect() as s, s.makefile("rb") as stream:
            s.sendall(request_bytes("/pay", None, b'{"long":1}', "POST"))
            until(lambda: children(nginx))
            nginx.reload()
            until(lambda: set(nginx.workers()) - {old})
            equal(send(nginx, order="new").status, 201)
            equal(stream.readline(), b"HTTP/1.1 201 Whatever\r\n")
        until(lambda: old not in nginx.workers())
        equal(record(nginx, "long")["status"], "completed")
        equal(len(up.calls), 2)


@test
def a_process_that_is_killed():
    """Idle, it costs nothing; at work, the request is told to come again."""
    conf = ON + SLOW.format("60s") + "idempotency_select_processes 1;"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        equal(send(nginx, order="a").status, 201)
        (pid,) = children(nginx)
        os.kill(pid, signal.SIGKILL)
        until(lambda: children(nginx).get(pid, "Z") == "Z")
        equal(send(nginx, order="b").status, 201)
        with start_slow(nginx) as s, s.makefile("rb") as stream:
            until(lambda: "R" in children(nginx).values())
            for pid in children(nginx):
                os.kill(pid, signal.SIGKILL)
            equal(stream.readline(), b"HTTP/1.1 503 Service Temporarily Unavailable\r\n")
        equal(send(nginx, order="c").status, 201)
        no_zombies(nginx)


@test
def a_worker_that_is_killed_leaves_no_process():
    """Its process ends with it, and the next worker has its own."""
    with Upstream() as up, Nginx(up, http=ON + SLOW.format("60s")) as nginx:
        with start_slow(nginx):
            (worker,) = nginx.workers()
            (pid,) = children(nginx)
            os.kill(worker, signal.SIGKILL)
            until(lambda: not os.path.exists(f"/proc/{pid}"))
        until(lambda: nginx.workers() and worker not in nginx.workers())
        equal(send(nginx, order="a").status, 201)


main()
