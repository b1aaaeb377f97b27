"""idem gateway with the real nginx and the module of this build."""

import contextlib
import gzip
import http.client
import http.server
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import dynamo
import header_cases
from files import read, write
from patience import PATIENCE, until
from ports import free_port
import postgres
import procfs
from procfs import descendants
from tap import PROGRAM, TOP, Idem, equal, kill_session, main, note, run, skip, start, test
import web

MODULE = os.path.join(os.path.dirname(PROGRAM), "nginx/ngx_http_idempotency_module.so")
AS_USER = ["--user", "root"] if os.getuid() == 0 else []


# ---- The service, and a client ----


class Service(web.Server):
    """It counts what it does: one line of @effects for each request with a body."""

    def __init__(self, path=None):
        self.effects = []
        self.heads = []
        self.status = 201
        self.more = {}
        self.allowed = {}
        self.gate = threading.Event()
        self.gate.set()
        super().__init__(Handler, path or ("127.0.0.1", 0))

    def __exit__(self, *error):
        self.gate.set()
        super().__exit__(*error)


class Handler(web.Handler):
    def work(self):
        body = self.body()
        self.server.effects.append(body)
        self.server.heads.append(dict(self.headers))
        self.server.gate.wait(PATIENCE)
        if self.server.status is None:
            self.close_connection = True
            return
        self.answer(self.server.status, b"receipt %d\n" % (1000 + len(self.server.effects)))

    def answer(self, status, body):
        own = [("Content-Type", "text/plain"), ("Set-Cookie", "secret=1")]
        self.say(status, body, [*own, *self.server.more.items()])

    do_POST = do_PUT = work

    def do_GET(self):
        self.server.heads.append(dict(self.headers))
        if self.path == "/may?x=1":
            assert not self.headers.get("Content-Length"), self.headers
            self.answer(self.server.allowed[self.headers["Authorization"]], b"")
        elif self.headers.get("Upgrade"):
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\n"
                b"Connection: Upgrade\r\nUpgrade: echo\r\n\r\n"
            )
            self.wfile.write(b"echo " + self.rfile.readline())
            self.close_connection = True
        else:
            self.answer(200, self.path.encode())


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def replayed(self):
        return self.headers.get("Idempotent-Replayed")


class Gateway:
    """A gateway in front of @service, for the length of a with block."""

    def __init__(self, service, *args, listen="0", scope="--global-scope", user=AS_USER):
        if shutil.which("nginx", path="/usr/sbin:" + os.environ["PATH"]) is None:
            skip("nginx is not installed: tools/deps test")
        if not os.path.exists(MODULE):
            skip("the module was not built")
        url = service if isinstance(service, str) else service.url
        scope = [scope] if isinstance(scope, str) else scope
        self.args = ["gateway", "-u", url, "-l", listen, *scope, *user, *args]
        self.env = {"TMPDIR": os.getcwd()}

    def __enter__(self):
        self.process = Idem().start(*self.args, env=self.env)
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise AssertionError(self.process.communicate()[1].decode())
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
        kill_session(self.process)

    def end(self, number=signal.SIGTERM):
        os.kill(self.process.pid, number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err

    def connection(self):
        host, port = self.url.split("//")[1].rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)

    def __call__(self, method="POST", path="/charge", body=b"amount=42", **headers):
        """Send one request on a connection of its own."""
        connection = self.connection()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        got = connection.getresponse()
        answer = Answer(got.status, dict(got.getheaders()), got.read())
        connection.close()
        return answer


# ---- It must show ----


