"""A store that is frozen for a while, in every phase of an invocation.

The store is a file of SQLite whose lock another process holds, or a DynamoDB server that
is stopped: it takes what it is sent, and does it once it goes on. Whatever the phase: an
answer goes out soon after the work, it says so if the outcome is not on record, and after
`idem reconcile` and another delivery the work has been done once.
"""

import concurrent.futures
import contextlib
import json
import os
import sqlite3
import threading
import time
import traceback

import dynamo
from files import lines, write
from lambda_api import Sandbox
import postgres
from patience import PATIENCE, Late, in_time, until
from tap import LONG, TOP, Idem, equal, main, note, skip, test

# What is asked of a finished response, and how long the store is away. At full size the
# settings are the defaults; else all but SOON is scaled down.
SOON = 3
FREEZE = 8 if LONG else 1.2
WORKS = (60, 30, 15, 10) if LONG else (1.6,)
TIMEOUT = "2s" if LONG else "400ms"
PAST = 30  # What the function may take besides its work; a machine may stand still.
KIND = "local" if LONG else "dynoxide"

# Its work is over when the file "go" is there.
HANDLER = """#!/bin/sh
cat >/dev/null
echo "$IDEM_KEY $IDEM_TAKEOVER" >>"$PLACE/ledger"
: >"$PLACE/started"
until [ -e "$PLACE/go" ]; do sleep 0.05; done
echo '{"statusCode": 200, "headers": {}, "body": "done"}'
"""

with open(os.path.join(TOP, "tests", "lambda", "events", "api-gateway-http.json"),
          encoding="utf-8") as sample:
    REQUEST = json.load(sample)


def request(key):
    return {**REQUEST, "headers": {"idempotency-key": key}}


def message(*keys):
    return {"Records": [{"messageId": key, "eventSource": "aws:sqs", "body": key,
                         "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders"}
                        for key in keys]}


# ---- The stores ----


class File:
    """A file of SQLite."""

    def __init__(self, place):
        self.path = os.path.join(place, "idem.db")
        self.url = "sqlite:" + self.path
        self.env = {}

    @contextlib.contextmanager
    def frozen(self):
        """Nobody else can write to it."""
        other = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False,
                                timeout=PATIENCE)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()


class Table:
    """A table of DynamoDB, on a server of its own."""

    def __init__(self, place, server):
        self.server = server
        self.url = f"dynamodb://frozen?endpoint={server}&region=eu-west-1"
        self.env = dynamo.environment()

    @contextlib.contextmanager
    def frozen(self):
        with dynamo.frozen(self.server):
            yield


@contextlib.contextmanager
def store(kind, place):
    """A store that nothing is in."""
    with contextlib.ExitStack() as stack:
        made = (File(place) if kind == "sqlite" else
                Table(place, stack.enter_context(dynamo.server(KIND))))
        equal(Idem(made.url)("store", "create", env=made.env).status, 0)
        yield made


# ---- A function on a store that may be frozen ----


class Scene:
    """One function, the store that it uses, and what becomes of its deliveries."""

    def __init__(self, place, store, work):
        self.place = place
        self.store = store
        self.work = work
        self.env = {**store.env, "IDEM_STORE": store.url, "PLACE": place,
                    "IDEM_STORE_TIMEOUT": TIMEOUT,
                    "LAMBDA_TASK_ROOT": place}
        if not LONG:
            self.env["IDEM_LAMBDA_START_MIN"] = "100ms"
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.worst = 0  # Seconds from the end of the work to its answer.
        self.more = ""  # To be said of it.

    def file(self, name):
        return os.path.join(self.place, name)

    def box(self):
        box = Sandbox("handler", self.env)
        box.log = self.file(os.path.basename(box.log))
        return box

    def runs(self):
        if not os.path.exists(self.file("ledger")):
            return []
        with open(self.file("ledger"), encoding="ascii") as f:
            return [line.split()[0] for line in f]

    def begin(self, box, event, seconds=None):
        """Deliver @event, whose work goes on until end(); wait until it has begun. A
        busy machine may not answer the first claim in time."""
        for name in ("go", "started"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.file(name))
        seconds = seconds or self.work + FREEZE + PAST
        answers = [self.pool.submit(box.invoke, event, seconds)]

        def begun():
            if os.path.exists(self.file("started")):
                return True
            if answers[-1].done():
                equal(answers[-1].result().kind, "response")
                answers.append(self.pool.submit(box.invoke, event, seconds))
            return False

        until(begun, seconds=2 * PATIENCE)
        return answers[-1]

    def end(self, answer, soon=True):
        """The work is over: the answer, which has to come soon."""
        with open(self.file("go"), "w", encoding="ascii"):
            began = time.monotonic()
        answer = answer.result(2 * PATIENCE)
        took = time.monotonic() - began
        self.worst = max(self.worst, took)
        if soon:
            in_time(took, SOON, "the answer")
        return answered(answer)

    def reconcile(self, box):
        """What the log of a sandbox that is gone puts on record."""
        told = Idem(self.store.url)("reconcile", box.log, env=self.store.env)
        equal((told.status, told.stderr), (0, b""))
        return told.stdout


