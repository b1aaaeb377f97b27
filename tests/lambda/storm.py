"""Storms over batches with the records in a file of SQLite."""

import collections
import random
import subprocess

from batches import (FUNCTION, NODE_PROGRAM, PROGRAM, SEED, again, blow, fifo, is_poison,
                     kinesis, ledger, messages, sqs)
from storms import anywhere
from tap import LONG, main, note, test

anywhere(blow)


@test
def a_fifo_queue_and_a_script():
    """In a FIFO queue a script, too, is not given what follows a failure in its group."""
    blow(PROGRAM, fifo, count=27)


@test
def a_stream_and_a_script():
    """A shard is split for a script, too, until the record that kills is alone."""
    blow(PROGRAM, kinesis, count=24)


@test
def kills_at_any_moment():
    """What kills the function may hit it anywhere: nothing is lost, and what runs again
    is told that it takes over."""
    if LONG:
        blow(FUNCTION, sqs, count=10_000, kills=300, every=500, compare=10)
    else:
        blow(FUNCTION, sqs, count=60, kills=4, every=30)


@test
def kills_of_a_program():
    """So where either the runtime or the program is killed."""
    if LONG:
        blow(PROGRAM, sqs, count=3000, kills=300, every=500, compare=10)
        again()
        blow(NODE_PROGRAM, sqs, count=1000, kills=100, every=200, compare=10)
    else:
        blow(PROGRAM, sqs, count=40, kills=3, every=30)


@test
def kills_in_a_fifo_queue():
    """So where a group waits for the record that was killed."""
    if LONG:
        blow(FUNCTION, fifo, count=3000, groups=20, kills=100, every=300, compare=10)
    else:
        blow(FUNCTION, fifo, count=40, kills=2, every=30)


@test
def kills_in_a_stream():
    """So where all of a shard waits for it."""
    if LONG:
        blow(FUNCTION, kinesis, count=1000, kills=50, every=300, compare=10)
    else:
        blow(FUNCTION, kinesis, count=24, kills=2, every=30)


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
