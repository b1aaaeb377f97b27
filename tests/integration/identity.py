"""A store knows itself: what is missing, emptied, swapped, renamed, deleted, or
mounted by its file alone is refused, and nothing runs twice."""

import json
import os
import shutil
import subprocess
import time

from box import case, contains, finish
from kept import kept
from tap import equal, main, skip

PAY = "echo effect >> ledger"


def pay(b, *options):
    return b.run("pay", PAY, *options)


def refused(b, *words):
    """The work does not run again, and why is said."""
    got = pay(b)
    equal((got.status, got.stdout), (78, b""))
    contains(got.stderr, *words)
    equal(b.effects(), 1)


def lay_aside(b):
    """Another store, in another place."""
    equal(b("run", "--store", "sqlite:other.db", "-k", "pay", "--", "true").status, 0)


@case
def a_lost_store_is_no_new_one(b):
    """Deleted, emptied, moved away or swapped, the work does not run again; once the
    file is back, it is replayed."""
    equal(pay(b).status, 0)
    lay_aside(b)
    path, away = b.file("idem.db"), b.file("away")
    os.mkdir(away)
    names = [name for name in os.listdir(b.path) if name.startswith("idem.db") and "-lock" not in name]

    def carry(source, target):
        for name in names:
            if os.path.exists(os.path.join(source, name)):
                os.rename(os.path.join(source, name), os.path.join(target, name))

    carry(b.path, away)
    refused(b, b"is missing or empty", b"idem store create --force")
    assert not os.path.exists(path)
    with open(path, "w", encoding="ascii"):
        os.chmod(path, 0o600)
    refused(b, b"is missing or empty")
    for suffix in ("", "-wal", "-shm"):
        os.rename(b.file("other.db" + suffix), path + suffix)
    refused(b, b"is not the store that was made here", b"idem store mark-restored")
    equal(json.loads(b("store", "info", "--json").stdout)["is_other"], True)
    got = b("store", "check")
    equal(got.status, 78)
    contains(got.stdout, b"bad   identity: ", b"idem store mark-restored")
    carry(away, b.path)
    equal(pay(b).status, 0)
    equal(b.effects(), 1)


@case
def both_gone_looks_like_a_first_use(b):
    """The control: with the lock file gone too, the work runs again; create=no refuses
    that."""
    equal(pay(b).status, 0)
    for name in os.listdir(b.path):
        if name.startswith("idem.db"):
            os.unlink(b.file(name))
    strict = f"{b.idem.store}?create=no"
    got = pay(b, "--store", strict)
    equal(got.status, 78)
    contains(got.stderr, b"no store in", b"idem store create")
    equal(os.path.exists(b.file("idem.db-lock")), False)
    equal(b.effects(), 1)
    equal(pay(b).status, 0)
    equal(b.effects(), 2)
    equal(pay(b, "--store", strict).status, 0)


@case
def it_is_made_once_and_then_required(b):
    """idem store create makes the store that create=no wants; again it changes
    nothing, and it does not do for a lost one."""
    store = f"{b.idem.store}?create=no"
    made = b("store", "create", "--store", store)
    equal(made.status, 0)
    contains(made.stdout, b"was made")
    equal(pay(b, "--store", store).status, 0)
    contains(b("store", "create", "--store", store).stdout, b"is there already")
    os.unlink(b.file("idem.db"))
    equal(b("store", "create", "--store", store).status, 78)
    equal(b("store", "create", "--force", "--store", store).status, 64)
    got = b("store", "create", "--force", "--yes", "--store", store)
    equal(got.status, 0)
    contains(got.stdout, b"runs it again")
    equal(pay(b, "--store", store).status, 0)
    equal(b.effects(), 2)


@case
def a_copy_without_its_log_is_no_new_one(b):
    """Copied alone before anything of the log was carried over, the file says whose it
    is: the work does not run again."""
    equal(pay(b).status, 0)
    assert os.path.getsize(b.file("idem.db-wal")) > 0  # Nothing else carried it over.
    os.mkdir(b.file("copy"))
    subprocess.run(["cp", b.file("idem.db"), b.file("copy")], check=True)
    refused_there = pay(b, "--store", "sqlite:copy/idem.db")
    equal((refused_there.status, refused_there.stdout), (78, b""))
    contains(refused_there.stderr, b"does not know the store beside it", b"mark-restored")
    equal(b.effects(), 1)


# What may happen to the file under a runner, and the word that says so.
ACCIDENTS = {
    "rm idem.db": b"was deleted while it was in use",
    "mv idem.db elsewhere": b"was renamed or unmounted",
    "cp idem.db copy && mv copy idem.db": b"another file has replaced",
    "rm idem.db-lock": b"lock file was deleted",
    "mv idem.db-lock elsewhere": b"lock file was deleted or renamed",
}


