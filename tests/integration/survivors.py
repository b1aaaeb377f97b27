"""Work that cannot be ended: as long as a process of it may be alive, idem run says
neither that it is over nor that another may start."""

import contextlib
import ctypes
import errno
import json
import os
import signal
import struct
import subprocess
import sys
import time

from box import case, contains, finish, is_gone
from files import read_bytes
from patience import until
from procfs import below, children, descendants, named, stop, waits_in
from tap import PROGRAM, equal, main, skip, start
from unkillable import OrdinaryUser, frozen_disk

RERUN = ("--on-expired-lease", "rerun")
HURRY = ("--kill-after", "200ms")
# Of which the command needs little to be at work.
LIMIT = ("--max-time", "8s")


def is_left_to_its_lease(b, got, key, *words):
    """80, and a claim that runs on; the message names who is alive."""
    equal(got.status, 80)
    contains(got.stderr, b"is still alive", b"nothing was recorded", *words)
    record = b.record(key)
    equal(record["status"], "in_progress")
    assert record["lease_end_ms"] > time.time() * 1000 + 10_000, record
    equal(b.run(key, "true", *RERUN, "--fingerprint", "none").status, 75)
    return record


# ---- An uninterruptible sleep ------------------------------------------------

PAY = "mkdir disk/effect-$IDEM_FENCE; :"


def sleeps(runner):
    """Wait until a process below @runner sleeps on the frozen disk: in the kernel's wait for
    the right to write there, and not for a moment, until its program is loaded."""

    def found():
        return any("percpu" in waits_in(pid) for pid in descendants(runner.pid))

    until(found, "a process sleeps on the disk")


def effects(b):
    return [name for name in os.listdir(b.file("disk")) if "effect" in name]


@case
def asleep_for_good_keeps_the_key(b):
    """A process in an uninterruptible sleep, ended by --max-time under rerun: nobody
    takes over beside it, and the message names it and its lease."""
    with frozen_disk(b.file("disk")) as thaw:
        options = (*RERUN, *HURRY, *LIMIT, "--fingerprint", "none")
        got = b.run("k", PAY, *options, status="s")
        record = is_left_to_its_lease(
            b, got, "k", b"(mkdir)", b"uninterruptible", b"until its lease ends at"
        )
        story = json.loads(b.read("s"))
        equal((story["recorded"], story["status"]), (False, "in_progress"))
        contains(story["error"], "(mkdir)")
        thaw()
        until(lambda: effects(b), "the effect came in the end")
        equal(b.record("k")["fence"], record["fence"])
        equal(len(effects(b)), 1)


@case
def asleep_for_a_moment_is_waited_for(b):
    """The control: what wakes up within the patience is ended, and the next run takes
    over at once."""
    with frozen_disk(b.file("disk")) as thaw:
        runner = b.start_run("k", f"echo $$ > pid; {PAY}", *RERUN, *HURRY)
        child = b.await_pid()
        sleeps(runner)
        runner.terminate()
        until(lambda: is_gone(child), "the shell is killed")
        thaw()
        equal(finish(runner).status, 128 + signal.SIGTERM)
        got = b.run("k", f"echo $$ > pid; {PAY}", *RERUN, *HURRY)
        equal((got.status, b.record("k")["attempts"]), (0, 2))


@case
def the_command_itself_is_asleep(b):
    """Where the command itself cannot be ended, the run ends all the same."""
    with frozen_disk(b.file("disk")):
        command = (*RERUN, *HURRY, *LIMIT, "--fingerprint", "none", "--", "mkdir", "disk/x")
        got = b("run", "-k", "k", *command)
        is_left_to_its_lease(b, got, "k", b"was told to stop, but", b"(mkdir)")


