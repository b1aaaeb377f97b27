"""Work that is run again: retry and reopen, and a lease that runs in the way."""

import contextlib
import json
import os
import signal

from box import Box, case, contains, finish, is_gone
from patience import until
from procfs import children, stop, until_it_waits
from tap import equal, main

TOLD = "echo takeover $IDEM_TAKEOVER; echo effect >> ledger; test -e fixed"


def audit(b):
    return [json.loads(line) for line in b.read("audit.log").splitlines()]


# ---- retry -------------------------------------------------------------------


@case
def a_failure_is_run_again(b):
    """--outcome jobs: the next run starts at once, under hold too, and is told that
    it takes over; what succeeds is replayed."""
    for n in range(7):  # More than --max-attempts: they do not count towards it.
        got = b.run("k", TOLD, "--outcome", "jobs", status="s")
        equal(got, (1, f"takeover {min(n, 1)}\n".encode(), b""))
        story = json.loads(b.read("s"))
        equal((story["status"], story["recorded"]), ("retry", True))
    equal(b.record("k")["status"], "retry")
    b.write("fixed", "")
    for _ in range(2):
        equal(b.run("k", TOLD, "--outcome", "jobs"), (0, b"takeover 1\n", b""))
    equal(b.effects(), 8)


@case
def the_last_of_its_failures_is_for_a_person(b):
    """--max-failures: so many runs are made and not one more, whoever comes; what was
    released or died in between counts for nothing. A person's decision begins anew."""
    fails = ("--outcome", "0=complete 75=release *=retry", "--max-failures", "3")
    policy = ("--fingerprint", "none", "--on-expired-lease", "rerun")
    for n in range(1, 4):
        equal(b.run("k", "exit 75", *fails, *policy).status, 75)
        equal(b.run("k", "kill -9 $$", *fails, *policy).status, 137)
        got = b.run("k", TOLD, *fails, *policy)
        equal((got.status, b.record("k")["failures"]), (1, n))
    contains(got.stderr, b"failure 3 of 3")
    record = b.record("k")
    equal((record["status"], record["exit_status"]), ("failed", 1))
    equal(b.run("k", TOLD, *fails, *policy).status, 1)  # What it left is replayed.
    equal(b.effects(), 3)
    equal(b("reopen", "k", *WHY).status, 0)
    equal(b.run("k", TOLD, *fails, *policy).status, 1)
    equal(b.record("k")["failures"], 1)


@case
def nobody_starts_in_a_pause(b):
    """--retry-after: a run in the pause is told how long it is, a waiter waits for its
    end, and a person does not."""
    fails = ("--outcome", "jobs", "--fingerprint", "none", "--retry-after")
    equal(b.run("k", TOLD, *fails, "2s").status, 1)
    equal(b.run("k", TOLD, *fails, "10m", "--wait", "60s", "--wait-then-run").status, 1)
    record = b.record("k")
    paused_ms = record["started_ms"] - record["history"][0]["ended_ms"]
    assert paused_ms >= 2000, record
    equal(b.effects(), 2)
    got = b.run("k", TOLD, *fails, "10m")
    equal(got.status, 75)
    contains(got.stderr, b"to be run again, 9m")
    equal(b.effects(), 2)
    equal(b("reopen", "k", *WHY).status, 0)
    equal(b.run("k", TOLD, *fails, "10m").status, 1)
    equal(b.effects(), 3)
    equal(b.run("other", "true", "--retry-after", "10m").status, 64)


@case
def a_token_brings_both(b):
    """idem retry has the two options, too."""
    token = b("begin", "-k", "k").stdout.decode().strip()
    late = ("--retry-after", "10m", "--max-failures", "2")
    equal(b("retry", "--token", token, *late), (0, b"", b""))
    contains(b("begin", "-k", "k").stderr, b"to be run again, 9m")
    equal(b("reopen", "k", *WHY).status, 0)
    for status in ("retry", "failed"):
        token = b("begin", "-k", "k").stdout.decode().strip()
        equal(b("retry", "--token", token, "--max-failures", "2").status, 0)
        equal(b.record("k")["status"], status)


@case
def the_command_says_so_itself(b):
    """idem retry from inside an attempt stands, and is in idem list."""
    script = "./idem retry --self --reason 'no room'; exit 3"
    got = b.run("k", script)
    equal((got.status, got.stderr), (3, b""))
    record = b.record("k")
    equal((record["status"], record["note"]), ("retry", "no room"))
    contains(b("list", "--status", "retry").stdout, b"k")
    equal(b.run("k", "echo $IDEM_TAKEOVER", "--fingerprint", "none").stdout, b"1\n")


