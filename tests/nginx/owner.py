"""The owner of a key in a worker: its lease, its loss, and how it ends."""

import contextlib
import glob
import os
import signal
import time

from nginx import ON, Nginx, Upstream, held, read_answer, record, request_bytes
from patience import PATIENCE, in_time, until
from procfs import stop
from tap import equal, main, note, test


def taken_away(nginx):
    """What is open in the store is unknown from now on, also work that goes on."""
    done = nginx.idem("store", "mark-restored", "--yes")
    equal((done.status, done.stderr), (0, b""))


@test
def an_owner_that_was_cut_off_is_unknown():
    """A worker that leaves in the middle of the work, by worker_shutdown_timeout: what
    was sent is unknown, and is not executed again; what was not sent is released."""
    main = "worker_shutdown_timeout 1s;"
    backlog = "location /slow { proxy_connect_timeout 60s; proxy_pass http://192.0.2.1:9; }"
    with Upstream() as up, Nginx(up, main=main, server=backlog) as nginx:
        with nginx.connect() as s, nginx.connect() as t:
            s.sendall(request_bytes("/pay?hold=h", "sent", b"x"))
            up.wait_for(1, "sent")
            t.sendall(request_bytes("/slow", "unsent", b"x"))
            until(lambda: record(nginx, "unsent"))
            refused = " 502 " in "".join(nginx.log())  # Without a route there.
            nginx.reload()
            until(lambda: record(nginx, "sent")["status"] != "in_progress")
            equal(record(nginx, "sent")["status"], "unknown")
            until(lambda: record(nginx, "unsent")["status"] == "released")
        equal(nginx.post("/pay?hold=h", "sent", b"x").problem, "outcome-unknown")
        equal(up.executions("sent"), 1)
        up.let_go("h")
    if refused:
        note("the network refused the connection that was to hang")


@test
def a_protocol_that_changes_is_unknown():
    """The upstream takes an upgrade to h2c of a request with a key: nobody knows what
    becomes of it there, whatever is said of the status 101."""
    server = (
        "location /up { proxy_set_header Upgrade $http_upgrade;"
        " proxy_set_header Connection upgrade; proxy_pass http://app; }"
    )
    more = [("Connection", "Upgrade"), ("Upgrade", "h2c")]
    with Upstream() as up, Nginx(up, server=server) as nginx:
        with nginx.connect() as s:
            s.sendall(request_bytes("/up?mode=switch", "k", b"x", headers=more))
            assert s.recv(12) == b"HTTP/1.1 101"
        until(lambda: record(nginx)["status"] == "unknown")
        equal(nginx.post("/up?mode=switch", "k", b"x").problem, "outcome-unknown")
        equal(up.executions(), 1)


@test
def an_owner_that_lost_its_key_answers_for_it_no_more():
    """The key was taken from the owner while it worked: as soon as the owner knows
    that, its worker asks the store for duplicates, long before the lease is over."""
    http = ON + "idempotency_lease 30s;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            equal(nginx.post("/pay?hold=h", "k", b"x").problem, "in-progress")
            taken_away(nginx)
            until(lambda: "another attempt owns its idempotency key now" in nginx.errors())
            known = time.monotonic()
            equal(nginx.post("/pay?hold=h", "k", b"x").problem, "outcome-unknown")
            in_time(time.monotonic() - known, 15, "the answer, with a lease of 30 s,")
            up.let_go("h")
            equal(answer().headers["idempotency-recorded"], "false")
        equal(up.executions(), 1)


@test
def a_lease_counts_from_the_question():
    """The store took most of a lease to answer: the owner counts its lease from when it
    asked, and answers for its key no longer than that."""
    http = ON.replace("idem.db;", "idem.db timeout=60s;") + "idempotency_lease 6s;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        equal(nginx.post("/warm", "warm").status, 201)
        for turn in range(4):
            key = f"k{turn}"
            with nginx.connect() as s:
                with held(nginx.home + "/idem.db"):
                    s.sendall(request_bytes(f"/pay?hold={key}", key, b"x"))
                    time.sleep(5.5)
                up.wait_for(1, key)
                taken_away(nginx)
                until(lambda key=key: nginx.post(f"/pay?hold={key}", key, b"x").problem
                      == "outcome-unknown")
                told = nginx.errors().count("another attempt owns its idempotency key now")
                up.let_go(key)
            if told <= turn:
                note(f"in turn {turn + 1}, before the owner was told of its loss")
                return
    raise AssertionError("busy until the owner was told of its loss, each time")


@test
def past_its_lease_an_owner_does_not_answer():
    """The lease of the work here could not be renewed and is over: whoever asks is told
    what the store says, or that it is away, and not that the work goes on."""
    http = ON.replace("idem.db;", "idem.db timeout=8s end_timeout=1s;") + "idempotency_lease 10s;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        with nginx.working("/pay?hold=h"):
            with held(nginx.home + "/idem.db"):
                equal(nginx.post("/pay?hold=h", "k", b"x").problem, "in-progress")
                until(lambda: nginx.post("/pay?hold=h", "k", b"x").problem
                      == "store-unavailable", seconds=PATIENCE)
            up.let_go("h")
        equal(up.executions(), 1)


@test
def a_large_replay_is_of_the_life_that_was_found():
    """Between the look-up and the reading of a large result the record expired and the
    key began another life, of another caller: 503, never the other's result."""
    http = ON.replace("idem.db;", "idem.db timeout=60s;")
    http += "idempotency_max_response 20m;"
    short = (
        "location /short { idempotency_lease 2s; idempotency_retention 4s;"
        " proxy_pass http://app; }"
    )
    with Upstream() as up, Nginx(up, http=http, server=short) as nginx:
        equal(nginx.post("/pay", "small", b"x").status, 201)
        for turn in range(5):
            got = replaced_while_it_is_read(up, nginx, f"k{turn}")
            if got.status != 201 or got.replayed:
                break  # Else it had expired before it was found: once more.
        equal((got.status, got.problem), (503, "store-unavailable"))


def replaced_while_it_is_read(up, nginx, key):
    """What a request gets whose record is found, and another when it is read."""
    path, size, room = "/short?size=100000", 16 * 1024 * 1024, f"room-{key}"
    equal(nginx.post(path, key, b"x").status, 201)
    worker = nginx.workers()[0]
    with nginx.connect() as s, nginx.connect() as t, t.makefile("rb") as stream:
        # Its end, which waits, takes all the room there is for large results.
        s.sendall(request_bytes(f"/pay?hold={room}&size={size}", room, b"x"))
        up.wait_for(1, room)
        with held(nginx.home + "/idem.db"):
            up.let_go(room)
            until(lambda: size in open_files(worker), "the large result is spooled")
            t.sendall(request_bytes(path, key, b"x"))
            # Answers come in order: after this one the key was found.
            assert nginx.post("/pay", "small", b"x").replayed
            stop(worker)
        try:
            until(lambda: other_life(nginx, key), "the record has expired")
        finally:
            os.kill(worker, signal.SIGCONT)
        return read_answer(stream)


def open_files(pid):
    """The sizes of the files that @pid has open."""
    sizes = []
    for name in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            sizes.append(os.stat(name).st_size)
    return sizes


def other_life(nginx, key):
    """Another caller works under the key: true when that began anew."""
    work = ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' o"]
    done = nginx.idem("run", "-k", key, "--fingerprint", "none", "--", *work)
    return done.status == 0 and done.stdout == b"o" * 100000


if __name__ == "__main__":
    main()