@test
def one_command_makes_retries_safe():
    """One command in front of a service: curl gets 201, and for a retry the same 201,
    marked as a replay; the service worked once. Without it, it works twice."""
    curl = ["curl", "-si", "-H", "Idempotency-Key: order-42", "-d", "amount=42"]
    with Service() as service:
        for _ in range(2):
            equal(run([*curl, service.url + "/charge"]).stdout[:12], b"HTTP/1.1 201")
        equal(service.effects, [b"amount=42"] * 2)
        note("without the gateway: 2 requests, 2 executions")
    with Service() as service, Gateway(service) as gateway:
        first, second = (run([*curl, gateway.url + "/charge"]).stdout for _ in range(2))
        head, _, body = first.partition(b"\r\n\r\n")
        equal((head[:12], body), (b"HTTP/1.1 201", b"receipt 1001\n"))
        assert b"\r\nIdempotent-Replayed: true\r\n" in second, second
        assert b"\r\nIdempotent-Replayed:" not in first, first
        equal((second[:12], second.partition(b"\r\n\r\n")[2]), (head[:12], body))
        assert b"\r\nSet-Cookie" in first and b"\r\nSet-Cookie" not in second
        equal(service.effects, [b"amount=42"])
        note("with it: 2 requests, 1 execution, the same answer")
        equal(gateway.end(), (0, b"", gateway_says(service)))


def gateway_says(service):
    store = "sqlite:" + os.path.abspath("idem.db")
    return f"idem: in front of {service.url}; records in {store}\n".encode()


# ---- Headers ----


class Counted(web.Handler):
    """The service of header_cases.py."""

    def do_POST(self):
        asked = json.loads(self.body())
        self.server.effects.append(asked)
        body = f"{len(self.server.effects)} {asked['text']}"
        self.say(int(asked["status"]), body.encode(), asked["headers"])


@test
def headers_as_in_every_front_end():
    """The corpus that the middleware of both packages has."""
    options = ["--replay-headers", ",".join(header_cases.REPLAY)]
    with web.Server(Counted) as service:
        service.effects = []
        control = header_cases.Front(service.server_port, lambda: len(service.effects))
        header_cases.check_control(control)
        with Gateway(service, *options, scope=["--scope-header", "X-User"]) as gateway:
            port = int(gateway.url.rpartition(":")[2])
            header_cases.check(header_cases.Front(port, control.effects))


# ---- Its options ----


@test
def key_and_fingerprint_come_from_the_body():
    """--key-from and --fingerprint-from, with all that a configuration might take for
    its own: quotes, backslashes, braces, dollars, a comment."""
    program = r'''.body.order | "\\\"$host '{;}' # \(.)" # end'''
    options = ["--key-from", program, "--fingerprint-from", ".body | del(.sent_at)"]
    with Service() as service, Gateway(service, *options) as gateway:
        for i in range(3):
            got = gateway(body=b'{"order":"o-1","sent_at":%d}' % i)
            equal((got.status, got.replayed), (201, "true" if i > 0 else None))
        equal(gateway(body=b'{"order":"o-1","more":1}').status, 422)
        got = gateway(body=b"{}")
        equal((got.status, json.loads(got.body)["type"]), (400, "urn:idem:problem:key-not-selected"))
        equal(len(service.effects), 1)
    shown = Idem()("show", "--json", r"""\"$host '{;}' # o-1""")
    equal(json.loads(shown.stdout)["status"], "completed")


def documented(page, title):
    """The options of the gateway in the first shell block below @title of a page."""
    text = read(os.path.join(TOP, "docs", page)).split(f"\n## {title}\n")[1]
    command = shlex.split(re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1].replace("\\\n", " "))
    equal(command[:3], ["idem", "gateway", "--upstream"])
    command.remove("--global-scope")
    return command[4:]


@test
def a_receiver_of_webhooks_gets_an_event_again_until_it_took_it():
    """The command of docs/http.md: after a 500 a redelivery, whose count has changed, is executed as a takeover; what was taken is replayed; a forged event does not block the true one."""

    def deliver(event, **more):
        return gateway(body=json.dumps({"id": event, **more}).encode(), Content_Type="application/json")

    options = documented("http.md", "Receivers of webhooks")
    with Service() as service, Gateway(service, *options) as gateway:
        for count, (status, replayed) in enumerate(((500, None), (302, None), (200, None), (200, "true"))):
            service.status = status
            got = deliver("evt_1", attempt=count)
            equal((got.status, got.replayed), (status, replayed))
        told = [head.get("Idempotency-Takeover") for head in service.heads]
        equal(told, [None, "true", "true"])

        service.status = 401
        equal(deliver("evt_2", forged=True).status, 401)
        service.status = 200
        equal([deliver("evt_2", attempt=n).replayed for n in range(2)], [None, "true"])

        service.status = 422
        equal([deliver("evt_3", attempt=n).replayed for n in range(2)], [None, "true"])
        equal(len(service.effects), 3 + 2 + 1)
        equal(gateway(body=b"{}", Content_Type="application/json").status, 400)


