"""Bad input: keys, bodies and messages as nobody should send them. What the module
refuses leaves the connection where it was, so that the next request is the next
request; or ends it, where that cannot be known."""

import itertools
import os

from nginx import ON, Nginx, Upstream, read_answer, request_bytes
from tap import equal, main, note, test

NEXT = request_bytes("/next", None, b"", "GET")


def bad_heads():
    """Heads with a key that is none, by name."""
    key = "Idempotency-Key: "
    yield "empty", [key]
    yield "spaces", [key + "   "]
    yield "empty string", [key + '""']
    yield "two lines", [key + "a", key + "b"]
    yield "the same twice", [key + "a", key + "a"]
    yield "two lines far apart", [key + "a", *(f"X-{i}: y" for i in range(40)), key + "b"]
    yield "other case", [key + "a", "IDEMPOTENCY-KEY: a"]
    yield "list", [key + "a, b"]
    yield "list of strings", [key + '"a", "b"']
    yield "parameters", [key + '"a";a=1']
    yield "raw parameters", [key + "a;a=1"]
    yield "no end", [key + '"a']
    yield "bytes behind", [key + '"a"b']
    yield "bad escape", [key + '"a\\n"']
    yield "space in it", [key + "a b"]
    yield "braces", [key + '{}"']
    for name, byte in ("tab", "\t"), ("delete", "\x7f"), ("latin", "\xe9"):
        yield f"{name} in it", [key + f"a{byte}b"]
        yield f"{name} quoted", [key + f'"a{byte}b"']
    yield "utf-8", [key + "caf\xc3\xa9"]
    yield "overlong", [key + "a\xc0\xafb"]
    yield "byte order mark", [key + "\xef\xbb\xbfa"]
    yield "right to left", [key + "a\xe2\x80\xaeb"]
    for size in 256, 2048, 7000:
        yield f"{size} bytes", [key + "k" * size]
        yield f"{size} quoted", [key + '"' + "k" * size + '"']


def head(lines, more=()):
    return "\r\n".join(["POST /pay HTTP/1.1", "Host: h", *lines, *more, "", ""]).encode(
        "latin-1"
    )


@test
def a_bad_key_is_refused_and_its_body_read():
    """400 for each, in front of every kind of body; what follows is the next request."""
    bodies = [
        (["Content-Length: 0"], b""),
        (["Content-Length: 37"], b"POST /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"),
        (["Content-Length: 70000"], b"z" * 70000),
        (["Transfer-Encoding: chunked"], b"5\r\nGET /\r\n0\r\nX: y\r\n\r\n"),
    ]
    bodies[1] = ([f"Content-Length: {len(bodies[1][1])}"], bodies[1][1])
    bodies[3] = (bodies[3][0], b"5\r\nGET /\r\n0\r\nX: y\r\n\r\n")
    count = 0
    with Upstream() as up, Nginx(up) as nginx:
        for (name, lines), (more, body) in itertools.product(bad_heads(), bodies):
            answers = nginx.raw(head(lines, more) + body + NEXT, 2)
            equal((name, answers[0].status), (name, 400))
            assert answers[0].problem in ("key-invalid", None), answers[0]
            equal((name, answers[1].status), (name, 201))
            count += 1
        equal({c.path for c in up.calls}, {"/next"})
        equal(up.executions(), count)
        equal(nginx.begun(), 0)
    note(f"{count} requests")


@test
def good_keys_of_every_kind():
    """Opaque bytes: no shell, no path, no format, no JSON is looked at; spaces around it do
    not count."""
    keys = ["1", "k" * 255, '"' + "q" * 255 + '"', "'or'1'='1'--"]
    keys += ["../../etc/passwd", "%n%s%x", "$(id)", "`id`", "<script>", "a:b", "*"]
    keys += ['"{\\"a\\": [1, 2]}"', '"a, b; c"', '"NULL"', '"\\\\"', '"a \\"b\\" \\\\"']
    with Upstream() as up, Nginx(up) as nginx:
        for key in keys:
            first = nginx.post("/pay", key, b"")
            equal((key, first.status, first.replayed), (key, 201, False))
            assert nginx.post("/pay", f" {key}\t", b"").replayed, key
        equal(up.executions(), len(keys))
    note(f"{len(keys)} keys")


