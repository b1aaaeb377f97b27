"""Inputs that a person can think of, to start the fuzz targets with."""

import base64
import hashlib
import json
import os
import struct

NOW = 1_700_000_000_000
NEVER = 2**63 - 1
FIELDS = {"owner": 1, "fingerprint": 2, "content_type": 3, "meta": 4}
FIELDS.update(error=5, note=6)


def u32(n):
    return struct.pack(">I", n)


def u64(n):
    return struct.pack(">Q", n)


def past(end, fence, owner=b""):
    return bytes([end]) + u64(fence) + u64(NOW) + u64(NOW + 1) + owner


def head(status=1, policy=1, flags=0, fence=NOW, attempts=1, **more):
    """The head of a record without its checksum; "contract/store.h" draws it."""
    result, request = more.pop("result", b""), more.pop("input", b"")
    history, unknown = more.pop("history", ()), more.pop("unknown", b"")
    fields = b""
    for name, tag in FIELDS.items():
        if name in more:
            fields += bytes([tag]) + u32(len(more[name])) + more[name]
    for entry in history:
        fields += b"\x07" + u32(len(entry)) + entry
    fields += unknown
    times = [NOW, NOW, 60000, NOW + 60000, 5_060_000, 0]
    times += [0 if status == 1 else NOW + 5, NEVER, 86_400_000, 0]

    def digest(body):
        return hashlib.sha256(body).digest()[:16] if body else bytes(16)

    return b"".join(
        [
            b"IDR1\x01",
            bytes([status, policy, flags]),
            u64(fence),
            u32(attempts),
            u32(len(fields)),
            *(u64(ms) for ms in times),
            b"n" * 16,
            b"B" * 16,
            digest(result),
            digest(request),
            u64(len(result)),
            u64(len(request)),
            fields,
        ]
    )


HEADS = [
    head(),
    head(policy=2, owner=b"host/1", fingerprint=b"\x01" + b"f" * 32),
    head(2, result=b"done", content_type=b"text/plain", meta=b"exit 0\n"),
    head(2, flags=1, input=b"request"),
    head(3, error=b"card refused", note=b"", flags=2),
    head(4, note=b"the lease ended", flags=2, attempts=5),
    head(5, history=[past(1, NOW - 1), past(2, 41, b"host/2"), past(3, 40, b"ann")]),
    head(history=[past(2, n) for n in range(8, 0, -1)], unknown=b"\x08\0\0\0\1x"),
    head(unknown=b"\x80\0\0\0\0"),
    head(fence=NEVER, attempts=2**32 - 1),
]


def record():
    for body in HEADS:
        yield b"\x03" + body
        yield b"\x01" + body
        signed = hashlib.sha256(b"the id of no key in particular." + b"\0" + body)
        yield b"\x00" + body + signed.digest()[:16]
    yield b"\x04"
    yield b"\x04" + bytes(range(256)) * 4


def token_body(scope, key, fence):
    body = bytes([len(scope)]) + scope + bytes([len(key)]) + key
    return body + b"n" * 16 + u64(fence)


def token():
    for scope, key, fence in (b"", b"k", 1), (b"shop", b"order-42", NOW):
        body = token_body(scope, key, fence)
        yield b"\x01" + bytes([len(body)]) + body
        signed = body + hashlib.sha256(body).digest()[:4]
        yield b"\x00idem1." + base64.urlsafe_b64encode(signed).rstrip(b"=")
        yield b"\x02" + bytes([len(scope)]) + scope + bytes([len(key)]) + key
    yield b"\x02\x03abc\x03def" + u64(7) + b"n" * 16 + u64(9)


def line(key, body, **more):
    text = {"scope": "", "key": key, **more}
    identity = hashlib.sha256(b"idem1" + u64(0) + u64(len(key)) + key.encode())
    signed = body + hashlib.sha256(identity.digest() + body).digest()[:16]
    text["head"] = base64.b64encode(signed).decode()
    return json.dumps(text).encode()