@test
def only_some_routes_have_keys():
    """--routes: requests to other paths are passed on, whatever key they have."""
    with Service() as service, Gateway(service, "--routes", "/charge,/pay", "--required") as gateway:
        for path, replayed in ("/charge", "true"), ("/pay/now", "true"), ("/other", None):
            key = path.replace("/", "-")
            equal(gateway(path=path, Idempotency_Key=key).replayed, None)
            equal((path, gateway(path=path, Idempotency_Key=key).replayed), (path, replayed))
        equal((gateway(path="/pay").status, gateway(path="/other").status), (400, 201))


@test
def a_replay_is_authorized_first():
    """--authorize: the service is asked before a replay, with the client's headers and not the
    body; who is refused, or cannot be asked about, gets nothing of the record. Without it a
    replay asks nobody. What can have no key passes."""
    with Service() as service:
        with Gateway(service) as gateway:
            for token in "good", "bad":
                equal(gateway(Idempotency_Key="control", Authorization=token).status, 201)
            equal(len(service.heads), 1)
        service.allowed = {"good": 204, "bad": 401, "other": 403, "odd": 418}
        with Gateway(service, "--authorize", "/may?x=1") as gateway:
            for replayed in None, "true":
                got = gateway(path="/charge?a=b", Idempotency_Key="k", Authorization="good")
                equal((got.status, got.replayed), (201, replayed))
            asked = [head for head in service.heads if "X-Original-URI" in head]
            equal([(h["X-Original-URI"], h["X-Original-Method"]) for h in asked],
                  [("/charge?a=b", "POST")] * 2)
            effects = len(service.effects)
            for token, status in ("bad", 401), ("other", 403), ("odd", 500):
                got = gateway(path="/charge?a=b", Idempotency_Key="k", Authorization=token)
                equal((token, got.status, got.replayed), (token, status, None))
                equal(got.headers["Content-Type"], "application/problem+json")
                assert b"receipt" not in got.body, got
                got = gateway(Idempotency_Key="fresh", Authorization=token)
                equal((token, got.status), (token, status))
            equal(gateway("GET", "/a", None, Authorization="bad").status, 200)
            equal(len(service.effects), effects)


@test
def headers_of_16_kilobytes_pass():
    """A header of 15 KB of the client, and one of the service, with and without a key."""
    with Service() as service, Gateway(service) as gateway:
        service.more = {"X-Large": "l" * 15_000}
        for key in {"Idempotency_Key": "k"}, {}:
            got = gateway(X_Mine="m" * 15_000, **key)
            equal((got.status, len(got.headers["X-Large"])), (201, 15_000))
            equal(len(service.heads[-1]["X-Mine"]), 15_000)


@test
def scripts_may_read_what_is_not_of_the_service():
    """--cors-origin: a replay, a mismatch and a refusal have the headers without which a
    browser shows a script nothing; the service's answers have its own, once."""
    ours, other = "https://shop.example", "https://evil.example"
    options = ["--cors-origin", f"{ours},https://b.example:8443"]
    with Service() as service, Gateway(service, *options) as gateway:
        service.more = {"Access-Control-Allow-Origin": "its own"}
        first = gateway(Idempotency_Key="k", Origin=ours)
        equal(first.headers["Access-Control-Allow-Origin"], "its own")
        for key, body, status in ("k", b"amount=42", 201), ("k", b"other", 422), ("a b", b"", 400):
            got = gateway(Idempotency_Key=key, Origin=ours, body=body)
            equal((got.status, got.headers.get("Access-Control-Allow-Origin")), (status, ours))
            assert "Idempotent-Replayed" in got.headers["Access-Control-Expose-Headers"]
            equal(got.headers["Vary"], "Origin")
            for headers in {"Origin": other}, {}:
                got = gateway(Idempotency_Key=key, body=body, **headers)
                equal((got.status, "Access-Control-Allow-Origin" in got.headers), (status, False))
    with Service() as service, Gateway(service, "--cors-origin", "*") as gateway:
        gateway(Idempotency_Key="k2")
        got = gateway(Idempotency_Key="k2", Origin=other)
        equal((got.replayed, got.headers["Access-Control-Allow-Origin"]), ("true", "*"))


