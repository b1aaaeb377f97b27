"""idem run with real commands, real kills, and two processes for one key."""

import errno
import json
import os
import resource
import shlex
import signal
import subprocess
import time

from box import (
    Terminal,
    case,
    contains,
    finish,
    is_gone,
    locked,
    plainly,
    until,
)
from files import read
from patience import in_time
from tap import PROGRAM, equal, main, skip

RERUN = ("--on-expired-lease", "rerun")
EFFECT = "echo effect >> ledger"


# ---- One execution, one outcome ----------------------------------------------


@case
def three_runs_are_one_execution(b):
    """The same command three times runs once and answers three times alike."""
    noise = f"{EFFECT}; head -c 3000 /dev/urandom; date +%N >&2; exit 3"
    first, second, third = (b.run("k", noise) for _ in range(3))
    equal(first.status, 3)
    equal(len(first.stdout), 3000)
    equal(second, first)
    equal(third, first)
    equal(b.effects(), 1)

    for _ in range(2):
        plainly(b.path, noise)
    equal(b.effects(), 1 + 2)  # The control.


@case
def many_at_once_are_one_execution(b):
    """Of 64 that start at once one runs, and all give its output and status."""
    b.write("effect", f"#!/bin/sh\n{EFFECT}; sleep 0.3; head -c 500 /dev/urandom\n")
    os.chmod(b.file("effect"), 0o755)
    args = ("run", "--wait", "300s", "-k", "k", "--", "./effect")
    results = [finish(p) for p in [b.start(*args) for _ in range(64)]]
    equal({r.status for r in results}, {0})
    equal(len({r.stdout for r in results}), 1)
    equal(len(results[0].stdout), 500)
    equal(b.effects(), 1)

    control = [subprocess.Popen(["sh", "-c", EFFECT], cwd=b.path) for _ in range(8)]
    for process in control:
        process.wait()
    equal(b.effects(), 1 + 8)


@case
def a_key_from_the_arguments_belongs_to_a_directory(b):
    """The same command line in another directory is refused, and in its own replayed."""
    work = ["--key-from-args", "--", "sh", "-c", "echo effect >>../ledger"]
    for name, status in ("p1", 0), ("p1", 0), ("p2", 65):
        os.makedirs(b.file(name), exist_ok=True)
        equal((name, b("run", *work, cwd=b.file(name)).status), (name, status))
    equal(b.effects(), 1)


@case
def dry_run_reads_only(b):
    """--dry-run says what would happen, and neither runs nor records anything."""
    equal(b.run("other", "true").status, 0)

    def told(status, *words, key="k", script=EFFECT, options=()):
        got = b.run(key, script, "--dry-run", *options)
        equal((got.status, got.stderr), (status, b""))
        contains(got.stdout, *words)

    told(0, b"would run: the key has no record")
    equal(b.record("k"), None)
    equal(b.run("k", EFFECT, "--outcome", "9=release").status, 0)
    told(10, b"would replay", b"exit status 0")
    told(65, b"used for another request", options=("--fingerprint", "else"))
    equal(b.effects(), 1)

    died = {"key": "k2", "script": "kill -9 $$"}
    b.run("k2", "kill -9 $$")
    told(76, b"would not run: unknown", **died)
    for key, policy in (("k4", "hold"), ("k5", "rerun")):
        equal(b("begin", "-k", key, "--on-expired-lease", policy).status, 0)
        told(75, b"would not run: attempt 1 is in flight", key=key,
             options=("--on-expired-lease", policy, "--fingerprint", "none"))
    token = b("begin", "-k", "k6").stdout.decode().strip()
    equal(b("fail", "--token", token, "--reason", "x").status, 0)
    told(79, b"would not run: failed", key="k6", options=("--fingerprint", "none"))
    equal(b("show", "k3").status, b("show", "none").status)


# ---- Busy, waiting, nesting --------------------------------------------------


@case
def a_waiter_gets_the_outcome(b):
    """A waiter gets the outcome; one whose time is over gets 75, with -q without a word."""
    script = "read x < gate; echo done; exit 4"
    worker = b.start_run("k", script)
    until(lambda: b.has_status("k", "in_progress"), "the key is claimed")
    equal(b.run("k", script, "-q"), (75, b"", b""))
    equal(b.run("k", script, "--wait", "300ms").status, 75)
    waiter = b.start_run("k", script, "--wait", "20s")
    b.open_gate()
    equal(finish(worker), (4, b"done\n", b""))
    equal(finish(waiter), (4, b"done\n", b""))


