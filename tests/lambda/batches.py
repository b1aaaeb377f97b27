"""Storms over batches: records that kill the function, hang it or end it, duplicates
within and between batches, from queues, FIFO queues and streams.

What must hold for any of them: a record that never ran has no attempt, but for one
whose turn had come when something else killed the function; what finished does not
run again because of what came after it; and what Lambda is told of a batch is exactly
what is on record.
"""

import base64
import collections
import contextlib
import json
import os
import random
import signal
import threading
import time

import dynamo
from files import write
from lambda_api import Function, Sandbox
from late_writes import Delivery, access_key, end_of, landed_late
from patience import until
from procfs import children
from tap import LONG, Idem, equal, note

SEED = int(os.environ.get("IDEM_TEST_SEED", "1"))
ATTEMPTS = 5  # As is the default of IDEM_LAMBDA_MAX_ATTEMPTS.

# ---- A handler that does the same as storm.c ----

# A program that dies leaves its runtime alive.
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


STOP_MARGIN = 0.5  # Seconds before the deadline at which a program is stopped.


class Handler:
    """What an event is given to, and how long it may take for it."""

    batch = 10  # Messages at most.

    def __init__(self, name, text=None, seconds=2 if LONG else 1.2):
        self.name = name
        self.text = text  # Of a program.
        self.seconds = seconds  # For a batch.
        # Seconds that must be left to start a program: one that was started is not to
        # be stopped because the machine is busy.
        self.start_min = 0.1 if text is None else seconds / 3
        # After so many seconds no more of a batch are started.
        self.cut_off = seconds - self.start_min - STOP_MARGIN

    def write(self):
        if self.text is not None:
            write(self.name, self.text, 0o755)


FUNCTION = Handler(Function(os.environ["IDEM_TEST_LAMBDA_STORM"]))
PROGRAM = Handler("./handler", SCRIPT, seconds=2)


def ledger(name="ledger"):
    """[(key, fence, takeover)] of every run, in their order."""
    if not os.path.exists(name):
        return []
    with open(name, encoding="ascii") as f:
        return [(k, int(f), int(t)) for k, f, t in map(str.split, f)]


def is_poison(key):
    return key.startswith(POISON)


# ---- Messages ----


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


# ---- What kills besides poison ----


class Killer:
    """Kills the function, or the process of its program or of its jq, @count times at
    any moment while @messages are delivered."""

    def __init__(self, box, rng, count, messages):
        self.box = box
        self.rng = rng
        self.left = count
        self.messages = messages
        self.kills = 0
        self.usual = 0.02  # Seconds that a delivery takes.

    def strike(self):
        process = self.box.process
        if process is None or not self.box.alive():
            return
        programs = children(process.pid)
        whom = programs[0] if programs and self.rng.random() < 0.5 else process.pid
        self.kills += 1
        self.left -= 1
        try:
            os.kill(whom, signal.SIGKILL)
        except ProcessLookupError:
            pass  # The program had ended.

    def over(self, size, waiting, call):
        """What @call gives, which delivers @size messages; @waiting are still to come."""
        chance = self.left * size / max(1, waiting)
        timer = None
        if self.left > 0 and self.rng.random() < chance:
            timer = threading.Timer(self.rng.uniform(0, 1.5 * self.usual), self.strike)
            timer.start()
        began = time.monotonic()
        answer = call()
        took = time.monotonic() - began
        self.usual += (min(took, 0.3) - self.usual) / 10
        if timer is not None:
            timer.join()  # It may strike between two deliveries, too.
        return answer


# ---- The function ----


class Function(Sandbox):
    """A sandbox each of whose processes has an access key of its own. A process is
    started after the one before it has ended, so numbers are times, too."""

    def begin(self, log):
        self.env["AWS_ACCESS_KEY_ID"] = access_key(self.starts)
        return super().begin(log)


# ---- The storm ----


