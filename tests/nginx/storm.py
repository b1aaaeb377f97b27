"""Requests by the thousand while nginx is reloaded, workers are killed and clients
leave: no execution is lost or doubled, and nothing is left behind.

The upstream is the judge: it has counted every execution.
"""

import collections
import contextlib
import os
import random
import signal
import socket
import struct
import threading
import time

from nginx import (
    ON, Answer, Nginx, Upstream, need_plain_memory, read_answer, request_bytes,
)  # fmt: skip
from patience import PATIENCE, until
from tap import LONG, equal, main, note, test

REQUESTS = 10_000 if LONG else 900
SECONDS = 60 if LONG else 2.5
LEASE = 2


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
            path = f"/pay?delay={number % 7 * 5}"
            path += "&size=100000" if number % 50 == 0 else ""
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


def disturb(nginx, pool, reloads, kills, chance):
    """Reload and kill until the clients are done."""
    done = collections.Counter()
    pause = SECONDS / (reloads + kills + 1)
    plan = ["reload"] * reloads + ["kill"] * kills
    chance.shuffle(plan)
    for what in plan:
        end = time.monotonic() + pause
        while time.monotonic() < end and any(t.is_alive() for t in pool):
            time.sleep(0.01)
        if what == "reload":
            nginx.reload()
        elif workers := nginx.workers():
            with contextlib.suppress(ProcessLookupError):  # It was leaving.
                os.kill(chance.choice(workers), signal.SIGKILL)
        done[what] += 1
    for thread in pool:
        thread.join()
    return done


def afterwards(nginx, keys):
    """Ask for each key until nobody else is at it."""
    found = {}
    end = time.monotonic() + PATIENCE
    for key in keys:
        number = int(key[1:])
        path = f"/pay?delay={number % 7 * 5}"
        path += "&size=100000" if number % 50 == 0 else ""
        while True:
            got = nginx.post(path, key, b"x")
            if got.problem != "in-progress":
                break
            assert time.monotonic() < end, f"{key} is busy for ever"
            time.sleep(0.1)
        found[key] = got
    return found


def storm(policy, reloads, kills, module=True):
    """One storm; what it came to."""
    seed = 7
    lease = LEASE if kills else 60
    http = ON + f"idempotency_lease {lease}s; idempotency_on_expired_lease {policy};"
    with Upstream() as up:
        with Nginx(
            up, http=http if module else "", workers=2,
            module=module, level="error",
        ) as nginx:
            clients = Storm(nginx, seed)
            done = disturb(nginx, clients.run(), reloads, kills, random.Random(seed))
            executed = up.counts()
            if not module:
                return clients, executed, up
            time.sleep(LEASE + 0.2 if kills else 0)
            found = afterwards(nginx, sorted(executed))
            lost = [
                key for key, body in clients.told.items()
                if not found[key].replayed or found[key].body != body
            ]
            equal((lost, clients.unequal), ([], []))
            note(f"{REQUESTS} requests: {dict(clients.kinds)}")
            note(f"{dict(done)}, {len(executed)} keys executed, "
                 f"{len(clients.told)} acknowledged, 0 lost")
            judge(policy, kills, up, found)
            until(lambda: len(nginx.workers()) <= 2)
            return clients, executed, up


def judge(policy, kills, up, found):
    """No key was executed twice, unless rerun let somebody take over."""
    counts = up.counts()
    twice = [key for key, count in counts.items() if count > 1]
    unknown = [k for k, got in found.items() if got.problem == "outcome-unknown"]
    strange = [g for g in found.values() if g.status != 201 and g.problem is None]
    equal(strange, [])
    if policy == "hold":
        equal(twice, [])
        assert kills or not unknown, unknown
        note(f"0 executed twice, {len(unknown)} unknown")
        return
    fences = collections.defaultdict(list)
    for call in up.calls:
        fences[call.key].append(call.headers)
    for key in twice:
        later = fences[key][1:]
        equal({h.get("idempotency-takeover") for h in later}, {"true"})
        numbers = [int(h["idempotency-fence"]) for h in fences[key]]
        equal(numbers, sorted(set(numbers)))
    assert kills or not twice, twice
    note(f"{len(twice)} executed again as takeovers, with growing fences")


@test
def reloads_and_clients_that_leave():
    """No kill, so nothing is unknown: each key is executed once, and all old workers go."""
    storm("hold", reloads=20 if LONG else 3, kills=0)


@test
def killed_workers_under_hold():
    """With kills and reloads: at most one execution for each key; acknowledged ones
    are replayed."""
    storm("hold", reloads=20 if LONG else 2, kills=30 if LONG else 4)


@test
def killed_workers_under_rerun():
    """The same with takeovers: a second execution is told that it is one."""
    storm("rerun", reloads=20 if LONG else 1, kills=30 if LONG else 4)


@test
def without_the_module_it_is_a_mess():
    """The control: the same clients on plain proxy_pass execute keys many times."""
    _, executed, _ = storm("hold", 1, 0, module=False)
    twice = sum(count > 1 for count in executed.values())
    assert twice > REQUESTS // 20, twice
    note(f"{twice} of {len(executed)} keys executed more than once")


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
            sizes.append(resident(worker))
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

    pool = [
        threading.Thread(target=one, args=[range(start + i, start + count, 8)])
        for i in range(8)
    ]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        lines = dict(line.split(":", 1) for line in f)
    return int(lines["RssAnon"].split()[0])


if __name__ == "__main__":
    main()
