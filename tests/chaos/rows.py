"""Rows of the fault matrix on a real server, behind a proxy that follows a script."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]

import dynamo  # noqa: E402
import faults  # noqa: E402
import proxy  # noqa: E402
from kept import kept
from ports import free_port
from tap import PROGRAM, equal, main, test  # noqa: E402

TABLE = "orders"
WORK = ("sh", "-c", "echo effect >> ledger; echo done")


def server():
    """The URL of one server for all tests; each has a table of its own on it."""
    return dynamo.shared("dynoxide")


class Place:
    """A table behind a proxy with a script, and ways to work at it."""

    def __init__(self, url, between, table):
        self.server = url
        self.between = between
        self.table = table

    def idem(self, *args, direct=False, **env):
        """Run idem; direct: past the proxy. (status, stdout, stderr)."""
        url = self.server if direct else self.between.url
        env = dict(
            dynamo.environment(),
            IDEM_STORE=f"dynamodb://{self.table}?endpoint={url}",
            IDEM_JOURNAL_DIR=os.path.abspath("journal"),
            HOME=os.getcwd(),
            **env,
        )
        done = subprocess.run(
            [PROGRAM, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def run(self, key, *options, **how):
        return self.idem("run", "-k", key, *options, "--", *WORK, **how)

    def record(self, key):
        return json.loads(self.idem("show", "--json", key, direct=True)[1])

    def effects(self):
        path = Path("ledger")
        return len(path.read_text().split()) if path.exists() else 0


tables = 0


@contextlib.contextmanager
def place(*script):
    """A Place whose n-th request meets the n-th of @script; the last one stays."""
    global tables  # pylint: disable=global-statement
    tables += 1
    url, table = server(), f"{TABLE}{tables}"
    with proxy.chaos(url, script=script or (None,)) as between:
        made = Place(url, between, table)
        equal(made.idem("store", "create", direct=True)[0], 0)
        yield made


# ---- What the script can do, besides the classes of faults.py ----


def fault(name):
    return faults.CLASSES[name].do


def refused(name, status="400 Bad Request", message="so it is"):
    async def do(_proxy, client, _request):
        return await faults.refuse(client, status, name, message)

    return do


def rewritten(change):
    """The answer, with a body that @change makes from its own."""

    async def do(between, client, request):
        answer = await between.forward(request)
        faults.new_body(answer, json.dumps(change(json.loads(answer.body))).encode())
        await client.send(answer.bytes())
        return True

    return do


async def deleted_before(between, client, request):
    """A TTL deletes the item before this request arrives."""
    body = json.loads(request.body)
    key = {"id": body["Item"]["id"]}
    dynamo.call(
        "http://%s:%d" % between.upstream, "DeleteItem", {"TableName": body["TableName"], "Key": key}
    )
    await proxy.passed_on(between, client, request)


# ---- Rows ----


@test(rows=[12])
def a_claim_that_nobody_knows_of_waits_for_its_lease():
    """A claim is applied, and no answer ever comes: nothing runs, and whoever asks
    next waits for the lease at most."""
    with place(fault("reset after"), fault("reset before")) as p:
        began = time.monotonic()
        status, out, err = p.run("a", "--lease", "4s", "--on-expired-lease", "rerun")
        print(f"# {status} after {time.monotonic() - began:.1f} s: {err.strip()}")
        equal((status, out, p.effects()), (69, "", 0))
        equal((p.record("a")["status"], p.record("a")["attempts"]), ("in_progress", 1))
        status, out, _ = p.run("a", "--wait", "20s", "--wait-then-run", "--lease", "60s",
                               "--on-expired-lease", "rerun", direct=True)
        equal((status, out, p.effects()), (0, "done\n", 1))


@test(rows=[11, 13])
def what_was_applied_is_found_to_be_our_own():
    """The answers of the claim and of the outcome are lost: each is read back, and is
    our own."""
    lost = fault("reset after")
    with place(lost, None, None, lost, None) as p:
        equal(p.run("a")[:2], (0, "done\n"))
        # The look for the mark has used the connection: one that is reset then may have
        # been over before, and the claim is sent once more.
        equal(p.between.seen[:4], ["PutItem", "PutItem", "GetItem", "PutItem"])
        assert len(p.between.seen) > 4
        equal((p.record("a")["status"], p.effects()), ("completed", 1))


@test(rows=[18])
def tokens_of_transactions_are_not_ours():
    """IdempotentParameterMismatch is about the token of a transaction, and a run makes
    none: should it be the answer all the same, nothing runs, and it is asked for a
    bounded time."""
    with place(refused("IdempotentParameterMismatchException")) as p:
        status, out, err = p.run("a")
        print(f"# {status}, {p.between.requests} requests: {err.strip()}")
        assert status in (69, 70), status
        equal((out, p.effects()), ("", 0))
        assert p.between.requests <= 100, p.between.requests


@test(rows=[19])
def what_cannot_be_mended_by_asking_is_not_asked_again():
    """A refusal because of a request, a right, a key or a table: nothing runs, and
    nothing is asked twice."""
    for name, wanted in (
        ("ValidationException", 78),
        ("ResourceNotFoundException", 78),
        ("AccessDeniedException", 77),
        ("UnrecognizedClientException", 77),
    ):
        with place(refused(name)) as p:
            status, out, err = p.run("a")
            equal((name, status, out, p.effects()), (name, wanted, "", 0))
            assert name in err or "store create" in err, err
            equal(p.between.seen, ["PutItem"])


@test(rows=[20])
def credentials_that_expire_meanwhile_cost_no_outcome():
    """The credentials expire while the work goes on: its output is given, the outcome
    waits in the journal, and is recorded when there are new ones."""
    with place(None, refused("ExpiredTokenException")) as p:
        status, out, err = p.run("a", "--lease", "10s")
        equal((status, out, p.effects()), (80, "done\n", 1))
        print(f"# {err.strip().splitlines()[0]}")
        equal(p.record("a")["status"], "in_progress")
        waiting = len(kept("journal"))
        assert waiting > 0
        # The journal is about this store's URL: the proxy's.
        p.between.follow((None,))
        equal(p.idem("reconcile")[0], 0)
        equal(p.record("a")["status"], "completed")
        equal(p.run("a")[:2], (0, "done\n"))
        equal(p.effects(), 1)


@test(rows=[24])
def without_a_service_nothing_runs():
    """No such host, or nobody who listens: nothing runs."""
    closed = f"http://127.0.0.1:{free_port()}"
    for endpoint in ("https://dynamodb.invalid", closed):
        env = dict(dynamo.environment(), HOME=os.getcwd(),
                   IDEM_STORE=f"dynamodb://{TABLE}?endpoint={endpoint}")
        done = subprocess.run([PROGRAM, "run", "-k", "a", "--", *WORK], env=env,
                              capture_output=True, timeout=60)
        print(f"# {done.stderr.decode().strip()}")
        equal((done.returncode, done.stdout, Path("ledger").exists()), (69, b"", False))


# Shapes of a record, and of an answer, that are not DynamoDB's or not ours.
ITEMS = {
    "no head": lambda item: {k: v for k, v in item.items() if k != "rec"},
    "a head of text": lambda item: {**item, "rec": {"S": item["rec"]["B"]}},
    "a cut head": lambda item: {**item, "rec": {"B": item["rec"]["B"][:40]}},
    "no key": lambda item: {k: v for k, v in item.items() if k != "key"},
    "another's key": lambda item: {**item, "key": {"S": "b"}},
    "an empty item": lambda item: {},
    "a list": lambda item: [item],
    "text": lambda item: "item",
}
ANSWERS = {
    "a null item": lambda body: {"Item": None},
    "another member": lambda body: {"Items": [body["Item"]]},
    "a list of items": lambda body: {"Item": [body["Item"]]},
}


@test(rows=[27])
def a_strange_answer_is_not_an_absence():
    """A record of any other shape than ours, in the answer to a look or to a claim,
    is CORRUPT: nothing runs, nothing is replayed, and it stays as it is."""
    with place() as p:
        equal(p.run("a")[0], 0)
        before = p.record("a")
        tried = 0
        for name, change in ITEMS.items():
            strange = rewritten(lambda body, change=change: {**body, "Item": change(body["Item"])})
            for command in (("show", "a"), ("run", "-k", "a", "--", *WORK)):
                p.between.follow((strange,))
                status, out, _ = p.idem(*command)
                equal((name, command[0], status, out), (name, command[0], 74, ""))
                tried += 1
        for name, change in ANSWERS.items():
            p.between.follow((rewritten(change),))
            status, out, _ = p.idem("show", "a")
            equal((name, status, out), (name, 74, ""))
            tried += 1
        equal((p.record("a"), p.effects()), (before, 1))
        print(f"# {tried} strange answers")
        # What is an absence.
        p.between.follow((None,))
        equal(p.idem("show", "none")[0] in (0, 74), False)


def no_item(body):
    body.pop("Item", None)
    return body


@test(rows=[28])
def a_refusal_without_a_record_gives_no_claim():
    """A claim is refused and shows no record, and there is none to be read: it is tried
    again, a bounded number of times, and never goes on without a claim."""
    condition = refused("ConditionalCheckFailedException")
    with place(condition) as p:
        # To every look there is nothing.
        async def nothing(between, client, request):
            if request.operation == "PutItem":
                return await condition(between, client, request)
            return await proxy.passed_on(between, client, request)

        p.between.follow((nothing,))
        status, out, err = p.run("a")
        print(f"# {status}, {p.between.requests} requests: {err.strip()}")
        equal((status, out, p.effects()), (69, "", 0))
        assert 4 < p.between.requests <= 80, p.between.requests
    with place(condition, None) as p:
        equal(p.run("a")[:2], (0, "done\n"))
        equal(p.between.seen, ["PutItem", "GetItem", "PutItem", "PutItem"])
    # A server that never shows the old item: one look more for each.
    with place(rewritten(no_item)) as p:
        equal(p.run("a")[:2], (0, "done\n"))
        p.between.follow((rewritten(no_item), None))
        equal(p.run("a")[:2], (0, "done\n"))
        equal((p.between.seen, p.effects()), (["PutItem", "GetItem"], 2))


@test(rows=[29, 30])
def expired_records_may_be_deleted_late_or_meanwhile():
    """A record that its TTL has not deleted yet is past its retention all the same, and
    is overwritten; one that is deleted between the look at it and its reuse is new. Both
    get a higher fence."""
    cases = {
        "late": ((None,), ["PutItem", "PutItem"]),
        "meanwhile": ((None, deleted_before, None), ["PutItem", "PutItem", "GetItem", "PutItem"]),
    }
    with place() as p:
        for key in cases:
            equal(p.run(key, "--lease", "5s", "--retention", "5s")[0], 0)
        before = {key: p.record(key)["fence"] for key in cases}
        time.sleep(8.5)
        for n, (key, (script, wanted)) in enumerate(cases.items()):
            p.between.follow(script)
            equal(p.run(key)[:2], (0, "done\n"))
            equal(p.between.seen, [*wanted, "PutItem"])
            after = p.record(key)
            assert after["fence"] > before[key], (before, after)
            equal((after["attempts"], p.effects()), (1, 3 + n))


if __name__ == "__main__":
    main()
