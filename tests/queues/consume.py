"""idem consume on a real server of the SQS protocol."""

import json
import re
import shlex
import time
from pathlib import Path

import selected
from rig import Between, Place, ledger, outcomes
from tap import PROGRAM, equal, main, run, test
from patience import PATIENCE, in_time, until

BODY = 'printf "%s\\n" "$(cat)" >>ledger'
QUICK = ("--lease", "20s", "--retry-after", "1s", "-q")


# ---- One outcome for each message ----


@test
def messages_of_one_key_that_differ_are_not_duplicates():
    """Another body under the same key is a mismatch, and is left to the queue;
    without fingerprints it counts as a duplicate."""
    p = Place()
    p.queue.send(['{"order":1,"sent":1}', '{"order":1,"sent":2}'])
    status, lines, _ = p.consume("--key-from", ".order", *QUICK, work=BODY)
    equal(status, 65)
    equal(outcomes(lines)[:2], ["done", "mismatch"])
    equal(p.queue.dead(), ['{"order":1,"sent":2}'])
    p.queue.send(['{"order":2,"sent":1}', '{"order":2,"sent":2}'])
    _, lines, _ = p.consume("--key-from", ".order", "--fingerprint", "none", work=BODY)
    equal(outcomes(lines), ["done", "replayed"])


@test
def messages_may_be_spelled_differently():
    """JSON in another order is a duplicate of the same message, also where members are
    selected for the fingerprint; text is compared by its bytes."""
    p = Place()
    for order, options in (3, ()), (4, ("--fingerprint-from", ".sent")):
        p.queue.send([f'{{"order":{order},"sent":[1,{{"a":1,"b":2}}]}}',
                      f'{{"sent":[1.0,{{"b":2,"a":1}}],"order":{order}}}'])
        status, lines, _ = p.consume("--key-from", ".order", *options, *QUICK, work=BODY)
        equal((status, outcomes(lines)), (0, ["done", "replayed"]))


@test
def selected_members_are_what_messages_of_one_key_must_agree_in():
    """With --fingerprint-from other members may differ; what it cannot select is left
    to the queue."""
    p = Place()
    bodies = [f'{{"order":1,"sent":{i},"sum":"4.50"}}' for i in range(2)]
    p.queue.send([*bodies, '{"order":1,"sum":"4.5"}', '{"order":2}'])
    options = ("--key-from", ".order", "--fingerprint-from", ".sum")
    _, lines, said = p.consume(*options, *QUICK[:-1], work=BODY)
    equal(set(outcomes(lines)), {"done", "replayed", "mismatch", "no key"})
    equal(len(ledger()), 1)
    assert "--fingerprint-from .sum: it selects null" in said, said
    got = p.idem("consume", "--queue", "q", *options, "--fingerprint", "none", "--", "true")
    equal(got.status, 64)


@test
def a_message_without_a_key_is_left_to_the_queue():
    """No key can be made of it: nothing runs, it ends in the dead-letter queue."""
    p = Place()
    p.queue.send(['{"other":1}', "no JSON", '{"order":7}'])
    status, lines, said = p.consume("--key-from", ".order", *QUICK[:-1], work=BODY)
    equal(status, 79)
    equal(outcomes(lines), ["done"] + ["no key"] * 6)
    equal(ledger(), ['{"order":7}'])
    equal(p.queue.dead(), sorted(["no JSON", '{"other":1}']))
    assert "no key: --key-from .order: it selects null" in said, said

    # Without --retry-after nothing is sent for it, and the next is received at once.
    p = Place(visibility=6, receives=1)
    p.queue.send(["no JSON", '{"order":8}'])
    status, lines, _ = p.consume("--key-from", ".order", "-w", "1", work=BODY, timeout=50)
    equal((status, outcomes(lines)), (79, ["done", "no key"]))


