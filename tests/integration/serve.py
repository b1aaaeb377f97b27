"""idem serve: one door for every language. A stand-in for a client speaks to it, and is
killed, stopped and cut off; so is the server."""

import base64
import contextlib
import fcntl
import json
import os
import pty
import random
import re
import resource
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import time

import dynamo
import box
import postgres
from box import case, contains, is_gone
from files import read
from kept import kept
from patience import in_time, until
from procfs import own_kb, stop
from procfs import status as status_of
import serve_client
from serve_client import PATIENCE, Client, Refused
from tap import LONG, PROGRAM, TOP, equal, environment, main, note, skip, start

HOLD = {"on_expired_lease": "hold", "lease_ms": 600000}
RERUN = {"on_expired_lease": "rerun", "lease_ms": 600000}


def env_of(b, **more):
    return environment({
        "IDEM_STORE": b.idem.store, "IDEM_PROGRAM": PROGRAM, "HOME": b.path,
        "IDEM_AUDIT_LOG": b.file("audit.log"), "IDEM_JOURNAL_DIR": b.file("journal"), **more,
    })


@contextlib.contextmanager
def client(b, *args, greet=True, **more):
    """The child of this process, as a client has it."""
    c = Client.start(*args, program=PROGRAM, env=env_of(b), cwd=b.path, **more)
    try:
        if greet:
            c.hello(pid=os.getpid())
        yield c
    finally:
        if c.process.poll() is None:
            c.process.kill()
        c.close()


@contextlib.contextmanager
def server(b, *args):
    """A server at a socket, and its path."""
    path = b.file("idem.sock")
    process = b.start("serve", "--socket", path, *args)
    until(lambda: os.path.exists(path), "it listens")
    until(lambda: _connects(path), "it listens")
    yield path, process
    process.terminate()
    equal(process.wait(PATIENCE), 0)
    assert not os.path.exists(path)