@test
def the_name_of_the_header():
    """Any case; a space before the colon, an underscore or a trailer is no key."""
    with Upstream() as up, Nginx(up) as nginx:
        for name in "idempotency-key", "IDEMPOTENCY-KEY", "IdEmPoTeNcY-kEy":
            nginx.raw(head([f"{name}: a", "Content-Length: 0"]))
        equal(up.executions(), 1)
        none = [
            head(["Idempotency_Key: b", "Content-Length: 0"]),
            head(["Transfer-Encoding: chunked"]) + b"0\r\nIdempotency-Key: b\r\n\r\n",
        ]
        for data in none:
            for _ in range(2):
                equal(nginx.raw(data)[0].replayed, False)
        equal(up.executions(), 5)
        for line in "Idempotency-Key : b", " Idempotency-Key: b":
            got = nginx.raw(head(["X: y", line, "Content-Length: 0"]))[0]
            assert not got.replayed


@test
def bodies_around_every_edge():
    """Sizes around the buffers, in memory and in a file, in one piece and in chunks:
    the same bytes are the same request, one byte off is another."""
    sizes = [0, 1, 1023, 1024, 8191, 8192, 16383, 16384, 16385, 100_000, 1_000_000]
    small = ON + "client_body_buffer_size 16k;"
    with Upstream() as up, Nginx(up, http=small) as nginx:
        for size in sizes:
            body = os.urandom(size)
            key = f"b{size}"
            equal(nginx.post("/pay", key, body).status, 201)
            assert nginx.post("/pay", key, body).replayed, size
            pieces = [body[i : i + 5000] for i in range(0, size, 5000)]
            data = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(p), p) for p in pieces)
            lines = [f"Idempotency-Key: {key}", "Transfer-Encoding: chunked"]
            chunked = head(lines) + data + b"0\r\nTrailer: x\r\n\r\n"
            assert nginx.raw(chunked)[0].replayed, size
            if size:
                other = body[:-1] + bytes([body[-1] ^ 1])
                equal(nginx.post("/pay", key, other).status, 422)
            equal(nginx.post("/pay", key, body + b"x").status, 422)
            equal(up.executions(key), 1)
            equal(up.calls[-1].body, body)
    with Upstream() as up, Nginx(up, http=ON + "client_body_in_file_only on;") as nginx:
        equal(nginx.post("/pay", "f", b"abc").status, 201)
        assert nginx.post("/pay", "f", b"abc").replayed
        equal(nginx.post("/pay", "f", b"abd").status, 422)
    note(f"{len(sizes)} sizes")


@test
def a_body_above_the_cap_claims_nothing():
    """413 before anything is claimed, announced or chunked; the rest is read away."""
    http = ON + "idempotency_max_request 10k;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        equal(nginx.post("/pay", "a", b"x" * 10240).status, 201)
        for size in 10241, 500_000:
            body = b"x" * size
            data = request_bytes("/pay", "b", body) + NEXT
            got = nginx.raw(data, 2)
            equal((got[0].status, got[0].problem), (413, "request-too-large"))
            equal(got[1].status, 201)
            lines = ["Idempotency-Key: b", "Transfer-Encoding: chunked"]
            data = head(lines) + b"%x\r\n%s\r\n0\r\n\r\n" % (size, body) + NEXT
            got = nginx.raw(data, 2)
            equal((got[0].status, got[1].status), (413, 201))
        equal(nginx.begun(), 1)