@case
def an_end_names_its_attempt(b):
    """A script under idem run that has begun an attempt of its own, and forgot to name it,
    does not end the one around it."""
    script = "./idem begin -k inner >inner; ./idem complete; echo $? >status; exit 3"
    equal(b.run("outer", script).status, 3)
    equal(b.read("status"), "64\n")
    equal([b.record(key)["status"] for key in ("outer", "inner")], ["completed", "in_progress"])
    equal(b.record("outer")["exit_status"], 3)


@case
def a_token_says_so(b):
    """idem retry --token ends an attempt that idem begin started; later words of it are
    refused."""
    token = b("begin", "-k", "k").stdout.decode().strip()
    for _ in range(2):
        equal(b("retry", "--token", token, "--reason", "again"), (0, b"", b""))
    again = b("begin", "-k", "k").stdout.decode().strip()
    assert again and again != token
    equal(b("complete", "--token", token).status, 80)


@case
def a_waiter_is_not_held(b):
    """Who waits for an attempt that ends so starts nothing, unless asked to."""
    first = b.start_run("k", "read x < gate; exit 1", "--outcome", "jobs")
    until(lambda: b.record("k"), "it is claimed")
    waiting = b.start_run("k", "echo ran", "--wait", "10m", "--fingerprint", "none")
    running = ("--wait", "60s", "--wait-then-run", "--fingerprint", "none")
    until_it_waits(waiting.pid, "idem.db")
    b.open_gate()
    equal(finish(first).status, 1)
    got = finish(waiting)
    equal((got.status, got.stdout), (75, b""))
    contains(got.stderr, b"to be run again")
    equal(b.run("k", "echo ran $IDEM_TAKEOVER", *running).stdout, b"ran 1\n")


@case
def its_runner_dies_after_it(b):
    """The runner is killed when its command had failed, but nobody had heard: the
    supervisor says that it is to be run again, and where a failure is the outcome, or
    nothing is said of it, that nobody knows."""
    for rule, status in (("0=complete *=retry", "retry"), ("0=complete", "unknown"), ("", "unknown")):
        options = ("--outcome", rule) if rule else ()
        key = rule or "usual"
        script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; exit 3"
        runner = b.start_run(key, script, *options)
        child = b.await_pid()
        stop(runner.pid)
        b.write("go", "")
        until(lambda: is_gone(child), "the command has ended")
        runner.kill()
        until(lambda: b.has_status(key, status), f"it is {status}")
        contains(b.record(key)["note"], "after its command ended with status 3" if not rule else "ended with status 3")
        os.unlink(b.file("go"))
        os.unlink(b.file("pid"))


# ---- reopen ------------------------------------------------------------------

WHY = ("--reason", "the disk has room", "--owner", "ada@ops")


@case
def a_failure_is_reopened(b):
    """idem reopen lets a recorded failure be run again, by another command line too; the
    old result is in the audit log, and history has who did it."""
    equal(b.run("k", "echo no room; exit 1").status, 1)
    fence = b.record("k")["fence"]
    told = b("reopen", "k", *WHY, "-n")
    equal(told, (0, f"k: completed -> retry (fence {fence}): it may have happened; nothing was changed\n".encode(), b""))
    equal((b.record("k")["status"], audit(b)), ("completed", []))
    changed = f"k: completed -> retry (fence {fence}): it may have happened; "
    changed += "the next caller runs it again, whatever its request\n"
    equal(b("reopen", "k", *WHY), (0, changed.encode(), b""))
    (line,) = audit(b)
    equal((line["event"], line["before"], line["after"], line["who"], line["why"], line["answer"]),
          ("reopen", "completed", "retry", "ada@ops", "the disk has room", "OK"))
    equal((line["record"]["stdout"], line["record"]["exit_status"]), ("no room\n", 1))
    past = b.record("k")["history"][0]
    equal((past["end"], past["owner"]), ("reopened", "ada@ops"))
    equal(b.run("k", "echo fixed $IDEM_TAKEOVER").stdout, b"fixed 1\n")


@case
def reopen_answers_programs(b):
    """With --json the old record comes with its result; each mistake has its status."""
    equal(b.run("k", "echo old").status, 0)
    old = json.loads(b("reopen", "k", *WHY, "-n", "--json").stdout)
    equal((old["before"], old["after"], old["changed"]), ("completed", "retry", False))
    equal(old["record"]["key"], "k")
    equal(b("reopen", "k", *WHY, "--fence", "7").status, 80)
    equal(b("reopen", "k").status, 64)
    equal(b("reopen", "none", *WHY).status, 1)
    equal(b("reopen", "k", *WHY, env={"IDEM_AUDIT_LOG": "."}).status, 77)
    equal(json.loads(b("reopen", "k", *WHY, "--json").stdout)["changed"], True)
    refused = b("reopen", "k", *WHY)
    equal(refused.status, 80)
    contains(refused.stderr, b"the record is reopened already: the next caller runs it")