def transfer():
    first = b'{"idem_export":1,"exported_ms":1700000000000,"store":"memory:"}\n'
    done = base64.b64encode(b"done").decode()
    yield b"\x00\x00" + first
    for body in HEADS:
        yield b"\x00\x00" + first + line("k", body) + b"\n"
    yield b"\x00\x00" + line("k", HEADS[2], result=done, status="completed")
    yield b"\x00\x00" + line("k", HEADS[2], result=done, status="failed")
    yield b"\x00\x00" + line("k", HEADS[0], expires_ms=None) + b"\n\n{}\n[]"
    yield b"\x00\x00" + line("k", HEADS[0]) + b"\0x\n"
    yield b"\x00\x01" + b"x" * 40 + b"\n" + b"x" * 41 + b"\n"
    yield b"\x01" + bytes(64)
    # Of a completed record with a result of 2,000 bytes, a character of the result is changed.
    completed = b"\0\0\1k\1" + bytes(19)
    yield b"\x01" + u64(1500) + b"\2" + completed + b"\xff\x06\xd1" + bytes(2000) + b"\0"


def values():
    texts = "0 1 2s 60000ms 5m 36500d never 12345678901234567890 75,111-113 0-255"
    texts += " 512 64k 8M 1G 17179869183G 18446744073709551616 1.5h +1 0x10 1e9"
    texts += " 213503982335d"  # 9.5 hours more than 2^64 ms.
    for kind in range(7):
        for text in texts.split():
            yield bytes([kind, 2, 5, 1]) + text.encode()
            yield bytes([kind, 0, 6, 0]) + text.encode()


def options():
    for lines in (
        ["-k", "order-42", "--", "true", "-x"],
        ["--key=order-42", "-aq", "one", "two"],
        ["--reason=", "--keep", "99", "--all", "-"],
        ["--key", "--", "a"],
        ["-aa"],
        ["--kee=1"],
        ["--ke=1"],
        ["--help"],
    ):
        for how in range(3):
            yield bytes([how]) + "\n".join(lines).encode()


def text():
    for sample in (
        b"order-42",
        b"it's",
        b"\\ \x1b[2J\xff",
        "é€😀".encode(),
        b"\xed\xa0\x80",
        b"--retentoin",
    ):
        for time in b"\x00\x02\x04\x07\x0d\x0e\x0f":
            yield bytes([9, time]) + sample


def url():
    for name in "a", "a?group=0", "a?mode=rw", ":memory:", "file:a", ".", "x" * 500:
        yield b"sqlite:" + name.encode()
    yield from (b"memory:", b"memory:x", b"dynamodb://t", b"", b"sqlite:/tmp/")


def frames():
    yield b"\x00\x01" + u32(5) + b"hello\x02" + u32(1) + b"!"
    yield b"\x00\x01" + u32(6) + b"hello"
    yield b"\x01\x04" + b"\x00\x05hello\x01\x01!\x00\x02ok"
    yield b"\x01\x02" + b"\x00\x05hello\x01\x01!\x00\x02ok" * 4
    for meta in b"exit 0\n", b"exit 255\n", b"exit 256\n", b"signal 9\n", b"exit 1":
        yield b"\x02" + meta


def channel():
    yield b"\x01\x01\x01\x00\x01\x05hello"
    yield b"\x00\x10\x01\x04\x05\x0ffour"
    yield b"\x00\x02\x01\x04\x03\x0ftw"
    yield b"\x00\x02\x01\x04\x20\x0ftoo much of it."


def status_report():
    for error in b"", b"no such store", b"/caf\xe9", "/café".encode():
        start = b"\x45\x01\x04shop\x08order-42\x01\x03\x01\x01\x04\x00\x00"
        yield start + u64(5) + u64(NOW) + u64(1) + b"\x01" + error


# Items of other libraries, by the number of their layout less one.
FOREIGN = [
    (
        0,
        {
            "id": {"S": "k"},
            "status": {"S": "COMPLETED"},
            "expiration": {"N": "1700003600"},
            "in_progress_expiration": {"N": "1700000060123"},
            "data": {"S": "[1, 2]"},
        },
    ),
    (
        1,
        {
            "id": {"S": "k"},
            "status": {"S": "COMPLETED"},
            "data": {"M": {"a": {"L": [{"N": "1.5"}, {"BOOL": True}, {"NULL": True}]}}},
        },
    ),
    (
        5,
        {
            "lockToken": {"S": "k"},
            "lockedBy": {"S": "host"},
            "created": {"S": "2024-04-27T14:02:40.123Z"},
            "actualCompletion": {"NULL": True},
            "status": {"S": "error"},
            "result": {"S": '"oh no"'},
            "ttl": {"N": "1714230160123"},
        },
    ),
    (
        6,
        {
            "idempotencyKey": {"S": "k"},
            "status": {"S": "IN_PROGRESS"},
            "expiryTimestamp": {"N": "1700003600"},
            "eventData": {"M": {"order": {"S": "o"}}},
        },
    ),
    (
        7,
        {
            "idempotencyKey": {"S": "k"},
            "status": {"S": "FAILED"},
            "expiry": {"N": "1700003600"},
            "lockExpiry": {"N": "1700000010"},
            "responsePayload": {"S": '{"statusCode": 500}'},
        },
    ),
]


