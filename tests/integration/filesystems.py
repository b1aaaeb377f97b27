"""File systems whose locks cannot be trusted, and those whose locks can."""

import contextlib
import os
import subprocess

from files import read
import fuse
import mounts
from tap import SANITIZER, Idem, equal, main, skip, test, traced


def tested():
    """Skip where a lock cannot be looked at by a child that shares our memory."""
    if SANITIZER == "thread":
        skip("the thread sanitizer does not know a child that shares our memory")


def mounted(*command):
    if os.getuid() != 0:
        skip("only root can mount")
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        skip(f"it cannot be mounted: {done.stderr.decode().strip()}")


@contextlib.contextmanager
def fuse_at(directory, kind, source="here", locks="kernel"):
    """A store on a file system of @kind in @directory."""
    with mounts.fuse_at(directory, kind, source, locks):
        yield Idem(f"sqlite:{os.path.abspath(directory)}/idem.db")


def works(idem):
    """One execution and its replay."""
    for _ in range(2):
        got = idem("run", "-k", "k", "--", "sh", "-c", "echo x >> ledger; echo hi")
        equal(got, (0, b"hi\n", b""))
    equal(read("ledger"), "x\n")
    os.unlink("ledger")


def is_refused(idem, *words):
    got = idem("run", "-k", "k", "--", "touch", "ran")
    equal((got.status, got.stdout), (78, b""))
    for word in words:
        assert word in got.stderr, got
    assert not os.path.exists("ran")


@test(rows=[43])
def what_reaches_over_the_network_is_refused():
    """FUSE has one number for all: what may be mounted elsewhere is known by its
    name, and nothing runs there: 78."""
    for kind, source, shown in (
        ("fuse.sshfs", "me@there:/srv", b"fuse.sshfs"),
        ("fuse.s3fs", "s3fs", b"fuse.s3fs"),
        ("fuse.rclone", "drive:", b"fuse.rclone"),
        ("fuse", "mountpoint-s3", b"mountpoint-s3"),
        ("fuse", "https://there/dav", b"https://there/dav"),
    ):
        name = "d" + kind + source[:3]
        with fuse_at(name, kind, source) as idem:
            is_refused(idem, b"network file system", shown)
            equal(os.listdir(name), [])


@test(rows=[43])
def who_knows_better_may_say_so():
    """With network=yes it is taken as it is."""
    with fuse_at("d", "fuse.sshfs") as idem:
        is_refused(idem, b"network")
        works(Idem(idem.store + "?network=yes"))
        is_refused(idem, b"network")


@test(rows=[43])
def locks_that_nobody_sees_are_found_out():
    """Where another process does not see our lock nothing runs: 78."""
    tested()
    for locks in ("lying", "none"):
        with fuse_at(locks, "fuse.unheard-of", locks=locks) as idem:
            is_refused(idem, b"another process does not see them")


@test(rows=[43])
def locks_that_others_see_are_good_enough():
    """What is not known is tested, and taken if its locks hold; the control of the
    tests before this one."""
    tested()
    with fuse_at("d", "fuse.unheard-of") as idem:
        works(idem)


@test(rows=[43])
def an_overlay_is_tested_and_taken():
    """In a container most files lie on an overlay: its locks are seen."""
    tested()
    for name in ("lower", "upper", "work", "merged"):
        os.mkdir(name)
    here = os.getcwd()
    options = f"lowerdir={here}/lower,upperdir={here}/upper,workdir={here}/work"
    mounted("mount", "-t", "overlay", "overlay", "-o", options, "merged")
    try:
        works(Idem(f"sqlite:{here}/merged/idem.db"))
    finally:
        fuse.unmount("merged")


@test(rows=[43])
def a_local_disk_is_not_tested():
    """On a file system that is known nothing is spent: no process is made."""
    strace = ["strace", "-f", "-e", "trace=clone,clone3,fork,vfork,statfs", "-o", "calls"]
    idem = Idem("sqlite:" + os.path.abspath("idem.db"))
    works(idem)
    try:
        subprocess.run([*strace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        skip("strace does not work here")
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", "."], capture_output=True, check=True
    ).stdout.strip()
    if kind not in (b"ext2/ext3", b"xfs", b"btrfs", b"tmpfs"):
        skip(f"the tests are on {kind.decode()}")
    env = traced({**os.environ, "IDEM_STORE": idem.store})
    command = [*strace, os.environ["IDEM_PROGRAM"], "show", "k"]
    subprocess.run(command, env=env, check=True, capture_output=True)
    calls = read("calls")
    assert "statfs(" in calls, calls
    assert "clone" not in calls and "fork" not in calls, calls


if __name__ == "__main__":
    main()
