"""The table of sources: every row is tried with its sample event."""

import base64
import copy
import json
import os
import subprocess
import threading
import time

from files import lines, read, write
import selected
from lambda_api import Function, Sandbox
from patience import PATIENCE, until
from tap import PROGRAM, TOP, Idem, each, equal, main, note, test

FUNCTION = Function(os.environ["IDEM_TEST_LAMBDA_FUNCTION"])
SAMPLES = os.path.join(TOP, "tests", "lambda", "events")


def table():
    told = subprocess.run(
        [PROGRAM, "lambda", "sources", "--json"], check=True, capture_output=True
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


TABLE = table()
ROWS = [row["name"] for row in TABLE]
HTTP = ("api-gateway-rest", "api-gateway-http", "function-url", "alb", "vpc-lattice")
BATCHES = ("sqs", "sqs-fifo", "kinesis", "dynamodb")
REPORTED = (*BATCHES, "kafka-partial")


def sample(name):
    """The sample event of a source; a row without one fails."""
    row = next(row for row in TABLE if row["name"] == name)
    with open(os.path.join(SAMPLES, row["sample"]), encoding="utf-8") as f:
        return json.load(f)


def effects():
    return len(lines("ledger"))


def script(name, text):
    write(name, "#!/bin/sh\n" + text, 0o755)


def redelivered(event):
    """The same event as it comes a second time: what is new in each delivery."""
    event = copy.deepcopy(event)
    for record in event.get("Records", []):
        record.get("attributes", {})["ApproximateReceiveCount"] = "2"
        if "receiptHandle" in record:
            record["receiptHandle"] = "AQEBanother"
        if "eventTime" in record:
            record["eventTime"] = "2026-09-03T19:37:29.000Z"
    context = event.get("requestContext", {})
    for name in ("requestId", "time", "timeEpoch", "requestTimeEpoch"):
        if name in context:
            context[name] = "another" if name == "requestId" else 1
    if event.get("detail-type") == "Scheduled Event":
        event["id"] = "another"  # A rule that fires twice for one time.
    if "State" in event:
        event["State"].update(RetryCount=1, EnteredTime="2026-10-08T16:54:00Z")
    return event


def unmarked(body):
    """A response without the mark of a replay, and whether it had it."""
    found = json.loads(body)
    marked = False
    if isinstance(found, dict):
        for name in ("headers", "multiValueHeaders"):
            marked = bool(found.get(name, {}).pop("Idempotent-Replayed", "")) or marked
            found.get(name, {}).pop("Cache-Control", None)
            if found.get(name) == {}:
                del found[name]
    return found, marked


@each(ROWS)
def twice(name):
    """Two deliveries, one execution, the same response."""
    event = sample(name)
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SOURCE": name}) as box:
        first = box.invoke(event)
        again = box.invoke(redelivered(event))
        equal((first.kind, again.kind, effects()), ("response", "response", 1))
        equal(unmarked(again.body)[0], unmarked(first.body)[0])
        equal(unmarked(again.body)[1], name in HTTP)
        equal(unmarked(first.body)[1], False)
        if name in REPORTED:
            equal(first.json(), {"batchItemFailures": []})


@each(ROWS, rows=[63])
def busy(name):
    """While another delivery is at work the second is told so, as the row says."""
    event = sample(name)
    with Sandbox("slow") as box:
        holder = at_work(event, "echo 1\n", {**box.env, "IDEM_LAMBDA_START_MIN": "0ms"})
        answer = box.invoke(event)
        write("gate", "")
        equal((holder.wait(PATIENCE), effects()), (0, 1))
    if name in HTTP:
        told = answer.json()
        headers = told.get("headers") or told["multiValueHeaders"]
        equal((told["statusCode"], "Retry-After" in headers), (409, True))
    elif name in BATCHES:
        equal(len(answer.json()["batchItemFailures"]), 1)
    else:
        equal((answer.kind, answer.type), ("error", "Idem.InProgress"))


@each(ROWS)
def failing(name):
    """When the handler fails that is told as the row says."""
    with Sandbox("/bin/false") as box:
        answer = box.invoke(sample(name))
    if name in BATCHES:
        equal(len(answer.json()["batchItemFailures"]), 1)
    else:
        equal((answer.kind, answer.type), ("error", "Exit.1"))


@test
def every_row_has_a_sample():
    """Each row has a sample event, each sample a row, and each row all of its words."""
    equal({row["sample"] for row in TABLE}, set(os.listdir(SAMPLES)))
    for row in TABLE:
        assert all(row.values()), row
    note(f"{len(TABLE)} sources")
    equal(len(TABLE), 20)


# ---- Batches ----


def batch(name, keys, group=None):
    """A batch with one record for each of @keys; the key "poison..." never works."""
    records = []
    for number, key in enumerate(keys):
        record = copy.deepcopy(sample(name)["Records"][0])
        own = group(number) if group else f"group of {key}"
        text = "do-fail" if key.startswith("poison") else f"work {key}"
        if name.startswith("sqs"):
            record.update(messageId=key, body=text)
            if name == "sqs-fifo":
                record["attributes"]["MessageGroupId"] = own
        elif name == "kinesis":
            data = text if key.startswith("poison") else base64.b64encode(text.encode())
            record["eventID"] = f"shard-1:{key}"
            record["kinesis"].update(
                data=data if isinstance(data, str) else data.decode(),
                sequenceNumber=key,
                partitionKey=own,
            )
        else:
            record["eventID"] = key
            record["dynamodb"].update(
                SequenceNumber=key,
                Keys={"Id": {"S": own}},
                NewImage={"Text": {"S": text}},
            )
        records.append(record)
    return {"Records": records}


def failures(answer):
    equal(answer.kind, "response")
    return [item["itemIdentifier"] for item in answer.json()["batchItemFailures"]]


@each(BATCHES)
def batch_reports_the_poison(name):
    """Of 10 records with 3 duplicates and 1 poison record only the poison record is reported."""
    done = ["d1", "d2", "d3"]
    fresh = ["n1", "n2", "n3", "n4", "n5", "n6"]
    with Sandbox(FUNCTION) as box:
        equal(failures(box.invoke(batch(name, done))), [])
        equal(effects(), 3)
        keys = ["d1", "n1", "n2", "poison", "d2", "n3", "n4", "d3", "n5", "n6"]
        equal(failures(box.invoke(batch(name, keys))), ["poison"])
        equal(effects(), 3 + len(fresh) + 1)
        equal(failures(box.invoke(batch(name, keys))), ["poison"])
        equal(effects(), 3 + len(fresh) + 2)


@test
def a_group_stops_at_its_first_failure():
    """In a FIFO queue all that follows a failure in its group is reported and does not run; other groups go on."""
    group = {0: "x", 1: "x", 2: "x", 3: "y", 4: "x"}.get
    keys = ["a", "poison", "b", "c", "d"]
    with Sandbox(FUNCTION) as box:
        equal(failures(box.invoke(batch("sqs-fifo", keys, group))), ["poison", "b", "d"])
        equal(effects(), 3)
        again = ["b", "d"]
        equal(failures(box.invoke(batch("sqs-fifo", again, lambda n: "x"))), [])
        equal(effects(), 5)


@test
def a_stream_stays_in_order():
    """In a stream what follows a failure with its partition key does not run, and comes again by itself."""
    group = {0: "x", 1: "x", 2: "x", 3: "y"}.get
    keys = ["a", "poison", "b", "c"]
    with Sandbox(FUNCTION) as box:
        equal(failures(box.invoke(batch("kinesis", keys, group))), ["poison"])
        equal(effects(), 3)


@test(rows=[65])
def two_records_of_one_key():
    """The second record of a key in a batch goes by what becomes of the first, and one that differs is a failure."""
    keys = ["a", "a", "b", "poison", "poison"]
    with Sandbox(FUNCTION) as box:
        equal(failures(box.invoke(batch("sqs", keys))), ["poison"])
        equal(effects(), 3)
    mine = {"IDEM_LAMBDA_KEY": ".body | fromjson | .k"}
    event = batch("sqs", ["m1", "m2", "m3", "m4", "m5"])
    bodies = [("order", 1), ("order", 1), ("order", 2), ("do-fail", 1), ("do-fail", 1)]
    for record, (key, n) in zip(event["Records"], bodies):
        record["body"] = json.dumps({"k": key, "n": n})
    with Sandbox(FUNCTION, mine) as box:
        equal(failures(box.invoke(event)), ["m3", "m4", "m5"])
        equal(effects(), 5)


@test
def the_deadline_cuts_a_batch_off():
    """What the time does not suffice for is reported, was not run, and runs when it comes again."""
    script("slow", "cat >/dev/null\necho effect >>ledger\nsleep 1\necho null\n")
    # What is begun has ten times as long as it takes: a machine may stand still.
    env = {"IDEM_LAMBDA_START_MIN": "11s"}
    keys = [f"m{n}" for n in range(10)]
    with Sandbox("slow", env) as box:
        cut = failures(box.invoke(batch("sqs", keys), seconds=20))
        equal(cut, keys[10 - len(cut) :])
        assert 1 <= len(cut) <= 9, cut
        equal(effects(), 10 - len(cut))
        said = [line for line in box.lines() if "some records not processed" in line["message"]]
        equal(said[0]["records"], len(cut))
        note(f"{len(cut)} of 10 cut off")
        equal(failures(box.invoke(batch("sqs", cut), seconds=60)), [])
        equal(effects(), 10)


@test
def batches_that_make_no_sense():
    """Records that are missing, of no source, without a name, or too many; an empty batch is fine."""
    nameless = batch("sqs", ["a", "b"])
    del nameless["Records"][1]["messageId"]
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SOURCE": "sqs"}) as box:
        for event in (
            *({}, {"Records": None}, {"Records": {}}, {"Records": [1]}),
            *(nameless, {"Records": [{}]}, {"Records": [None]}),
        ):
            equal((event, box.invoke(event).type), (event, "Idem.Invalid"))
        equal(effects(), 0)
        equal(failures(box.invoke({"Records": []})), [])
        many = {"Records": [{**batch("sqs", ["a"])["Records"][0], "body": ""}] * 10001}
        equal(box.invoke(many).type, "Idem.Invalid")
    poor = batch("sqs", ["a", "b", "c"])
    for record in poor["Records"]:
        record["body"] = '{"order": "%s"}' % record["messageId"]
    poor["Records"][1]["body"] = "no JSON"
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEY": ".body | fromjson | .order"}) as box:
        equal(failures(box.invoke(poor)), ["b"])
        equal(effects(), 2)


@test
def ten_thousand_records():
    """A batch of 10,000 records is one round of claims."""
    keys = [f"m{n}" for n in range(10000)]
    script("quick", "echo null\n")
    with Sandbox("quick") as box:
        event = {"Records": [r for r in batch("sqs", keys[:1])["Records"]] * 10000}
        equal(failures(box.invoke(event, seconds=60)), [])
        outcomes = [line for line in box.lines() if line["message"] == "outcome"]
        equal(len(outcomes), 1)


@test
def what_a_pipe_hands_on():
    """An array of records is a batch where IDEM_LAMBDA_SOURCE says that the function is the target of a pipe; an enrichment answers with data; neither is guessed."""
    script("see", "cat >>seen\necho effect >>ledger\ngrep -q poison seen && exit 1\necho 7\n")
    records = batch("sqs", ["a", "b"])["Records"]
    records[1]["body"] = "poison"
    flat = {"eventSource": "aws:kinesis", **sample("kinesis")["Records"][0]}
    flat.update(flat.pop("kinesis"))
    with Sandbox("see") as box:
        answer = box.invoke(records)
        equal((answer.type, effects()), ("Idem.Invalid", 0))
        assert "IDEM_LAMBDA_SOURCE" in answer.json()["errorMessage"], answer.json()
    with Sandbox("see", {"IDEM_LAMBDA_SOURCE": "direct"}) as box:
        equal((box.invoke([records[0]]).json(), effects()), (7, 1))
    os.remove("seen")
    with Sandbox("see", {"IDEM_LAMBDA_SOURCE": "kinesis"}) as box:
        for _ in range(2):
            equal(box.invoke([flat]).json(), {"batchItemFailures": []})
        equal(effects(), 2)
    os.remove("seen")
    with Sandbox("see", {"IDEM_LAMBDA_SOURCE": "sqs"}) as box:
        for _ in range(2):
            equal(failures(box.invoke(records)), ["b"])
        equal((failures(box.invoke([])), effects()), ([], 5))
        equal(read("seen"), "".join(json.dumps([r]) for r in (records[0], records[1], records[1])))


@test
def kafka_by_record():
    """Of a batch from Kafka each record is one, by cluster, topic, partition, offset and time; after a failure the rest of its partition waits. It fails whole, or by item where the mapping takes that."""
    script("see", "cat >event.json\n. ./do\necho effect >>ledger\necho 1\n")

    def event(base):
        got = sample("kafka")
        (record,) = got["records"].pop("orders-0")
        for partition in (0, 1):
            got["records"][f"orders-{partition}"] = [
                {**record, "partition": partition, "offset": base + n} for n in range(3)
            ]
        return got

    write("do", "grep -q '\"orders-0\".*\"offset\": *[0-9]*1[,}]' event.json && exit 1")
    for source, wanted in (("", "Exit.1"), ("kafka-partial", [{"partition": "orders-0", "offset": 21}])):
        before = effects()
        with Sandbox("see", {"IDEM_LAMBDA_SOURCE": source}) as box:
            sent = event(20 if source else 10)
            answer = box.invoke(sent)
            equal(failures(answer) if source else answer.type, wanted)
            equal(effects() - before, 4)
            last = json.loads(read("event.json"))
            equal(({**last, "records": 0}, list(last["records"])), ({**sent, "records": 0}, ["orders-1"]))
            equal(last["records"]["orders-1"], [sent["records"]["orders-1"][2]])
    write("do", "")
    with Sandbox("see") as box:
        before = effects()
        equal(box.invoke(event(10)).kind, "response")
        equal(effects() - before, 2)
        anew = event(10)
        for records in anew["records"].values():
            for record in records:
                record["timestamp"] += 1
        equal((box.invoke(anew).kind, effects() - before), ("response", 8))


@test
def any_json_is_an_event():
    """A value that is no object, and no record of a source, is an event called directly."""
    for key, texts in (
        ('"k/\\(tostring)"', (b"7", b'"text"', b"true")),
        (".[0].arguments.id", (b'[{"arguments": {"id": 1}}]',)),
    ):
        with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEY": key}) as box:
            for text in texts:
                equal((text, [box.invoke(text).kind for _ in range(2)]), (text, ["response"] * 2))
    equal(effects(), 4)
    with Sandbox(FUNCTION) as box:
        for text in (b"null", b"[]", b"[1, 2]", b'[{"arguments": {"id": 1}}]', b'""'):
            equal((text, box.invoke(text).kind), (text, "response"))
    equal(effects(), 9)


@test
def a_key_that_nobody_would_read_is_refused():
    """An Idempotency-Key in an event of a source that is not known would protect nothing: nothing runs, until IDEM_LAMBDA_SOURCE says that it is direct."""
    for event in (
        {"headers": {"idempotency-key": "k"}, "verb": "POST"},
        {"multiValueHeaders": {"Idempotency-Key": ["k"]}},
        {"info": {"fieldName": "pay"}, "request": {"headers": {"idempotency-key": "k"}}},
    ):
        with Sandbox(FUNCTION) as box:
            equal((event, box.invoke(event).type, effects()), (event, "Idem.Invalid", 0))
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SOURCE": "direct"}) as box:
        equal((box.invoke(event).kind, effects()), ("response", 1))


@test
def messages_of_a_websocket():
    """Each message is one, by its id; a connection is one by its own."""
    with Sandbox(FUNCTION) as box:
        event = sample("websocket")
        for context in ({}, {"messageId": "another"}, {"eventType": "CONNECT", "messageId": None}):
            event["requestContext"].update(context)
            before = effects()
            equal([box.invoke(event).kind for _ in range(2)], ["response"] * 2)
            equal((context, effects() - before), (context, 1))


# ---- HTTP ----


@test
def requests_of_lattice_in_the_older_form():
    """Version 1 of VPC Lattice's events: the same rules for the key, the path, the query and the body."""
    event = {
        "raw_path": "/orders", "method": "POST", "headers": {"idempotency-key": "k"},
        "query_string_parameters": {"a": "1"}, "body": "eyJhIjogMX0=", "is_base64_encoded": True,
    }  # fmt: skip
    with Sandbox(FUNCTION) as box:
        for changed, wanted in (
            ({}, 200), ({}, 200), ({"raw_path": "/refund"}, 422), ({"body": "e30="}, 422), ({"body": "?"}, 400),
            ({"query_string_parameters": {}}, 422), ({"headers": {}}, 400),
        ):  # fmt: skip
            equal((changed, box.invoke({**event, **changed}).json()["statusCode"]), (changed, wanted))
    equal(effects(), 1)


def http(key_headers, name="api-gateway-rest", **more):
    event = sample(name)
    event["headers"] = {"Host": "a", **key_headers}
    event.pop("multiValueHeaders", None)
    event.update(more)
    return event


@test
def one_rule_finds_the_header():
    """The key is found in any case, in quotes or not, in one map or two; two values, none, or a bad one are 400."""
    same = [
        *({"Idempotency-Key": "k"}, {"IDEMPOTENCY-KEY": '"k"'}),
        *({"idempotency-key": " k\t"}, {"a": "b", "Idempotency-key": "k"}),
        *({"Idempotency-Key": "k", "idempotency-key": "k"},),
    ]
    bad = [
        *({}, {"Idempotency-Key": ""}, {"Idempotency-Key": '""'}),
        *({"Idempotency-Key": "a,b"}, {"Idempotency-Key": "a b"}),
        *({"Idempotency-Key": '"a'}, {"Idempotency-Key": 'a"b"'}),
        *({"Idempotency-Key": "a", "idempotency-key": "b"},),
        *({"Idempotency-Key": "é"}, {"Idempotency-Key": "a\r\nb"}),
        *({"Idempotency-Key": None}, {"Idempotency-Key": 1}),
        *({"Idempotency-Key": "x" * 256}, {"Idempotency-Key": '"a"b"'}),
    ]
    with Sandbox(FUNCTION) as box:
        for headers in same:
            equal((headers, box.invoke(http(headers)).json()["statusCode"]), (headers, 200))
        equal(effects(), 1)
        for headers in bad:
            told = box.invoke(http(headers)).json()
            equal((headers, told["statusCode"]), (headers, 400))
            equal(json.loads(told["body"])["status"], 400)
        many = http({}, multiValueHeaders={"Idempotency-Key": ["a", "b"]})
        equal(box.invoke(many).json()["statusCode"], 400)
        null = http({}, headers=None)
        equal(box.invoke(null).json()["statusCode"], 400)
        broken = http({"Idempotency-Key": "c"}, body="!", isBase64Encoded=True)
        equal(box.invoke(broken).json()["statusCode"], 400)
        equal(effects(), 1)
        bare = http({"Idempotency-Key": "k"})
        del bare["requestContext"]
        equal(box.invoke(bare).json()["statusCode"], 200)
        equal(effects(), 1)
    note(f"{len(same)} good forms, {len(bad) + 3} bad ones")


@test
def another_request_under_the_key():
    """The same key with another body, path, query or method is 422, in flight and after."""
    with Sandbox(FUNCTION) as box:
        key = {"Idempotency-Key": "k"}
        equal(box.invoke(http(key)).json()["statusCode"], 200)
        for more in (
            *({"body": "other"}, {"path": "/other"}, {"httpMethod": "PATCH"}),
            {"queryStringParameters": {"a": "b"}},
        ):
            equal((more, box.invoke(http(key, **more)).json()["statusCode"]), (more, 422))
        coded = base64.b64encode(http(key)["body"].encode()).decode()
        same = http(key, body=coded, isBase64Encoded=True)
        equal(box.invoke(same).json()["statusCode"], 200)
        equal(effects(), 1)


def moved(name, method, path, key=None):
    """A request of a source with this method and path."""
    event = sample(name)
    event["headers"] = {"Host": "a", **({"Idempotency-Key": key} if key else {})}
    event.pop("multiValueHeaders", None)
    if "method" in event:
        event.update(method=method, path=path)
    elif event.get("version") == "2.0":
        event["requestContext"]["http"]["method"] = method
        event["rawPath"] = path
    else:
        event.update(httpMethod=method, path=path)
    return event


def status_of(told):
    """That of a response; 0: the handler ran unprotected."""
    return 0 if told.get("fence") == 0 else told["statusCode"]


@each(HTTP)
def key_by_method(name):
    """A key is looked for by method, and needed unless the setting says otherwise."""
    settings = {"IDEM_LAMBDA_METHODS": "POST,PUT"}
    required, optional = {}, {"IDEM_LAMBDA_REQUIRED": "no"}
    # Setting, method, key; status (0: it ran unprotected), runs of two deliveries.
    cases = (
        (required, "POST", None, 400, 0),
        (required, "PUT", None, 400, 0),
        (required, "PATCH", "k1", 0, 2),
        (required, "GET", "k2", 0, 2),
        (required, "POST", "k3", 200, 1),
        (optional, "POST", None, 0, 2),
        (optional, "PUT", "k4", 200, 1),
        (optional, "post", "k5", 200, 1),
        (optional, "POST", '""', 400, 0),
    )
    for setting in (required, optional):
        with Sandbox(FUNCTION, {**settings, **setting}) as box:
            for _, method, key, status, runs in (c for c in cases if c[0] is setting):
                before = effects()
                for _ in range(2):
                    told = box.invoke(moved(name, method, "/pay", key)).json()
                    got = status_of(told)
                    equal((setting, method, key, got), (setting, method, key, status))
                ran = effects() - before
                equal((setting, method, key, ran), (setting, method, key, runs))
    # A request without a key says nothing that could be another's.
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_REQUIRED": "no", "IDEM_LAMBDA_SCOPE": ""}) as box:
        equal(box.invoke(moved(name, "POST", "/pay")).json()["fence"], 0)
        equal(box.invoke(moved(name, "POST", "/pay", "k")).json()["statusCode"], 500)


@each(HTTP)
def two_callers_at_once(name):
    """Neither what two callers say at once, nor a caller with another's words in his own, comes to a record of one of them."""
    def by(*who):
        return {**asks(name, who[0]), "callers": who}

    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SCOPE": ".callers[]"}) as box:
        equal(box.invoke(by("alice")).json()["statusCode"], 200)
        for other in ("bob", "alice"):
            refused = box.invoke(by("alice", other)).json()
            equal((other, refused["statusCode"]), (other, 401))
        equal(effects(), 1)
        for count, who in enumerate(("alice/k", "pay/alice", "alice/", "al"), 2):
            equal(box.invoke(by(who)).json()["statusCode"], 200)
            equal((who, effects()), (who, count))


@test
def a_key_that_a_selector_does_not_find():
    """Where no key is needed, a selector that selects null of a request lets it pass; elsewhere it is refused, and so is what is no key."""
    program = {"IDEM_LAMBDA_KEY": ".headers.order"}
    null = {"IDEM_LAMBDA_KEY": "[.headers.order, null]"}
    broken = {"IDEM_LAMBDA_KEY": ".headers.order | fromjson"}
    optional = {"IDEM_LAMBDA_REQUIRED": "no"}
    for env, status in (
        ({**program, **optional}, 0),
        ({**null, **optional}, 0),
        ({**broken, **optional}, 400),
        (program, 400),
        (null, 400),
    ):
        with Sandbox(FUNCTION, env) as box:
            told = box.invoke(http({})).json()
            equal((env, status_of(told)), (env, status))
    before = effects()
    with Sandbox(FUNCTION, {**program, **optional}) as box:
        for _ in range(2):
            equal(box.invoke(http({"order": "7"})).json()["statusCode"], 200)
        equal(effects(), before + 1)
        equal(box.invoke({"headers": {}}).type, "Idem.Invalid")


@test
def a_response_that_asks_for_another_try():
    """A response 401, 407, 429 or 503 releases the key; 500, 402 and 403 are outcomes; after a 504 a person looks."""
    script("say", 'echo effect >>ledger\ncat status\n')
    with Sandbox("say") as box:
        for status, runs in ((401, 2), (407, 2), (429, 2), (503, 2), (500, 1), (402, 1), (403, 1)):
            write("status", json.dumps({"statusCode": status, "body": ""}))
            before = effects()
            for _ in range(2):
                answer = box.invoke(http({"Idempotency-Key": f"s{status}"}))
                equal(answer.json()["statusCode"], status)
            equal((status, effects() - before), (status, runs))
        write("status", '{"statusCode": 504}')
        gone = http({"Idempotency-Key": "gone"})
        equal(box.invoke(gone).json()["statusCode"], 504)
        told = box.invoke(gone).json()
        equal((told["statusCode"], "Retry-After" in told["headers"]), (409, False))
        equal(json.loads(told["body"])["type"], "urn:idem:problem:outcome-unknown")
    listed = Idem()("list", "--status", "unknown").stdout.decode()
    assert "gone" in listed, listed


@test
def a_table_says_what_a_status_is():
    """IDEM_LAMBDA_OUTCOME says what a status of a response is: fail (a person looks), retry, unknown, complete."""
    script("say", 'cat status\n')
    table = "422=fail 503=complete 5xx=retry 409=unknown 700=fail"
    with Sandbox("say", {"IDEM_LAMBDA_OUTCOME": table}) as box:
        box.start()
        equal(box.wait_exit(), 1)
    with Sandbox("say", {"IDEM_LAMBDA_OUTCOME": table.rsplit(" ", 1)[0]}) as box:
        for status, recorded in ((422, "failed"), (503, "completed"), (500, "retry"), (409, "unknown"), (404, "completed")):
            write("status", json.dumps({"statusCode": status}))
            box.invoke(http({"Idempotency-Key": f"s{status}"}))
            shown = Idem()("show", "--json", "-s", "pay", f"s{status}").stdout.decode()
            equal((status, json.loads(shown)["status"]), (status, recorded))
            if recorded == "completed":
                meta = "HTTP 503 complete\n" if status == 503 else f"HTTP {status}\n"
                equal(json.loads(shown)["meta"], meta)
    listed = Idem()("list", "--failed").stdout.decode()
    equal(("s422" in listed, "s503" in listed), (True, False))


@test
def retry_after_follows_the_age_of_the_work():
    """A duplicate is told to come back after half of the time that the work has taken so far."""
    equal(Idem()("begin", "-s", "pay", "-k", "slow").status, 0)
    time.sleep(4.2)
    with Sandbox(FUNCTION) as box:
        told = box.invoke(http({"Idempotency-Key": "slow"})).json()
    headers = told.get("headers") or told["multiValueHeaders"]
    equal((told["statusCode"], effects()), (409, 0))
    assert 2 <= int(headers["Retry-After"]) <= 30, headers


# ---- Waiting ----


def at_work(event, text, env):
    """A delivery in flight: the process that runs a handler of these lines."""
    script("slow", "cat >/dev/null\necho effect >>ledger\nuntil [ -e gate ]; do sleep 0.02; done\n" + text)
    before = effects()
    holder = subprocess.Popen(
        [PROGRAM, "lambda", "invoke", "--handler", "./slow", "--max-time", "5m", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    holder.stdin.write(json.dumps(event).encode())
    holder.stdin.close()
    until(lambda: effects() > before)
    return holder


def open_gate_for(box, event, holder):
    """What a delivery is told that comes while the holder is at work, and waits."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(box.invoke(event)))
    asking.start()
    time.sleep(0.5)
    equal(answers, [])
    write("gate", "")
    asking.join(PATIENCE)
    holder.wait(PATIENCE)
    os.unlink("gate")
    return answers[0]


@test
def a_duplicate_waits_for_the_attempt_in_flight():
    """With IDEM_LAMBDA_WAIT a duplicate is answered with the response of the attempt it waited for; after one that was released, or that is to be run again, it runs itself."""
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_WAIT": "10m"}) as box:
        sent = http({"Idempotency-Key": "replayed"})
        holder = at_work(sent, "echo '{\"statusCode\": 202}'\n", box.env)
        told = open_gate_for(box, sent, holder).json()
        equal((told["statusCode"], effects()), (202, 1))
        equal(told["headers"]["Idempotent-Replayed"], "true")

        for key, line, takeover in (("free", "exit 75", False), ("again", "exit 1", True)):
            before = effects()
            sent = http({"Idempotency-Key": key})
            told = open_gate_for(box, sent, at_work(sent, line + "\n", box.env)).json()
            equal((key, told["takeover"], effects() - before), (key, takeover, 2))

        direct = {"idempotencyKey": "direct"}
        answer = open_gate_for(box, direct, at_work(direct, "echo 7\n", box.env))
        equal((answer.kind, answer.body), ("response", b"7\n"))

        # The owner has died: its lease ends while the duplicate waits.
        held = ("begin", "-s", "pay", "-k", "dead", "--lease", "2s", "--on-expired-lease", "rerun")
        equal(Idem()(*held).status, 0)
        equal(box.invoke(http({"Idempotency-Key": "dead"})).json()["takeover"], True)


@test
def no_wait_outlasts_the_function():
    """A wait ends while there is time left to start and to answer; without the setting, and in a batch, nobody waits."""
    equal(Idem()("begin", "-s", "pay", "-k", "held", "--lease", "1h").status, 0)
    sent = http({"Idempotency-Key": "held"})
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_WAIT": "10m", "IDEM_LAMBDA_START_MIN": "10s"}) as box:
        began = time.monotonic()
        told = box.invoke(sent, seconds=14).json()
        equal((told["statusCode"], "Retry-After" in told["headers"]), (409, True))
        assert time.monotonic() - began > 1, "it did not wait"
        equal(failures(box.invoke(batch("sqs", ["held", "b"]), seconds=PATIENCE)), ["held"])
        equal((effects(), box.kills), (1, 0))
    with Sandbox(FUNCTION) as box:
        equal(box.invoke(sent).json()["statusCode"], 409)


# ---- Whose answer ----

LOGIN = """#!/bin/sh
cat >event; echo effect >>ledger
who=$(sed -n 's/.*"Authorization": *"\\([a-z]*\\)".*/\\1/p' event)
printf '{"statusCode":201,"headers":{"Content-Type":"text/plain","Set-Cookie":"session=%s",' "$who"
printf '"Access-Control-Allow-Origin":"https://%s","X-Order":"7"},' "$who"
printf '"multiValueHeaders":{"Set-Cookie":["session=%s"]},"cookies":["session=%s"],' "$who" "$who"
printf '"body":"account of %s"}' "$who"
"""
CALLER = '.headers.Authorization // .multiValueHeaders.Authorization[0]'


def asks(name, who):
    """A request of @who under one key, the same but for who asks."""
    event = sample(name)
    headers = {"Idempotency-Key": "k", "Host": "a"}
    headers.update({"Authorization": who} if who else {})
    event["headers"] = headers
    event.pop("multiValueHeaders", None)
    return event


@each(HTTP)
def nobody_gets_anothers_response(name):
    """One key of two callers is two records, and no cookie is replayed."""
    write("login", LOGIN, 0o755)
    with Sandbox("login", {"IDEM_LAMBDA_SCOPE": CALLER}) as box:
        first = box.invoke(asks(name, "alice")).json()
        equal((first["body"], "cookies" in first), ("account of alice", True))
        other = box.invoke(asks(name, "bob")).json()
        equal((other["body"], effects()), ("account of bob", 2))
        again = box.invoke(asks(name, "alice")).json()
        equal((again["body"], effects()), ("account of alice", 2))
        headers = {**again.get("headers", {}), **again.get("multiValueHeaders", {})}
        equal(sorted(headers), ["Cache-Control", "Content-Type", "Idempotent-Replayed"])
        assert "session" not in json.dumps(again), again
        refused = box.invoke(asks(name, None)).json()
        equal((refused["statusCode"], effects()), (401, 2))
        equal(json.loads(refused["body"])["type"], "urn:idem:problem:unauthenticated")

    # The control: where all share, bob is given what is alice's, but not her session.
    with Sandbox("login", {"IDEM_LAMBDA_REPLAY_HEADERS": "X-Order"}) as box:
        equal(box.invoke(asks(name, "alice")).json()["body"], "account of alice")
        got = box.invoke(asks(name, "bob")).json()
        equal((got["body"], got["headers"]["X-Order"]), ("account of alice", "7"))
        assert "session" not in json.dumps(got), got


@each(HTTP)
def has_to_say_whose(name):
    """Without IDEM_LAMBDA_SCOPE a request is refused, and the start warns."""
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SCOPE": ""}) as box:
        told = box.invoke(asks(name, "alice")).json()
        equal((told["statusCode"], effects()), (500, 0))
        problem = json.loads(told["body"])
        equal(problem["type"], "urn:idem:problem:scope-not-configured")
        assert "IDEM_LAMBDA_SCOPE" in problem["detail"], problem
        lines = [line for line in box.lines() if "IDEM_LAMBDA_SCOPE" in line["message"]]
        equal([line["level"] for line in lines], ["WARN", "ERROR"])
        equal("requestId" in lines[0], False)
        equal(box.invoke({"idempotencyKey": "no HTTP"}).kind, "response")
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SCOPE": "", "IDEM_LAMBDA_SOURCE": "sqs"}) as box:
        equal(failures(box.invoke(batch("sqs", ["a"]))), [])
        equal([line["level"] for line in box.lines()], ["INFO"])


@test
def hostile_callers():
    """A caller who is no text, empty, too long, or several at once is refused; one whose name looks like another's gets a record of its own."""
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SCOPE": ".caller"}) as box:
        for caller in ("alice", "x" * 200):
            equal(box.invoke({**asks(HTTP[0], None), "caller": caller}).json()["statusCode"], 200)
        for caller in (None, "", [], {}, [None], "x" * 300, ["bob", "alice"], ["alice"], {"a": "alice"}):
            event = {**asks(HTTP[0], None), "caller": caller}
            equal((caller, box.invoke(event).json()["statusCode"]), (caller, 401))
        equal(effects(), 2)
        for caller in ('["alice"]', '{"a":"alice"}', '["alice","bob"] ', "alice/", '=["alice"]'):
            event = {**asks(HTTP[0], None), "caller": caller}
            answer = box.invoke(event).json()
            equal((caller, "headers" in answer), (caller, False))
        equal(effects(), 7)


# ---- Times ----

LIMITER = """#!/bin/sh
cat >event
"$IDEM_PROGRAM" limit --json -n mails -u u1 -r "$IDEM_KEY" -m 8 -p day $WITHOUT >>decisions || exit 1
[ ! -e broken ] || exit 1
echo null
"""


def decisions():
    return [json.loads(line) for line in lines("decisions")]


@test
def a_limit_takes_the_time_of_the_event():
    """Of a message of yesterday a decision is one of yesterday, in each of its deliveries: idem limit takes IDEM_EVENT_MS, which a handler gets. The control takes the moment, and counts the message today."""
    day = 86400000
    now = int(time.time() * 1000)
    sent = now - day
    write("limiter", LIMITER, 0o755)
    env = {"IDEM_PROGRAM": PROGRAM, "WITHOUT": "", "IDEM_EVENT_MS": "1"}
    event = batch("sqs", ["m1"])
    event["Records"][0]["attributes"]["SentTimestamp"] = str(sent)
    with Sandbox("limiter", env) as box, open("broken", "w", encoding="utf-8"):
        equal(failures(box.invoke(event)), ["m1"])
        os.unlink("broken")
        equal(failures(box.invoke(redelivered(event))), [])
    told = decisions()
    equal([one["at_ms"] for one in told], [sent, sent])
    equal([one["repeated"] for one in told], [False, True])
    equal([one["end_ms"] for one in told], [sent - sent % day + day] * 2)

    # The control; and an event that does not say when it happened.
    with Sandbox("limiter", {**env, "WITHOUT": f"--at {now}"}) as box:
        event["Records"][0]["messageId"] = "m2"
        equal(failures(box.invoke(event)), [])
    equal(decisions()[-1]["end_ms"], now - now % day + day)
    with Sandbox("limiter", env) as box:
        equal(box.invoke({"idempotencyKey": "m3"}).kind, "response")
    assert decisions()[-1]["at_ms"] >= now, decisions()


# ---- Inputs ----


def kept(key, scope="pay"):
    shown = Idem()("show", "--input", "-s", scope, key)
    return shown.status, json.loads(shown.stdout or b"null")


@test
def the_event_is_kept_with_its_record():
    """With IDEM_LAMBDA_KEEP_INPUT=yes a record has its event, of a batch its own record alone, and it can be given to the handler again; without it nothing is kept."""
    event = {"idempotencyKey": "direct", "text": "do-fail", "n": 12345678901234567890}
    messages = batch("sqs", ["m1", "poison"])
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEEP_INPUT": "yes"}) as box:
        equal(box.invoke(event).kind, "error")
        equal(failures(box.invoke(messages)), ["poison"])
        before = effects()
        equal(kept("direct"), (0, event))
        for number, key in enumerate(("m1", "poison")):
            equal(kept(key), (0, {"Records": [messages["Records"][number]]}))
    shown = Idem()("show", "--input", "-s", "pay", "m1").stdout
    with Sandbox(FUNCTION, {"IDEM_STORE": "memory:"}) as box:
        equal(failures(box.invoke(shown)), [])
    equal(effects(), before + 1)
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEEP_INPUT": "no"}) as box:
        box.invoke({"idempotencyKey": "bare"})
        status, found = kept("bare")
        equal((status, found), (1, None))


@each(HTTP)
def keeps_no_credential(name):
    """Of a request what was asked is kept, and nothing that proves who asked."""
    secrets = ("Bearer hush", "session=hush", "hush-key", "hush-claim")
    event = sample(name)
    headers = {
        "Idempotency-Key": "k", "Content-Type": "text/plain", "Authorization": secrets[0],
        "Cookie": secrets[1], "X-Api-Key": secrets[2],
    }  # fmt: skip
    event.update(headers=headers, cookies=[secrets[1]], body="the order", isBase64Encoded=False)
    event["multiValueHeaders"] = {name: [value] for name, value in headers.items()}
    event["stageVariables"] = {"db": secrets[2]}
    event["requestContext"]["identity"] = {"apiKey": secrets[2]}
    event["requestContext"]["authorizer"] = {"claims": {"sub": secrets[3]}}
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEEP_INPUT": "yes"}) as box:
        equal(box.invoke(event).json()["statusCode"], 200)
    status, found = kept("k")
    equal((status, found["body"]), (0, "the order"))
    assert "hush" not in json.dumps(found), found
    equal(found["headers"], {"Idempotency-Key": "k", "Content-Type": "text/plain"})
    for member in ("path", "rawPath", "httpMethod", "method", "rawQueryString", "queryStringParameters"):
        equal((member, found.get(member)), (member, event.get(member)))
    # It is still a request of HTTP, with the same fingerprint.
    with Sandbox(FUNCTION) as box:
        equal(box.invoke(found).json()["statusCode"], 200)
    equal(effects(), 1)


# ---- What is compared ----

# One value, spelled in two ways, and one that neither a double nor 64 bits tell from it.
SPELLINGS = (
    '{"a": 36893488147419103233, "b": [1.0, "\\u0041"]}',
    '{"b":[10e-1,"A"],"a":36893488147419103233}',
    '{"a": 36893488147419103232, "b": [1.0, "A"]}',
)


def put(name, event, text):
    """The sample event of a source with the JSON @text as what it brings; as bytes."""
    record = event.get("Records", [{}])[0]
    if name in HTTP or name == "websocket":
        event.update(body=text, isBase64Encoded=False)
    elif name.startswith("kafka"):
        event["records"]["orders-0"][0]["value"] = base64.b64encode(text.encode()).decode()
    elif name.endswith("mq"):
        records = event.get("messages") or event["rmqMessagesByQueue"]["orders::/"]
        records[0]["data"] = base64.b64encode(text.encode()).decode()
    elif name in ("sqs", "sqs-fifo"):
        record["body"] = text
    elif name == "sns":
        record["Sns"]["Message"] = text
    elif name == "kinesis":
        record["kinesis"]["data"] = base64.b64encode(text.encode()).decode()
    else:
        place = {"dynamodb": record.get("dynamodb"), "s3": record.get("s3", {}).get("object")}
        member = {"dynamodb": "NewImage", "s3": "size", "stepfunctions": "Input", "direct": "x"}
        place.get(name, event)[member.get(name, "detail")] = "TEXT"
        return json.dumps(event).replace('"TEXT"', text).encode()
    return json.dumps(event).encode()


@each(ROWS)
def has_one_meaning_in_any_spelling(name):
    """JSON in another order is the same delivery, another number is not."""
    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SOURCE": name}) as box:
        for text, same in zip(SPELLINGS, (True, True, False)):
            answer = box.invoke(put(name, sample(name), text))
            if name in HTTP:
                equal(answer.json()["statusCode"], 200 if same else 422)
            elif name in REPORTED:
                equal(len(failures(answer)), 0 if same else 1)
            else:
                equal(answer.type, None if same else "Idem.Mismatch")
            equal(effects(), 1)


@each(HTTP)
def upload_has_any_boundary(name):
    """A form is its parts, byte for byte."""
    def upload(boundary, content):
        event = sample(name)
        body = b"--%s\r\nContent-Disposition: form-data; name=f\r\n\r\n%s\r\n--%s--\r\n"
        body %= boundary, content, boundary
        headers = {"Idempotency-Key": "u",
                   "content-type": f"multipart/form-data; boundary={boundary.decode()}"}
        event.pop("multiValueHeaders", None)
        event.update(headers=headers, isBase64Encoded=True, body=base64.b64encode(body).decode())
        return box.invoke(event).json()["statusCode"]

    with Sandbox(FUNCTION, {"IDEM_LAMBDA_SOURCE": name}) as box:
        equal(upload(b"one", b"\x00\xff"), 200)
        equal(upload(b"two", b"\x00\xff"), 200)
        equal(upload(b"one", b"\x00\xfe"), 422)
    equal(effects(), 1)


@each(HTTP)
def path_counts_beside_what_is_selected(name):
    """Method, path and query, whatever the selector selects of the body."""
    env = {"IDEM_LAMBDA_SOURCE": name, "IDEM_LAMBDA_FINGERPRINT": ".body | fromjson | .amount"}
    with Sandbox(FUNCTION, env) as box:

        def asked(body, **changed):
            event = {**sample(name), "body": body, "isBase64Encoded": False}
            context = event["requestContext"]
            event.update({k: v for k, v in changed.items() if k in event})
            if "method" in changed and "http" in context:
                context["http"]["method"] = changed["method"]
            return box.invoke(event).json()["statusCode"]

        equal(asked('{"amount":1,"sent":1}'), 200)
        equal(asked('{"sent":2,"amount":1.0}'), 200)
        equal(effects(), 1)
        equal(asked('{"amount":2}'), 422)
        equal(asked('{"amount":1}', path="/refund", rawPath="/refund"), 422)
        query = {"a": "1"}
        equal(asked('{"amount":1}', queryStringParameters=query, rawQueryString="a=1",
                    multiValueQueryStringParameters={"a": ["1"]}), 422)
        equal(asked('{"amount":1}', httpMethod="PATCH", method="PATCH"), 422)
    equal(effects(), 1)


# ---- Keys ----


@test
def keys_and_scopes_by_selectors():
    """Key, scope and fingerprint by selectors; what they do not find is Invalid."""
    env = {
        "IDEM_LAMBDA_KEY": ".order.id",
        "IDEM_LAMBDA_SCOPE": ".tenant",
        "IDEM_LAMBDA_FINGERPRINT": ".amount, .currency",
    }
    with Sandbox(FUNCTION, env) as box:
        one = {"order": {"id": 12345678901234567890}, "tenant": "t1", "amount": 1}
        equal(box.invoke(one).kind, "response")
        equal(box.invoke({**one, "sent": "now"}).kind, "response")
        equal(effects(), 1)
        equal(box.invoke({**one, "amount": 2}).type, "Idem.Mismatch")
        equal(box.invoke({**one, "currency": "EUR"}).type, "Idem.Mismatch")
        equal(box.invoke({**one, "tenant": "t2"}).kind, "response")
        equal(effects(), 2)
        for order in (None, {}, {"id": None}, {"id": [None]}, {"id": ""}, 1):
            answer = box.invoke({**one, "order": order})
            equal((order, answer.type), (order, "Idem.Invalid"))
        equal(box.invoke({**one, "order": {"id": "x" * 5000}}).kind, "response")
    listed = Idem()("list").stdout.decode()
    assert "pay/t1" in listed and "12345678901234567890" in listed, listed
    assert "=#xxx" in listed, listed


@test
def each_key_is_that_of_all_front_ends():
    """Numbers keep their digits, what means the same is one key, and what is no key is Invalid, and the log names the selector."""
    for n, (selector, texts, key) in enumerate(selected.KEYS):
        before = effects()
        with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEY": selected.of(selector, ".x"), "IDEM_LAMBDA_FINGERPRINT": "none",
                                "AWS_LAMBDA_FUNCTION_NAME": f"f{n}"}) as box:  # fmt: skip
            for text in texts:
                answer = box.invoke(b'{"x":%s}' % text.encode())
                equal((selector, text, answer.kind), (selector, text, "response"))
            equal((selector, effects() - before), (selector, 1))
        listed = Idem()("list", "--json").stdout.decode()
        assert any(json.loads(line)["key"] == key for line in listed.splitlines()), (key, listed)
    before = effects()
    for selector, texts in selected.REFUSED:
        with Sandbox(FUNCTION, {"IDEM_LAMBDA_KEY": selected.of(selector, ".x")}) as box:
            for text in texts:
                answer = box.invoke(b'{"x":%s}' % text.encode())
                equal((selector, text, answer.type), (selector, text, "Idem.Invalid"))
            records = {"Records": [{"messageId": m, "eventSource": "aws:sqs", "body": "x"} for m in "ab"]}
            equal(failures(box.invoke(records)), ["a", "b"])
    equal(effects(), before)


@test
def two_functions_share_no_record():
    """The same event in two functions runs in both, unless they are told to share."""
    event = {"idempotencyKey": "a"}
    for name in ("one", "two"):
        with Sandbox(FUNCTION, {"AWS_LAMBDA_FUNCTION_NAME": name}) as box:
            equal(box.invoke(event).kind, "response")
    equal(effects(), 2)
    for name in ("three", "four"):
        env = {"AWS_LAMBDA_FUNCTION_NAME": name, "IDEM_SCOPE": "shop"}
        with Sandbox(FUNCTION, env) as box:
            equal(box.invoke(event).kind, "response")
    equal(effects(), 3)


if __name__ == "__main__":
    main()
