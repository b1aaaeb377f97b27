"""idem consume where others are at work, and where the queue or the store is in trouble."""

import json
import os
import signal
import time
from pathlib import Path

from rig import Between, Place, error, ledger, outcomes
from procfs import children
from tap import equal, main, note, test
from patience import PATIENCE, Late, until

BODY = 'printf "%s\\n" "$(cat)" >>ledger'
QUICK = ("--lease", "20s", "--retry-after", "1s", "-q")


def received_once(lines):
    """Fail as late where a message came again: a visibility is extended two seconds before
    it ends, for which a machine may stand still."""
    most = max(line["receives"] for line in lines)
    if most > 1:
        raise Late(f"late: {most} receives of a message; one is wanted")


# ---- Duplicates in flight ----


@test(rows=[64])
def a_duplicate_in_flight_is_not_acknowledged_and_not_counted_out():
    """While another owner is at work its duplicate is held: it stays in the queue and
    is received once, although the visibility timeout is shorter than the lease;
    that is said at the start."""
    p = Place(visibility=10, receives=2)
    p.queue.send(['{"order":1}'])
    common = ("--fingerprint", "none", "--lease", "12s")
    told = ("--until-empty", "--json", "--key-from", ".order", *common)
    at_work = "until test -e go; do sleep 0.1; done"
    with p.idem.start("run", "-k", "1", *common, "--", "sh", "-c", at_work) as other:
        try:
            until(lambda: p.records(), "the other is at work")
            with Between(p.at) as between, open("lines", "wb") as to:
                p.env["AWS_ENDPOINT_URL_SQS"] = between.url
                with p.start(*told, work=BODY, stdout=to) as consumer:
                    until(lambda: "".join(ledger("lines")).count('"busy"') == 2, "it was busy twice")
                    Path("go").touch()
                    said = consumer.communicate(timeout=PATIENCE)[1].decode()
                held = between.count("ChangeMessageVisibilityBatch")
        finally:
            Path("go").touch()
        equal(other.wait(), 0)
    lines = [json.loads(line) for line in ledger("lines")]
    equal(consumer.returncode, 0)
    equal(outcomes(lines)[-1], "replayed")
    received_once(lines)
    busy = outcomes(lines).count("busy")
    equal(ledger(), [])
    equal((p.queue.dead(), p.queue.count()), ([], (0, 0)))
    assert "visibility timeout (10s) is shorter than the lease (12s)" in said, said
    note(f"{busy} times busy, {held} changes of visibility, 1 receive")


@test
def what_dies_with_its_worker_is_taken_over():
    """The worker of a message is killed: its lease ends, another takes over, and the
    message is deleted only then."""
    p = Place()
    p.queue.send(["a"])
    work = "echo $PPID >>pids; test -e second || { touch second; sleep 60; }; echo a >>ledger"
    with p.start("--until-empty", "--lease", "12s", "-q", work=work) as consumer:
        until(lambda: os.path.exists("second") and ledger("pids"), "it is at work")
        kill_worker(consumer.pid)
        equal(consumer.wait(PATIENCE), 0)
    equal(len(ledger("pids")), 2)
    equal(ledger(), ["a"])
    equal(p.queue.count(), (0, 0))
    equal(p.records()[0]["attempts"], 2)


def kill_worker(pid):
    for child in children(pid):
        os.kill(child, signal.SIGKILL)


# ---- SQS in trouble ----


@test(rows=[16])
def a_queue_that_throttles_is_asked_again():
    """Receives, deletions and extensions that are throttled, refused by a 500, or
    never answered are tried again: each message is done once and deleted."""
    p = Place(visibility=10)
    turns = {}

    def rule(action, _body):
        turns[action] = turns.get(action, 0) + 1
        trouble = (error("RequestThrottled"), (500, {}), "drop", "lose", (200, {"x": 1}))
        if action == "GetQueueAttributes":
            trouble = trouble[:3]
        if action == "ReceiveMessage":
            trouble = (*trouble[:3], (200, {"Messages": 7}))
        return trouble[turns[action] - 1] if turns[action] <= len(trouble) else None

    with Between(p.at, rule) as between:
        p.env["AWS_ENDPOINT_URL_SQS"] = between.url
        p.queue.send(["a", "b"])
        status, lines, said = p.consume("-w", "2", work=f"sleep 8; {BODY}")
        deletes = between.count("DeleteMessageBatch")
    equal(status, 0)
    equal(sorted(ledger()), ["a", "b"])
    equal(set(outcomes(lines)) - {"replayed"}, {"done"})
    equal(said.count("the queue: SQS answered 400 RequestThrottled: so it is; "), 1)
    equal(p.queue.count(), (0, 0))
    note(f"{deletes} deletions asked for, in spite of {sum(turns.values())} requests")


