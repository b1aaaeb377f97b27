"""Outcomes that cannot be recorded when they are known: kept on this host, and
recorded by whoever comes next."""

import contextlib
import glob
import json
import os
import signal
import stat
import time

import dynamo
from box import case, contains, finish, locked
from kept import kept, written
from line import Line
from patience import until
from tap import equal, main

EFFECT = "echo effect >> ledger"
SHORT = ("--lease", "9s")
WORK = f"{EFFECT}; echo receipt $$; echo $$ > pid; read x < gate"


def journal(b, *endings):
    """The files in the journal of @b, or those with one of @endings."""
    return kept(b.file("journal"), *endings)


def has_journal(b):
    return os.path.isdir(b.file("journal"))


def own(b, **env):
    """An environment in which the journal is that of @b."""
    return {"IDEM_JOURNAL_DIR": b.file("journal"), **env}


def refused(b, key, work, *options, env=None, status=None):
    """Run @work while the store takes no outcome: how that ended."""
    return b.run_refused(key, work, *SHORT, *options, env=own(b, **(env or {})), status=status)


def waiting(b, key="k", *options):
    """An outcome of @key that waits: what its command printed."""
    got = refused(b, key, WORK, *options)
    equal(got.status, 80)
    equal(len(journal(b, ".idj")), 1)
    return got.stdout


def wait_for_the_lease(b):
    """The lease of "k" is over, also for a clock that is a little behind."""
    end_ms = b.record("k")["lease_end_ms"] + 1000
    until(lambda: time.time() * 1000 > end_ms, "the lease is over")


def reconcile(b, *args, status=0):
    """What idem reconcile prints, as objects; and what it says."""
    got = b("reconcile", "--json", *args, env=own(b))
    equal(got.status, status)
    return [json.loads(line) for line in got.stdout.splitlines()], got.stderr


# ---- The store refuses -----------------------------------------------------------


@case(rows=[14], slow=True)
def an_outcome_waits_for_its_store(b):
    """The output is given, the status is 80, the path is printed; and the next run
    replays it."""
    got = refused(b, "k", WORK + "; exit 3", status="story")
    equal(got.status, 80)
    name, = journal(b)
    path = os.path.join(b.file("journal"), name)
    contains(got.stderr, b"could not be recorded", path.encode(), b"idem reconcile")
    assert b"idem resolve" not in got.stderr
    story = json.loads(b.read("story"))
    equal((story["recorded"], story["journal"], story["idem_status"]), (False, path, 80))
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    equal(stat.S_IMODE(os.stat(b.file("journal")).st_mode), 0o700)
    equal(b.record("k")["status"], "in_progress")

    again = b.run("k", WORK + "; exit 3", env=own(b))
    equal((again.status, again.stdout, again.stderr), (3, got.stdout, b""))
    equal((journal(b), b.effects()), ([], 1))
    equal(b.record("k")["status"], "completed")


@case(slow=True)
def without_it_nobody_knows(b):
    """The control: with --journal off the same run leaves a record that is unknown
    once its lease is over, although somebody knew; the message says what to type."""
    work = WORK + "; exit 3"
    got = refused(b, "k", work, "--journal", "off", "--store", b.idem.store)
    equal((got.status, got.stdout[:7]), (80, b"receipt"))
    contains(got.stderr, b"ended with status 3, but it could not be recorded")
    assert not has_journal(b)
    wait_for_the_lease(b)
    equal(b.run("k", work, env=own(b)).status, 76)
    (release,) = [line for line in got.stderr.decode().splitlines() if "--release" in line]
    contains(release, "  idem resolve ", "--store=", "--fence ")
    equal(b.shell(release.replace("TEXT", "looked")).returncode, 0)
    equal(b.record("k")["status"], "released")


@case(slow=True)
def without_a_place_for_it_the_commands_are_said(b):
    """Where there is no journal to be had, that is said beside what to type; and a
    run that needs none is not disturbed."""
    nowhere = {"IDEM_JOURNAL_DIR": b.file("no/such/place")}
    always = ("--journal", "always")
    equal(b.run("quiet", "echo done", *always, env=nowhere), (0, b"done\n", b""))
    said = b.run("said", "true", "-v", *always, env=nowhere).stderr
    contains(said, b"no journal: ")
    got = refused(b, "k", WORK, env=nowhere)
    equal(got.status, 80)
    contains(got.stderr, b"the journal could not keep it either", b"idem resolve")
    token = b("begin", "-k", "l").stdout.decode().strip()
    with locked(b):
        got = b("complete", "--self", env={**nowhere, "IDEM_TOKEN": token})
    equal(got.status, 69)
    contains(got.stderr, b"the journal could not keep it either")


