"""What an operator decides: for many records at once, from logs, and kept on paper."""

import base64
import concurrent.futures
import contextlib
import json
import os
import sqlite3
import stat
import time

import dynamo
from checks import server
from files import read_bytes, write
from kept import kept
from patience import until
from tap import Idem, equal, main, note, test

AWS = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}


def begin(store, key, *options, scope=""):
    done = store("begin", "-k", key, "-s", scope, "--owner", "worker/7", *options, env=AWS)
    equal((done.status, done.stderr), (0, b""))
    return done.stdout.decode().strip()


def status_of(store, key, scope=""):
    return json.loads(store("show", "--json", key, "-s", scope, env=AWS).stdout)["status"]


def audit():
    with contextlib.suppress(FileNotFoundError):
        with open("audit.log", encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    return []


# ---- list and show ----


@test
def lists_and_records_say_what_a_person_asks():
    """--overdue with --status is the union, as it is in resolve; a list can have how long
    work took; a key of another scope is found there; the lease of a runner that died does
    not end before its attempt began; of late work that may be at work the next step says
    so; what nobody reads at night is last."""
    store = Idem()
    begin(store, "slow", "--expect", "1ms", "--lease", "1h")
    begin(store, "live", "--lease", "1h")
    token = begin(store, "failed", "--lease", "1h")
    equal(store("fail", "--token", "-", "--reason", "no", input=token.encode()).status, 0)
    equal(store("run", "-qk", "job-489", "-s", "runner", "--", "sleep", "0.2").status, 0)
    killed = store("run", "-qk", "died", "--on-expired-lease", "rerun", "--", "sh", "-c", "kill -9 $PPID; sleep 9")
    assert killed.status != 0, killed
    time.sleep(0.1)

    def keys(*options):
        return sorted(store("list", "--fields", "key", *options).stdout.decode().split())

    equal(keys("--overdue", "--status", "failed,completed"), ["died", "failed", "job-489", "slow"])
    equal(keys("--overdue", "--status", "failed", "--max", "9"), ["died", "failed", "slow"])
    equal((keys("--overdue"), keys("--status", "failed")), (["died", "slow"], ["failed"]))
    record = json.loads(store("show", "--json", "-s", "runner", "job-489").stdout)
    ms = record["ended_ms"] - record["started_ms"]
    took = store("list", "--fields", "took", "--match", "job-489").stdout.decode().strip()
    assert ms >= 200 and (took == f"{ms}ms" or ms >= 1000), (ms, took)  # A slow host has seconds.

    none = store("show", "job-489")
    equal(none.status, 1)
    assert b'the scope "runner" has this key: name it with --scope\n' in none.stderr, none
    assert b"the scope" not in store("show", "job-490").stderr

    told = json.loads(store("show", "--json", "died").stdout)
    assert told["lease_end_ms"] >= told["started_ms"], told
    lines = store("show", "slow").stdout.decode()
    assert "its owner may be at work" in lines and " --force --release --reason TEXT slow\n" in lines, lines
    names = [line.split("  ")[0] for line in lines.partition("\n\n")[0].splitlines()]
    equal((names[:2], names[-1]), (["key", "status"], "id"))
    assert "It is overdue" not in store("show", "live").stdout.decode()


@test
def another_layout_is_guessed():
    """Where no record of a table can be read in the layout of the URL, that is asked for."""
    with server("dynoxide") as (_, url):
        store, other = (Idem(f"{url}&layout=powertools-{name}") for name in ("typescript", "python"))
        equal(store("store", "create", env=AWS).status, 0)
        key = "fn#" + "0" * 32
        equal(store("run", "-qk", key, "--on-expired-lease", "rerun", "--", "echo", "{}", env=AWS).status, 0)
        equal(store("list", env=AWS).status, 0)
        done = other("list", env=AWS)
        equal(done.status, 74)
        assert b"1 record cannot be trusted, and no other was found: was the table written in another layout" in done.stderr, done


# ---- resolve ----


def fill(store):
    """Records of every kind, in two scopes; the owner of "slow" may be at work."""
    for scope in ("eu", "us"):
        begin(store, "late", "--lease", "2s", scope=scope)
        begin(store, "slow", "--expect", "1ms", "--lease", "1h", scope=scope)
        begin(store, "live", "--lease", "1h", scope=scope)
        for key, verb, text in (("unknown", "unknown", "--reason"), ("failed", "fail", "--reason")):
            token = begin(store, key, "--lease", "1h", scope=scope)
            done = store(verb, "--token", "-", text, "hm", input=token.encode(), env=AWS)
            equal(done.status, 0)


WHY = ("--release", "--reason", "the bank never saw them", "--owner", "ada@ops")


@test
def a_selection_is_decided_in_a_file():
    """A selection is shown first; with --yes it is decided, and no other record; each
    decision is in the audit log."""
    store = Idem()
    fill(store)
    until(lambda: b"late" in store("list", "--overdue", "-s", "eu").stdout, "its lease is over")
    some = ("--overdue", "--status", "unknown", "--scope", "eu")
    shown = store("resolve", *some, *WHY, env=AWS)
    equal(shown.status, 0)
    equal(len(shown.stdout.splitlines()), 2)
    assert b"; nothing was changed" in shown.stdout and b"--count 2 --yes" in shown.stderr, shown
    equal((status_of(store, "late", "eu"), audit()), ("in_progress", []))

    refused = store("resolve", *some, *WHY, "--count", "3", "--yes", env=AWS)
    equal((refused.status, status_of(store, "unknown", "eu"), audit()), (80, "unknown", []))

    done = store("resolve", *some, *WHY, "--count", "2", "--yes", env=AWS)
    left_out = b"idem: 1 more is late, but skipped: the owner's lease still runs\n"
    equal((done.status, done.stderr), (0, left_out))
    for key in ("late", "unknown"):
        equal(status_of(store, key, "eu"), "released")
        assert status_of(store, key, "us") != "released"
    for key, status in (("live", "in_progress"), ("slow", "in_progress"), ("failed", "failed")):
        equal((key, status_of(store, key, "eu")), (key, status))
    lines = audit()
    equal(sorted((e["key"], e["before"], e["after"]) for e in lines),
          [("late", "in_progress", "released"), ("unknown", "unknown", "released")])
    for line in lines:
        equal((line["event"], line["who"], line["why"], line["scope"], line["answer"]),
              ("resolve", "ada@ops", "the bank never saw them", "eu", "OK"))
        assert line["fence"] > 0 and line["time"].endswith("Z"), line
    again = store("resolve", *some, *WHY, "--yes", env=AWS)
    equal((again.status, again.stdout, len(audit())), (0, b"", 2))
    equal(stat.S_IMODE(os.stat("audit.log").st_mode), 0o600)


@test
def the_audit_log_comes_first():
    """One key is audited too, also where the answer is no; and where no line can be
    kept, nothing is decided."""
    store = Idem()
    fill(store)
    done = store("resolve", "unknown", "-s", "eu", "--fail", "--reason", "x", "--fence", "7")
    equal(done.status, 80)
    equal([(e["answer"], e["fence"], e["level"]) for e in audit()], [("LOST", 7, "warning")])
    for where, status in (("none/audit.log", 77), (".", 77)):
        done = store("resolve", "unknown", "-s", "eu", *WHY, env={"IDEM_AUDIT_LOG": where})
        equal((done.status, status_of(store, "unknown", "eu")), (status, "unknown"))
        done = store("resolve", "--status", "unknown", *WHY, "--yes", env={"IDEM_AUDIT_LOG": where})
        equal((done.status, status_of(store, "unknown", "eu")), (status, "unknown"))
    done = store("resolve", "unknown", "-s", "eu", *WHY, env={"IDEM_LOG_KEYS": "hashed"})
    equal(done.status, 0)
    assert "key" not in audit()[-1] and len(audit()[-1]["id"]) == 64, audit()
    equal(store("resolve", "unknown", "-s", "us", *WHY, env={"IDEM_AUDIT_LOG": "off"}).status, 0)
    equal(len(audit()), 2)


@test
def a_decision_keeps_what_it_replaces():
    """What was on record stays in the history and in the audit log, for one key and for a
    selection; and a person may correct a person until somebody starts."""
    store = Idem()
    fails = ("--outcome", "0=complete *=fail", "--", "sh", "-c", "echo card; exit 3")
    equal(store("run", "-k", "card", *fails).status, 3)
    equal(store("run", "-k", "other", *fails).status, 3)
    equal(store("resolve", "card", "--release", "--reason", "the bank never saw it").status, 0)
    equal(store("resolve", "card", "--complete", "paid", "--reason", "the bank has it", "-n").status, 0)
    equal(store("resolve", "card", "--complete", "paid", "--reason", "the bank has it").status, 0)
    released, failed = json.loads(store("show", "card", "--json").stdout)["history"]
    equal((failed["was"], failed["meta"], failed["text"]), ("failed", "exit 3", "the command ended with status 3"))
    equal((released["was"], released["text"]), ("released", "the bank never saw it"))
    shown = store("show", "card").stdout
    assert b"; it was failed, exit 3: the command ended with status 3\n" in shown, shown
    assert b"\nTo correct that decision, before anybody starts the work:\n  idem resolve --fence " in shown, shown
    first, second = audit()
    equal((first["record"]["stdout"], first["record"]["exit_status"]), ("card\n", 3))
    equal((second["record"]["status"], second["record"]["note"]), ("released", "the bank never saw it"))
    equal(store("run", "-k", "card", *fails).stdout, b"paid")
    equal(store("resolve", "card", "--release", "--reason", "no").status, 0)
    equal(store("run", "-k", "card", "--", "true").status, 0)
    equal(store("resolve", "card", "--complete", "x", "--reason", "no").status, 80)
    equal(store("resolve", "--status", "failed", "--release", "--reason", "all", "--yes").status, 0)
    equal((audit()[-1]["key"], audit()[-1]["record"]["stdout"]), ("other", "card\n"))


# ---- reconcile ----


def outcomes(store, results):
    """Outcomes that the store could not be told: {key: bytes of its entry}."""
    tokens = {key: begin(store, key, "--lease", "1h") for key in results}
    db = sqlite3.connect(store.store.partition(":")[2], isolation_level=None)
    db.execute("BEGIN IMMEDIATE")

    def complete(key):
        """Told until it is kept: who waited too long behind the others to open the
        store has status 69, and nothing of it is kept."""
        for _ in range(9):
            told = store("complete", "--token", "-", "--result", results[key],
                         input=tokens[key].encode(), timeout=60)
            if told.status != 69:
                break
        return told.status

    with concurrent.futures.ThreadPoolExecutor(len(results)) as pool:
        equal(list(pool.map(complete, results)), [80] * len(results))
    db.execute("ROLLBACK")
    db.close()
    found = {}
    for name in kept("journal", ".idj"):
        path = os.path.join("journal", name)
        entry = read_bytes(path)
        found[next(key for key in results if key.encode() in entry)] = entry
        os.rename(path, "entry." + next(key for key in results if key.encode() in entry))
    return found


@test
def outcomes_are_read_from_logs_and_journals():
    """Outcomes in exported logs, in files and in a journal's directory are reported,
    recorded once, recognised afterwards, and lost where somebody decided first."""
    store = Idem()
    results = {f"order-{i}": "/??>" * 20 + f"receipt {i}" for i in range(6)}
    entries = outcomes(store, results)
    equal(len(entries), 6)
    line = {
        key: json.dumps({"level": "INFO", "message": "outcome", "entry": base64.b64encode(entry).decode()})
        for key, entry in entries.items()
    }
    write("plain.log", "START RequestId: 1\n" + line["order-0"] + "\nEND\n")
    with open("events.json", "w", encoding="utf-8") as f:  # aws logs filter-log-events
        json.dump({"events": [{"message": "2026-11-21 " + line["order-1"] + "\n"}]}, f)
    write("twice.json", json.dumps({"Results": [json.dumps({"@message": line["order-2"].replace("/", "\\/")})] * 2})
            .replace("/", "\\/"))
    write("cut.log", line["order-3"][:-40] + "\n")
    os.mkdir("other", 0o700)
    os.mkdir("temporary")
    files = ("plain.log", "events.json", "twice.json", "entry.order-4")
    names = {"order-0", "order-1", "order-2", "order-4"}

    def reconcile(*args, status=0, input=None):
        aside = {"TMPDIR": os.path.abspath("temporary")}
        done = store("reconcile", "--json", *args, input=input, env=aside, timeout=60)
        equal((args, done.status), (args, status))
        return [json.loads(text) for text in done.stdout.splitlines()], done.stderr

    shown, _ = reconcile("-n", *files)
    equal({e["key"]: e["would_be"] for e in shown}, dict.fromkeys(names, "recorded"))
    equal({status_of(store, key) for key in results}, {"in_progress"})

    told, _ = reconcile(*files)
    equal({e["key"]: e["state"] for e in told}, dict.fromkeys(names, "recorded"))
    for key in names:
        equal(store("show", key, "--output").stdout.decode(), results[key])
    again, _ = reconcile(*files)
    equal({e["state"] for e in again}, {"recorded"})

    # What is cut is told and never recorded.
    _, said = reconcile("cut.log", status=74)
    assert b"1 outcome cannot be trusted" in said, said
    equal(status_of(store, "order-3"), "in_progress")

    # From a pipe.
    told, _ = reconcile("-", input=line["order-3"].encode())
    equal([(e["key"], e["state"]) for e in told], [("order-3", "recorded")])

    # A journal's directory from another host: what was recorded leaves it.
    equal(kept("journal"), [])
    write("other/x.idj", entries["order-5"])
    told, _ = reconcile("other", status=74)
    equal(told[0]["state"], "damaged")  # Its name is not its own.
    told, _ = reconcile("entry.order-5")
    equal([(e["key"], e["state"]) for e in told], [("order-5", "recorded")])
    nothing, said = reconcile("audit-none.log", status=1)
    equal(nothing, [])
    write("empty.log", "nothing of ours\n")
    _, said = reconcile("empty.log")
    assert b"no outcome found in empty.log" in said, said
    equal(os.listdir("temporary"), [])
    note("6 outcomes in 5 forms, 6 recorded once; 1 cut, refused")


@test
def a_decision_beats_a_log():
    """An outcome in a log whose record a person has decided is lost, and changes
    nothing."""
    store = Idem()
    outcomes(store, {"order-9": "late word"})
    done = store("resolve", "order-9", "--force", "--complete", "by hand", "--reason", "seen")
    equal(done.status, 0)
    assert b"is overridden" in done.stderr, done
    for _ in range(2):
        told = store("reconcile", "--json", "entry.order-9")
        equal((told.status, json.loads(told.stdout)["state"]), (80, "lost"))
        equal(store("show", "order-9", "--output").stdout, b"by hand")


if __name__ == "__main__":
    main()
