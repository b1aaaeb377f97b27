"""idem consume on a real server of the SQS protocol: the promise, and its control."""

import json

from rig import Place, ledger, outcomes
from tap import equal, main, test

BODY = 'printf "%s\\n" "$(cat)" >>ledger'


@test
def each_message_is_worked_on_once_and_deleted():
    """Each message is the input of one command, and is deleted when its outcome is
    on record; the environment names it."""
    p = Place()
    p.queue.send([f"m{i}" for i in range(25)])
    work = 'printf "%s %s %s\\n" "$(cat)" $IDEM_MESSAGE_RECEIVES "$IDEM_KEY" >>ledger'
    status, lines, said = p.consume("-w", "5", work=work)
    equal(status, 0)
    equal(outcomes(lines), ["done"] * 25)
    got = sorted(line.split() for line in ledger())
    equal([line[:2] for line in got], sorted([f"m{i}", "1"] for i in range(25)))
    equal({line[2] for line in got}, {line["message_id"] for line in lines})
    equal(p.queue.count(), (0, 0))
    equal({r["status"] for r in p.records()}, {"completed"})
    assert "25 received: 25 done" in said, said


@test
def a_duplicate_is_replayed_and_deleted():
    """A message with the key of one that is done runs nothing and is deleted; the
    control is a queue without keys, where it runs again."""
    p = Place()
    bodies = [json.dumps({"order": i % 3}) for i in range(9)]
    p.queue.send(bodies)
    status, lines, _ = p.consume("--key-from", ".order", work=BODY)
    equal(status, 0)
    equal(outcomes(lines), ["done"] * 3 + ["replayed"] * 6)
    equal(sorted(ledger()), sorted(set(bodies)))
    equal(sorted(r["key"] for r in p.records()), ["0", "1", "2"])

    p.queue.send(bodies)  # The control: each message is its own operation.
    p.consume(work=BODY.replace("ledger", "control"))
    equal(len(ledger("control")), 9)


if __name__ == "__main__":
    main()
