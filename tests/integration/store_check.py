"""idem store check: what is wrong with a store is found, and how to mend it."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import time
import urllib.error

import dynamo
from aws_server import ENV, Server
from checks import REGION, TABLE, aws_line, check, grades, mend_of, pairs, server
from patience import until
from ports import free_port
from tap import PROGRAM, Idem, environment, equal, main, run, test


# ---- A real server ----


def run_line(line, env):
    """Run a command line that a check gave."""
    words = shlex.split(line)
    equal(words[0], "idem")
    done = run([PROGRAM, *words[1:]], env)
    equal((done.status, done.stderr), (0, b""))


def a_new_table(kind):
    with server(kind) as (url, store):
        env = dynamo.environment()
        status, findings = check(store, env)
        equal((status, list(findings)), (78, ["table"]))
        run_line(mend_of(findings, "table"), env)
        status, findings = check(store, env)
        equal((status, grades(findings)), (0, {"protection": ["warn"], "backups": ["warn"]}))
        equal(len(findings["right"]), 7)
        # Nothing is written, and what is there stays.
        equal(run([PROGRAM, "run", "--store", store, "-k", "a", "--", "true"], env).status, 0)
        before = dynamo.call(url, "Scan", {"TableName": TABLE})
        equal(before["Count"], 1)
        equal(check(store, env)[0], 0)
        equal(dynamo.call(url, "Scan", {"TableName": TABLE}), before)


@test
def local_has_what_create_makes():
    """On DynamoDB Local the command that a check gives makes the table, which is as
    it should be then; a check writes nothing."""
    a_new_table("local")


def index_states(url):
    table = dynamo.call(url, "DescribeTable", {"TableName": TABLE})["Table"]
    return {index["IndexStatus"] for index in table["GlobalSecondaryIndexes"]}


def add_index(url, line):
    """What the AWS command line would make of it."""
    options = aws_line(line, "update-table")
    updates = json.loads(options["global-secondary-index-updates"][0])
    key = {"AttributeName": "id", "AttributeType": "S"}
    dynamo.call(url, "UpdateTable", {
        "TableName": TABLE,
        "AttributeDefinitions": [*pairs(options["attribute-definitions"]), key],
        "GlobalSecondaryIndexUpdates": updates,
    })
    until(lambda: index_states(url) == {"ACTIVE"}, "the index")


@test
def a_table_of_somebody_else_is_told():
    """A wrong key, no index, a fixed capacity and no TTL are found on DynamoDB Local;
    the lines that mend the index and the TTL do."""
    with server("local") as (url, store):
        env = dynamo.environment()
        units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        for key, bad in (("pk", True), ("id", False)):
            dynamo.call(url, "CreateTable", {
                "TableName": TABLE, "ProvisionedThroughput": units,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            })
            status, findings = check(store, env)
            found = grades(findings)
            equal((status, found.get("key")), (78, ["bad"] if bad else None))
            equal((found["index"], found["billing"], found["ttl"]), (["bad"], ["warn"], ["warn"]))
            if bad:
                dynamo.call(url, "DeleteTable", {"TableName": TABLE})
        equal(check(store + "&index=off", env)[0], 0)
        line = mend_of(findings, "billing")
        mode = aws_line(line, "update-table")["billing-mode"][0]
        dynamo.call(url, "UpdateTable", {"TableName": TABLE, "BillingMode": mode})
        add_index(url, mend_of(findings, "index"))
        run_line(mend_of(findings, "ttl"), env)
        until(lambda: "index" not in grades(check(store, env)[1]), "the index is active")
        status, findings = check(store, env)
        equal((status, grades(findings)), (0, {"protection": ["warn"], "backups": ["warn"]}))
        equal(grades(check(store + "&index=off", env)[1])["index"], ["warn"])
        off = {"Enabled": False, "AttributeName": "ttl"}
        other = {"Enabled": True, "AttributeName": "since"}
        for setting in (off, other):
            dynamo.call(url, "UpdateTimeToLive",
                        {"TableName": TABLE, "TimeToLiveSpecification": setting})
        line = mend_of(check(store, env)[1], "ttl")
        equal(pairs(aws_line(line, "update-time-to-live")["time-to-live-specification"]),
              [{"Enabled": "false", "AttributeName": "since"}])


# ---- A server that says what it is told to say ----

DESCRIBED = {
    "TableName": TABLE,
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "open", "AttributeType": "S"},
        {"AttributeName": "since", "AttributeType": "N"},
    ],
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "DeletionProtectionEnabled": True,
    "GlobalSecondaryIndexes": [{
        "IndexName": "open",
        "IndexStatus": "ACTIVE",
        "KeySchema": [
            {"AttributeName": "open", "KeyType": "HASH"},
            {"AttributeName": "since", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }],
}
RECOVERY = {"PointInTimeRecoveryStatus": "ENABLED"}
REFUSED = "ConditionalCheckFailedException"


def say(answer):
    return lambda connection, request: connection.crc_answer(json.dumps(answer).encode())


def refuse(name, status="400 Bad Request"):
    body = json.dumps({"__type": "com.amazonaws.dynamodb.v20120810#" + name,
                       "message": "because"}).encode()
    return lambda connection, request: connection.answer(body, status=status)


HEALTHY = {
    "DescribeTable": say({"Table": DESCRIBED}),
    "DescribeTimeToLive": say({"TimeToLiveDescription": {
        "TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}}),
    "DescribeContinuousBackups": say({"ContinuousBackupsDescription": {
        "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": RECOVERY}}),
    "PutItem": refuse(REFUSED),
    "DeleteItem": refuse(REFUSED),
    "Query": say({"Items": [], "Count": 0}),
    "Scan": say({"Items": [], "Count": 0}),
}
RIGHTS = ["GetItem", "PutItem", "BatchGetItem", "BatchWriteItem", "Query", "Scan", "DeleteItem"]


def checked(answers, more="", offset=0):
    """check() of a server with these @answers in the place of the healthy ones."""
    with Server({**HEALTHY, **answers}, offset=offset) as server_:
        url = f"dynamodb://{TABLE}?region={REGION}&endpoint={server_.url}{more}"
        result = check(url, ENV)
        server_.all_signed()
        return result


def described(**changes):
    return {"DescribeTable": say({"Table": {**DESCRIBED, **changes}})}


@test
def a_healthy_table_is_healthy():
    """Where everything is as it should be, all is ok and the status is 0."""
    status, findings = checked({})
    equal((status, grades(findings)), (0, {}))
    equal(sorted(findings), sorted(["table", "key", "index", "billing", "replicas",
                                    "protection", "ttl", "backups", "clock", "right"]))


@test
def what_asks_for_a_right_to_write_cannot_write():
    """The requests that try the rights to write are refused by a real server, whether
    there is an item of that key or not."""
    with Server(HEALTHY) as fake:
        equal(check(f"dynamodb://{TABLE}?region={REGION}&endpoint={fake.url}", ENV)[0], 0)
        tries = {each.action: json.loads(each.body) for each in fake.seen}
        scans = [json.loads(each.body)["Limit"] for each in fake.seen if each.action == "Scan"]
        equal(scans, [1, 1])  # check() runs it twice; it reads no more of the table.
    item = tries["PutItem"]["Item"]
    writes = ["PutItem", "DeleteItem"]
    equal(sorted(name for name in tries if re.match("Put|Delete|Update|Transact", name)),
          sorted(writes))
    equal(tries["BatchWriteItem"]["RequestItems"][TABLE], [{"DeleteRequest": {"Key": item}}])
    with server("dynoxide") as (url, store):
        equal(run([PROGRAM, "store", "create", "--store", store], ENV).status, 0)
        for there in (False, True):
            if there:
                dynamo.call(url, "PutItem", {"TableName": TABLE, "Item": item})
            for name in writes:
                try:
                    dynamo.call(url, name, tries[name])
                    raise AssertionError(f"{name} was not refused")
                except urllib.error.HTTPError as error:
                    assert REFUSED.encode() in error.read()


@test
def missing_rights_are_named():
    """Each right that is missing is named; those of operators are no reason to fail."""
    for action in RIGHTS:
        status, findings = checked({action: refuse("AccessDeniedException")})
        operators = action in ("Query", "Scan", "DeleteItem")
        equal((action, status, grades(findings)),
              (action, 0 if operators else 78, {"right": ["warn" if operators else "bad"]}))
        assert f"dynamodb:{action} " in mend_of(findings, "right"), findings


@test
def a_layout_says_what_it_gives_up():
    """What a layout does not keep is a warning for each; where a release deletes, the
    right to delete is everybody's."""
    denied = {"DeleteItem": refuse("AccessDeniedException")}
    for layout, status, grade in (("lock-token", 78, "bad"), ("powertools-python", 0, "warn")):
        more = f"&layout={layout}&key-attr=id&expiry-attr=ttl"
        healthy = checked({}, more)
        equal((layout, healthy[0], list(grades(healthy[1]))), (layout, 0, ["layout"]))
        assert len(healthy[1]["layout"]) >= 3, healthy
        for _, text, mend in healthy[1]["layout"]:
            assert text.startswith(layout + ": ") and "docs/layouts.md" in mend, (text, mend)
        got, findings = checked(denied, more)
        equal((layout, got, grades(findings)["right"]), (layout, status, [grade]))