def start_waiter(b, name, script, *options):
    """A run of the key "k" that waits for its turn; it writes to the file @name."""
    with open(b.file(name), "wb") as said:
        waiter = b.start_run("k", script, "-v", "--wait", "100s", *options, stderr=said)
    until(lambda: "waiting for the attempt" in b.read(name), "it waits")
    return waiter


@case
def a_plain_waiter_starts_nothing(b):
    """Where the attempt is released, only --wait-then-run starts the next one."""
    script = f"{EFFECT}; read x < gate; exit 75"
    worker = b.start_run("k", script)
    until(b.effects, "the work has begun")
    plain = start_waiter(b, "plain", script)
    eager = start_waiter(b, "eager", script, "--wait-then-run")
    b.open_gate()
    equal(finish(worker).status, 75)
    until(lambda: b.effects() == 2, "the next attempt runs")
    b.open_gate()
    equal(finish(eager).status, 75)
    equal(finish(plain).status, 75)
    contains(b.read("plain"), "given up; try again")
    equal(b.effects(), 2)


@case(rows=[6])
def a_signal_ends_the_waiting(b):
    """SIGTERM to one that waits: it exits 143 at once and runs nothing."""
    script = f"{EFFECT}; read x < gate"
    worker = b.start_run("k", script)
    until(b.effects, "the work has begun")
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        waiter = start_waiter(b, "waiter", script, "--wait-then-run")
        waiter.send_signal(signo)
        equal(finish(waiter).status, 128 + signo)  # Long before the 100 s are over.
    b.open_gate()
    equal(finish(worker).status, 0)
    equal(b.effects(), 1)


@case
def a_waiter_does_not_wait_for_the_dead(b):
    """An owner that was ended under rerun has nobody who will end the attempt: a waiter is
    told so at once, and the next run takes over."""
    worker = b.start_run("k", "read x < gate", *RERUN)
    until(lambda: b.has_status("k", "in_progress"), "the key is claimed")
    waiter = start_waiter(b, "waiter", EFFECT, *RERUN, "--fingerprint", "none")
    worker.send_signal(signal.SIGTERM)
    equal(finish(worker).status, 143)
    equal(finish(waiter).status, 75)  # Long before the 100 s are over.
    contains(b.read("waiter"), "was interrupted; try again")
    equal(b.effects(), 0)
    equal(b.run("k", EFFECT, *RERUN, "--fingerprint", "none").status, 0)
    equal(b.effects(), 1)


@case
def a_run_inside_its_own_run_does_not_wait(b):
    """What runs under a key and asks for it again is told so, also with --wait."""
    inner = shlex.quote(PROGRAM)
    script = f"{inner} run -k k --fingerprint none --wait 20s -- true"
    got = b.run("k", script)
    equal(got.status, 75)
    contains(got.stderr, b"inside the attempt that it would wait for")
    equal(b.run("k", script.replace("-k k", "-k inner")).status, 0)


# ---- What the command sees ---------------------------------------------------


@case
def the_command_knows_its_attempt(b):
    """The command finds its attempt in the environment, and no stale one."""
    stale = {"IDEM_TOKEN": "old", "IDEM_FENCE": "7", "IDEM_TAKEOVER": "1"}
    got = b.run(
        "k 'é", "env | grep ^IDEM_ | sort", "--scope", "s", env=stale
    )
    lines = dict(line.split("=", 1) for line in got.stdout.decode().splitlines())
    record = b("show", "--scope", "s", "--json", "k 'é")
    assert lines.pop("IDEM_TOKEN") != "old"
    del lines["IDEM_STORE"], lines["IDEM_JOURNAL_DIR"], lines["IDEM_AUDIT_LOG"]
    equal(
        lines,
        {
            "IDEM_ATTEMPTS": "1",
            "IDEM_FENCE": str(json.loads(record.stdout)["fence"]),
            "IDEM_KEY": "k 'é",
            "IDEM_SCOPE": "s",
            "IDEM_TAKEOVER": "0",
        },
    )


