"""The requests of the corpus: how they begin and end, and what is wrong with them.

Each case is bytes, in pieces with a pause between them. TTTT in them stands for four
characters that only this case has. Behind each case goes one plain request for /end:
whoever finds other boundaries than its neighbour does not see it, or sees more.
A path with "smuggled" in it is never a request of a client: it is in a body.
"""

from typing import NamedTuple

HOST = b"Host: test\r\n"
SMUGGLED = b"POST /TTTT/smuggled HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
KEY = b"Idempotency-Key: k-TTTT\r\n"


class Case(NamedTuple):
    """A conversation: @heads are the numbers of responses without a body, and @gone
    says that the client does not stay for the end."""

    name: str
    pieces: tuple
    heads: tuple = ()
    gone: bool = False


def request(headers=b"", body=b"", path=b"/TTTT/a", method=b"POST", version=b"1.1"):
    return b"%s %s HTTP/%s\r\n%s%s\r\n%s" % (method, path, version, HOST, headers, body)


def sized(headers, body, **more):
    """A request with a correct Content-Length."""
    return request(headers + b"Content-Length: %d\r\n" % len(body), body, **more)


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST = b"0\r\n\r\n"

# ---- The header that the module reads: name, lines ----

KEYS = (
    ("no key", b""),
    ("a key", KEY),
    ("a quoted key", b'Idempotency-Key: "k-TTTT"\r\n'),
    ("a key with parameters", b'Idempotency-Key: "k-TTTT";a=1\r\n'),
    ("two keys", KEY + b"Idempotency-Key: j-TTTT\r\n"),
    ("one key twice", KEY + KEY),
    ("a list of keys", b"Idempotency-Key: k-TTTT, j-TTTT\r\n"),
    ("an empty key", b"Idempotency-Key:\r\n"),
    ("a blank key", b"Idempotency-Key:   \t \r\n"),
    ("an empty quoted key", b'Idempotency-Key: ""\r\n'),
    ("a quote that is not closed", b'Idempotency-Key: "k-TTTT\r\n'),
    ("more behind a quote", b'Idempotency-Key: "k-TTTT"x\r\n'),
    ("a bad escape", b'Idempotency-Key: "k\\-TTTT"\r\n'),
    ("a key of 256 bytes", b"Idempotency-Key: " + b"k" * 256 + b"\r\n"),
    ("a key of 3000 bytes", b"Idempotency-Key: " + b"k" * 3000 + b"\r\n"),
    ("a key that no buffer holds", b"Idempotency-Key: " + b"k" * 40000 + b"\r\n"),
    ("a key that is no ASCII", b"Idempotency-Key: k-\xc3\xa4-TTTT\r\n"),
    ("a key with bytes of no encoding", b"Idempotency-Key: k-\xff\xfe-TTTT\r\n"),
    ("a key with a NUL", b"Idempotency-Key: k\0-TTTT\r\n"),
    ("a key with a tab", b"Idempotency-Key: k\t-TTTT\r\n"),
    ("a key with a DEL", b"Idempotency-Key: k\x7f-TTTT\r\n"),
    ("a key with a CR", b"Idempotency-Key: k\r-TTTT\r\n"),
    ("a key that is folded", b"Idempotency-Key: k\r\n -TTTT\r\n"),
    ("a name in capitals", b"IDEMPOTENCY-KEY: k-TTTT\r\n"),
    ("a name with an underscore", b"Idempotency_Key: k-TTTT\r\n"),
    ("a space before the colon", b"Idempotency-Key : k-TTTT\r\n"),
    ("a header ended by LF", b"Idempotency-Key: k-TTTT\n"),
    ("a key that looks like a request", b"Idempotency-Key: GET /TTTT/smuggled\r\n"),
    ("a key with the end of a header in it", b'Idempotency-Key: "k\\r\\n\\r\\n"\r\n'),
)

# ---- Bodies that every parser takes for the same: name, headers, body ----

BODIES = (
    ("a body", b"Content-Length: %d\r\n" % len(SMUGGLED), SMUGGLED),
    ("no body", b"", b""),
    ("a chunked body", CHUNKED, chunk(SMUGGLED) + LAST),
)

# ---- How a body may be framed, well and badly: name, headers, body ----

