"""The middleware of both packages, in the frameworks themselves: one handler with it and
without."""

import contextlib
import functools
import http.client
import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

from box import case, contains, is_gone
from dynamo import SERVERS
from files import read
from header_cases import Front, check, check_control
from patience import until
from ports import free_port
from procfs import children, marked, named, stop
from tap import PROGRAM, TOP, environment, equal, main, skip, start

HERE = os.path.join(TOP, "tests/clients")
PYTHON = "/usr/bin/python3"  # It has Debian's frameworks.
NODE = os.environ.get("NODE", "node")


@functools.cache
def has(*command, modules=None):
    """Whether @command succeeds, with the modules of Node.js in that folder."""
    env = None if modules is None else {**os.environ, "NODE_PATH": modules}
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, env=env).returncode == 0
    return False


def environment_of(b, language):
    return environment({
        "IDEM_AUDIT_LOG": b.file("audit.log"), "IDEM_JOURNAL_DIR": b.file("journal"), "HOME": b.path,
        "IDEM_PROGRAM": PROGRAM, "STORE": b.idem.store, "NODE_PATH": os.path.join(SERVERS, "node_modules"),
        "PACKAGE": os.path.join(TOP, "clients", language),
    })


@contextlib.contextmanager
def app(b, framework, *args):
    """Its front, in a process of its own."""
    needed = {"flask": "flask", "gunicorn": "flask, gunicorn", "starlette": "starlette, uvicorn",
              "uvloop": "starlette, uvicorn, uvloop"}  # fmt: skip
    language = "python" if framework in needed else "node"
    env = environment_of(b, language)
    if language == "python":
        command = [PYTHON, os.path.join(HERE, "http_app.py")]
        found = has(PYTHON, "-c", f"import {needed[framework]}")
    else:
        command = [NODE, os.path.join(HERE, "http_app.js")]
        found = has(NODE, "-e", f"require('{framework}')", modules=env["NODE_PATH"])
    if not found:
        skip(f"{framework} is not installed: tools/test installs it")
    process = start([*command, framework, *args], env, cwd=b.path)
    b.processes.append(process)
    yield Front(int(process.stdout.readline()), b.effects), process
    process.kill()
    process.wait()


def record(b, key):
    return json.loads(b("show", "--json", "--scope", "ann", key).stdout)


def each(b, framework):
    with app(b, framework, "bare") as (front, _):
        check_control(front)
    with app(b, framework) as (front, _):
        check(front)


@case
def express(b):
    """The corpus of headers in Express."""
    each(b, "express")


@case
def fastify(b):
    """The same in Fastify."""
    each(b, "fastify")


@case
def koa(b):
    """The same in Koa."""
    each(b, "koa")


@case
def wsgi(b):
    """The same in Flask."""
    each(b, "flask")


@case
def asgi(b):
    """The same in Starlette."""
    each(b, "starlette")


@case
def uvloop(b):
    """The same in Starlette on uvloop."""
    each(b, "uvloop")


@case
def gunicorn(b):
    """The same in Flask, in processes that were forked after the first call."""
    each(b, "gunicorn")


# ---- Beside the corpus -------------------------------------------------------


@case
def responses_that_come_in_pieces(b):
    """Pieces are one body on record. A response that is too long for it is passed on, and
    its replay is refused; the attempt is the handler's to check."""
    for framework in ("express", "flask", "starlette"):
        with app(b, framework) as (front, _):
            key = f'"{framework}"'
            first, again = (front(key, target="/large") for _ in range(2))
            assert len(first.body) >= 20 << 20, len(first.body)
            equal((again.status, json.loads(again.body)["type"]), (409, "urn:idem:problem:response-not-kept"))
            fence, _ = front(key[:-1] + '-c"', target="/check").body.split()
            equal(record(b, f"{framework}-c")["fence"], int(fence))
            if framework == "express":
                equal([front('"p"', target="/pieces").body[:2] for _ in range(2)], [b"ab"] * 2)


