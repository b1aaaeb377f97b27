"""idem watch: what should have ended by now is told, and each alert is raised once."""

import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import time

import dynamo
from files import read, read_bytes
from checks import store_of
from patience import PATIENCE, until
from records import line_of, write_export
from tap import PROGRAM, Idem, each, equal, end_session, main, note, start, test
from terminals import at_terminal

AWS = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}
HOOK = "cat >>alerts"
PASSED = 3.5  # More than a second by DynamoDB's time, which each process learns within a second.


class Store(Idem):
    def __call__(self, *args, env=None, **rest):
        return super().__call__(*args, env={**AWS, **(env or {})}, **rest)


@contextlib.contextmanager
def place(kind):
    if kind == "sqlite":
        yield Store()
        return
    with store_of(kind, Store) as store:
        yield store


def begin(store, key, *options):
    done = store("begin", "-k", key, "--owner", "worker/7", *options)
    equal((done.status, done.stderr), (0, b""))
    return done.stdout.decode().strip()


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith(b"{")]


def alerts():
    with contextlib.suppress(FileNotFoundError):
        return lines(read_bytes("alerts"))
    return []


def metrics(path="metrics.prom"):
    """{name: value} of what has no label but the store's."""
    with open(path, encoding="ascii") as f:
        found = [line.rstrip().rpartition(" ") for line in f if not line.startswith("#")]
    return {name.partition("{")[0]: float(value) for name, _, value in found}


def watch(store, *options, **rest):
    """One look, and the metrics of that moment."""
    store("stats", "--format", "prometheus", "--output", "metrics.prom")
    return store("watch", "--once", *options, **rest)


def killed_worker(store, key, expect):
    """A worker that claims the key and is killed before it says how it ended."""
    script = f'"$0" begin -k {key} --owner worker/7 --expect {expect} --lease 1h >token && sleep 1000'
    worker = start(["sh", "-c", script, PROGRAM], {**AWS, "IDEM_STORE": store.store})
    try:
        until(lambda: os.path.exists("token") and os.path.getsize("token"))
    finally:
        end_session(worker)
    equal(worker.returncode, -signal.SIGKILL)


@each(("sqlite", "dynoxide"))
def tells_of_a_killed_worker(kind):
    """A worker killed after begin is told once it is late, and once only."""
    with place(kind) as store:
        killed_worker(store, "order-42", "20s")
        alive = begin(store, "order-43", "--expect", "1h", "--lease", "1h")

        early = watch(store, "--hook", HOOK)
        equal((early.status, alerts()), (0, []))
        equal(metrics()["idem_overdue"], 0)
        equal(metrics()["idem_in_progress"], 2)

        record = json.loads(store("show", "--json", "order-42").stdout)
        time.sleep(max(0, record["expected_ms"] / 1000 - time.time()) + 1.2)
        late = watch(store, "--hook", HOOK)
        equal(late.status, 2)
        assert late.stdout.startswith(b"IDEM CRITICAL - 1 overdue, 0 failed,"), late
        (line,) = lines(late.stdout)
        told = {name: line[name] for name in ("event", "level", "scope", "key", "owner", "raised")}
        equal(told, {"event": "overdue", "level": "critical", "scope": "", "key": "order-42",
                     "owner": "worker/7", "raised": "now"})
        equal((line["fence"], line["created_ms"]), (record["fence"], record["created_ms"]))
        equal(metrics()["idem_overdue"], 1)
        equal([(a["key"], a["event"]) for a in alerts()], [("order-42", "overdue")])

        # It stands, and nobody is told again.
        for _ in range(2):
            again = watch(store, "--hook", HOOK)
            equal((again.status, lines(again.stdout)[0]["raised"]), (2, "before"))
        equal(len(alerts()), 1)

        done = store("resolve", "order-42", "--force", "--complete", "paid", "--reason", "the bank has it",
                     "--owner", "ada@ops", "--fence", str(record["fence"]))
        equal(done.status, 0)
        assert done.stderr.startswith(b"idem: a running lease is overridden"), done.stderr
        clear = watch(store, "--hook", HOOK)
        equal((clear.status, lines(clear.stdout), len(alerts())), (0, [], 1))
        equal(metrics()["idem_overdue"], 0)
        shown = json.loads(store("show", "--json", "order-42").stdout)
        equal(shown["note"], "the bank has it")
        assert "ada@ops" in json.dumps(shown), shown
        with open("audit.log", encoding="utf-8") as f:
            (kept,) = [json.loads(text) for text in f]
        equal((kept["who"], kept["why"], kept["before"], kept["after"], kept["fence"]),
              ("ada@ops", "the bank has it", "in_progress", "completed", record["fence"]))
        equal(store("complete", "--token", "-", input=alive.encode()).status, 0)
        equal(metrics()["idem_up"], 1)
        note(f"{kind}: 5 looks, 1 alert")