@case
def the_trace_of_the_caller_is_kept_and_passed_on(b):
    """Text of another form is passed on and not kept; a replay keeps the first traceparent."""
    one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for key, trace, kept in ("one", one, one), ("odd", "00-odd", None):
        for value in trace, one.replace("-01", "-00"):
            got = b.run(key, "echo $TRACEPARENT", env={"TRACEPARENT": value})
            equal(got.stdout.decode(), trace + "\n")
        equal(json.loads(b("show", "--json", key).stdout).get("traceparent"), kept)
    contains(b("show", "one").stdout.decode(), one)


@case
def the_command_finds_its_store(b):
    """With --store, idem inside the command speaks to the same store."""
    url = "sqlite:" + b.file("other.db")
    script = f"{shlex.quote(PROGRAM)} list"
    got = b.run("k", script, "--store", url)
    equal(got.status, 0)
    contains(got.stdout, b"k")


@case
def the_command_may_say_how_it_ended(b):
    """A command that used its token is believed, whatever its status is."""
    script = f"{EFFECT}; {shlex.quote(PROGRAM)} release --self; exit 0"
    got = b.run("k", script)
    equal((got.status, got.stderr), (0, b""))
    equal(b.record("k")["status"], "released")
    equal(b.run("k", script).status, 0)
    equal(b.effects(), 2)


@case(slow=True)
def a_command_that_said_how_it_ended_may_go_on(b):
    """Once a command has recorded its outcome no lease binds it any more."""
    script = "idem complete --self --result 'by itself'; sleep 12; echo late; exit 3"
    path = {"PATH": b.path + ":" + os.environ["PATH"]}
    got = b.run("k", script, "--lease", "10s", env=path)
    equal((got.status, got.stdout, got.stderr), (3, b"late\n", b""))
    equal(b.run("k", script, "--lease", "10s"), (0, b"by itself", b""))


@case
def signals_are_as_if_untouched(b):
    """The command ignores and blocks no signal, and leads a group of its own."""

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})

    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; cut -d' ' -f1,5 /proc/$$/stat"
    lines = b.run("k", script, preexec_fn=ignore).stdout.decode().split()
    equal(lines[:4], ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])
    equal(lines[4], lines[5])


@case
def arguments_pass_unchanged(b):
    """Newlines, nothing, bytes of no encoding and 1.2 MB reach the command."""
    args = [b"a\nb", b"", b"\xff\xfe", b"--", b"-k"] + [b"x" * 100000] * 12
    show = ["sh", "-c", r'printf "%s\0" "$@" | sha256sum', "sh", *args]
    plain = subprocess.run(show, stdout=subprocess.PIPE, check=True).stdout
    for _ in range(2):
        equal(b("run", "-k", "k", "--", *show), (0, plain, b""))


@case
def input_is_given_kept_and_compared(b):
    """--input is the command's stdin, part of the fingerprint and in the record."""
    b.write("request", "one\n")
    cat = ["--", "sh", "-c", f"{EFFECT}; cat"]
    for _ in range(2):
        got = b("run", "-k", "k", "--input", "@request", *cat)
        equal(got, (0, b"one\n", b""))
        got = b("run", "-k", "k", "--input", "-", *cat, input=b"one\n")
        equal(got, (0, b"one\n", b""))
    equal(b.record("k")["input_len"], 4)
    equal(b("run", "-k", "k", "--input", "-", *cat, input=b"two\n").status, 65)
    equal(b("run", "-k", "k", *cat, input=b"one\n").status, 65)
    equal(b.effects(), 1)
    got = b("run", "-k", "l", *cat, input=b"inherited\n")
    equal(got, (0, b"inherited\n", b""))


# ---- How it ends -------------------------------------------------------------


@case
def what_cannot_run_is_released(b):
    """Not found is 127, not executable 126; the key is free again."""
    b.write("plain", "no program")
    b.write("script", "#!/no/such/interpreter\n")
    os.chmod(b.file("script"), 0o755)
    for command, status in (
        (["./missing"], 127),
        ([""], 127),
        (["./script"], 127),
        (["./plain"], 126),
        (["/"], 126),
        (["./plain/x"], 126),
    ):
        key = "k" + command[0]
        got = b("run", "-k", key, "--", *command)
        equal((command, got.status, got.stdout), (command, status, b""))
        contains(got.stderr, b"idem: cannot execute " + command[0].encode())
        equal(b.record(key)["status"], "released")
        equal(b.run(key, "echo now").stdout, b"now\n")


