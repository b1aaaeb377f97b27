"""The runtime on Lambda's own API: what it asks, what it says, how it ends."""

import json
import os
import shutil
import stat
import sys
import time

from files import lines, read, write
from lambda_api import Function, Sandbox
from tap import LONG, Idem, equal, main, note, skip, test

FUNCTION = Function(os.environ["IDEM_TEST_LAMBDA_FUNCTION"])

def script(text, name="handler"):
    """A handler that is a program."""
    write(name, "#!/bin/sh\n" + text, 0o755)
    return name


def effects():
    """How many times a handler ran."""
    return len(lines("ledger"))


def event(key="a", **more):
    return {"idempotencyKey": key, **more}


EFFECT = "cat >event.json\necho effect >>ledger\n"


@test(rows=[62])
def next_waits_as_long_as_it_takes():
    """No time-out and no second request while the runtime is frozen between two events."""
    rest = 60 if LONG else 3
    with Sandbox(FUNCTION) as box:
        for key in "ab":
            equal(box.invoke(event(key)).kind, "response")
            time.sleep(rest)
        equal(box.invoke(event("c")).kind, "response")
        equal((box.starts, box.kills), (1, 0))
        while box.asked < 4:
            time.sleep(0.01)
        note(f"{box.asked} requests for 3 events, {box.stops} freezes, {rest} s each")
        equal(box.asked, 4)


@test
def next_is_asked_once():
    """A connection that is cut while next waits is not asked again on another one: the process ends."""
    with Sandbox(FUNCTION) as box:
        equal(box.invoke(event("a")).kind, "response")
        equal(box.invoke(event("b"), headers={"cut": "yes"}).kind, "exit")
        equal((box.asked, effects()), (2, 1))
        equal(box.invoke(event("b")).kind, "response")


@test
def the_lease_outlives_the_function():
    """The lease ends after the deadline, by the margin, whatever the time of the function."""
    with Sandbox(FUNCTION) as box:
        for key, seconds in (("short", 3), ("long", 900)):
            asked = time.time()
            equal(box.invoke(event(key), seconds=seconds).kind, "response")
            took = time.time() - asked
            shown = json.loads(Idem()("show", "--json", "-s", "pay", key).stdout)
            lease = shown["lease_ms"] / 1000
            assert seconds + 1 - took < lease < seconds + 4, shown