@test
def many_watchers_raise_an_alert_once():
    """Of eight watchers at a time one raises an alert; without idem all of them do."""
    store = Store()
    for i in range(3):
        begin(store, f"k{i}", "--expect", "1ms", "--lease", "1h")
    time.sleep(0.05)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: watch(store, "--json", "--hook", HOOK), range(8)))
    equal([each.status for each in done], [2] * 8)
    raised = [line["raised"] for each in done for line in lines(each.stdout) if "raised" in line]
    equal((len(raised), raised.count("now"), raised.count("failed")), (24, 3, 0))
    equal(sorted(a["key"] for a in alerts()), ["k0", "k1", "k2"])

    # The control: the same hook for what each look found.
    plain = [a for _ in range(8) for a in lines(store("watch", "--once").stdout)]
    equal(len(plain), 24)
    note("8 watchers, 3 alerts: 3 hooks; without a claim 24")

    def listed(*options):
        return [line["scope"] for line in lines(store("list", "--json", *options).stdout)]

    equal(listed(), [""] * 3)
    equal(listed("--status", "completed"), [])
    equal(listed("--scope", "idem.watch"), ["idem.watch"] * 3)


@test
def a_hook_that_fails_is_run_again():
    """An alert whose hook fails, hangs or is killed is raised at the next look."""
    store = Store()
    begin(store, "k", "--expect", "1ms", "--lease", "1h")
    time.sleep(0.05)
    for hook, word in (
        ("exit 3", b"status 3"),
        ("kill -9 $$", b"status 137"),
        ("sleep 100 & sleep 100", b"status 124"),
        ("/nonexistent/pager", b"status 127"),
    ):
        limit = "200ms" if "sleep" in hook else "20s"
        done = watch(store, "--hook", hook, "--max-time", limit)
        equal((done.status, lines(done.stdout)[0]["raised"]), (2, "failed"))
        assert word in done.stderr, done
    equal(lines(watch(store, "--hook", HOOK).stdout)[0]["raised"], "now")
    equal(len(alerts()), 1)


@test
def a_hook_has_a_sentence_for_people():
    """The first argument says what is wrong, and its command shows more: also where it is typed
    in another shell, in which IDEM_STORE is not set."""
    store = Store()
    hook = 'echo "$1" >>said'
    begin(store, "late one", "--scope", "eu", "--expect", "1ms", "--lease", "1h")
    equal(store("run", "-k", "bad", "--", "sh", "-c", "kill -9 $$").status, 137)
    for key in ("worse\nX", "-k", "escaped:a\\b"):
        equal(store("run", "--key=" + key, "--", "sh", "-c", "exit 3").status, 3)
    time.sleep(0.05)
    equal(watch(store, "--hook", hook, "--warn", "in_progress=0").status, 2)
    said = sorted(read("said").splitlines())
    show = f"see: idem show --store={store.store}"
    equal(said, [f'"-k" ended with exit status 3; {show} -- -k',
                 f'"bad" has an unknown outcome; {show} bad',
                 f'"escaped:a\\x5cb" ended with exit status 3; {show} ' + "'escaped:escaped:a\\x5cb'",
                 f'"late one" should have ended by now; {show} --scope=eu \'late one\'',
                 f'"worse\\x0aX" ended with exit status 3; {show} ' + "'escaped:worse\\x0aX'",
                 "1 are in progress, more than the limit"])
    for line in said[:5]:
        command = shlex.split(line.partition("see: idem ")[2])
        equal(store(*command, env={"IDEM_STORE": ""}).status, 0)
    # Where a person forgets it, the message names the store that was read.
    elsewhere = {"IDEM_STORE": "", "XDG_STATE_HOME": os.path.abspath("state")}
    equal(store("run", "-k", "other", "--", "true", env=elsewhere).status, 0)
    got = store("show", "bad", env=elsewhere)
    equal(got.status, 1)
    told = f"idem: this is the store sqlite:{os.getcwd()}/state/idem/idem.db; another is named by"
    assert told in got.stderr.decode(), got
    equal(store("show", "none").stderr, b'idem: no record for "none"; see: idem list\n')


