"""One outcome, many front ends: each records, each of the others replays.

The last part of docs/forms.md is what was seen here; IDEM_REGEN=1 writes it anew.
"""

import base64
import contextlib
import json
import os
import sys
from typing import NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "queues"))

from files import lines, read, write
import golden  # noqa: E402
import rig  # noqa: E402
from lambda_api import Sandbox  # noqa: E402
from nginx import Nginx, Upstream  # noqa: E402
from patience import until  # noqa: E402
from tap import PROGRAM, TOP, equal, main, run, test  # noqa: E402

PAGE = os.path.join(TOP, "docs", "forms.md")
MARK = "## Each by each\n"

# The function: for the event {"do": ...}, or the body of a request.
HANDLER = r"""#!/usr/bin/env python3
import base64, json, sys
event = json.load(sys.stdin)
do = event.get("do") or event.get("body")
open("ledger", "a").write("function\n")
text = {"headers": {"Content-Type": "text/plain", "Location": "/receipts/7"}}
if do == "value":
    print(json.dumps({"receipt": 7}))
elif do in ("Declined", "Broken", "Again"):
    print(json.dumps({"errorType": do, "errorMessage": "the card was refused"}))
    sys.exit(1)
elif do == "answer":
    print(json.dumps({"statusCode": 201, **text, "body": "receipt 7"}))
elif do == "refusal":
    more = {"headers": {"Content-Type": "application/json"}}
    print(json.dumps({"statusCode": 422, **more, "body": '{"error": "no such card"}'}))
elif do == "bytes":
    body = base64.b64encode(b"\xff\xfe").decode()
    print(json.dumps({"statusCode": 200, "body": body, "isBase64Encoded": True}))
elif do == "later":
    print(json.dumps({"statusCode": 503}))
else:
    print(json.dumps("it ran"))
"""

RESPONSE = '{"statusCode":201,"headers":{"Location":"/receipts/7"},"body":"receipt 7"}'
FRAMES = b"\1\0\0\0\x0areceipt 7\n"
LAMBDA = {
    "IDEM_LAMBDA_FINGERPRINT": "none",
    "IDEM_LAMBDA_OUTCOME": "Declined=complete Broken=fail",
    "IDEM_LAMBDA_ON_EXPIRED_LEASE": "rerun",
}
HTTP = "idempotency_store sqlite:idem.db; idempotency on; idempotency_scope pay;"
HTTP += " idempotency_fingerprint off; idempotency_outcome 418=retry;"
FAILS = "location /fails { idempotency_outcome 422=fail; proxy_pass http://app; }"


class World:
    """Every front end, on one store."""

    def __init__(self, store, nginx=None, up=None, box=None, queue=None):
        self.store = store
        self.nginx = nginx
        self.up = up
        self.box = box
        self.queue = queue

    def idem(self, *args, env=None, input=None):
        env = {"IDEM_STORE": self.store, "IDEM_SCOPE": "pay", **(env or {})}
        return run([PROGRAM, *args], env, input=input)

    # ---- To record ----

    def run(self, key, command, *options):
        return self.idem("run", "-k", key, "--fingerprint", "none", *options, "--",
                         "sh", "-c", "echo run >>ledger; " + command)

    def consume(self, keys, command, *options):
        """Have a message for each of @keys consumed: {key: the line about it}.

        A receive that nobody waits for any more may take a message with it, which
        comes again once it is visible.
        """
        found = {}
        self.queue.queue.send([json.dumps({"key": key}) for key in keys])
        args = ("--until-empty", "--json", "--key-from", ".key", "--fingerprint", "none")
        args = self.queue.args(*args, *options, work="echo consume >>ledger; " + command)

        def all_found():
            done = self.idem(*args, env=self.queue.env)
            # The output of the commands is between the lines.
            lines = [line[line.find(b'{"message_id"'):] for line in done.stdout.splitlines()
                     if b'{"message_id"' in line]
            for line in map(json.loads, lines):
                found.setdefault(line["run"]["key"], line)
            return set(found) == set(keys)

        until(all_found, "each message is consumed")
        return found

    def event(self, key, do):
        return self.box.invoke({"idempotencyKey": key, "do": do})

    def http(self, key, do):
        context = {"http": {"method": "POST"}}
        event = {"version": "2.0", "rawPath": "/", "requestContext": context,
                 "headers": {"idempotency-key": key}, "body": do}
        return self.box.invoke(event)

    def gateway(self, key, path="/pay"):
        return self.nginx.post(path, key, b"x")

    def claim(self, key):
        done = self.idem("begin", "-k", key)
        equal(done.status, 0)
        return done.stdout.decode().strip()

    def complete(self, key, *options, input=None):
        done = self.idem("complete", "--token", self.claim(key), *options, input=input)
        equal((done.status, done.stderr), (0, b""))

    def resolve(self, key, result, *options):
        equal(self.idem("unknown", "--token", self.claim(key)).status, 0)
        done = self.idem("resolve", key, "--reason", "seen", "--complete", result, *options)
        equal((done.status, done.stderr), (0, b""))