@test
def each_key_is_that_of_all_front_ends():
    """Numbers keep their digits, and what means the same is one key; what is no key is
    left to the queue."""
    for n, (selector, texts, key) in enumerate(selected.KEYS):
        p = Place()
        p.queue.send(texts)
        options = ("-s", str(n), "--key-from", selected.of(selector), "--fingerprint", "none")
        status, lines, _ = p.consume(*options, work=BODY)
        equal((selector, status, outcomes(lines)), (selector, 0, ["done"] + ["replayed"] * (len(texts) - 1)))
        (record, *others) = [r for r in p.records("-s", str(n)) if "key" in r]
        equal((record["key"], record["status"], others), (key, "completed", []))
    for selector, texts in selected.REFUSED:
        p = Place()
        p.queue.send(texts)
        status, lines, said = p.consume("--key-from", selected.of(selector), *QUICK[:-1], work=BODY)
        equal((selector, status, set(outcomes(lines))), (selector, 79, {"no key"}))
        equal(sorted(p.queue.dead()), sorted(texts))


@test
def what_is_delivered_while_it_is_held_is_not_begun_again():
    """A message whose visibility ended too early comes again while it is at work: it
    is begun once, and deleted with the newer receipt."""
    p = Place(visibility=30)
    handles = []

    class Early(Between):
        def answer(self, request, status, text, headers):
            found = re.findall(rb'"ReceiptHandle":"([^"]+)"', text)
            handles.extend(found)
            super().answer(request, status, text, headers)
            if found and len(handles) == 1:
                until(lambda: ledger("begun"), "it is at work")
                ask = dict(QueueUrl=p.queue.url, ReceiptHandle=found[0].decode())
                p.queue.call("ChangeMessageVisibility", VisibilityTimeout=0, **ask)

    def rule(action, _body):
        if action == "ReceiveMessage" and len(handles) == 2:
            Path("again").touch()  # The consumer has it twice, and asks for more.

    with Early(p.at, rule) as between:
        p.env["AWS_ENDPOINT_URL_SQS"] = between.url
        p.queue.send(["slow"])
        work = f"echo x >>begun; until test -e again; do sleep 0.05; done; {BODY}"
        status, lines, said = p.consume("-w", "3", work=work)
    equal((status, outcomes(lines)), (0, ["done"]))
    equal((ledger(), ledger("begun")), (["slow"], ["x"]))
    equal(p.queue.count(), (0, 0))
    assert "2 received: 1 done" in said, said


# ---- Failures ----


@test
def poison_ends_in_the_dead_letter_queue_with_its_failure_on_record():
    """A message that always fails is tried as often as the queue allows, is on record
    as failed, and is in the dead-letter queue; the others flow on."""
    p = Place(receives=3)
    p.queue.send(["good1", "poison", "good2"])
    work = 'B=$(cat); if [ "$B" = poison ]; then echo x >>tries; exit 3; fi; echo "$B" >>ledger'
    status, lines, _ = p.consume("-w", "2", *QUICK, work=work)
    equal(status, 79)
    equal(sorted(ledger()), ["good1", "good2"])
    equal(len(ledger("tries")), 3)
    equal(p.queue.dead(), ["poison"])
    failed = p.records("--status", "failed")
    equal(len(failed), 1)
    equal([l["outcome"] for l in lines].count("failed"), 3)
    assert "status 3" in failed[0]["error"], failed
    equal(failed[0]["attempts"], 3)


@test
def after_a_failure_the_next_run_takes_over():
    """A command that failed may have done its work: the next receive runs it as a takeover, under hold a person looks. Exit 75 says that nothing happened; and the control, a table with *=release, says it of every failure."""
    tell = 'cat >/dev/null; echo "$IDEM_ATTEMPTS $IDEM_TAKEOVER" >>%s; exit %d'
    for name, status, options, wanted in (
        ("retry", 1, ("--max-attempts", "2"), ["1 0", "2 1", "3 1"]),
        ("tempfail", 75, (), ["0", "0", "0"]),
        ("control", 1, ("--outcome", "0=complete *=release"), ["0", "0", "0"]),
        ("hold", 1, ("--on-expired-lease", "hold"), ["1 0"]),
    ):
        p = Place(receives=3)
        p.queue.send([name])
        p.consume(*QUICK, *options, work=tell % (name, status))
        got = ledger(name)
        equal((name, [line[-len(w) :] for line, w in zip(got, wanted)]), (name, wanted))
        equal((name, len(got), p.queue.dead()), (name, len(wanted), [name]))