def _connects(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return True
    return False


def connected(path):
    c = Client.connect(path)
    c.hello()
    return c


class Worker(box.Worker):
    """A process that has a client of its own: serve_client.work()."""

    def __init__(self, b, *args):
        super().__init__(b, [sys.executable, serve_client.__file__, *args], env_of(b))

    def says(self, word):
        """What it says after @word, or None at its end."""
        for line in self.process.stdout:
            first, _, rest = line.decode().strip().partition(" ")
            if first == word:
                return rest
        return None


def refusal(call, *args, **params):
    try:
        got = call(*args, **params)
    except Refused as error:
        return error.args[0]
    raise AssertionError(f"not refused: {got}")


def verdict(c, key, **params):
    got = c.begin(key, **params)
    return got["verdict"]


# ---- The verbs ---------------------------------------------------------------


@case
def one_key_is_done_once(b):
    """begin, renew, complete and a replay; JSON that means the same is the same request;
    the record is that of idem show, and the key of a list that of a selector."""
    with client(b) as c:
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        got = c.begin("k", fingerprint={"a": [1, 2.0], "b": None}, traceparent=trace, **HOLD)
        equal(b.record("k")["traceparent"], trace)
        equal((got["verdict"], got["attempts"], got["takeover"]), ("STARTED", 1, False))
        assert 590000 < c("renew", attempt=got["attempt"])["lease_left_ms"] <= 600000
        equal(verdict(c, "k"), "BUSY")
        equal(verdict(c, "k", fingerprint={"b": None, "a": [1e0, 2]}), "BUSY")
        equal(verdict(c, "k", fingerprint={"a": [1, 2]}), "MISMATCH")
        done = {"json": {"charge": 42, "big": 12345678901234567890}, "meta": "HTTP 201\n"}
        equal(c("complete", attempt=got["attempt"], result=done), {"status": "completed"})
        again = c.begin("k")
        equal(again["verdict"], "REPLAY")
        equal((again["result"]["json"], again["result"]["meta"]), (done["json"], "HTTP 201\n"))
        equal(again["record"], b.record("k"))
        equal(again["record"]["fence"], int(got["fence"]))
        equal(verdict(c, ["t1", 42, True]), "STARTED")
        assert b.record('=["t1","42","true"]'), "the key of a list"
        equal(refusal(c, "show", key="none")["data"], {"name": "IDEM_ENOTFOUND", "kind": "caller"})


@case
def every_ending(b):
    """Each end does what its verb says, by the number of the attempt or by its token."""
    with client(b) as c:
        for by in ("attempt", "token"):
            for verb, params, status in (
                ("complete", {"result": {"text": "t"}}, "completed"),
                ("fail", {"text": "no money"}, "failed"),
                ("release", {"text": "nothing was sent"}, "released"),
                ("retry", {"text": "again"}, "retry"),
                ("retry", {"failures_max": 1}, "failed"),
                ("unknown", {"text": "cut off"}, "unknown"),
            ):
                key = f"{by}-{verb}-{status}"
                got = c.begin(key)
                equal(c(verb, **{by: got[by]}, **params)["status"], status)
                equal(b.record(key)["status"], status)
                lost = refusal(c, "complete", token=got["token"], result={"text": "other"})
                equal((lost["code"], lost["data"]["name"]), (-32004, "IDEM_ELOST"))
                equal(refusal(c, "complete", attempt=got.get("attempt"))["data"]["member"], "attempt")
        got = c.begin("later")
        c("retry", attempt=got["attempt"], retry_after_ms=600000)
        equal(verdict(c, "later"), "BUSY")
        equal(c("bye"), {})
        equal(c.process.wait(PATIENCE), 0)


@case
def results_come_back_as_they_were(b):
    """Text, JSON with its line ends, and bytes; what no line could hold is a tombstone."""
    results = {
        "text": {"text": "häh\n\"\\\u0001"},
        "json": {"json": [1.50, {"n": None}, "\u2028"]},
        "null": {"json": None},
        "bytes": {"base64": "AP/+", "content_type": "image/png"},
    }
    with client(b) as c:
        for key, result in results.items():
            c("complete", attempt=c.begin(key)["attempt"], result=result)
            back = c.begin(key)["result"]
            equal({name: back[name] for name in result}, result)
        got = c.begin("spaced")
        c("complete", attempt=got["attempt"],
          result={"text": "[1,\r\n 2]", "content_type": "application/json; charset=utf-8"})
        equal(c.begin("spaced")["result"]["json"], [1, 2])
        got = c.begin("long")
        answer = c("complete", attempt=got["attempt"], result={"text": "x" * ((16 << 20) + 1)})
        equal(answer, {"status": "completed", "not_kept": True})
        equal(c.begin("long")["result"]["not_kept"], True)
        got = c.begin("longest")
        c("complete", attempt=got["attempt"], result={"text": "x" * (16 << 20)})
        equal(len(c.begin("longest")["result"]["text"]), 16 << 20)


@case
def lists_counts_and_limits(b):
    """list goes on where a page ended, stats counts, and limit counts a request once."""
    with client(b) as c:
        for n in range(5):
            got = c.begin(f"k{n}", scope="s" if n < 3 else "t")
            if n != 4:
                c("complete", attempt=got["attempt"])
        page = c("list", scope="s", max=2)
        rest = c("list", scope="s", max=2, place=page["place"])
        keys = {r["key"] for r in page["records"] + rest["records"]}
        equal((len(page["records"]), keys, rest["done"]), (2, {"k0", "k1", "k2"}, True))
        equal([r["key"] for r in c("list", status="in_progress")["records"]], ["k4"])
        equal((c("stats")["started"], c("stats")["completed"]), (5, 4))
        limit = {"name": "up", "subject": "u", "per_ms": 86400000, "max": 2}
        got = [c("limit", request=r, **limit)["admitted"] for r in ("a", "b", "a", "c")]
        equal(got, [True, True, True, False])


@case
def a_person_decides_where_it_is_allowed(b):
    """resolve and reopen need --operator, and are in the audit log."""
    with client(b) as c:
        got = c.begin("k", **HOLD)
        c("unknown", attempt=got["attempt"])
        equal(refusal(c, "resolve", key="k", fence=got["fence"])["code"], -32601)
    with client(b, "--operator") as c:
        done = {"status": "completed", "reason": "seen at the bank", "result": {"text": "paid"}}
        equal(c("resolve", key="k", fence=got["fence"], who="ann", **done)["status"], "completed")
        equal(c.begin("k")["result"]["text"], "paid")
        refusal(c, "reopen", key="k", fence="1", reason="stale")
        c("reopen", key="k", fence=c("show", key="k")["fence"], reason="again")
        equal(c.begin("k")["takeover"], True)
    lines = [json.loads(line) for line in b.read("audit.log").splitlines()]
    equal([x["event"] for x in lines if x["answer"] == "OK"], ["resolve", "reopen"])
    equal(lines[0]["who"], "ann")


# ---- What is refused ---------------------------------------------------------

BAD = [
    (b"", -32700), (b"{", -32700), (b"nonsense", -32700), (b'{"id":1}{', -32700),
    (b'"\xff"', -32700), (b"\xef\xbb\xbf{}", -32700), (b"[" * 300, -32700),
    (b"[]", -32600), (b"7", -32600), (b"{}", -32600),
    (b'{"id":1,"id":2}', -32600), (b'{"jsonrpc":"2.0","method":"ping"}', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 200 + b'","method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"begin"}', -32602),
]


@case
def a_line_that_is_wrong_is_refused_and_the_next_is_not(b):
    """Each has its code, an id where it could be read, and harms nobody."""
    with client(b, greet=False) as c:
        c.raw(b'{"jsonrpc":"2.0","id":"a","method":"ping"}\n')
        first = json.loads(c.line())
        equal((first["id"], first["error"]["code"]), ("a", -32600))
        c.hello()
        for line, code in BAD:
            c.raw(line + b"\n")
            equal((line, json.loads(c.line())["error"]["code"]), (line, code))
        for size, code in (((24 << 20) - 60, None), ((24 << 20) + 1, -32700)):
            c.raw(b'{"jsonrpc":"2.0","id":"long","method":"ping"' + b" " * (size - 45) + b"}\n")
            equal(json.loads(c.line()).get("error", {}).get("code"), code)
        depth = int(re.search(r"to a depth of (\d+)", RPC["info"]["description"])[1])
        contains(PAGE, f"JSON to a depth of {depth}")
        for deep, code in ((depth - 2, -32602), (depth - 1, -32700)):  # In two objects.
            c.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * deep + b"]" * deep + b"}}\n")
            equal(json.loads(c.line())["error"]["code"], code)
        c("ping")


@case
def lines_of_noise(b):
    """Lines that are cut, doubled and mixed are each answered once, in memory that does not
    grow."""
    rng = random.Random(7)
    seed = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "begin",
                       "params": {"key": ["a", 1], "nonce": "00" * 16, "fingerprint": {"a": 1e9}}}).encode()
    count = 100000 if LONG else 5000
    with client(b) as c:
        for n in range(count):
            if n == 1000:
                before = own_kb(c.process.pid)
            line = bytearray(seed)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(line))
                line[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3)).replace(b"\n", b"")
            c.raw(bytes(line) + b"\n")
            assert json.loads(c.line())["jsonrpc"] == "2.0"
        c("ping")
        after = own_kb(c.process.pid)
        note(f"{count} lines, {before} kB after the first 1000, {after} kB after all")
        assert after < before + 4096


# ---- The document ------------------------------------------------------------

with open(os.path.join(TOP, "docs/serve.json"), encoding="utf-8") as document:
    RPC = json.load(document)
PAGE = read(os.path.join(TOP, "man/idem-serve.1"))
METHODS = {m["name"]: m for m in RPC["methods"]}