class Row(NamedTuple):
    """One record."""

    who: str
    what: str
    record: object  # World, key -> None


OUTPUT = ("--content-type", "application/vnd.idem.output")
ROWS = [
    Row("`idem run`", "text", lambda w, k: w.run(k, "echo receipt 7")),
    Row("", "JSON", lambda w, k: w.run(k, """echo '{"receipt": 7}'""")),
    Row("", "what is a response to Lambda", lambda w, k: w.run(k, f"echo '{RESPONSE}'")),
    Row("", "both streams", lambda w, k: w.run(k, "echo receipt; echo slow >&2; echo 7")),
    Row("", "bytes", lambda w, k: w.run(k, r"printf '\377\376'")),
    Row("", "nothing", lambda w, k: w.run(k, "true")),
    Row("", "text, without a record of it (`--capture none`)",
        lambda w, k: w.run(k, "echo receipt 7", "--capture", "none")),
    Row("", "too much (`--max-output 4`)",
        lambda w, k: w.run(k, "echo receipt 7", "--max-output", "4")),
    Row("", "text, and exit status 3", lambda w, k: w.run(k, "echo half; exit 3")),
    Row("", "the same under `--outcome 3=fail`",
        lambda w, k: w.run(k, "echo half; exit 3", "--outcome", "3=fail")),
    Row("`idem consume`", "text, which it records under `--capture both` alone",
        lambda w, k: w.consume([k], "echo receipt 7")),
    Row("", "text under `--capture both`",
        lambda w, k: w.consume([k], "echo receipt 7", "--capture", "both")),
    Row("", "exit status 3 under `--outcome 3=complete`",
        lambda w, k: w.consume([k], "echo half; exit 3", "--outcome", "3=complete")),
    Row("Lambda, an event", "JSON", lambda w, k: w.event(k, "value")),
    Row("", "an error under `Declined=complete`", lambda w, k: w.event(k, "Declined")),
    Row("", "an error under `Broken=fail`", lambda w, k: w.event(k, "Broken")),
    Row("Lambda, HTTP", "201 and text", lambda w, k: w.http(k, "answer")),
    Row("", "422 and JSON", lambda w, k: w.http(k, "refusal")),
    Row("", "200 and bytes", lambda w, k: w.http(k, "bytes")),
    Row("", "an error under `Declined=complete`", lambda w, k: w.http(k, "Declined")),
    Row("gateway", "201 and text", lambda w, k: w.gateway(k)),
    Row("", "422 and text", lambda w, k: w.gateway(k, "/pay?status=422")),
    Row("", "the same under `idempotency_outcome 422=fail`",
        lambda w, k: w.gateway(k, "/fails?status=422")),
    Row("", "an answer that calls itself `application/vnd.idem.output`",
        lambda w, k: w.gateway(k, "/pay?mode=grpc&type=application/vnd.idem.output")),
    Row("`idem resolve`", "text", lambda w, k: w.resolve(k, "receipt 7")),
    Row("", "JSON, and says so",
        lambda w, k: w.resolve(k, '{"receipt": 7}', "--content-type", "application/json")),
    Row("", "text, and says that it is not JSON",
        lambda w, k: w.resolve(k, "7", "--content-type", "text/plain")),
    Row("", "text with `--http-status 201`",
        lambda w, k: w.resolve(k, "receipt 7", "--http-status", "201",
                               "--content-type", "text/plain")),
    Row("", "what is a response to Lambda", lambda w, k: w.resolve(k, RESPONSE)),
    Row("`idem complete`", "text with `--exit 3`",
        lambda w, k: w.complete(k, "--result", "half", "--exit", "3")),
    Row("", "text that calls itself two streams",
        lambda w, k: w.complete(k, "--result", "receipt 7", *OUTPUT)),
    Row("", "two streams, cut off",
        lambda w, k: w.complete(k, "--result", "-", "--exit", "0", *OUTPUT,
                                input=FRAMES + b"\1\0\0\0\5sec")),
    Row("", "text that calls itself JSON",
        lambda w, k: w.complete(k, "--result", "receipt 7",
                                "--content-type", "application/json")),
    Row("", "text that calls itself an error of Lambda",
        lambda w, k: w.complete(k, "--result", "receipt 7", "--content-type",
                                "application/vnd.idem.lambda-error+json")),
    Row("an older `idem run`", "text",
        lambda w, k: w.complete(k, "--result", "-", "--exit", "0", *OUTPUT, input=FRAMES)),
    Row("an older Lambda, HTTP", "201 and text",
        lambda w, k: w.complete(k, "--result", RESPONSE,
                                "--content-type", "application/json")),
]  # fmt: skip