DATA = b"hello"
N = b"Content-Length: 5\r\n"
FRAMES = (
    ("a length of nothing", b"Content-Length: 0\r\n", b""),
    ("a length too short", b"Content-Length: 2\r\n", DATA),
    ("a length too long", b"Content-Length: 2000\r\n", DATA),
    ("one length twice", N + N, DATA),
    ("two lengths", N + b"Content-Length: 6\r\n", DATA + b"!"),
    ("a list of lengths", b"Content-Length: 5, 5\r\n", DATA),
    ("a length with a plus", b"Content-Length: +5\r\n", DATA),
    ("a length with a minus", b"Content-Length: -5\r\n", DATA),
    ("a length in hex", b"Content-Length: 0x5\r\n", DATA),
    ("a length with zeros", b"Content-Length: 0005\r\n", DATA),
    ("a length with a space", b"Content-Length: 5 \r\n", DATA),
    ("a length with two words", b"Content-Length: 5 5\r\n", DATA),
    ("an empty length", b"Content-Length:\r\n", DATA),
    ("a length of no number", b"Content-Length: five\r\n", DATA),
    ("a length beyond 64 bits", b"Content-Length: 18446744073709551621\r\n", DATA),
    ("a length with a space before the colon", b"Content-Length : 5\r\n", DATA),
    ("a length that is folded", b"Content-Length:\r\n 5\r\n", DATA),
    ("a length ended by LF", b"Content-Length: 5\n", DATA),
    ("chunks", CHUNKED, chunk(b"hel") + chunk(b"lo") + LAST),
    ("no chunk", CHUNKED, LAST),
    ("chunks with an extension", CHUNKED, chunk(DATA, b";a=b") + LAST),
    ("chunks with a quoted extension", CHUNKED, chunk(DATA, b';a="\r\n"') + LAST),
    ("chunks with a long extension", CHUNKED, chunk(DATA, b";" + b"a" * 5000) + LAST),
    ("chunks with a trailer", CHUNKED, chunk(DATA) + b"0\r\nX-A: b\r\n\r\n"),
    ("chunks with a key behind", CHUNKED, chunk(DATA) + b"0\r\n" + KEY + b"\r\n"),
    ("chunks with a length behind", CHUNKED, chunk(DATA) + b"0\r\n" + N + b"\r\n"),
    ("chunks in capitals", CHUNKED, b"A\r\nhellohello\r\n" + LAST),
    ("chunks with zeros", CHUNKED, b"00005\r\nhello\r\n" + LAST),
    ("a chunk of no number", CHUNKED, b"xyz\r\nhello\r\n" + LAST),
    ("a chunk with a minus", CHUNKED, b"-5\r\nhello\r\n" + LAST),
    ("a chunk with 0x", CHUNKED, b"0x5\r\nhello\r\n" + LAST),
    ("a chunk beyond 64 bits", CHUNKED, b"10000000000000005\r\nhello\r\n" + LAST),
    ("a chunk of the largest size", CHUNKED, b"ffffffffffffffff\r\nhello\r\n" + LAST),
    ("a chunk that is too long", CHUNKED, b"3\r\nhello\r\n" + LAST),
    ("a chunk that is too short", CHUNKED, b"9\r\nhello\r\n" + LAST),
    ("a chunk ended by LF", CHUNKED, b"5\nhello\n0\n\n"),
    ("a chunk with a space", CHUNKED, b"5 \r\nhello\r\n" + LAST),
    ("a chunk with an empty size", CHUNKED, b"\r\nhello\r\n" + LAST),
    ("chunks without an end", CHUNKED, chunk(DATA)),
    ("a trailer without an end", CHUNKED, chunk(DATA) + b"0\r\nX-A: b\r\n"),
    ("a length and chunks", N + CHUNKED, chunk(SMUGGLED) + LAST),
    ("chunks and a length", CHUNKED + N, chunk(SMUGGLED) + LAST),
    ("a length of nothing and chunks", b"Content-Length: 0\r\n" + CHUNKED, chunk(DATA) + LAST),
    ("chunks twice", CHUNKED + CHUNKED, chunk(DATA) + LAST),
    ("a list of chunked", b"Transfer-Encoding: chunked, chunked\r\n", chunk(DATA) + LAST),
    ("gzip and chunked", b"Transfer-Encoding: gzip, chunked\r\n", chunk(DATA) + LAST),
    ("chunked and identity", b"Transfer-Encoding: chunked, identity\r\n", chunk(DATA) + LAST),
    ("identity", b"Transfer-Encoding: identity\r\n" + N, DATA),
    ("xchunked", b"Transfer-Encoding: xchunked\r\n" + N, DATA),
    ("chunked in capitals", b"Transfer-Encoding: CHUNKED\r\n", chunk(DATA) + LAST),
    ("chunked in quotes", b'Transfer-Encoding: "chunked"\r\n', chunk(DATA) + LAST),
    ("chunked behind a tab", b"Transfer-Encoding:\tchunked\r\n", chunk(DATA) + LAST),
    ("chunked behind a vertical tab", b"Transfer-Encoding: \x0bchunked\r\n", chunk(DATA) + LAST),
    ("chunked that is folded", b"Transfer-Encoding:\r\n chunked\r\n", chunk(DATA) + LAST),
    ("a space before the colon of chunked", b"Transfer-Encoding : chunked\r\n", chunk(DATA) + LAST),
    ("chunked with an underscore", b"Transfer_Encoding: chunked\r\n" + N, DATA),
    ("an empty encoding", b"Transfer-Encoding:\r\n" + N, DATA),
)


