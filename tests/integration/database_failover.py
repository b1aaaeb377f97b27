"""A PostgreSQL server dies, and its replica is promoted: what is lost where."""

import contextlib
import json
import os

import postgres
from patience import PATIENCE, until
from tap import Idem, equal, main, note, test

# An operation that waits for a replica which never answers fails after this time; one that
# is to be done first has more of it, for a machine may stand still.
HASTY = {"IDEM_STORE_TIMEOUT": "1s"}
PATIENT = {"IDEM_STORE_TIMEOUT": "5s"}


@contextlib.contextmanager
def cluster(synchronous):
    """A primary and its replica, and the program on both of them."""
    with postgres.server() as primary, postgres.replica(primary) as replica:
        idem = Idem(postgres.url_of(replica, primary))
        equal(idem("store", "create").status, 0)
        if synchronous:
            primary.wait_for_replicas("replica")
        primary.await_replica("sync" if synchronous else "async")
        yield idem, primary, replica


def work(key, before="true"):
    """A command whose effects are counted, one line for each."""
    return ("run", "-k", key, "--", "sh", "-c", f"{before}; echo x >>effects-{key}; echo done")


def effects(key):
    with contextlib.suppress(FileNotFoundError), open(f"effects-{key}", encoding="ascii") as f:
        return f.read().count("x")
    return 0


def outlasting(key):
    """Work that goes on until a file named end-KEY is there."""
    return work(key, f"touch began-{key}; until test -e end-{key}; do sleep 0.05; done")


def started(idem, key):
    process = idem.start(*outlasting(key), env=PATIENT)
    until(lambda: os.path.exists(f"began-{key}"))
    return process


def finish(process, key):
    with open(f"end-{key}", "w", encoding="ascii"), process:
        out, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, out


def record(idem, key):
    shown = json.loads(idem("show", "--json", key).stdout)
    return shown["status"], shown["attempts"]


def replays(idem, key, command=None):
    """Work that was done once is replayed, and is not done again."""
    done = idem(*(command or work(key)))
    equal((key, done.status, done.stdout, effects(key)), (key, 0, b"done\n", 1))


def fail_over(idem, primary, replica):
    """What is told of work that is done while the replica gets nothing, before and after
    it was promoted: of a claim and its end, of an end, and of a claim."""
    equal(idem(*work("early")).status, 0)
    token = idem("begin", "-k", "open").stdout.decode().strip()
    process = started(idem, "working")
    primary.await_replica()
    primary.send_nothing()
    told = {
        "new": idem(*work("new"), env=HASTY).status,
        "working": finish(process, "working")[0],
        "claim": idem("begin", "-k", "claim", env=HASTY),
    }
    primary.die()
    replica.promote()
    replays(idem, "early")
    equal(idem("complete", "--token", token).status, 0)
    equal(record(idem, "open"), ("completed", 1))
    return told


@test
def an_asynchronous_failover_loses_outcomes():
    """The control, and what docs/postgresql.md says: outcomes that an asynchronous
    replica had not received are gone with the primary, and the work is done again."""
    with cluster(synchronous=False) as (idem, primary, replica):
        told = fail_over(idem, primary, replica)
        equal((told["new"], told["working"], told["claim"].status), (0, 0, 0))
        equal((effects("new"), effects("working")), (1, 1))
        # It was done, and is done again.
        done = idem(*work("new"))
        equal((done.status, done.stdout, effects("new")), (0, b"done\n", 2))
        # The outcome is nowhere: the claim was there before.
        equal(idem("reconcile").status, 0)
        equal(record(idem, "working"), ("in_progress", 1))
        # The claim is nobody's; its owner is told.
        token = told["claim"].stdout.decode().strip()
        equal(idem("begin", "-k", "claim").status, 0)
        equal(idem("complete", "--token", token).status, 80)
        equal(record(idem, "claim"), ("in_progress", 1))


@test
def a_synchronous_failover_loses_nothing():
    """What a synchronous replica has not received is acknowledged to nobody: a claim runs
    nothing, an outcome is kept in the journal and recorded at the new primary."""
    with cluster(synchronous=True) as (idem, primary, replica):
        told = fail_over(idem, primary, replica)
        equal((told["new"], told["working"], told["claim"].status), (69, 80, 69))
        equal((effects("new"), effects("working")), (0, 1))
        equal(idem(*work("new")).status, 0)
        replays(idem, "new")
        equal(idem("reconcile").status, 0)
        equal(record(idem, "working"), ("completed", 1))
        replays(idem, "working", outlasting("working"))
        equal(idem("begin", "-k", "claim").status, 0)


def waiting(primary, name="idem"):
    """The backends, of clients of this name, whose commits wait for a replica."""
    waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    return set(primary.psql(f"{waits} AND application_name = '{name}'"))


