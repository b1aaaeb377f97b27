"""Key and fingerprint that selectors select from the request."""

import json

import selected
from nginx import ON, Nginx, Upstream, record
from tap import equal, main, test

KEY = "idempotency_key_from '.body.order';"
BODY = "idempotency_fingerprint_from '.body | del(.sent_at)';"


def send(nginx, path="/pay", headers=(), **body):
    return nginx.post(path, None, json.dumps(body).encode(), headers=headers)


@test
def the_selected_key_counts():
    """Two bodies with one order are one operation; its key is on record as it is."""
    with Upstream() as up, Nginx(up, http=ON + KEY + BODY) as nginx:
        first = send(nginx, order="o-1", amount=12, sent_at=1)
        equal((first.status, first.replayed), (201, False))
        again = send(nginx, order="o-1", amount=12, sent_at=2)
        equal((again.status, again.replayed), (201, True))
        equal(again.body, first.body)
        equal(send(nginx, order="o-1", amount=13).status, 422)
        equal(send(nginx, "/refund", order="o-1", amount=12).status, 422)
        equal(send(nginx, order="o-2", amount=12).replayed, False)
        equal(record(nginx, "o-1")["status"], "completed")
        equal(len(up.calls), 2)

        # The header is not looked at; numbers keep their digits.
        got = nginx.post("/pay", "k", b'{"order":12345678901234567890}')
        equal((got.status, got.replayed), (201, False))
        assert send(nginx, order=12345678901234567890).replayed
        equal(record(nginx, "12345678901234567890")["status"], "completed")


@test
def without_a_selector_the_body_counts():
    """As JSON; a selector of a fingerprint goes with a header's key, too."""
    with Upstream() as up, Nginx(up, http=ON + KEY) as nginx:
        equal(send(nginx, order="o", sent_at=1).status, 201)
        equal(send(nginx, order="o", sent_at=2).status, 422)
        assert send(nginx, sent_at=1, order="o").replayed
    with Upstream() as up, Nginx(up, http=ON + BODY) as nginx:
        equal(nginx.post("/pay", "k", b'{"a":1,"sent_at":1}').status, 201)
        assert nginx.post("/pay", "k", b'{ "a":1, "sent_at":2 }').replayed
        assert nginx.post("/pay", "k", b'{"a":1.0}').replayed
        equal(nginx.post("/pay", "k", b'{"a":2,"sent_at":1}').status, 422)
        equal(nginx.post("/pay", None, b'{"a":2}').replayed, False)


@test
def every_part_of_a_request_can_be_the_key():
    """Method, path, query, headers, and a body that is no JSON."""
    selector = '"\\(.method)|\\(.path)|\\(.query.a)|\\(.headers["x-id"])|\\(.body)"'
    selector = selector.replace("\\", "\\\\")
    conf = ON + f"idempotency_key_from '{selector}';"
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        got = nginx.post("/p%20q?a=1%2b&b=2", None, b"a=1", headers=[("X-Id", "7")])
        equal(got.status, 201)
        equal(record(nginx, "POST|/p%20q|1+|7|a=1")["status"], "completed")


@test
def what_lacks_a_key_is_refused():
    """400 with what to mend, and nothing is executed; no byte of the request is in
    the answer, and the log names the selector and what it lacks."""
    with Upstream() as up, Nginx(up, http=ON + KEY + BODY) as nginx:
        for body in (b"{}", b'{"order":null}', b"", b"text", b"\xff\xfe", b'{"order":""}',
                     b'{"order":"a","order":"b"}', b'{"order":"a"'):  # fmt: skip
            got = nginx.post("/pay", None, body)
            equal((body[:20], got.status, got.problem), (body[:20], 400, "key-not-selected"))
        got = send(nginx, order="o" * 255)
        equal(got.status, 201)
        equal(len(up.calls), 1)
        assert "idempotency_key_from .body.order: it selects null" in nginx.errors()
        assert "a text has no member" in nginx.errors()
    lacks = ON + "idempotency_key_from .body.order; idempotency_fingerprint_from .body.a;"
    with Upstream() as up, Nginx(up, http=lacks) as nginx:
        got = send(nginx, order="o")
        equal((got.status, got.problem), (400, "fingerprint-not-selected"))
        equal(send(nginx, order="o", a=1).status, 201)
        got = nginx.post("/pay", None, b'{"order":"o","a":1}', headers=[("Upgrade", "x")])
        equal((got.status, got.problem), (400, "upgrade"))


@test
def bodies_of_every_size():
    """In memory, in a file, above the limit of the location and of a selector; bytes that
    are no text do not matter where the body is not selected."""
    http = ON + KEY + "client_body_buffer_size 16k; idempotency_max_request 64m;"
    with Upstream() as up, Nginx(up, http=http) as nginx:
        for size in 1, 10_000, 100_000, 3_000_000:
            got = send(nginx, order=f"o-{size}", more="m" * size)
            equal((size, got.status), (size, 201))
            assert send(nginx, order=f"o-{size}", more="m" * size).replayed
        got = send(nginx, order="o", more="m" * 17_000_000)
        equal((got.status, got.problem), (413, "request-too-large"))
        equal(len(up.calls), 4)
    with Upstream() as up, Nginx(up, http=ON + "idempotency_fingerprint_from .method;"
                                 "idempotency_max_request 64m;") as nginx:
        for body in bytes(5_000_000), b"\xff" * 5_000_000:
            got = nginx.post("/pay", f"zeros-{body[0]}", body)
            equal((got.status, got.problem), (201, None))