@test
def a_program_is_told_what_it_may_know():
    """A program has the key, the fence and the trace id; no API address, no credentials."""
    env = {"AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "secret", "IDEM_METER": "emf"}
    handler = script("cat >/dev/null; env >environment; echo 1")
    with Sandbox(handler, env) as box:
        equal(box.invoke(event("k1")).body, b"1\n")
    with open("environment", encoding="utf-8") as f:
        seen = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    equal(seen["IDEM_KEY"], "k1")
    equal(seen["IDEM_SCOPE"], "pay")
    equal(seen["IDEM_TAKEOVER"], "0")
    assert int(seen["IDEM_FENCE"]) > 0 and seen["IDEM_TOKEN"] and "IDEM_METER" not in seen
    assert seen["_X_AMZN_TRACE_ID"].startswith("Root=1-5bef")
    equal("AWS_LAMBDA_RUNTIME_API" in seen, False)
    equal([k for k, v in seen.items() if v == "secret"], [])

    # The control: they are passed where that is asked for.
    with Sandbox(handler, {**env, "IDEM_LAMBDA_CREDENTIALS": "pass"}) as box:
        box.invoke(event("k2"))
    equal(read("environment").count("secret"), 2)


@test
def log_lines_are_json_with_the_request():
    """Each line of the log is an object that names the request and the trace."""
    with Sandbox(FUNCTION) as box:
        answer = box.invoke(event("a"))
        equal(box.invoke(event("a", x=1)).type, "Idem.Mismatch")
        lines = box.lines()
    equal([line["message"] for line in lines], ["outcome", "MISMATCH"])
    equal(lines[0]["requestId"], answer.request_id)
    equal(lines[0]["status"], "completed")
    assert lines[0]["traceId"].startswith("Root=") and lines[0]["entry"]


def emf(box):
    """The lines that CloudWatch makes metrics of, as text."""
    with open(box.log, encoding="utf-8") as f:
        return [line for line in f if '"_aws"' in line]


def counts(text, store):
    """What a line counts: {name: number}, without zeros. Its form: integration/metrics."""
    line = json.loads(text)
    equal(line["store"], store)
    assert 0 < line["storeCalls"] and 0 < line["storeMicroseconds"], line
    return {name: n for name, n in line.items() if n and name != "_aws" and name[:5] != "store"}


@test
def what_was_counted_is_in_the_log():
    """Each event that asked the store has a line of metrics with what it added, in
    the log before its response: CloudWatch's alarms read it. One that did not ask has
    none, nobody has one unasked, and no key and no result are in them."""
    queue = [{"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:q", "body": "x",
              "messageId": name} for name in "aba"]
    key = "s3cret-key"
    cases = [
        (event(key, text="s3cret-result"), {"started": 1, "completed": 1}),
        (event(key, text="s3cret-result"), {"replayed": 1}),
        (event(key, text="other"), {"mismatch": 1}),
        (b"[", None),
        ({"Records": queue[:2]}, {"started": 2, "completed": 2}),
        ({"Records": queue[1:]}, {"replayed": 2}),
        (event("stop"), {"started": 1, "retried": 1}),
    ]
    handler = script("cat >in\ncat in\n! grep -q stop in\n")
    with Sandbox(handler, {"IDEM_METER": "emf"}) as box:
        for number, (sent, wanted) in enumerate(cases):
            before = len(emf(box)) if number else 0
            equal(box.invoke(sent).kind, "error" if number in (2, 3, 6) else "response")
            lines = emf(box)[before:]
            got = [counts(line, box.env["IDEM_STORE"]) for line in lines]
            equal((number, got), (number, [] if wanted is None else [wanted]))
            assert "s3cret" not in "".join(lines), lines
        equal((box.starts, len(emf(box))), (1, len(cases) - 1))
        assert any(line.get("key") == key for line in box.lines()), box.lines()

        note(f"{len(cases)} events, {len(emf(box))} lines of {len(emf(box)[0])} bytes")
        store = Idem(box.env["IDEM_STORE"])
        equal(json.loads(store("stats", "--format", "emf").stdout)["store"], store.store)
        equal(store("reconcile", box.log).status, 0)
    with Sandbox(handler) as box:
        equal(box.invoke(event("unasked")).kind, "response")
        equal(emf(box), [])


@test
def nothing_runs_once_the_store_was_moved():
    """An event fails, new or known, and the log says where the store went."""
    with Sandbox(script(EFFECT + "echo 1\n")) as box:
        equal(box.invoke(event("a")).kind, "response")
        moved = Idem(box.env["IDEM_STORE"])(
            "export", "--open", "--to", "sqlite:new.db", "moved.jsonl"
        )
        equal(moved.status, 0)
        for key in "ab":
            answer = box.invoke(event(key))
            equal((answer.kind, answer.type), ("error", "Idem.StoreUnavailable"))
        equal(effects(), 1)
        equal(box.said().count(b"the store was moved to sqlite:new.db"), 2)


@test
def nothing_is_left_running_into_a_freeze():
    """What a program started and left behind is gone when the runtime is frozen."""
    handler = script(
        "cat >/dev/null\nsleep 1000 &\necho $! >pids\n"
        "setsid sh -c 'echo $$ >>pids; exec sleep 1000' &\n"
        "until [ $(wc -l <pids) = 2 ]; do sleep 0.01; done\necho 1\n"
    )
    with Sandbox(handler) as box:
        equal(box.invoke(event()).body, b"1\n")
        with open("pids", encoding="utf-8") as f:
            pids = [int(line) for line in f]
        left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        equal((len(pids), left), (2, []))
        equal(box.invoke(event("b")).body, b"1\n")


@test
def what_cannot_be_set_up_is_an_init_error():
    """Each thing that is missing at the start is reported by its name, and the process ends."""
    good = script(EFFECT)
    script(EFFECT, "no-program")
    os.chmod("no-program", stat.S_IRUSR)
    cases = [
        ("", {}, "Idem.Init.INVALID"),
        ("nothing", {}, "Idem.Init.CONFIG"),
        (good, {"IDEM_STORE": ""}, "Idem.Init.INVALID"),
        (good, {"IDEM_STORE": "floppy:a"}, "Idem.Init.INVALID"),
        (good, {"AWS_LAMBDA_FUNCTION_NAME": ""}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_KEY": ".a | nonsense"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_SOURCE": "telex"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_RETENTION": "soon"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_ON_EXPIRED_LEASE": "pray"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_MAX_ATTEMPTS": "-1"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_MAX_FAILURES": "4294967296"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_RETRY_AFTER": "soon"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_CREDENTIALS": "yes"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_METHODS": "GET,PUT"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_METHODS": "POST,,PUT"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_OUTCOME": "Declined=keep"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_OUTCOME": "5xx=retry 503=release"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_OUTCOME": "none=complete"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_WAIT": "long"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_KEEP_INPUT": "body"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_REQUIRED": "POST"}, "Idem.Init.INVALID"),
        (good, {"IDEM_LAMBDA_REPLAY_HEADERS": "set-cookie"}, "Idem.Init.INVALID"),
    ]
    if os.geteuid() != 0:
        cases.append(("no-program", {}, "Idem.Init.CONFIG"))
    for handler, env, wanted in cases:
        with Sandbox(handler, env) as box:
            box.start()
            equal((env, box.wait_exit()), (env, 1))
            equal((handler, env, box.init_error[0]), (handler, env, wanted))
            equal(box.init_error[1]["errorType"], wanted)
            if handler == "nothing":  # As "charge.handler" of another runtime.
                assert "not FILE.FUNCTION" in box.init_error[1]["errorMessage"]
    note(f"{len(cases)} settings")