@case
def what_is_taken_away_at_work_is_noticed(b):
    """The outcome goes to the journal: 80, and its path; by idem run and by idem
    complete."""
    for n, (accident, word) in enumerate(ACCIDENTS.items()):
        store = ("--store", f"sqlite:{n}/idem.db")
        os.mkdir(b.file(str(n)))
        got = b.run("k", f"echo done; cd {n} && {accident}", *store)
        equal((got.status, got.stdout), (80, b"done\n"))
        contains(got.stderr, word, b"the outcome is kept in", b".idj")
    waiting = kept(b.file("journal"), ".idj")
    equal(len(waiting), len(ACCIDENTS))


def mount(*command):
    if os.geteuid() != 0:
        skip("only root can mount")
    done = subprocess.run(["mount", *command], capture_output=True)
    if done.returncode != 0:
        skip(f"it cannot be mounted: {done.stderr.decode().strip()}")


@case
def a_file_that_is_mounted_alone_is_refused(b):
    """As docker run -v FILE:FILE does; its directory may be mounted."""
    equal(pay(b).status, 0)
    os.mkdir(b.file("inside"))
    inside = b.file("inside/idem.db")
    with open(inside, "w", encoding="ascii"):
        pass
    mount("--bind", b.file("idem.db"), inside)
    try:
        got = pay(b, "--store", f"sqlite:{inside}")
        equal(got.status, 78)
        contains(got.stderr, b"mount the directory")
    finally:
        subprocess.run(["umount", inside], check=True)
    os.mkdir(b.file("whole"))
    mount("--bind", b.path, b.file("whole"))
    try:
        equal(pay(b, "--store", f"sqlite:{b.file('whole/idem.db')}").status, 0)
    finally:
        subprocess.run(["umount", b.file("whole")], check=True)
    equal(b.effects(), 1)


@case
def an_unmounted_disk_is_noticed(b):
    """The store's disk goes, lazily, under a runner and between two."""
    disk = b.file("disk")
    os.mkdir(disk)
    store = ("--store", f"sqlite:{disk}/idem.db?create=no")
    mount("-t", "tmpfs", "tmpfs", disk)
    mounted = True
    try:
        equal(b("store", "create", *store).status, 0)
        runner = b.start_run("k", "echo $$ > pid; read x < gate; echo done", *store)
        b.await_pid()
        subprocess.run(["umount", "-l", disk], check=True)
        mounted = False
        b.open_gate()
        got = finish(runner)
        equal((got.status, got.stdout), (80, b"done\n"))
        contains(got.stderr, b"renamed or unmounted", b"the outcome is kept in")
        got = b.run("k", PAY, *store)
        equal(got.status, 78)
        equal(b.effects(), 0)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", disk], check=False)


def vacuum(path):
    subprocess.run(["sqlite3", path, "VACUUM"], check=True)


@case
def a_vacuumed_store_is_itself(b):
    """sqlite3 FILE VACUUM gives back space, and neither what is recorded nor what is
    open nor what the lock file knows of the store changes."""
    if not shutil.which("sqlite3"):
        skip("sqlite3 is not installed")
    equal(pay(b).status, 0)
    token = b("begin", "-k", "open").stdout.decode().strip()
    equal(b.run("failed", "exit 3").status, 3)
    equal(b.run("large", "head -c 500000 /dev/zero", "--lease", "never", "--retention", "1ms").status, 0)
    deadline = time.monotonic() + 60
    while not b("purge").stdout.startswith(b"purged 1 ") and time.monotonic() < deadline:
        time.sleep(0.1)
    lay_aside(b)
    path, other = b.file("idem.db"), b.file("other.db")
    records = b("export").stdout.splitlines()[1:]
    before = json.loads(b("store", "info", "--json").stdout)

    vacuum(path)
    vacuum(other)

    after = json.loads(b("store", "info", "--json").stdout)
    assert before["file_bytes"] > 500_000 > 200_000 > after["file_bytes"], (before, after)
    equal(b("export").stdout.splitlines()[1:], records)
    equal(b("store", "check").status, 0)
    equal((pay(b).status, b.effects()), (0, 1))
    equal(b("complete", "--token", token, "--result", "r").status, 0)
    os.rename(path, b.file("away.db"))
    os.rename(other, path)
    refused(b, b"is not the store that was made here", b"idem store mark-restored")
    os.rename(b.file("away.db"), path)
    equal((pay(b).status, b.effects()), (0, 1))


if __name__ == "__main__":
    main()
