"""A full disk, and a limit on the size of files: what was begun is ended, nothing new
is begun, and an outcome that is too long for what is left is kept elsewhere, or
without its output."""

import contextlib
import json
import os
import signal
import subprocess
import sys

from box import case, contains, finish
from files import write
from kept import kept
from tap import equal, main, skip

INSIDE = "IDEM_TEST_OWN_MOUNTS"
UNSHARE = (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"])
EFFECT = "echo effect >> ledger"
LONG = f"{EFFECT}; echo $$ > pid; read x < gate; head -c 3000000 /dev/zero | tr '\\0' x"
LEN = 3000000


def enter():
    """Become root of a place where file systems can be mounted, if that is allowed."""
    if INSIDE in os.environ:
        return
    for unshare in UNSHARE:
        with contextlib.suppress(OSError):
            if subprocess.run([*unshare, "true"], capture_output=True).returncode == 0:
                os.environ[INSIDE] = "1"
                os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


class Disk:
    """A file system of its own, with the store of @b on it."""

    def __init__(self, b, size):
        self.path = b.file("disk")
        os.mkdir(self.path)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.path]
        if INSIDE not in os.environ or subprocess.run(mount).returncode != 0:
            skip("no file system can be mounted here")
        b.idem.store = "sqlite:" + os.path.join(self.path, "idem.db")

    def fill(self):
        with contextlib.suppress(OSError):
            with open(os.path.join(self.path, "filler"), "ab", buffering=0) as f:
                while f.write(b"x" * 4096) > 0:
                    pass

    def free(self):
        os.unlink(os.path.join(self.path, "filler"))

    def end(self):
        subprocess.run(["umount", "-l", self.path], check=True)


@contextlib.contextmanager
def disk(b, size="8m"):
    d = Disk(b, size)
    try:
        yield d
    finally:
        d.end()


def begin_until_full(b):
    """Begin until there is no room: how many were begun."""
    for n in range(3000):
        got = b("begin", "-k", f"more-{n}")
        if got.status != 0:
            equal((got.status, got.stdout), (73, b""))
            contains(got.stderr, b"full")
            return n
    raise AssertionError("the disk is never full")


@case(rows=[33, 34])
def what_was_begun_is_ended(b):
    """On a full disk every attempt that was begun can be ended, a run starts nothing
    (73), a replay is given; with room again all goes on."""
    with disk(b) as d:
        equal(b.run("done", "echo done").status, 0)
        tokens = [b("begin", "-k", f"k{n}").stdout.decode().strip() for n in range(60)]
        assert all(tokens)
        d.fill()
        more = begin_until_full(b)
        verbs = ("complete", "fail", "release", "unknown")
        for n, token in enumerate(tokens):
            d.fill()
            got = b(verbs[n % 4], "--self", env={"IDEM_TOKEN": token})
            equal((n, got), (n, (0, b"", b"")))
        got = b.run("new", EFFECT)
        equal((got.status, got.stdout, b.effects()), (73, b"", 0))
        contains(got.stderr, b"full")
        equal(b.run("done", "echo done"), (0, b"done\n", b""))
        print(f"# {len(tokens)} ended and {more} more begun on a full disk")
        d.free()
        equal(b.run("new", EFFECT).status, 0)
        equal(b.effects(), 1)
        counts = [json.loads(line)["status"] for line in b("list", "--json").stdout.splitlines()]
        equal(counts.count("in_progress"), more)


def run_into_full(b, d, *options, env=None):
    """A run whose disk is full when it ends, and whose output is too long then."""
    worker = b.start_run("k", LONG, *options, env=env, status="story")
    b.await_pid()
    d.fill()
    b.open_gate()
    return finish(worker)


