"""The real nginx with the module, in the current directory, and upstreams whose requests
tell them what to do.

    with Upstream() as up, Nginx(up) as nginx:
        first = nginx.post("/pay", key="a", body=b"x=1")
        equal(nginx.post("/pay", key="a", body=b"x=1").body, first.body)
        equal(up.executions("a"), 1)

A request tells the upstream what to do in its query: delay=MS, status=N, size=N,
mode=M (see _MODES), hold=NAME (until up.let_go(NAME)).
"""

import collections
import contextlib
import gzip
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from typing import NamedTuple

from patience import PATIENCE
from ports import free_port
import procfs
import tap

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
MODULE = os.environ.get("IDEM_NGINX_MODULE", "")
PROBLEM = "application/problem+json"


def need():
    """Skip the test where there is no nginx, or no module for it."""
    if NGINX is None:
        tap.skip("nginx is not installed")
    if not os.path.exists(MODULE):
        tap.skip("the module was not built: nginx-dev is not installed")


def need_plain_memory():
    """Skip a test that measures memory, if a sanitizer keeps freed memory."""
    if "IDEM_NGINX_PRELOAD" in os.environ:
        tap.skip("a sanitizer keeps memory that was freed")


# ---- Messages ----


class Answer(NamedTuple):
    """An answer; header names are in lower case, and repeated headers joined."""

    status: int
    headers: dict
    body: bytes

    @property
    def replayed(self):
        return self.headers.get("idempotent-replayed") == "true"

    @property
    def problem(self):
        """Return the last part of the type of a problem, or None."""
        if self.headers.get("content-type") != PROBLEM:
            return None
        text = json.loads(self.body)
        assert text["status"] == self.status, text
        return text["type"].rsplit(":", 1)[1]


def head_of(stream):
    """Read a head; return its first line and its headers."""
    first = stream.readline()
    if not first:
        raise ConnectionError("closed")
    headers = []
    while (line := stream.readline()) not in (b"\r\n", b"\n"):
        if not line:
            raise ConnectionError("closed in a head")
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    return first.decode("latin-1").strip(), headers


def _all(stream, count):
    body = stream.read(count)
    if len(body) != count:
        raise ConnectionError("closed in a body")
    return body


def _chunks(stream):
    body = b""
    while size := int(stream.readline().split(b";")[0] or b"x", 16):
        body += _all(stream, size)
        stream.readline()
    while stream.readline() not in (b"\r\n", b""):
        pass
    return body


def read_answer(stream, bodyless=False):
    """Read one answer from a binary stream."""
    first, pairs = head_of(stream)
    headers = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    status = int(first.split()[1])
    if bodyless or status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding") == "chunked":
        body = _chunks(stream)
    elif "content-length" in headers:
        body = _all(stream, int(headers["content-length"]))
    else:
        body = stream.read()
    return Answer(status, headers, body)


def request_bytes(path, key=None, body=b"", method="POST", headers=(), host="h"):
    """Return a request of HTTP/1.1. A plain @key is quoted, any other one sent unchanged."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    if key is not None:
        lines.append(f"Idempotency-Key: {key}")
    if body or method in ("POST", "PATCH", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


# ---- The upstream ----


class Call(NamedTuple):
    """A request that the upstream executed."""

    method: str
    path: str
    headers: dict
    body: bytes

    @property
    def key(self):
        return self.headers.get("idempotency-key", "").strip('"')


def _reset(connection):
    """Close with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Upstream:
    """A server that executes requests, and counts them.

    It notes an execution when it has read the request, before it answers.
    """

    def __init__(self, port=0):
        self.calls = []
        self._lock = threading.Lock()
        self._held = collections.defaultdict(threading.Event)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port = self._socket.getsockname()[1]
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for event in list(self._held.values()):
            event.set()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def executions(self, key=None):
        """Return how often work was done: for @key, or at all."""
        with self._lock:
            return sum(key is None or call.key == key for call in self.calls)

    def counts(self):
        """Return {key: executions}."""
        with self._lock:
            return collections.Counter(call.key for call in self.calls)

    def let_go(self, name):
        self._held[name].set()

    def hold_again(self, name):
        self._held[name].clear()

    def wait_for(self, count, key=None, seconds=PATIENCE):
        """Wait until work was done @count times."""
        until = time.monotonic() + seconds
        while self.executions(key) < count:
            assert time.monotonic() < until, f"{self.executions(key)} of {count}"
            time.sleep(0.005)

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection.makefile("rb") as stream:
                while self._one(connection, stream):
                    pass
        except (OSError, ValueError):
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    def _one(self, connection, stream):
        try:
            first, pairs = head_of(stream)
        except ConnectionError:
            return False
        method, path, _ = first.split()
        headers = {name.lower(): value for name, value in pairs}
        if headers.get("transfer-encoding") == "chunked":
            body = _chunks(stream)
        else:
            body = _all(stream, int(headers.get("content-length", 0)))
        with self._lock:
            self.calls.append(Call(method, path, headers, body))
            number = len(self.calls)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        if "hold" in query:
            self._held[query["hold"]].wait(60)
        time.sleep(int(query.get("delay", 0)) / 1000)
        answer = _MODES[query.get("mode", "plain")](number, body, query)
        if answer is None:
            _reset(connection)
            return False
        connection.sendall(answer[0])
        if answer[1] == "reset":
            _reset(connection)
        elif answer[1] == "stream":
            while True:
                connection.sendall(b"400\r\n" + b"s" * 1024 + b"\r\n")
                time.sleep(0.01)
        return answer[1] is None


