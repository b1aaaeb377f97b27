"""Lambda's Runtime API (2018-06-01) and the sandbox around a runtime, for tests.

    with Sandbox("./handler", env) as box:
        answer = box.invoke({"key": "a"})      # answer.kind, answer.json(), ...

It holds the runtime to the published rules: one "next" at a time, and none before the
delivery is answered; a known request id, answered once; at most 6 MiB. It keeps breaches in
box.breaches, and fails with them when it is closed. It kills a runtime that is not done at
its deadline, and starts another for the next delivery; between two deliveries it stops the
runtime (SIGSTOP), which must then be one thread without children.
"""

import collections
import contextlib
import json
import os
import queue
import signal
import socket
import threading
import time
import uuid

from patience import PATIENCE
from procfs import stop
import tap
import web

RESPONSE_MAX = 6 * 1024 * 1024
PREFIX = "/2018-06-01/runtime/"



class Answer(collections.namedtuple("Answer", "kind body type request_id")):
    """How a delivery ended: "response", "error", "timeout" or "exit"."""

    def json(self):
        return json.loads(self.body)


class Delivery:
    """One event in flight: the request to the runtime, and its answer."""

    def __init__(self, event, seconds, headers, request_id, life):
        self.body = event if isinstance(event, bytes) else json.dumps(event).encode()
        self.request_id = request_id or str(uuid.uuid4())
        self.deadline = time.time() + seconds
        self.end = time.time() + (seconds if life is None else life)
        self.headers = {
            "Lambda-Runtime-Aws-Request-Id": self.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int(self.deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:"
            "123456789012:function:pay",
            "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700",
        }
        self.headers.update(headers or {})
        self.answers = []
        self.done = threading.Event()


class Handler(web.Handler):
    def gone(self):
        """Return whether the runtime that asks has ended. On a busy machine its last request
        may be read after another runtime was started, and must not pass for that one's."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def do_GET(self):
        box = self.server.box
        if self.path != PREFIX + "invocation/next":
            box.breach(f"GET {self.path}")
            self.say(404, b"{}")
            return
        delivery = box.next(self.gone)
        if delivery is None or delivery.headers.get("cut"):
            self.close_connection = True
            return
        if delivery.headers.get("chunked"):
            self.send_chunked(delivery)
            return
        headers = [("Content-Type", "application/json")]
        headers += [(n, v) for n, v in delivery.headers.items() if v is not None]
        self.say(delivery.headers.get(":status", 200), delivery.body, headers)

    def send_chunked(self, delivery):
        self.send_response(200)
        for name, value in delivery.headers.items():
            if name != "chunked":
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(delivery.body), 7):
            piece = delivery.body[at : at + 7]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        box = self.server.box
        body = self.body()
        status = box.posted(
            self.path,
            body,
            self.headers.get("Lambda-Runtime-Function-Error-Type"),
            self.gone,
        )
        if status is None:
            self.close_connection = True
            self.connection.close()
            return
        with contextlib.suppress(OSError):
            self.say(status, b"{}")


class Server(web.Server):
    def handle_error(self, *_):
        pass  # The runtime was killed in the middle.


class Function(str):
    """The path of a program with the runtime inside, which the sandbox starts itself, like
    a bootstrap."""


class Sandbox:
    """One execution environment, which the first delivery starts. @handler is a program
    that the runtime of idem starts for each event, or a Function."""

    def __init__(self, handler, env=None, program=None, freeze=True):
        function = [handler] if isinstance(handler, Function) else [tap.PROGRAM, "lambda"]
        self.command = program or function
        self.server = Server(Handler)
        self.server.box = self
        self.address = "127.0.0.1:%d" % self.server.server_port
        self.env = {
            "AWS_LAMBDA_RUNTIME_API": self.address,
            "AWS_LAMBDA_FUNCTION_NAME": "pay",
            "LAMBDA_TASK_ROOT": os.getcwd(),
            "_HANDLER": handler,
            "IDEM_STORE": "sqlite:" + os.path.abspath("idem.db"),
            "IDEM_LAMBDA_SCOPE": "global",
            **(env or {}),
        }
        self.freeze = freeze
        self.waiting = queue.Queue()
        self.idle = threading.Event()
        self.lock = threading.Lock()
        self.current = None
        self.process = None
        self.log = os.path.abspath(f"lambda-{uuid.uuid4().hex[:8]}.log")
        self.breaches = []
        self.init_error = None
        # "response" or "error": statuses; None: cut off; "kill": the runtime.
        self.answer_with = {}
        self.last_words = None  # Of the newest runtime that ended by itself.
        self.starts = self.kills = self.stops = self.asked = 0

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *failure):
        self.end()
        self.server.__exit__()
        if failure[0] is None:
            tap.equal(self.breaches, [])
        elif self.last_words:
            tap.note(self.last_words)

    # ---- The process ----

    def start(self):
        """Start the runtime, under the lock: on a busy machine it asks for its first event
        before it is known here, and would be cut off like the process before it."""
        with self.lock, open(self.log, "ab") as log:
            self.idle.clear()
            self.current = None
            self.waiting = queue.Queue()  # Requests of the process before keep waiting.
            self.starts += 1
            self.process = self.begin(log)

    def begin(self, log):
        return tap.start(self.command, self.env, stdout=log, stderr=log)

    def end(self):
        if self.process is not None:
            tap.kill_session(self.process)
            self.process = None

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def wait_exit(self, seconds=PATIENCE):
        """Wait for a runtime that ends by itself, and return its exit status."""
        return self.process.wait(seconds)

    def said(self):
        with open(self.log, "rb") as log:
            return log.read()[-2000:]

    def exited(self, request_id):
        """Return the Answer for a runtime that ended by itself. Note its last words: a test
        that did not expect this end compares only the kind, and could not show them."""
        said = self.said()
        last = said.decode(errors="replace").splitlines()[-3:]
        self.last_words = "\n".join(
            [f"a runtime ended with {self.process.poll()}:", *last]
        )
        return Answer("exit", said, None, request_id)

    def lines(self):
        """Return the lines of JSON that it logged, as objects."""
        found = []
        with open(self.log, "rb") as log:
            for line in log.read().splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def check_alone(self):
        """Note a breach unless the runtime to be frozen is one thread without children."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            place = f"/proc/{self.process.pid}/task"
            tasks = os.listdir(place)
            # The kernel shows a joined thread for a moment longer.
            end = time.monotonic() + 1
            while len(tasks) != 1 and time.monotonic() < end:
                time.sleep(0.01)
                tasks = os.listdir(place)
            with open(f"{place}/{tasks[0]}/children") as f:
                children = f.read().split()
            if len(tasks) != 1 or children:
                self.breach(f"{len(tasks)} threads, children {children} at rest")

    # ---- The API ----

    def breach(self, what):
        self.breaches.append(what)

    def next(self, gone):
        with self.lock:
            if gone():
                return None
            self.asked += 1
            if self.idle.is_set():
                self.breach("a second next while one waits")
            if self.current is not None and not self.current.answers:
                self.breach("next before the delivery was answered")
            process = self.process
            waiting = self.waiting
        if self.command[0] == tap.PROGRAM:
            self.check_alone()
        if self.freeze and self.starts > 0 and self.alive():
            self.stops += 1
            with contextlib.suppress(ProcessLookupError):
                stop(process.pid)
        with self.lock:
            if process is not self.process:
                return None  # It was killed since, and another one started.
            self.idle.set()
        delivery = waiting.get()
        with self.lock:
            self.idle.clear()
            if delivery is None or process is not self.process:
                return None
            self.current = delivery
        return delivery

    def posted(self, path, body, error_type, gone):
        if path == PREFIX + "init/error":
            self.init_error = (error_type, json.loads(body))
            return 202
        parts = path[len(PREFIX) :].split("/")
        with self.lock:
            delivery = self.current
            if gone() and (delivery is None or delivery.request_id not in parts):
                return None
            if len(parts) != 3 or delivery is None or parts[0] != "invocation":
                self.breach(f"POST {path} out of the blue")
                return 400
            if parts[1] != delivery.request_id:
                self.breach(f"POST {path}: no such request")
                return 400
            if parts[2] not in ("response", "error"):
                self.breach(f"POST {path}")
                return 404
            statuses = self.answer_with.get(parts[2])
            if statuses:
                status = statuses.pop(0)
                if status == "kill":
                    self.signal(signal.SIGKILL)
                    return None
                if status is None or status >= 300:
                    return status
            if delivery.answers:
                self.breach(f"{parts[1]} was answered twice")
                return 400
            if len(body) > RESPONSE_MAX:
                return 413
            if parts[2] == "error" and set(json.loads(body)) < {
                "errorType",
                "errorMessage",
            }:
                self.breach("an error without type or message")
            delivery.answers.append(
                Answer(parts[2], body, error_type, delivery.request_id)
            )
        delivery.done.set()
        return 202

    # ---- Deliveries ----

    def invoke(self, event, seconds=PATIENCE, headers=None, request_id=None, life=None):
        """Deliver @event and wait for its end: a response, an error, "timeout" (it
        was killed at its deadline, or after @life seconds), or "exit" (it ended by
        itself)."""
        if not self.alive():
            self.end()
            self.start()
        until = time.monotonic() + PATIENCE
        while not self.idle.wait(0.02):
            if not self.alive():
                return self.exited(None)
            assert time.monotonic() < until, "the runtime never asked for an event"
        delivery = Delivery(event, seconds, headers, request_id, life)
        if self.freeze:
            self.signal(signal.SIGCONT)
        self.waiting.put(delivery)
        while not delivery.done.wait(0.005):
            if not self.alive():
                return self.exited(delivery.request_id)
            if time.time() >= delivery.end:
                self.kills += 1
                self.end()
                return Answer("timeout", b"", None, delivery.request_id)
        return delivery.answers[0]