@case
def too_many_arguments_are_126(b):
    """A command line that only fits without our variables runs nothing: 126."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))

    def attempt(size):
        args = ["x" * 60000] * 3 + ["y" * size]
        command = ["run", "-k", f"k{size}", "--", "sh", "-c", EFFECT, "sh", *args]
        try:
            return b(*command, preexec_fn=limit).status
        except OSError as error:
            equal(error.errno, errno.E2BIG)
            return None

    fits, too_big = 1, 120000
    while too_big - fits > 1:
        middle = (fits + too_big) // 2
        if attempt(middle) is None:
            too_big = middle
        else:
            fits = middle
    equal(attempt(fits), 126)
    equal(b.record(f"k{fits}")["status"], "released")


@case(rows=[40])
def no_process_to_be_had_is_69(b):
    """Where no process can be started the key is released: 69."""
    if os.getuid() != 0:
        skip("only root can become a user without processes")
    if read("/proc/self/uid_map").split()[2:] == ["1"]:
        skip("root is the only user in this namespace")

    def become_poor():
        os.setgid(65534)
        os.setuid(61234)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    os.chmod(b.path, 0o777)
    try:
        status = b("--version", preexec_fn=become_poor).status
    except PermissionError:
        skip("the program cannot be reached by another user")
    if status != 0:
        skip("this build needs a thread of its own")
    got = b.run("k", EFFECT, preexec_fn=become_poor)
    equal(got.status, 69)
    contains(got.stderr, b"cannot start the process", b"Resource temporarily unavailable")
    equal(b.record("k")["status"], "released")
    equal(b.effects(), 0)


@case
def the_mending_command_mends(b):
    """What the message of an unknown outcome says to type can be typed."""
    b.write("FILE", "by hand\n")
    options = ("--scope", "s", "--fingerprint", "none")
    for key in ("plain", "with 'quotes' and spaces", "-dash", "tab\there"):
        for decision, answer in (("--complete", b"by hand\n"), ("--release", b"ran\n")):
            b.run(key + decision, "kill -9 $$", *options)
            told = b.run(key + decision, "echo ran", *options)
            equal((told.status, told.stdout), (76, b""))
            lines = told.stderr.decode().splitlines()
            command = next(line for line in lines if f" {decision} " in line)
            contains(command, "  idem resolve ", "--scope=s", "--fence ", "--reason ")
            equal(b.shell(command.replace("TEXT", "looked")).returncode, 0)
            again = b.run(key + decision, "echo ran", *options)
            equal((again.status, again.stdout), (0, answer))


@case
def an_ending_is_what_the_table_says(b):
    """--outcome says what an exit status is to the record: complete, fail, release, retry, unknown."""
    script = f"{EFFECT}; echo out; echo err >&2; exit 3"
    outcome = (3, b"out\n", b"err\n")
    recorded = {
        "complete": "completed",
        "fail": "failed",
        "release": "released",
        "retry": "retry",
    }
    for word, status in recorded.items():
        table = f"0=complete 3={word} *=unknown"
        equal(b.run(word, script, "--outcome", table), outcome)
        equal(b.record(word)["status"], status)
        equal(b.run(word, script, "--outcome", table), outcome)
    equal(b.effects(), 1 + 1 + 2 + 2)

    got = b.run("unknown", script, "--outcome", "3=unknown")
    equal((got.status, got.stdout), (3, b"out\n"))
    contains(got.stderr, b"err\n", b"ended with status 3", b"idem resolve")
    equal(b.run("unknown", script).status, 76)
    equal(b.effects(), 7)


@case
def a_warning_is_not_never(b):
    """A backup program ends with 1 for a warning, another with 42 for: never. One table has both."""
    table = ("--outcome", "0,1=complete 42=fail 75=release *=retry")
    for status, recorded in ((1, "completed"), (42, "failed"), (2, "retry"), (75, "released")):
        equal(b.run(f"k{status}", f"exit {status}", *table).status, status)
        equal(b.record(f"k{status}")["status"], recorded)
    # A warning is a success, and is replayed as the 1 that it was; without the table it failed.
    equal(b.run("k1", "exit 1", *table).status, 1)
    equal(b.run("plain", "exit 1").status, 1)
    failed = b("list", "--failed").stdout
    contains(failed, b"plain", b"k42")
    assert b"k1\n" not in failed, failed
    contains(b("show", "k1").stdout, b"exit status       1 (complete)\n")
    equal((b.record("k1")["meta"], b.record("plain")["meta"]), ("exit 1 complete\n", "exit 1\n"))


@case
def an_ending_without_a_status_is_none(b):
    """A signal and a time limit leave no status: "*" does not name them, "none" does, under either policy."""
    late = ("--max-time", "200ms", "--kill-after", "5s")
    forever = "trap 'exit 3' TERM; while :; do sleep 0.05; done"
    rerun = ("--on-expired-lease", "rerun")
    for name, script, options in (("signal", "kill -9 $$", ()), ("limit", forever, late)):
        for policy, by_policy in (((), "unknown"), (rerun, "in_progress")):
            for table, recorded in (
                ("jobs", by_policy),
                ("0=complete *,none=retry", "retry"),
                ("jobs none=fail", "failed"),
                ("none=unknown", "unknown"),
            ):
                key = f"{name} {table} {policy}"
                b.run(key, script, "--outcome", table, *options, *policy)
                equal((key, b.record(key)["status"]), (key, recorded))


@case
def quiet_hides_no_ending_that_needs_a_person(b):
    """-q silences chatter, and not that nobody knows what was done."""
    got = b.run("k", "kill -9 $$", "-q")
    equal(got.status, 137)
    contains(got.stderr, b"died of signal 9", b"what it had done by then is unknown", b"idem resolve")
    equal(b.run("l", "exit 3", "-q"), (3, b"", b""))  # The control.


@case(rows=[7])
def signals_reach_the_command(b):
    """A signal to the runner is the command's; its status is recorded and ours."""
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2"):
        trap = f"trap 'echo caught; exit 5' {name}"
        script = f"{trap}; echo up > {name}; while :; do sleep 0.05; done"
        worker = b.start_run(name, script)
        until(lambda: b.read(name), "the command is ready")
        worker.send_signal(getattr(signal, "SIG" + name))
        equal(finish(worker)[:2], (5, b"caught\n"))
        equal(b.record(name)["status"], "completed")
        equal(b.run(name, script)[:2], (5, b"caught\n"))