@test
def a_handler_that_fails_is_an_error():
    """Each way of a handler to fail is an error of its class; the loop goes on."""
    cases = [
        ("exit 3", "Exit.3"),
        ('echo \'{"errorType": "Card.Declined", "errorMessage": "no"}\'; exit 1', "Card.Declined"),
        ("printf '%s' '{\"errorType\": \"a\\r\\nb/c\"}'; exit 1", "abc"),
        ("kill -9 $$", "Idem.Killed"),
        ("echo words", "Idem.BadResponse"),
        ("printf '\"\\377\"'", "Idem.BadResponse"),
        ("printf '{} {}'", "Idem.BadResponse"),
        ("head -c 7000000 /dev/zero", "Function.ResponseSizeTooLarge"),
    ]
    handler = script("cat >event.json\necho effect >>ledger\n. ./do\n")
    with Sandbox(handler) as box:
        for number, (line, wanted) in enumerate(cases):
            script(line, "do")
            answer = box.invoke(event(f"k{number}"))
            equal((line, answer.kind, answer.type), (line, "error", wanted))
            equal(answer.json()["errorType"], wanted)
        equal((box.starts, effects()), (1, len(cases)))
    for word, wanted in [
        ("do-fail", "Poison"),
        ("do-silent-fail", "Handler.Error"),
        ("do-words", "Idem.BadResponse"),
        ("do-big", "Function.ResponseSizeTooLarge"),
    ]:
        with Sandbox(FUNCTION) as box:
            answer = box.invoke(event(word))
            equal((word, answer.kind, answer.type), (word, "error", wanted))


def told_of(box, sent, times):
    """What each of @times deliveries of @sent is told: attempts and takeover."""
    before = effects()
    for _ in range(times):
        box.invoke(sent)
    return [tuple(map(int, line.split())) for line in read("ledger").splitlines()[before:]]


TELL = 'cat >event.json\necho "$IDEM_ATTEMPTS $IDEM_TAKEOVER" >>ledger\n'