@test
def a_person_who_looks_once_reads_sentences():
    """On a terminal --once tells what stands in words; with --json it does not."""
    store = Store()
    equal(store("run", "-k", "bad", "--", "false").status, 1)
    for options, second in (((), '"bad" ended with exit status 1; see: idem show bad'), (("--json",), "{")):
        command = [PROGRAM, "watch", "--once", *options]
        status, text = at_terminal(command, {"IDEM_STORE": store.store}, own=("stdout",))
        told = text.splitlines()
        equal((status, len(told), told[1].startswith(second)), (1, 2, True))


@test
def levels_follow_the_limits():
    """--warn and --critical say from which number on an alert is one, for each kind."""
    store = Store()
    for i in range(3):
        begin(store, f"live{i}", "--lease", "1h")
    token = begin(store, "bad", "--lease", "1h")
    equal(store("fail", "--reason", "no", "--token", "-", input=token.encode()).status, 0)
    for options, status, events in (
        ((), 1, ["failed"]),
        (("--warn", "failed=1"), 0, []),
        (("--critical", "failed=0"), 2, ["failed"]),
        (("--warn", "failed=never"), 0, []),
        (("--warn", "failed=never,in_progress=2"), 1, ["in_progress"]),
        (("--warn", "failed=never,in_progress=3"), 0, []),
        (("--warn", "in_progress=1", "--critical", "in_progress=2"), 2, ["failed", "in_progress"]),
        (("--warn", "failed=never,failed_outcome=0"), 0, []),
    ):
        done = watch(store, *options)
        got = [line["event"] for line in lines(done.stdout)]
        equal((options, done.status, got), (options, status, events))
    for bad in ("failed", "failed=", "failed=x", "none=1", "failed=-1", "failed=1,", "=1",
                "failed=99999999999999999999"):
        equal((bad, store("watch", "--once", "--warn", bad).status), (bad, 64))
    equal(store("watch").status, 64)
    equal(store("watch", "--once", "--every", "1s").status, 64)


@each(("dynoxide", "postgresql"))
def a_job_without_success_is_told(kind):
    """--missing is critical while no success is young enough, whatever the reason is."""
    with place(kind) as store:
        for key, options, command, status in (
            ("ran@1", (), "true", 0), ("named@1", ("--outcome", "3=complete"), "exit 3", 3),
            ("failed@1", (), "exit 1", 1), ("busy@1", (), "exit 75", 75), ("again@1", ("--outcome", "jobs"), "exit 1", 1),
            ("absent@1", (), "exec none-such", 127), ("short@1", ("--retention", "1h"), "true", 0),
        ):
            equal((key, store("run", "-qk", key, *options, "--", "sh", "-c", command).status), (key, status))
        begin(store, "runs@1", "--lease", "1h")
        bad = ["failed@*", "busy@*", "again@*", "absent@*", "runs@*", "never@*", "ran@"]
        alone = ("--warn", "failed_outcome=never", "--within", "20h", "--missing")
        for _ in range(2):
            done = store("watch", "--once", *alone, ",".join(["ran@*", *bad]), "--hook", HOOK)
            equal((done.status, [line["keys"] for line in lines(done.stdout)]), (2, bad))
            assert b", 7 missing |" in done.stdout and done.stdout.splitlines()[0].endswith(b" missing=7;;0;0"), done
            equal({line["event"] for line in lines(done.stdout)}, {"missing"})
        equal([a["keys"] for a in alerts()], bad)
        good = store("watch", "--once", *alone, "ran@*,named@*")
        equal((good.status, lines(good.stdout), good.stderr), (0, [], b""))
        equal(store("watch", "--once", *alone, "ran@*", "--scope", "other").status, 2)

        short = store("watch", "--once", *alone, "short@*")
        equal(short.status, 0)
        assert b"--within 20h is longer than short@* keeps its records (1h)" in short.stderr, short

        time.sleep(PASSED)
        old = store("watch", "--once", "--warn", "failed_outcome=never", "--within", "1s", "--missing", "ran@*")
        (line,) = lines(old.stdout)
        equal((old.status, line["success_ms"]), (2, json.loads(store("show", "--json", "ran@1").stdout)["ended_ms"]))

        text = store("stats", "--format", "prometheus", "--missing", "ran@*,never@*").stdout.decode()
        found = dict(re.findall(r'^idem_last_success_seconds\{.*key="(.*)"\} (.*)$', text, re.M))
        equal(found, {"ran@*": f"{line['success_ms'] / 1000:.3f}".rstrip("0").rstrip("."), "never@*": "0"})
    away = Store("sqlite:" + os.path.abspath("none/idem.db"))("watch", "--once", "--missing", "ran@*", "--within", "26h")
    equal((away.status, away.stdout), (2, b"IDEM CRITICAL - the store cannot be read\n"))
    for options in (("--missing", "a"), ("--within", "1h"), ("--missing", "a,", "--within", "1h"),
                    ("--missing", ",".join("a" * 17), "--within", "1h")):
        equal((options, Store()("watch", "--once", *options).status), (options, 64))