@case
def a_group_dies_of_a_forwarded_signal(b):
    """Work that dies of the SIGTERM that was passed on follows the policy; under
    rerun the next run takes over at once, and is told so."""
    script = "echo effect $IDEM_TAKEOVER >> ledger; test $IDEM_TAKEOVER = 1 || sleep 30"
    for policy, status in (("hold", "unknown"), ("rerun", "in_progress")):
        worker = b.start_run(policy, script, "--on-expired-lease", policy)
        until(b.effects, "the work has begun")
        worker.terminate()
        equal(finish(worker).status, 143)
        equal(b.record(policy)["status"], status)
        again = b.run(policy, script, "--on-expired-lease", policy)
        equal(again.status, 76 if policy == "hold" else 0)
        equal(b.effects(), 1 if policy == "hold" else 2)
        os.unlink(b.file("ledger"))


# ---- Output ------------------------------------------------------------------


@case
def order_between_the_streams_is_kept(b):
    """Both streams into one pipe replay in the order in which they came."""
    wanted = b"1\ne1\n2\ne2\n3\ne3\n"
    for pause in (0.1, 0.5, 2):  # A runner that is later than that sees no order.
        wait = f"sleep {pause}"
        script = f"for i in 1 2 3; do echo $i; {wait}; echo e$i >&2; {wait}; done"
        first = b.run(f"k{pause}", script, stderr=subprocess.STDOUT)
        equal(b.run(f"k{pause}", script, stderr=subprocess.STDOUT), first)
        if first.stdout == wanted:
            break
    equal(first.stdout, wanted)


