"""The supervisor of idem run: runners that are killed, stopped or too slow, and
commands at a terminal."""

import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

from box import Terminal, at_terminal, case, contains, finish
from box import is_gone, locked
from files import read
from patience import PATIENCE, in_time, until
from procfs import children, named, stop
from tap import PROGRAM, equal, kill_session, main, skip

# ---- Who is there ------------------------------------------------------------


def supervisor_of(process):
    """The supervisor of a runner."""

    def found():
        names = named(children(process.pid))
        return next((pid for pid in names if names[pid] == "idem-supervisor"), None)

    return until(found, "the runner has a supervisor")


def at_work_for(b, key):
    """The processes that idem started for @key, or that these have started."""
    markers = [f"\0IDEM_KEY={key}\0".encode(), f"={b.idem.store}\0".encode()]
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as f:
                environ = b"\0" + f.read()
                if all(m in environ for m in markers) and not is_gone(entry):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def name_of(pid):
    with contextlib.suppress(OSError):
        return read(f"/proc/{pid}/comm").strip()
    return ""


def are_at_work(b, key, number):
    """Wait for @number of them; the sleeps of a shell are no work."""

    def found():
        return sum(name_of(pid) not in ("", "sleep") for pid in at_work_for(b, key))

    return until(lambda: found() >= number, f"{number} are at work")


def end_all(b, key):
    """Kill them, and whatever they start meanwhile."""
    while at_work_for(b, key):
        for pid in at_work_for(b, key):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


NONE = ("--capture", "none")

# A command with a child, one in a session of its own, one that its parents have
# left, and one that does not mind SIGTERM. All of them have effects all the time.
FAMILY = """
work() { while :; do echo $IDEM_FENCE >> ledger.$IDEM_KEY; sleep 0.05; done; }
if [ "$1" = work ]; then work; fi
if [ "$1" = defiant ]; then trap '' TERM; work; fi
if [ -e go.$IDEM_KEY ]; then echo $IDEM_FENCE >> ledger.$IDEM_KEY; exit 0; fi
sh family work &
setsid sh family work &
(setsid sh family work & setsid -f sh family defiant) &
work
"""
FAMILY_SIZE = 5


def fences(b, key):
    """The fences of the effects, in their order."""
    return [int(line) for line in b.read(f"ledger.{key}").split()]


def run_family(key, *options):
    return ("run", "-k", key, *options, "--", "sh", "family")


def first_answer(b, key, *options, seconds=50):
    """(how long it took, what the next call got) once it is not BUSY."""
    begun = time.monotonic()
    while True:
        got = b(*run_family(key, *options))
        if got.status != 75:
            return time.monotonic() - begun, got
        in_time(time.monotonic() - begun, seconds, f"{got}")
        time.sleep(0.005)


# ---- A runner that is killed -------------------------------------------------


@case
def the_group_of_the_runner_is_not_the_keepers(b):
    """kill -9 of the whole job spares the supervisor, which ends the work; under hold the
    record says what happened, and a person decides."""
    b.write("family", FAMILY)
    runner = b.start(*run_family("k", "--kill-after", "100ms"), stderr=subprocess.DEVNULL)
    are_at_work(b, "k", FAMILY_SIZE)
    os.killpg(runner.pid, signal.SIGKILL)
    runner.wait()
    equal(first_answer(b, "k")[1].status, 76)
    equal(at_work_for(b, "k"), [])
    equal(b.record("k")["status"], "unknown")
    contains(b.record("k")["note"], "the runner died; its command was stopped")
    equal(b("resolve", "k", "--release", "--reason", "looked").status, 0)
    b.write("go.k", "")
    equal(first_answer(b, "k")[1].status, 0)