@case(rows=[34])
def what_does_not_fit_is_kept_elsewhere(b):
    """An outcome that is too long for what is left goes into the journal on another
    disk: 80; with room again it is recorded, and replayed whole."""
    with disk(b) as d:
        env = {"IDEM_JOURNAL_DIR": b.file("journal")}
        got = run_into_full(b, d, env=env)
        equal((got.status, len(got.stdout)), (80, LEN))
        contains(got.stderr, b"full", b.file("journal").encode(), b"idem reconcile")
        equal(len(kept(b.file("journal"))), 1)
        still = b("reconcile", "--json", env=env)
        equal((still.status, json.loads(still.stdout)["problem"]), (73, "FULL"))
        refused = b.run("k", LONG, env=env)
        equal((refused.status, refused.stdout), (73, b""))
        d.free()
        mended = b("reconcile", "--json", env=env)
        equal((mended.status, json.loads(mended.stdout)["state"]), (0, "recorded"))
        equal(kept(b.file("journal")), [])
        again = b.run("k", LONG, env=env)
        equal((again.status, again.stdout == got.stdout, b.effects()), (0, True, 1))


@case(rows=[34])
def what_fits_nowhere_is_recorded_without_its_output(b):
    """Where the journal is on the full disk too, it is recorded that the work was
    done: it does not run again."""
    with disk(b) as d:
        env = {"IDEM_JOURNAL_DIR": os.path.join(d.path, "journal")}
        got = run_into_full(b, d, env=env)
        equal((got.status, len(got.stdout)), (0, LEN))
        contains(got.stderr, b"has room for the output")
        story = json.loads(b.read("story"))
        equal((story["recorded"], story["not_kept"], story["status"]),
              (True, True, "completed"))
        assert "journal" not in story
        again = b.run("k", LONG, env=env)
        equal((again.status, again.stdout, b.effects()), (82, b"", 1))
        contains(again.stderr, b"not kept")
        d.free()
        again = b.run("k", LONG, env=env)
        equal((again.status, again.stdout, b.effects()), (82, b"", 1))


def told_of_the_room(b, env):
    """What doctor and watch say of the journal: grade, exit status, level; room."""
    findings = json.loads(b("doctor", "--json", env=env).stdout)["findings"]
    grades = [f["grade"] for f in findings if f["about"] == "journal" and "room" in f["text"]]
    seen = b("watch", "--once", "--json", env=env)
    lines = [json.loads(line) for line in seen.stdout.splitlines()]
    found = [(line["level"], line["room"]) for line in lines if line["event"] == "journal"]
    return (*grades, seen.status, *[level for level, _ in found]), [room for _, room in found]


@case
def a_journal_leaves_some_of_its_disk_to_others(b):
    """While there is little room for outcomes doctor, watch and the metrics say so, and
    they are kept. Without room none is: they go to a store that takes them all the same;
    of one that it does not take, the command says that it is nowhere."""
    store = b.idem.store
    with disk(b, "16m") as d:
        b.idem.store = store
        env = {"IDEM_JOURNAL_DIR": os.path.join(d.path, "journal")}
        equal(b.run("k", "true", "--journal", "always", env=env), (0, b"", b""))
        equal(told_of_the_room(b, env), ((0,), []))
        write(os.path.join(d.path, "filler"), bytes(14 << 20))
        equal(b.run("l", "true", "--journal", "always", env=env), (0, b"", b""))
        told, (room,) = told_of_the_room(b, env)
        equal(told, ("warn", 1, "warning"))
        assert 1 << 20 < room < 2 << 20, room
        contains(b("stats", "--format", "prometheus", env=env).stdout, b"idem_journal_entries{",
                 b"idem_journal_room_bytes{", f"}} {room}\n".encode())
        line = json.loads(b("stats", "--format", "emf", env=env).stdout)
        equal((line["journalEntries"], line["journalRoom"]), (0, room))
        with open(os.path.join(d.path, "filler"), "ab") as f:
            f.write(bytes(room + 8192))
        equal(b.run("m", "true", "--journal", "always", env=env), (0, b"", b""))
        equal(told_of_the_room(b, env), (("bad", 2, "critical"), [0]))
        got = b.run_refused("n", "echo $$ > pid; read x < gate", "--lease", "9s", env=env)
        equal(got.status, 80)
        contains(got.stderr, b"the journal could not keep it either", b"make room on it",
                 env["IDEM_JOURNAL_DIR"].encode())
        equal(kept(env["IDEM_JOURNAL_DIR"]), [])