# ---- A lease that runs -------------------------------------------------------


def at_work(b: Box, key):
    equal(b("begin", "-k", key, "--expect", "1ms", "--owner", "ann@web-1").status, 0)
    until(lambda: b.record(key)["overdue"], "it is overdue")


@case
def a_live_owner_is_not_resolved_silently(b):
    """Late work whose lease runs is resolved only with --force; the message says when it
    was renewed, how long the lease runs, and whose it is; idem show says first to look at its owner."""
    at_work(b, "k")
    for command in (("resolve", "--release"), ("reopen",)):
        got = b(*command, "k", "--reason", "x")
        equal((got.status, got.stdout), (80, b""))
        contains(got.stderr, b"renewed ", b" ago, 5", b" left, owner ann@web-1")
    shown = b("show", "k").stdout
    contains(shown, b"overdue", b"its owner may be at work: look there first", b"--force --release")
    got = b("resolve", "--release", "k", "--reason", "x", "--force")
    equal(got.status, 0)
    contains(got.stderr, b"is overridden (renewed ", b"owner ann@web-1")
    equal(b.record("k")["status"], "released")


@case
def what_is_over_is_offered(b):
    """The control: once the lease is over, idem show offers the commands; for a failure
    it offers to have it run again."""
    equal(b("begin", "-k", "k", "--lease", "2s").status, 0)
    until(lambda: b"idem resolve" in b("show", "k").stdout, "it is offered")
    equal(b("resolve", "--release", "k", "--reason", "x").status, 0)
    equal(b.run("f", "echo no room; exit 1").status, 1)
    shown = b("show", "f").stdout
    contains(shown, b"\nexit status       1\n", b"idem reopen --fence ", b"idem show --output f\n")
    assert b"runs it again" not in shown, shown
    got = b("resolve", "--release", "f", "--reason", "x")
    equal((got.status, got.stdout), (80, b""))
    contains(got.stderr, b"nothing to resolve: the record is completed; to let the work run again: idem reopen")
    equal(b("reopen", "f", "--reason", "x").status, 0)
    shown = b("show", "f").stdout
    contains(shown, b"The next caller with this key runs it again; nothing starts it by itself.\n")
    assert b"lease ends" not in shown, shown
    contains(b("show", "--output", "f").stderr, b"no result on record: the status is retry")
    contains(b("resolve", "--release", "f", "--reason", "x").stdout, b"f: retry -> released (fence ")
    equal(b.run("g", "exit 0").status, 0)
    assert b"idem reopen" not in b("show", "g").stdout


# ---- Signals and descriptors of runner and supervisor ------------------------


@case
def a_slow_reader_does_not_hold_a_signal(b):
    """Once the outcome is on record, a runner that waits for its reader ends at SIGTERM."""
    runner = b.start_run("k", "head -c 100000 /dev/zero")
    until(lambda: b.has_status("k", "completed"), "it is on record")
    runner.terminate()
    equal(runner.wait(60), -signal.SIGTERM)


def held_by(pid):
    """What its descriptors are open on."""
    held = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            held.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return held


@case
def the_supervisor_holds_nothing_of_its_callers(b):
    """Descriptors that the caller left open are the command's, and not the supervisor's."""
    reader, writer = os.pipe()
    runner = b.start_run("k", "echo $$ > pid; read x < gate", pass_fds=(writer,))
    b.await_pid()
    (supervisor,) = children(runner.pid)
    pipe = os.readlink(f"/proc/self/fd/{writer}")
    # The command may run before its supervisor has closed all.
    until(lambda: pipe not in held_by(supervisor), "the supervisor holds it no more")
    assert pipe in held_by(b.await_pid()), held_by(b.await_pid())
    b.open_gate()
    equal(finish(runner).status, 0)
    os.close(reader)
    os.close(writer)


# ---- A file beside the store -------------------------------------------------


@case
def a_truncated_lock_file_loses_nothing(b):
    """The lock file is cut under a runner: it does not die of that, and the end of its
    command is on record, or in the journal."""
    runner = b.start_run("k", "echo $$ > pid; read x < gate; echo effect >> ledger")
    b.await_pid()
    os.truncate(b.file("idem.db-lock"), 0)
    b.open_gate()
    got = finish(runner)
    assert got.status in (0, 80), got
    equal(b.effects(), 1)
    if got.status == 80:
        contains(got.stderr, b.file("journal").encode())
    else:
        equal(b.record("k")["status"], "completed")


if __name__ == "__main__":
    main()
