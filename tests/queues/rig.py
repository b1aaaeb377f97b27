"""What the tests of idem consume share: one SQS server, its queues, a place to work
in, and something to stand between a client and its service."""

import contextlib
import http.client
import http.server
import json
import os
import socketserver
import sys
import threading
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import dynamo  # noqa: E402,F401
import sqs  # noqa: E402
from tap import Idem, Result, kill_session  # noqa: E402

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
            kill_session(process)
            for pipe in filter(None, (process.stdout, process.stderr)):
                pipe.close()

    def records(self, *options):
        done = self.idem("list", "--json", *options)
        return [json.loads(line) for line in done.stdout.splitlines()]


def ledger(name="ledger"):
    """The lines that work has written."""
    path = Path(name)
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def outcomes(lines):
    return sorted(line["outcome"] for line in lines)


class Between:
    """A proxy in front of a service of JSON calls.

    @rule gets the name of each action and its body, and gives None to pass the
    request on, (status, answer) to answer itself, or "drop" and "lose" to close
    the connection before and after the service has seen it.
    """

    def __init__(self, upstream, rule=lambda action, body: None):
        self.rule = rule
        self.seen = []
        self.open = True
        self.upstream = urllib.parse.urlsplit(upstream)
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass

            def do_POST(self):  # pylint: disable=invalid-name
                between.handle(self)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def count(self, action):
        return sum(1 for name, _ in self.seen if name == action)

    def handle(self, request):
        length = int(request.headers.get("Content-Length", 0))
        body = request.rfile.read(length)
        action = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        asked = json.loads(body or b"{}")
        self.seen.append((action, asked))
        what = "drop" if not self.open else self.rule(action, asked)
        if what == "drop":
            request.close_connection = True
            return
        if isinstance(what, tuple):
            self.answer(request, what[0], json.dumps(what[1]).encode(), {})
            return
        status, text, headers = self.ask(request, body)
        if what == "lose":
            request.close_connection = True
            return
        with contextlib.suppress(OSError):
            self.answer(request, status, text, headers)

    def ask(self, request, body):
        connection = http.client.HTTPConnection(
            self.upstream.hostname, self.upstream.port, timeout=60
        )
        try:
            kept = {
                k: v
                for k, v in request.headers.items()
                if k.lower() not in ("connection", "content-length")
            }
            connection.request("POST", request.path, body, kept)
            answer = connection.getresponse()
            text = answer.read()
            names = ("x-amz-crc32", "x-amzn-requestid", "x-amzn-errortype")
            headers = {n: answer.headers[n] for n in names if answer.headers[n]}
            return answer.status, text, headers
        finally:
            connection.close()

    def answer(self, request, status, text, headers):
        request.send_response(status)
        request.send_header("Content-Type", "application/x-amz-json-1.0")
        request.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(text)


def error(name, status=400):
    return status, {"__type": f"com.amazonaws.sqs#{name}", "message": "so it is"}