@test
def a_table_that_may_not_be_described():
    """Without the rights to describe, what is left is checked, and the rest is told."""
    denied = refuse("AccessDeniedException")
    asked = ("DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups")
    status, findings = checked({name: denied for name in asked})
    equal((status, grades(findings)), (0, {"table": ["warn"], "ttl": ["warn"], "backups": ["warn"]}))
    equal(len(findings["right"]), 7)
    for name in asked:
        equal(sum(name in mend for each in findings.values() for _, _, mend in each), 1)
    status, findings = checked({"DescribeTable": denied,
                                "GetItem": refuse("ResourceNotFoundException")})
    equal((status, [each[0] for each in findings["table"]]), (78, ["warn", "bad"]))
    assert "right" not in findings, findings


@test
def credentials_that_nobody_knows():
    """Credentials that the service does not know are told, and nothing else is asked."""
    for name in ("UnrecognizedClientException", "InvalidSignatureException"):
        status, findings = checked({"DescribeTable": refuse(name)})
        equal((status, list(findings)), (77, ["credentials"]))


@test
def what_is_no_dynamodb():
    """A server that is down, or answers with something else, is told as such."""
    for answer, wanted in ((say({"hello": 1}), 78), (say([]), 69),
                           (refuse("InternalServerError", "500 Internal Server Error"), 69)):
        status, findings = checked({"DescribeTable": answer})
        equal((status, list(findings)), (wanted, ["service"]))
    store = f"dynamodb://{TABLE}?region={REGION}&endpoint=http://127.0.0.1:{free_port()}"
    status, findings = check(store, ENV)
    equal((status, list(findings)), (69, ["service"]))