@case(slow=True)
def killed_with_its_supervisor(b):
    """Runner and supervisor killed: the command dies, and the lease decides."""
    b.write("family", "[ -e go.k ] && exit 0; echo $$ > pid; exec sleep 60")
    runner = b.start(*run_family("k", *SHORT))
    child = b.await_pid()
    supervisor = supervisor_of(runner)
    stop(runner.pid)  # It must not see its supervisor die.
    os.kill(supervisor, signal.SIGKILL)
    runner.kill()
    runner.wait()
    until(lambda: is_gone(child), "the command is killed too")
    lease_end_ms = b.record("k")["lease_end_ms"]
    b.write("go.k", "")
    equal(b(*run_family("k", *SHORT)).status, 75)
    equal(first_answer(b, "k", *SHORT)[1].status, 0)
    early_ms = lease_end_ms - b.record("k")["started_ms"]
    assert early_ms < 100, early_ms  # Two clocks differ by some of them.


@case
def a_killed_keeper_takes_its_work_along(b):
    """Without its supervisor the work is ended by the runner, and so recorded."""
    b.write("family", FAMILY)
    runner = b.start(*run_family("k"))
    are_at_work(b, "k", FAMILY_SIZE)
    os.kill(supervisor_of(runner), signal.SIGKILL)
    got = finish(runner)
    equal((got.status, at_work_for(b, "k")), (137, []))
    contains(got.stderr, b"its supervisor")
    equal(b.record("k")["status"], "unknown")


# ---- A runner that is stopped ------------------------------------------------

SHORT = ("--on-expired-lease", "rerun", "--lease", "12s")


def slept_before_the_start(b, meanwhile):
    """A supervisor that sleeps when the order to start comes; then @meanwhile."""
    command = ("run", "-k", "k", *SHORT, "--input", "-", "--", "sh", "family")
    b.write("family", "echo $IDEM_FENCE >> ledger.k")
    b.write("go.k", "")
    equal(b("run", "-k", "other", "--", "true").status, 0)
    with locked(b):
        runner = b.start(*command, stdin=subprocess.PIPE)
        runner.stdin.close()
        stop(supervisor_of(runner))
    until(lambda: b.has_status("k", "in_progress"), "the key is claimed")
    supervisor = supervisor_of(runner)
    time.sleep(12)
    fence = meanwhile(command)
    os.kill(supervisor, signal.SIGCONT)
    runner.stdin = None
    got = finish(runner)
    equal(fences(b, "k"), fence)
    contains(got.stderr, b"the lease ended before the command started")
    return got.status


@case(rows=[8], slow=True)
def nothing_starts_after_the_lease(b):
    """Slept through the lease before the start: nothing is run, 69."""
    equal(slept_before_the_start(b, lambda command: []), 69)
    equal(b.record("k")["status"], "released")


@case(rows=[8], slow=True)
def nothing_starts_beside_a_successor(b):
    """Slept until another had the key: nothing is run, 80."""

    def succeed(command):
        got = until(
            lambda: next(
                (g for g in [b(*command, input=b"")] if g.status != 75), None
            ),
            "the lease is over",
        )
        equal(got.status, 0)
        return fences(b, "k")

    equal(slept_before_the_start(b, succeed), 80)


# ---- How long it may take ----------------------------------------------------


@case
def max_time_stops_everything(b):
    """--max-time ends the family; nobody knows what it had done."""
    b.write("family", FAMILY)

    def once(key):
        begun = time.monotonic()
        got = b(*run_family(key, "--max-time", "500ms", "--kill-after", "300ms"))
        took = time.monotonic() - begun
        equal((got.status, at_work_for(b, key)), (143, []))
        contains(got.stderr, b"it ran longer than --max-time")
        equal(b.record(key)["status"], "unknown")
        assert took >= 0.5, took
        return took

    soon_enough(lambda n: once(f"k{n}"), 3)


def soon_enough(once, most):
    """One of five times, which @once does and measures, takes less than @most seconds."""
    took = []
    while not took or took[-1] >= most:
        if len(took) == 5:
            in_time(min(took), most, "the fastest of five")
        took.append(once(len(took)))