def _head(number, query, *more, length=None):
    status = int(query.get("status", 201))
    lines = [
        f"HTTP/1.1 {status} Whatever",
        f"Location: /orders/{number}",
        "Content-Type: text/plain; charset=utf-8",
        f"Set-Cookie: session={number}",
        f"X-Request: {number}",
        *more,
    ]
    if length is not None and status not in (204, 304):
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def _body(number, body, query):
    size = int(query.get("size", -1))
    if int(query.get("status", 201)) in (204, 304):
        return b""
    if size >= 0:
        return (b"%08d" % number * (size // 8 + 1))[:size]
    return b"order %d %s\n" % (number, body[:100])


def _plain(number, body, query, *more):
    out = _body(number, body, query)
    return _head(number, query, *more, length=len(out)) + out, None


def _gzip(number, body, query):
    out = gzip.compress(_body(number, body, query))
    return _head(number, query, "Content-Encoding: gzip", length=len(out)) + out, None


def _chunked(number, body, query, end=b"0\r\n\r\n", then=None):
    out = _body(number, body, query)
    pieces = b"".join(
        b"%x\r\n%s\r\n" % (len(out[i : i + 4096]), out[i : i + 4096])
        for i in range(0, len(out), 4096)
    )
    head = _head(number, query, "Transfer-Encoding: chunked")
    return head + pieces + end, then


def _cut(number, body, query):
    """Send a body that is shorter than its head states."""
    out = _body(number, body, query)
    return _head(number, query, length=len(out) + 10) + out, "close"


# What an upstream can do with a request that it has executed.
_MODES = {
    "plain": _plain,
    "chunked": _chunked,
    "cut": _cut,
    "cutreset": lambda n, b, q: (_cut(n, b, q)[0], "reset"),
    "chunkcut": lambda n, b, q: _chunked(n, b, q, end=b"", then="close"),
    "drop": lambda n, b, q: (b"", "close"),
    "reset": lambda n, b, q: None,
    "garbage": lambda n, b, q: (b"HTTP/1.1 200 OK\r\nnot a header\x00\r\n\r\n", "close"),
    "halfhead": lambda n, b, q: (b"HTTP/1.1 201 Created\r\nLocation: /o", "close"),
    "nohttp": lambda n, b, q: (b"this is no HTTP\n" * 20_000, "close"),
    "lying": lambda n, b, q: _plain(
        n, b, q, "Idempotent-Replayed: true", "Idempotency-Expires: never"
    ),
    "secrets": lambda n, b, q: _plain(
        n, b, q, "WWW-Authenticate: Basic", "Authorization: x", "ETag: \"e1\"",
        "Content-Language: en", "Access-Control-Allow-Origin: *", "X-Kept: kept",
        "Cache-Control: private", "Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT",
    ),
    "twolengths": lambda n, b, q: (
        _head(n, q, "Content-Length: 3", "Content-Length: 2") + b"abc", "close"),
    "manyheaders": lambda n, b, q: _plain(
        n, b, q, *(f"X-Kept: {'v' * 100}" for _ in range(400))),
    "accel": lambda n, b, q: _plain(n, b, q, "X-Accel-Redirect: /file.txt"),
    "gzip": _gzip,
    "noend": lambda n, b, q: (_head(n, q, "Transfer-Encoding: chunked"), "stream"),
    "threelengths": lambda n, b, q: (
        _head(n, q, "Content-Length: 3, 3") + b"abc", "close"),
    "badlength": lambda n, b, q: (
        _head(n, q, "Content-Length: +3") + b"abcd", "close"),
    "early": lambda n, b, q: (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + _plain(n, b, q)[0],
        q.get("then")),
    "grpc": lambda n, b, q: (
        _plain(n, b, q)[0].replace(b"text/plain; charset=utf-8", q["type"].encode()), None),
    "switch": lambda n, b, q: (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
        b"Connection: Upgrade\r\n\r\n", "close"),
}  # fmt: skip


# ---- nginx ----

_CONF = """
{load}
pid nginx.pid;
error_log error.log {level};
worker_processes {workers};
{user}
{main}
events {{ worker_connections 2048; }}
http {{
  client_body_temp_path tmp/b; proxy_temp_path tmp/p; fastcgi_temp_path tmp/f;
  uwsgi_temp_path tmp/u; scgi_temp_path tmp/s;
  proxy_http_version 1.1; proxy_set_header Connection "";
  client_max_body_size 64m; keepalive_requests 100000000;
  {http}
  access_log access.log {log};
  upstream app {{ server 127.0.0.1:{upstream}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} backlog=2048;
    {server}
    location / {{ {location} proxy_pass http://app; }}
  }}
}}
"""

# The store of every test of the module that sets no other one.
STORE = "idempotency_store sqlite:idem.db;"
ON = STORE + " idempotency on; idempotency_scope global;"
LOG = (
    "log_format idem '$status $idempotency_verdict $idempotency_outcome "
    "$idempotency_id $idempotency_fence $idempotency_attempts';"
)


class Nginx:
    """nginx in the foreground, in ./ngx, with @http in its http block."""

    def __init__(
        self, upstream, http=ON, module=True, level="info", env=None, preload=None, **conf
    ):
        need()
        self.port = free_port()
        self.home = os.path.abspath("ngx")
        self.env = dict(env or {})
        if "IDEM_NGINX_PRELOAD" in os.environ:
            # A module with a sanitizer wants its library first.
            self.env["LD_PRELOAD"] = os.environ["IDEM_NGINX_PRELOAD"]
            self.env["ASAN_OPTIONS"] = "detect_leaks=0"
        if preload is not None:
            before = self.env.get("LD_PRELOAD")
            self.env["LD_PRELOAD"] = f"{before}:{preload}" if before else preload
        self.up = upstream
        self.upstream = getattr(upstream, "port", upstream)
        self.text = dict(http=http, level=level, **conf)
        self.module = module
        self.process = None
        os.makedirs(self.home + "/tmp", exist_ok=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.stop(check=kind is None)

    def write(self, **conf):
        """Write the configuration, changed by @conf."""
        self.text.update(conf)
        text = dict(
            load=f"load_module {MODULE};" if self.module else "",
            port=self.port,
            upstream=self.upstream,
            user="user root;" if os.geteuid() == 0 else "",
            workers=1,
            main="",
            server="",
            location="",
            log="combined",
        )
        text.update(self.text)
        with open(self.home + "/nginx.conf", "w", encoding="utf-8") as f:
            f.write(_CONF.format(**text))

    def command(self, *more):
        return [NGINX, "-e", "stderr", "-p", self.home, "-c", "nginx.conf", *more]

    def check(self, **conf):
        """Run nginx -t with this configuration, and return its Result."""
        self.write(**conf)
        return tap.run(self.command("-t"), self.env)

    def start(self):
        self.write()
        err = open(self.home + "/stderr", "ab")
        cmd = self.command("-g", "daemon off;")
        self.process = tap.start(cmd, self.env, stdout=err, stderr=err)
        err.close()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, self.errors()
            else:
                if self.workers():  # The master listens before it starts them.
                    return
            assert time.monotonic() < until, "nginx does not listen"
            time.sleep(0.01)

    def errors(self):
        text = ""
        for name in ("stderr", "error.log"):
            with contextlib.suppress(OSError):
                with open(f"{self.home}/{name}", encoding="utf-8") as f:
                    text += f.read()
        return text

    def log(self):
        with open(self.home + "/access.log", encoding="utf-8") as f:
            return f.read().splitlines()

    def stop(self, check=True, how=signal.SIGQUIT, seconds=PATIENCE):
        """End it, and fail if it logged an alert or a worse line."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(how)
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
        tap.kill_session(process)
        if check:
            assert not late, "nginx did not end\n" + self.errors()
            for line in self.errors().splitlines():
                bad = "[alert]" in line or "[emerg]" in line or "ERROR:" in line
                killed = "exited on signal 9" in line
                assert not bad or killed, line

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def workers(self):
        """Return the processes of the workers, also of those that are exiting."""
        return procfs.children(self.process.pid)

    # ---- Requests ----

    def connect(self, timeout=PATIENCE):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, path, key=None, body=b"", method="POST", headers=(), timeout=PATIENCE, host="h"):
        """Send one request on a connection of its own, and return the answer."""
        more = [("Connection", "close"), *headers]
        with self.connect(timeout) as s, s.makefile("rb") as stream:
            s.sendall(request_bytes(path, key, body, method, more, host))
            return read_answer(stream, method == "HEAD")

    post = request

    @contextlib.contextmanager
    def working(self, path, key="k", body=b"x", **more):
        """Send a request, wait until its upstream has it, and give a function that reads
        the answer."""
        already = self.up.executions(key)
        with self.connect() as s, s.makefile("rb") as stream:
            s.sendall(request_bytes(path, key, body, **more))
            self.up.wait_for(already + 1, key)
            yield lambda: read_answer(stream)

    def raw(self, data, answers=1, timeout=PATIENCE):
        """Send @data and read so many answers."""
        with self.connect(timeout) as s, s.makefile("rb") as stream:
            s.sendall(data)
            return [read_answer(stream) for _ in range(answers)]

    def many(self, requests, threads=100, after=None):
        """Send [(path, key, body)] at once; return their answers in order.

        @after is (n, f): f is called as soon as n answers are there.
        """
        answers = [None] * len(requests)
        work = iter(range(len(requests)))
        done = itertools.count(1)
        enough, then = after or (None, None)
        lock = threading.Lock()

        def run():
            while True:
                with lock:
                    i = next(work, None)
                if i is None:
                    return
                try:
                    answers[i] = self.request(*requests[i])
                except (OSError, ConnectionError) as error:
                    answers[i] = error
                if next(done) == enough:
                    then()

        tap.at_once(lambda _: run(), range(threads))
        return answers

    def at_work(self):
        """Return how many requests it works on, without the one that asks stub_status."""
        text = self.request("/nginx_status", method="GET").body.decode()
        return int(re.search(r"Writing: (\d+)", text)[1]) - 1

    def idem(self, *args, env=None):
        """Run a command of idem on its store, a file."""
        return tap.Idem(f"sqlite:{self.home}/idem.db")(*args, env=env)

    def begun(self):
        """Return how many keys have a record in its store."""
        done = self.idem("list", "--json")
        assert done.status == 0, done
        return len(done.stdout.splitlines())

    def stats(self):
        """Return {counter: number} of its store, once it has ended."""
        done = self.idem("stats", "--format", "prometheus")
        assert done.status == 0, done
        found = re.findall(r"^idem_(\w+)_total\S* (\d+)$", done.stdout.decode(), re.M)
        return {name: int(number) for name, number in found}


STATUS = "location /nginx_status { idempotency off; stub_status; }"


# ---- The store ----


def record(nginx, key="k"):
    """Return the record of @key as idem show prints it, or None."""
    got = nginx.idem("show", "--json", key)
    return json.loads(got.stdout) if got.status == 0 else None


@contextlib.contextmanager
def held(path):
    """Let another process hold the lock of the store in @path, for a with block, or
    until it is killed."""
    code = (
        "import fcntl,os,sys,time\n"
        "f=os.open(sys.argv[1],os.O_RDWR)\n"
        "fcntl.lockf(f,fcntl.LOCK_EX)\n"
        "print('held',flush=True)\ntime.sleep(60)\n"
    )
    cmd = [sys.executable, "-c", code, path + "-lock"]
    with subprocess.Popen(cmd, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()