@each(("sqlite", "dynoxide"))
def a_failed_job_is_told(kind):
    """A job that failed is told for a day, and raised once."""
    with place(kind) as store:
        equal(store("run", "-k", "backup-22", "--", "true").status, 0)
        equal(store("run", "-k", "backup-23", "--", "sh", "-c", "exit 3").status, 3)
        equal(store("run", "-k", "again", "--outcome", "jobs", "--", "false").status, 1)
        equal(store("run", "-k", "warned", "--outcome", "1=complete", "--", "false").status, 1)
        for _ in range(2):
            done = watch(store, "--hook", HOOK)
            equal(done.status, 1)
            assert done.stdout.startswith(b"IDEM WARNING - "), done
            assert b", 1 failed outcomes, " in done.stdout, done
            assert b" failed_outcome=1;0;;0 retry=1;;;0\n" in done.stdout, done
            (line,) = lines(done.stdout)
            told = {name: line[name] for name in ("event", "level", "key", "status", "exit")}
            equal(told, {"event": "failed_outcome", "level": "warning", "key": "backup-23",
                         "status": "completed", "exit": 3})
        equal([(a["key"], a["event"]) for a in alerts()], [("backup-23", "failed_outcome")])
        equal(metrics()["idem_failed_outcomes"], 1)
        stats = json.loads(store("stats", "--json").stdout)
        equal(stats["records"]["failed_outcomes"], 1)

        # What is to be run again runs no more: a count of its own, in each place.
        retry = [stats["records"][name] for name in ("in_progress", "retry", "retry_attempts")]
        equal(retry, [0, 1, 1])
        equal([metrics()[f"idem_{name}"] for name in ("in_progress", "retry_records", "retry_attempts")], [0, 1, 1])
        assert b" 0 in progress, 1 failed outcomes, 1 to be run again |" in store("watch", "--once").stdout
        (told,) = lines(store("watch", "--once", "--warn", "retry=0,failed_outcome=never").stdout)
        equal((told["event"], told["key"]), ("retry", "again"))

        # Another window, no such rule, another scope: nothing to tell.
        time.sleep(PASSED)
        for options in (("--since", "1s"), ("--warn", "failed_outcome=never"), ("--scope", "other")):
            done = store("watch", "--once", *options)
            equal((options, done.status, lines(done.stdout)), (options, 0, []))
        equal(store("watch", "--once", "--critical", "failed_outcome=0").status, 2)

        # It is over once it is run again, and new if it fails again.
        equal(store("reopen", "backup-23", "--reason", "the disk has room").status, 0)
        equal((watch(store, "--hook", HOOK).status, metrics()["idem_failed_outcomes"]), (0, 0))
        equal(store("run", "-k", "backup-23", "--", "sh", "-c", "exit 4").status, 4)
        equal(watch(store, "--hook", HOOK).status, 1)
        equal([a["exit"] for a in alerts()], [3, 4])


@test
def an_http_status_is_told():
    """An answer with an HTTP status of 500 or above is a failure, and is told as one."""
    store = Store()
    metas = {b"a": b"HTTP 200\n", b"b": b"HTTP 404\n", b"c": b"HTTP 502\nETag: x\nServer: y\n"}
    write_export("records.jsonl", (line_of(b"", key, {"meta": meta}) for key, meta in metas.items()))
    equal(store("import", "records.jsonl").status, 0)
    (line,) = lines(store("watch", "--once").stdout)
    equal((line["key"], line["http_status"]), ("c", 502))
    # What it names shows the same, and what a person can do.
    shown = store("show", "c").stdout
    head = b"\nHTTP status       502\nheaders           ETag: x\n                  Server: y\n"
    assert head in shown and b"\n  idem reopen --fence 10 --reason TEXT c\n" in shown, shown
    assert b"idem reopen" not in store("show", "b").stdout