@test(rows=[19])
def a_queue_that_is_gone_or_denied_ends_it():
    """What does not pass by itself is told, and nothing more is received; what is at
    work is ended and deleted first."""
    for name, wanted in (("QueueDoesNotExist", 78), ("AccessDeniedException", 77)):
        p = Place()
        turns = []

        def rule(action, _body):
            if action == "ReceiveMessage":
                turns.append(action)
                if len(turns) > 1:
                    until(lambda: os.path.exists(name), "the first message is at work")
                    return error(name)
            return None

        with Between(p.at, rule) as between:
            p.env["AWS_ENDPOINT_URL_SQS"] = between.url
            p.queue.send(["a"])
            status, lines, said = p.consume("-w", "2", work=f">{name}; sleep 0.5; {BODY}")
        equal((status, outcomes(lines)), (wanted, ["done"]))
        assert name in said, said
        equal(p.queue.count(), (0, 0))


@test
def a_body_that_was_damaged_is_not_worked_on():
    """A body that is not what its MD5 says is not begun: it comes back whole."""
    p = Place(visibility=2)
    damaged = []

    class Bad(Between):
        def answer(self, request, status, text, headers):
            if b'"Body":"whole"' in text and not damaged:
                damaged.append(1)
                text = text.replace(b'"Body":"whole"', b'"Body":"whale"')
            super().answer(request, status, text, headers)

    with Bad(p.at) as between:
        p.env["AWS_ENDPOINT_URL_SQS"] = between.url
        p.queue.send(["whole"])
        with p.start("-q", "--lease", "20s", work=BODY) as consumer:
            until(ledger, "it is done")
            consumer.terminate()
            equal(consumer.wait(PATIENCE), 0)
    equal((damaged, ledger()), ([1], ["whole"]))


# ---- The store in trouble ----


@test(rows=[24])
def while_the_store_is_away_nothing_is_received():
    """The store cannot be reached for a while: what is held waits, nothing more is
    received, nothing is counted out, and all is done once it is back."""
    p = Place(visibility=12, receives=2)
    p.queue.send([f"m{i}" for i in range(8)])
    # No store: a directory stands where the file was to be.
    away = "mv idem.db kept; for f in wal shm lock; do "
    away += "test -e idem.db-$f && mv idem.db-$f kept-$f; done; mkdir idem.db"
    work = f"{BODY}; if [ $(wc -l <ledger) -eq 2 ]; then {away}; fi"
    with p.start("-w", "1", "--until-empty", "--json", "--lease", "12s", work=work) as it:
        until(lambda: os.path.isdir("idem.db"), "the store is away")
        time.sleep(13)
        before = p.queue.count()
        os.rmdir("idem.db")
        os.rename("kept", "idem.db")
        for f in ("wal", "shm", "lock"):
            if os.path.exists(f"kept-{f}"):
                os.rename(f"kept-{f}", f"idem.db-{f}")
        out, said = it.communicate(timeout=60)
    lines = [json.loads(line) for line in out.splitlines()]
    equal(it.returncode, 0)
    assert before[0] >= 5, before
    equal(sorted(ledger()), sorted(f"m{i}" for i in range(8)))
    equal((p.queue.dead(), p.queue.count()), ([], (0, 0)))
    received_once(lines)
    assert b"store unavailable; receiving paused" in said, said
    kinds = {kind: outcomes(lines).count(kind) for kind in set(outcomes(lines))}
    note(f"outcomes: {kinds}")


# ---- FIFO ----


@test
def a_failure_stops_its_group():
    """A message that fails holds up the later ones of its group alone, until it is
    done or in the dead-letter queue; the order is kept."""
    p = Place(fifo=True, receives=3)
    bodies = ["a0", "a1", "b0", "b1", "a2", "b2"]
    p.queue.send(bodies, groups=[body[0] for body in bodies])
    work = 'B=$(cat); if [ $B = a1 ] && [ $IDEM_MESSAGE_RECEIVES -lt 3 ]; then exit 1; fi; '
    # The last a1 waits for the other group, in vain where its failure stops that too.
    work += 'if [ $B = a1 ]; then timeout 60 sh -c "until grep -q b2 ledger; do sleep 0.05; done"; fi; '
    work += 'echo $B >>ledger'
    status, lines, _ = p.consume("-w", "4", *QUICK, work=work)
    equal([b for b in ledger() if b[0] == "a"], ["a0", "a1", "a2"])
    equal([b for b in ledger() if b[0] == "b"], ["b0", "b1", "b2"])
    equal(outcomes(lines), ["done"] * 6 + ["failed"] * 2)
    equal((status, p.queue.dead()), (79, []))
    assert ledger().index("b2") < ledger().index("a1"), ledger()


if __name__ == "__main__":
    main()
