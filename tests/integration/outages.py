"""A store in a network that stands still: a claim waits for it, an end does not for
long, and the record says when the work ended."""

import contextlib
import json
import subprocess
import threading
import time
import urllib.parse

import dynamo
from box import case, contains, finish
from kept import kept
from patience import in_time, until
from procfs import unread
from tap import equal, main

FROZEN = 8  # Seconds.
# Before, an end was told for a minute.
SOON = 20
WORK = "echo effect >> ledger; echo $$ > pid; read x < gate; date +%s%3N > ended; echo receipt"


@contextlib.contextmanager
def table():
    """A table of DynamoDB, its URL, and the environment that names it."""
    with dynamo.server("dynoxide") as url:
        dynamo.make_table(url, "outages")
        credentials = {k: v for k, v in dynamo.environment().items() if "AWS_" in k}
        store = f"dynamodb://outages?index=off&clock=host&endpoint={url}"
        yield url, {"IDEM_STORE": store, **credentials}


def shown(b, env, key="k"):
    got = b("show", "--json", key, env=env)
    equal((got.status, got.stderr), (0, b""))
    return json.loads(got.stdout)


def the_end_is_that_of_the_work(b, record):
    """... by the clock of the host, however late the store heard of it. A server tells
    its time in whole seconds."""
    wrote = int(b.read("ended"))
    assert wrote - 1500 <= record["ended_ms"] <= wrote + 2500, (wrote, record)
    assert record["ended_ms"] >= record["started_ms"], record


@case(slow=True)
def a_claim_waits_for_its_store(b):
    """Frozen for eight seconds when the key is asked for: the work runs once, later."""
    with table() as (url, env), dynamo.frozen(url) as thaw:
        threading.Timer(FROZEN, thaw).start()
        got = b.run("k", "echo effect >> ledger; echo done", env=env)
        equal((got.status, got.stdout, b.effects()), (0, b"done\n", 1))
        record = shown(b, env)
        equal((record["status"], record["attempts"]), ("completed", 1))


@case(slow=True)
def an_end_does_not_wait_for_long(b):
    """Frozen for eight seconds when the command ends: 80, soon, with the outcome in the
    journal; recorded later, it ended when it ended."""
    with table() as (url, env):
        worker = b.start_run("k", WORK, "--status-fd", "1", env=env)
        b.await_pid()
        with dynamo.frozen(url):
            began = time.monotonic()
            b.open_gate()
            got = finish(worker)
            took = time.monotonic() - began
            in_time(took, SOON, "the end")
            equal(got.status, 80)
            contains(got.stderr, b"could not be recorded", b"timed out", b"the outcome is kept in",
                     b"idem reconcile")
            assert b"outlived the command" not in got.stderr, got.stderr
            story = json.loads(got.stdout.splitlines()[-1])
            equal((story["recorded"], story["idem_status"]), (False, 80))
            equal(len(kept(b.file("journal"))), 1)
            time.sleep(max(0, FROZEN - took))
        equal(b("reconcile", env=env).status, 0)
        equal(kept(b.file("journal")), [])
        record = shown(b, env)
        equal((record["status"], b.effects()), ("completed", 1))
        the_end_is_that_of_the_work(b, record)


@case(slow=True)
def a_command_that_ends_during_a_renewal(b):
    """Frozen while a renewal is in flight, which keeps the runner busy: nothing is said
    of processes left behind, and the end is that of the command. The lease counts from
    the claim, however long that took, so the command ends as soon as the renewal is sent."""
    with table() as (url, env):
        worker = b.start_run("k", WORK, "--lease", "30s", env=env)
        b.await_pid()
        with dynamo.frozen(url):
            until(lambda: unread(urllib.parse.urlsplit(url).port), "a renewal is sent")
            b.open_gate()
            until(lambda: b.read("ended"), "the command ends")
            ended = time.monotonic()
            got = finish(worker)
            in_time(time.monotonic() - ended, SOON, "the end")
            equal(got.status, 80)
            assert b"outlived the command" not in got.stderr, got.stderr
            time.sleep(3)
        equal(b("reconcile", env=env).status, 0)
        the_end_is_that_of_the_work(b, shown(b, env))


@case(slow=True)
def an_end_by_token_does_not_wait_for_long(b):
    """idem complete: 80, and the journal; with a time of IDEM_STORE_TIMEOUT's own."""
    with table() as (url, env):
        token = b("begin", "-k", "k", "--on-expired-lease", "hold", env=env)
        env = {**env, "IDEM_TOKEN": token.stdout.decode().strip(), "IDEM_STORE_TIMEOUT": "400ms"}
        with dynamo.frozen(url):
            got = b("complete", "--self", env=env)
            equal(got.status, 80)
            contains(got.stderr, b"timed out after 0.", b"idem reconcile")
        equal(b("reconcile", env=env).status, 0)
        equal(shown(b, env)["status"], "completed")
    got = b.run("k", "true", env={"IDEM_STORE_TIMEOUT": "soon"})
    equal(got.status, 64)
    contains(got.stderr, b'idem: IDEM_STORE_TIMEOUT: "soon" is not a time')


@case(slow=True)
def a_local_store_has_the_end_too(b):
    """SQLite, locked by somebody else: the outcome is in the journal after the time of
    IDEM_STORE_TIMEOUT, and its record has the end of the work."""
    env = {"IDEM_STORE_TIMEOUT": "300ms"}
    worker = b.start_run("k", WORK, env=env)
    b.await_pid()
    hold = subprocess.Popen(
        ["sqlite3", b.file("idem.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    hold.stdin.write(b"BEGIN IMMEDIATE; SELECT 1;\n")
    hold.stdin.flush()
    equal(hold.stdout.readline(), b"1\n")
    b.open_gate()
    equal(finish(worker).status, 80)
    time.sleep(4)
    hold.communicate(b".quit\n")
    equal(b("reconcile", env=env).status, 0)
    the_end_is_that_of_the_work(b, shown(b, env))


if __name__ == "__main__":
    main()