@test
def a_store_that_is_away_is_unknown():
    """Where the store cannot be read the plugin says UNKNOWN and the metrics say so."""
    store = Store("sqlite:" + os.path.abspath("none.db"))
    done = watch(store)
    equal((done.status, done.stdout), (3, b"IDEM UNKNOWN - the store cannot be read\n"))
    assert done.stderr, "it says why"
    equal(metrics(), {"idem_up": 0.0, "idem_look_timestamp_seconds": metrics()["idem_look_timestamp_seconds"]})


def follow(store, told, *options):
    """Watch until @told, which hears each line, says that it is enough."""
    process = store.start("watch", "--every", "100ms", *options, env=AWS)
    try:
        for line in process.stdout:
            if told(json.loads(line)):
                process.send_signal(signal.SIGTERM)
        equal((process.wait(PATIENCE), process.stderr.read()), (0, b""))
    finally:
        end_session(process)


@test
def every_look_tells_what_is_new_and_what_is_over():
    """With --every an alert is a line when it comes up, and one when it is over."""
    store = Store()
    begin(store, "k", "--expect", "300ms", "--lease", "1h")
    seen = []

    def told(event):
        if event["event"] != "look":
            seen.append(event["event"])
        if event["event"] == "overdue":
            equal(store("resolve", "k", "--force", "--release", "--reason", "dead").status, 0)
        if event["event"] == "cleared":
            equal((event["kind"], event["key"]), ("overdue", "k"))
        return event["event"] == "cleared"

    follow(store, told)
    equal(seen, ["overdue", "cleared"])


@test
def what_is_named_gives_way_to_nothing():
    """An alert that was named stays, though another that began before it comes up."""
    store = Store()
    begin(store, "early", "--expect", "10s", "--lease", "1h")
    begin(store, "late", "--expect", "1ms", "--lease", "1h")
    seen, looks = [], []

    def told(event):
        if event["event"] != "look":
            seen.append((event["event"], event.get("key", event.get("more"))))
        elif ("more", 1) in seen:
            looks.append(event)
            if len(looks) == 3:
                equal(store("resolve", "late", "--force", "--release", "--reason", "x").status, 0)
        return ("cleared", "late") in seen

    follow(store, told, "--max", "1")
    equal(seen, [("overdue", "late"), ("more", 1), ("overdue", "early"), ("cleared", "late")])


@test
def every_look_tells_a_failed_outcome_once():
    """With --every an outcome that failed is one line, and one when it is run again."""
    store = Store()
    equal(store("run", "-k", "k", "--", "false").status, 1)
    seen, looks = [], []

    def told(event):
        if event["event"] != "look":
            seen.append((event["event"], event.get("kind")))
        elif event["failed_outcome"] == 1:
            looks.append(event)
            if len(looks) == 3:
                equal(store("reopen", "k", "--reason", "mended").status, 0)
        return event["event"] == "cleared"

    follow(store, told)
    equal(seen, [("failed_outcome", None), ("cleared", "failed_outcome")])


@test
def a_log_that_cannot_shrink_is_told():
    """A process that keeps a long log is told with its number, in metrics too; a log that
    nobody keeps is not."""
    store = Store("sqlite:" + os.path.abspath("idem.db"))
    big = ["--max-output", "32M", "--", "head", "-c", "20000000", "/dev/zero"]
    equal(store("run", "-k", "a", *big).status, 0)

    def told():
        for _ in range(5):  # /proc/locks is not read in one moment: a look may miss a lock.
            done = watch(store, "--json")
            found = [line for line in lines(done.stdout) if line["event"] == "log"]
            held = metrics()["idem_log_held"]
            if held == len(found):
                break
        return done.status, found, held

    equal(told(), (0, [], 0))
    with contextlib.closing(sqlite3.connect("idem.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM idem_record").fetchall()
        for key in ("b", "c"):
            equal(store("run", "-k", key, *big).status, 0)
        status, found, held = told()
        equal((status, held, [line["pid"] for line in found]), (1, 1, [os.getpid()]))
        assert found[0]["log_bytes"] == metrics()["idem_log_bytes"] > 32 << 20, found
        emf = json.loads(store("stats", "--format", "emf").stdout)
        equal((emf["logHeld"], emf["logLength"]), (1, found[0]["log_bytes"]))
    equal(told()[::2], (0, 0))


if __name__ == "__main__":
    main()
