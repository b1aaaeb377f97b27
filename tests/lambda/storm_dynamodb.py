"""Storms over batches with the records in a table of DynamoDB."""

import contextlib
import os
import signal
import threading

import dynamo
import wiretap
from batches import (FUNCTION, NODE_PROGRAM, PROGRAM, again, blow, fifo, kinesis, sqs,
                     storm)
from late_writes import end_of, landed_late, process_of
from patience import until
from storms import anywhere
from tap import LONG, equal, main, skip, test

KIND = "local" if LONG else "dynoxide"


@contextlib.contextmanager
def table():
    """The wire to a server of its own, where there is one."""
    if why := dynamo.missing(KIND):
        skip(why)
    with dynamo.server(KIND) as url, wiretap.before(url) as wire:
        yield wire


def on_a_table(handler, make, **more):
    """A storm with its records in a table."""
    with table() as wire:
        blow(handler, make, wire, **more)


anywhere(on_a_table)


@test
def an_end_that_lands_late():
    """An end that a killed function had sent reaches the table when the next function has
    looked, which is right to report the record; the wire tells this from a wrong report."""
    with table() as wire, storm(FUNCTION, fifo, wire) as (one, sent):
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
        one.compare(batch, told, delivery)  # It is at work still.
        equal(one.landed, 0)
        wire.release()
        until(lambda: one.records()["ok-0"]["status"] == "completed")
        one.compare(batch, told, delivery)
        equal(one.landed, 1)
        equal(one.deliver(batch), [])

        calls = [call for call in wire.calls() if process_of(call) in (1, 2)]
        end = end_of(calls, "ok-0")
        look = next(call for call in calls if process_of(call) == 2)
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


@test
def kills_at_any_moment():
    """What kills the function may hit it anywhere: nothing is lost, and what runs again
    is told that it takes over."""
    if LONG:
        on_a_table(FUNCTION, sqs, count=10_000, kills=300, every=500, compare=20)
    else:
        on_a_table(FUNCTION, sqs, count=40, kills=2, every=30)


@test
def kills_of_a_program():
    """So where either the runtime or the program is killed."""
    if LONG:
        on_a_table(PROGRAM, sqs, count=10_000, kills=300, every=500, compare=20)
        again()
        on_a_table(NODE_PROGRAM, sqs, count=2000, kills=200, every=200, compare=20)
    else:
        on_a_table(PROGRAM, sqs, count=40, kills=2, every=30)


@test
def kills_in_order():
    """So in a FIFO queue, and in a stream."""
    if LONG:
        on_a_table(FUNCTION, fifo, count=2000, groups=20, kills=100, every=300, compare=4)
        again()
        on_a_table(FUNCTION, kinesis, count=2000, kills=100, every=300, compare=4)
    else:
        on_a_table(FUNCTION, fifo, count=30, kills=1, every=30)


main()