def keys():
    """Every form of the header, with every body, and a request behind it."""
    for key, header in KEYS:
        for body, headers, data in BODIES:
            first = request(header + headers, data)
            yield Case(f"{key}, {body}", (first,))
        yield Case(f"{key}, where it must be", (sized(header, SMUGGLED, path=b"/required/TTTT/a"),))


def frames():
    """Every framing, with and without a key."""
    for frame, headers, data in FRAMES:
        yield Case(f"{frame}, no key", (request(headers, data),))
        yield Case(f"{frame}, a key", (request(KEY + headers, data),))


def methods():
    """Methods that have no key, or no body."""
    for method in (b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"PATCH", b"TRACE", b"FOO"):
        heads = (0, 1) if method == b"HEAD" else ()
        name = method.decode()
        yield Case(f"{name} with a key", (request(KEY, method=method),) * 2, heads)
        body = sized(KEY, SMUGGLED, method=method)
        yield Case(f"{name} with a key and a body", (body,), heads[:1])
        body = request(KEY + CHUNKED, chunk(SMUGGLED) + LAST, method=method)
        yield Case(f"{name} with a key and chunks", (body,), heads[:1])
    yield Case("CONNECT with a key", (request(KEY, path=b"test:80", method=b"CONNECT"),))
    yield Case("OPTIONS of everything", (request(KEY, path=b"*", method=b"OPTIONS"),))
    url = b"http://other/TTTT/a"
    yield Case("an absolute URL", (sized(KEY, SMUGGLED, path=url),))
    yield Case("a path with dots", (sized(KEY, SMUGGLED, path=b"/x/../TTTT/a"),))
    yield Case("a path with a fragment", (sized(KEY, SMUGGLED, path=b"/TTTT/a#b"),))
    yield Case("a path with an escaped end", (sized(KEY, SMUGGLED, path=b"/TTTT/%0d%0aa"),))
    for version in (b"1.0", b"1.2", b"2.0", b"0.9", b"3"):
        name = f"HTTP/{version.decode()}"
        yield Case(f"{name} with a key", (sized(KEY, SMUGGLED, version=version),))
        keep = b"Connection: keep-alive\r\n" + KEY
        yield Case(f"{name} that stays", (sized(keep, SMUGGLED, version=version),))
    yield Case("HTTP/0.9", (b"POST /TTTT/a\r\n",))
    yield Case("lines before a request", (b"\r\n\r\n" + sized(KEY, SMUGGLED),))
    yield Case("only LF", (sized(KEY, SMUGGLED).replace(b"\r\n", b"\n", 4),))
    yield Case("no host", (sized(KEY, SMUGGLED).replace(HOST, b""),))
    yield Case("two hosts", (sized(KEY + HOST, SMUGGLED),))
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    yield Case("an upgrade with a key", (request(KEY + upgrade),))
    yield Case("an upgrade without a key", (request(upgrade),))
    close = b"Connection: close\r\n"
    yield Case("a key and close", (sized(KEY + close, SMUGGLED),))
    yield Case("a doubled key and close", (sized(KEY + KEY + close, SMUGGLED),))
    hop = b"Connection: Idempotency-Key\r\n"
    yield Case("a key that ends with the hop", (sized(KEY + hop, SMUGGLED),))
    yield Case("a key that claims a replay", (sized(KEY + b"Idempotent-Replayed: true\r\n", DATA),))