def item():
    identity = hashlib.sha256(b"idem1" + u64(0) + u64(1) + b"k").digest()
    for body in HEADS:
        signed = body + hashlib.sha256(identity + body).digest()[:16]
        rec = base64.b64encode(signed).decode()
        text = {"id": {"S": identity.hex()}, "rec": {"B": rec}, "key": {"S": "k"}}
        yield b"\0" + json.dumps(text).encode()
        text.update(result={"B": base64.b64encode(b"done").decode()})
        yield b"\0" + json.dumps(text).encode()
        text.update(result_in={"S": "ab" * 16 + ":12:z"}, ttl={"N": "1"})
        yield b"\0" + json.dumps(text).encode()
    yield b"\1" + bytes(100)
    yield b"\0{}"
    yield b"\2\xc3\xa9\xed\xa0\x80"
    for number, text in FOREIGN:
        yield bytes([3, number]) + json.dumps(text).encode()


def journal():
    url, key = b"dynamodb://t?region=eu-west-1", b"order-42"
    ends = [(status, b"why", b"") for status in (3, 4, 5, 8)]
    for status, text, result in (2, b"why", b"done"), *ends, (4, b"x" * 4097, b""):
        fields = url, b"", key, b"text/plain", b"", text, result
        body = b"IDJ1\1" + bytes([status, 0, 0]) + u64(7) + b"n" * 16 + u64(600000) + u32(3)
        body += b"".join(u32(len(field)) for field in fields) + b"".join(fields)
        for how in 0, 1, 3:
            yield bytes([how]) + body + u64(NOW) + bytes(16)
    yield b"\4" + b"\x08memory:x\0\x01k" + bytes(52)


def aws():
    answer = b'{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"}'
    names = b"ConditionalCheckFailedException ThrottlingException ExpiredToken"
    names += b" ResourceNotFoundException AccessDeniedException Who"
    for name in names.split():
        for status in 1, 2, 5:
            yield bytes([0, status, 0, 0]) + answer % name
    yield b'\0\0\0\0{"Attributes":{}}'
    yield b"\0\1\0\x13ThrottlingException<html>"
    yield b"\1Sun, 06 Nov 1994 08:49:37 GMT"
    for time in b"23:59:60", b"24:00:00", b"08:60:37", b"08:49:61":
        yield b"\1Tue, 29 Feb 2000 %s GMT" % time
    yield b"\2\xc0" + u64(2 * 1795249440123)
    yield b"\3//idem?region=eu-west-1"
    yield b"\3//idem?endpoint=http://127.0.0.1:8000&index=off&clock=host"
    yield b"\3//idem?endpoint=https://[::1]:1/x%26y&region=cn-north-1&insecure=yes"
    yield b"\4" + bytes(range(200))


def credentials():
    yield b"\0[default]\nregion = eu-west-1 # here\n[profile x]\ns3 =\n  a = b\n"
    yield b"\0\xef\xbb\xbf; c\r\n[a]\r\nx = 1\r\n y\r\nx=2\r\n[ profile \"q r\" ] # d\r\n"
    yield b"\0[a]\nx\n"
    for time in "2026-11-21T15:04:05Z 2024-02-29T00:00:00.25+05:30".split():
        yield b"\1" + time.encode()
    for time in "59", "99":
        yield b"\0011999-12-31 23:59:" + time.encode() + b"-0030"
    keys = b'"AccessKeyId":"A","SecretAccessKey":"b/+=","Token":"t"'
    yield b"\2{" + keys + b',"Expiration":"2026-11-21T15:04:05Z","Code":"Success"}'
    yield b"\2{" + keys.replace(b"b", b"b\\u0000") + b"}"
    yield b"\3<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>b</SecretAccessKey>" \
        b"<SessionToken>t</SessionToken><Expiration>2026-11-21T15:04:05Z</Expiration></Credentials></R>"


def call(*numbers):
    return bytes(numbers)


RERUN, HOLD = 0b1, 0b0
MINUTE, LATER = call(9, 3, 0), call(9, 4, 0)