# ---- A limit on the size of files --------------------------------------------

@case
def the_limit_is_the_commands_own(b):
    """What idem run starts dies of SIGXFSZ as it would without idem."""
    script = "ulimit -f 1; exec head -c 100000 /dev/zero > big"
    bare = subprocess.run(["sh", "-c", script], cwd=b.path, check=False)
    equal(bare.returncode, -signal.SIGXFSZ)
    equal(b.run("k", script).status, 128 + signal.SIGXFSZ)


SMALL = ("256k", "300k", "512k", "1m", "2m", "8m")


def answered(got, *statuses):
    """It came to an end, by itself, with one of these."""
    assert got.status in statuses, got


@case(rows=[33])
def a_small_disk_ends_nobody_late(b):
    """Full before the claim, under an attempt, or under a command: each verb answers,
    what ended is on record or in the journal, and doctor does not say that all is
    well."""
    for n, size in enumerate(SMALL):
        key = f"k{n}"
        with disk(b, size) as d:
            answered(b("begin", "-k", "first", timeout=60), 0, 73)
            token = b("begin", "-k", key, "--lease", "1h").stdout.decode().strip()
            d.fill()
            answered(b("begin", "-k", "more", timeout=60), 73)
            answered(b.run("more", EFFECT, timeout=60), 73)
            equal(b.effects(), 0)
            answered(b("doctor", timeout=60), 73, 74, 78)
            if token:
                got = b("complete", "--token", token, "--result", "r", timeout=60)
                answered(got, 0, 80)
            d.free()
            answered(b("reconcile", timeout=60), 0)
            if token:
                equal((size, b.record(key)["status"]), (size, "completed"))
            got = b.run("filled", f"head -c 99999999 /dev/zero >{d.path}/filler; echo done", timeout=60)
            answered(got, 0, 73, 80)
            d.free() if os.path.exists(os.path.join(d.path, "filler")) else None
            answered(b("reconcile", timeout=60), 0)
            if got.status != 73:
                equal((size, b.record("filled")["status"]), (size, "completed"))
        os.rmdir(d.path)


@case(rows=[33])
def a_limit_on_files_is_a_full_disk(b):
    """Under ulimit -f nobody dies of a signal: what may not grow is full, and an
    outcome is on record or in the journal. The message names the store and the limit."""
    refused = 0
    for blocks in (8, 16, 32, 48, 64, 100):
        key = f"k{blocks}"
        b.run(f"other{blocks}", "head -c 20000 /dev/zero")
        line = f"ulimit -f {blocks}; exec idem run -k {key} -- sh -c 'echo effect >>ledger'"
        got = subprocess.run(["bash", "-c", line], cwd=b.path, capture_output=True, env={
            **os.environ, "HOME": b.path, "IDEM_STORE": b.idem.store,
            "IDEM_JOURNAL_DIR": b.file("journal"), "PATH": b.path + ":" + os.environ["PATH"],
        })  # fmt: skip
        ran = b.effects()
        assert got.returncode in (0, 73, 80), got
        if b"cannot write to the store" in got.stderr:
            contains(got.stderr, b"idem.db: cannot write", b"ulimit -f")
            refused += 1
        b.write("ledger", "")
        equal((blocks, ran), (blocks, 0 if got.returncode == 73 else 1))
        equal(b("reconcile").status, 0)
        record = b.record(key)
        equal(record and record["status"], None if ran == 0 else "completed")
    assert refused, "the limits were too high"


if __name__ == "__main__":
    enter()
    main()
