"""Requests to AWS over real sockets: aws/client/transport against a scripted server."""

import contextlib
import functools
import json
import os
import random
import socket
import ssl
import subprocess
import threading
import time
import zlib

from files import write
from patience import PATIENCE, in_time, until
from ports import free_port
import tap
from aws_server import ENV, Connection, Server
from tap import equal, skip, test

HERE = os.path.join(os.path.dirname(tap.PROGRAM), "tests", "integration")
CLIENT = os.path.join(HERE, "aws_client")
HOUR_MS = 3600 * 1000


class Client:
    """aws_client, told what to do line by line."""

    def __init__(self, url, env=None, **options):
        options = [f"{name}={value}" for name, value in options.items()]
        self.process = tap.start(
            [CLIENT, url, *options],
            {**ENV, **(env or {})},
            stdin=subprocess.PIPE,
            stderr=None,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        try:
            status = self.process.wait(PATIENCE)
        finally:
            self.process.stdout.close()
            self.process.kill()
        if error[0] is None:
            equal(status, 0)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, f"the client is gone: {self.process.wait()}"
        return json.loads(line)

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def post(self, action="ok", body="={}", timeout_ms=60000, flags="-", name="x"):
        """Submit one request; it is sent by the next go() or turn()."""
        self.tell(f"post {name} {timeout_ms} {flags} Test.{action} {body}")

    def go(self, n=1):
        """Return the @n results that come next."""
        self.tell(f"go {n}")
        return [self.hear() for _ in range(n)]

    def work_until(self, holds, what):
        def worked():
            self.tell("turn 20")
            self.ask("counters")  # The turn is over.
            return holds()

        until(worked, what)

    def one(self, *args, **named):
        """Return what became of one request."""
        self.post(*args, **named)
        return self.go()[0]


    def answered(self, *args, **named):
        result = self.one(*args, **named)
        equal((args, *outcome(result)), (args, *ANSWERED))
        return result

    def not_sent(self, code="UNAVAILABLE", **named):
        result = self.one(**named)
        equal((outcome(result), result["sends"]), (("NOT_SENT", 0, code), 0))
        return result


def outcome(result):
    return result["outcome"], result["status"], result["code"]


def answer(result):
    return bytes.fromhex(result["answer"])


def start_thread(work, *args):
    threading.Thread(target=work, args=args, daemon=True).start()


ANSWERED = ("ANSWERED", 200, "OK")


@contextlib.contextmanager
def pair(answers=None, client_env=None, **options):
    """A server and a client of it."""
    server_options = {
        name: options.pop(name) for name in ("offset", "early") if name in options
    }
    with Server(answers or {}, **server_options) as server:
        with Client(server.url, client_env, **options) as client:
            yield server, client


# ---- Signatures ----------------------------------------------------------


@test
def every_request_is_signed_as_it_was_sent():
    """Every signature verifies: UTF-8 and large bodies, long tokens, a port."""
    rng = random.Random(5)
    write("utf8", '{"name":"Zoë – ☃ 🎉"}'.encode())
    write("bytes", rng.randbytes(100_000))
    bodies = ["={}", "@0", "@1", "@400000", "@2000000", "%utf8", "%bytes"]
    count = 0
    for token in (None, "short", "t" * 2000, "T+/=" * 4000):
        with pair(client_env={"AWS_SESSION_TOKEN": token}) as (server, client):
            for body in bodies:
                client.answered("Put", body)
            for i in range(40):
                client.post(f"Put{i}", f"@{rng.randrange(3000)}", name=str(i))
            for result in client.go(40):
                equal(outcome(result), ANSWERED)
            count += server.all_signed()
            equal(len(server.seen), len(bodies) + 40)
            for request in server.seen:
                equal(request.headers.get("x-amz-security-token"), token)
                equal(request.headers["host"], f"127.0.0.1:{server.port}")
                assert "expect" not in request.headers, request.head
                assert "accept" not in request.headers, request.head
    print(f"# {count} signatures verified")


# ---- Answers -------------------------------------------------------------


def cut_body(connection, request):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{half")
    connection.close()


def cut_head(connection, request):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    connection.close()


def raw(*parts, close=True):
    """An answer that sends @parts as they are."""

    def send(connection, request):
        for part in parts:
            connection.send(part)
        if close:
            connection.close()

    return send


def framed(status="200 OK", body=b"{}", **headers):
    return lambda connection, request: connection.answer(body, status, **headers)


OK_HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK_HEAD + b"Transfer-Encoding: chunked\r\n"
CRC = b"x-amz-crc32: %d\r\n" % zlib.crc32(b"{}")
WHOLE = {
    "crc": Connection.crc_answer,
    "plain": framed(),
    "empty": framed(body=b""),
    "chunked": raw(CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n"),
    # A trailer is not believed.
    "trailer": raw(CHUNKED + b"\r\n2\r\n{}\r\n0\r\nx-amz-crc32: 1\r\n\r\n"),
    "chunkedcrc": raw(CHUNKED + CRC + b"\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"),
    # Nothing says where it ends, but the checksum says that it is whole.
    "closecrc": raw(OK_HEAD + CRC + b"\r\n{}"),
    "identity": framed(Content_Encoding="identity"),
    # What a 100 says is not what the answer says.
    "continue": raw(
        b"HTTP/1.1 100 Continue\r\nx-amz-crc32: 1\r\nContent-Encoding: gzip\r\n\r\n",
        OK_HEAD + CRC + b"Content-Length: 2\r\n\r\n{}",
    ),
    "early": raw(
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
        OK_HEAD + b"Content-Length: 2\r\n\r\n{}",
    ),
    "barelf": raw(b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"),
    "http10": raw(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "byte": lambda connection, request: [
        connection.send(bytes([b]))
        for b in OK_HEAD + CRC + b"Content-Length: 2\r\n\r\n{}"
    ],
    # What follows the length is not part of it.
    "excess": raw(OK_HEAD + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 500 No\r\n\r\n"),
}
# The status that is answered, where it is not 200.
STATUSES = {
    "204": framed("204 No Content", b"", length=False),
    "302": framed("302 Found", Location="http://127.0.0.1:1/"),
    "307": framed("307 Temporary Redirect", Location="http://127.0.0.1:1/"),
    "304": framed("304 Not Modified", b"", length=False),
    "400": framed("400 Bad Request", b'{"__type":"a#ValidationException"}'),
    "401": framed("401 Unauthorized", WWW_Authenticate="Basic"),
    "407": framed("407 Proxy Authentication Required", Proxy_Authenticate="Basic"),
    "417": framed("417 Expectation Failed"),
    "418": framed("418 I'm a teapot", b"short and stout"),
    "421": framed("421 Misdirected Request"),
    "429": framed("429 Too Many Requests", Retry_After="1"),
    "500": framed("500 Internal Server Error", b'{"__type":"InternalServerError"}'),
    "503": framed("503 Service Unavailable", b"<html>by a proxy</html>"),
}
# Sent, and no whole and intact answer came: row 26 and section 4.5. With what is
# said of it.
BROKEN = {
    "close": (lambda connection, request: connection.close(), ""),
    "reset": (lambda connection, request: connection.reset(), ""),
    "cuthead": (cut_head, ""),
    "cutbody": (cut_body, ""),
    "cutchunk": (raw(CHUNKED + b"\r\n5\r\n{}"), ""),
    "nolastchunk": (raw(CHUNKED + b"\r\n2\r\n{}\r\n"), ""),
    "badchunk": (raw(CHUNKED + b"\r\nZZ\r\n{}\r\n0\r\n\r\n"), ""),
    "unframed": (raw(OK_HEAD + b"\r\n{}"), "no length"),
    "cutcrc": (raw(OK_HEAD + CRC + b"\r\n{"), "checksum"),
    "wrongcrc": (framed(x_amz_crc32="1"), "checksum"),
    "textcrc": (framed(x_amz_crc32="0x12"), "checksum"),
    "hugecrc": (framed(x_amz_crc32=zlib.crc32(b"{}") + 2**32), "checksum"),
    "emptycrc": (framed(x_amz_crc32=""), "checksum"),
    "gzip": (framed(Content_Encoding="gzip"), "encoding"),
    "teother": (raw(OK_HEAD + b"Transfer-Encoding: x\r\n\r\n{}"), ""),
    "tetwo": (raw(OK_HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n{}"), ""),
    "twolengths": (
        raw(OK_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
        "length",
    ),
    "folded": (raw(OK_HEAD + b"X: y\r\n Content-Length: 2\r\n\r\n{}"), ""),
    "switching": (raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n{}"), ""),
    "hugeheader": (raw(OK_HEAD + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n"), ""),
    "manyheaders": (raw(OK_HEAD + b"X: y\r\n" * 200_000 + b"\r\n"), "too long"),
    "garbage": (raw(b"\x00\xff\x01 no HTTP at all\r\n\r\n"), ""),
    "http09": (raw(b"just text"), ""),
    "version": (raw(b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n{}"), ""),
    "badlength": (raw(OK_HEAD + b"Content-Length: -2\r\n\r\n{}"), ""),
    "long": (framed(body=b"x" * 200_000), "too long"),
    "longchunks": (raw(CHUNKED + b"\r\n186A1\r\n" + b"x" * 100_001, close=False), ""),
}


@test
def whole_answers_arrive():
    """A whole answer arrives as it is, however it is framed, cut or announced."""
    with pair({**WHOLE, **STATUSES}) as (server, client):
        for name in WHOLE:
            result = client.one(name)
            equal((name, *outcome(result)), (name, *ANSWERED))
            equal(answer(result), b"" if name == "empty" else b"{}")
            summed = "crc" in name or name in ("continue", "byte")
            equal((name, result["crc32"]), (name, int(summed)))
        for name in STATUSES:
            result = client.one(name)
            equal(outcome(result), ("ANSWERED", int(name), "OK"))
        equal(answer(client.one("503")), b"<html>by a proxy</html>")
        server.all_signed()
        # Nothing was followed, asked twice, or authorised otherwise.
        equal([r.action for r in server.seen], [*WHOLE, *STATUSES, "503"])
        print(f"# {len(WHOLE) + len(STATUSES)} kinds of answer")


@test(rows=[26])
def broken_answers_are_no_answers():
    """An answer that is cut, altered, badly framed or too long counts as none."""
    answers = {name: answer for name, (answer, _) in BROKEN.items()}
    with pair(answers, answer_max=100_000) as (server, client):
        for name, (_, said) in BROKEN.items():
            result = client.one(name, flags="o")
            said_it = (name, result["outcome"], result["code"])
            equal(said_it, (name, "NO_ANSWER", "UNKNOWN"))
            assert said in result["text"], (name, result["text"])
            equal((name, result["sends"]), (name, 1))
            # The connection is not used for anything else.
            client.answered("crc")
        server.all_signed()
        equal(client.ask("counters")["no_answer"], len(BROKEN))
        print(f"# {len(BROKEN)} kinds of broken answer")


@test
def answers_may_be_as_long_as_they_may():
    """An answer of the longest length is taken, one byte more is not; DynamoDB's
    longest fits without being asked for."""
    answers = {
        "exact": framed(body=b"x" * 1000),
        "more": framed(body=b"x" * 1001),
        "chunks": raw(CHUNKED + b"\r\n3E9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n"),
    }
    with pair(answers, answer_max=1000) as (_, client):
        equal(client.one("exact")["len"], 1000)
        equal(client.one("more")["outcome"], "NO_ANSWER")
        equal(client.one("chunks")["outcome"], "NO_ANSWER")
    with pair({"most": framed(body=b"x" * (16 << 20))}) as (_, client):
        equal(client.one("most", timeout_ms=20000)["len"], 16 << 20)


@test
def headers_of_the_answer_are_kept():
    """Error type and request id are given back, and cut where they are too long."""
    answers = {
        "ids": framed(
            x_amzn_RequestId=" ABC123 ", X_AMZN_ERRORTYPE="ThrottlingException:http://x"
        ),
        "long": framed(x_amzn_RequestId="I" * 1000, x_amzn_ErrorType="E" * 1000),
    }
    with pair(answers) as (_, client):
        result = client.one("ids")
        equal(result["request_id"], "ABC123")
        equal(result["error_type"], "ThrottlingException:http://x")
        result = client.one("long")
        equal(result["request_id"], "I" * 79)
        equal(result["error_type"], "E" * 127)
        result = client.one("crc")
        equal((result["request_id"], result["error_type"]), ("", ""))


# ---- Deadlines -----------------------------------------------------------


def silent(connection, request):
    connection.server.stopping.wait(PATIENCE)


def drip(connection, request):
    for byte in OK_HEAD + b"Content-Length: 2000\r\n\r\n" + b"x" * 2000:
        connection.send(bytes([byte]))
        if connection.server.stopping.wait(0.05):
            return


@test
def a_deadline_is_kept():
    """Silence and a byte now and then end at the deadline, not before, not much
    later, and other requests go on meanwhile."""
    with pair({"silent": silent, "drip": drip}) as (server, client):
        for name in ("silent", "drip"):
            for ms in (400, 4000, 20000):  # On a slow host nothing is quick.
                client.post(name, timeout_ms=ms, name="late")
                client.post("crc", name="quick")
                first, last = client.go(2)
                if first["name"] == "quick" and last["ms"] < 2 * ms + 100:
                    break
            equal((first["name"], *outcome(first)), ("quick", *ANSWERED))
            equal((last["name"], last["outcome"]), ("late", "NO_ANSWER"))
            assert ms - 10 <= last["ms"] < 2 * ms + 100, last
        server.all_signed()


@test
def what_waits_for_its_turn_has_a_deadline_too():
    """With one connection the second request waits, and is not sent when its time
    is over; one without any time is not sent at all."""
    for ms in (200, 2000, 5000):  # A slow host needs the longer ones.
        with pair({"silent": silent}, connections=1) as (server, client):
            client.post("silent", timeout_ms=4 * ms, name="first")
            client.post("crc", timeout_ms=ms, name="second")
            client.post("crc", timeout_ms=0, name="third")
            results = client.go(3)
            if [r["name"] for r in results] == ["third", "second", "first"]:
                break
    third, second, first = results
    equal([r["name"] for r in results], ["third", "second", "first"])
    equal(first["outcome"], "NO_ANSWER")
    for result in (second, third):
        equal(outcome(result), ("NOT_SENT", 0, "UNAVAILABLE"))
        equal(result["sends"], 0)
    assert ms - 10 <= second["ms"] < 4 * ms, second
    equal(len(server.seen), 1)


@test
def requests_in_flight_are_bounded():
    """Two hundred requests at once use as many connections as are allowed, each
    again and again, and all are answered."""

    def slowly(connection, request):
        time.sleep(0.002)
        connection.crc_answer(b'{"n":"%s"}' % request.body)

    with pair({"slowly": slowly}, connections=4) as (server, client):
        for i in range(200):
            client.post("slowly", f"={i}", name=str(i), timeout_ms=20000)
        for result in client.go(200):
            equal(outcome(result), ANSWERED)
            equal(answer(result), b'{"n":"%s"}' % result["name"].encode())
        equal(server.connections, 4)
        equal(server.most_open, 4)
        equal(len(server.seen), 200)
        server.all_signed()
        equal(client.ask("counters")["connections"], 4)
        fds = client.ask("fds")
        equal((fds["sockets"], fds["inherited"]), (4, 0))


@test
def a_request_can_be_given_up():
    """Given up while it waits it was not sent; given up on the way it is unknown;
    what is done stays done."""
    answered = threading.Event()

    def tell(connection, request):
        connection.crc_answer()
        answered.set()

    with pair({"silent": silent, "tell": tell}, connections=1) as (server, client):
        client.post("silent", name="sent")
        client.post("crc", name="waiting")
        client.work_until(lambda: server.seen, "one is sent")
        client.tell("abort waiting")
        client.tell("abort sent")
        waiting, sent = client.go(2)
        equal((waiting["name"], sent["name"]), ("waiting", "sent"))
        equal(outcome(waiting), ("NOT_SENT", 0, "UNAVAILABLE"))
        equal(outcome(sent), ("NO_ANSWER", 0, "UNKNOWN"))
        assert "the request was cancelled" in sent["text"], sent
        client.post("tell", name="done")
        client.work_until(answered.is_set, "it is answered")
        client.tell("turn 50")  # Now the client knows it, too.
        client.tell("abort done")
        equal(outcome(client.go()[0]), ANSWERED)
        equal([r.action for r in server.seen], ["silent", "tell"])


# ---- Not sent ------------------------------------------------------------


@test(rows=[25])
def a_refused_connection_is_not_sent():
    """Where nobody listens nothing was sent, and it says so at once."""
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        result = client.not_sent()
        assert result["ms"] < 30000, result
        assert "cannot be reached" in result["text"], result


@test(rows=[24])
def a_name_that_is_not_found_is_not_sent():
    """Without an address for the name nothing was sent."""
    with Client("https://no-such-host.invalid", region="eu-x-1") as client:
        result = client.not_sent(timeout_ms=3000)
        assert "no-such-host.invalid" in result["text"], result


@test(rows=[24])
def a_name_that_is_looked_up_for_ever_keeps_the_deadline():
    """While the resolver hangs the deadline holds, and closing does not wait."""
    shim = os.path.join(HERE, "libaws_shim.so")
    began = time.monotonic()
    env = {"LD_PRELOAD": shim, "SHIM_SLOW_NAMES": "120"}
    if tap.SANITIZED:
        skip("a sanitizer wants to be loaded first")
    with Client("https://slow.example", env, region="eu-x-1") as client:
        result = client.not_sent(timeout_ms=300)
        assert 290 <= result["ms"] < 60000, result
    in_time(time.monotonic() - began, 60, "closing beside the resolver")


@test(rows=[25])
def a_connection_that_never_opens_is_not_sent():
    """Where the handshake of TCP or TLS hangs nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as silent_listener:
        url = f"https://127.0.0.1:{silent_listener.getsockname()[1]}"
        with Client(url, region="x-1", connect_ms=300) as client:
            result = client.not_sent(timeout_ms=60000)
            assert 290 <= result["ms"] < 40000, result


# ---- Kept-alive connections ----------------------------------------------


def closing_second(how):
    """Answer a connection's first request, and treat its second as @how says."""
    served = {}

    def serve(connection, request):
        served[connection.number] = served.get(connection.number, 0) + 1
        if connection.number == 0 and served[connection.number] == 2:
            how(connection)
        else:
            connection.crc_answer()

    return serve


@test
def a_dead_connection_may_mean_two_copies():
    """When a kept-alive connection dies before an answer, libcurl sends the same
    bytes again, and that is counted; asked to send once, it does not."""
    for how in (Connection.close, Connection.reset):
        with pair({"put": closing_second(how)}) as (server, client):
            client.answered("put", "=1")
            result = client.answered("put", "=2")
            equal((result["sends"], result["signed_anew"]), (2, 0))
            copies = [r for r in server.seen if r.body == b"2"]
            equal([r.connection for r in copies], [0, 1])
            equal(copies[0].head, copies[1].head)

        with pair({"put": closing_second(how)}) as (server, client):
            client.answered("put", "=1")
            result = client.one("put", "=2", flags="o")
            equal(outcome(result), ("NO_ANSWER", 0, "UNKNOWN"))
            equal(result["sends"], 1)
            assert "connection broke" in result["text"], result
            equal([r.body for r in server.seen], [b"1", b"2"])
            client.answered("put", "=3", flags="o")


@test
def a_second_copy_goes_over_a_new_connection():
    """When all kept-alive connections die at once, no more than two copies are
    sent, and the second is not given to another of those."""
    both = threading.Barrier(2)

    def meet(connection, request):
        both.wait(PATIENCE)
        connection.crc_answer()

    def die(connection, request):
        connection.close() if connection.number < 2 else connection.crc_answer()

    with pair({"meet": meet, "put": die}) as (server, client):
        client.post("meet", name="a")
        client.post("meet", name="b")
        equal([outcome(result) for result in client.go(2)], [ANSWERED] * 2)
        equal(client.answered("put")["sends"], 2)
        assert server.seen[2].connection < 2, server.seen[2]
        equal([r.connection for r in server.seen[3:]], [2])


@test
def connections_may_die_again_and_again():
    """Each request may have its second copy, however many had one before it, and
    each that is to be sent once is."""
    answered = set()

    def serve(connection, request):
        if connection.number in answered:
            return connection.close()
        answered.add(connection.number)
        return connection.crc_answer()

    with pair({"put": serve}, connections=1) as (server, client):
        client.answered("put")
        for _ in range(8):
            equal(client.answered("put")["sends"], 2)
        for _ in range(8):
            result = client.one("put", flags="o")
            equal((result["outcome"], result["sends"]), ("NO_ANSWER", 1))
            client.answered("put", flags="o")
        equal(len(server.seen), 1 + 2 * 8 + 2 * 8)


@test
def bytes_that_nobody_requested_are_not_an_answer():
    """An answer that comes while a connection is idle is not taken for that of the
    next request, which goes over another connection."""
    tls, ca = make_certificate("good", "IP:127.0.0.1")
    for server_tls, options in ((None, {}), (tls, {"ca": ca, "region": "x-1"})):
        kept = []

        def keep(connection, request):
            connection.crc_answer()
            kept.append(connection)

        with Server({"keep": keep}, tls=server_tls) as server:
            with Client(server.url, **options) as client:
                client.answered("keep")
                until(lambda: kept, "the server has answered")
                kept[0].crc_answer(b'{"another":1}')
                result = client.one(flags="o")
                equal((*outcome(result), answer(result)), (*ANSWERED, b"{}"))
                equal([r.connection for r in server.seen], [0, 1])


@test
def an_answer_that_is_framed_twice_ends_its_connection():
    """After an answer with a length and chunks the next one might begin where
    either says: the connection is not used again. With one of them it is."""
    chunks = b"\r\n2\r\n{}\r\n0\r\n\r\n"
    answers = {
        "once": raw(CHUNKED + chunks, close=False),
        "twice": raw(CHUNKED + b"Content-Length: 2\r\n" + chunks, close=False),
        "turned": raw(
            OK_HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks,
            close=False,
        ),
    }
    with pair(answers, connections=1) as (server, client):
        for name in ("once", "twice", "crc", "turned", "crc", "crc"):
            result = client.one(name)
            equal((name, *outcome(result)), (name, *ANSWERED))
            equal(answer(result), b"{}")
        equal([r.connection for r in server.seen], [0, 0, 1, 1, 2, 2])


@test
def an_answer_that_has_begun_stops_the_second_copy():
    """Once the first line of an answer is there, the request is not sent again."""

    def begin(connection):
        connection.send(OK_HEAD)
        time.sleep(0.1)
        connection.close()

    with pair({"put": closing_second(begin)}) as (server, client):
        client.answered("put", "=1")
        result = client.one("put", "=2")
        equal((result["outcome"], result["sends"]), ("NO_ANSWER", 1))
        equal([r.body for r in server.seen], [b"1", b"2"])


@test
def a_connection_closed_meanwhile_is_not_used():
    """What the server closed while it was idle is seen before anything is sent."""

    def once(connection, request):
        connection.crc_answer()
        connection.close()

    def said(connection, request):
        connection.crc_answer(Connection="close")
        connection.close()

    with pair({"once": once, "said": said}) as (server, client):
        for name in ("once", "said"):
            for _ in range(3):
                equal(client.answered(name, flags="o")["sends"], 1)
                until(lambda: server.open == 0, "the server has closed it")
        equal(server.connections, 6)


@test
def an_old_connection_is_not_used_again():
    """A connection that was idle for longer than said is opened anew."""
    with pair(idle_ms=1000) as (server, client):
        client.answered()
        client.answered()
        equal(server.connections, 1)
        client.tell("pause 2200")
        client.answered()
        equal(server.connections, 2)


@test
def a_request_that_is_not_read_whole_is_no_answer():
    """A reset while the body is still being written leaves the request unknown."""

    with pair(early=early) as (_, client):
        result = client.one("early", "@4000000")
        equal((result["outcome"], result["code"]), ("NO_ANSWER", "UNKNOWN"))
        client.answered()


# ---- Time ----------------------------------------------------------------


def skewed(connection, request, **more):
    body = b'{"__type":"x#RequestTimeTooSkewed","message":"no"}'
    connection.answer(body, "403 Forbidden", **more)


def early(connection, headers):
    """Reset it before the body of such a request is read."""
    if headers["x-amz-target"] == "Test.early":
        connection.reset()
        return True
    return False


def strict(connection, request):
    """Refuse a time more than five minutes off, as DynamoDB does."""
    now = time.time() + connection.server.offset
    stamp = request.headers["x-amz-date"]
    signed = time.strptime(stamp, "%Y%m%dT%H%M%SZ")
    off = (time.mktime(signed) - time.timezone) - now
    if abs(off) <= 300:
        return connection.crc_answer()
    words = "Signature expired" if off < 0 else "Signature not yet current"
    body = {
        "__type": "com.amazon.coral.service#InvalidSignatureException",
        "message": f"{words}: {stamp} is not near the current time",
    }
    return connection.answer(json.dumps(body).encode(), "400 Bad Request")


@test(rows=[21])
def a_clock_that_is_an_hour_off_is_learned():
    """With this machine's clock an hour off, the first request is signed twice and
    all later ones are right at once; the service's time is known."""
    for off in (HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -300 * 24 * HOUR_MS):
        with pair({"strict": strict}, wall_off_ms=off) as (server, client):
            result = client.answered("strict", "=put-if-absent")
            equal((result["signed_anew"], result["sends"]), (1, 1))
            equal([r.body for r in server.seen], [b"put-if-absent"] * 2)
            for _ in range(3):
                equal(client.answered("strict")["signed_anew"], 0)
            equal(len(server.seen), 5)
            server.all_signed()
            clock = client.ask("clock")
            equal(clock["known"], 1)
            assert abs(clock["ms"] - clock["true_ms"]) <= clock["err_ms"], clock
            assert clock["err_ms"] < 1000, clock


@test(rows=[21])
def a_time_that_cannot_be_learned_is_a_refusal():
    """Without a usable Date the refusal is the answer; it is not tried again. A service
    that goes on refusing the time, whatever its Date, is not asked a third time."""
    dates = {
        "none": None,
        "bad": "yesterday",
        "far": "Fri, 01 Jan 2100 00:00:00 GMT",
        "old": "Sun, 06 Nov 1994 08:49:37 GMT",
    }
    answers = {name: functools.partial(skewed, date=date) for name, date in dates.items()}
    with pair({**answers, "never": skewed}) as (server, client):
        for name in answers:
            result = client.one(name)
            equal((*outcome(result), result["signed_anew"]), ("ANSWERED", 403, "OK", 0))
        equal(len(server.seen), len(answers))
        equal(client.ask("clock")["known"], 0)
        result = client.one("never")
        equal((*outcome(result), result["signed_anew"]), ("ANSWERED", 403, "OK", 1))
        equal(len(server.seen), len(answers) + 2)


@test(rows=[21])
def a_second_copy_is_never_signed_anew():
    """When there may be another copy under way, a refusal for its time is the
    answer: what was refused here may have been applied there."""
    served = []

    def serve(connection, request):
        served.append(request)
        if len(served) == 1:
            connection.crc_answer()
        elif len(served) == 2:
            connection.close()
        else:
            skewed(connection, request)

    with pair({"put": serve}) as (_, client):
        client.answered("put")
        result = client.one("put")
        equal((result["status"], result["sends"], result["signed_anew"]), (403, 2, 0))
        equal(len(served), 3)


# ---- Credentials ---------------------------------------------------------


def wants_renewed(connection, request):
    if request.headers["x-amz-security-token"].startswith("renewed"):
        return connection.crc_answer()
    body = b'{"__type":"com.amazon.coral.service#ExpiredTokenException"}'
    return connection.answer(body, "400 Bad Request")


@test(rows=[20])
def expired_credentials_are_renewed():
    """Credentials that end in the middle of the work are renewed and the refused
    request is signed anew; where the source cannot, the refusal is the answer."""
    with pair({"put": wants_renewed}, provider="expiring") as (server, client):
        equal(client.answered("put")["signed_anew"], 1)
        equal(client.answered("put")["signed_anew"], 0)
        server.all_signed()
        equal(len(server.seen), 3)
    env = {"AWS_SESSION_TOKEN": "first"}
    with pair({"put": wants_renewed}, client_env=env) as (server, client):
        result = client.one("put")
        equal((*outcome(result), result["signed_anew"]), ("ANSWERED", 400, "OK", 0))
        equal(len(server.seen), 1)


@test
def credentials_may_come_late_or_never():
    """Requests wait for credentials that are being fetched, no longer than their
    deadline; without any nothing is sent and the source is named."""
    with pair(provider="slow") as (server, client):
        client.post(name="a")
        client.post(name="b")
        for result in client.go(2):
            equal(outcome(result), ANSWERED)
        server.all_signed()
    with pair(provider="never") as (server, client):
        result = client.not_sent(timeout_ms=200)
        assert result["ms"] >= 190, result
        equal(server.seen, [])
    with pair(provider="broken") as (server, client):
        result = client.not_sent("CONFIG")
        assert "the odd source" in result["text"], result
        equal(server.seen, [])


# ---- TLS and proxies -----------------------------------------------------


def make_certificate(name, *names):
    """Make NAME.pem (key and certificate, self-signed) for the host @names."""
    alt = ",".join(n if ":" in n else f"DNS:{n}" for n in names)
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    command += f" -nodes -days 2 -subj /CN={name} -addext subjectAltName={alt}"
    command += f" -keyout {name}.key -out {name}.crt"
    done = tap.run(command.split())
    equal(done.status, 0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{name}.crt", f"{name}.key")
    return context, os.path.abspath(f"{name}.crt")


@test
def tls_is_checked():
    """A certificate that is not known or for another host is refused before
    anything is sent; with its authority given, it works and is signed right."""
    tls, ca = make_certificate("good", "IP:127.0.0.1")
    with Server({}, tls=tls) as server:
        with Client(server.url, region="x-1", ca=ca) as client:
            for body in ("={}", "@100000", "={}"):
                equal(client.answered("crc", body)["text"], "")
            equal(server.connections, 1)
            equal(server.all_signed(), 3)
        with Client(server.url, region="x-1") as client:
            result = client.not_sent()
            assert "certificate" in result["text"].lower(), result
        equal(len(server.seen), 3)
    tls, ca = make_certificate("wrong", "other.example", "IP:127.0.0.2")
    with Server({}, tls=tls) as server:
        with Client(server.url, region="x-1", ca=ca) as client:
            client.not_sent()
        equal(server.seen, [])
    with Server({}) as server:
        url = server.url.replace("http:", "https:")
        with Client(url, region="x-1", connect_ms=300) as client:
            client.not_sent()


@test
def authorities_that_cannot_be_read_are_named():
    """A file of authorities that is not there, or none, is an error at once."""
    with Client("https://127.0.0.1:1", region="x-1", ca="/no/such/file") as client:
        said = client.hear()
        equal(said["failed"], "CONFIG")
        assert "/no/such/file" in said["text"], said
        equal(client.process.wait(PATIENCE), 1)
        client.process.returncode = 0
    write("empty.crt", "no certificate\n")
    tls, _ = make_certificate("good", "IP:127.0.0.1")
    with Server({}, tls=tls) as server:
        empty = os.path.abspath("empty.crt")
        with Client(server.url, region="x-1", ca=empty) as client:
            client.not_sent("CONFIG")


@test
def a_broken_tls_connection_does_not_end_the_process():
    """Resets in the middle of TLS leave requests unknown and the process alive,
    though SIGPIPE has its default action."""
    tls, ca = make_certificate("good", "IP:127.0.0.1")

    answers = {"reset": BROKEN["reset"][0], "close": BROKEN["close"][0]}
    with Server(answers, tls=tls, early=early) as server:
        with Client(server.url, region="x-1", ca=ca) as client:
            for _ in range(5):
                for name in ("early", "reset", "close"):
                    result = client.one(name, "@3000000")
                    equal((name, result["outcome"]), (name, "NO_ANSWER"))
                client.answered()
            equal(client.process.poll(), None)


@test
def a_proxy_is_asked_where_one_is_set():
    """The usual variables name a proxy for services elsewhere; this machine's own
    are reached directly; what the proxy says is no answer of the service."""
    name = "dynamodb.eu-x-1.example"
    tls, ca = make_certificate("service", name)
    asked = []
    with Server({}, tls=tls) as server:

        def tunnel(sock):
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(4096)
            asked.append(head.split(b"\r\n")[0])
            if b"refuse" in head.split(b"\r\n")[0]:
                sock.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                    b"Date: Fri, 01 Jan 2027 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
                )
                return sock.close()
            sock.sendall(b"HTTP/1.1 200 OK\r\nx-amz-crc32: 1\r\n\r\n")
            onward = socket.create_connection(("127.0.0.1", server.port))

            def copy(source, sink):
                with contextlib.suppress(OSError):
                    while data := source.recv(65536):
                        sink.sendall(data)
                    sink.shutdown(socket.SHUT_WR)

            start_thread(copy, onward, sock)
            return copy(sock, onward)

        with socket.create_server(("127.0.0.1", 0)) as proxy:

            def accept():
                with contextlib.suppress(OSError):
                    while True:
                        start_thread(tunnel, proxy.accept()[0])

            start_thread(accept)
            url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
            env = {"https_proxy": url, "http_proxy": url, "all_proxy": url}
            with Client(f"https://{name}", env, region="eu-x-1", ca=ca) as client:
                for _ in range(2):
                    equal(client.answered("crc")["text"], "")
            equal(asked, [f"CONNECT {name}:443 HTTP/1.1".encode()])
            equal(server.all_signed(), 2)
            equal(server.seen[0].headers["host"], name)
            with Client("https://refuse.example", env, region="eu-x-1") as client:
                result = client.not_sent(action="crc")
                equal(client.ask("clock")["known"], 0)
            with pair(client_env=env) as (_, client):
                client.answered("crc")
            equal(len(asked), 2)
            proxy.shutdown(socket.SHUT_RDWR)


# ---- libcurl -------------------------------------------------------------


@test
def an_old_libcurl_is_named():
    """With a libcurl that is too old, opening says which one is there."""
    if tap.SANITIZED:
        skip("a sanitizer wants to be loaded first")
    env = {"LD_PRELOAD": os.path.join(HERE, "libaws_old_curl.so")}
    with Client("http://127.0.0.1:1", env) as client:
        heard = client.hear()
        equal(heard["failed"], "CONFIG")
        assert "7.79.1" in heard["text"] and "7.85" in heard["text"], heard
        equal(client.process.wait(PATIENCE), 1)
        client.process.returncode = 0


if __name__ == "__main__":
    tap.main()