@test
def an_error_that_nobody_classified_is_not_nothing():
    """After an error the work may have been done: the next delivery is a takeover, or a person looks. Only who knows that nothing happened releases: exit 75, an error that IDEM_LAMBDA_OUTCOME calls a release, idem_lambda_release()."""
    handler = script(TELL + ". ./do\n")
    with Sandbox(handler, {"IDEM_LAMBDA_MAX_ATTEMPTS": "2", "IDEM_LAMBDA_OUTCOME": "Exit.4,Busy*=release"}) as box:
        for line, wanted in (
            ("exit 1", [(1, 0), (2, 1), (3, 1), (4, 1)]),
            ("exit 4", [(1, 0), (2, 0)]),
            ("exit 75", [(1, 0), (2, 0)]),
            ("echo '{\"errorType\": \"Busy.Now\"}'; exit 1", [(1, 0), (2, 0)]),
            ("echo '{\"errorType\": \"Card.Declined\"}'; exit 1", [(1, 0), (2, 1)]),
        ):
            script(line, "do")
            got = told_of(box, event(line), len(wanted))
            equal((line, [takeover for _, takeover in got]), (line, [t for _, t in wanted]))
            if wanted[-1][1] == 1:
                equal(got, wanted)
        listed = Idem()("list", "--json").stdout.decode()
        equal(listed.count('"retry"') > 0, True)

    with Sandbox(handler, {"IDEM_LAMBDA_ON_EXPIRED_LEASE": "hold"}) as box:
        script("exit 1", "do")
        equal([box.invoke(event("held")).type for _ in range(2)], ["Exit.1", "Idem.Unknown"])
        script("exit 75", "do")
        equal([box.invoke(event("free")).type for _ in range(2)], ["Exit.75", "Exit.75"])

    with Sandbox(FUNCTION) as box:
        for word, wanted in (("do-fail", True), ("do-silent-fail", True), ("do-release", False)):
            equal(box.invoke(event(word + " 1")).kind, "error")
            sent = {"idempotencyKey": word + " 1"}
            shown = json.loads(Idem()("show", "--json", "-s", "pay", word + " 1").stdout)
            equal((word, shown["status"]), (word, "retry" if wanted else "released"))
            equal(box.invoke(sent).kind, "error")

    # The control: one who calls every error "nothing happened" is never told.
    with Sandbox(handler, {"IDEM_LAMBDA_OUTCOME": "*=release"}) as box:
        script("exit 1", "do")
        equal({takeover for _, takeover in told_of(box, event("control"), 3)}, {0})


@test
def failures_have_a_budget_and_a_pause():
    """With the last attempt that may fail the record is for a person; in a pause a delivery is told that the event is in progress. A handler that was killed has used up nothing."""
    handler = script("cat >event.json\necho effect >>ledger\n. ./do\n")
    with Sandbox(handler, {"IDEM_LAMBDA_MAX_FAILURES": "2"}) as box:
        for line, wanted in (("exit 1", "Exit.1"), ("kill -9 $$", "Idem.Killed"), ("exit 75", "Exit.75"),
                             ("exit 1", "Exit.1"), ("exit 1", "Idem.Failed")):  # fmt: skip
            script(line, "do")
            answer = box.invoke(event())
            equal((line, answer.type), (line, wanted))
        equal(effects(), 4)
        # Who asks later is told of what, as a client of HTTP is.
        assert "status 1" in answer.json()["errorMessage"], answer.json()
    web = {"httpMethod": "POST", "path": "/", "headers": {"Idempotency-Key": "failed"}}
    topic = {"Records": [{"EventSource": "aws:sns", "Sns": {"MessageId": "m", "Message": "x"}}]}
    with Sandbox(handler, {"IDEM_LAMBDA_OUTCOME": "Exit.1=fail"}) as box:
        for sent in (web, topic):
            equal(box.invoke(sent).type, "Exit.1")
            answer = box.invoke(sent).json()
            told = json.loads(answer["body"])["error"] if sent is web else answer["errorMessage"]
            assert "status 1" in told, answer
    web = {"httpMethod": "POST", "path": "/", "headers": {"Idempotency-Key": "web"}}
    with Sandbox(handler, {"IDEM_LAMBDA_RETRY_AFTER": "1h"}) as box:
        equal([box.invoke(event("b")).type for _ in range(2)], ["Exit.1", "Idem.InProgress"])
        equal(box.invoke(web).type, "Exit.1")
        told = box.invoke(web).json()
        equal((told["statusCode"], effects()), (409, 8))
        assert 3000 < int(told["headers"]["Retry-After"]) <= 3600, told
    # A table of another library has no room for them.
    with Sandbox(handler, {"IDEM_STORE": "dynamodb://t?layout=powertools-python&region=eu-west-1",
                           "IDEM_LAMBDA_MAX_FAILURES": "2"}) as box:  # fmt: skip
        box.start()
        equal((box.wait_exit(), box.init_error[0]), (1, "Idem.Init.INVALID"))