@test
def its_own_answers_are_problems():
    """A service that is away, and a request that is no HTTP: problem+json, not HTML, with
    a key and without."""
    with Gateway(f"http://127.0.0.1:{free_port()}") as gateway:
        for headers in {}, {"Idempotency_Key": "k"}:
            got = gateway(**headers)
            equal((got.status, got.headers["Content-Type"]), (502, "application/problem+json"))
            equal(json.loads(got.body)["status"], 502)
        host, port = gateway.url.split("//")[1].rsplit(":", 1)
        with socket.create_connection((host, int(port)), 10) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n")
            got = s.makefile("rb").read()
        assert b" 400 " in got and b"application/problem+json" in got, got
        got = gateway("TRACE", body=None)
        equal((got.status, got.headers["Content-Type"]), (405, "application/problem+json"))


@test
def a_service_that_breaks_off_is_named():
    """A request that was sent and not answered, or not in time: 502 or 504, with the type and
    the detail that tell what a retry gets, which gets it; the hint to resolve it has the
    status and type of an answer. One that was not sent is told nothing of the kind."""
    with Service() as service, Gateway(service, "--max-time", "8s") as gateway:
        service.status = None
        cut = gateway(Idempotency_Key="cut")
        service.gate.clear()
        silent = gateway(Idempotency_Key="silent")
        service.gate.set()
        for got, status in (cut, 502), (silent, 504):
            told = json.loads(got.body)
            equal((got.status, told["status"], told["type"]),
                  (status, status, "urn:idem:problem:upstream-broke-off"))
            assert "to learn its outcome" in told["detail"], told
        again = gateway(Idempotency_Key="cut")
        equal(json.loads(again.body)["type"], "urn:idem:problem:outcome-unknown")
        equal(json.loads(gateway(path="/plain").body)["type"], "about:blank")
    hint = b"--complete @FILE --http-status N --content-type TYPE"
    assert hint in Idem()("show", "cut").stdout
    equal(Idem()("run", "-k", "mine", "--", "sh", "-c", "kill -9 $$").status, 137)
    shown = Idem()("show", "mine").stdout
    assert b"--complete @FILE --reason" in shown, shown
    with Gateway(f"http://127.0.0.1:{free_port()}") as gateway:
        got = gateway(Idempotency_Key="unsent")
        equal((got.status, json.loads(got.body)["type"]), (502, "about:blank"))


@test
def large_bodies_are_no_fault_of_the_client():
    """A selector that is not about the body takes 5 MB of zeros, and nothing is warned of that
    waits in a file; one that is about a compressed body is refused by a sentence."""
    zeros = bytes(5_000_000)
    with Service() as service, Gateway(service, "--fingerprint-from", ".method") as gateway:
        for replayed in None, "true":
            got = gateway(Idempotency_Key="k", body=zeros)
            equal((got.status, got.replayed), (201, replayed))
        equal(gateway.end()[2].count(b"\n"), 1)
    with Service() as service, Gateway(service, "--key-from", ".body.id") as gateway:
        got = gateway(body=gzip.compress(b'{"id":"a"}'), Content_Encoding="gzip")
        equal(got.status, 400)
        assert "It does not read a compressed body." in json.loads(got.body)["detail"], got
        equal(service.effects, [])


