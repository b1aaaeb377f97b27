"""Machines that share a PostgreSQL store, whose primary dies while they work.

Usage: failover.py CHECK DRIVER
"""

import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

from machines import drive, faults_of, hold, idem  # noqa: E402, I001

import judge  # noqa: E402
import postgres  # noqa: E402
import tap  # noqa: E402
from patience import until  # noqa: E402

ROUNDS = 20 if tap.LONG else 1
OPS = 3200 if tap.LONG else 640
UNSENT_S = 0.3  # How long the primary still answers, and sends nothing to the replica.


def lines(ledger):
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def completed(events):
    return sum(e.what == "A" for e in events)


def fail_over(primary, replica, ledger, said, freezes):
    """In the middle of the work; @said gets how much of the ledger is from before."""
    until(lambda: lines(ledger) > OPS / 3)
    primary.send_nothing()
    time.sleep(UNSENT_S)
    primary.freeze()
    if not freezes:
        primary.die()
    said.append(lines(ledger))
    replica.promote()


def work(number, synchronous, freezes=False):
    """What is wrong after a round, and the directory with what the machines noted."""
    into = Path(f"into-{number}")
    with postgres.server() as primary, postgres.replica(primary) as replica:
        url = postgres.url_of(primary, replica)
        made = idem(url, "store", "create")
        assert made.returncode == 0, made.stderr
        if synchronous:
            primary.wait_for_replicas("replica")
        primary.await_replica("sync" if synchronous else "async")
        said = []
        so = (primary, replica, into / "ledger", said, freezes)
        end = threading.Thread(target=fail_over, args=so)
        end.start()
        drive(
            *(url, "--processes", 4, "--threads", 8, "--keys", 4),
            *("--calls", -(-OPS // 32), "--seed", number),
            into=into,
        )
        end.join()
        if freezes:
            primary.die()
        events = judge.read_ledger(into / "ledger")
        before = completed(events[: said[0]])
        print(f"# {before} completions acknowledged before, {completed(events) - before} after")
        assert 0 < before < completed(events), "it was not in the middle of the work"
        return faults_of(into, url), into


@tap.test
def a_synchronous_replica_is_promoted():
    """The primary is killed while dozens of callers are at work on dozens of keys, and its
    synchronous replica is promoted: they find it by themselves, no acknowledged outcome
    is lost, nothing is done twice, and the history is explained."""
    postgres.need()
    for number in range(ROUNDS):
        hold(*work(number, synchronous=True))


@tap.test
def a_primary_that_stands_still_is_left():
    """The same, while the primary accepts connections and never answers."""
    postgres.need()
    for number in range(200, 200 + ROUNDS):
        hold(*work(number, synchronous=True, freezes=True))


@tap.test
def control_an_asynchronous_replica_is_promoted():
    """Control: the same with an asynchronous replica loses outcomes that were
    acknowledged, and the judge says so."""
    postgres.need()
    found, _ = work(100, synchronous=False)
    lost = [text for text in found if "acknowledged" in text or "nothing is on record" in text]
    print(f"# {len(found)} faults, {len(lost)} of them lost, the first: {(lost or found)[:1]}")
    assert lost, found[:20]


if __name__ == "__main__":
    tap.main()