@test(rows=[31])
def lagging_replicas_are_refused():
    """Replicas where the last writer wins are bad, unless one region alone writes; with
    strong consistency they are not."""
    both = [{"RegionName": "us-east-1"}, {"RegionName": REGION}]
    for changes in ({"Replicas": both}, {"Replicas": both, "MultiRegionConsistency": "EVENTUAL"},
                    {"GlobalTableVersion": "2017.11.29"}):
        status, findings = checked(described(**changes))
        equal((status, grades(findings)), (78, {"replicas": ["bad"]}))
        line = aws_line(mend_of(findings, "replicas"), "update-table")
        deleted = json.loads(line["replica-updates"][0])[0]["Delete"]["RegionName"]
        equal(deleted, "us-east-1" if "Replicas" in changes else "REGION")
        status, findings = checked(described(**changes), more=f"&writer={REGION}")
        equal((status, grades(findings)), (0, {"replicas": ["warn"]}))
    for changes in ({"Replicas": both, "MultiRegionConsistency": "STRONG"},
                    {"Replicas": both[1:], "GlobalTableVersion": "2019.11.21"}, {"Replicas": []}):
        equal(checked(described(**changes))[0], 0)


@test(rows=[31])
def another_region_does_not_write():
    """With writer= only that region's processes run anything; others may look."""
    with Server(HEALTHY) as server_:
        store = f"dynamodb://{TABLE}?region={REGION}&endpoint={server_.url}&writer=us-east-1"
        done = run([PROGRAM, "run", "--store", store, "-k", "a", "--", "touch", "effect"], ENV)
        equal((done.status, os.path.exists("effect")), (78, False))
        assert b"lets only us-east-1 write" in done.stderr, done.stderr
        equal(len(server_.seen), 0)
        equal(run([PROGRAM, "list", "--store", store], ENV).status, 0)
        equal(check(store, ENV)[0], 0)


@test
def back_ups_and_protection_are_hints():
    """Without point-in-time recovery or deletion protection the status is 0 still."""
    off = {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": {
        "PointInTimeRecoveryStatus": "DISABLED"}}}
    status, findings = checked({"DescribeContinuousBackups": say(off),
                                **described(DeletionProtectionEnabled=False)})
    equal((status, grades(findings)), (0, {"backups": ["warn"], "protection": ["warn"]}))
    line = aws_line(mend_of(findings, "backups"), "update-continuous-backups")
    equal(pairs(line["point-in-time-recovery-specification"]),
          [{"PointInTimeRecoveryEnabled": "true"}])
    line = aws_line(mend_of(findings, "protection"), "update-table")
    equal(line["deletion-protection-enabled"], [])