@test
def requests_are_logged_and_bounded():
    """--access-log writes a line for each request, with what became of its key, and not
    the key; --max-request and --max-response bound what is kept."""
    options = ["--access-log", "access.log", "--max-request", "1k", "--max-response", "10"]
    with Service() as service, Gateway(service, *options) as gateway:
        equal(gateway(Idempotency_Key="s3cret").status, 201)
        got = gateway(Idempotency_Key="s3cret")
        equal(json.loads(got.body)["type"], "urn:idem:problem:response-not-kept")
        equal(gateway(Idempotency_Key="large", body=b"x" * 1025).status, 413)
        equal(service.heads[0]["X-Forwarded-Proto"], "http")
        until(lambda: open("access.log", encoding="utf-8").read().count("\n") == 3)
    lines = read("access.log").splitlines()
    assert '"POST /charge HTTP/1.1" 201 ' in lines[0] and "started not-kept" in lines[0], lines
    assert " 409 " in lines[1] and "not-kept" in lines[1] and "s3cret" not in str(lines), lines


def probe(port, path="/", method="GET"):
    """The status that a probe is answered with; None: nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


@test
def a_probe_is_answered_while_requests_can_be():
    """--health: a probe is an operation that is recorded and does not reach the service,
    whatever requests must have; where the store takes nothing it is 503, as it is for a
    request, and 204 again after that; a gateway that ended answers nothing."""
    options = ["--required", "--methods", "PUT", "--outcome", "2xx=fail", "--key-from", ".body.key"]
    port = free_port()
    with Gateway(f"http://127.0.0.1:{free_port()}", "--health", str(port), *options) as gateway:
        equal([probe(port) for _ in range(3)], [204] * 3)
        equal([probe(port, path) for path in ("/end", "/other")], [404, 404])
        equal(probe(port, method="POST"), 403)
        (line,) = Idem()("list").stdout.decode().splitlines()
        key = f"probe-{socket.gethostname().lower()}-{port}"
        assert line.startswith("completed") and line.endswith(key), (line, key)
        first = fence_of(Idem(), key)
        assert first > 0
        until(lambda: probe(port) == 204 and fence_of(Idem(), key) > first)

        os.rename("idem.db", "elsewhere")
        equal(until(lambda: probe(port) == 503), True)
        equal(gateway("PUT", body=b'{"key":"k"}').status, 503)
        os.rename("elsewhere", "idem.db")
        equal(until(lambda: probe(port) == 204), True)
    equal(probe(port), None)


def fence_of(idem, key, env=None):
    """That of the record of a probe; 0 once it is past its retention."""
    got = idem("show", "--json", "--scope", "idem gateway", key, env=env)
    return json.loads(got.stdout)["fence"] if got.status == 0 else 0


@test
def a_probe_is_answered_on_a_table_of_another_library():
    """--health where a table has no scopes: a probe is 204, also after a client has used
    the key that it has in other stores."""
    with dynamo.server("dynoxide") as url, Service() as service:
        place = f"dynamodb://idem?layout=powertools-python&endpoint={url}"
        env, port = dynamo.environment(), free_port()
        equal(Idem(place)("store", "create", env=env).status, 0)
        gateway = Gateway(service, "--health", str(port), "--store", place)
        gateway.env.update(env)
        with gateway:
            key = f"probe-{socket.gethostname().lower()}-{port}"
            equal(gateway(Idempotency_Key=key).status, 201)
            equal(probe(port), 204)
        got = Idem()(*gateway.args, "--outcome", "webhook", "--max-failures", "2", env=gateway.env)
        equal((got.status, got.stdout, b"no room" in got.stderr), (64, b"", True))


@test
def a_retry_is_answered_from_a_database():
    """On PostgreSQL: 201, the same 201 as a replay, and one execution, which idem show
    shows. What libpq reads in the environment reaches nginx."""
    postgres.need()
    server = postgres.shared()
    place = f"postgres:///{postgres.DATABASE}?schema=gateway"
    libpq = {"PGHOST": server.folder, "PGUSER": postgres.USER}
    idem = Idem(f"{server.url}&schema=gateway")
    equal(idem("store", "create").status, 0)
    with Service() as service:
        gateway = Gateway(service, "--store", place)
        gateway.env.update(libpq)
        with gateway:
            answers = [gateway(Idempotency_Key="order-42") for _ in range(2)]
        equal([a.replayed for a in answers], [None, "true"])
        equal([(a.status, a.body) for a in answers], [(201, b"receipt 1001\n")] * 2)
        equal(len(service.effects), 1)
    equal(json.loads(idem("show", "--json", "order-42").stdout)["status"], "completed")


@contextlib.contextmanager
def ask_later(gateway, **headers):
    """Send a request beside the block; its answer is in the list at the end."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(gateway(**headers)))
    thread.start()
    yield answers
    thread.join(PATIENCE)