class Storm:
    """A function in one sandbox, and what is delivered to it."""

    def __init__(self, box, handler, store, make, killer, every, wire=None):
        self.box = box
        self.handler = handler
        self.store = store
        self.make = make
        self.in_order = make is not sqs
        self.killer = killer
        self.every = every  # One answer of so many is held against the store.
        # What was killed by something else is busy for a while, and comes again.
        self.wait = 0.5 if killer.left else 0.2  # Seconds until a failure comes again.
        self.limit = 20 if killer.left else 3  # Receives, then a dead-letter queue.
        self.waiting = killer.messages
        self.wire = wire  # The calls to a table, where there is one.
        self.deaths = self.answers = self.compared = self.cut_short = self.landed = 0
        self.stalls = 0  # Deliveries that took their time without a record that hangs.
        self.dead = []
        self.acknowledged = set()  # (request id, key) of what Lambda was not told of.

    def records(self):
        """{key: record} of all that is on record."""
        told = self.store("list", "--json", "--max", "1000000", env=dynamo.environment())
        equal((told.status, told.stderr), (0, b""))
        found = [json.loads(line) for line in told.stdout.splitlines()]
        return {r["key"]: r for r in found if "key" in r}

    def only_in_log(self, found):
        """The lines of what is at work by @found, was acknowledged because the log has
        its outcome, and is not on record by the log's own last word of it: the function
        was killed before it told the store again."""
        outcomes, missing = {}, {}
        for line in self.box.lines():
            of = line.get("requestId"), line.get("key")
            if "entry" in line:
                outcomes[of] = line
            elif line["message"].startswith("the outcome is not on record"):
                missing[of[1]] = of[0]
            elif line["message"].endswith("is on record now"):
                missing.pop(of[1], None)
        lines = [outcomes[of, key] for key, of in missing.items()
                 if (of, key) in self.acknowledged]
        return [line for line in lines
                if found[line["key"]]["status"] == "in_progress" and
                found[line["key"]]["fence"] == line["fence"]]

    def reconcile(self):
        """Put on record what was acknowledged because the log has it, as an operator
        does. The number of them."""
        lines = self.only_in_log(self.records())
        if not lines:
            return 0
        told = self.store("reconcile", "-", env=dynamo.environment(),
                          input="".join(json.dumps(line) + "\n" for line in lines).encode())
        equal((told.status, told.stderr), (0, b""))
        recorded = sum(line.startswith(b"recorded") for line in told.stdout.splitlines())
        equal(recorded, len(lines))
        return recorded

    def check(self):
        """Attempts are runs. What else kills the function may hit it between a claim
        and its run, one record each time; so may its deadline, on a machine that
        stalls."""
        runs = collections.Counter(key for key, _, _ in ledger())
        found = self.records()
        more = {k: r["attempts"] - runs[k] for k, r in found.items()
                if r["attempts"] != runs[k]}
        assert all(n > 0 for n in more.values()), more
        assert sum(more.values()) <= self.killer.kills + self.stalls, (more, self.stalls)
        equal([k for k in runs if k not in found], [])
        return runs, found

    def expected(self, batch, done):
        """The names of those that must come again, where the keys in @done are
        completed."""
        names, stuck = [], set()
        for message in batch:
            waits = self.in_order and message.group in stuck
            if message.key in done and not waits:
                continue
            stuck.add(message.group)
            if not (waits and self.make is kinesis):
                names.append(message.name)  # A shard comes again from the first one.
        return names

    def landed_late(self, key, delivery):
        """Whether @key was at work when @delivery was answered, and is completed since:
        see late_writes.py. What the server has done the wire may learn a moment later."""
        if self.wire is None:
            return False  # What is killed writes nothing more to a file.
        until(lambda: end_of(self.wire.calls(), key), f"the end of {key} on the wire")
        return landed_late(self.wire.calls(), key, delivery)

    def compare(self, batch, told, delivery):
        """What Lambda was told is what is on record. Those after a program that hung
        until it was stopped are told of as well: no time is left to ask for them."""
        took = delivery.ended - delivery.began
        hung = [m.key.startswith("hang") for m in batch]
        end = hung.index(True) + 1 if any(hung) else len(batch)
        ran_out = any(hung) and took >= self.handler.seconds - STOP_MARGIN
        if took >= self.handler.cut_off and not ran_out:
            # The machine is so busy that the deadline may have cut some off.
            self.cut_short += 1
            return
        batch, after = batch[:end], {m.name for m in batch[end:]}
        told = [n for n in told if n not in after]
        done = {k for k, r in self.records().items() if r["status"] == "completed"}
        wanted = self.expected(batch, done)
        for message in batch:
            if message.name in told and message.name not in wanted:
                assert self.landed_late(message.key, delivery), (message.key, told, wanted)
                self.landed += 1
                done.discard(message.key)
                wanted = self.expected(batch, done)
        equal(told, wanted)
        self.compared += 1

    def ask(self, batch):
        """What is told of @batch, as names of messages, and the Delivery; None: the
        function died."""
        event = {"Records": [self.make(m) for m in batch]}
        for message in batch:
            message.receives += 1
        began, ran = time.monotonic(), len(ledger())
        answer = self.killer.over(
            len(batch), self.waiting,
            lambda: self.box.invoke(event, seconds=self.handler.seconds))
        # What hangs until it is stopped has said first that it runs.
        hung = any(key.startswith("hang") for key, _, _ in ledger()[ran:])
        self.stalls += not hung and time.monotonic() - began >= self.handler.cut_off
        if answer.kind != "response":
            self.deaths += 1
            return None
        self.answers += 1
        told = [f["itemIdentifier"] for f in answer.json()["batchItemFailures"]]
        self.acknowledged |= {(answer.request_id, m.key) for m in batch
                              if m.name not in told}
        return told, Delivery(self.box.starts, began, time.monotonic())

    def deliver(self, batch):
        """The messages of @batch that come again; None: the function died."""
        answer = self.ask(batch)
        if answer is None:
            return None
        told, delivery = answer
        if self.answers % self.every == 0:
            self.compare(batch, told, delivery)
        return [m for m in batch if m.name in told]

    # ---- From a queue ----

    def queue(self, waiting, rng):
        """Batches of those that are due; a message that failed comes again. In a FIFO
        queue none overtakes one before it in its group."""
        while waiting:
            now = time.monotonic()
            stuck, batch = set(), []
            for message in waiting:
                if message.due <= now and not (self.in_order and message.group in stuck):
                    batch.append(message)
                else:
                    stuck.add(message.group)
                if len(batch) == self.handler.batch:
                    break
            if not batch:
                time.sleep(0.02)
                continue
            batch = batch[: rng.randrange(1, self.handler.batch + 1)]
            assert self.deaths < 200 + 2 * self.killer.kills, "the function only dies"
            self.waiting = len(waiting)
            again = self.deliver(batch)
            # What died is busy until its lease ends: so long it is not seen again.
            lease = self.handler.seconds + 2.2 if self.killer.kills == 0 else 0
            due = time.monotonic() + (max(lease, self.wait) if again is None else self.wait)
            for message in batch:
                if again is not None and message not in again:
                    waiting.remove(message)
                elif is_poison(message.key) and message.receives >= self.limit:
                    waiting.remove(message)
                    self.dead.append(message)
                else:
                    message.due = due

    # ---- From a stream ----

    def stream(self, sent):
        """Batches of a shard, one after the other."""
        for at in range(0, len(sent), 12):
            self.waiting = len(sent) - at
            self.shard(sent[at : at + 12])

    def shard(self, shard, tries=0):
        """In order, from the first that failed; what keeps failing is split in two
        until one record is left, which is put aside if it is poison: any other one is at
        work still where a stall cut it off, until its lease ends."""
        while shard:
            again = self.deliver(shard)
            if again == []:
                return
            at = 0 if again is None else shard.index(again[0])
            tries = tries + 1 if at == 0 else 0
            shard = shard[at:]
            if tries > 1 and len(shard) > 1:
                self.shard(shard[: len(shard) // 2], tries)
                shard, tries = shard[len(shard) // 2 :], 0
            elif tries > self.limit and is_poison(shard[0].key):
                self.dead += shard
                return
            elif tries > 0:
                time.sleep(self.wait)

    # ---- At the end ----

    def judge(self, sent):
        """Nothing is lost, nothing was done twice that was not told, and poison had no
        more than its attempts."""
        from_log = self.reconcile()
        runs, found = self.check()
        kills = self.killer.kills
        dead = {m.key for m in self.dead}
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
        assert doubled == told <= kills, (doubled, told, kills)
        # A program that only says that it failed is tried for as long as it comes.
        counted = ("kill", "hang") if self.handler.text else ("kill", "hang", "exit")
        poison = {k: n for k, n in runs.items() if k.startswith(counted)}
        assert max(poison.values()) <= ATTEMPTS, poison
        note(f"{len(sent)} messages, {self.deaths} deaths ({kills} kills), "
             f"{self.answers} answers ({self.compared} compared with the store, "
             f"{self.cut_short} too near to their deadline), "
             f"{self.stalls} cut off by a stall, "
             f"{len(self.dead)} in the dead-letter queue, {doubled} runs as told takeovers, "
             f"{self.landed} ends of killed functions that landed late, "
             f"{from_log} recorded from the log, "
             f"at most {max(poison.values())} of poison")


@contextlib.contextmanager
def storm(handler, make, wire=None, count=36, groups=4, kills=0, every=9, compare=1):
    """A storm of @count messages on SQLite, or on the table behind @wire, and they."""
    rng = random.Random(SEED)
    env = {"IDEM_LAMBDA_OUTCOME": "Never=fail",
           "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9",  # There is no queue to ask.
           "IDEM_LAMBDA_START_MIN": f"{handler.start_min * 1000:.0f}ms",
           "IDEM_LAMBDA_KEY": ".kinesis.data | @base64d" if make is kinesis else ".body"}
    store = Idem()
    if wire is not None:
        place = f"dynamodb://storm?endpoint={wire.url}&region=eu-west-1"
        store = Idem(place)
        made = store("store", "create", env=dynamo.environment())
        equal(made.status, 0)
        env.update(dynamo.environment(), IDEM_STORE=place)
    handler.write()
    sent = messages(rng, count, every, groups)
    with Function(handler.name, env) as box:
        killer = Killer(box, rng, kills, count)
        yield Storm(box, handler, store, make, killer, compare, wire), sent


def blow(handler, make, wire=None, kills=0, **more):
    """One storm, from its first message to its judgement."""
    with storm(handler, make, wire, kills=kills, **more) as (all_of_it, sent):
        if make is kinesis:
            all_of_it.stream(sent)
        else:
            all_of_it.queue(list(sent), all_of_it.killer.rng)
        equal((all_of_it.killer.kills, all_of_it.compared > 0), (kills, True))
        all_of_it.judge(sent)
