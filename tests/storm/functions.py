"""A storm over idem lambda: the runtimes of functions, and their handlers, are killed
while batches of a queue are worked on; what was not acknowledged comes again.

Each handler notes its effect in a ledger. The store and what the queue was told must
agree with it. The control is the same handler under a runtime without idem.
"""

import collections
import json
import os
import random
import signal
import sys
import threading
import time

import effects
from event_source import failures
from lambda_api import Sandbox
from patience import PATIENCE, Late
from procfs import children
from tap import LONG, TOP, equal, main, note, test

KEYS = 3000 if LONG else 90
KILLS = 500 if LONG else 24
BOXES = 6
BATCH = 5
SECONDS = 2  # For a batch: what was killed is busy for so long.
PLAIN = os.path.join(TOP, "tests", "queues", "bootstrap.py")

HANDLER = r"""#!/bin/sh
read -r event
order=${event#*order\\\":\ \\\"}
order=${order%%\\*}
case $order in k[0-9]*) ;; *) exit 1;; esac  # Who sends the event was killed.
printf '%-63s\n' "$order ${IDEM_FENCE:-0} ${IDEM_TAKEOVER:-0}" >>"$LEDGER"
sleep 0.03
echo '{}'
"""


def record_of(order, number):
    """A message as it is in the event."""
    return {
        "messageId": f"{number:032x}",
        "receiptHandle": "r",
        "body": json.dumps({"order": order}),
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:orders",
        "awsRegion": "eu-west-1",
    }


class Storm:
    """A queue in memory, sandboxes that work it off, and who kills in them."""

    def __init__(self, policy, idem, chance):
        with open("handler", "w", encoding="ascii") as f:
            f.write(HANDLER)
        os.chmod("handler", 0o755)
        self.store = "sqlite:" + os.path.abspath("idem.db")
        self.policy, self.chance = policy, chance
        self.env = {
            "IDEM_STORE": self.store,
            "IDEM_LAMBDA_KEY": ".body | fromjson | .order",
            "IDEM_LAMBDA_ATTEMPTS": "1000",
            "IDEM_LAMBDA_LEASE_MARGIN": "100ms",
            "IDEM_LAMBDA_START_MIN": "0ms",
            "IDEM_LAMBDA_STOP_MARGIN": "0ms",
            "IDEM_LAMBDA_ON_EXPIRED_LEASE": policy,
            "LEDGER": os.path.abspath("ledger"),
        }
        program = None if idem else [sys.executable, PLAIN]
        self.boxes = [Sandbox("./handler", self.env, program) for _ in range(BOXES)]
        self.waiting = collections.deque(f"k{n}" for n in range(KEYS))
        self.sent = KEYS
        self.acknowledged = set()
        self.given_up = collections.Counter()  # How often each was not acknowledged.
        self.over = set()
        self.kills = collections.Counter()
        self.ends = collections.Counter()
        self.lock = threading.Lock()
        self.failure = None

    def work(self, box):
        try:
            with box:
                while len(self.over) < KEYS:
                    assert time.monotonic() < self.deadline, "the storm never ends"
                    if not self.batch(box):
                        time.sleep(0.05)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = self.failure or error  # The others end by the first one.

    def batch(self, box):
        """Work on some messages; those that are not acknowledged come again."""
        with self.lock:
            orders = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
        if not orders:
            return False
        ids = [f"{number:032x}" for number in range(len(orders))]
        event = {"Records": [record_of(o, n) for n, o in enumerate(orders)]}
        answer = box.invoke(event, SECONDS)
        if "its lock was held by others for too long" in str(box.init_error):
            raise Late(f"{box.init_error}")
        assert box.init_error is None, box.init_error
        left = failures(answer, ids)
        with self.lock:
            self.ends[answer.kind] += 1
            for order, id_ in zip(orders, ids):
                if id_ in left:
                    self.come_again(order)
                else:
                    self.acknowledged.add(order)
                    self.over.add(order)
        return True

    def come_again(self, order):
        self.given_up[order] += 1
        self.sent += 1
        due = threading.Timer(0.3, self.waiting.append, [order])
        due.daemon = True
        due.start()

    def give_up(self):
        """Under hold: take out what waits for a person by now."""
        found = effects.records(self.store)
        unknown = {key for key, record in found.items() if record["status"] == "unknown"}
        with self.lock:
            self.over |= unknown

    def strike(self):
        """Kill the runtime or the handler of a sandbox that is at work."""
        box = self.chance.choice(self.boxes)
        process = box.process
        if process is None or process.poll() is not None or box.idle.is_set():
            return
        handlers = children(process.pid)
        whom = "handler" if handlers and self.chance.random() < 0.5 else "runtime"
        try:
            os.kill(handlers[0] if whom == "handler" else process.pid, signal.SIGKILL)
            self.kills[whom] += 1
        except ProcessLookupError:
            pass

    def run(self):
        self.deadline = time.monotonic() + PATIENCE * (40 if LONG else 2)
        threads = [threading.Thread(target=self.work, args=(box,)) for box in self.boxes]
        for thread in threads:
            thread.start()
        checked = time.monotonic()
        while any(thread.is_alive() for thread in threads) and self.failure is None:
            if sum(self.kills.values()) < KILLS:
                self.strike()
            if self.policy == "hold" and time.monotonic() > checked + 1:
                self.give_up()
                checked = time.monotonic()
            time.sleep(self.chance.uniform(0.02, 0.12))
        self.deadline = 0 if self.failure else self.deadline
        for thread in threads:
            thread.join()
        if self.failure is not None:
            raise self.failure


def storm(policy, idem=True):
    """One storm, and its effects."""
    seed = int.from_bytes(os.urandom(4), "big")
    begun = time.monotonic()
    weather = Storm(policy, idem, random.Random(seed))
    weather.run()
    found = effects.read("ledger")
    note(f"seed {seed}, {policy}: {KEYS} messages, {weather.sent} deliveries; killed "
         f"{dict(weather.kills)}; {dict(weather.ends)}; {time.monotonic() - begun:.0f} s")
    # How many there are is chance: some work ends before its killer comes.
    assert sum(weather.kills.values()) >= KILLS // 4, weather.kills
    return weather, found


def judged(policy, *ends):
    weather, found = storm(policy)
    records = effects.records(weather.store)
    faults = effects.judge(policy, ("completed", *ends), found, records, weather.acknowledged)
    equal(faults, [])
    note(f"{len(found)} keys had their effect, {effects.again(found)} of them again; "
         f"{len(weather.acknowledged)} acknowledged, 0 lost")
    return weather, found, records


@test(rows=[59])
def under_rerun_every_message_is_done():
    """Every message is acknowledged, and on record before; what ran again was told that
    it takes over, with growing fences."""
    weather, found, records = judged("rerun")
    equal(weather.acknowledged, set(records))
    assert effects.again(found), "nobody was cut off: the storm was too weak"


@test(rows=[59])
def under_hold_no_effect_comes_twice():
    """No effect comes twice; what is not acknowledged is unknown."""
    weather, found, records = judged("hold", "unknown")
    equal(effects.again(found), 0)
    unknown = {key for key, record in records.items() if record["status"] == "unknown"}
    assert unknown, "nobody was cut off: the storm was too weak"
    equal(weather.acknowledged & unknown, set())
    note(f"{len(unknown)} unknown")


@test
def without_idem_effects_come_twice():
    """The control: the same handler and kills under a runtime without idem."""
    _, found = storm("control", idem=False)
    note(f"{effects.again(found)} of {len(found)} keys had their effect more than once")
    assert effects.again(found) > 0, "the control doubled nothing: the storm was too weak"


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