@test
def what_could_not_be_started_did_nothing():
    """A handler that cannot be executed at the moment releases the key."""
    handler = script(TELL + "echo null\n")
    with Sandbox(handler) as box:
        equal(box.invoke(event("first")).kind, "response")
        os.rename(handler, "elsewhere")
        equal(box.invoke(event("a")).type, "Idem.CannotExecute")
        os.rename("elsewhere", handler)
        equal([takeover for _, takeover in told_of(box, event("a"), 1)], [0])


@test
def lines_before_a_response_are_left_out():
    """What a program writes to its output before the response is not the response: it is left out, and the log says so."""
    handler = script('cat >/dev/null\necho "debug: 1"\necho 12\nprintf \'{\\n "a": 1\\n}\\n\'\n')
    with Sandbox(handler) as box:
        for _ in range(2):
            equal(box.invoke(event()).json(), {"a": 1})
        said = [line for line in box.lines() if "before the response" in line["message"]]
        equal([line["level"] for line in said], ["WARN"])
    # All of what is a response stays one, and what has none at its end is none.
    with Sandbox(script("cat >/dev/null\nprintf '[1,\\n2]'\n")) as box:
        equal(box.invoke(event("b")).body, b"[1,\n2]")
    with Sandbox(script("cat >/dev/null\necho 1\necho words\n")) as box:
        equal(box.invoke(event("c")).type, "Idem.BadResponse")
        equal(box.invoke(event("c")).type, "Idem.Failed")
    failed = Idem()("list", "--status", "failed").stdout.decode()
    assert "c" in failed.split(), failed


@test
def a_program_that_dies_of_a_signal_is_taken_over():
    """A program that was killed said nothing of its work: the next delivery is told that it takes over, and no more are started than IDEM_LAMBDA_MAX_ATTEMPTS."""
    handler = script(TELL + "kill -9 $$\n")
    with Sandbox(handler, {"IDEM_LAMBDA_MAX_ATTEMPTS": "3"}) as box:
        kinds = [box.invoke(event()).type for _ in range(4)]
    equal(kinds, ["Idem.Killed"] * 3 + ["Idem.Failed"])
    equal(read("ledger").splitlines(), ["1 0", "2 1", "3 1"])
    with Sandbox(handler, {"IDEM_LAMBDA_ON_EXPIRED_LEASE": "hold"}) as box:
        equal([box.invoke(event("b")).type for _ in range(2)], ["Idem.Killed", "Idem.Unknown"])