@case
def a_dead_runner_tells_nothing_of_it(b):
    """The runner is killed, and its command cannot be: its supervisor says nothing."""
    with frozen_disk(b.file("disk")):
        runner = b.start_run("k", f"echo $$ > pid; {PAY}", *RERUN, "--kill-after", "100ms")
        child = b.await_pid()
        supervisor = children(runner.pid)[0]
        sleeps(runner)
        runner.kill()
        until(lambda: is_gone(supervisor) and is_gone(child), "the supervisor has given up")
        record = b.record("k")
        equal(record["status"], "in_progress")
        assert record["lease_end_ms"] > time.time() * 1000 + 10_000, record


# ---- Another user's process --------------------------------------------------


def alive_by(what, b, user, *run):
    """Let @what end a run of ./likesudo, which outlives it."""
    process = start(
        user.idem("run", "-k", "k", "--kill-after", "200ms", *run),
        {"IDEM_STORE": b.idem.store, "IDEM_JOURNAL_DIR": b.file("j"), "HOME": b.path},
        cwd=b.path,
    )
    b.processes.append(process)
    if what:
        what(process)
    return finish(process)


def sudo_is_there(process):
    """Wait until a process of root's works below @process."""
    until(lambda: "sleep" in below(process.pid).values(), "the helper is at work")


def terminated(process):
    sudo_is_there(process)
    process.terminate()


WAYS = {
    "max-time": (None, *LIMIT, "--", "sh", "-c", "./likesudo 20; :"),
    "SIGTERM": (terminated, "--", "sh", "-c", "./likesudo 20; :"),
    "75": (None, "--", "sh", "-c", "./likesudo 20 & exit 75"),
    "0": (None, "--", "sh", "-c", "./likesudo 20 & exit 0"),
}


