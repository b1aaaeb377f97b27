"""Storms over batches: records that kill the function, hang it or end it, duplicates
within and between batches, from queues, FIFO queues and streams.

What must hold for any of them: a record that never ran has no attempt, but for one
whose turn had come when something else killed the function; what finished does not
run again because of what came after it; and what Lambda is told of a batch is exactly
what is on record.
"""

import base64
import collections
import json
import os
import random
import signal
import subprocess
import threading
import time

import dynamo
from lambda_api import Sandbox
from tap import LONG, Idem, equal, main, note, skip, test

SEED = int(os.environ.get("IDEM_TEST_SEED", "1"))
OBJECT = os.environ["IDEM_TEST_LAMBDA_STORM"] + ":handle"

# The same as storm.c. A program that dies leaves its runtime alive.
SCRIPT = """#!/bin/sh
cat >/dev/null
echo "$IDEM_KEY $IDEM_FENCE $IDEM_TAKEOVER" >>ledger
case $IDEM_KEY in
kill*) kill -9 $$;;
exit*) exit 3;;
hang*) sleep 60;;
fail*) echo '{"errorType": "Refused", "errorMessage": "never works"}'; exit 1;;
esac
echo 1
"""
POISON = ("kill", "exit", "hang", "fail")
SECONDS = 2  # That the function may take.


def ledger(name="ledger"):
    """[(key, fence, takeover)] of every run, in their order."""
    if not os.path.exists(name):
        return []
    with open(name, encoding="ascii") as f:
        return [(k, int(f), int(t)) for k, f, t in map(str.split, f)]


def is_poison(key):
    return key.startswith(POISON)


class Message:
    """One that is delivered until it is done, or has been received too often."""

    def __init__(self, number, key, group):
        self.name = f"{number:08d}"
        self.key = key
        self.group = group
        self.receives = 0
        self.due = 0.0