@test
def a_function_that_died_has_no_status():
    """A handler that died is none: no "*" names it; IDEM_LAMBDA_OUTCOME may make it a retry, unknown or a failure."""
    dead = script(TELL + "kill -9 $$\n")
    for table, kinds in (
        ("*=complete", ["Idem.Killed", "Idem.Unknown"]),
        ("*=complete none=retry", ["Idem.Killed", "Idem.Killed"]),
        ("none=fail", ["Idem.Killed", "Idem.Failed"]),
        ("none=unknown", ["Idem.Killed", "Idem.Unknown"]),
    ):
        with Sandbox(dead, {"IDEM_LAMBDA_OUTCOME": table, "IDEM_LAMBDA_ON_EXPIRED_LEASE": "hold"}) as box:
            equal((table, [box.invoke(event(table)).type for _ in range(2)]), (table, kinds))
    silent = script(TELL)
    for table, kinds in (("*=complete", "Idem.Unknown"), ("*,none=fail", "Idem.Failed")):
        with Sandbox(silent, {"IDEM_LAMBDA_OUTCOME": table, "IDEM_LAMBDA_ON_EXPIRED_LEASE": "hold"}) as box:
            equal([box.invoke(event("silent" + table)).type for _ in range(2)], ["Idem.NoResponse", kinds])


@test
def a_response_that_cannot_be_sent_was_work_all_the_same():
    """After a response that is too long, or is no JSON, the handler does not run again."""
    with Sandbox(FUNCTION) as box:
        equal(box.invoke(event("do-big")).type, "Function.ResponseSizeTooLarge")
        equal(box.invoke(event("do-big")).type, "Idem.ResultNotKept")
        equal(box.invoke(event("do-words")).type, "Idem.BadResponse")
        equal(box.invoke(event("do-words")).type, "Idem.Failed")
        equal(box.invoke(event("do-nothing")).body, b"null")
        equal(effects(), 3)


def by_key(store):
    listed = store("list", "--json").stdout.decode().splitlines()
    return {record["key"]: record["status"] for record in map(json.loads, listed)}


@test
def a_file_that_only_defines_a_function_acknowledges_nothing():
    """A program that ends with 0 and writes nothing has not responded, and one that writes no JSON has not either: neither is done, also in a batch. One that has no response writes null."""
    function = f"#!{sys.executable}\n{{}}\ndef lambda_handler(event, context):\n    return {{{{}}}}\n"
    cases = (
        ("silent", function.format(""), "retry", "Idem.NoResponse"),
        ("blank", function.format("print()"), "retry", "Idem.NoResponse"),
        ("prints", function.format("print('cold start')"), "failed", "Idem.BadResponse"),
        ("null", "#!/bin/sh\necho null\n", "completed", None),
        ("object", "#!/bin/sh\necho '{}'\n", "completed", None),
    )
    for policy in ("rerun", "hold"):
        for name, text, status, error in cases:
            write("wrong-form", text, 0o755)
            direct, record = f"{name} {policy}", f"{name} of {policy}"
            sent = {"Records": [{"eventSource": "aws:sqs", "messageId": record, "body": "x",
                                 "eventSourceARN": "arn:aws:sqs:eu-west-1:1:q"}]}
            with Sandbox("wrong-form", {"IDEM_LAMBDA_ON_EXPIRED_LEASE": policy}) as box:
                answer = box.invoke(event(direct))
                equal((direct, answer.type), (direct, error))
                failed = [item["itemIdentifier"] for item in box.invoke(sent).json()["batchItemFailures"]]
                equal((record, failed), (record, [record] if error else []))
            if policy == "hold" and status == "retry":
                status = "unknown"
            got = by_key(Idem())
            equal((name, policy, got[direct], got[record]), (name, policy, status, status))
            if error == "Idem.NoResponse":
                assert "a handler is an executable" in answer.json()["errorMessage"], answer