# ---- What it is in front of, and where ----


@test
def everything_else_passes():
    """Without a key all is as it was: paths, hosts, large bodies, upgrades."""
    with Service() as service, Gateway(service) as gateway:
        got = gateway("GET", "/a%20b/../c?x=%2f&y=+", None, Host="shop.example:81")
        equal((got.status, got.body), (200, b"/a%20b/../c?x=%2f&y=+"))
        equal(service.heads[-1]["Host"], "shop.example:81")
        equal(service.heads[-1]["X-Forwarded-For"], "127.0.0.1")
        large = os.urandom(3_000_000)
        equal(gateway(body=large).status, 201)
        equal(service.effects, [large])
        host, port = gateway.url.split("//")[1].rsplit(":", 1)
        with socket.create_connection((host, int(port)), 10) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            s.sendall(b"hello\n")
            got = b""
            while more := s.recv(1000):
                got += more
        assert got.startswith(b"HTTP/1.1 101 ") and got.endswith(b"echo hello\n"), got


@test
def it_speaks_through_unix_sockets():
    """Service and gateway can both be on unix sockets."""
    ours = "unix:" + os.path.abspath("gateway.sock")
    with Service(os.path.abspath("app.sock")) as service:
        with Gateway(service, listen=ours) as gateway:
            equal(gateway.url, ours)
            curl = ["curl", "-s", "--unix-socket", ours[5:], "-H", "Idempotency-Key: k"]
            for _ in range(2):
                equal(run([*curl, "-d", "a=1", "http://here/"]).stdout, b"receipt 1001\n")
            equal(service.effects, [b"a=1"])
        assert not os.path.exists(ours[5:])


@test
def the_printed_configuration_works():
    """What --dry-run prints runs as it stands, in a directory of its own."""
    port = free_port()
    with Service() as service:
        gateway = Gateway(service, listen=str(port))
        got = Idem()(*gateway.args, "--dry-run")
        equal((got.status, got.stderr), (0, b""))
        os.mkdir("own")
        write("own/nginx.conf", got.stdout)
        command = ["nginx", "-e", "stderr", "-p", os.path.abspath("own"), "-c", "nginx.conf"]
        path = "/usr/sbin:" + os.environ["PATH"]
        with start(command, {"PATH": path}, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: os.path.exists("own/nginx.pid"))
                gateway.url = f"http://127.0.0.1:{port}"
                replayed = [gateway(Idempotency_Key="k").replayed for _ in range(2)]
                equal(replayed, [None, "true"])
            finally:
                kill_session(process)


@test
def documented_configurations_are_accepted():
    """nginx accepts the configurations of docs/gateway.md, with the module of this
    build; without what a scope is it does not."""
    Gateway("http://localhost")  # Is all there?
    blocks = re.findall(r"^```nginx\n(.*?)^```$", read(os.path.join(TOP, "docs", "gateway.md")), re.M | re.S)
    assert blocks
    for text in blocks:
        text, loads = re.subn("/usr/lib/nginx/modules/[a-z_]+.so", MODULE, text)
        equal(loads, 1)
        text = text.replace("/var/lib/nginx-idem", os.getcwd())
        check = ["nginx", "-t", "-e", "stderr", "-p", os.getcwd(), "-c", "nginx.conf"]
        for scope, status in ("idempotency_scope $remote_user;", 0), ("", 1):
            with open("nginx.conf", "w", encoding="ascii") as f:
                f.write("pid nginx.pid;\nerror_log stderr;\n")
                f.write(text.replace("idempotency_scope $remote_user;", scope))
            done = run(check, {"PATH": "/usr/sbin:" + os.environ["PATH"]})
            assert done.status == status, done


@test
def the_module_keeps_libidem_to_itself():
    """What is in the module is not what another module would call: of libidem it
    exports nothing."""
    Gateway("http://localhost")  # Is all there?
    done = run(["nm", "-D", "--defined-only", MODULE])
    names = [line.split()[-1] for line in done.stdout.decode().splitlines()]
    assert "ngx_http_idempotency_module" in " ".join(names), names
    equal([name for name in names if name.startswith("idem")], [])