@test
def a_failure_that_is_the_outcome_is_deleted():
    """Where a status completes it is the recorded outcome, and ends the message; where
    it is unknown a person must look, and it is not acknowledged."""
    p = Place()
    p.queue.send(["a"])
    status, lines, _ = p.consume("--outcome", "7=complete", work="exit 7")
    equal((status, outcomes(lines)), (0, ["done"]))
    equal(p.records()[0]["status"], "completed")
    p.queue.send(["b"])
    status, lines, _ = p.consume("--outcome", "7=unknown", *QUICK, work="exit 7")
    equal((status, outcomes(lines)), (76, ["unknown"] * 3))
    equal(p.queue.dead(), ["b"])


@test
def a_command_that_cannot_be_executed_stops_it():
    """Where the command is not there no message is failed by that: it stops, and the
    message is in the queue."""
    p = Place()
    p.queue.send(["a"])
    status, lines, _ = p.consume(work=["./nowhere"])
    equal((status, outcomes(lines)), (127, ["cannot execute"]))
    equal(p.queue.count(), (1, 0))


@test
def the_body_is_kept_where_it_is_asked_for():
    """--keep-input keeps the body with the record of a failure, for people."""
    p = Place(receives=1)
    p.queue.send(["the order"])
    p.consume(*QUICK, "--keep-input", work="cat >/dev/null; exit 1")
    key = p.records()[0]["key"]
    shown = json.loads(p.idem("show", "--json", key).stdout)
    equal((shown["status"], shown["input_len"]), ("failed", len("the order")))


@test
def a_command_is_told_when_its_message_was_sent():
    """Each time that a message comes, IDEM_EVENT_MS is when it was sent, whatever it was
    for us: idem limit counts it once, in the window of then."""
    p = Place(receives=5)
    before = int(time.time() * 1000)
    p.queue.send(["a"])
    work = (
        f"cat >body; '{PROGRAM}' limit --json -n l -u u -r a -m 3 -p 1s >>told || exit 1;"
        " [ $(wc -l <told) = 2 ]"
    )
    p.consume(*QUICK, work=work, IDEM_EVENT_MS="1")
    equal([record["status"] for record in p.records()], ["completed"])
    told = [json.loads(line) for line in ledger("told")]
    equal([one["repeated"] for one in told], [False, True])
    equal(told[0]["at_ms"], told[1]["at_ms"])
    assert before - 2000 <= told[0]["at_ms"] <= int(time.time() * 1000), told


# ---- The queue is checked ----


@test(rows=[64])
def what_is_wrong_with_the_queue_is_said_before_it_begins():
    """No dead-letter queue, one receive, more receives than attempts, a visibility
    below the lease: each is said."""
    p = Place(visibility=30, receives=None)
    _, _, said = p.consume("--max", "1", work="true")
    assert "it has no dead-letter queue" in said, said
    assert "visibility timeout (30s) is shorter than the lease (1m)" in said, said
    p = Place(visibility=60, receives=1)
    _, _, said = p.consume(work="true")
    assert "after one receive" in said and "lease" not in said, said
    p = Place(visibility=60, receives=9)
    _, _, said = p.consume(work="true")
    assert "after 9 receives, and --max-attempts is 5" in said, said
    p = Place(visibility=60, receives=3)
    p.queue.call("DeleteQueue", QueueUrl=p.queue.dead_url)
    _, _, said = p.consume(work="true")
    assert "-dead does not exist" in said, said
    p = Place(visibility=60, receives=3)
    _, _, said = p.consume(work="true")
    assert "the queue:" not in said, said


@test
def a_queue_may_be_named():
    """A name is enough where the region is known; a wrong one is a configuration
    error."""
    p = Place()
    p.queue.send(["a"])
    name = p.queue.url.rpartition("/")[2]
    args = ("--until-empty", "-q", "--", "sh", "-c", BODY)
    done = p.idem("consume", "--queue", name, *args, env=p.env)
    equal((done.status, ledger()), (0, ["a"]))
    done = p.idem("consume", "--queue", "nowhere", *args, env=p.env)
    equal(done.status, 78)
    assert b"QueueDoesNotExist" in done.stderr, done
    # An emulator's URL: without a region one of this machine is asked all the same (there
    # as us-east-1, where it has no such queue); one elsewhere says what to set.
    bare = {**p.env, "AWS_ENDPOINT_URL_SQS": None, "AWS_REGION": None}
    path = p.queue.url.split("/", 3)[3]
    for at, wanted in (
        (p.at, b"QueueDoesNotExist"),
        ("http://sqs.eu-west-1.localhost.localstack.cloud:4566", b"AWS_ENDPOINT_URL_SQS"),
        ("http://elsewhere:4566", b"AWS_ENDPOINT_URL_SQS"),
    ):
        done = p.idem("consume", "--queue", f"{at}/{path}", *args, env=bare)
        equal((at, done.status, wanted in done.stderr), (at, 78, True))
    for wrong in ("a b", "arn:aws:sqs:eu-west-1:1:q"):
        equal(p.idem("consume", "--queue", wrong, *args, env=p.env).status, 64)
    equal(p.idem("consume", "--", "true", env=p.env).status, 64)
    equal(p.idem("consume", "--queue", name, env=p.env).status, 64)
    done = p.idem("consume", "--queue", name, "--key-from", ".[", "--", "true", env=p.env)
    equal(done.status, 64)