@test
def a_table_in_another_state():
    """A table that is being made or deleted is bad; one whose settings change is not."""
    for status, grade in (("CREATING", "bad"), ("DELETING", "bad"), ("ARCHIVED", "bad"),
                          ("INACCESSIBLE_ENCRYPTION_CREDENTIALS", "bad"), ("UPDATING", "ok")):
        equal(checked(described(TableStatus=status))[1]["table"][0][0], grade)
    index = dict(DESCRIBED["GlobalSecondaryIndexes"][0], IndexStatus="CREATING")
    status, findings = checked(described(GlobalSecondaryIndexes=[index]))
    equal((status, grades(findings)), (0, {"index": ["warn"]}))
    index["KeySchema"] = index["KeySchema"][:1]
    equal(checked(described(GlobalSecondaryIndexes=[index]))[0], 78)
    types = [*DESCRIBED["AttributeDefinitions"][:2], {"AttributeName": "since", "AttributeType": "S"}]
    equal(checked(described(AttributeDefinitions=types))[0], 78)


@test
def odd_descriptions_are_no_crash():
    """A description that lacks everything, or has other types, is bad and no crash."""
    for odd in ({}, {"TableStatus": 1, "KeySchema": {}, "AttributeDefinitions": [1, None, "a"]},
                {"TableStatus": "ACTIVE", "KeySchema": [[]], "Replicas": [1, {}, None],
                 "GlobalSecondaryIndexes": ["open", {"IndexName": "open", "KeySchema": 3}]}):
        status, findings = checked({"DescribeTable": say({"Table": odd}),
                                    "DescribeTimeToLive": say({"TimeToLiveDescription": 7}),
                                    "DescribeContinuousBackups": say({})})
        equal((status, grades(findings)["ttl"], grades(findings)["backups"]), (78, ["warn"], ["warn"]))


@test
def a_clock_that_is_off():
    """A clock that is off is told; with clock=host it is bad."""
    equal(grades(checked({})[1]), {})
    for offset in (3600, -3600):
        equal(checked({}, offset=offset)[0], 0)
        equal(grades(checked({}, offset=offset)[1]), {"clock": ["warn"]})
        status, findings = checked({}, more="&clock=host", offset=offset)
        equal((status, grades(findings)), (78, {"clock": ["bad"]}))
        assert "60 minutes" in findings["clock"][0][1], findings


# ---- Files ----


def a_file():
    """A store with one record, whose URL is returned; in a directory of its own."""
    os.mkdir("own", 0o700)
    path = os.path.abspath("own/idem.db")
    equal(Idem("sqlite:" + path)("run", "-k", "a", "--", "echo", "hello").status, 0)
    return path


@test
def a_missing_file_is_made_by_the_line():
    """A file that is missing is bad; the line that mends it does."""
    os.mkdir("own", 0o700)
    store = "sqlite:" + os.path.abspath("own/idem.db")
    status, findings = check(store)
    equal((status, list(findings)), (78, ["file"]))
    run_line(mend_of(findings, "file"), None)
    equal((check(store)[0], grades(check(store)[1])), (0, {}))
    status, findings = check("sqlite:" + os.path.abspath("none/idem.db"))
    equal((status, mend_of(findings, "file").split()[0]), (78, "mkdir"))


@test
def files_that_others_may_use():
    """What others may read or write is told, and the lines that mend it do."""
    store = "sqlite:" + a_file()
    equal((check(store)[0], grades(check(store)[1])), (0, {}))
    for name, mode, about, status in (
        ("own", 0o770, "directory", 0), ("own", 0o777, "directory", 0),
        ("own/idem.db", 0o640, "mode", 0), ("own/idem.db", 0o660, "mode", 0),
        ("own/idem.db", 0o604, "mode", 0), ("own/idem.db", 0o602, "mode", 78),
        ("own/idem.db-reserve", 0o606, "mode", 0), ("own/idem.db-lock", 0o666, "mode", 0),
    ):
        os.chmod(name, mode)
        got, findings = check(store)
        equal((name, mode, got), (name, mode, status))
        assert about in grades(findings), findings
        subprocess.run(shlex.split(mend_of(findings, about)), check=True)
        equal((check(store)[0], grades(check(store)[1])), (0, {}))


@test
def a_reserve_that_was_used():
    """A reserve that is not whole is told."""
    path = a_file()
    os.truncate(path + "-reserve", 1 << 20)
    equal(grades(check("sqlite:" + path)[1]), {"reserve": ["warn"]})