# ---- Users and ends ----


def another_user():
    """The user nobody, and the absolute path of a folder of its own."""
    if os.getuid() != 0:
        skip("it needs root to be another")
    nobody = pwd.getpwnam("nobody")
    os.makedirs("theirs")
    for path in (".", "theirs"):
        os.chmod(path, 0o755)
    os.chown("theirs", nobody.pw_uid, nobody.pw_gid)
    theirs = os.path.abspath("theirs")
    return nobody, theirs


@test
def nginx_is_an_ordinary_user():
    """All processes of nginx run as the user that was named, on a port that was opened
    before."""
    nobody, theirs = another_user()
    with Service() as service:
        gateway = Gateway(service, "--store", f"sqlite:{theirs}/i.db", user=["--user", "nobody"])
        gateway.env = {"TMPDIR": theirs}
        with gateway:
            equal(gateway(Idempotency_Key="k").status, 201)
            users = set()
            for pid in [gateway.process.pid, *descendants(gateway.process.pid)]:
                users.update(procfs.status(pid).get("Uid", "").split())
            equal(users, {str(nobody.pw_uid)})
            equal(os.stat("theirs/i.db").st_uid, nobody.pw_uid)
            status, _, said = gateway.end()
            equal((status, len(said.splitlines())), (0, 1))  # And nginx warns of nothing.


@test
def the_key_of_a_certificate_may_be_of_root():
    """Certificate and key by relative paths, the key readable by root alone, in front of
    nginx as another user."""
    nobody, theirs = another_user()
    certificate()
    os.chmod("key.pem", 0o600)
    tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--store", f"sqlite:{theirs}/i.db"]
    with Service() as service:
        gateway = Gateway(service, *tls, user=["--user", "nobody"])
        gateway.env = {"TMPDIR": theirs}
        with gateway:
            os.kill(gateway.process.pid, signal.SIGHUP)  # It is read again.
            curl = ["curl", "-si", "--cacert", "cert.pem", "-H", "Idempotency-Key: k", "-d", "a=1"]
            for _ in range(2):
                equal(run([*curl, gateway.url]).stdout[:10], b"HTTP/2 201")
        equal(len(service.effects), 1)


@test
def a_journal_that_the_user_cannot_have_is_named():
    """Where the user of nginx has no place for a journal of a remote store, the variable that
    names another is said."""
    if os.getuid() != 0:
        skip("it needs root to be another")
    got = run([PROGRAM, "gateway", "-u", "http://127.0.0.1:1", "-l", "0", "--global-scope",
               "--user", "nobody", "--module", MODULE, "--store", "dynamodb://idem"],
              {"IDEM_JOURNAL_DIR": None, "XDG_STATE_HOME": None})
    equal((got.status, got.stdout), (77, b""))
    assert b"cannot create the journal" in got.stderr and b"IDEM_JOURNAL_DIR" in got.stderr, got


@test
def a_module_that_the_user_cannot_read_is_named():
    """Where only root can read the module, that is what is said, and nothing starts."""
    if os.getuid() != 0:
        skip("it needs root to be another")
    os.mkdir("ours", 0o700)
    with open("ours/module.so", "wb"):
        pass
    module = os.path.abspath("ours/module.so")
    got = run([PROGRAM, "gateway", "-u", "http://127.0.0.1:1", "-l", "0", "--global-scope",
               "--user", "nobody", "--module", module])
    equal((got.status, got.stdout), (77, b""))
    assert f'"nobody", as which nginx runs, cannot read {module}: Permission denied'.encode() in got.stderr, got
    equal(got.stderr.count(b"\n"), 1)