def messages(rng, count, every, groups):
    """@count messages, one of @every poison, and every tenth a duplicate."""
    found = []
    for number in range(count):
        group = f"g{rng.randrange(groups)}"
        poison = number % every == 3
        kind = POISON[number // every % len(POISON)] if poison else "ok"
        key = f"{kind}-{number}"
        if found and not poison and rng.random() < 0.1:
            twin = rng.choice(found[-12:])
            key, group = twin.key, twin.group
        found.append(Message(number, key, group))
    return found


def sqs(message):
    return {"messageId": message.name, "eventSource": "aws:sqs", "body": message.key,
            "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders"}


def fifo(message):
    return {**sqs(message), "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo",
            "attributes": {"MessageGroupId": message.group}}


def kinesis(message):
    data = base64.b64encode(message.key.encode()).decode()
    return {"eventSource": "aws:kinesis", "eventID": f"shard:{message.name}",
            "eventSourceARN": "arn:aws:kinesis:eu-west-1:1:stream/orders",
            "kinesis": {"partitionKey": message.group, "sequenceNumber": message.name,
                        "data": data}}


class Storm:
    """A function in one sandbox, and what is delivered to it."""

    def __init__(self, box, store, make, in_order, wait, limit):
        self.box = box
        self.store = store
        self.make = make
        self.in_order = in_order
        self.wait = wait  # Seconds until a failure comes again.
        self.limit = limit  # Receives, then it goes to the dead-letter queue.
        self.deaths = self.kills = self.answers = 0
        self.dead = []

    def records(self):
        """{key: record} of all that is on record."""
        told = self.store("list", "--json", "--limit", "1000000", env=dynamo.environment())
        equal((told.status, told.stderr), (0, b""))
        found = [json.loads(line) for line in told.stdout.splitlines()]
        return {r["key"]: r for r in found if "key" in r}

    def check(self):
        """Attempts are runs. Whatever else kills the function may hit it between a
        claim and its run, one record each time."""
        runs = collections.Counter(key for key, _, _ in ledger())
        found = self.records()
        more = {k: r["attempts"] - runs[k] for k, r in found.items()
                if r["attempts"] != runs[k]}
        assert all(n > 0 for n in more.values()), more
        assert sum(more.values()) <= self.kills, (more, self.kills)
        equal([k for k in runs if k not in found], [])
        return runs, found

    def expected(self, batch):
        """The names of those that must come again, by what is on record."""
        found = self.records()
        done = {k for k, r in found.items() if r["status"] == "completed"}
        names, stuck = [], set()
        for message in batch:
            waits = self.in_order and message.group in stuck
            if message.key in done and not waits:
                continue
            stuck.add(message.group)
            if not (waits and self.make is kinesis):
                names.append(message.name)  # A shard comes again from the first one.
        return names

    def too_late(self, batch):
        """Those behind a program that hung and was stopped: no time is left to ask
        whether they are done."""
        hung = [m.key.startswith("hang") for m in batch]
        return {m.name for m in batch[hung.index(True) + 1 :]} if any(hung) else set()

    def deliver(self, batch):
        """The messages of @batch that come again; None: the function died."""
        event = {"Records": [self.make(m) for m in batch]}
        for message in batch:
            message.receives += 1
        answer = self.box.invoke(event, seconds=SECONDS)
        if answer.kind != "response":
            self.deaths += 1
            return None
        self.answers += 1
        told = [f["itemIdentifier"] for f in answer.json()["batchItemFailures"]]
        if self.exact:
            equal([n for n in told if n not in self.too_late(batch)],
                  [n for n in self.expected(batch) if n not in self.too_late(batch)])
        return [m for m in batch if m.name in told]

    exact = True

    # ---- From a queue ----

    def queue(self, waiting, rng):
        """Batches of up to ten that are due; a message that failed comes again. In a
        FIFO queue none overtakes one before it in its group."""
        while waiting:
            now = time.monotonic()
            stuck, batch = set(), []
            for message in waiting:
                if message.due <= now and not (self.in_order and message.group in stuck):
                    batch.append(message)
                else:
                    stuck.add(message.group)
                if len(batch) == 10:
                    break
            if not batch:
                time.sleep(0.02)
                continue
            batch = batch[: rng.randrange(1, 11)]
            assert self.deaths < 200 + 2 * self.kills, "the function only dies"
            again = self.deliver(batch)
            due = time.monotonic() + self.wait
            for message in batch:
                if again is not None and message not in again:
                    waiting.remove(message)
                elif is_poison(message.key) and message.receives >= self.limit:
                    waiting.remove(message)
                    self.dead.append(message)
                else:
                    message.due = due

    # ---- From a stream ----

    def stream(self, shard, tries=0):
        """In order, from the first that failed; what keeps failing is split in two
        until one record is left, which is put aside."""
        while shard:
            again = self.deliver(shard)
            if again == []:
                return
            at = 0 if again is None else shard.index(again[0])
            tries = tries + 1 if at == 0 else 0
            shard = shard[at:]
            if tries > 1 and len(shard) > 1:
                self.stream(shard[: len(shard) // 2], tries)
                shard, tries = shard[len(shard) // 2 :], 0
            elif tries > 3:
                self.dead += shard
                return
            elif tries > 0:
                time.sleep(self.wait)


def killer(storm, rng, count, stop):
    """SIGKILL for the function at any moment, @count times."""
    while storm.kills < count and not stop.wait(rng.uniform(0.02, 0.4)):
        process = storm.box.process
        if process is not None and storm.box.alive():
            storm.kills += 1
            os.kill(process.pid, signal.SIGKILL)


def judge(storm, sent):
    """At the end: nothing is lost, and nothing was done twice that was not told."""
    runs, found = storm.check()
    dead = {m.key for m in storm.dead}
    for key in {m.key for m in sent}:
        if not is_poison(key):
            assert key not in dead, (key, found.get(key))
            equal((key, found[key]["status"]), (key, "completed"))
    times = collections.Counter()
    doubled = told = 0
    for key, _, takeover in ledger():
        times[key] += 1
        if times[key] > 1 and not is_poison(key):
            doubled += 1
            told += takeover
    assert doubled == told <= storm.kills, (doubled, told, storm.kills)
    if storm.kills == 0:
        equal({k: n for k, n in runs.items() if n > 1 and not is_poison(k)}, {})
    note(f"{len(sent)} messages, {storm.deaths} deaths ({storm.kills} kills), "
         f"{storm.answers} {'exact ' if storm.exact else ''}answers, {len(storm.dead)} in the dead-letter queue, "
         f"{doubled} runs as told takeovers")


def blow(handler, make, url=None, count=36, groups=4, kills=0, every=9):
    """One storm of @count messages on SQLite, or on DynamoDB at @url."""
    rng = random.Random(SEED)
    env = {"IDEM_LAMBDA_FAIL": "Never", "IDEM_LAMBDA_LEASE_MARGIN": "100ms",
           "IDEM_LAMBDA_STOP_MARGIN": "300ms", "IDEM_LAMBDA_START_MIN": "100ms",
           "IDEM_LAMBDA_KEY": ".kinesis.data | @base64d" if make is kinesis else ".body"}
    store = Idem()
    if url is not None:
        place = f"dynamodb://storm?endpoint={url}&region=eu-west-1"
        store = Idem(place)
        made = store("store", "create", env=dynamo.environment())
        equal(made.status, 0)
        env.update(dynamo.environment(), IDEM_STORE=place)
    if handler == "./handler":
        with open("handler", "w", encoding="ascii") as f:
            f.write(SCRIPT)
        os.chmod("handler", 0o755)
    sent = messages(rng, count, every, groups)
    with Sandbox(handler, env) as box:
        storm = Storm(box, store, make, in_order=make is not sqs,
                      wait=0.5 if kills else 0.2, limit=20 if kills else 3)
        storm.exact = kills == 0
        stop = threading.Event()
        thread = threading.Thread(target=killer, args=(storm, rng, kills, stop))
        thread.start()
        if make is kinesis:
            for at in range(0, len(sent), 12):
                storm.stream(sent[at : at + 12])
        else:
            storm.queue(list(sent), rng)
        stop.set()
        thread.join()
        judge(storm, sent)


@test
def a_queue_and_a_function_in_the_process():
    """Records that kill, hang and end a function in the process take no attempt of another."""
    blow(OBJECT, sqs)


@test
def a_queue_and_a_program():
    """So with a program, whose death its runtime survives."""
    blow("./handler", sqs)


@test
def a_fifo_queue():
    """In a FIFO queue what is behind a failure in its group is not claimed."""
    blow(OBJECT, fifo)


@test
def a_stream_that_is_split():
    """In a shard, which is split until the record that kills is alone."""
    blow(OBJECT, kinesis, count=24)


@test
def a_table_of_dynamodb():
    """The same with the records in a table of DynamoDB."""
    kind = "local" if LONG else "dynoxide"
    if why := dynamo.missing(kind):
        skip(why)
    with dynamo.server(kind) as url:
        blow(OBJECT, sqs, url)


@test
def kills_at_any_moment():
    """What kills the function may hit it anywhere: nothing is lost, and what runs again
    is told that it takes over."""
    if LONG:
        blow(OBJECT, sqs, count=10_000, kills=300, every=500)
    else:
        blow(OBJECT, sqs, count=60, kills=4, every=1000)


@test
def the_control_without_idem_doubles():
    """The same messages by a loop that knows nothing: what it had done before it was
    killed is done again."""
    rng = random.Random(SEED)
    sent = messages(rng, 36, 9, 4)
    loop = ('for key; do echo "$key 0 0" >>control; '
            'case $key in kill*|exit*|hang*|fail*) kill -9 $$;; esac; done')
    waiting = list(sent)
    while waiting:
        batch = waiting[:10]
        done = subprocess.run(["sh", "-c", loop, "sh", *(m.key for m in batch)], check=False)
        for message in batch:
            message.receives += 1
        if done.returncode == 0 or batch[0].receives >= 4:
            waiting = waiting[len(batch) :]
    runs = collections.Counter(k for k, _, _ in ledger("control") if not is_poison(k))
    doubled = sum(n > 1 for n in runs.values())
    note(f"{doubled} of {len(runs)} messages more than once without idem")
    assert doubled > 0, runs


main()