# ---- What is seen ----


def code(text):
    """@text as code, in a cell."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "`" + text.strip().replace("\n", "\\n").replace("|", "\\|") + "`"


def seen_by_run(world, key):
    got = world.run(key, "echo it ran")
    own = (b"idem: ", b"  idem ")
    said = [line for line in got.stderr.splitlines() if not line.startswith(own)]
    parts = [code(got.stdout)] if got.stdout else []
    parts += [f"standard error {code(line)}" for line in said]
    return ", ".join([*parts, str(got.status)])


def seen_by_consume(line):
    return f"{line['outcome']}, {line['action']}"


def seen_by_event(answer):
    if answer.kind == "error":
        return f"error {code(answer.type)}"
    return code(answer.body)


def of_http(status, kind, body):
    if kind == "application/problem+json":
        return f"{status} {code(json.loads(body)['type'].rsplit(':', 1)[1])}"
    return ", ".join([str(status), *([code(kind)] if kind else []), *([code(body)] if body else [])])


def seen_by_http(answer):
    if answer.kind == "error":
        return f"error {code(answer.type)}"
    told = answer.json()
    body = told["body"]
    if told["isBase64Encoded"] if "isBase64Encoded" in told else False:
        body = base64.b64decode(body)
    headers = {name.lower(): value for name, value in told.get("headers", {}).items()}
    if headers.get("content-type") != "application/problem+json":
        equal((headers["idempotent-replayed"], headers["cache-control"]), ("true", "no-store"))
        equal("location" in headers, "/" in headers.get("location", ""))
    return of_http(told["statusCode"], headers.get("content-type"), body)


def seen_by_gateway(answer):
    if "content-type" not in answer.headers or not answer.problem:
        equal(answer.headers.get("idempotent-replayed"), "true")
    return of_http(answer.status, answer.headers.get("content-type"), answer.body)


def effects():
    return len(lines("ledger"))


@contextlib.contextmanager
def world():
    write("function", HANDLER, 0o755)
    open("ledger", "a", encoding="utf-8").close()
    # A receive that nobody waits for any more takes a message with it: once is too few.
    queue = rig.Place(visibility=2, receives=5)
    with Upstream() as up, Nginx(up, http=HTTP, server=FAILS) as nginx:
        store = f"sqlite:{nginx.home}/idem.db"
        with Sandbox("function", {**LAMBDA, "IDEM_STORE": store}) as box:
            yield World(store, nginx, up, box, queue)


def table(seen):
    lines = ["| recorded by | | `idem run` | `idem consume` | Lambda, an event | Lambda, HTTP | gateway |",
             "|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join([row.who, row.what, *cells]) + " |" for row, cells in seen]
    return "\n".join(lines) + "\n"


@test
def each_front_end_replays_what_each_has_recorded():
    """Every record is replayed by every front end as docs/forms.md shows, and nothing
    is done again; no framing of one is seen through another."""
    with world() as w:
        keys = [f"key-{i}" for i in range(len(ROWS))]
        for key, row in zip(keys, ROWS):
            row.record(w, key)
        done = effects(), len(w.up.calls)
        by_message = w.consume(keys, "echo it ran")
        seen = []
        for key, row in zip(keys, ROWS):
            answers = [w.event(key, "again"), w.http(key, "again"), w.gateway(key)]
            for body in (*[a.body for a in answers], w.run(key, "echo it ran").stdout):
                assert b"\1\0\0" not in body and b"u0001" not in body, (row, body)
            seen.append((row, [seen_by_run(w, key), seen_by_consume(by_message[key]),
                               seen_by_event(answers[0]), seen_by_http(answers[1]),
                               seen_by_gateway(answers[2])]))  # fmt: skip
        equal((effects(), len(w.up.calls)), done)
    now = table(seen)
    page = read(PAGE)
    head, told = page.split(MARK)
    intro, _, told = told.partition("\n\n| recorded by")
    told = "| recorded by" + told
    if golden.REGEN:
        write(PAGE, head + MARK + intro.rstrip("\n") + "\n\n" + now)
    else:
        equal(golden.difference(told, now), "")


# ---- Work to be run again ----

# Each leaves work that is to be run again.
OPEN = [
    ("run that failed", lambda w, k: w.run(k, "exit 3", "--outcome", "jobs")),
    ("run that released", lambda w, k: w.run(k, "exit 75")),
    ("event that failed", lambda w, k: w.event(k, "Again")),
    ("HTTP on Lambda that released", lambda w, k: w.http(k, "later")),
    ("gateway that tries again", lambda w, k: w.gateway(k, "/pay?status=418")),
    ("gateway that released", lambda w, k: w.gateway(k, "/pay?status=503")),
]


@test
def each_front_end_runs_again_what_another_left_to_be_run():
    """Work that one front end released, or ended with retry, is run again by each of the
    others; none runs again an attempt whose end is unknown."""
    with world() as w:
        for who, leave in OPEN:
            for by in ("run", "event", "http", "gateway"):
                key = f"{who}-{by}".replace(" ", "-")
                leave(w, key)
                if by == "run":
                    got = w.run(key, "echo it ran").stdout == b"it ran\n"
                elif by == "event":
                    got = w.event(key, "again").json() == "it ran"
                elif by == "http":
                    got = w.http(key, "answer").json()["statusCode"] == 201
                else:
                    got = w.gateway(key).status == 201
                equal((who, by, got), (who, by, True))

        equal(w.idem("unknown", "--token", w.claim("lost")).status, 0)
        done = effects(), len(w.up.calls)
        equal(w.run("lost", "echo it ran").status, 76)
        equal(seen_by_event(w.event("lost", "again")), "error `Idem.Unknown`")
        equal(seen_by_http(w.http("lost", "again")), "409 `outcome-unknown`")
        equal(w.gateway("lost").problem, "outcome-unknown")
        equal(seen_by_consume(w.consume(["lost"], "echo it ran")["lost"]), "unknown, leave")
        equal((effects(), len(w.up.calls)), done)


@test
def a_resolved_result_has_the_form_of_the_failed_one():
    """A person who says no form leaves it an answer of HTTP, or of a command, where it
    failed as one; a form that is said goes first."""
    w = World(f"sqlite:{os.path.abspath('idem.db')}")
    for key, ending, said, wanted in (
        ("http", ("--http-status", "422"), (), "http_status=200"),
        ("command", ("--exit", "3"), (), "exit_status=0"),
        ("other", ("--exit", "3"), ("--http-status", "201"), "http_status=201"),
        ("none", (), (), ""),
    ):
        done = w.idem("fail", "--token", w.claim(key), "--result", "no", *ending)
        equal((done.status, done.stderr), (0, b""))
        done = w.idem("resolve", key, "--complete", "receipt 7", "--reason", "seen", *said)
        equal((done.status, done.stderr), (0, b""))
        told = json.loads(w.idem("show", "--json", key).stdout)
        found = [f"{n}={told[n]}" for n in ("exit_status", "http_status") if n in told]
        equal((key, "".join(found)), (key, wanted))
        equal(seen_by_run(w, key), "`receipt 7`, 0")


if __name__ == "__main__":
    main()