@test
def a_bad_selector_is_an_error_of_the_configuration():
    """nginx -t names file and line, the directive and the place."""
    with Upstream() as up:
        nginx = Nginx(up)
        for conf, *words in (
            ("idempotency_key_from '.a +';", '"idempotency_key_from": not a selector, at byte 5'),
            ("idempotency_fingerprint_from 'nix';", '"nix" is not part of it'),
            ("idempotency_key_from . timeout=1s;", "invalid number of arguments"),
            ("idempotency_key_from .; idempotency_key_from .;", "is duplicate"),
            ("idempotency_key X-Key; idempotency_key_from .;", "cannot be combined with"),
            ("idempotency_key_from .; idempotency_key X-Key;", "cannot be combined with"),
            ("idempotency_fingerprint off; idempotency_fingerprint_from .;",
             'cannot be combined with "idempotency_fingerprint off"'),
            ("idempotency_fingerprint_from .; idempotency_fingerprint off;",
             'off cannot be combined with "idempotency_fingerprint_from"'),
        ):  # fmt: skip
            got = nginx.check(http=ON + conf)
            equal((conf, got.status), (conf, 1))
            for word in (*words, "nginx.conf:"):
                assert word in got.stderr.decode(), got.stderr
        got = nginx.check(
            http=ON + KEY + BODY,
            location="idempotency_key X-Key; idempotency_fingerprint off;",
        )
        equal((got.status, got.stderr), (0, got.stderr))


@test
def an_inner_level_decides():
    """A location with a header of its own, or off, leaves the selector of the server."""
    server = "location /own { idempotency_key X-Key; proxy_pass http://app; }"
    server += "location /off { idempotency_key_from off; proxy_pass http://app; }"
    with Upstream() as up, Nginx(up, http=ON + KEY, server=server) as nginx:
        for path, header in ("/own", "X-Key"), ("/off", "Idempotency-Key"):
            equal(send(nginx, path).status, 201)
            for replayed in False, True:
                got = send(nginx, path, [(header, path)])
                equal((path, got.status, got.replayed), (path, 201, replayed))
        equal(send(nginx).problem, "key-not-selected")


@test
def each_key_is_that_of_all_front_ends():
    """Numbers keep their digits, what means the same is one key, and what is no key is
    refused."""
    cases = [*selected.KEYS, *((s, t, None) for s, t in selected.REFUSED)]
    server = "".join(
        f"location /{n} {{ idempotency_key_from '{escaped(selected.of(s, '.body'))}';"
        " idempotency_fingerprint off; proxy_pass http://app; }"
        for n, (s, _, _) in enumerate(cases)
    )
    with Upstream() as up, Nginx(up, http=ON, server=server) as nginx:
        for n, (selector, texts, key) in enumerate(cases):
            for text in texts:
                got = nginx.post(f"/{n}", None, text.encode())
                if key is None:
                    equal((selector, text, got.status, got.problem),
                          (selector, text, 400, "key-not-selected"))
                else:
                    equal((selector, text, got.status), (selector, text, 201))
                    equal(record(nginx, key)["status"], "completed")
        equal(len(up.calls), len({key for _, _, key in selected.KEYS}))


def escaped(selector):
    """As a word of nginx in quotation marks."""
    return selector.replace("\\", "\\\\")


@test
def the_header_is_the_key_that_the_grammar_reads():
    """Quoted or not, sent once or twice: one key, and one execution; two that differ, or
    a list, are refused before anything is selected."""
    conf = ON + """idempotency_key_from '.headers["idempotency-key"] // .body.order';"""
    with Upstream() as up, Nginx(up, http=conf) as nginx:
        name = "Idempotency-Key"
        for sent in [(name, "pay-1")], [(name.lower(), '"pay-1"')], [(name, "pay-1")] * 2, \
                [(name, ' "pay-1" '), ("IDEMPOTENCY-KEY", "pay-1")]:  # fmt: skip
            equal((sent, nginx.post("/pay", None, b"{}", headers=sent).status), (sent, 201))
        equal((len(up.calls), record(nginx, "pay-1")["status"]), (1, "completed"))
        for sent in [(name, "a"), (name, "b")], [(name, "a, b")], [(name, '"a"; b=1')], [(name, "")]:
            got = nginx.post("/pay", None, b'{"order":1}', headers=sent)
            equal((sent, got.status, got.problem), (sent, 400, "key-not-selected"))
        assert "two Idempotency-Keys that differ" in nginx.errors()
        equal(send(nginx, order="o-1").status, 201)
        equal(len(up.calls), 2)


@test
def many_at_once():
    """64 connections: each gets its own key, and nobody is refused."""
    body = b'{"order":"o-%d","sent_at":%d}'
    requests = [("/pay", None, body % (i % 320, i)) for i in range(640)]
    with Upstream() as up, Nginx(up, http=ON + KEY + BODY) as nginx:
        answers = nginx.many(requests, threads=64)
        equal({getattr(a, "status", a) for a in answers} - {201, 409}, set())
        for i in range(320):
            got = send(nginx, order=f"o-{i}", sent_at=-i)
            assert got.replayed and b"o-%d\"" % i in got.body, got
        equal(len(up.calls), 320)


main()