@test
def deliveries_that_make_no_sense():
    """A delivery without a good deadline or with headers that are none gets its error; one without a request id ends the process."""
    bad = [
        {"Lambda-Runtime-Deadline-Ms": None},
        {"Lambda-Runtime-Deadline-Ms": "soon"},
        {"Lambda-Runtime-Deadline-Ms": "-1"},
        {"Lambda-Runtime-Deadline-Ms": "99999999999999999999"},
        {"Lambda-Runtime-Trace-Id": "a\x01b"},
        {"Lambda-Runtime-Client-Context": "x" * 9000},
    ]
    with Sandbox(FUNCTION) as box:
        for headers in bad:
            answer = box.invoke(event("a"), headers=headers)
            equal((headers, answer.type), (headers, "Idem.BadInvocation"))
        past = {"Lambda-Runtime-Deadline-Ms": "1542409706888"}
        equal(box.invoke(event("a"), headers=past).type, "Idem.TooLate")
        equal((box.starts, effects()), (1, 0))
        equal(box.invoke(event("a"), headers={"chunked": "yes"}).kind, "response")
    for request_id in (None, "../../init/error", "a b", "a" * 200):
        headers = {"Lambda-Runtime-Aws-Request-Id": request_id}
        with Sandbox(FUNCTION) as box:
            equal(box.invoke(event("b"), headers=headers).kind, "exit")
    with Sandbox(FUNCTION) as box:
        equal(box.invoke(event("b"), headers={":status": 500}).kind, "exit")
    equal(effects(), 1)
    note(f"{len(bad) + 7} kinds")


@test
def events_that_make_no_sense():
    """What is no JSON, nests without end or has a member twice is Invalid, and the handler is not called."""
    bad = [
        *(b"", b" ", b"x", b"{", b"[1", b"{} x"),
        *(b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b'{"\\u0061":1,"a":2}'),
        *(b'{"a":"\xff"}', b"{'a':1}", b'{"a":NaN}', b'{"a":1,}', b"{}\0"),
        *(b"[" * 100000, b'{"a":' * 300 + b"1" + b"}" * 300),
        *(b'{"Records": [{"eventSource": "aws:telex"}]}', b'{"Records": 1}'),
    ]
    with Sandbox(FUNCTION) as box:
        for body in bad:
            answer = box.invoke(body)
            equal((body[:40], answer.type), (body[:40], "Idem.Invalid"))
        equal(effects(), 0)
        deep = b'{"idempotencyKey":"d","a":' + b"[" * 90 + b"]" * 90 + b"}"
        equal(box.invoke(deep).kind, "response")
        long = b'{"idempotencyKey":"l","a":"' + b"x" * (6 << 20) + b'"}'
        equal(box.invoke(long).kind, "response")
        equal(box.starts, 1)
    note(f"{len(bad)} events")


@test(rows=[61])
def a_response_that_is_refused():
    """After a response that was refused or cut off the record stays, and Lambda is told; after a 500 the process ends."""
    statuses = (413, 400, 403, None)
    with Sandbox(FUNCTION) as box:
        for number, status in enumerate(statuses):
            box.answer_with = {"response": [status]}
            key = event(f"k{number}")
            wanted = "Function.ResponseSizeTooLarge" if status == 413 else "Idem.ResponseNotSent"
            answer = box.invoke(key)
            equal((status, answer.kind, answer.type), (status, "error", wanted))
            again = box.invoke(key)
            equal((status, again.kind), (status, "response"))
        equal((box.starts, effects()), (1, len(statuses)))
        box.answer_with = {"response": [500]}
        equal(box.invoke(event("broken")).kind, "exit")
        equal(box.invoke(event("broken")).kind, "response")
        equal((box.starts, effects()), (2, len(statuses) + 1))


@test(rows=[60])
def killed_between_record_and_response():
    """A runtime that is killed when it sends the response: the next delivery replays."""
    with Sandbox(FUNCTION) as box:
        box.answer_with = {"response": ["kill"]}
        equal(box.invoke(event("a")).kind, "exit")
        answer = box.invoke(event("a"))
        equal((answer.kind, answer.json()["attempts"]), ("response", 1))
        equal((box.starts, effects()), (2, 1))