@case
def nothing_is_added_to_a_pipe(b):
    """Neither the first run nor a replay of silent work prints a byte."""
    for _ in range(2):
        equal(b.run("k", "exit 0"), (0, b"", b""))
    contains(b.run("k", "exit 0", "-v").stderr, b"replayed")


@case(rows=[66])
def too_much_output_becomes_a_tombstone(b):
    """Beyond --max-output all is streamed, nothing is kept, nothing runs twice."""
    script = f"{EFFECT}; head -c 5000 /dev/zero; exit 3"
    options = ("--max-output", "4k")
    first = b.run("k", script, *options)
    equal((first.status, len(first.stdout), first.stderr), (3, 5000, b""))
    for more in ((), ("-q",)):
        again = b.run("k", script, *more)
        equal((again.status, again.stdout), (82, b""))
        contains(again.stderr, b"not kept")
    equal(b.run("k", script, "--replay", "quiet"), (3, b"", b""))
    got = b("begin", "-k", "k", "--fingerprint", "none")
    equal((got.status, got.stdout), (82, b""))
    contains(got.stderr, b"not kept")
    equal(b.effects(), 1)
    equal(len(b.run("l", "head -c 4091 /dev/zero", *options).stdout), 4091)
    equal(len(b.run("l", "head -c 4091 /dev/zero", *options).stdout), 4091)


@case(rows=[66], slow=True)
def memory_stays_flat(b):
    """200 MB of output pass through a runner that does not grow."""

    def peak(size):
        script = f"head -c {size} /dev/zero; read x < gate"
        worker = b.start_run(f"k{size}", script)
        left = size
        while left > 0:
            left -= len(worker.stdout.read(min(left, 1 << 20)))
        with open(f"/proc/{worker.pid}/status", encoding="ascii") as f:
            line = next(line for line in f if line.startswith("VmHWM"))
        b.open_gate()
        equal(finish(worker).status, 0)
        return int(line.split()[1])

    small, large = peak(1), peak(200 << 20)
    assert large - small < 4096, f"{small} kB, then {large} kB"


@case(rows=[66])
def a_daemon_on_the_pipe_is_not_waited_for(b):
    """A descendant that holds the pipes does not hold up the end."""
    script = "echo done; sleep 120 & exit 3"
    equal(b.run("k", script, stderr=subprocess.DEVNULL)[:2], (3, b"done\n"))
    equal(b.run("k", script), (3, b"done\n", b""))


@case(rows=[66])
def a_stream_that_ends_early_is_no_end(b):
    """A command that closes its stdout goes on, and its last words are kept."""
    script = f"echo out; exec >&-; sleep 0.3; echo late >&2; {EFFECT}; exit 2"
    for _ in range(2):
        equal(b.run("k", script), (2, b"out\n", b"late\n"))
    equal(b.effects(), 1)


@case(rows=[67])
def a_stdout_without_a_reader_changes_nothing(b):
    """A reader that went away wants no more: the status stays the command's."""
    script = f"head -c 300000 /dev/zero; {EFFECT}; echo err >&2; exit 6"
    read_end, no_reader = os.pipe()
    os.close(read_end)
    for _ in range(2):
        equal(b.run("k", script, stdout=no_reader)[::2], (6, b"err\n"))
        equal(b.effects(), 1)
    os.close(no_reader)
    equal((len(b.run("k", script).stdout), b.effects()), (300000, 1))


@case(rows=[67])
def a_stdout_that_takes_nothing_is_81(b):
    """With stdout full or closed the outcome is kept, and the loss is told."""
    script = f"head -c 300000 /dev/zero; {EFFECT}; echo err >&2; exit 6"
    with open("/dev/full", "wb") as full:
        ways = {
            "full": ({"stdout": full}, b"No space left on device"),
            "closed": ({"preexec_fn": lambda: os.close(1)}, b"Bad file descriptor"),
        }
        for n, (key, (popen, why)) in enumerate(ways.items(), 1):
            said = (
                b"err\nidem: cannot write to standard output: " + why + b"; the "
                b"outcome is recorded; print its output again with: idem show "
                b"--output " + key.encode() + b"\n"
            )
            equal(b.run(key, script, **popen)[::2], (81, said))
            equal(b.effects(), n)
            status, stdout, stderr = b.run(key, script)
            equal((status, len(stdout), stderr), (6, 300000, b"err\n"))
            equal(b.run(key, script, **popen)[::2], (81, said))
            equal(b.effects(), n)