def answered(answer):
    """Return @answer. Fail as late if the function was killed at its deadline, for which a
    machine may stand still."""
    if answer.kind == "timeout":
        raise Late("late: the function was killed at its deadline")
    equal(answer.kind, "response")
    return answer


def recorded(answer):
    """Whether an answer says that its outcome is on record."""
    headers = {n.lower(): v for n, v in answer.json().get("headers", {}).items()}
    equal((answer.json()["statusCode"], answer.json()["body"]), (200, "done"))
    return headers.get("idempotency-recorded") != "false"


def replayed(answer):
    headers = {n.lower(): v for n, v in answer.json().get("headers", {}).items()}
    return (answer.json()["statusCode"], headers.get("idempotent-replayed"))


def away(answer):
    """Whether it is the refusal of a function whose store is away."""
    return answer.kind == "response" and answer.json()["statusCode"] == 503


def again(scene, box, event):
    """Deliver @event until it is neither busy nor refused; its last answer."""
    with open(scene.file("go"), "w", encoding="ascii"):
        pass
    end = time.monotonic() + scene.work + FREEZE + PAST + PATIENCE
    while True:
        answer = box.invoke(event, scene.work + FREEZE + PAST)
        equal(answer.kind, "response")
        if answer.json()["statusCode"] not in (409, 503):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(0.2)


def thaw_after(seconds, frozen):
    """The block of @frozen ends after @seconds, whatever goes on meanwhile."""
    held = frozen()
    held.__enter__()
    timer = threading.Timer(seconds, held.__exit__, (None, None, None))
    timer.start()
    return timer


# ---- Phases ----


def before_the_claim(scene):
    """The claim is not answered: nothing runs, and the answer says that the store is
    away; the next delivery does the work."""
    with scene.box() as box:
        equal(replayed(again(scene, box, request("first")))[0], 200)
        thaw = thaw_after(FREEZE, scene.store.frozen)
        began = time.monotonic()
        answer = box.invoke(request("a"), scene.work + FREEZE + PAST)
        took = time.monotonic() - began
        assert away(answer), answer
        in_time(took, SOON, "the refusal")
        equal(scene.runs(), ["first"])
        thaw.join()
        began = time.monotonic()
        equal(replayed(again(scene, box, request("a"))), (200, None))
        scene.more = (f"; refused after {took:.1f} s, done {time.monotonic() - began:.1f} s "
                      "after the thaw")
    equal(scene.runs(), ["first", "a"])


def between_claim_and_work(scene):
    """The store is away from the first moment of the work on."""
    with scene.box() as box:
        answer = scene.begin(box, request("a"))
        thaw = thaw_after(FREEZE, scene.store.frozen)
        time.sleep(scene.work)
        equal(recorded(scene.end(answer)), True)
        thaw.join()
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
    equal(scene.runs(), ["a"])


