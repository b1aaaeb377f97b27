"""Requests by the thousand while nginx is reloaded and clients leave: no execution is
lost or doubled, and nothing is left behind. storm/gateway kills workers, too.

The upstream is the judge: it has counted every execution.
"""

import collections
import random
import socket
import struct
import threading
import time

from nginx import (
    ON, Answer, Nginx, Upstream, need_plain_memory, read_answer, request_bytes,
)  # fmt: skip
from patience import PATIENCE, until
from procfs import own_kb
from tap import LONG, at_once, equal, main, note, test

REQUESTS = 10_000 if LONG else 900
SECONDS = 60 if LONG else 2.5
RELOADS = 20 if LONG else 3


def path_of(number):
    return f"/pay?delay={number % 7 * 5}" + ("&size=100000" if number % 50 == 0 else "")


class Storm:
    """Clients that send, and leave as they like; what they were told."""

    def __init__(self, nginx, seed, aborts=0.2):
        self.nginx = nginx
        self.random = random.Random(seed)
        self.aborts = aborts
        self.told = {}  # key: the first 201 that came
        self.unequal = []
        self.kinds = collections.Counter()
        self.lock = threading.Lock()
        self.left = REQUESTS

    def take(self):
        with self.lock:
            if self.left == 0:
                return None
            self.left -= 1
            key = self.random.randrange(REQUESTS // 2)
            leaves = self.random.random() < self.aborts
            return key, leaves, self.random.random()

    def client(self):
        while (what := self.take()) is not None:
            number, leaves, chance = what
            key = f"k{number}"
            path = path_of(number)
            try:
                got = self.leave(path, key, chance) if leaves else self.ask(path, key)
            except (OSError, ConnectionError):
                got = "lost"
            self.note(key, got)

    def ask(self, path, key):
        return self.nginx.post(path, key, b"x", timeout=PATIENCE)

    def leave(self, path, key, chance):
        data = request_bytes(path, key, b"x")
        with self.nginx.connect() as s:
            s.sendall(data[: int(len(data) * chance * 2)])
            time.sleep(chance * 0.03)
            if chance > 0.5:
                linger = struct.pack("ii", 1, 0)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return "left"

    def note(self, key, got):
        with self.lock:
            if not isinstance(got, Answer):
                self.kinds[got] += 1
                return
            self.kinds[got.problem or got.status] += 1
            if got.status == 201 and "idempotency-recorded" not in got.headers:
                body = self.told.setdefault(key, got.body)
                if body != got.body:
                    self.unequal.append(key)

    def run(self, threads=48):
        pool = [threading.Thread(target=self.client) for _ in range(threads)]
        for thread in pool:
            thread.start()
        return pool


def reload_meanwhile(nginx, pool):
    """Reload again and again until the clients are done."""
    for _ in range(RELOADS):
        end = time.monotonic() + SECONDS / (RELOADS + 1)
        while time.monotonic() < end and any(t.is_alive() for t in pool):
            time.sleep(0.01)
        nginx.reload()
    for thread in pool:
        thread.join()


@test
def reloads_and_clients_that_leave():
    """Each key is executed once, its replays are all that was acknowledged, and all old
    workers go."""
    http = ON + "idempotency_lease 60s; idempotency_on_expired_lease hold;"
    with Upstream() as up, Nginx(up, http=http, workers=2, level="error") as nginx:
        clients = Storm(nginx, 7)
        reload_meanwhile(nginx, clients.run())
        executed = up.counts()
        found = {key: nginx.post(path_of(int(key[1:])), key, b"x") for key in sorted(executed)}
        lost = [key for key, body in clients.told.items()
                if not found[key].replayed or found[key].body != body]
        equal((lost, clients.unequal), ([], []))
        equal({(got.status, got.problem) for got in found.values()}, {(201, None)})
        equal([key for key, count in up.counts().items() if count > 1], [])
        note(f"{REQUESTS} requests: {dict(clients.kinds)}; {len(executed)} keys executed, "
             f"{len(clients.told)} acknowledged, 0 lost")
        until(lambda: len(nginx.workers()) <= 2)


@test
def memory_stays_flat():
    """Random keys without end: the worker is as large after as it was before."""
    need_plain_memory()
    rounds = 20 if LONG else 4
    each = 50_000 if LONG else 300
    with Upstream() as up, Nginx(up) as nginx:
        worker = nginx.workers()[0]
        sizes = []
        for turn in range(rounds):
            flood(nginx, turn * each, each)
            sizes.append(own_kb(worker))
            up.calls.clear()
    equal(nginx.stats()["started"], rounds * each)
    grown = sizes[-1] - sizes[1 if rounds > 1 else 0]
    assert grown < 2048, sizes
    note(f"{rounds * each} keys; resident after each round: {sizes} KB")


def flood(nginx, start, count):
    """@count new keys on a few connections that stay."""

    def one(numbers):
        with nginx.connect() as s, s.makefile("rb") as stream:
            for n in numbers:
                s.sendall(request_bytes("/pay", f"flood{n}", b"x"))
                equal(read_answer(stream).status, 201)

    at_once(one, [range(start + i, start + count, 8) for i in range(8)])


if __name__ == "__main__":
    main()