@case
def the_document_has_what_the_program_takes(b):
    """Each method of docs/serve.json is there and takes the parameters that it has, each
    of which is refused by name where it is of another kind, and no other; what is
    required is missed."""
    source = read(os.path.join(TOP, "cli/serve/methods.c")).replace("\\\n", "")
    groups = dict(re.findall(r"#define (\w+)((?:\s*\"[^\"]*\")+)\n", source))
    for group, words in groups.items():
        source = re.sub(rf" {group}\b", lambda _, words=words: words, source)
    rows = re.findall(r'\{"([\w.]+)", serve_\w+, \w+, \w+,(.*?)\},\n', source, re.S)
    table = {name: "".join(re.findall(r'"(.*?)"', rest)).split() for name, rest in rows}
    named = {n: {"*" * p.get("required", False) + p["name"] for p in m["params"]}
             for n, m in METHODS.items()}
    equal({n: set(ps) for n, ps in table.items()}, named)
    with client(b, "--operator") as c:
        for name, method in METHODS.items():
            equal(refusal(c, name, nothing=1)["data"], {"member": "nothing"})
            whole = {p["name"]: sample(p["schema"]) for p in method["params"] if p.get("required")}
            for param in method["params"]:
                member, schema = param["name"], param["schema"]
                if schema:
                    bad = refusal(c, name, **{**whole, member: {"no": "such"}})
                    equal((name, bad["code"], bad["data"]["member"]), (name, -32602, member))
                if param.get("required"):
                    part = {k: v for k, v in whole.items() if k != member}
                    bad = refusal(c, name, **part)
                    equal((name, bad["code"], bad["data"]["member"]), (name, -32602, member))