def during_the_work(scene):
    """It is away in the middle, and back before the work is over."""
    with scene.box() as box:
        answer = scene.begin(box, request("a"))
        time.sleep((scene.work - FREEZE) / 2)
        with scene.store.frozen():
            time.sleep(FREEZE)
        time.sleep((scene.work - FREEZE) / 2)
        equal(recorded(scene.end(answer)), True)
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
    equal(scene.runs(), ["a"])


def when_the_end_is_told(scene):
    """It is away when the work is over: the answer goes out and says so; the sandbox is
    gone before it could tell the store again, and the log does."""
    with scene.box() as box:
        answer = scene.begin(box, request("a"))
        time.sleep(scene.work)
        thaw = thaw_after(FREEZE, scene.store.frozen)
        equal(recorded(scene.end(answer)), False)
    thaw.join()
    scene.reconcile(box)
    with scene.box() as box:
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
    equal(scene.runs(), ["a"])


def when_the_end_is_told_again(scene):
    """The same, and the sandbox goes on: it tells the store before its next claims."""
    with scene.box() as box:
        answer = scene.begin(box, request("a"))
        time.sleep(scene.work)
        with scene.store.frozen():
            frozen = time.monotonic()
            equal(recorded(scene.end(answer)), False)
            began = time.monotonic()
            refused = box.invoke(request("b"), scene.work + FREEZE + PAST)
            took = time.monotonic() - began
            assert away(refused), refused
            in_time(took, 2 * SOON, "the refusal")
            equal(scene.runs(), ["a"])
            time.sleep(max(0, FREEZE - (time.monotonic() - frozen)))
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
    equal(scene.runs(), ["a"])


def between_two_invocations(scene):
    """It is away while nothing goes on; what was opened before is of use afterwards."""
    with scene.box() as box:
        answer = scene.begin(box, request("a"))
        time.sleep(scene.work)
        equal(recorded(scene.end(answer)), True)
        with scene.store.frozen():
            time.sleep(FREEZE)
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
        equal(replayed(again(scene, box, request("b"))), (200, None))
    equal(scene.runs(), ["a", "b"])


def while_a_batch_is_at_work(scene):
    """Nobody waits for the answer to a batch: its end is told until it is on record, and
    only then does the next record begin."""
    with scene.box() as box:
        answer = scene.begin(box, message("a", "b"), 2 * scene.work + FREEZE + PAST)
        time.sleep(scene.work)
        thaw = thaw_after(FREEZE, scene.store.frozen)
        answer = scene.end(answer, soon=False)
        thaw.join()
        equal(answer.json(), {"batchItemFailures": []})
    equal(scene.runs(), ["a", "b"])
    scene.reconcile(box)
    with scene.box() as box:
        equal(box.invoke(message("a", "b"), 60).json(), {"batchItemFailures": []})
    equal(scene.runs(), ["a", "b"])


def past_the_deadline_of_a_batch(scene):
    """It stays away until the deadline: what was done is acknowledged, as the log has it,
    what was not begun comes again."""
    scene.env["IDEM_STORE_TIMEOUT"] = "2s"
    with scene.box() as box:
        answer = scene.begin(box, message("a", "b"), scene.work + 10)
        time.sleep(scene.work)
        with scene.store.frozen():
            answer = scene.end(answer, soon=False)
            equal(answer.json(), {"batchItemFailures": [{"itemIdentifier": "b"}]})
    equal(scene.runs(), ["a"])
    scene.reconcile(box)
    with scene.box() as box:
        until(lambda: box.invoke(message("a", "b"), 60).json() == {"batchItemFailures": []})
    equal(scene.runs(), ["a", "b"])


def close_to_the_deadline(scene):
    """It has no more than half of what is left, for a claim and for an end, however long
    it may take otherwise: the function is not killed, and the answer goes out."""
    scene.env["IDEM_STORE_TIMEOUT"] = "10s"
    scene.env["IDEM_LAMBDA_START_MIN"] = "100ms"
    with scene.box() as box:
        equal(box.invoke(request("")).json()["statusCode"], 400)  # It is ready.
        with scene.store.frozen():
            refused = answered(box.invoke(request("b"), 2))
            assert away(refused), refused
        answer = scene.begin(box, request("a"), scene.work + 2)
        time.sleep(scene.work)
        with scene.store.frozen():
            equal(recorded(scene.end(answer)), False)
        equal(replayed(again(scene, box, request("a"))), (200, "true"))
    equal(scene.runs(), ["a"])