def stopped_in_time(b, key, script, *options):
    """@script with a --max-time that leaves it the time to set its trap, which it may
    get from a slow host only if that is long: (its key, the limit in s, the result)."""
    for limit in (0.2, 2, 20):
        limited = f"{key}.{limit}"
        options_now = ("--max-time", f"{limit * 1000:.0f}ms", *options)
        got = b.run(limited, script, *options_now)
        if got.status != 128 + signal.SIGTERM:
            break
    return limited, limit, got


@case
def max_time_follows_the_policy(b):
    """Under rerun the next run takes over; what fails when told to stop has not failed by
    itself; what succeeds has succeeded."""
    rerun = ("--on-expired-lease", "rerun", "--max-time")
    first_hangs = "sleep $((90 * (1 - IDEM_TAKEOVER)))"
    equal(b.run("a", first_hangs, *rerun, "200ms").status, 143)
    equal(b.record("a")["status"], "in_progress")
    equal(b.run("a", first_hangs, *rerun, "60s").status, 0)
    caught = "trap 'exit {}' TERM; while :; do sleep 0.05; done"
    for number, status in ((0, "completed"), (7, "unknown"), (75, "released")):
        key, _, got = stopped_in_time(b, f"b{number}", caught.format(number))
        equal((got.status, b.record(key)["status"]), (number, status))
    equal(b.run("c", "exit 7", "--max-time", "60s").status, 7)
    equal(b.record("c")["status"], "completed")


@case
def kill_after_is_the_grace(b):
    """What minds no SIGTERM gets SIGKILL after --kill-after, and not before."""
    script = "trap '' TERM; while :; do sleep 0.05; done"
    for grace, least, most in (("0s", 0, 0.9), ("1s", 1, 2.5)):

        def once(n, grace=grace, least=least):
            begun = time.monotonic()
            _, limit, got = stopped_in_time(b, f"k{grace}{n}", script, "--kill-after", grace)
            equal(got.status, 137)
            took = time.monotonic() - begun - limit
            assert took >= least, (grace, took)
            return took

        soon_enough(once, most)


@case
def a_stopped_command_is_ended_too(b):
    """One that was stopped is continued, so that it can see SIGTERM."""
    script = "trap 'echo told; exit 0' TERM; kill -STOP $$; sleep 90"
    _, _, got = stopped_in_time(b, "k", script)
    equal((got.status, got.stdout), (0, b"told\n"))


# ---- What is left behind -----------------------------------------------------

DAEMON = "setsid -f sh family {} >/dev/null 2>&1; echo up; exit 3"


@case
def what_is_left_behind_is_ended(b):
    """When it is recorded that the work is over, it is over."""
    b.write("family", FAMILY)
    for kind in ("work", "defiant"):
        script = DAEMON.format(kind)
        got = b.run(kind, script, "--kill-after", "200ms")
        equal((got.status, got.stdout, at_work_for(b, kind)), (3, b"up\n", []))
        contains(got.stderr, b"--allow-background")
        equal(b.run(kind, script), (3, b"up\n", b""))


@case(rows=[66])
def background_can_be_allowed(b):
    """The control: --allow-background leaves them alone, whatever they hold."""
    b.write("family", FAMILY)
    script = "sh family work & setsid sh family work & exit 3"
    got = b.run("k", script, "--allow-background")
    equal((got.status, got.stderr), (3, b""))
    try:
        are_at_work(b, "k", 2)
    finally:
        end_all(b, "k")


@case
def last_words_are_waited_for(b):
    """A descendant that is about to end is not disturbed."""
    script = "exec 3>&1; (sleep 0.02; echo late; exit 0) & exit 3"
    equal(b.run("k", script), (3, b"late\n", b""))