@test
def what_only_the_primary_has_is_not_acknowledged():
    """A commit that waits for a synchronous replica is seen by all once the wait is
    cancelled, or the primary has crashed and is back. It is acknowledged neither to its
    owner nor to a duplicate: the failover that follows loses it."""
    with cluster(synchronous=True) as (idem, primary, replica):
        keys = ("cancelled", "crashed")
        processes = [started(idem, key) for key in keys]
        primary.await_replica()
        replica.stop()

        def ends(process, key, what):
            """The end of @key is committed, and waits; then @what comes."""
            left = waiting(primary)  # Of clients that are gone.
            os.close(os.open(f"end-{key}", os.O_CREAT))
            what(until(lambda: waiting(primary) - left).pop())
            return finish(process, key)

        def cancel(backend):
            equal(primary.psql(f"SELECT pg_cancel_backend({backend})"), ["t"])

        def crash(_backend):
            primary.die()
            primary.start()

        told = [ends(*of) for of in zip(processes, keys, (cancel, crash))]
        equal(told, [(80, b"done\n")] * 2)
        elsewhere = {**HASTY, "IDEM_JOURNAL_DIR": os.path.abspath("elsewhere")}
        for key in keys:
            # An operator sees what is there; a duplicate is answered nothing.
            equal((key, *record(idem, key)), (key, "completed", 1))
            done = idem(*outlasting(key), env=elsewhere)
            equal((key, done.status, done.stdout), (key, 69, b""))
        primary.die()
        replica.start()
        replica.promote()
        for key in keys:
            equal((key, *record(idem, key)), (key, "in_progress", 1))
        equal(idem("reconcile").status, 0)
        for key in keys:
            replays(idem, key, outlasting(key))


@test
def a_waiter_that_connects_anew_is_told_what_the_replica_has():
    """The end of an attempt is committed on the primary alone, which crashes and is back.
    A process that has waited since before connects anew, reads that end, and is told of
    it once the replica has it too."""
    with cluster(synchronous=True) as (idem, primary, replica):
        owner = started(idem, "k")
        waiter = ("run", "-v", "--wait", "1h", *outlasting("k")[1:])
        named = {"PGAPPNAME": "waiter", "IDEM_STORE_TIMEOUT": f"{PATIENCE}s"}
        with idem.start(*waiter, env=named) as waiter:
            equal(waiter.stderr.readline(), b"idem: waiting for the attempt in flight\n")
            primary.await_replica()
            replica.stop()
            os.close(os.open("end-k", os.O_CREAT))
            until(lambda: waiting(primary))
            primary.die()
            primary.start()
            equal(finish(owner, "k"), (80, b"done\n"))
            equal(record(idem, "k"), ("completed", 1))
            until(lambda: waiting(primary, "waiter") or waiter.poll() is not None)
            equal(waiter.poll(), None)
            replica.start()
            out, _ = waiter.communicate(timeout=PATIENCE)
            equal((waiter.returncode, out, effects("k")), (0, b"done\n", 1))


def graded(idem, command, about):
    """The sentences of the check about @about, each with its grade."""
    done = idem(*command)
    return [line for line in done.stdout.decode().splitlines() if f" {about}: " in line]


@test
def the_checks_grade_the_replicas():
    """store check and doctor: an asynchronous replica is a warning, to every role; a
    synchronous one is good, one of a quorum is with a condition, and none of those that
    are waited for is bad. A replica itself is no store."""
    with cluster(synchronous=False) as (idem, primary, replica):
        primary.psql("CREATE ROLE worker LOGIN; GRANT USAGE ON SCHEMA idem TO worker")
        worker = Idem(idem.store.replace(f"user={postgres.USER}", "user=worker"))

        every = [idem, worker]

        def said(by, grade, text):
            for who in by:
                for command in ("store", "check"), ("doctor",):
                    lines = graded(who, command, "replicas")
                    assert len(lines) == 1 and lines[0].startswith(grade), (command, lines)
                    assert text in lines[0], (command, lines)

        said(every, "warn", "1 asynchronous replica")
        for names, state, grade, text in (
            ("replica", "sync", "ok", "a failover to a synchronous replica loses no outcome"),
            ("ANY 1 (replica)", "quorum", "ok", "to the one that has received the most"),
            ("elsewhere", "async", "bad", "nothing can be recorded"),
        ):
            primary.wait_for_replicas(names)
            primary.await_replica(state)
            said([idem], grade, text)
            said([worker], "ok", "this role may not see which")
        alone = Idem(replica.url)
        lines = graded(alone, ("store", "check"), "server")
        assert "is a replica, which takes no writes" in lines[0], lines
        note(lines[0])


if __name__ == "__main__":
    main()