def life():
    begin, done = call(0, 0, 0, RERUN), call(3, 0, 0, 1)
    release = call(3, 0, 3, 1)
    yield begin + done + begin + call(15)
    yield call(0, 0, 0, HOLD) + MINUTE + LATER + begin + done
    # A takeover; then so many releases that the history is full.
    yield begin + LATER + begin + (release + begin) * 10
    yield begin + call(7, 0, 0) + begin + call(8, 0, 0, 1, 0) + call(6, 0, 2)
    yield begin + call(13, 0) + done + LATER + LATER + call(11) + call(14, 0) + begin
    yield begin + call(12, 0, 1) + call(3, 1, 1, 2) + call(8, 0, 0, 3, 0) + begin


def runner_death():
    for ran in 0, 1:
        yield bytes([1, 1, 2, 5, 1, 0, ran])
        yield bytes([2, 1, 2, 5, 0, 1, 2, 5, 1, 1, ran])
    yield bytes([0, 1, 1, 2, 1])


def base64_texts():
    yield from (b"", b"A", b"AA", b"AAA", b"AAAA", b"AA==", b"AAA=", b"-_+/")


def identity():
    yield b"\x00\x00\x06abcdef\x02\x03\x03\x02\x02\x04"
    yield b"\x00\x03key\x06abcdef\x02\x03\x03\x02\x02\x04"
    yield b"\x01\x05abcde\x02\x00\x03\x00"
    yield b"\x02\x00\x50" + b"x" * 80 + b"\x03\x10\x20\x05"


def file():
    yield b"\x00"
    yield b"\x01"
    for template in 0, 1:
        for log in 0, 1:
            for how in range(8):
                yield bytes([template, log, 0, 0x21, 7, how, 3, 1, 2, 3])
    for head in range(12):
        yield bytes([0, 0, 0, 0, 8 * head, 4 + 8 * head, head])
    for at in range(256):  # Each byte of one record, and of what follows it.
        yield bytes([0, 0, 0, 0, at, 4, at])


def decide():
    yield bytes(300)
    yield bytes(range(256)) * 2


def http():
    for key in b'"a\\"b\\\\c"', b" order-42 ", b"a, b", b'"a";p=1', b"k" * 256:
        yield b"\x00" + key
    for text in b"Location: /a\n", b"set-cookie: s\nETag: e\n", b"A: \r\n", b": b\n":
        yield b"\x01HTTP 201\n" + text
    for accept in b"gzip, br;q=0.5", b"*;q=0,x-gzip", b"identity;q=0.000, *":
        yield b"\x02\x04gzip\x02br" + accept


def outcome():
    exits = b"0,1=complete 42=fail 75=release *=retry", b"jobs none=fail", b"1-9=fail 3=retry"
    https = b"401,408,429,503=release 5xx=retry", b"422=fail webhook none=retry"
    errors = b"Declined=complete Exit.4*=fail 200-599,*=release", b"Exit*=fail Exit.4*=retry"
    for of, tables in enumerate((exits, https, errors)):
        for table in tables:
            yield bytes([of, 0]) + table


def reply():
    ok = b"HTTP/1.1 200 OK\r\n"
    end = b"Content-Length: 3\r\n\r\n"
    for longest in b"\x00\x03\xff":
        yield bytes([longest]) + ok + end + b"+{}"
    yield b"\xff" + ok + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n"
    yield b"\xff" + ok + b"x-amz-crc32: 12\r\nContent-Encoding: gzip\r\n" + end
    yield b"\xffHTTP/1.1 100 Go\r\nx-amz-crc32: 1\r\n\r\n" + ok + end
    yield b"\xff" + ok + b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" + end
    yield b"\xff" + ok + b"x-amzn-RequestId: A\r\nx-amzn-ErrorType: B\r\n" + end
    chunked = ok + b"Transfer-Encoding: chunked\r\n\r\n+{}\n"
    yield b"\xff" + chunked + b"x-amz-crc32: 1\r\nTransfer-Encoding: gzip\r\n"
    yield b"\xff" + chunked + b"HTTP/1.1 200 OK\r\n"