@case
def what_is_not_on_record_goes_before_81(b):
    """A full stdout hides neither 75 nor 80, and needs output to be noticed."""
    lost = (
        f'echo x; {PROGRAM} release --token "$IDEM_TOKEN" && '
        f"{PROGRAM} begin -k d >/dev/null"
    )
    with open("/dev/full", "wb") as full:
        equal(b.run("a", "echo x; exit 75", stdout=full).status, 75)
        equal(b.run("b", "echo x; kill -9 $$", stdout=full).status, 137)
        equal(b.run("c", "exit 0", stdout=full).status, 0)
        got = b.run("d", lost, stdout=full)
    equal(got.status, 80)
    contains(got.stderr, b"standard output: No space left on device; part of the")


@case
def a_story_tells_of_a_full_stdout(b):
    """The command's own status is in the story, beside 81."""
    with open("/dev/full", "wb") as full:
        got = b.run("k", "echo x; exit 3", status="s", stdout=full)
    told = json.loads(b.read("s"))
    equal((got.status, told["idem_status"], told["exit_status"]), (81, 81, 3))
    equal(told["error"], "cannot write to standard output")


@case
def a_slow_reader_slows_the_command(b):
    """Nothing piles up in the runner, and nothing is lost, while nobody reads."""
    script = "head -c 2000000 /dev/zero; echo effect >> ledger"
    worker = b.start_run("k", script)
    time.sleep(0.5)
    equal(b.effects(), 0)
    equal(len(finish(worker).stdout), 2000000)
    equal(b.effects(), 1)


@case
def our_streams_stay_as_they_are(b):
    """A stdout that never blocks loses nothing; the flags of one are not ours."""
    for blocking in (True, False):
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, blocking)
        script = f"head -c 500000 /dev/zero; exit {int(blocking)}"
        worker = b.start_run(f"k{blocking}", script, stdout=write_end)
        time.sleep(0.2)
        equal(os.get_blocking(write_end), blocking)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as f:
            equal(len(f.read()), 500000)
        equal(finish(worker).status, int(blocking))


@case
def without_capture_output_is_left_alone(b):
    """--capture none gives the command our own streams and keeps its status."""
    script = f"{EFFECT}; test -p /dev/stdout && echo pipe; test -f /dev/stderr; exit 4"
    with open(b.file("err"), "wb") as err:
        got = b.run("k", script, "--capture", "none", stderr=err)
    equal(got[:2], (4, b"pipe\n"))
    again = b.run("k", script, "--capture", "none")
    equal(again[:2], (4, b""))
    contains(again.stderr, b"not kept")
    equal(b.run("k", script, "--capture", "none", "-q"), (4, b"", b""))
    equal(b.effects(), 1)


# ---- The story for programs --------------------------------------------------


def story(b, *args):
    """The JSON line of --status-fd, after the run's result."""
    got = b("run", *args, status="story")
    line = b.read("story")
    equal(line.count("\n"), 1)
    return got, json.loads(line)


@case
def the_story_is_unambiguous(b):
    """--status-fd tells a command's 65 from ours, and run from replayed."""
    command = ["-k", "k", "--", "sh", "-c", "echo hi; exit 65"]
    got, first = story(b, *command)
    equal(got.status, 65)
    fence = first.pop("fence")
    equal(
        first,
        {
            "verdict": "STARTED",
            "executed": True,
            "exit_status": 65,
            "recorded": True,
            "status": "completed",
            "not_kept": False,
            "replayed_bytes": 0,
            "scope": "",
            "key": "k",
            "attempts": 1,
            "takeover": False,
            "idem_status": 65,
        },
    )
    second = story(b, *command)[1]
    equal(second.pop("fence"), fence)
    first.update(verdict="REPLAY", executed=False, recorded=False, replayed_bytes=3)
    equal(second, first)

    other = story(b, "-k", "k", "--", "true")[1]
    equal((other["verdict"], other["executed"]), ("MISMATCH", False))
    killed = story(b, "-k", "d", "--", "sh", "-c", "kill -9 $$")[1]
    equal((killed["signal"], killed["status"]), (9, "unknown"))
    assert "exit_status" not in killed
    missing = story(b, "-k", "m", "--", "./missing")[1]
    equal((missing["executed"], missing["status"]), (False, "released"))
    contains(missing["error"], "cannot execute ./missing")