@test
def damage_is_found():
    """A damaged file, a changed record and a newer schema are bad."""
    path = a_file()
    store = "sqlite:" + path

    def change(sql, status, about):
        shutil.copy(path, "kept")
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(sql)
            db.commit()
        got, findings = check(store)
        equal((sql, got, grades(findings)), (sql, status, {about: ["bad"]}))
        for name in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + name)
        shutil.copy("kept", path)

    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    change("UPDATE idem_record SET head = CAST(substr(head, 1, 30) || x'ff' || "
           "substr(head, 32) AS BLOB)", 74, "records")
    change("PRAGMA user_version = 999", 78, "open")
    equal((check(store)[0], grades(check(store)[1])), (0, {}))

    with contextlib.closing(sqlite3.connect(path)) as db:
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'idem_record'").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    with open(path, "r+b") as f:
        f.seek((page - 1) * size + 3)
        f.write(b"\xff\xff")
    status, findings = check(store)
    equal(status, 74)
    assert "bad" in [each[0] for each in findings["file"]], findings
    with open(path, "r+b") as f:
        f.write(b"no database at all")
    equal(check(store)[0], 74)


@test
def a_copy_that_was_put_back():
    """A copy that was put back and is not marked is bad; the line that mends it marks it."""
    path = a_file()
    store = "sqlite:" + path
    run(["sqlite3", "-readonly", path, f".backup '{path}.copy'"])
    time.sleep(1.2)
    equal(Idem(store)("run", "-k", "b", "--", "true").status, 0)
    for name in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + name)
    os.replace(path + ".copy", path)
    os.chmod(path, 0o600)
    status, findings = check(store)
    equal((status, grades(findings)), (78, {"copy": ["bad"]}))
    run_line(mend_of(findings, "copy") + " --yes", None)
    equal((check(store)[0], grades(check(store)[1])), (0, {}))


def a_large_file():
    """Likewise, with more pages than a quick check reads."""
    path = a_file()
    big = ["run", "-k", "big", "--max-output", "32M", "--", "head", "-c", "20000000", "/dev/zero"]
    equal(Idem("sqlite:" + path)(*big).status, 0)
    return path


@test
def a_quick_check_says_what_it_left_out():
    """doctor says what it did not read, and which command reads it; it does not call a
    part whole."""
    store = "sqlite:" + a_large_file()
    _, findings = check(store, verb=["doctor"])
    equal((grades(findings)["records"], "file" in grades(findings)), (["skip"], False))
    line = mend_of(findings, "records")
    equal(line, f"idem store check --store '{store}'")
    run_line(line, None)
    equal((check(store)[0], grades(check(store)[1])), (0, {}))
    idem = Idem(store)
    for verb, whole in ((["doctor"], False), (["store", "check"], True)):
        answer = json.loads(idem(*verb, "--json").stdout)
        equal((verb, answer["whole"], answer["usable"]), (verb, whole, True))
        said = idem(*verb).stdout.decode()
        equal((verb, "skip  records: the records " in said, "ok    file: it is whole" in said),
              (verb, not whole, whole))


@test
def the_copy_takes_room_and_leaves_nothing():
    """A check says how large its copy is before it makes it; where that cannot be
    written, it says so and ends with another status than 0. No file is left."""
    store = "sqlite:" + a_large_file()
    os.mkdir("copies")
    where = {"TMPDIR": os.path.abspath("copies")}
    status, findings = check(store, where)
    equal((status, grades(findings), os.listdir("copies")), (0, {}, []))
    (_, text, _), = findings["copy"]
    assert re.fullmatch(r"reading a copy of (19|2\d) MiB in " + where["TMPDIR"] +
                        ", deleted at the end", text), text

    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh"]
    done = subprocess.run([*limited, PROGRAM, "store", "check", "--json", "--store", store],
                          capture_output=True, env=environment(where))
    found = {each["about"]: each for each in json.loads(done.stdout)["findings"]}
    equal((done.returncode, found["copy"]["grade"], "records" in found), (73, "bad", False))
    assert "cannot write a copy in " + where["TMPDIR"] in found["copy"]["text"], found
    equal(os.listdir("copies"), [])


@test
def a_signal_stops_a_check():
    """SIGINT ends a check with 75, and what was found by then."""
    store = "sqlite:" + a_file()

    def interrupted():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)  # Waits for the check to take it.

    done = subprocess.run([PROGRAM, "store", "check", "--json", "--store", store],
                          capture_output=True, preexec_fn=interrupted, env=environment({}))
    equal(done.returncode, 75)
    assert b"stopped by a signal at " in done.stderr, done.stderr
    answer = json.loads(done.stdout)
    equal((answer["whole"], answer["usable"]), (False, True))


if __name__ == "__main__":
    main()