def sqs():
    digest = hashlib.md5(b"b").hexdigest()
    message = {"MessageId": "m", "ReceiptHandle": "r", "Body": "b"}
    message.update(MD5OfBody=digest, Attributes={"ApproximateReceiveCount": "2"})
    policy = {"deadLetterTargetArn": "arn:aws:sqs:r:1:d", "maxReceiveCount": 3}
    numbers = {"VisibilityTimeout": "30", "RedrivePolicy": json.dumps(policy)}
    failed = {"Id": "1", "Code": "InternalError", "SenderFault": False}
    batch = {"Successful": [{"Id": "0"}], "Failed": [failed]}
    for kind, answer in (
        (0, {"Messages": [message, message]}),
        (1, {"Attributes": numbers}),
        (2, {"QueueUrl": "http://h/1/q"}),
        (5, batch),
        (6, batch),
    ):
        yield bytes([kind]) + json.dumps(answer).encode()
    yield b"\x03receipt/\"\\\x00="


def lambda_events():
    folder = os.path.join(os.path.dirname(__file__), "..", "lambda", "events")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            event = f.read()
        yield b"\x14" + event
        yield b"\x14" + event.replace(b"order", b"fail")
        yield b"\x0c" + event  # As Kafka's, answered by item.
    yield b"\x14[]"
    yield b'\x06{"Records": []}'


def selectors():
    text = rb'{"a":[1,{"b":"x"}],"id":1.0,"s":"[2,\"y\"]","d":"aGk=","n":null,"S":"AB"}'
    for selector in (
        b".", b".a[1].b", b'."a"[-1]["b"]', b".n // .id, .s", b"[.a[0], (.s | fromjson)[1]]",
        b'"o/\\(.id)-\\(.S | ascii_downcase)" + .S', b"del(.a[0], .n, .x.y)", b".d | @base64d",
        b".id | tostring", b"[.a[].b?]", b"# c\n(.a, 1.5, true, [])",
        b".a | map(.b)", b"(.,.)|(.,.)|(.,.)|[.,.]|[.,.]", b".a[", b".a.b as $x", b"\"a",
    ):
        yield selector + b"\0" + text
    yield b'.\0"=x"'
    yield b'.body | fromjson | .id\0{"body": "{\\"id\\": 12345678901234567890}"}'


def json_texts():
    for text in (
        'null', ' true ', '"a\\u00e9\\ud83d\\ude00\\ud800"', '-0.0', '1e999', '[]', '{}',
        '[1, 1.0, -0, 1e21, 1e-7, 123456789012345678901234567890, [[null]]]',
        '{"b": 1, "a": {"10": 1, "9": 2, "A": 3, "__proto__": 4}, "\\u0000": "x"}',
        '{"a": 1, "b": 2, "a": 3}', '{"\\u0130": 1, "i\\u0307": 2, "\u03a3": 3}',
        '{"amount": 5, "currency": "EUR", "lines": [{"sku": "x", "n": 2}]}',
        '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u007f\\ue000"', '{"a\\u0000c": 1, "a\\u0000b": 2, "a": 3}',
    ):  # fmt: skip
        yield text.encode()