@case
def a_handler_that_throws(b):
    """The framework answers with 500, and that is on record."""
    for framework in ("express", "flask", "starlette"):
        with app(b, framework) as (front, _):
            equal(front.did(lambda: [front(f'"{framework}"', target="/throw") for _ in range(2)]), 1)
            equal(record(b, framework)["status"], "completed")


@case
def a_child_is_killed_at_work(b):
    """The next child finds the claim, and puts the response on record."""
    for framework in ("express", "flask", "starlette"):
        with app(b, framework) as (front, process), ThreadPoolExecutor() as pool:
            asked, before = pool.submit(front, f'"{framework}"', target="/gate"), b.effects()
            until(lambda: b.effects() > before, "it is at work")
            (child,) = children(process.pid)
            os.kill(child, signal.SIGKILL)
            until(lambda: is_gone(child), "the child is gone")
            b.open_gate()
            equal(asked.result().all("Idempotency-Recorded"), [])
            equal(record(b, framework)["status"], "completed")
            equal(front(f'"{framework}"', target="/gate").all("Idempotent-Replayed"), ["true"])


@case
def a_prefork_worker_is_killed_at_work(b):
    """The next request is told so by another, long before its lease is over; and the end of
    gunicorn is that of all."""
    with app(b, "gunicorn") as (front, process), ThreadPoolExecutor() as pool:
        asked = pool.submit(front, '"gunicorn"', target="/gate")
        until(b.effects, "it is at work")
        equal(front('"gunicorn"', target="/gate").status, 409)
        for worker in children(process.pid):
            if named([worker]) != {worker: "idem"}:  # That of the call before the fork.
                os.kill(worker, signal.SIGKILL)
        assert isinstance(asked.exception(), (http.client.HTTPException, OSError))
        until(lambda: record(b, "gunicorn")["status"] == "unknown", "its death is told")
        told = until(lambda: front('"gunicorn"', target="/gate"), "another answers")
        equal(json.loads(told.body)["type"], "urn:idem:problem:outcome-unknown")
        equal((front('"other"').status, b.effects()), (201, 2))
        process.terminate()
        until(lambda: not marked(f"STORE={b.idem.store}".encode()), "no process is left")


@case
def a_response_that_cannot_be_recorded(b):
    """It is sent, and says so; what a person decided meanwhile stands."""
    for framework in ("express", "flask", "starlette"):
        with app(b, framework) as (front, _), ThreadPoolExecutor() as pool:
            asked, before = pool.submit(front, f'"{framework}"', target="/gate"), b.effects()
            until(lambda: b.effects() > before, "it is at work")
            equal(front(f'"{framework}"', target="/gate").status, 409)
            words = ("--scope", "ann", "--fail", "--force", "--reason", "r")
            equal(b("resolve", framework, *words).status, 0)
            b.open_gate()
            equal((asked.result().status, asked.result().all("Idempotency-Recorded")), (200, ["false"]))
            equal(record(b, framework)["status"], "failed")