# What a request with a key may end in: name, path.
ENDS = (
    ("the service refuses", b"/refused/TTTT/a"),
    ("the service leaves", b"/TTTT/drop"),
    ("the service breaks off", b"/TTTT/cut"),
    ("the service breaks off in chunks", b"/TTTT/cut-chunks"),
    ("the service talks nonsense", b"/TTTT/nonsense"),
    ("the service answers early", b"/TTTT/early"),
    ("the service says 503", b"/TTTT/status-503"),
    ("the service says 500", b"/TTTT/status-500"),
    ("the service says 204", b"/TTTT/status-204"),
    ("the service says 304", b"/TTTT/status-304"),
    ("the service closes", b"/TTTT/close"),
    ("the service answers in chunks", b"/TTTT/chunks"),
    ("the body is too large", b"/small/TTTT/a"),
    ("the store is away", b"/away/TTTT/a"),
    ("the answer is not kept", b"/short/TTTT/large"),
    ("there is nothing there", b"/nowhere/TTTT/a"),
    ("it is sent elsewhere", b"/elsewhere/TTTT/a"),
)


def ends():
    """Whatever becomes of a request with a key: the next one is found, and a duplicate
    too, on the same connection."""
    body = SMUGGLED * 20
    for name, path in ENDS:
        first = sized(KEY, body, path=path)
        yield Case(f"{name}, with a length", (first,))
        yield Case(f"{name}, in chunks", (request(KEY + CHUNKED, chunk(body) + LAST, path=path),))
        yield Case(f"{name}, twice in one packet", (first * 2,))
        yield Case(f"{name}, twice, the body late", (first + first[:-50], first[-50:]))
        yield Case(f"{name}, no key", (sized(b"", body, path=path),))
    other = sized(KEY, b"another body")
    first = sized(KEY, SMUGGLED)
    yield Case("another body with the same key", (first + other,))
    yield Case("another body with the same key, late", (first, other[:-5], other[-5:]))
    chunks = request(KEY + CHUNKED, chunk(SMUGGLED) + LAST)
    yield Case("the same body in chunks", (first + chunks,))
    slow = sized(KEY, SMUGGLED, path=b"/TTTT/slow")
    yield Case("a duplicate behind slow work", (slow + slow,))
    for count in (5, 50):
        yield Case(f"{count} duplicates in one packet", (first * count,))
    many = b"".join(
        sized(KEY.replace(b"k-", b"%d-" % n) * (1 + n % 2), SMUGGLED) for n in range(20)
    )
    yield Case("good and doubled keys in turn", (many,))


def expectations():
    """Clients that wait for a word before they send a body."""
    wait = b"Expect: 100-continue\r\n"
    for name, header in (("no key", b""), ("a key", KEY), ("two keys", KEY + KEY)):
        whole = sized(header + wait, SMUGGLED)
        head = whole[: -len(SMUGGLED)]
        yield Case(f"100-continue, {name}", (head, SMUGGLED))
        yield Case(f"100-continue without a pause, {name}", (whole,))
        yield Case(f"100-continue, {name}, then nothing", (head,), gone=True)
        yield Case(f"100-continue, {name}, half a body", (head, SMUGGLED[:20]), gone=True)
        chunks = request(header + wait + CHUNKED)
        yield Case(f"100-continue in chunks, {name}", (chunks, chunk(SMUGGLED) + LAST))
        odd = request(header + b"Expect: 200-ok\r\n" + N, DATA)
        yield Case(f"another expectation, {name}", (odd,))
        early = sized(header + wait, SMUGGLED, path=b"/required/TTTT/a")
        yield Case(f"100-continue where a key must be, {name}", (early[: -len(SMUGGLED)], SMUGGLED))
        large = sized(header + wait, SMUGGLED * 20, path=b"/small/TTTT/a")
        head = large[: large.index(b"\r\n\r\n") + 4]
        yield Case(f"100-continue of too much, {name}", (head, large[len(head) :]))


def departures():
    """Clients that go in the middle: nothing of what they sent is a request."""
    whole = sized(KEY, SMUGGLED)
    for part in range(1, 10):
        cut = len(whole) * part // 10
        yield Case(f"gone after {part} tenths", (whole[:cut],), gone=True)
    chunks = request(KEY + CHUNKED, chunk(SMUGGLED[:30]) + chunk(SMUGGLED[30:]) + LAST)
    for part in range(5, 10):
        cut = len(chunks) * part // 10
        yield Case(f"gone after {part} tenths of chunks", (chunks[:cut],), gone=True)
    for size in (1, 7):
        pieces = tuple(whole[n : n + size * 40] for n in range(0, len(whole), size * 40))
        yield Case(f"in pieces of {size * 40}", pieces)


def cases():
    """All of them."""
    found = []
    for make in keys, frames, methods, ends, expectations, departures:
        found += make()
    return found