def told(b, worker, verb, token):
    """How a @verb ended, once somebody was told: who waits too long behind others to
    open the store has status 69, and keeps nothing."""
    got = finish(worker)
    for _ in range(9):
        if got.status != 69:
            break
        got = b(verb, "--self", env=own(b, IDEM_TOKEN=token))
    return got


@case(slow=True)
def each_end_waits(b):
    """complete, fail, release and unknown are kept, and recorded by reconcile."""
    tokens = {}
    for verb in ("complete", "fail", "release", "unknown"):
        tokens[verb] = b("begin", "-k", verb).stdout.decode().strip()
    with locked(b):
        workers = {
            verb: b.start(verb, "--self", env=own(b, IDEM_TOKEN=token))
            for verb, token in tokens.items()
        }
        for verb, worker in workers.items():
            got = told(b, worker, verb, tokens[verb])
            equal((verb, got.status, got.stdout), (verb, 80, b""))
            contains(got.stderr, b"kept in", b"idem reconcile")
        rows, said = reconcile(b, "--list")
        equal(({row["key"]: row["state"] for row in rows}, said),
              ({verb: "waiting" for verb in tokens}, b""))
    rows, said = reconcile(b, "--dry-run")
    equal({(row["state"], row["would_be"]) for row in rows}, {("waiting", "recorded")})
    equal(len(journal(b, ".idj")), 4)
    rows, said = reconcile(b)
    equal(({row["key"]: row["state"] for row in rows}, said),
          ({verb: "recorded" for verb in tokens}, b""))
    equal({verb: b.record(verb)["status"] for verb in tokens},
          {"complete": "completed", "fail": "failed", "release": "released",
           "unknown": "unknown"})
    equal((journal(b), reconcile(b)), ([], ([], b"")))
    for verb, token in tokens.items():
        equal(b(verb, "--self", env=own(b, IDEM_TOKEN=token)).status, 0)


@case(slow=True)
def a_known_outcome_is_not_run_over(b):
    """While the outcome of a key waits and the store takes nothing, a run of the key
    starts nothing, also where its policy would let it."""
    options = ("--on-expired-lease", "rerun")
    printed = waiting(b, "k", *options)
    wait_for_the_lease(b)
    with locked(b):
        got = b.run("k", WORK, *options, env=own(b))
        equal((got.status, got.stdout), (69, b""))
        contains(got.stderr, b"waits in the journal", b"nothing was run")
        got = b("begin", "-k", "k", *options, env=own(b))
        equal((got.status, got.stdout), (69, b""))
    equal(b.run("k", WORK, *options, env=own(b)), (0, printed, b""))
    equal(b.effects(), 1)


@case(slow=True)
def what_waits_is_seen(b):
    """Commands that only read say that something waits, and dry runs know it."""
    waiting(b)
    for command in (("list",), ("stats",), ("show", "k")):
        got = b(*command, env=own(b))
        equal(got.status, 0)
        contains(got.stderr, b"in the journal", b"idem reconcile")
    got = b.run("k", WORK, "--dry-run", env=own(b))
    contains(got.stdout, b"would first record it as completed")
    got = b("reconcile", "--list", env=own(b))
    contains(got.stdout, b"waiting   completed  2", b"-  k  ")
    equal(b.run("other", "true", env=own(b)), (0, b"", b""))
    equal(journal(b), [])  # On the way.
    for command in (("list",), ("stats",), ("show", "k")):
        equal(b(*command, env=own(b)).stderr, b"")


# ---- Somebody else was faster ----------------------------------------------------


@case(slow=True)
def a_run_says_what_was_lost(b):
    """A run that finds its key lost to another says so, and goes on as it would."""
    waiting(b)
    token = b("show", "--json", "k")
    fence = str(json.loads(token.stdout)["fence"])
    wait_for_the_lease(b)
    done = b("resolve", "k", "--fence", fence, "--fail", "--reason", "looked",
             env={"IDEM_JOURNAL_DIR": b.file("elsewhere")})
    equal(done.status, 0)
    got = b.run("k", WORK, env=own(b))
    equal(got.status, 79)
    contains(got.stderr, b"came too late", b"idem reconcile --list")
    got = b.run("k", WORK, env=own(b))
    assert b"came too late" not in got.stderr
    equal(journal(b, ".lost"), journal(b))


@case(slow=True)
def a_person_hears_first_what_is_known(b):
    """resolve records what waits, before it lets somebody guess."""
    waiting(b)
    wait_for_the_lease(b)
    got = b("resolve", "k", "--release", "--reason", "guess", env=own(b))
    equal(got.status, 80)
    contains(got.stderr, b"recorded the outcome of")
    equal((b.record("k")["status"], journal(b)), ("completed", []))


# ---- Killed on the way -----------------------------------------------------------