@case
def what_the_page_shows_works(b):
    """Both programs of docs/languages.md, which a request that is repeated reaches once."""
    page = read(os.path.join(TOP, "docs/languages.md"))
    for fence, framework, command in (("javascript", "express", [NODE]), ("py", "flask", [PYTHON])):
        with app(b, framework):
            pass
        (block,) = re.findall(rf"^```{fence}\n(.*?)^```$", page, re.M | re.S)
        port = free_port()
        b.write("page.mjs", block.replace("/var/lib/app", b.path).replace("8081", str(port)))
        for name, of in (("idem", os.path.join(TOP, "clients/node")), ("express", os.path.join(SERVERS, "node_modules/express"))):
            os.makedirs(b.file("node_modules"), exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(of, b.file(f"node_modules/{name}"))
        env = environment_of(b, "python")
        b.processes.append(start([*command, "page.mjs"], {**env, "PYTHONPATH": env["PACKAGE"]}, cwd=b.path))
        front = Front(port, b.effects)

        def pay():
            with contextlib.suppress(OSError):
                return front(f'"{fence}"', target="/payments", body='{"amount": 42}')

        first = until(pay, "it listens")
        equal((first.status, first.body), (201, pay().body))


# ---- Lambda ------------------------------------------------------------------


class Function:
    """A Lambda function of one language, in a process of its own."""

    def __init__(self, b, language):
        command = {"node": [NODE, "lambda_app.js"], "python": [PYTHON, "lambda_app.py"]}[language]
        if not has(command[0], "--version"):
            skip(f"{command[0]} is not installed")
        argv = [command[0], os.path.join(HERE, command[1])]
        with open(b.file("log"), "ab") as log:
            self.process = start(argv, environment_of(b, language), cwd=b.path, stdin=subprocess.PIPE, stderr=log)
        b.processes.append(self.process)

    def __call__(self, event, left=30000, **more):
        self.process.stdin.write(json.dumps({"event": event, "left": left, **more}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def samples():
    folder = os.path.join(TOP, "tests/lambda/events")
    for name in sorted(os.listdir(folder)):
        yield name, json.loads(read(os.path.join(folder, name)))


def every_source(b, language):
    run = Function(b, language)
    for name, event in samples():
        before = b.effects()
        for _ in range(2):
            run(event, bare=True)
        equal((name, b.effects() - before), (name, 2))
        before = b.effects()
        first = run(event, function=name)  # Samples have keys in common.
        units = b.effects() - before
        again = run(event, function=name)
        equal((name, units > 0, b.effects() - before), (name, True, units))
        assert "error" not in first and "error" not in again, (name, first, again)
        if isinstance(first["value"], dict) and "statusCode" in first["value"] and "httpMethod" in event:
            replayed = again["value"]["headers" if "headers" in again["value"] else "multiValueHeaders"]
            assert "Idempotent-Replayed" in replayed and "Set-Cookie" not in replayed, again
            equal(again["value"]["body"], first["value"]["body"])


@case
def every_source_in_node(b):
    """An event of each source that comes twice is handled once; without idem twice."""
    every_source(b, "node")


@case
def every_source_in_python(b):
    """The same in Python."""
    every_source(b, "python")


@case
def a_function_that_is_frozen_between_events(b):
    """Both of its processes stand still while nothing is open, and go on with the next."""
    _, event = next(samples())
    for language in ("node", "python"):
        run, before = Function(b, language), b.effects()
        first = run(event, function=language)
        both = [run.process.pid, *children(run.process.pid)]
        equal(len(both), 2)
        for pid in both:
            stop(pid)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        equal(run(event, function=language), first)
        assert "error" not in run(event, function=f"another in {language}")
        equal((b.effects() - before, children(run.process.pid)), (2, both[1:]))


@case
def a_queue_in_order(b):
    """After a failure those of its group wait, and all of them are named; the others are
    done once, however often they come. With too little time left none is started."""

    def message(number, group, body="paid"):
        arn = "arn:aws:sqs:eu-west-1:123456789012:q.fifo"
        attributes = {"MessageGroupId": group, "MessageDeduplicationId": f"d{number}"}
        return {"messageId": f"m{number}", "body": body, "attributes": attributes, "eventSource": "aws:sqs", "eventSourceARN": arn}

    def named(answer):
        return [one["itemIdentifier"] for one in answer["value"]["batchItemFailures"]]

    for language in ("node", "python"):
        run, before = Function(b, language), b.effects()
        of = [message(f"{language}{n}", group) for n, group in enumerate("ABAABA")]
        of[2]["body"] = "broken"
        equal(named(run({"Records": of}, left=500)), [one["messageId"] for one in of])
        equal(b.effects() - before, 0)
        equal(named(run({"Records": of})), [of[n]["messageId"] for n in (2, 3, 5)])
        equal(b.effects() - before, 4)
        equal(named(run({"Records": of})), [of[n]["messageId"] for n in (2, 3, 5)])
        equal(b.effects() - before, 5)
        twice = [message(f"{language}7", "C"), message(f"{language}7", "C")]
        equal(named(run({"Records": twice})), [])
        equal(b.effects() - before, 6)
        contains(run({"Records": [{"eventSource": "aws:new"}]})["error"], "source is unknown")


if __name__ == "__main__":
    main()