@test(rows=[59])
def a_timeout_after_the_effect_under_rerun():
    """A function that Lambda kills at its deadline runs again, as a takeover with a higher fence, at most 5 times; then it has failed."""
    with Sandbox(FUNCTION) as box:  # Nothing waits for the end of this lease.
        equal(box.invoke(event("do-sleep"), seconds=30, life=1).kind, "timeout")
        equal(box.invoke(event("do-sleep")).type, "Idem.InProgress")
        equal((box.kills, effects()), (1, 1))
    idem = Idem()
    shown = json.loads(idem("show", "--json", "-s", "pay", "do-sleep").stdout)
    equal(shown["status"], "in_progress")

    # A program is stopped before its deadline, so that its lease ends at once.
    handler = script(EFFECT + 'echo "$IDEM_FENCE $IDEM_TAKEOVER" >>fences\nsleep 60\n')
    with Sandbox(handler) as box:
        for _ in range(5):
            equal(box.invoke(event("slow"), seconds=5, life=20).type, "Idem.TimedOut")
        equal(box.invoke(event("slow")).type, "Idem.Failed")
        equal((box.starts, box.kills, effects()), (1, 0, 1 + 5))
    with open("fences", encoding="utf-8") as f:
        seen = [tuple(map(int, line.split())) for line in f]
    first = seen[0][0]
    equal(seen, [(first + n, int(n > 0)) for n in range(5)])
    listed = idem("list", "--status", "failed").stdout.decode()
    assert "slow" in listed, listed


@test(rows=[59])
def a_timeout_after_the_effect_under_hold():
    """Under hold it does not run again: the answer is Unknown, and idem list shows it."""
    handler = script(EFFECT + "sleep 60\n")
    with Sandbox(handler, {"IDEM_LAMBDA_ON_EXPIRED_LEASE": "hold"}) as box:
        equal(box.invoke(event("slow"), seconds=5, life=20).type, "Idem.TimedOut")
        equal(box.invoke(event("slow")).type, "Idem.Unknown")
        equal(box.invoke(event("slow")).type, "Idem.Unknown")
        equal(effects(), 1)
    listed = Idem()("list", "--status", "unknown").stdout.decode()
    assert "slow" in listed, listed


@test
def the_control_runs_each_time():
    """The control: without a key that stays the same, a second delivery is a second effect."""
    with Sandbox(FUNCTION) as box:
        for _ in range(2):
            equal(box.invoke({"no": "key"}).kind, "response")
        warnings = [line for line in box.lines() if line["level"] == "WARN"]
    equal((effects(), len(warnings)), (2, 1))


@test
def the_log_comes_before_the_record():
    """When the store is told how work ended, the log has said so already."""
    if shutil.which("strace") is None:
        skip("strace is not installed")
    traced = ["strace", "-f", "-y", "-s", "400", "-e", "trace=write,pwrite64", "-o", "trace"]
    with Sandbox(FUNCTION, program=[*traced, FUNCTION], freeze=False) as box:
        equal(box.invoke(event("a")).kind, "response")
    with open("trace", encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    said = next(n for n, line in enumerate(lines) if "outcome" in line and "lambda-" in line)
    stored = [n for n, line in enumerate(lines) if "idem.db-wal" in line]
    ledger = next(n for n, line in enumerate(lines) if "ledger>" in line)
    before = [n for n in stored if n < ledger]
    after = [n for n in stored if n > ledger]
    assert before and after, (stored, ledger)
    assert ledger < said < after[0], (ledger, said, after[0])
    note(f"{len(before)} writes of the claim, {len(after)} of the outcome")


@test
def an_event_runs_here_too():
    """idem lambda invoke runs a handler on an event, and replays it the second time."""
    idem = Idem()
    handler = script(EFFECT + 'echo "{\\"fence\\": $IDEM_FENCE}"\n')
    with open("event.in", "w", encoding="utf-8") as f:
        json.dump(event("a"), f)
    first = idem("lambda", "invoke", "--handler", "./" + handler, "event.in")
    again = idem("lambda", "invoke", "--handler", "./" + handler, "event.in")
    equal((first.status, first.stdout, effects()), (0, again.stdout, 1))
    failing = "./" + script("exit 3", "failing")
    failed = idem("lambda", "invoke", "--handler", failing, "-", input=b"{}")
    equal((failed.status, json.loads(failed.stdout)["errorType"]), (1, "Exit.3"))


if __name__ == "__main__":
    main()