# ---- Back-pressure, stopping ----


@test
def no_more_is_received_than_can_begin():
    """With two workers no more than two messages are received and not done at any time."""
    p = Place()
    p.queue.send([f"m{i}" for i in range(12)])
    most = []
    with p.start("-w", "2", "--until-empty", "-q", work=f"sleep 0.3; {BODY}") as it:
        while it.poll() is None:
            # In this order: what is done between the two is not counted.
            received = 12 - p.queue.count()[0]
            most.append(received - len(ledger()))
            time.sleep(0.02)
    equal(len(ledger()), 12)
    equal(max(most), 2)


def is_said(words):
    return any(words in line for line in ledger("said"))


@test
def it_drains_when_it_is_told_to_stop():
    """SIGTERM: nothing more is begun, what is at work goes to its end and is
    deleted, the rest is in the queue at once; the status is 0."""
    p = Place()
    p.queue.send([f"m{i}" for i in range(6)])
    work = f"echo x >>begun; until test -e go; do sleep 0.05; done; {BODY}"
    with open("said", "wb") as to, p.start("-w", "2", work=work, stderr=to) as consumer:
        until(lambda: len(ledger("begun")) == 2, "two are at work")
        consumer.terminate()
        until(lambda: is_said("stopping; 2 in progress"), "it was told")
        Path("go").touch()
        equal(consumer.wait(PATIENCE), 0)
    equal((len(ledger("begun")), len(ledger())), (2, 2))
    equal(p.queue.count(), (4, 0))


@test
def it_ends_the_work_when_it_is_told_twice():
    """A second SIGTERM is passed on: the command ends, and its message is not
    acknowledged."""
    p = Place()
    p.queue.send(["a"])
    work = "echo x >>begun; exec sleep 60"
    with open("said", "wb") as to, p.start(work=work, stderr=to) as consumer:
        until(lambda: ledger("begun"), "it is at work")
        consumer.terminate()
        until(lambda: is_said("stopping"), "it was told")
        consumer.terminate()
        equal(consumer.wait(PATIENCE), 0)
    equal(p.queue.count(), (0, 1))
    equal(p.records()[0]["status"], "in_progress")


@test
def a_command_has_a_time():
    """--max-time stops a command; its message is not acknowledged."""
    p = Place(receives=1)
    p.queue.send(["a"])
    began = time.monotonic()
    status, lines, _ = p.consume(*QUICK, "--max-time", "1s", work="exec sleep 60")
    equal((status, outcomes(lines)), (79, ["failed"]))
    in_time(time.monotonic() - began, 50)  # The work takes 60.
    equal(p.queue.dead(), ["a"])


# ---- For people and programs ----


@test
def a_terminal_sees_how_far_it_is():
    """On a terminal one line says how far it is, again and again; elsewhere not."""
    p = Place()
    p.queue.send([f"m{i}" for i in range(6)])
    args = p.args("--until-empty", "-w", "2", work=["sleep", "0.3"])
    typed = shlex.join([PROGRAM, *args])
    done = run(["script", "-qec", typed, "/dev/null"], {**p.env, "IDEM_STORE": p.idem.store})
    equal(done.status, 0)
    assert re.search(rb"\r\x1b\[K[1-5] done, 0 replayed, .* at work", done.stdout), done
    assert b"6 received: 6 done" in done.stdout, done
    p.queue.send(["again"])
    equal(b"at work" in p.idem(*args, env=p.env).stderr, False)


if __name__ == "__main__":
    main()
