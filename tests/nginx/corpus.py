"""The same requests to nginx with and without the module: the same boundaries.

Whoever takes the body of one client for the request of another, or leaves a body on
a connection to be taken for one, does what an attacker says. The cases of
corpus_cases.py are sent to both, byte for byte; what the service behind them got, and
what came back on each connection, are compared. Proxies with planted defects in the
place of the module show that the comparison sees what it is for.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from typing import NamedTuple

import corpus_cases
from files import write
from patience import PATIENCE
from ports import free_port
from tap import PROGRAM, main, note, skip, test

MODULE = os.path.join(os.path.dirname(PROGRAM), "nginx/ngx_http_idempotency_module.so")
AT_ONCE = 60
PAUSE = 0.1

CONFIG = """
%(load)s
daemon off;
pid nginx.pid;
error_log error.log alert;
%(user)s
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path client_body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    client_header_timeout 2s; client_body_timeout 2s; keepalive_timeout 2s;
    lingering_timeout 1s; lingering_time 2s;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_next_upstream off;
    proxy_request_buffering off;
    upstream service { server 127.0.0.1:%(service)d; keepalive 16; }
    %(on)s
    server {
        listen 127.0.0.1:%(port)d;
        location / { proxy_pass http://service; }
        location /required/ { %(required)s proxy_pass http://service; }
        location /small/ { %(small)s proxy_pass http://service; }
        location /away/ { %(away)s proxy_pass http://service; }
        location /short/ { %(short)s proxy_pass http://service; }
        location /refused/ { proxy_pass http://127.0.0.1:1; }
        location /nowhere/ { return 404; }
        location /elsewhere/ { try_files /none @service; }
        location @service { proxy_pass http://service; }
    }
}
"""
WITHOUT = dict.fromkeys(("load", "on", "required", "small", "away", "short"), "")
WITH = {
    "load": f"load_module {MODULE};",
    "on": "idempotency_store sqlite:%(path)s/idem.db; idempotency_scope global; idempotency on;",
    "required": "idempotency required;",
    "small": "idempotency_max_request 1k;",
    "away": "idempotency_store sqlite:/nowhere/idem.db;",
    "short": "idempotency_max_response 1k;",
}


# ---- The service ----


class Service:
    """It logs each whole request, and answers as the end of its path says."""

    def __init__(self):
        self.log = Counter()

    async def __call__(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            while await self.one(reader, writer):
                pass
        writer.close()

    async def one(self, reader, writer):
        """Serve one request; return whether the connection stays."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, uri, _ = line.split(b" ")
        headers = [line.partition(b":")[::2] for line in rest.split(b"\r\n") if line]
        headers = {name.lower(): value.strip() for name, value in headers}
        how = uri.rsplit(b"/", 1)[-1].decode(errors="replace")
        if how == "early":
            writer.write(answer(b"early", b"Connection: close\r\n"))
            await writer.drain()
            return False
        if headers.get(b"transfer-encoding") == b"chunked":
            body = await self.chunks(reader)
        else:
            body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
        self.log[method, uri, hashlib.sha256(body).hexdigest()[:12]] += 1
        if how == "slow":
            await asyncio.sleep(3 * PAUSE)
        said, stays = reply(how, b"%s %s" % (method, uri))
        writer.write(said)
        await writer.drain()
        return stays

    @staticmethod
    async def chunks(reader):
        body = b""
        while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return body


def answer(body, headers=b"", status=b"200 OK"):
    length = b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 %s\r\n%s%s\r\n%s" % (status, headers, length, body)


def reply(how, body):
    """Return what the service says, and whether it stays."""
    if how == "drop":
        return b"", False
    if how == "cut":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body, False
    if how == "cut-chunks":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + body, False
    if how == "nonsense":
        return b"no such thing\r\n\r\n", False
    if how == "status-204":
        return b"HTTP/1.1 204 No Content\r\n\r\n", True
    if how == "status-304":
        return b"HTTP/1.1 304 Not Modified\r\n\r\n", True
    if how.startswith("status-"):
        return answer(body, status=how[7:].encode() + b" Said So"), True
    if how == "close":
        return b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body, False
    if how == "chunks":
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        return head + corpus_cases.chunk(body) + corpus_cases.LAST, True
    if how == "large":
        return answer(body + b"." * 5000), True
    return answer(body), True


# ---- nginx ----


class Nginx:
    """nginx in a directory of its own, with or without the module."""

    def __init__(self, service, directives):
        self.path = tempfile.mkdtemp(dir=".")
        self.port = free_port()
        words = {name: text % {"path": os.path.abspath(self.path)} for name, text in directives.items()}
        user = "user root;" if os.getuid() == 0 else ""
        write(f"{self.path}/nginx.conf", CONFIG % {**words, "user": user, "service": service, "port": self.port})
        command = ["nginx", "-e", "stderr", "-p", self.path, "-c", "nginx.conf"]
        env = dict(os.environ)
        if directives is WITH and "IDEM_NGINX_PRELOAD" in env:
            # A module with a sanitizer wants its library first.
            env.update(LD_PRELOAD=env["IDEM_NGINX_PRELOAD"], ASAN_OPTIONS="detect_leaks=0")
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=env)
        end = time.monotonic() + PATIENCE
        while not self.listens():
            assert self.process.poll() is None, self.process.stderr.read().decode()
            assert time.monotonic() < end, "nginx does not listen"
            time.sleep(0.02)

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        self.process.terminate()
        _, said = self.process.communicate(timeout=PATIENCE)
        assert b"Sanitizer" not in said and b"runtime error" not in said, said.decode()
        with open(f"{self.path}/error.log", encoding="utf-8", errors="replace") as f:
            alerts = f.read()
        shutil.rmtree(self.path)
        assert not alerts, alerts[:2000]


# ---- A client, and what it is told ----


class Answer(NamedTuple):
    status: int
    body: bytes
    closes: bool


class Told(NamedTuple):
    """What came back on a connection."""

    answers: tuple
    rest: bytes


def one_answer(data, is_head):
    """Return (answer, the rest of @data), or None where there is no whole one."""
    head, end, rest = data.partition(b"\r\n\r\n")
    line = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
    if not line or not end:
        return None
    status = int(line[1])
    closes = re.search(rb"^Connection: *close", head, re.M | re.I) is not None
    length = re.search(rb"^Content-Length: *(\d+)", head, re.M | re.I)
    if is_head or status < 200 or status in (204, 304):
        return Answer(status, b"", closes), rest
    if length:
        size = int(length[1])
        if len(rest) < size:
            return None
        return Answer(status, rest[:size], closes), rest[size:]
    if re.search(rb"^Transfer-Encoding: *chunked", head, re.M | re.I):
        body = b""
        while chunk := re.match(rb"([0-9a-f]+)\r\n", rest):
            size = int(chunk[1], 16)
            rest = rest[chunk.end() :]
            body += rest[:size]
            if len(rest) < size + 2:
                return None
            rest = rest[size + 2 :]
            if size == 0:
                return Answer(status, body, closes), rest
        return None
    return Answer(status, rest, True), b""


def parse(data, heads):
    """Return what @data tells a client."""
    answers, final = [], 0
    while data:
        found = one_answer(data, final in heads)
        if found is None:
            break
        answers.append(found[0])
        final += found[0].status >= 200
        data = found[1]
    return Told(tuple(answers), data)


def token(number):
    return b"c%03d" % number


async def talk(port, number, case):
    """Have one conversation; return what was told."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b""
    try:
        for piece in case.pieces:
            writer.write(piece.replace(b"TTTT", token(number)))
            await writer.drain()
            await asyncio.sleep(PAUSE)
        if case.gone:
            return Told((), b"")
        end = b"GET /TTTT/end HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        writer.write(end.replace(b"TTTT", token(number)))
        await writer.drain()
    except OSError:
        pass  # It was told to go; what was told before counts.
    finally:
        if case.gone:
            writer.close()
    with contextlib.suppress(OSError):
        while more := await asyncio.wait_for(reader.read(65536), 20):
            data += more
    writer.close()
    return parse(re.sub(rb"\r\nDate: [^\r]*", b"", data), case.heads)


class Seen(NamedTuple):
    told: Told
    reached: Counter  # What reached the service: (method, path, digest of the body).


async def everything(cases, directives, defect=None):
    """Send all cases to one nginx; return [Seen]."""
    service = Service()
    server = await asyncio.start_server(service, "127.0.0.1", 0)
    nginx = Nginx(server.sockets[0].getsockname()[1], directives)
    port, proxy = nginx.port, None
    if defect:
        proxy = await asyncio.start_server(Defect(defect, port), "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
    few = asyncio.Semaphore(AT_ONCE)

    async def one(number, case):
        async with few:
            return await talk(port, number, case)

    told = await asyncio.gather(*(one(n, case) for n, case in enumerate(cases)))
    await asyncio.sleep(3 * PAUSE)  # Whoever has gone may have left work behind.
    try:
        await asyncio.to_thread(nginx.close)
    finally:
        for closing in filter(None, (proxy, server)):
            closing.close()

    for number, said in enumerate(told):
        for answer_ in said.answers:
            found = is_of(answer_)
            assert not found or token(number) in found, f"{found} was answered to c{number:03}"
    found = [Seen(said, Counter()) for said in told]
    for (method, path, digest), times in service.log.items():
        number = re.search(rb"/c(\d{3})/", path)
        owner = found[int(number[1])] if number else None
        assert owner, f"a request that nobody sent: {method} {path}"
        owner.reached[method, path, digest] += times
    return found


# ---- The comparison ----


def gave_up(seen):
    """Whether the connection ended before the last request was answered: nothing says
    then what would have come."""
    answers = seen.told.answers
    return not answers or not answers[-1].body.endswith(b"/end")


def has_key(case):
    """Whether the module has a say in it."""
    return any(b"dempotency" in p or b"/required/" in p for p in case.pieces)


def difference(case, plain, other):
    """Return how the boundaries of @other differ from those of @plain, or None."""
    if not has_key(case):
        if other.reached != plain.reached:
            return f"the service got {dict(other.reached)}, not {dict(plain.reached)}"
        if other.told != plain.told:
            return f"the client got {other.told}, not {plain.told}"
        return None
    for method, path, digest in other.reached - plain.reached:
        if b"smuggled" in path or not gave_up(plain):
            return f"the service got {method} {path} {digest} besides"
    theirs = [a for a in plain.told.answers if a.status >= 200]
    ours = [a for a in other.told.answers if a.status >= 200]
    for index, answer_ in enumerate(ours):
        if b"smuggled" in answer_.body:
            return f"answer {index} is {answer_}"
        if index >= len(theirs):
            if not gave_up(plain):
                return f"there is an answer more: {answer_}"
        elif is_of(answer_) and is_of(theirs[index]) and is_of(answer_) != is_of(theirs[index]):
            return f"answer {index} is {answer_}, not {theirs[index]}"
    if len(ours) < len(theirs) and not (ours and ours[-1].closes):
        return f"there are {len(ours)} answers of {len(theirs)}, and no word of closing"
    if other.told.rest and other.told.rest != plain.told.rest:
        return f"there are bytes of no answer: {other.told.rest[:60]}"
    return None


def finals(seen):
    """How many answers there are, but those that only say to go on."""
    return sum(answer_.status >= 200 for answer_ in seen.told.answers)


def is_of(answer_):
    """Return which request the service answered, or None where it was not asked."""
    found = re.match(rb"[A-Z]+ /\S*", answer_.body)
    return found and found[0]


def compare(cases, plain, other):
    """Return [(name, difference)]."""
    pairs = zip(cases, plain, other)
    found = [(case.name, difference(case, *seen)) for case, *seen in pairs]
    return [(name, text) for name, text in found if text]


def differences(cases, plain, other, directives):
    """Return what compare() finds, and finds again when only those cases are sent, to
    nginx and to @directives: nginx answers otherwise where a client was too slow."""
    found = compare(cases, plain, other)
    for _ in range(3):
        if not found:
            break
        names = {name for name, _ in found}
        cases = [case for case in cases if case.name in names]
        note(f"again: {', '.join(case.name for case in cases[:10])}")
        plain = asyncio.run(everything(cases, WITHOUT))
        other = asyncio.run(everything(cases, directives))
        found = compare(cases, plain, other)
    return found


# ---- Planted defects ----


class Defect:
    """A proxy in front of nginx that does one thing wrong."""

    def __init__(self, kind, port):
        self.kind, self.port = kind, port

    async def __call__(self, reader, writer):
        with contextlib.suppress(OSError):
            theirs, out = await asyncio.open_connection("127.0.0.1", self.port)
            await asyncio.gather(self.there(reader, out, writer), copy(theirs, writer))
        writer.close()

    async def there(self, reader, out, back):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                out.write(getattr(self, self.kind)(data, back))
                await out.drain()
            out.close()

    @staticmethod
    def unread(data, back):
        """A doubled key is refused, and its body left where it is."""
        head, end, body = data.partition(b"\r\n\r\n")
        if head.count(b"\r\nIdempotency-Key:") < 2:
            return data
        back.write(answer(b"two keys", status=b"400 Bad Request"))
        return body

    @staticmethod
    def twice(data, _):
        """A request with a key that is whole is sent once more."""
        length = re.search(rb"Content-Length: (\d+)\r\n", data)
        if length and b"Idempotency-Key" in data and data.endswith(b"\r\n\r\n"):
            return data + data
        return data

    @staticmethod
    def lenient(data, _):
        """A length that nginx would refuse is understood."""
        return data.replace(b"Content-Length: +5", b"Content-Length: 5")

    @staticmethod
    def chunked(data, _):
        """Two ways to say the length of a body; the wrong one wins."""
        return data.replace(b"Transfer-Encoding: xchunked\r\nContent-Length", b"X: y\r\nX-Length")


async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


# ---- The tests ----

_plain = []


def plain():
    """What nginx without the module makes of all cases."""
    if shutil.which("nginx") is None:
        skip("nginx is not installed: tools/deps test")
    if not _plain:
        cases = corpus_cases.cases()
        _plain.append((cases, asyncio.run(everything(cases, WITHOUT))))
    return _plain[0]


def show(found):
    return "\n".join(f"{name}: {text}" for name, text in found[:10])


@test
def nginx_agrees_with_itself():
    """The control: nginx without the module, twice, differs in nothing."""
    cases, seen = plain()
    again = asyncio.run(everything(cases, WITHOUT))
    found = differences(cases, seen, again, WITHOUT)
    assert not found, show(found)
    reached = sum(sum(one.reached.values()) for one in seen)
    answers = sum(len(one.told.answers) for one in seen)
    note(f"{len(cases)} conversations, {answers} answers, {reached} requests reached the service")


@test
def planted_differences_are_found():
    """The control: a proxy that leaves a body unread, sends a request twice, or takes
    another length than nginx, is seen."""
    cases, seen = plain()
    for kind in "unread", "twice", "lenient", "chunked":
        other = asyncio.run(everything(cases, WITHOUT, defect=kind))
        found = compare(cases, seen, other)
        assert found, f"{kind} was not seen"
        note(f"{kind}: seen in {len(found)} of {len(cases)} cases, as in: {found[0][0]}")


@test
def the_module_moves_no_boundary():
    """With the module each request begins and ends where nginx alone has it."""
    if not os.path.exists(MODULE):
        skip("the module was not built")
    cases, seen = plain()
    other = asyncio.run(everything(cases, WITH))
    found = differences(cases, seen, other, WITH)
    assert not found, f"{len(found)} differ\n{show(found)}"
    pairs = list(zip(seen, other))
    same = sum(a == b for a, b in pairs)
    fewer = sum(finals(a) > finals(b) for a, b in pairs)
    own = sum(a.told != b.told for a, b in pairs)
    assert own > 20, "the module said nothing"
    note(
        f"{len(cases)} conversations: {same} are the same in every byte, {own} have answers "
        f"of the module, {fewer} end earlier"
    )


if __name__ == "__main__":
    main()