@case(slow=True, rows=[14])
def a_runner_that_dies_leaves_its_outcome(b):
    """A runner that is killed while it tells the store has kept the outcome; its
    supervisor does not call it unknown, and the next run replays it."""
    worker = b.start_run("k", WORK, "--lease", "60s", "--journal", "always", env=own(b))
    b.await_pid()
    with locked(b):
        b.open_gate()
        until(lambda: written(b.file("journal")), "the outcome is kept")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        time.sleep(3)  # Its supervisor looks into the journal meanwhile.
    time.sleep(0.5)
    assert b.record("k")["status"] in ("in_progress", "completed")
    got = b.run("k", WORK, env=own(b))
    equal(got.status, 0)
    contains(got.stdout, b"receipt")
    equal((b.record("k")["status"], b.effects(), journal(b)), ("completed", 1, []))


# ---- What cannot be trusted, or does not belong --------------------------------


@case(slow=True)
def a_store_that_moved_is_followed(b):
    """--from records in one store what was meant for another, which it was."""
    waiting(b)
    (row,), _ = reconcile(b, "--list")
    for path in glob.glob(b.file("idem.db*")):
        os.rename(path, path.replace("idem.db", "moved.db"))
    rows, said = reconcile(b, status=78)
    equal([row["state"] for row in rows], ["waiting"])
    contains(said, b"no store in")
    moved = "sqlite:" + b.file("moved.db")
    rows, _ = reconcile(b, "--store", moved, status=78)
    equal([(row["state"], row["problem"]) for row in rows], [("waiting", "CONFIG")])
    rows, _ = reconcile(b, "--store", moved, "--from", row["store"])
    equal([row["state"] for row in rows], ["recorded"])
    equal(journal(b), [])


@case
def a_journal_belongs_to_its_user(b):
    """One that others may write to is used by no command, and each says so; and nothing
    is made where nothing is to be kept."""
    equal(b.run("k", "true", env=own(b)).status, 0)
    assert not has_journal(b)
    equal(reconcile(b), ([], b""))
    equal(b("reconcile", b.file("none")).status, 1)
    os.mkdir(b.file("journal"))
    os.chmod(b.file("journal"), 0o777)
    got = b("reconcile", env=own(b))
    equal(got.status, 77)
    contains(got.stderr, b"chmod 700")
    for rule in ("auto", "always"):
        got = b.run(f"l-{rule}", "true", "--journal", rule, env=own(b))
        equal(got[:2], (0, b""))
        contains(got.stderr, b"chmod 700", b"cannot keep outcomes there")
    if os.geteuid() == 0:
        os.chmod(b.file("journal"), 0o700)
        os.chown(b.file("journal"), 65534, -1)
        contains(b.run("m", "true", env=own(b)).stderr, b"belongs to another user (65534)")
    equal(kept(b.file("journal")), [])


@case(slow=True)
def it_is_beside_the_default_store(b):
    """Without IDEM_JOURNAL_DIR it is $XDG_STATE_HOME/idem/journal."""
    env = {"IDEM_JOURNAL_DIR": None, "XDG_STATE_HOME": b.file("state")}
    equal(b.run_refused("k", WORK, *SHORT, env=env).status, 80)
    equal(len(kept(b.file("state/idem/journal"))), 1)
    equal(b.run("k", WORK, env=env).status, 0)
    equal(kept(b.file("state/idem/journal")), [])


# ---- A store behind a network ----------------------------------------------------


@contextlib.contextmanager
def remote(b):
    """A network, and the environment in which the store is behind it."""
    with dynamo.server("dynoxide") as url:
        dynamo.make_table(url, "journal")
        network = Line(url)
        store = f"dynamodb://journal?index=off&endpoint={network.url}"
        credentials = {k: v for k, v in dynamo.environment().items() if "AWS_" in k}
        yield network, own(b, IDEM_STORE=store, **credentials)


@case(slow=True, rows=[14])
def a_remote_store_is_told_later(b):
    """While the network is down at the end of the work, its outcome is kept before
    the store is asked; it is recorded when the network is back."""
    with remote(b) as (network, env):
        worker = b.start_run("k", WORK, "--lease", "20s", env=env)
        b.await_pid()
        network.cut()
        b.open_gate()
        name, = until(lambda: journal(b, ".idj"), "the outcome is kept")
        kept_at = os.stat(os.path.join(b.file("journal"), name)).st_mtime
        got = finish(worker, timeout=60)
        assert time.time() - kept_at > 1  # It asked the store for so long after that.
        equal(got.status, 80)
        contains(got.stderr, b"could not be recorded", b"kept in", b"idem reconcile")
        away = b("reconcile", "--json", env=env, timeout=60)
        equal((away.status, json.loads(away.stdout)["state"]), (69, "waiting"))
        network.mend()
        again = b.run("k", WORK, env=env)
        equal((again.status, again.stdout), (0, got.stdout))
        equal((journal(b), b.effects()), ([], 1))


if __name__ == "__main__":
    main()