@test
def work_is_finished_before_the_end():
    """Told to end while a request is under way, the gateway takes no more, waits for
    the answer, records it and hands it out."""
    with Service() as service, Gateway(service) as gateway:
        service.gate.clear()
        with ask_later(gateway, Idempotency_Key="k") as answers:
            until(lambda: service.effects)
            gateway.process.terminate()
            time.sleep(0.3)
            equal(gateway.process.poll(), None)
            service.gate.set()
        equal(answers[0].status, 201)
        equal(gateway.process.wait(PATIENCE), 0)
    with Service() as service, Gateway(service) as gateway:
        equal(gateway(Idempotency_Key="k").replayed, "true")
        equal(service.effects, [])


@test
def nothing_is_left_behind():
    """After a gateway that was killed no nginx runs, and a new one takes over: what
    was recorded is replayed."""
    with Service() as service:
        with Gateway(service) as gateway:
            equal(gateway(Idempotency_Key="k").status, 201)
            left = descendants(gateway.process.pid)
            assert len(left) >= 2, left
            os.kill(gateway.process.pid, signal.SIGKILL)
            until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left))
        with Gateway(service) as gateway:
            equal(gateway(Idempotency_Key="k").replayed, "true")
        equal(len(service.effects), 1)


# ---- TLS and HTTP/2 ----


def certificate():
    """Make a certificate for localhost; return what the gateway is told."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    make += " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    equal(run([*make.split(), "-keyout", "key.pem", "-out", "cert.pem"]).status, 0)
    return ["--tls-cert", os.path.abspath("cert.pem"), "--tls-key", os.path.abspath("key.pem")]


@test
def tls_and_http2_are_spoken():
    """With a certificate it is TLS: a retry is replayed over HTTP/2 and HTTP/1.1, to
    whoever asks in whichever way."""
    with Service() as service, Gateway(service, *certificate()) as gateway:
        assert gateway.url.startswith("https://127.0.0.1:"), gateway.url
        curl = ["curl", "-si", "--cacert", "cert.pem", "-H", "Idempotency-Key: k", "-d", "a=1"]
        first = run([*curl, "--http2", gateway.url]).stdout
        second = run([*curl, "--http2", gateway.url]).stdout
        third = run([*curl, "--http1.1", gateway.url]).stdout
        equal((first[:10], second[:10], third[:12]), (b"HTTP/2 201",) * 2 + (b"HTTP/1.1 201",))
        bodies = {said.partition(b"\r\n\r\n")[2] for said in (first, second, third)}
        equal(bodies, {b"receipt 1001\n"})
        assert b"idempotent-replayed" not in first, first
        assert b"\r\nidempotent-replayed: true\r\n" in second, second
        assert b"\r\nIdempotent-Replayed: true\r\n" in third, third
        equal(len(service.effects), 1)


def h2_python():
    """Return a Python that has h2."""
    for program in sys.executable, "/usr/bin/python3":
        if run([program, "-c", "import h2"]).status == 0:
            return program
    return skip("python3-h2 is not installed: tools/deps test")


@test
def streams_of_one_connection_are_requests_like_others():
    """Over one HTTP/2 connection: duplicates on streams at the same time are one
    execution, keys that are none are refused on their stream alone, and a stream that
    is reset does not end its work."""
    python = h2_python()
    client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "h2_client.py")
    with Service() as service, Gateway(service, *certificate()) as gateway:
        port = gateway.url.rsplit(":", 1)[1]
        done = run([python, client, port, "cert.pem"])
        assert done.status == 0, done
        got = json.loads(done.stdout)
        equal(got["duplicates"].count("201"), 1)
        # One that is sent when the first has ended is a replay.
        equal(set(got["duplicates"]) - {"201", "409", "201 true"}, set())
        equal(got["after"], ["201 true"])
        equal(got["bad"], ["400", "400", "400", "400", "201"])
        note(f"20 streams with one key: {sorted(got['duplicates'])}")
        equal(got["reset"], "201 true")
        equal(len(service.effects), 3)


@test
def a_service_behind_tls_must_be_who_it_says():
    """A service is reached by https only if its certificate is one that is trusted."""
    certificate()
    with Service() as service:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("cert.pem", "key.pem")
        service.socket = context.wrap_socket(service.socket, server_side=True)
        with Gateway(f"https://localhost:{service.server_port}") as gateway:
            equal(gateway(Idempotency_Key="k").status, 502)
            equal(service.effects, [])


if __name__ == "__main__":
    main()
