"""Storms over batches with the records in a table of DynamoDB."""

import dynamo
from batches import FUNCTION, NODE_PROGRAM, PROGRAM, again, blow, fifo, kinesis, sqs
from tap import LONG, main, skip, test

KIND = "local" if LONG else "dynoxide"


def on_a_table(handler, make, **more):
    """A storm on a server of its own, where there is one."""
    if why := dynamo.missing(KIND):
        skip(why)
    with dynamo.server(KIND) as url:
        blow(handler, make, url, **more)


@test
def a_queue_and_a_function():
    """Records that kill, hang and end a function in the process take no attempt of another."""
    on_a_table(FUNCTION, sqs)


@test
def a_queue_and_a_script():
    """So with a script, whose death its runtime survives."""
    on_a_table(PROGRAM, sqs, count=27)


@test
def a_queue_and_a_program_of_node():
    """So with an executable that Node.js runs."""
    on_a_table(NODE_PROGRAM, sqs, count=14, every=4)


@test
def a_fifo_queue():
    """In a FIFO queue what follows a failure in its group is not claimed."""
    on_a_table(FUNCTION, fifo)


@test
def a_stream_that_is_split():
    """In a shard, which is split until the record that kills is alone."""
    on_a_table(FUNCTION, kinesis, count=24)


@test
def kills_at_any_moment():
    """What kills the function may hit it anywhere: nothing is lost, and what runs again
    is told that it takes over."""
    if LONG:
        on_a_table(FUNCTION, sqs, count=10_000, kills=300, every=500, compare=50)
    else:
        on_a_table(FUNCTION, sqs, count=40, kills=2, every=30)


@test
def kills_of_a_program():
    """So where either the runtime or the program is killed."""
    if LONG:
        on_a_table(PROGRAM, sqs, count=2000, kills=200, every=500, compare=20)
    else:
        on_a_table(PROGRAM, sqs, count=40, kills=2, every=30)


@test
def kills_in_order():
    """So in a FIFO queue, and in a stream."""
    if LONG:
        on_a_table(FUNCTION, fifo, count=2000, groups=20, kills=100, every=300, compare=20)
        again()
        on_a_table(FUNCTION, kinesis, count=500, kills=20, every=300, compare=10)
    else:
        on_a_table(FUNCTION, fifo, count=30, kills=1, every=30)


main()