def ui():
    """What a browser sends, that of a stranger (the first bit is off) and of the person
    who is inside; and a part of a form without a name."""
    key, form = b"canary-in-the-store".hex(), "application/x-www-form-urlencoded"
    fields = f"s=&k={key}&fence=1&reason=x"
    part = '--XYZ\r\nContent-Disposition: form-data; filename="t"\r\n\r\nhello\r\n--XYZ--\r\n'

    def request(line, body=None, kind=form, *more):
        head = [line + " HTTP/1.1", "Host: 127.0.0.1:8400", *more]
        if body is not None:
            head += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        return "\r\n".join([*head, "", body or ""]).encode()

    paths = ("/", "/?show=overdue", "/style.css", "/record?s=&k=" + key, "/search?k=can", "/search?k=escaped:%5Cx41",
             "/%2e%2e/x")
    for text in (
        *(request("GET " + path) for path in paths),
        request("POST /login", "token=" + "0" * 32),
        request("POST /login", "token=%30+1&token=2", form + "; charset=utf-8", "Origin: http://127.0.0.1:8400"),
        request("POST /login", "token=x", form, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"),
        request("POST /resolve", fields + "&decision=complete&result=%0Ax"),
        request("POST /reopen", fields),
        *(request("POST " + path, part, "multipart/form-data; boundary=XYZ") for path in ("/x", "/login", "/resolve")),
        request("POST /login", "{}", "application/json"),
        request("PUT /", "x", form, "Expect: 100-continue"),
        request("POST /login", None, form, "Content-Type: " + form, "Transfer-Encoding: chunked")
        + b"6\r\ntoken=\r\n0\r\n\r\n",
    ):  # fmt: skip
        yield b"\x00\x00" + text
        yield b"\x80\x00" + text
        yield b"\x00\x40" + text
        yield b"\x80\xa0" + text


def serve():
    """The bytes of a client of idem serve, one message of each method, in small pieces and
    in large ones."""
    nonce = "00112233445566778899aabbccddeeff"
    folder = os.path.join(os.path.dirname(__file__), "..", "lambda", "events")
    lambda_samples = []
    for name in ("sqs-fifo.json", "kafka.json", "alb.json"):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            lambda_samples.append(json.load(f))

    def message(method, /, **params):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"

    begin = message("begin", key="k", nonce=nonce, lease_ms=None, fingerprint={"a": [1.5]})
    for text in (
        begin + message("complete", attempt=1, result={"json": {"a": [1, "\n"]}}) + message("show", key="k"),
        begin + message("begin", key="k", nonce=nonce, again=True) + message("cancel", id=1),
        begin + message("begin", key=["k", 1], nonce=nonce, wait_ms=5, wait_then_run=True, max_time_ms=1)
        + message("fail", attempt=1, text="no", result={"base64": "AA==", "content_type": "a/b"}),
        begin + message("retry", attempt=1, failures_max=1, retry_after_ms=5) + message("stats") + message("bye"),
        begin + message("unknown", attempt=1, text="x") + message("list", status="unknown", max=1, overdue=False)
        + message("resolve", key="k", fence="1", reason="r", status="completed", result={"not_kept": True}),
        message("begin", key="k", nonce=nonce, lease_ms=2000) + message("advance", ms=1500)
        + message("begin", key="k", nonce="f" * 32, wait_ms=5000, wait_then_run=True) + message("advance", ms=2000),
        begin + message("renew", attempt=1, lease_ms=2000) + message("release", attempt=1) + message("ping"),
        message("http.begin", method="POST", target="/a?b", headers=[["Idempotency-Key", "k"], ["Accept-Encoding", "gzip"],
            ["Content-Type", "application/json"]], body="e30=", scope="s", nonce=nonce, outcome="500=retry", wait_ms=5,
            replay_headers="Link") + message("http.end", attempt=1, http_status=201, headers=[["Location", "/1"]],
            body="AA==", replay_headers="Link", outcome="4xx=fail", retry_after_ms=5, failures_max=2)
        + message("http.begin", method="POST", target="/a?b", headers=[["Idempotency-Key", "k"]], body="e30=", nonce=nonce),
        b"".join(message(f"event.{of}", function="f", event=e, **more) for of, more in (("begin", {"request_id": "r"}),
            ("end", {"states": "dfw", "source": "sqs", "key_from": ".body"})) for e in lambda_samples),
        message("limit", name="n", subject="s", request="r", per_ms=1000, max=1, at_ms=1700000000000),
        message("hello", protocol=1, pid=7, owner="o", challenge="c") + message("reopen", key="k", fence="9", reason="r"),
        b'[]\n{}\n\n{"id":1,"id":2}\n"\xff"\n' + message("nothing") + message("begin", token="idem1.AA"),
    ):  # fmt: skip
        yield b"\x00" + text
        yield b"\xff" + text


def body():
    form = b"\x01b\x01c"
    for rest in (
        b"--b\r\nA: 1\r\n\r\none\r\n--b\r\n\r\n--b--\r\n",
        b"--b--",
        b"--b\r\n\r\r\n--\r\n--b--",
        b"--b\r\n\r\n--bb\r\n--b--",
        b"\r\n--b\r\n\r\n--b--",
        b"--b\r\n\r\n--b--\r\n--b--",
        b"--b\r\n\r\n--c\r\n--b\r\nx\r\n--b--",
    ):
        yield form + rest
    yield b"\x03b b\x01b--b b\r\n--b\r\n--b b--\r\n"


SEEDS = {
    "aws": aws,
    "base64": base64_texts,
    "body": body,
    "channel": channel,
    "credentials": credentials,
    "decide": decide,
    "file": file,
    "frames": frames,
    "http": http,
    "identity": identity,
    "item": item,
    "journal": journal,
    "json": json_texts,
    "lambda": lambda_events,
    "life": life,
    "runner_death": runner_death,
    "options": options,
    "outcome": outcome,
    "record": record,
    "reply": reply,
    "status_report": status_report,
    "selector": selectors,
    "serve": serve,
    "sqs": sqs,
    "text": text,
    "token": token,
    "transfer": transfer,
    "ui": ui,
    "url": url,
    "values": values,
}