def during_a_wait(scene):
    """It stands still at the end of a wait for another's attempt: the function is not
    killed, and the answer goes out."""
    scene.env["IDEM_STORE_TIMEOUT"] = "10s"
    scene.env["IDEM_LAMBDA_START_MIN"] = "100ms"
    scene.env["IDEM_LAMBDA_WAIT"] = "10m"
    held = ("begin", "-s", "pay", "-k", "held", "--lease", "1h")
    equal(Idem(scene.store.url)(*held, env=scene.store.env).status, 0)
    with scene.box() as box:
        equal(box.invoke(request("")).json()["statusCode"], 400)  # It is ready.
        answer = scene.pool.submit(box.invoke, request("held"), 4)
        time.sleep(3.1)
        with scene.store.frozen():
            answer = answered(answer.result(PATIENCE))
        assert answer.json()["statusCode"] in (409, 503), answer
    equal(scene.runs(), [])


PHASES = (before_the_claim, between_claim_and_work, during_the_work, when_the_end_is_told,
          when_the_end_is_told_again, between_two_invocations, while_a_batch_is_at_work,
          past_the_deadline_of_a_batch, close_to_the_deadline, during_a_wait)


def play(phase, kind, work):
    """@phase with a function that works for @work seconds: what to say of it, or how it
    failed."""
    place = os.path.abspath(f"{phase.__name__}-{work}")
    os.mkdir(place)
    write(os.path.join(place, "handler"), HANDLER, 0o755)
    name = f"{phase.__name__}, {work} s of work"
    try:
        with store(kind, place) as made:
            scene = Scene(place, made, work)
            phase(scene)
        return f"{name}: an answer {scene.worst:.1f} s after it{scene.more}", None
    except AssertionError as error:
        return name, error


def in_every_phase(kind):
    """Each on a store of its own, all at a time: they only wait."""
    count = 4 if LONG else len(PHASES)
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        plays = [pool.submit(play, phase, kind, work) for work in WORKS for phase in PHASES]
        told = [played.result() for played in plays]
    for name, _ in told:
        note(name)
    failed = {name: error for name, error in told if error}
    if failed:
        text = "\n".join(f"{n}: {''.join(traceback.format_exception(e))}" for n, e in failed.items())
        raise (Late if all(isinstance(e, Late) for e in failed.values()) else AssertionError)(text)


@test
def a_file_of_sqlite():
    """A file whose lock another process holds: an answer goes out soon, says whether it
    is on record, and nothing runs twice."""
    in_every_phase("sqlite")


@test
def a_table_of_dynamodb():
    """So with a table whose server stands still."""
    if why := dynamo.missing(KIND):
        skip(why)
    in_every_phase("dynamodb")


@test
def a_database_that_ended_the_connection():
    """On PostgreSQL the response to an event that comes again is the one on record, also
    after a freeze in which the server ended the connection."""
    postgres.need()
    server = postgres.shared()
    idem = Idem(f"{server.url}&schema=lambda")
    equal(idem("store", "create").status, 0)
    write("handler", "#!/bin/sh\ncat\necho effect >>ledger\n", 0o755)
    with Sandbox("handler", env={"IDEM_STORE": idem.store}) as box:
        event = {"idempotencyKey": "a", "text": "Grüße"}
        first = box.invoke(event)
        equal((first.kind, first.json()), ("response", event))
        again = box.invoke(event)
        equal((again.kind, again.body), ("response", first.body))
        assert box.idle.wait(PATIENCE)
        server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'idem'")
        other = {"idempotencyKey": "b"}
        equal([box.invoke(e).json() for e in (other, event, other)], [other, event, other])
        equal((box.starts, box.kills), (1, 0))
    equal(lines("ledger"), ["effect"] * 2)
    listed = idem("list", "--json").stdout.splitlines()
    equal([json.loads(line)["status"] for line in listed], ["completed"] * 2)


main()