@case
def a_signal_hurries_the_end(b):
    """SIGTERM to a runner that waits for what was left behind is passed on."""
    script = "(trap '' TERM; sleep 60) & echo $$ > pid; exit 3"
    runner = b.start_run("k", script, "--kill-after", "60s")
    child = b.await_pid()
    until(lambda: is_gone(child), "the command has ended")
    time.sleep(0.5)
    runner.send_signal(signal.SIGTERM)
    got = finish(runner)
    equal((got.status, at_work_for(b, "k")), (3, []))


@case
def nobody_else_holds_the_streams(b):
    """The reader of a run waits for the command alone, not for its supervisor."""
    reader, writer = os.pipe()
    script = "exec >&- 2>&-; echo $$ > pid; exec sleep 60"
    runner = b.start_run("k", script, *NONE, stdout=writer, stderr=writer)
    os.close(writer)
    b.await_pid()
    runner.kill()
    ready = select.select([reader], [], [], PATIENCE)[0]
    assert ready and os.read(reader, 1) == b""
    os.close(reader)


# ---- At a terminal -----------------------------------------------------------

def resize(terminal, rows, columns):
    size = struct.pack("HHHH", rows, columns, 0, 0)
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, size)


def shell_at_terminal(b):
    """An interactive bash that knows idem."""
    shell = Terminal(b, "bash", "--norc", "--noprofile", "-i")
    shell.type(f"PATH={b.path}:$PATH PS1='ready''> '; unset HISTFILE\n".encode())
    shell.expect(b"ready> ")
    return shell


def type_at(shell, line, *words):
    """Type @line, and read until each of @words was there."""
    shell.text = b""
    shell.type(line)
    for word in words:
        shell.expect(word)


@case
def vim_works(b):
    """An editor works under --capture none, and its file is as it was typed."""
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    if not vim:
        skip("vim is not installed")
    terminal = Terminal(
        b, PROGRAM, "run", "-k", "k", *NONE, "--", vim, "-u", "NONE", "-N", "text"
    )
    resize(terminal, 24, 80)
    terminal.expect(b"text")
    terminal.type(b"ihello\x1b")
    terminal.type(b":wq\r")
    until(lambda: drained(terminal), "vim ends")
    equal((terminal.process.wait(PATIENCE), b.read("text")), (0, "hello\n"))


def drained(terminal):
    """Read what is there; true once the process has ended."""
    if select.select([terminal.master], [], [], 0.05)[0]:
        try:
            terminal.text += os.read(terminal.master, 65536)
        except OSError:
            pass
    return terminal.process.poll() is not None


@case
def less_works(b):
    """A pager pages under --capture none, and q ends it."""
    if not shutil.which("less"):
        skip("less is not installed")
    b.write("lines", "".join(f"line {n}\n" for n in range(500)))
    shell = shell_at_terminal(b)
    resize(shell, 24, 80)
    line = b"idem run -k k --capture none -- less lines\n"
    type_at(shell, line, b"line 3", b"lines")
    type_at(shell, b"G", b"line 499")
    type_at(shell, b"q", b"ready> ")
    type_at(shell, b"echo status=$?\n", b"status=0")
    kill_session(shell.process)


@case
def a_password_is_not_shown(b):
    """A prompt turns the echo off, and it is on again after."""
    for key, options in (("none", NONE), ("both", ())):
        script = (
            "import getpass, sys\n"
            "secret = getpass.getpass('password: ')\n"
            "print('it has', len(secret))\n"
        )
        terminal = Terminal(
            b, PROGRAM, "run", "-k", key, *options, "--", sys.executable, "-c", script
        )
        terminal.expect(b"password: ")
        time.sleep(0.1)
        terminal.type(b"sesame\n")
        terminal.expect(b"it has 6")
        assert b"sesame" not in terminal.text, terminal.text
        equal(terminal.process.wait(PATIENCE), 0)


