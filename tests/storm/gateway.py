"""A storm over idem gateway: nginx's workers, the gateway and the service are killed
under POSTs with keys, each of which two clients send until they know how it ended.

The service notes what it does in a ledger, and clients what they were told; the store
must agree with both. The control sends the same through nginx without the module.
"""

import collections
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time

import effects
from nginx import MODULE, Nginx, need
from patience import PATIENCE, until
from ports import free_port
from procfs import children
from tap import LONG, PROGRAM, equal, kill_session, main, note, start, test

KEYS = 5000 if LONG else 150
KILLS = 400 if LONG else 10
STORMS = 5  # At most: in a short one it is left to chance whom a kill meets.
CLIENTS = 32
STARTS = 400 if LONG else 40
LEASE_S = 2
UPSTREAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream.py")
AS_USER = ["--user", "root"] if os.getuid() == 0 else []


def listens(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Service:
    """The service, which is started again when it was killed."""

    def __init__(self, ledger):
        self.port = free_port()
        self.command = [sys.executable, UPSTREAM, str(self.port), os.path.abspath(ledger)]
        self.begin()

    def begin(self):
        self.process = start(self.command, stdout=None, stderr=None)
        until(lambda: listens(self.port), "the service listens")

    def strike(self):
        self.stop()
        time.sleep(0.05)  # Requests meet nobody.
        self.begin()

    def stop(self):
        kill_session(self.process)


class Gateway:
    """idem gateway, likewise."""

    def __init__(self, service, policy):
        need()
        self.port = free_port()
        self.store = "sqlite:" + os.path.abspath("idem.db")
        self.command = [
            *(PROGRAM, "gateway", "-u", f"http://127.0.0.1:{service.port}"),
            *("-l", f"127.0.0.1:{self.port}", "--global-scope", "--workers", "2", *AS_USER),
            *("--lease", f"{LEASE_S}s", "--on-expired-lease", policy, "--module", MODULE),
        ]
        self.begin()
        assert not self.ended(), open("gateway.log", encoding="utf-8").read()

    def begin(self):
        self.log = open("gateway.log", "ab")
        env = {"IDEM_STORE": self.store, "TMPDIR": os.getcwd()}
        self.process = start(self.command, env, stdout=self.log, stderr=self.log)
        until(lambda: self.ended() or listens(self.port), "the gateway listens")

    def ended(self):
        return self.process.poll() is not None

    def workers(self):
        return [pid for master in children(self.process.pid) for pid in children(master)]

    def strike(self):
        """nginx ends with the gateway, but lets its requests end first."""
        kill(self.process.pid)
        self.process.wait()
        try:
            until(self.began_again, "a gateway listens again")
        except AssertionError as error:
            with open("gateway.log", encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"{error}; its log ends: {log.read()[-2000:]}") from None

    def began_again(self):
        """The nginx before may have the port for a moment."""
        self.log.close()
        self.begin()
        time.sleep(0.1)
        return not self.ended()

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        kill_session(self.process)
        self.log.close()


class Bare:
    """nginx without the module, for the control."""

    def __init__(self, service):
        self.nginx = Nginx(service.port, http="", module=False, workers=2)
        self.nginx.start()
        self.port = self.nginx.port

    def workers(self):
        return self.nginx.workers()

    def strike(self):
        for pid in self.workers():
            kill(pid)

    def stop(self):
        self.nginx.stop(check=False)


class Clients:
    """Threads that send each key, by @times of them, until they know how it ended."""

    def __init__(self, port, times, chance):
        self.port = port
        self.todo = [f"k{n}" for n in range(KEYS)] * times
        self.all = len(self.todo)
        chance.shuffle(self.todo)
        self.acknowledged = collections.defaultdict(set)  # {key: bodies of 201s}
        self.given_up = collections.defaultdict(set)  # {problem: keys}
        self.kinds = collections.Counter()
        self.failure = None
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def at_work(self):
        return any(thread.is_alive() for thread in self.threads)

    def left(self):
        return len(self.todo)

    def work(self):
        try:
            while True:
                with self.lock:
                    if not self.todo:
                        return
                    key = self.todo.pop()
                until(lambda: self.is_over(key), f"{key} ends")  # pylint: disable=cell-var-from-loop
        except Exception as error:  # pylint: disable=broad-except
            self.failure = AssertionError(f"{error}; {dict(self.kinds)}")

    def is_over(self, key):
        try:
            status, body = self.send(key)
        except (OSError, http.client.HTTPException):
            status, body = "cut off", b""
        kind = status
        if isinstance(status, int) and status >= 400 and body.startswith(b"{"):
            kind = json.loads(body)["type"].rpartition(":")[2]
        with self.lock:
            self.kinds[kind] += 1
            if status == 201:
                self.acknowledged[key].add(body)
            if kind in ("outcome-unknown", "failed"):
                self.given_up[kind].add(key)
        over = status == 201 or kind in self.given_up
        if not over:
            time.sleep(0.2)
        return over

    def send(self, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/pay", b"x", {"Idempotency-Key": f'"{key}"'})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.failure is not None:
            raise self.failure


def disturb(front, service, clients, chance):
    """Kill whom it meets, evenly over the work; return how often whom."""
    plan = ["worker"] * (KILLS - KILLS // 2) + ["gateway"] * (KILLS // 4)
    plan += ["service"] * (KILLS - len(plan))
    chance.shuffle(plan)
    done = collections.Counter()
    for number, whom in enumerate(plan, 1):
        due = clients.all * (1 - number / (len(plan) + 1))
        while clients.at_work() and clients.left() > due:
            time.sleep(0.005)
        if whom == "worker":
            for pid in front.workers()[:1]:
                kill(pid)
        else:
            (front if whom == "gateway" else service).strike()
        done[whom] += 1
    return dict(done)


def storm(policy, module=True):
    """One storm; its effects and its clients."""
    seed = int.from_bytes(os.urandom(4), "big")
    chance = random.Random(seed)
    begun = time.monotonic()
    service = Service("ledger")
    front = Gateway(service, policy) if module else Bare(service)
    try:
        clients = Clients(front.port, 2 if module else 1, chance)
        try:
            kills = disturb(front, service, clients, chance)
        finally:
            clients.join()
    finally:
        front.stop()
        service.stop()
    found = effects.read("ledger")
    note(f"seed {seed}, {policy}: {clients.all} clients of {KEYS} keys; killed {kills}; "
         f"{dict(clients.kinds)}; {time.monotonic() - begun:.0f} s")
    return front, found, clients


def judged(policy, *ends):
    front, found, clients = storm(policy)
    records = effects.records(front.store)
    faults = effects.judge(policy, ("completed", *ends), found, records, clients.acknowledged)
    unequal = [key for key, bodies in clients.acknowledged.items() if len(bodies) > 1]
    equal((faults, unequal), ([], []))
    given_up = set().union(*clients.given_up.values())
    equal(set(clients.acknowledged) | given_up, {f"k{n}" for n in range(KEYS)})
    equal(set(clients.acknowledged) & given_up, set())
    for key in clients.given_up["failed"]:
        assert records[key]["attempts"] >= 5, records[key]
    counts = {problem: len(keys) for problem, keys in clients.given_up.items()}
    note(f"{len(found)} keys had their effect, {effects.again(found)} of them again; "
         f"{len(clients.acknowledged)} acknowledged, 0 lost; for a person: {counts}")
    return found, clients


def storms(seen, what, run, *args):
    """Storms, each in a folder of its own, until one of @STORMS has @seen what it is for."""
    top = os.getcwd()
    for number in range(STORMS):
        os.mkdir(f"{number}")
        os.chdir(f"{number}")
        try:
            if seen(*run(*args)):
                return
        finally:
            os.chdir(top)
    raise AssertionError(f"{what} in {STORMS} storms: they were too weak")


def some_again(found, _clients):
    return effects.again(found) > 0


@test(rows=[2, 3, 4])
def under_hold_no_effect_comes_twice():
    """Each key has one effect at most; what was acknowledged is on record and is what
    everybody was told; the rest is unknown."""

    def hold():
        found, clients = judged("hold", "unknown")
        equal(effects.again(found), 0)
        return found, clients

    storms(lambda _, clients: clients.given_up["outcome-unknown"], "nobody was cut off", hold)


@test(rows=[2, 3, 4])
def under_rerun_what_is_done_again_knows_it():
    """Likewise; what ran again, after a worker or a gateway was killed, was told that it
    takes over, with growing fences. What the service broke off is unknown here too, and
    what was begun five times has failed."""
    storms(some_again, "nobody was cut off", judged, "rerun", "unknown", "failed")


@test
def without_the_module_effects_come_twice():
    """The control: the same clients and kills on plain nginx."""

    def control():
        _, found, clients = storm("control", module=False)
        note(f"{effects.again(found)} of {len(found)} keys had their effect more than once")
        return found, clients

    storms(some_again, "the control doubled nothing", control)


def masters(gateway):
    """The children of a gateway that have become nginx, to check the configuration or to
    serve."""
    names = []
    for pid in children(gateway.process.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
            names += f.read().split()
    return [name for name in names if name == "nginx"]


@test
def a_gateway_that_ends_as_it_starts_leaves_no_nginx():
    """A gateway is killed, or told to stop, while its nginx starts, which looks at signals
    only later: nginx ends with it each time, and the port is free."""
    service = Service("ledger")
    try:
        for number in range(STARTS):
            front = Gateway(service, "rerun")
            until(lambda: masters(front), "nginx")  # pylint: disable=cell-var-from-loop
            time.sleep(number / STARTS * 0.1)
            if number % 2 == 0:
                kill(front.process.pid)
            else:
                front.process.terminate()
            status = front.process.wait(PATIENCE)
            ends = (0, -signal.SIGTERM) if number % 2 else (-signal.SIGKILL,)
            assert status in ends, (number, status)
            until(lambda: not listens(front.port), f"nginx ends with gateway {number}")  # pylint: disable=cell-var-from-loop
            front.log.close()
    finally:
        service.stop()


@test
def the_judge_sees_what_is_planted():
    """What is sound is let pass, and each planted fault is found."""
    done = {"status": "completed", "attempts": 2, "fence": 8}
    first, second = effects.Effect(7, False), effects.Effect(8, True)
    sound = ("rerun", ("completed",), [first, second], done, True)
    equal(list(effects.judge_key(*sound)), [])
    for words, at, wrong in (
        ("None in the end", 3, None),
        ("released in the end", 3, {**done, "status": "released"}),
        ("after 0 effects", 2, []),
        ("3 effects in 2 attempts", 2, [first, second, second]),
        ("2 effects under hold", 0, "hold"),
        ("was not told", 2, [first, effects.Effect(8, False)]),
        ("fences [8, 8]", 2, [second, second]),
        ("fences [7, 9]", 2, [first, effects.Effect(9, True)]),
    ):
        planted = [*sound[:at], wrong, *sound[at + 1 :]]
        told = list(effects.judge_key(*planted))
        assert any(words in fault for fault in told), (words, told)
    unknown = effects.judge_key("hold", ("completed", "unknown"), [first],
                                {**done, "status": "unknown"}, True)
    assert "acknowledged, and unknown" in next(unknown)


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
