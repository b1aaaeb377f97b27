"""Large answers: they wait in files, and few of them are in memory at a time."""

import os
import shutil
import socket
import threading
import time

from files import write
from nginx import ON, Nginx, Upstream, head_of, need_plain_memory, read_answer, request_bytes
from procfs import own_kb
from tap import LONG, at_once, equal, main, note, run, skip, test

COUNT = 256 if LONG else 24
SIZE = 10_000_000
AWAY = "sqlite:idem.db timeout=120s;"


class Watch(threading.Thread):
    """The most memory that a process had meanwhile."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.peak, self.stop = pid, 0, threading.Event()

    def run(self):
        while not self.stop.wait(0.005):
            self.peak = max(self.peak, own_kb(self.pid) // 1024)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()


def drain(nginx, path, key, wrong):
    """One request whose body is counted and not kept."""
    with nginx.connect(120) as s, s.makefile("rb") as stream:
        s.sendall(request_bytes(path, key, b"x", headers=[("Connection", "close")]))
        first, _ = head_of(stream)
        left = SIZE
        while left > 0 and (piece := stream.read(min(left, 1 << 20))):
            left -= len(piece)
        if left or " 201 " not in first:
            wrong.append((first, left))


@test
def many_large_answers_fit_into_little_memory():
    """So many answers of 10 MB at once, first and again: below 256 MB of memory."""
    need_plain_memory()
    http = ON.replace("sqlite:idem.db;", AWAY)
    with Upstream() as up, Nginx(up, http=http) as nginx:
        worker = nginx.workers()[0]
        for turn in "first", "again":
            wrong = []
            with Watch(worker) as watch:
                at_once(lambda i: drain(nginx, f"/a?size={SIZE}", f"k{i}", wrong), range(COUNT))
            equal(wrong, [])
            assert watch.peak < 256, f"{watch.peak} MB"
            note(f"{turn}: {COUNT} of 10 MB at once, {watch.peak} MB at most")
        equal(up.executions(), COUNT)
        left = [f for _, _, files in os.walk(nginx.home + "/tmp") for f in files]
        equal(left, [])


@test
def a_full_disk_costs_no_answer():
    """No file can be made where large answers wait: the client gets its whole answer, the
    record says that it was executed and is not kept; a large replay is whole too."""
    with Upstream() as up, Nginx(up) as nginx:
        kept = nginx.post("/pay?size=300000", "before", b"x")
        shutil.rmtree(nginx.home + "/tmp/b")
        write(nginx.home + "/tmp/b", "not a directory\n")
        for mode in "plain", "chunked":
            for size in 65_536, 65_537, 300_000, 5_000_000:
                path, key = f"/pay?size={size}&mode={mode}", f"{mode}{size}"
                first = nginx.post(path, key, b"x")
                equal((key, first.status, len(first.body)), (key, 201, size))
                again = nginx.post(path, key, b"x")
                if size > 65_536:
                    equal((again.status, again.problem), (409, "response-not-kept"))
                else:
                    equal((again.replayed, again.body == first.body), (True, True))
                equal(up.executions(key), 1)
        again = nginx.post("/pay?size=300000", "before", b"x")
        equal((again.replayed, again.body == kept.body), (True, True))


@test
def a_disk_that_becomes_full_costs_no_answer():
    """The disk is full in the middle of an answer: all of it goes out, in order."""
    with Upstream() as up, Nginx(up) as nginx:
        room = nginx.home + "/tmp/b"
        mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", room]
        if os.geteuid() != 0 or run(mount).status != 0:
            skip("no file system can be mounted here")
        try:
            for size in 100_000, 300_000, 3_000_000:
                for mode in "plain", "chunked":
                    path, key = f"/pay?size={size}&mode={mode}", f"{mode}{size}"
                    first = nginx.post(path, key, b"x")
                    whole = (b"%08d" % len(up.calls) * (size // 8 + 1))[:size]
                    equal((key, first.body == whole), (key, True))
                    again = nginx.post(path, key, b"x")
                    kept = again.replayed and again.body == whole
                    equal(kept or again.problem == "response-not-kept", True)
                    equal((key, kept), (key, size < 200_000))
        finally:
            run(["umount", "-l", room])


@test
def a_slow_reader_gets_all_of_it():
    """A client that reads little by little gets the same bytes, first and again."""
    with Upstream() as up, Nginx(up) as nginx:
        bodies = []
        for _ in range(2):
            with nginx.connect() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                s.sendall(request_bytes("/a?size=3000000", "k", b"x"))
                time.sleep(0.3)
                with s.makefile("rb") as stream:
                    bodies.append(read_answer(stream).body)
        equal(bodies[0] == bodies[1], True)
        equal((len(bodies[0]), up.executions()), (3_000_000, 1))


if __name__ == "__main__":
    main()