@case
def an_interactive_shell_keeps_its_jobs(b):
    """bash -i: Ctrl-C ends the command, Ctrl-Z and fg stop and continue it, and
    the shell has its terminal back each time."""
    shell = shell_at_terminal(b)
    for key, options in (("n", "--capture none"), ("b", "")):
        run = f"idem run -k {key}1 {options} -- sh -c 'echo u''p; exec sleep 60'\n"
        type_at(shell, run.encode(), b"up")
        time.sleep(0.2)  # A shell that is about to fork may miss it.
        type_at(shell, b"\x03", b"ready> ")
        type_at(shell, b"echo status=$?\n", b"status=130", b"ready> ")
        run = f"idem run -k {key}2 {options} -- sh -c 'echo u''p; read x; echo got $x'\n"
        type_at(shell, run.encode(), b"up")
        time.sleep(0.1)
        type_at(shell, b"\x1a", b"Stopped", b"ready> ")
        type_at(shell, b"jobs\n", b"Stopped", b"ready> ")
        type_at(shell, b"fg\n", b"idem run")
        type_at(shell, b"more\n", b"got more", b"ready> ")
        type_at(shell, b"echo status=$?\n", b"status=0", b"ready> ")
    kill_session(shell.process)


@case(slow=True)
def a_job_that_is_stopped_past_its_lease_is_ended(b):
    """Nobody renews for a stopped job: its command is ended in time, and fg says
    so."""
    shell = shell_at_terminal(b)
    run = "idem run -k k --lease 12s -- sh -c 'echo u''p; exec sleep 60'\n"
    type_at(shell, run.encode(), b"up")
    time.sleep(0.2)
    type_at(shell, b"\x1a", b"Stopped", b"ready> ")
    until(lambda: not at_work_for(b, "k"), "the command is ended")
    type_at(shell, b"fg\n", b"the command was stopped", b"ready> ")
    equal(b.record("k")["status"], "unknown")
    kill_session(shell.process)


@case
def a_killed_editor_leaves_a_sane_terminal(b):
    """A command that was killed in raw mode: the terminal is as it was."""
    script = "stty raw -echo; echo $$ > pid; exec sleep 60"
    terminal = at_terminal(b, "k", script, *NONE)
    child = b.await_pid()
    assert termios.tcgetattr(terminal.master)[3] != terminal.modes[3]
    os.kill(child, signal.SIGKILL)
    until(lambda: drained(terminal), "it is ended")
    equal(termios.tcgetattr(terminal.master)[3], terminal.modes[3])


@case
def a_resize_reaches_the_command(b):
    """A window that changes its size tells the command so, once."""
    script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done"
    for key, options in (("none", NONE), ("both", ())):
        terminal = at_terminal(b, key, script, *options)
        terminal.expect(b"up")
        resize(terminal, 33, 99)
        terminal.expect(b"33 99")
        kill_session(terminal.process)


@case
def colours_are_kept(b):
    """Under --capture none the command sees a terminal; with capture, a pipe."""
    script = "test -t 1 && echo colour || echo plain"
    for key, options, words in (("n", NONE, b"colour"), ("b", (), b"plain")):
        at_terminal(b, key, script, *options).expect(words)


@case
def a_replay_reads_nothing(b):
    """stdin is the command's on the first run, and untouched on a replay."""
    script = "read x; echo got $x"
    reader, writer = os.pipe()
    os.write(writer, b"first\nsecond\n")
    equal(b.run("k", script, stdin=reader).stdout, b"got first\n")
    equal(b.run("k", script, stdin=reader).stdout, b"got first\n")
    equal(os.read(reader, 100), b"second\n")
    for pipe in (reader, writer):
        os.close(pipe)
    terminal = at_terminal(b, "t", script)
    terminal.type(b"typed\n")
    terminal.expect(b"got typed")
    terminal.process.wait(PATIENCE)
    replay = shell_at_terminal(b)
    line = f"idem run -k t -- sh -c {shlex.quote(script)}; read y; echo y is $y\n"
    type_at(replay, line.encode() + b"kept\n", b"got typed", b"y is kept")
    kill_session(replay.process)


if __name__ == "__main__":
    main()
