"""Storms over batches, with the records in a file of SQLite.

--dynamodb: in a table of DynamoDB.
"""

import collections
import contextlib
import os
import random
import signal
import subprocess
import threading

import dynamo
import wiretap
from batches import (FUNCTION, PROGRAM, SEED, Handler, blow, fifo, is_poison, kinesis,
                     ledger, messages, sqs, storm)
from late_writes import end_of, landed_late, process_of
from patience import in_time, until
from tap import LONG, add, arguments, equal, main, note, test

ON_TABLE = arguments() == ["--dynamodb"]
KIND = "local" if LONG else "dynoxide"


@contextlib.contextmanager
def place():
    """None for a file, or the wire to a server of its own, where there is one."""
    if not ON_TABLE:
        yield None
        return
    with dynamo.server(KIND) as url, wiretap.before(url) as wire:
        yield wire


def add_storm(name, doc, storm):
    """A case of @storm: (handler, make, what blow() takes)."""

    def case():
        handler, make, more = storm
        with place() as wire:
            blow(handler, make, wire, **more)

    add(f"{name}: {doc}", case)


def kills(handler, make, *shape, **more):
    """A storm of @shape: how many messages, kills, and messages to one that is poison."""
    return handler, make, dict(zip(("count", "kills", "every"), shape), **more)


for row in [
    ("a_queue_and_a_function", "Records that kill, hang and end a function in the process take "
     "no attempt of another.", (FUNCTION, sqs, {})),
    ("a_queue_and_a_script", "So with a script, whose death its runtime survives.",
     (PROGRAM, sqs, {"count": 27})),
    ("a_fifo_queue", "In a FIFO queue what follows a failure in its group is not claimed.",
     (FUNCTION, fifo, {})),
    ("a_stream_that_is_split", "In a shard, which is split until the record that kills is alone.",
     (FUNCTION, kinesis, {"count": 24})),
]:  # fmt: skip
    add_storm(*row)

if not ON_TABLE:
    add_storm("a_fifo_queue_and_a_script", "In a FIFO queue a script, too, is not given what "
              "follows a failure in its group.", (PROGRAM, fifo, {"count": 27}))  # fmt: skip
    add_storm("a_stream_and_a_script", "A shard is split for a script, too, until the record that "
              "kills is alone.", (PROGRAM, kinesis, {"count": 24}))  # fmt: skip

AT_ANY_MOMENT = ("kills_at_any_moment", "What kills the function may hit it anywhere: nothing "
                 "is lost, and what runs again is told that it takes over.")  # fmt: skip
OF_A_PROGRAM = ("kills_of_a_program", "So where either the runtime or the program is killed.")
IN_A_FIFO_QUEUE = ("kills_in_a_fifo_queue", "So where a group waits for the record that was killed.")
IN_A_STREAM = ("kills_in_a_stream", "So where all of a shard waits for it.")

if ON_TABLE and LONG:
    CASES = [
        (*AT_ANY_MOMENT, kills(FUNCTION, sqs, 10_000, 300, 500, compare=20)),
        (*OF_A_PROGRAM, kills(PROGRAM, sqs, 10_000, 300, 500, compare=20)),
        (*IN_A_FIFO_QUEUE, kills(FUNCTION, fifo, 2000, 100, 300, compare=4, groups=20)),
        (*IN_A_STREAM, kills(FUNCTION, kinesis, 2000, 100, 300, compare=4)),
    ]  # fmt: skip
elif ON_TABLE:
    CASES = [
        (*AT_ANY_MOMENT, kills(FUNCTION, sqs, 40, 2, 30)),
        (*OF_A_PROGRAM, kills(PROGRAM, sqs, 40, 2, 30)),
        (*IN_A_FIFO_QUEUE, kills(FUNCTION, fifo, 30, 1, 30)),
    ]
elif LONG:
    CASES = [
        (*AT_ANY_MOMENT, kills(FUNCTION, sqs, 10_000, 300, 500, compare=10)),
        (*OF_A_PROGRAM, kills(PROGRAM, sqs, 3000, 300, 500, compare=10)),
        (*IN_A_FIFO_QUEUE, kills(FUNCTION, fifo, 3000, 100, 300, compare=10, groups=20)),
        (*IN_A_STREAM, kills(FUNCTION, kinesis, 1000, 50, 300, compare=10)),
    ]  # fmt: skip
else:
    CASES = [
        (*AT_ANY_MOMENT, kills(FUNCTION, sqs, 60, 4, 30)),
        (*OF_A_PROGRAM, kills(PROGRAM, sqs, 40, 3, 30)),
        (*IN_A_FIFO_QUEUE, kills(FUNCTION, fifo, 40, 2, 30)),
        (*IN_A_STREAM, kills(FUNCTION, kinesis, 24, 2, 30)),
    ]

for row in CASES:
    add_storm(*row)


def an_end_that_lands_late():
    """An end that a killed function had sent reaches the table when the next function has
    looked, which is right to report the record; the wire tells this from a wrong report."""
    handler = Handler(FUNCTION.name, seconds=10)
    with place() as wire, storm(handler, fifo, wire) as (one, sent):
        batch = [message for message in sent if message.key == "ok-0"][:1]
        wire.hold('"completed"')

        def kill():
            wire.wait_held()
            os.kill(one.box.process.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        equal(one.ask(batch), None)
        killer.join()
        told, delivery = one.ask(batch)
        equal(told, [batch[0].name])
        # Later than that it would not be compared.
        in_time(delivery.ended - delivery.began, one.handler.cut_off, "the answer")
        one.compare(batch, told, delivery)  # It is at work still.
        equal(one.landed, 0)
        wire.release()
        until(lambda: one.records()["ok-0"]["status"] == "completed")
        one.compare(batch, told, delivery)
        equal(one.landed, 1)
        equal(one.deliver(batch), [])

        calls = [call for call in wire.calls() if process_of(call) in (1, 2)]
        end = end_of(calls, "ok-0")
        looks = [call for call in calls if call.operation == "PutItem"]
        look = next(call for call in looks if process_of(call) == 2)
        others = [call for call in calls if call not in (end, look)]
        before = {"came": look.came - 2, "answered": look.came - 1}
        for wrong, why in [
            ([end], "no look"),
            ([look], "no end"),
            ([look, end._replace(client=look.client)], "its own end"),
            ([look, end._replace(**before)], "a stale look"),
            ([look._replace(**before), end], "a look of an earlier delivery"),
            ([look._replace(answer='{"Item": {"rec": {"B": "QQ=="}}}'), end],
             "a look at another record"),
        ]:
            equal((why, landed_late(others + wrong, "ok-0", delivery)), (why, False))
        assert landed_late(others + [look, end], "ok-0", delivery)


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


test(an_end_that_lands_late if ON_TABLE else the_control_without_idem_doubles)
main()
