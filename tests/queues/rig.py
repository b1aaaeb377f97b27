"""What the tests of idem consume share: one SQS server, its queues, a place to work
in, and something to stand between a client and its service."""

import contextlib
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import sqs  # noqa: E402
from tap import Idem, Result, end_session  # noqa: E402
import web  # noqa: E402

queues = 0


class Place:
    """A queue of its own, a store, and a ledger of effects."""

    def __init__(self, at=None, visibility=30, receives=3, fifo=False, store=None):
        global queues  # pylint: disable=global-statement
        queues += 1
        self.at = at or sqs.shared()
        name = f"q{queues}-{os.getpid()}"
        self.queue = sqs.Queue(self.at, name, visibility, receives, fifo)
        self.idem = Idem(store)
        self.env = sqs.environment(self.at)

    def args(self, *options, work):
        command = work if isinstance(work, (list, tuple)) else ("sh", "-c", work)
        return ("consume", "--queue", self.queue.url, *options, "--", *command)

    def consume(self, *options, work, timeout=180, **env):
        """Until nothing more comes; (status, the lines of --json, stderr)."""
        args = self.args("--until-empty", "--json", *options, work=work)
        done = self.idem(*args, env={**self.env, **env}, timeout=timeout)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return Result(done.status, lines, done.stderr.decode())

    @contextlib.contextmanager
    def start(self, *options, work, env=None, **popen):
        """Leave it running; it ends with the block at the latest."""
        env = {**self.env, **(env or {})}
        process = self.idem.start(*self.args(*options, work=work), env=env, **popen)
        try:
            yield process
        finally:
            end_session(process)

    def status(self, key, *scope):
        """That of its record; "none": there is none."""
        shown = self.idem("show", "--json", *scope, key)
        return json.loads(shown.stdout)["status"] if shown.status == 0 else "none"

    def records(self, *options):
        done = self.idem("list", "--json", *options)
        return [json.loads(line) for line in done.stdout.splitlines()]


def ledger(name="ledger"):
    """The lines that work has written."""
    path = Path(name)
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def outcomes(lines):
    return sorted(line["outcome"] for line in lines)


class Between(web.Server):
    """A proxy in front of a service of JSON calls.

    @rule gets the name of each action and its body, and gives None to pass the
    request on, (status, answer) to answer itself, or "drop" and "lose" to close
    the connection before and after the service has seen it.
    """

    def __init__(self, upstream, rule=lambda action, body: None):
        super().__init__(Through)
        self.upstream, self.rule = upstream, rule
        self.seen = []
        self.open = True

    def count(self, action):
        return sum(1 for name, _ in self.seen if name == action)

    def answer(self, request, status, text, headers):
        """Pass the service's answer on."""
        request.say(status, text, headers)


class Through(web.Relay):
    def do_POST(self):
        between, body = self.server, self.body()
        action = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        asked = json.loads(body or b"{}")
        between.seen.append((action, asked))
        what = between.rule(action, asked) if between.open else "drop"
        if isinstance(what, tuple):
            json_type = [("Content-Type", "application/x-amz-json-1.0")]
            self.say(what[0], json.dumps(what[1]).encode(), json_type)
            return
        answer = None if what == "drop" else self.ask(body)
        if what in ("drop", "lose"):
            self.close_connection = True
        else:
            between.answer(self, *answer)


def error(name, status=400):
    return status, {"__type": f"com.amazonaws.sqs#{name}", "message": "so it is"}