def sample(schema):
    """Something that @schema takes."""
    if "$ref" in schema:
        schema = RPC["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return sample(schema["oneOf"][0])
    if "pattern" in schema:
        return secrets.token_hex(16)
    if not schema or "minimum" in schema:
        return schema.get("minimum", {})
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    return {"string": "1", "integer": 1000, "boolean": True, "array": []}[kind]


def check_schema(where, schema, value):
    """A small part of JSON Schema: what the document uses."""
    if "$ref" in schema:
        schema = RPC["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema or "enum" in schema:
        assert value in schema.get("enum", [schema.get("const")]), (where, value)
        return
    kinds = {"string": str, "boolean": bool, "integer": int, "null": type(None), "object": dict, "array": list}
    named = schema.get("type", [])
    named = [named] if isinstance(named, str) else named
    assert not named or type(value) in [kinds[n] for n in named], (where, value)
    if isinstance(value, dict) and "properties" in schema:
        missing = set(schema.get("required", [])) - set(value)
        more = set(value) - set(schema["properties"])
        assert not missing and not more, (where, missing, more)
        for name in value:
            check_schema(f"{where}.{name}", schema["properties"][name], value[name])
    for one in value if isinstance(value, list) else []:
        check_schema(where, schema.get("items", {}), one)


@case
def the_document_has_what_the_program_answers(b):
    """Each answer of a session has the members that docs/serve.json gives it."""
    seen = set()
    with client(b, "--operator") as c:

        def ask(method, /, **params):
            got = c(method, **params)
            check_schema(method, METHODS[method]["result"]["schema"], got)
            seen.add(method)
            return got

        def start(key, **params):
            return ask("begin", key=key, nonce=secrets.token_hex(16), **params)

        ask("hello", protocol=1)
        ask("ping")
        for verb in ("complete", "fail", "release", "retry", "unknown"):
            got = start(verb)
            start(verb)
            ask("renew", attempt=got["attempt"])
            ask(verb, attempt=got["attempt"])
            start(verb, wait_ms=1)
            ask("show", key=verb)
        start("endless", lease_ms=None)
        start("fail", fingerprint=1)
        ask("complete", token=start("more")["token"], result={"text": "x" * ((16 << 20) + 1)})
        start("more")
        ask("cancel", id=c.number)
        record = {"messageId": "1", "body": "b", "eventSource": "aws:sqs", "eventSourceARN": "arn:q"}
        batch = {"event": {"Records": [record, {**record, "body": "other"}]}, "function": "f"}
        equal([u.get("first") for u in ask("event.begin", **batch)["units"]], [None, 0])
        equal(ask("event.end", states="fd", **batch), {"batchItemFailures": [{"itemIdentifier": "1"}]})
        for event, states in ((batch["event"], "d"), ({}, "d"), (1, "")):
            equal(refusal(c, "event.end", event=event, function="f", states=states)["data"]["name"], "IDEM_EINVALID")
        for _ in range(2):
            request = {"method": "POST", "target": "/", "headers": [["Idempotency-Key", "k"]], "scope": "http"}
            got = ask("http.begin", nonce=secrets.token_hex(16), **request)
            if "attempt" in got:
                ask("http.end", attempt=got["attempt"], http_status=200, headers=[["Location", "/1"]])
        for _ in range(2):
            ask("limit", name="n", subject="s", request="r", per_ms=1000, max=1, at_ms=int(time.time() * 1000))
        ask("list")
        ask("stats")
        fence = ask("show", key="fail")["fence"]
        ask("resolve", key="fail", fence=fence, reason="r", status="released")
        ask("reopen", key="complete", fence=ask("show", key="complete")["fence"], reason="r")
        ask("recorded", attempt=start("recorded")["attempt"])
        equal(set(METHODS) - seen, {"advance", "bye", "statement"})
    with client(b) as c:
        equal(c("bye"), {})


@case
def effect_and_record_in_one_commit(b):
    """On PostgreSQL the statement completes an attempt in the client's own transaction, or
    not at all; the attempt stays until it is told of the commit. Other stores have none."""
    with client(b) as c:
        refused = refusal(c, "statement", attempt=c.begin("k")["attempt"])
        equal(refused["data"]["name"], "IDEM_EINVALID")
    postgres.need()
    with postgres.server() as database:
        equal(b("store", "create", "--store", database.url).status, 0)
        database.psql("CREATE TABLE ledger (n int)")
        with client(b, "--store", database.url) as c:
            number = c.begin("k", **RERUN)["attempt"]
            made = c("statement", attempt=number, result={"json": {"receipt": 42}})
            check_schema("statement", METHODS["statement"]["result"]["schema"], made)
            for end in "ROLLBACK", "COMMIT":
                equal((end, verdict(c, "k")), (end, "BUSY"))
                database.psql(f"BEGIN; INSERT INTO ledger VALUES (1); {postgres.literal(made)}; {end}")
            equal(c("recorded", attempt=number), {})
            equal(c.begin("k")["result"]["json"], {"receipt": 42})
            equal(database.psql("SELECT n FROM ledger"), ["1"])
            c("bye")


@case
def events_without_their_library(b):
    """Who hands over an event of Lambda is told what is missing; the server stays, and the
    attempts of others."""
    if not os.path.exists(os.path.join(os.path.dirname(PROGRAM), "libidem-aws.so.0")):
        skip("this program has the library inside")
    shutil.copy(PROGRAM, b.file("alone"))
    c = Client.start(program=b.file("alone"), env=env_of(b, LD_LIBRARY_PATH=None))
    c.hello()
    got = c.begin("k")
    refused = refusal(c, "event.begin", event={"Records": []}, function="f")
    equal(refused["data"]["name"], "IDEM_ECONFIG")
    contains(refused["message"], "apt install libidem-aws0")
    equal(c("complete", attempt=got["attempt"]), {"status": "completed"})
    equal(c.close(), 0)


@case
def requests_over_http(b):
    """What is not run has its whole answer; a store that is away, and a record that no line
    could hold, have one as well."""

    def ask(c, key, **more):
        params = {"method": "POST", "target": "/pay", "headers": [["Idempotency-Key", key]], "scope": "", **more}
        return c("http.begin", nonce=secrets.token_hex(16), **params)

    def problem(got):
        body = json.loads(base64.b64decode(got["answer"]["body"]))
        equal(body["status"], got["answer"]["status"])
        return body["type"].rpartition(":")[2]

    with client(b) as c:
        equal(problem(ask(c, "k", headers=[])), "key-missing")
        equal(problem(ask(c, "k", body=base64.b64encode(b"x" * ((16 << 20) + 1)).decode())), "request-too-large")
        equal(problem(ask(c, "k", scope=None)), "scope-missing")
        for member, value, text in (
            ("headers", [["a\n", "b"]], "its name and its value"), ("headers", [["a", "b", "c"]], "its name"),
            ("outcome", "4xx", "4xx"), ("replay_headers", "Set-Cookie", "never replayed"), ("body", "=", "base64"),
        ):  # fmt: skip
            bad = refusal(ask, c, "k", **{member: value})
            equal((bad["code"], bad["data"]), (-32602, {"member": member}))
            contains(bad["message"], text)
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        for key, n, kept in ("one trace", 1, trace), ("two traces", 2, None):
            heads = [["Idempotency-Key", f'"{key}"'], *[["Traceparent", trace]] * n]
            equal(ask(c, key, headers=heads)["verdict"], "STARTED")
            equal(b.record(key).get("traceparent"), kept)
        types = "multipart/form-data; boundary=a", "Multipart/Form-Data ; boundary=b", "multipart/form-data; boundary=c"
        body = "--{0}\r\nA: 1\r\n\r\none\r\n--{0}--\r\n"
        kinds = [[["Idempotency-Key", "m"], ["Content-Type", type_]] for type_ in types]
        bodies = [base64.b64encode(body.format(edge).encode()).decode() for edge in "abc"]
        got = ask(c, "m", headers=kinds[0], body=bodies[0])
        for i in 1, 2:
            equal(problem(ask(c, "m", headers=kinds[i], body=bodies[i])), "in-progress")
        end = {"attempt": got["attempt"], "headers": [], "http_status": 500, "outcome": "500=retry"}
        equal(c("http.end", retry_after_ms=1, failures_max=1, **end), {"status": "failed"})
        equal(problem(ask(c, "m", headers=kinds[0], body=bodies[0])), "failed")
        c("unknown", attempt=c.begin("big")["attempt"])
        b.write("result", "x" * 17000000)
        equal(b("resolve", "big", "--complete", "@result", "--reason", "r").status, 0)
        equal(problem(ask(c, "big")), "response-not-kept")
        got = ask(c, "head")
        long = [["Location", "/" + "x" * 40000]]
        equal(c("http.end", attempt=got["attempt"], http_status=200, headers=long), {"status": "completed", "not_kept": True})
        got = ask(c, "named")
        c("http.end", attempt=got["attempt"], http_status=404, headers=[["Location", "/\xe4"]], outcome="404=complete")
        equal(ask(c, "named")["answer"]["headers"][0], ["Location", "/\xe4"])
        equal(c("show", key="named")["result"]["meta"], "HTTP 404 complete\nLocation: /\xe4\n")
    away = "dynamodb://records?region=eu-west-1&endpoint=http://127.0.0.1:1"
    b.start("serve", "--socket", b.file("sock"), "--store", away, env=dynamo.environment())
    until(lambda: _connects(b.file("sock")), "it listens")
    c = Client.connect(b.file("sock"))
    c.hello()
    equal(problem(ask(c, "k")), "store-unavailable")
    c.close()


# ---- Many at once ------------------------------------------------------------


@case
def an_outcome_that_waits_is_told_first(b):
    """A journal that was empty is looked at again once an outcome was put there."""
    folder = b.file("journal")
    os.mkdir(folder, 0o700)
    until(lambda: time.time() > os.stat(folder).st_ctime + 3, "it was not changed for a while")
    with client(b) as c:
        equal(verdict(c, "other", **HOLD), "STARTED")
        env = {"IDEM_JOURNAL_DIR": folder}
        work = "echo $$ > pid; read x < gate; echo done"
        equal(b.run_refused("k", work, "--lease", "600s", env=env).status, 80)
        equal(len(kept(folder, ".idj")), 1)
        equal(verdict(c, "k"), "REPLAY")
        equal(kept(folder), [])


@case
def who_waits_gets_the_outcome(b):
    """A begin that waits is answered with the end of the other attempt, whoever ends it;
    with wait_then_run it takes over what was given up."""
    with client(b) as c:
        got = c.begin("k", **HOLD)
        one = c.send("begin", key="k", nonce=secrets.token_hex(16), wait_ms=600000)
        two = c.send("begin", key="k", nonce=secrets.token_hex(16), wait_ms=600000)
        c("complete", attempt=got["attempt"], result={"text": "r"})
        equal([c.answer(n)["result"]["text"] for n in (one, two)], ["r", "r"])
        got = c.begin("other", **HOLD)
        one = c.send("begin", key="other", nonce=secrets.token_hex(16), wait_ms=600000)
        two = c.send("begin", key="other", nonce=secrets.token_hex(16), wait_ms=600000,
                     wait_then_run=True)
        equal(b("release", "--token", got["token"]).status, 0)
        equal(c.answer(one)["verdict"], "RELEASED")
        equal(c.answer(two)["verdict"], "STARTED")
        equal(verdict(c, "other", wait_ms=1), "BUSY")


@case
def a_begin_is_given_up(b):
    """cancel answers one that waits, and gives back a claim that was made."""
    with client(b) as c:
        got = c.begin("k", **HOLD)
        waits = c.send("begin", key="k", nonce=secrets.token_hex(16), wait_ms=600000)
        equal(c("cancel", id=waits), {"was": "in_flight"})
        equal(refusal(c.answer, waits)["code"], -32800)
        number = c.number
        equal(c("cancel", id=number), {"was": "over"})
        mine = c.send("begin", key="mine", nonce=secrets.token_hex(16))
        c.answer(mine)
        equal(c("cancel", id=mine), {"was": "started"})
        until(lambda: b.has_status("mine", "released"), "it was given back")
        equal(refusal(c, "bye")["data"]["name"], "IDEM_EINVALID")
        c("release", attempt=got["attempt"])
        equal(c("bye"), {})


def unread(idle, pid, meanwhile=lambda: None):
    """@idle asks until its server at @pid reads no more; then its answers are all there."""
    os.set_blocking(idle.write, False)
    asked = sent = 0
    line = b""
    while True:
        asked += not line
        line = line or json.dumps({"jsonrpc": "2.0", "id": asked, "method": "hello" if asked == 1
                                   else "show", "params": {"protocol": 1} if asked == 1
                                   else {"key": "big"}}).encode() + b"\n"
        try:
            line = line[os.write(idle.write, line) :]
        except BlockingIOError:
            if sent == asked:
                break
            sent = asked
            meanwhile()
            time.sleep(0.2)
    rss = int(status_of(pid)["VmHWM"].split()[0])
    note(f"{asked} requests unread, {rss >> 10} MiB at most")
    assert rss < 600 << 10, f"{rss} KiB"
    os.set_blocking(idle.write, True)
    for n in range(1, asked):
        equal(json.loads(idle.line())["id"], n)


@case
def a_client_that_never_reads(b):
    """It is read no longer, costs little, and harms no other; its answers are all there
    when it does read. So it is with a child whose pipe is full."""
    with server(b) as (path, process):
        idle, busy = Client.connect(path), connected(path)
        got = busy.begin("big")
        busy("complete", attempt=got["attempt"], result={"text": "x" * 100000})

        def meanwhile():
            busy("ping")
            busy("complete", attempt=busy.begin(secrets.token_hex(16))["attempt"])

        unread(idle, process.pid, meanwhile)
        idle.close()
        busy.close()
    with client(b, greet=False) as idle:
        unread(idle, idle.process.pid)


@case
def a_burst_of_long_answers(b):
    """What came at once is answered in parts: memory does not grow with all of it."""
    with server(b) as (path, process):
        one, two = connected(path), connected(path)
        one("complete", attempt=one.begin("big")["attempt"], result={"text": "x" * 400000})
        stop(process.pid)
        line = b'{"jsonrpc":"2.0","id":1,"method":"show","params":{"key":"big"}}\n'
        one.socket.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += one.socket.send(line * 50)
        process.send_signal(signal.SIGCONT)
        two("ping")
        rss = int(status_of(process.pid)["VmHWM"].split()[0])
        note(f"{sent // len(line)} requests, {rss >> 10} MiB at most")
        assert sent // len(line) > 1500 and rss < 400 << 10, f"{rss} KiB"
        one.close()
        two.close()


@case
def at_most_so_many_in_flight(b):
    """While the store does not answer, 4,096 are in flight; then the connection is not
    read, and others are served."""
    with dynamo.server("dynoxide") as url:
        path = b.file("idem.sock")
        store = f"dynamodb://records?region=eu-west-1&endpoint={url}"
        b.start("serve", "--socket", path, "--store", store, env=dynamo.environment())
        until(lambda: _connects(path), "it listens")
        one, two = connected(path), connected(path)
        with dynamo.frozen(url):
            for n in range(4096):
                one.send("begin", key=f"k{n}", nonce=secrets.token_hex(16))
            one.send("ping")
            for _ in range(20):
                two("ping")
            assert not one.readable(0), "the ping was read"
        one.close()
        two.close()


@case
def an_end_comes_behind_those_that_wait(b):
    """Half of the room is for waiting; the others are BUSY at once, and the end that all
    wait for is read."""
    with client(b) as c:
        got = c.begin("k", **HOLD)
        ids = [c.send("begin", key="k", nonce=secrets.token_hex(16), wait_ms=600000)
               for _ in range(4096)]
        equal({c.answer(n)["verdict"] for n in ids[2048:]}, {"BUSY"})
        c("complete", attempt=got["attempt"], result={"text": "r"})
        equal({c.answer(n)["verdict"] for n in ids[:2048]}, {"REPLAY"})
        got = c.begin("other", **HOLD)  # And there is room again.
        waits = c.send("begin", key="other", nonce=secrets.token_hex(16), wait_ms=600000)
        c("complete", attempt=got["attempt"])
        equal(c.answer(waits)["verdict"], "REPLAY")


# ---- Leases ------------------------------------------------------------------


@case
def time_that_tests_move(b):
    """advance moves the time of a store in memory, and of the server: leases, as if the
    machine had been suspended, and waits, pauses, retention and limits. Its answer comes
    after all that follows from it; other stores refuse it."""
    with client(b) as c:
        refused = refusal(c, "advance", ms=1000)
        equal(refused["data"]["name"], "IDEM_EINVALID")
        contains(refused["message"], "(sqlite) cannot be moved; use memory:")
    rerun = {"on_expired_lease": "rerun", "lease_ms": 60000}
    with client(b, "--store", "memory:") as c:

        def advance(seconds):
            got = c("advance", ms=seconds * 1000)
            check_schema("advance", METHODS["advance"]["result"]["schema"], got)
            told = [(x["attempt"], x["reason"]) for x in c.told]
            c.told.clear()
            return told

        def begins(key, **params):
            return c.send("begin", key=key, nonce=secrets.token_hex(16), **params)

        first = c.begin("k", **rerun)["attempt"]
        equal([advance(40), advance(40)], [[], []])
        waits = begins("k", wait_ms=3600000, wait_then_run=True, **rerun)
        equal(advance(61), [(first, "lease_over")])
        assert waits in c.answers, "it did not look again"
        second = c.answer(waits)
        equal((second["verdict"], second["takeover"]), ("STARTED", True))

        busy = begins("k", wait_ms=30000)
        equal((advance(31), busy in c.answers), ([], True))
        equal(c.answer(busy)["verdict"], "BUSY")

        c("retry", attempt=second["attempt"], retry_after_ms=600000)
        equal((verdict(c, "k"), advance(601), verdict(c, "k")), ("BUSY", [], "STARTED"))

        c("complete", attempt=c.begin("day")["attempt"])
        equal((verdict(c, "day"), advance(86401), verdict(c, "day"))[::2], ("REPLAY", "STARTED"))

        limit = {"name": "up", "subject": "u", "per_ms": 3600000, "max": 1}
        admits = [c("limit", request=r, **limit)["admitted"] for r in "ab"]
        advance(3600)
        equal([*admits, c("limit", request="c", **limit)["admitted"]], [True, False, True])

        short = c.begin("short", max_time_ms=60000, **rerun)["attempt"]
        equal([advance(40), advance(40), advance(40)], [[], [], [(short, "lease_over")]])

        last = c.begin("last", max_time_ms=1, lease_ms=600000)["attempt"]
        c("advance", ms=598000)
        if not c.told:
            assert c.take(), "it comes by the timer"
        equal(c.told, [{"attempt": last, "reason": "lease_over"}])
        equal(refusal(c, "advance", ms=3155760000000)["data"], {"member": "ms"})


@case(slow=True)
def the_heartbeat_renews(b):
    """While the client is heard its lease is renewed; when it hangs the lease ends, and
    it is told so. Another takes over under rerun."""
    with client(b) as c, client(b) as other:
        got = c.begin("k", on_expired_lease="rerun", lease_ms=12000)
        first = b.record("k")["lease_end_ms"]
        until(lambda: c("ping") and b.record("k")["lease_end_ms"] > first, "it is renewed")
        # No line of this client from here on.
        taken = other.begin("k", on_expired_lease="rerun", lease_ms=600000, wait_ms=600000,
                            wait_then_run=True)
        equal((taken["verdict"], taken["takeover"]), ("STARTED", True))
        equal(c.lost(), {"attempt": got["attempt"], "reason": "lease_over"})
        equal(refusal(c, "complete", attempt=got["attempt"])["data"]["name"], "IDEM_ELOST")


@case(slow=True)
def renewals_have_an_end(b):
    """max_time_ms: a client that is heard for ever does not keep the key for ever."""
    with client(b) as c:
        got = c.begin("k", on_expired_lease="rerun", lease_ms=2000, max_time_ms=1)
        equal(c.lost(), {"attempt": got["attempt"], "reason": "lease_over"})
        equal(c("complete", attempt=got["attempt"])["status"], "completed")  # Nobody followed.


@case(slow=True)
def a_person_takes_it_away(b):
    """The next renewal finds it, and the client is told."""
    with client(b) as c:
        got = c.begin("k", on_expired_lease="hold", lease_ms=12000)
        person = b.start("resolve", "k", "--release", "--force", "--reason", "stuck")
        until(lambda: c("ping") and person.poll() is not None, "it is decided")
        equal(person.returncode, 0)
        equal(c.lost(), {"attempt": got["attempt"], "reason": "taken"})


@case(slow=True)
def frozen_and_thawed(b):
    """SIGSTOP past the lease: what was lost is said before anything is answered."""
    with client(b) as c, client(b) as other:
        got = c.begin("k", on_expired_lease="rerun", lease_ms=2000)
        stop(c.process.pid)
        ping = c.send("ping")
        taken = other.begin("k", on_expired_lease="rerun", wait_ms=600000, wait_then_run=True)
        equal(taken["verdict"], "STARTED")
        c.process.send_signal(signal.SIGCONT)
        equal(json.loads(c.line()), {"jsonrpc": "2.0", "method": "lost", "params": {
            "attempt": got["attempt"], "reason": "lease_over"}})
        c.answer(ping)


# ---- The same claimant -------------------------------------------------------


@case
def the_same_claimant_asks_again(b):
    """A server that died in between: its client finds its own claim, and not itself as
    BUSY; another nonce finds BUSY. A claim that a connection has is not given twice."""
    nonce = secrets.token_hex(16)
    with client(b) as c:
        first = c.begin("k", nonce, **HOLD)
        equal(refusal(c.begin, "k", nonce, again=True)["data"]["name"], "IDEM_ELOST")
        c.process.kill()
        c.process.wait()
    with client(b) as c:
        equal(verdict(c, "k"), "BUSY")
        equal(refusal(c.begin, "k", nonce, **HOLD)["data"]["name"], "IDEM_EINVALID")
        # Asked twice at once, it is given once.
        stop(c.process.pid)
        twice = [c.send("begin", key="k", nonce=nonce, again=True, **HOLD) for _ in range(2)]
        c.process.send_signal(signal.SIGCONT)
        got = c.answer(twice[0])
        equal(refusal(c.answer, twice[1])["data"]["name"], "IDEM_ELOST")
        equal((got["verdict"], got["fence"], got["attempts"]), ("STARTED", first["fence"], 1))
        c("complete", attempt=got["attempt"], result={"text": "r"})
        equal(c.begin("k", nonce, again=True)["verdict"], "REPLAY")


@case(slow=True)
def a_lease_that_is_over_is_not_found_again(b):
    """The lease counts from the first time that it was asked for."""
    nonce = secrets.token_hex(16)
    with client(b) as c:
        c.begin("k", nonce, on_expired_lease="rerun", lease_ms=2000)
        c.process.kill()
        c.process.wait()
    with client(b) as c:

        def lost():
            try:
                c.begin("k", nonce, again=True, on_expired_lease="rerun", lease_ms=2000)
            except Refused as error:
                return error.args[0]["data"]["name"]
            raise AssertionError("it was given back")

        until(lambda: b.record("k")["lease_end_ms"] < time.time() * 1000, "its lease is over")
        equal(lost(), "IDEM_ELOST")


# ---- The end of a client -----------------------------------------------------


@case
def a_death_is_told_at_once(b):
    """The client is killed with a lease of ten minutes. Under hold it is unknown as soon
    as it is dead, also where a child of it holds the pipes; under rerun its lease
    decides, for its work may go on, unless its begin said that it does not."""
    for key, what, policy, death in (
        ("hold", "hang", "hold", "lease"), ("child", "leave-child", "hold", "lease"),
        ("now", "hang", "rerun", "now"), ("control", "hang", "rerun", "lease"),
    ):
        worker = Worker(b, what, key, policy, death)
        child = int(worker.says("child"))
        worker.says("attempt")
        worker.kill()
        if key != "control":
            until(lambda child=child: is_gone(child), "the server has gone")
    equal([b.record(k)["status"] for k in ("hold", "child")], ["unknown", "unknown"])
    contains(b.record("hold")["note"], "died")
    with client(b) as c:
        got = c.begin("now", **RERUN)
        equal((got["verdict"], got["takeover"]), ("STARTED", True))
        until(lambda: is_gone(child), "the server has gone")
        equal(verdict(c, "control", **RERUN), "BUSY")
        # The control: without the server nobody says so.
        equal(b("begin", "-k", "alone", "--lease", "10m").status, 0)
        equal(verdict(c, "alone", **HOLD), "BUSY")


@case
def its_last_word_counts(b):
    """What it said before it was killed is taken from the pipe first."""
    worker = Worker(b, "last-word", "k", "hold")
    child = int(worker.says("child"))
    worker.says("attempt")
    stop(child)
    worker.go()
    worker.says("said")
    worker.kill()
    os.kill(child, signal.SIGCONT)
    until(lambda: is_gone(child), "the server has gone")
    equal(b.record("k")["status"], "completed")


@case(slow=True)
def an_end_of_file_proves_nothing(b):
    """The client lives and its pipes are closed: nothing is renewed, nothing is unknown
    before its lease is over, and the server stays until then."""
    with client(b) as c:
        got = c.begin("k", on_expired_lease="hold", lease_ms=12000)
        os.close(c.write)
        c.write = os.open(os.devnull, os.O_WRONLY)
        record = b.record("k")
        equal(c.process.wait(PATIENCE), 0)
        now = b.record("k")
        equal((now["status"], now["fence"]), ("in_progress", int(got["fence"])))
        assert time.time() * 1000 >= record["lease_end_ms"] - 600, "it did not stay"
        equal(now["lease_end_ms"], record["lease_end_ms"])


@case
def an_answer_that_never_left(b):
    """The pipe to the client is full when it dies: a claim whose answer is still ours is
    given back, since no work can have started on it."""
    with client(b) as big:
        got = big.begin("big")
        big("complete", attempt=got["attempt"], result={"text": "x" * 300000})
    script = (
        "import os, sys, subprocess, json\n"
        f"p = subprocess.Popen([{PROGRAM!r}, 'serve', '--stdio'], stdin=subprocess.PIPE,"
        " stdout=subprocess.PIPE, bufsize=0)\n"
        "def say(n, m, **a): p.stdin.write(json.dumps(dict(jsonrpc='2.0', id=n, method=m,"
        " params=a)).encode() + b'\\n')\n"
        "say(1, 'hello', protocol=1, pid=os.getpid())\n"
        "say(2, 'show', key='big')\n"
        "say(3, 'begin', key='k', nonce='ab' * 16)\n"
        "print(p.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    worker = start([sys.executable, "-c", script], env_of(b), cwd=b.path, stdin=subprocess.PIPE)
    b.processes.append(worker)
    child = int(worker.stdout.readline())
    until(lambda: b.has_status("k", "in_progress"), "it is claimed")
    worker.kill()
    worker.wait()
    until(lambda: is_gone(child), "the server has gone")
    equal(b.record("k")["status"], "released")


@case
def signals_are_for_the_client(b):
    """Ctrl-C and SIGTERM do not end the server before its client: it has a group of its
    own, and ends with its input."""
    with client(b) as c:
        got = c.begin("k")
        equal(os.getpgid(c.process.pid), c.process.pid)
        for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            c.process.send_signal(signo)
        equal(c("complete", attempt=got["attempt"])["status"], "completed")
        equal(c.close(), 0)


@case
def typed_at_a_terminal(b):
    """It reads from the terminal, whose group it stays in, until the end of what is
    typed."""
    master, terminal = pty.openpty()
    shell = start(["sh", "-c", '"$0" serve --stdio; echo "status $?"', PROGRAM], env_of(b),
                  stdin=terminal, start_new_session=True,
                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    b.processes.append(shell)
    os.close(terminal)
    c = Client(shell.stdout.fileno(), master)
    c.hello()
    os.write(master, b"\x04")
    equal(c.line(), b"status 0")
    os.close(master)


@case
def the_parent_is_the_client(b):
    """Where hello names no other, also if it is only a shell."""
    with client(b) as c:
        equal(c.hello()["death"], "process")
        equal(c.hello(pid=1)["death"], "lease")
    script = 'exec 3<&0; "$0" serve --stdio <&3 3<&- & wait'
    shell = start(["sh", "-c", script, PROGRAM], env_of(b), stdin=subprocess.PIPE)
    b.processes.append(shell)
    c = Client(shell.stdout.fileno(), shell.stdin.fileno())
    equal(c.hello()["death"], "process")
    c.begin("k", **HOLD)
    shell.kill()
    until(lambda: b.has_status("k", "unknown"), "its death is told")


# ---- A socket ----------------------------------------------------------------


@case
def a_socket_is_for_this_user(b):
    """Mode 0600, or 0660 for a group; a second server is refused, and a file in its
    place; a socket that was left over is not in the way. An attempt is that of its
    connection, and its token anybody's."""
    with server(b) as (path, process):
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        second = b("serve", "--socket", path)
        equal(second.status, 78)
        contains(second.stderr, b"in use by another program")
        one, two = connected(path), connected(path)
        got = one.begin("k", **HOLD)
        equal(verdict(two, "k"), "BUSY")
        equal(refusal(two, "complete", attempt=got["attempt"])["data"]["member"], "attempt")
        equal(two("complete", token=got["token"])["status"], "completed")
        equal(refusal(one, "complete", attempt=got["attempt"])["data"]["member"], "attempt")
        one.close()
        two.close()
    process = b.start("serve", "--socket", path)
    until(lambda: _connects(path), "it listens")
    process.kill()
    process.wait()
    with server(b, "--group", str(os.getgid())) as (path, _):
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o660)
    b.write("idem.sock", "a file")
    equal(b("serve", "--socket", path).status, 78)
    equal(b.read("idem.sock"), "a file")


@case
def of_two_starts_one_listens(b):
    """A server that starts while another has made its socket, and does not listen yet, waits
    for it, and leaves it the path. A lock that nobody releases keeps no server from it."""
    path = b.file("idem.sock")
    directory = os.open(b.path, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as first:
        first.bind(path)
        second = b.start("serve", "--socket", path)
        fds = f"/proc/{second.pid}/fd"
        until(lambda: os.path.realpath(b.path) in map(os.path.realpath, all_in(fds))
              or _connects(path), "it waits")
        first.listen()
        fcntl.flock(directory, fcntl.LOCK_UN)
        equal(second.wait(PATIENCE), 78)
        assert _connects(path)
    fcntl.flock(directory, fcntl.LOCK_EX)
    with server(b):
        os.close(directory)


@case
def a_socket_of_systemd(b):
    """LISTEN_FDS: the socket is there before the server, and after it."""
    path = b.file("idem.sock")
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(path)
        listens.listen()
        script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve --socket /nowhere/else 3<&"$1"'
        fd = listens.fileno()
        process = start(["bash", "-c", script, PROGRAM, str(fd)], env_of(b), pass_fds=[fd])
        b.processes.append(process)
        c = connected(path)
        equal(verdict(c, "k"), "STARTED")
        process.terminate()
        equal(process.wait(PATIENCE), 0)
        assert os.path.exists(path)
        c.close()


PEER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from serve_client import Client, say
c = Client.connect(sys.argv[2])
got = c.hello(pid=int(sys.argv[4]) or os.getpid())
if "challenge" in got and sys.argv[3] != "silent":
    got = c.hello(challenge=got["challenge"] if sys.argv[3] == "proves" else "0" * 32)
got = {**got, **c.begin("k-" + sys.argv[5], on_expired_lease="hold", lease_ms=600000)}
say(got["death"])
sys.stdin.readline()
"""


@case
def a_peer_that_proved_itself(b):
    """The death of a peer is told where it named its process as the kernel does, and
    answered a challenge after that; else its lease decides, and hello says so."""
    lib = os.path.join(os.path.dirname(__file__), "..", "lib")
    with server(b) as (path, _):
        watch = connected(path)
        for n, (proof, pid, death) in enumerate((
            ("proves", 0, "process"), ("silent", 0, "lease"), ("wrong", 0, "lease"),
            ("proves", 1, "lease"), ("proves", os.getpid(), "lease"),
        )):
            peer = start([sys.executable, "-c", PEER, lib, path, proof, str(pid), str(n)],
                         env_of(b), stdin=subprocess.PIPE)
            b.processes.append(peer)
            equal((n, peer.stdout.readline().decode().strip()), (n, death))
            peer.kill()
            peer.wait()
        until(lambda: b.has_status("k-0", "unknown"), "its death is told")
        watch("ping")
        equal([b.record(f"k-{n}")["status"] for n in range(1, 5)], ["in_progress"] * 4)
        watch.close()


@case
def a_client_that_went_while_it_waited(b):
    """Nobody hears what its begin would be told: the server does not go round for it, and
    gives the wait up."""
    with server(b) as (path, process):
        one, two = Client.connect(path), Client.connect(path)
        two.hello()
        got = two.begin("k", **HOLD)
        one.hello()
        one.send("begin", key="k", nonce=secrets.token_hex(16), wait_ms=600000, wait_then_run=True)
        one("ping")
        one.close()
        two("ping")
        fds = f"/proc/{process.pid}/fd"
        until(lambda: sum(map(is_socket, all_in(fds))) == 2, "its connection is closed")
        two("release", attempt=got["attempt"])
        two("ping")
        equal(b.record("k")["status"], "released")
        two.close()


def all_in(folder):
    return [os.path.join(folder, name) for name in os.listdir(folder)]


def is_socket(path):
    with contextlib.suppress(OSError):
        return os.readlink(path).startswith("socket:")
    return False


@case
def without_descriptors_the_others_are_served(b):
    """Who connects then waits; who is there already does not, and is told at once."""
    with server(b) as (path, process):
        one = connected(path)
        top = max(int(name) for name in os.listdir(f"/proc/{process.pid}/fd"))
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (top + 1, before[1]))
        more = [Client.connect(path) for _ in range(8)]
        started = time.monotonic()
        for _ in range(400):  # A pause for each would be 40 s.
            one("ping")
        in_time(time.monotonic() - started, 20, "400 answers")
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        equal({c.hello()["protocol"] for c in more}, {1})
        for c in (one, *more):
            c.close()


@case
def a_connection_that_broke(b):
    """Its client connects again and finds its claim by the nonce, once the server knows
    that the old connection is at its end; and ends it by its token."""
    nonce = secrets.token_hex(16)
    with server(b) as (path, _):
        one, two = connected(path), connected(path)
        first = one.begin("k", nonce, **HOLD)
        one.socket.close()

        def found():
            try:
                return two.begin("k", nonce, again=True, **HOLD)
            except Refused as error:
                equal(error.args[0]["data"]["name"], "IDEM_ELOST")
                return None

        got = until(found, "the connection is at its end")
        equal((got["verdict"], got["fence"]), ("STARTED", first["fence"]))
        equal(two("complete", attempt=got["attempt"])["status"], "completed")
        two.close()


if __name__ == "__main__":
    main()
