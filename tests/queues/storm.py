"""Duplicates, kills, freezes and a store that is cut off: what is on record, what is in
the queue, and what happened, must agree."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

from files import write
from kept import kept
from rig import Between, Place, ledger, outcomes
from procfs import children
from tap import LONG, equal, kill_session, main, note, test
from patience import PATIENCE, in_time, until

import dynamo

SEED = int(os.environ.get("IDEM_TEST_SEED", "1"))

# An effect, and then a while in which it is not on record.
WORK = """#!/bin/sh
read -r body
case $body in *poison*) echo "$IDEM_KEY" >>poison; exit 1;; esac
echo "$IDEM_KEY $IDEM_FENCE $IDEM_TAKEOVER" >>ledger
sleep %s
"""


def write_work(seconds):
    write("work", WORK % seconds, 0o755)


def bodies(count, poison, rng):
    """@count messages, a fifth of which are there twice, in any order."""
    all_ = [
        json.dumps({"id": f"k{i}", "kind": "poison" if i < poison else "good"})
        for i in range(count)
    ]
    all_ += rng.sample(all_[poison:], count // 5)
    rng.shuffle(all_)
    return all_


class Checked(Between):
    """In front of the queue: what is deleted must be on record by then."""

    def __init__(self, place, sample):
        super().__init__(place.at, self.look)
        self.place = place
        self.sample = sample
        self.keys = {}
        self.checked = self.deleted = 0
        self.wrong = []

    def answer(self, request, status, text, headers):
        if b'"ReceiptHandle"' in text:
            for message in json.loads(text).get("Messages", []):
                body = json.loads(message["Body"])
                self.keys[message["ReceiptHandle"]] = body["id"]
        super().answer(request, status, text, headers)

    def look(self, action, body):
        if action == "DeleteMessageBatch":
            for entry in body["Entries"]:
                self.deleted += 1
                if self.deleted % self.sample == 0:
                    self.check(self.keys[entry["ReceiptHandle"]])
        return None

    def check(self, key):
        self.checked += 1
        status = self.place.status(key)
        if status != "completed":
            self.wrong.append((key, status))


class Storm:
    """Two consumers, and somebody who kills and freezes what works for them. He kills
    a consumer itself twice only: three receives is what the queue allows."""

    def __init__(self, place, options, rng, workers, kills, freezes):
        self.place, self.options, self.rng = place, options, rng
        self.workers = workers
        self.left = {"kill": kills, "freeze": freezes, "consumer": 2}
        self.done = dict.fromkeys(self.left, 0)
        self.consumers = [self.begin(), self.begin()]
        self.frozen = []

    def begin(self):
        args = ("-w", str(self.workers), "-q", *self.options)
        args = self.place.args(*args, work=["./work"])
        return self.place.idem.start(*args, env=self.place.env, stderr=subprocess.DEVNULL)

    def count(self, what):
        self.left[what] -= 1
        self.done[what] += 1

    def turn(self):
        for pid, at in list(self.frozen):
            if time.monotonic() > at:
                self.frozen.remove((pid, at))
                self.send(pid, signal.SIGCONT)
        if self.left["consumer"] and self.done["kill"] > 3 * (1 + self.done["consumer"]):
            self.count("consumer")
            self.consumers[0].kill()
            self.consumers[0].wait()
            self.consumers = [self.consumers[1], self.begin()]
        victims = [pid for c in self.consumers for pid in children(c.pid)]
        if not victims:
            return
        victim = self.rng.choice(victims)
        if self.left["freeze"] and self.rng.random() < 0.3:
            self.count("freeze")
            self.send(victim, signal.SIGSTOP)
            self.frozen.append((victim, time.monotonic() + self.rng.uniform(1, 5)))
        elif self.left["kill"]:
            self.count("kill")
            self.send(victim, signal.SIGKILL)

    @staticmethod
    def send(pid, signo):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signo)

    def run(self, seconds):
        began = time.monotonic()
        while self.place.queue.count() != (0, 0) or self.frozen:
            in_time(time.monotonic() - began, seconds, f"{self.place.queue.count()} messages")
            self.turn()
            time.sleep(self.rng.uniform(0.02, 0.12))

    def stop(self):
        for pid, _ in self.frozen:
            self.send(pid, signal.SIGCONT)
        for consumer in self.consumers:
            consumer.terminate()
        try:
            return [consumer.wait(PATIENCE) for consumer in self.consumers]
        finally:
            for consumer in self.consumers:
                kill_session(consumer)


def weather(policy, work, count, poison, kills, freezes, seconds):
    rng = random.Random(SEED)
    write_work(work)
    p = Place(visibility=12, receives=3)
    sent = bodies(count, poison, rng)
    with Checked(p, 10 if LONG else 4) as between:
        p.env["AWS_ENDPOINT_URL_SQS"] = between.url
        p.queue.send(sent)
        options = ("--key-from", ".id", "--lease", "2s", "--retry-after", "1s")
        options += ("--on-expired-lease", policy, "--max-attempts", "0")
        storm = Storm(p, options, rng, 4, kills, freezes)
        try:
            until(ledger, "work has begun")
            storm.run(seconds)
        finally:
            stopped = storm.stop()
    equal(stopped, [0, 0])
    equal(between.wrong, [])
    assert between.checked > 5, between.checked
    note(
        f"seed {SEED}, {policy}: {len(sent)} messages of {count} keys; workers killed "
        f"{storm.done['kill']} times, frozen {storm.done['freeze']} times, consumers "
        f"killed {storm.done['consumer']} times; {between.checked} of {between.deleted} "
        "deletions compared with the store"
    )
    return p, {record["key"]: record for record in p.records()}


def sizes(short, long):
    return long if LONG else short


@test(rows=[64])
def every_effect_has_one_record():
    """Messages, a fifth of them twice, while workers are killed and frozen: each key is
    on record once, as completed; none is lost; what ran again was told so; nothing
    was deleted before it was on record; only poison is in the dead-letter queue, on
    record as failed."""
    short, long = (100, 3, 12, 4, 100), (10000, 50, 600, 150, 3000)
    count, poison, kills, freezes, seconds = sizes(short, long)
    p, records = weather("rerun", 0.05, count, poison, kills, freezes, seconds)
    effects = {}
    for line in ledger():
        key, _, takeover = line.split()
        effects.setdefault(key, []).append(takeover)
    good = {f"k{i}" for i in range(poison, count)}
    equal({k for k, r in records.items() if r["status"] == "completed"}, good)
    equal(set(effects), good)
    again = {k: e for k, e in effects.items() if len(e) > 1}
    untold = {k: e for k, e in again.items() if set(e[1:]) != {"1"}}
    equal(untold, {})
    dead = sorted(json.loads(body)["id"] for body in p.queue.dead())
    done = done_but_dead(dead, records, freezes)
    dead = [key for key in dead if key not in done]
    equal(dead, sorted(f"k{i}" for i in range(poison)))
    equal({records[k]["status"] for k in dead}, {"failed"})
    note(f"{len(effects)} keys had their effect, {len(again)} of them again, told so")


def done_but_dead(dead, records, freezes):
    """Of the dead messages those of completed keys. Who held one for the third time was
    killed or frozen before the deletion: as many as that may have been."""
    done = {key for key in dead if records[key]["status"] == "completed"}
    assert len(done) <= 2 + freezes, done
    return done


@test
def under_hold_no_effect_comes_twice():
    """The same where a person must look: no effect comes twice; what is not on record
    as completed is unknown, and its message was not acknowledged."""
    short, long = (50, 2, 12, 2, 100), (2000, 20, 150, 40, 1500)
    count, poison, kills, freezes, seconds = sizes(short, long)
    p, records = weather("hold", 0.4, count, poison, kills, freezes, seconds)
    keys = [line.split()[0] for line in ledger()]
    equal(len(keys), len(set(keys)))
    by_status = {}
    for key, record in records.items():
        by_status.setdefault(record["status"], set()).add(key)
    dead = {json.loads(body)["id"] for body in p.queue.dead()}
    unknown = by_status.get("unknown", set()) | by_status.get("in_progress", set())
    equal(set(records), {f"k{i}" for i in range(count)})
    equal(by_status["completed"] - set(keys), set())
    equal(set(keys) - by_status["completed"] - unknown, set())
    dead -= done_but_dead(dead, records, freezes)
    equal(dead, unknown | by_status.get("failed", set()))
    assert len(unknown) > 0, "nothing was cut off: the storm was too weak"
    note(f"{len(keys)} effects, {len(unknown)} keys unknown, {len(dead)} dead")


@test
def a_hot_poison_key_does_not_slow_the_rest():
    """Many messages of one key that always fails take one worker at most: the others
    are done while they are still at it."""
    p = Place(visibility=30, receives=2)
    hot = [json.dumps({"id": "hot", "n": 0})] * 8
    cold = [json.dumps({"id": f"k{i}", "n": i}) for i in range(40)]
    p.queue.send(hot + cold)
    work = (
        "if [ $IDEM_KEY = hot ]; then echo begin >>hot; sleep 1; echo end >>hot; exit 1; fi; "
        "sleep 0.05; echo $IDEM_KEY >>ledger"
    )
    options = ("-w", "4", "--key-from", ".id", "-q", "--lease", "20s", "--retry-after", "1s")
    began = time.monotonic()
    with p.start(*options, work=work):
        until(lambda: len(ledger()) == 40, "the others are done")
        took = time.monotonic() - began
        begun = ledger("hot")
        assert p.queue.count(p.queue.dead_url)[0] < 8, "the hot ones were done first"
        p.queue.wait_empty(90)
    equal(len(ledger()), 40)
    lines = ledger("hot")
    equal(lines, ["begin", "end"] * (len(lines) // 2))  # Never two at once.
    equal(len(p.queue.dead()), 8)
    note(f"40 others in {took:.1f} s; by then the hot key had begun {len(begun)} lines")


@test(rows=[14, 24])
def a_store_cut_off_after_the_effect_costs_nothing():
    """The store is cut off between effect and record: nothing is acknowledged meanwhile,
    the journal replays, and nothing runs twice."""
    with dynamo.server("dynoxide") as server:
        def rule(_action, _body):
            return "drop" if os.path.exists("cut") else None

        with Between(server, rule) as table:
            p = Place(visibility=200, receives=2, store=f"dynamodb://orders?endpoint={table.url}")
            equal(p.idem("store", "create", env=p.env).status, 0)
            with Between(p.at) as queue:
                p.env["AWS_ENDPOINT_URL_SQS"] = queue.url
                p.queue.send([f"m{i}" for i in range(10)])
                cut_off(p, queue)


def deletions(queue):
    return sum(len(b["Entries"]) for a, b in queue.seen if a == "DeleteMessageBatch")


def cut_off(p, queue):
    work = 'printf "%s\\n" "$(cat)" >>ledger; test -e once || { touch cut once; }; sleep 0.5'
    options = ("-w", "2", "--until-empty", "--json", "--lease", "120s")
    with open("lines", "w", encoding="ascii") as to:
        with p.start(*options, work=work, stdout=to) as consumer:
            until(lambda: os.path.exists("cut"), "it is cut off")
            before, since = deletions(queue), time.monotonic()
            until(lambda: "not recorded" in "".join(ledger("lines")), "it is told", 60)
            time.sleep(2)
            during, took = deletions(queue), time.monotonic() - since
            effects = len(ledger())
            waiting = len(kept("journal", ".idj"))
            os.unlink("cut")
            equal(consumer.wait(100), 0)
    lines = [json.loads(line) for line in ledger("lines")]
    equal(during, before)
    equal(sorted(ledger()), sorted(f"m{i}" for i in range(10)))
    equal((p.queue.dead(), p.queue.count()), ([], (0, 0)))
    equal({line["receives"] for line in lines}, {1})
    listed = p.idem("list", "--json", env=p.env).stdout.splitlines()
    equal([json.loads(line)["status"] for line in listed], ["completed"] * 10)
    kinds = {kind: outcomes(lines).count(kind) for kind in sorted(set(outcomes(lines)))}
    assert kinds.get("not recorded", 0) >= 1 and kinds.get("replayed", 0) >= 1, kinds
    note(
        f"cut off for {took:.0f} s after {effects} effects: {waiting} entries in the journal, "
        f"{during - before} deletions; outcomes {kinds}"
    )


if __name__ == "__main__":
    main()