@test
def messages_that_nginx_refuses_claim_nothing():
    """What plain nginx answers with 400 is answered so with the module, unrecorded."""
    key = "Idempotency-Key: m"
    messages = [
        [key, "Content-Length: 3", "Content-Length: 3"],
        [key, "Content-Length: +3"],
        [key, "Content-Length: -3"],
        [key, "Content-Length: 0x3"],
        [key, "Content-Length: "],
        [key, "Content-Length: 99999999999999999999"],
        [key, "Transfer-Encoding: chunked", "Content-Length: 3"],
        [key, "Transfer-Encoding: xchunked"],
        [key, "Transfer-Encoding: identity", "Content-Length: 3"],
        [key, "Transfer-Encoding: chunked, chunked"],
        [key, "Transfer-Encoding : chunked"],
        [key, "Content-Length: 3\r\n\tfolded: yes"],
    ]

    def statuses(nginx):
        found = []
        for lines in messages:
            with nginx.connect() as s, s.makefile("rb") as stream:
                s.sendall(head(lines, ["Connection: close"]) + b"0\r\n\r\n")
                s.shutdown(1)
                try:
                    found.append(read_answer(stream).status)
                except (ConnectionError, ValueError, OSError):
                    found.append(None)
        return found

    with Upstream() as up:
        with Nginx(up, http="", module=False) as nginx:
            plain = statuses(nginx)
        before = up.executions()
        with Nginx(up) as nginx:
            equal(statuses(nginx), plain)
            started = nginx.begun()
            done = up.executions() - before
            assert started == done <= 1 + plain.count(201), (started, done, plain)
    note(f"{len(messages)} messages: {plain}")


@test
def pipelined_requests_keep_their_order():
    """Begun, replayed, refused and keyless ones on one connection, each in its place."""
    with Upstream() as up, Nginx(up) as nginx:
        nginx.post("/pay", "old", b"x")
        sent = [
            (request_bytes("/pay", "new", b"x"), 201),
            (request_bytes("/pay", "old", b"x"), 201),
            (request_bytes("/pay", "old", b"y"), 422),
            (request_bytes("/pay", "a,b", b"x" * 5000), 400),
            (request_bytes("/pay", None, b"x"), 201),
            (request_bytes("/pay", "new", b"x"), 201),
            (NEXT, 201),
        ]
        got = nginx.raw(b"".join(data for data, _ in sent), len(sent))
        equal([a.status for a in got], [status for _, status in sent])
        equal([a.replayed for a in got], [i in (1, 5) for i in range(7)])
        equal(up.executions(), 4)


@test
def expect_100_continue_waits_for_the_body():
    """Nothing is claimed before the body is there; one that never comes claims nothing."""
    with Upstream() as up, Nginx(up) as nginx:
        more = [("Expect", "100-continue")]
        data = request_bytes("/pay", "k", b"hello", headers=more)
        with nginx.connect() as s, s.makefile("rb") as stream:
            s.sendall(data[:-5])
            equal(stream.readline(), b"HTTP/1.1 100 Continue\r\n")
            stream.readline()
            equal(nginx.begun(), 0)
            s.sendall(b"hello")
            equal(read_answer(stream).status, 201)
        with nginx.connect() as s:
            s.sendall(data.replace(b": k\r", b": l\r")[:-5])
            s.recv(100)
        equal(nginx.begun(), 1)
        # Whether a body follows a refusal nobody can know: it ends the connection.
        bad = data.replace(b": k\r", b": a,b\r")
        with nginx.connect() as s, s.makefile("rb") as stream:
            s.sendall(bad[:-5])
            refused = read_answer(stream)
            equal((refused.status, refused.headers["connection"]), (400, "close"))
            s.sendall(NEXT)
            equal(stream.read(), b"")
        equal(up.executions(), 1)


@test
def upgrades_with_a_key_are_refused():
    """400 for a change of protocol; h2c, which nginx ignores, is none."""
    with Upstream() as up, Nginx(up) as nginx:
        more = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
        got = nginx.request("/pay", "k", b"x", headers=more)
        equal((got.status, got.problem, up.executions()), (400, "upgrade", 0))
        more = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")]
        equal(nginx.request("/pay", "k", b"x", headers=more).status, 201)


if __name__ == "__main__":
    main()