def at_work(b):
    """The processes that idem started on the store of @b, or that these have started."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"={b.idem.store}\0".encode() in read_bytes(f"/proc/{entry}/environ") and not is_gone(entry):
                found.append(int(entry))
    return found


def end_as_root(b):
    """The test may end what the user could not."""
    for pid in at_work(b):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def another_users(b, way):
    user = OrdinaryUser(b)
    try:
        what, *run = WAYS[way]
        got = alive_by(what, b, user, *run)
        is_left_to_its_lease(
            b, got, "k", b"(sleep)", b"another user (uid 0)", b"record it:"
        )
        return got
    finally:
        end_as_root(b)


@case
def another_users_by_max_time(b):
    """A set-uid helper that this user may not signal, at the end of --max-time: 80."""
    another_users(b, "max-time")


@case
def another_users_by_sigterm(b):
    """The same at a SIGTERM of the runner."""
    another_users(b, "SIGTERM")


@case
def another_users_and_a_release(b):
    """A command that exits with 75 beside such a helper has not released its key."""
    contains(another_users(b, "75").stderr, b"ended with status 75, but")


@case
def another_users_and_a_success(b):
    """A command that exits with 0 beside such a helper has not completed its key."""
    contains(another_users(b, "0").stderr, b"ended with status 0, but")


@case
def ones_own_are_ended(b):
    """The control: the same helper without the other user's rights is ended, and the
    end is recorded."""
    user = OrdinaryUser(b)
    os.chmod(b.file("as-root"), 0o755)
    b.write("likesudo", "#!/bin/sh\nexec sleep $1\n")
    got = alive_by(None, b, user, "--", "sh", "-c", "./likesudo 20 & exit 0")
    equal((got.status, b.record("k")["status"]), (0, "completed"))
    contains(got.stderr, b"processes outlived the command")


@case
def its_supervisor_is_killed_beside_it(b):
    """The supervisor is killed while such a helper works: the runner cannot end that,
    and records no death."""
    user = OrdinaryUser(b)

    def kill_the_supervisor(process):
        sudo_is_there(process)
        os.kill(children(process.pid)[0], signal.SIGKILL)

    try:
        got = alive_by(kill_the_supervisor, b, user, "--", "sh", "-c", "./likesudo 20; :")
        is_left_to_its_lease(b, got, "k", b"another user (uid 0)")
    finally:
        end_as_root(b)


@case
def what_proc_hides_is_not_gone(b):
    """With a /proc that hides other users' processes the helper is seen by nobody, and
    still the end is not recorded."""
    user = OrdinaryUser(b)
    _, *run = WAYS["0"]
    command = user.idem("run", "-k", "k", "--kill-after", "200ms", *run)
    remount = "mount -t proc -o hidepid=2 proc /proc || exit 99; exec \"$@\""
    hidden = ["unshare", "--mount", "sh", "-c", remount, "sh", *command]
    process = start(hidden, {"IDEM_STORE": b.idem.store, "HOME": b.path}, cwd=b.path)
    b.processes.append(process)
    try:
        got = finish(process)
        if got.status == 99:
            skip(f"/proc cannot be mounted here: {got.stderr!r}")
        equal(got.status, 80)
        contains(got.stderr, b"that /proc does not show", b"nothing was recorded")
        equal(b.record("k")["status"], "in_progress")
    finally:
        end_as_root(b)


# ---- A runner with children of somebody else ---------------------------------

GRANDCHILD = (
    "(setsid sh -c 'echo $$ > pid; while :; do echo effect >> ledger; sleep 0.05; done') & wait"
)


@contextlib.contextmanager
def with_a_foreign_child(b):
    """A runner that a shell with a child became: (runner, its guard, the supervisor,
    that child)."""
    words = " ".join([*RERUN, "--lease 60s --fingerprint none"])
    line = f"sleep 60 >&- 2>&- & echo $! > foreign; exec {PROGRAM} run -k k {words} -- sh -c \"$0\""
    runner = start(["sh", "-c", line, GRANDCHILD], {"IDEM_STORE": b.idem.store}, cwd=b.path)
    b.processes.append(runner)
    work = b.await_pid()
    foreign = int(b.read("foreign"))
    names = {name: pid for pid, name in named(children(runner.pid)).items()}
    guard = names["idem-guard"]
    supervisor = children(guard)[0]
    try:
        yield runner, guard, supervisor, foreign
    finally:
        for pid in (foreign, work):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@case
def a_foreign_child_is_no_excuse(b):
    """The supervisor of a runner that has a child of its shell's is killed: all of the
    work is ended before the next run starts, and that child is left alone."""
    with with_a_foreign_child(b) as (runner, _, supervisor, foreign):
        os.kill(supervisor, signal.SIGKILL)
        equal(finish(runner).status, 128 + signal.SIGKILL)
        assert is_gone(b.await_pid()) and not is_gone(foreign)
        before = b.effects()
        got = b.run("k", "echo takeover $IDEM_TAKEOVER", *RERUN, "--fingerprint", "none")
        equal((got.status, got.stdout), (0, b"takeover 1\n"))
        equal(b.effects(), before)


@case
def without_its_guard_nothing_is_proved(b):
    """The control: with the guard killed too, the work goes on, and its key stays
    claimed until the lease ends."""
    with with_a_foreign_child(b) as (runner, guard, supervisor, _):
        os.kill(guard, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        got = finish(runner)
        equal(got.status, 80)
        contains(got.stderr, b"that /proc does not show", b"nothing was recorded")
        assert not is_gone(b.await_pid())
        equal(b.run("k", "true", *RERUN, "--fingerprint", "none").status, 75)


@case
def a_runner_with_a_guard_works_as_any(b):
    """With a foreign child a run is recorded and replayed, and a killed runner is told
    of by its supervisor."""
    line = f"sleep 60 >&- 2>&- & exec {PROGRAM} run -k a -- sh -c 'echo effect >> ledger; exit 3'"
    for _ in range(2):
        done = start(["sh", "-c", line], {"IDEM_STORE": b.idem.store}, cwd=b.path)
        b.processes.append(done)
        equal((done.wait(60), b.effects()), (3, 1))
    with with_a_foreign_child(b) as (runner, guard, supervisor, _):
        runner.kill()
        runner.wait()
        until(lambda: is_gone(supervisor) and is_gone(guard), "both have ended")
        assert is_gone(b.await_pid())
        got = b.run("k", "echo takeover $IDEM_TAKEOVER", *RERUN, "--fingerprint", "none")
        equal((got.status, got.stdout), (0, b"takeover 1\n"))


# ---- Work that tries to get away ---------------------------------------------

SUBREAPER = (
    "import ctypes, os, time\n"
    "ctypes.CDLL(None).prctl(36, 1)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        open('pid', 'w').write(f'{os.getpid()}\\n')\n"
    "        time.sleep(60)\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "time.sleep(60)\n"
)


def runs_away(b, key, *command):
    """The work of @command is gone when its end is on record."""
    runner = b.start("run", "-k", key, *RERUN, *LIMIT, "--kill-after", "100ms", "--", *command)
    b.await_pid()
    os.unlink(b.file("pid"))
    equal(len(at_work(b)) > 1, True)
    assert finish(runner).status in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    equal(at_work(b), [])
    assert b.record(key)["lease_end_ms"] <= time.time() * 1000


@case
def who_runs_away_is_ended(b):
    """Work below a subreaper of its own, and in a PID namespace of its own, is ended
    before its end is recorded."""
    runs_away(b, "subreaper", sys.executable, "-c", SUBREAPER)
    new = ("unshare", "--fork", "--pid")
    if subprocess.run([*new, "true"], capture_output=True, check=False).returncode:
        skip("no PID namespace here")
    runs_away(b, "namespace", *new, "sh", "-c", "sleep 60 & echo $$ > pid; exec sleep 60")


# Refuses PR_SET_ and PR_GET_CHILD_SUBREAPER as a kernel that does not know them:
# (what to do, where to go if it is so, where else, with which number).
NO_SUBREAPER = [
    (0x20, 0, 0, 0),  # The number of the system call:
    (0x15, 1, 0, 157),  # prctl() on x86-64,
    (0x15, 0, 4, 167),  # and on ARM64.
    (0x20, 0, 0, 16),  # Its first argument.
    (0x15, 1, 0, 36),
    (0x15, 0, 1, 37),
    (0x06, 0, 0, 0x00050000 | errno.EINVAL),
    (0x06, 0, 0, 0x7FFF0000),
]


def with_filter(filter):
    """Put this process under @filter."""
    code = b"".join(struct.pack("HBBI", *line) for line in filter)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(filter), ctypes.addressof(held))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
    assert prctl(22, 2, program, 0, 0) == 0, "PR_SET_SECCOMP"


@case
def where_nothing_can_be_supervised_nothing_runs(b):
    """Where descendants cannot be adopted nothing is run, the message says why, and
    the key stays free."""
    env = {**os.environ, "IDEM_STORE": b.idem.store}
    done = subprocess.run(
        [PROGRAM, "run", "-k", "a", "--", "sh", "-c", "echo effect >> ledger"],
        env=env, cwd=b.path, capture_output=True, check=False,
        preexec_fn=lambda: with_filter(NO_SUBREAPER),
    )  # fmt: skip
    equal((done.returncode, b.effects()), (69, 0))
    assert b"PR_SET_CHILD_SUBREAPER" in done.stderr, done.stderr
    equal(b.record("a")["status"], "released")
    equal(b.run("a", "echo effect >> ledger").status, 0)


# ---- What is said falsely ----------------------------------------------------


@case
def a_runner_that_hears_late_accuses_nobody(b):
    """A runner that waits for its store when its command ends does not say that this
    processes outlived the command."""
    runner = b.start_run("k", "echo $$ > pid; read x < gate; exit 3")
    child = b.await_pid()
    stop(runner.pid)
    b.open_gate()
    until(lambda: is_gone(child), "the command has ended")
    time.sleep(0.5)
    runner.send_signal(signal.SIGCONT)
    equal(finish(runner), (3, b"", b""))


if __name__ == "__main__":
    main()