@case(rows=[75])
def a_story_that_cannot_be_told_changes_nothing(b):
    """A descriptor without room: the outcome is the same."""
    with open("/dev/full", "wb") as full:
        fd = full.fileno()
        got = b.run("m", "exit 3", "--status-fd", str(fd), pass_fds=[fd])
    equal(got.status, 3)
    contains(got.stderr, b"cannot write the status to ", b"No space left on device")


# ---- Killed at the worst moment ----------------------------------------------


@case(rows=[1])
def killed_before_it_asks(b):
    """Killed before it asked for the key: no record, no effect; a retry runs."""
    command = ("run", "-k", "k", "--input", "-", "--", "sh", "-c", EFFECT)
    early = b.start(*command, stdin=subprocess.PIPE)
    early.stdin.write(b"half of the inp")
    early.stdin.flush()
    time.sleep(0.2)
    early.kill()
    early.wait()
    equal((b.record("k"), b.effects()), (None, 0))
    equal(b(*command, input=b"all of the input").status, 0)
    equal(b.effects(), 1)


@case(rows=[4])
def killed_before_it_answered(b):
    """Killed when the outcome was on record but not yet printed: a replay."""
    script = f"{EFFECT}; head -c 100000 /dev/urandom; exit 3"
    worker = b.start_run("k", script)
    until(lambda: b.has_status("k", "completed"), "the outcome is on record")
    equal(worker.poll(), None)  # It still has most of its output to print.
    worker.kill()
    worker.wait()
    printed = worker.stdout.read()
    assert len(printed) < 100000
    got = b.run("k", script)
    equal((got.status, len(got.stdout), b.effects()), (3, 100000, 1))
    equal(got.stdout[: len(printed)], printed)


STUBBORN = """
trap 'echo told to stop; exit 0' TERM
echo $$ > pid
while :; do sleep 0.05; done
"""


@case(rows=[9], slow=True)
def stopped_for_want_of_a_renewal(b):
    """Work whose lease cannot be renewed is ended before it, and then recorded."""
    worker = b.start_run("k", STUBBORN, "--lease", "6s")
    child = b.await_pid()
    end_ms = b.record("k")["lease_end_ms"]
    begun = time.monotonic()
    with locked(b):
        until(lambda: is_gone(child), "the command has ended")
        took, left_ms = time.monotonic() - begun, end_ms - time.time() * 1000
    got = finish(worker)
    in_time(took, 5.6, "the stop")
    assert left_ms < 2500, left_ms  # SIGTERM comes 2 s before the end of the lease.
    equal((got.status, got.stdout), (0, b"told to stop\n"))
    contains(got.stderr, b"the command was stopped")
    equal(b.record("k")["status"], "completed")


@case
def attempts_are_counted(b):
    """After --max-attempts the record is failed: 79, and nothing runs."""
    work = (f"{EFFECT}; kill -9 $$", *RERUN, "--max-attempts", "1")
    equal([b.run("k", *work).status for _ in range(2)], [137, 79])
    got = b.run("k", *work)
    equal((got.status, got.stdout, b.effects()), (79, b"", 1))
    contains(got.stderr, b"gave up after 1 attempts")


# ---- At a terminal -----------------------------------------------------------


@case
def a_terminal_is_had_for_the_asking(b):
    """In a pipeline, or without it as stdin, the command gets it once it reads."""
    b.write("ask", "echo up; read x < /dev/tty; echo got $x; exit 5")
    for line in ("idem run -k a -- sh ask | cat", "idem run -k b -- sh ask <&-"):
        script = f"PATH={b.path}:$PATH; {line}; echo ended $? ${{PIPESTATUS[0]}}"
        shell = Terminal(b, "bash", "--norc", "-m", "-c", script)
        shell.expect(b"up")
        shell.type(b"this\n")
        shell.expect(b"got this")
        shell.expect(b"ended ")
        shell.expect(b" 5")
        os.close(shell.master)


if __name__ == "__main__":
    main()
