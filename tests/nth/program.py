"""The n-th call below the idem program fails: once, for ever, and with a death
soon after, until none of its calls fails any more."""

import collections
import concurrent.futures
import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import nth
import tap
from tap import LONG, TIMEOUT, Idem, add, equal, main

FAULTS = [
    ("alloc", errno.ENOMEM),
    ("open", errno.EMFILE),
    ("read", errno.EIO),
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("sync", errno.EIO),
    ("truncate", errno.ENOSPC),
    ("stat", errno.EIO),
    ("lock", errno.ENOLCK),
    ("map", errno.ENOMEM),
    ("fork", errno.EAGAIN),
    ("pipe", errno.ENFILE),
    ("send", errno.ENOBUFS),
    ("clock", errno.EPERM),
    ("random", errno.ENOSYS),
    ("change", errno.EPERM),
]
ROWS = {"alloc": [41], "open": [40], "fork": [40], "pipe": [40], "sync": [37]}
MODES = ["once", "for ever", "once, then killed"]
DEATHS = [0, 1, 2, 3, 5, 9, 17, 40]
LEASE_S = 5
WORK = "echo effect >> ledger; echo out"
RUN = ("run", "-k", "k", "--lease", f"{LEASE_S}s", "--", "sh", "-c", WORK)
# What must succeed, or is not killed, does so on a machine that stands still, too.
AGAIN = ("run", "-k", "k", "--lease", "1h", "--", "sh", "-c", WORK)

# Where a fault lasts, most of the time is spent waiting for its end.
AT_ONCE = 32
BATCH = 8

# Nothing was done: store away, out of memory, full, corrupt, denied, not to be
# used.
REFUSED = {69, 70, 73, 74, 77, 78}
# glibc 2.36 without memory for a table of its own.
LIBC_DIED = {-signal.SIGSEGV, -signal.SIGABRT}
NOT_RUN = REFUSED | {126, 127}
# idem run: on record, but standard output did not take it.
OUTPUT_LOST = 81
NOT_KEPT = 82


class Case:
    """A store of its own for one fault."""

    def __init__(self, home, template):
        self.path = tempfile.mkdtemp(dir=home)
        for name in os.listdir(template):
            shutil.copy(os.path.join(template, name), self.path)
        self.idem = Idem("sqlite:" + self.file("idem.db"))
        self.args = self.fault = self.count = self.got = None

    def file(self, name):
        return os.path.join(self.path, name)

    def __call__(self, *args, env=None, **more):
        # Not of the working directory: the next test has another, meanwhile.
        files = {"IDEM_JOURNAL_DIR": self.file("journal"), "IDEM_AUDIT_LOG": self.file("audit.log")}
        env = {"HOME": self.path, **files, **(env or {})}
        with self.idem.start(*args, env=env, cwd=self.path, **more) as process:
            try:
                stdout, stderr = process.communicate(timeout=TIMEOUT)
            except BaseException:
                tap.kill_session(process)
                raise
        return tap.Result(process.returncode, stdout, stderr)

    def suffer(self):
        page = self.file("page")
        nth.write_page(page, self.fault)
        self.got = self(*self.args, env=nth.environment(page))
        self.count = nth.read_page(page)
        return self

    def effects(self):
        try:
            with open(self.file("ledger"), encoding="ascii") as f:
                return f.read().count("effect")
        except FileNotFoundError:
            return 0

    def records(self):
        """The status of every key."""
        listed = self("list", "--json")
        if listed.status != 0:
            assert b"no store in" in listed.stderr, listed
            return {}
        lines = map(json.loads, listed.stdout.splitlines())
        return {line["key"]: line["status"] for line in lines}

    def token(self):
        with open(self.file("token"), encoding="ascii") as f:
            return f.read().strip()


# ---- Stories: what is there, what is asked, what must be true ------------------


def nothing(case):
    del case


def some(case):
    equal(case("run", "-k", "done", "--", "echo", "done").status, 0)


def held(case):
    some(case)
    begun = case("begin", "-k", "k")
    equal(begun.status, 0)
    with open(case.file("token"), "wb") as f:
        f.write(begun.stdout)


def done(case):
    some(case)
    equal(case(*AGAIN).status, 0)


def unknown(case):
    held(case)
    equal(case("unknown", "--token", case.token()).status, 0)


def kept(case):
    """True if the outcome waits in the journal, and its owner says so."""
    return case.got.status == 80 and b"is kept in" in case.got.stderr


def settled(case, record):
    """The status of the key once the journal has been told to the store."""
    if b"is kept in" not in case.got.stderr:
        return record
    equal(case("reconcile").status, 0)
    return case.records().get("k")


def died(case):
    return case.count.killed and case.got.status == -9


def judge_output(case):
    """All of it, or the word that it is not there, and the command that has it."""
    whole = case.got.stdout == b"out\n"
    equal(case.got.status, 0 if whole else OUTPUT_LOST)
    if not whole:
        equal(case.fault.call, "write")
        assert b"idem show --output k" in case.got.stderr, case.got
        equal(case("show", "--output", "k").stdout, b"out\n")


def judge_run(case, record):
    """At most one execution, and none that was said not to be."""
    status, effects = case.got.status, case.effects()
    assert effects <= 1, effects
    record = settled(case, record)
    if kept(case):
        equal((effects, record), (1, "completed"))
    if status in (0, OUTPUT_LOST):
        equal(effects, 1)
        # The control of all that follows: where the supervisor was made to believe
        # that its runner had died, nobody claims to know.
        lost = record == "unknown" and case.fault.call == "send" and case.fault.on
        assert record == "completed" or lost, record
        if case.fault.call != "read":
            judge_output(case)
    elif status in NOT_RUN:
        equal(effects, 0)
        assert record in (None, "released", "in_progress"), record
    elif case.count.killed:
        assert status in (-9, 76, 80, 137, 143), case.got
    else:
        assert status in (80, 137, 143), case.got
    again = case(*AGAIN)
    if record == "completed":
        assert again.stdout == b"out\n" or b"not kept" in again.stderr, again
        equal((again.status, case.effects()), (0 if again.stdout else NOT_KEPT, 1))
    elif record in (None, "released"):
        equal(effects, 0)
        equal((again.status, case.effects()), (0, 1))
    else:
        assert again.status in (75, 76), again
        equal(case.effects(), effects)


def judge_replay(case, record):
    """What was recorded, or an error; never another execution."""
    assert case.got.status in REFUSED | {0, OUTPUT_LOST} or died(case), case.got
    equal((case.effects(), record), (1, "completed"))
    if case.got.status in (0, OUTPUT_LOST):
        judge_output(case)


def judge_begin(case, record):
    """A token for a claim that is there; a refusal for one that is not."""
    if case.got.status == 0:
        equal(record, "in_progress")
        token = case.got.stdout.decode().strip()
        equal(case("complete", "--token", token).status, 0)
    else:
        assert case.got.status in REFUSED | {2} or died(case), case.got
        assert record in (None, "released", "in_progress"), record
        if record == "in_progress":  # It may be there where nobody knows.
            assert case.got.status in (-9, 69, 70), case.got


def judge_end(case, record, wanted):
    """Recorded where it was said; and the same again is accepted."""
    assert record in ("in_progress", wanted), record
    record = settled(case, record)
    if case.got.status == 0 or kept(case):
        equal(record, wanted)
    else:
        assert case.got.status in REFUSED or died(case), case.got
    equal(case(*case.args).status, 0)
    equal(case.records()["k"], wanted)


def judge_resolve(case, record):
    assert record in ("unknown", "completed"), record
    if case.got.status == 0:
        equal(record, "completed")
    elif case.got.status in LIBC_DIED and case.fault.call == "alloc":
        # In getpwuid(), which is asked who decides, before anything is decided.
        equal(record, "unknown")
    else:
        assert case.got.status in REFUSED | {2} or died(case), case.got


def judge_reading(case, record):
    """All of it, or an error."""
    equal(record, "in_progress")
    if case.got.status == 0:
        lines = case.got.stdout.splitlines()
        keys = sorted(json.loads(line)["key"] for line in lines)
        equal(keys, ["done", "k"])
    else:
        assert case.got.status in REFUSED | {2} or died(case), case.got


def verb(name, wanted, *more):
    """A verb of the owner."""
    return (
        f"idem {name}",
        held,
        lambda case: (name, "--token", case.token(), *more),
        lambda case, record: judge_end(case, record, wanted),
    )


STORIES = [
    ("idem run", some, lambda _: RUN, judge_run),
    ("idem begin", some, lambda _: ("begin", "-k", "k"), judge_begin),
    verb("complete", "completed", "--result", "paid"),
]
if LONG:
    STORIES += [
        ("idem run, without a store", nothing, lambda _: RUN, judge_run),
        ("idem run, a replay", done, lambda _: RUN, judge_replay),
        verb("fail", "failed", "--reason", "no"),
        verb("release", "released"),
        verb("unknown", "unknown"),
        verb("renew", "in_progress"),
        (
            "idem resolve",
            unknown,
            lambda _: ("resolve", "k", "--complete", "paid", "--reason", "looked"),
            judge_resolve,
        ),
        ("idem list", held, lambda _: ("list", "--json"), judge_reading),
    ]


# ---- The loops -----------------------------------------------------------------


def numbers(call):
    """The n that are tried: all of them, or some; of memory, fewer the greater they
    are."""
    n = 0
    while True:
        yield n
        if LONG or n < 4:
            n += 1
        else:
            n += 1 + n // 2 if call == "alloc" else 3


class Loop:
    """All modes of one fault in one story."""

    def __init__(self, home, pool, story, call, error):
        self.name, prepare, self.ask, self.judge = story
        self.home, self.pool, self.call, self.error = home, pool, call, error
        self.told = []
        self.template = tempfile.mkdtemp(dir=home)
        self.empty = prepare is nothing
        case = Case(home, self.template)
        prepare(case)
        for name in ("token", "ledger", "idem.db", "idem.db-wal", "idem.db-lock"):
            if os.path.exists(case.file(name)):
                shutil.copy(case.file(name), self.template)

    def suffer(self, n, mode):
        case = self.attempt(n, mode)
        # Its lease may have run out while the machine stood still.
        fine = case.count.hit() or case.got.status == 0
        return case if fine else self.attempt(n, mode)

    def attempt(self, n, mode):
        case = Case(self.home, self.template)
        kill = DEATHS[n % len(DEATHS)] if "killed" in mode else -1
        case.args = self.ask(case)
        if case.args is RUN and kill < 0:  # Nobody has to wait for its lease.
            case.args = AGAIN
        case.fault = nth.Fault(self.call, n, mode == "for ever", self.error, kill)
        return case.suffer()

    def suffer_all(self, mode):
        """Let faults happen, a few at a time, until one does not."""
        cases = []
        tried = numbers(self.call)
        while True:
            some_n = [next(tried) for _ in range(BATCH)]
            batch = list(self.pool.map(lambda n: self.suffer(n, mode), some_n))
            cases += [case for case in batch if case.count.hit()]
            for case in batch:
                assert case.count.hit() or case.got.status == 0, case.got
            if not all(case.count.hit() for case in batch):
                return cases

    def verdict(self, case):
        """(how it ended, what is wrong)."""
        records = case.records()
        record = records.get("k")
        try:
            if not self.empty:
                equal(records["done"], "completed")
            self.judge(case, record)
            equal(case("run", "-k", "next", "--", "echo", "next").status, 0)
            return f"{case.got.status} {record}", None
        except Exception as failure:  # pylint: disable=broad-except
            return "bad", f"{case.fault}: {case.got}\n{record}: {failure!r}"
        finally:
            shutil.rmtree(case.path)

    def run(self):
        for mode in MODES:
            cases = self.suffer_all(mode)
            if not cases:
                tap.skip("it makes no such call")
            if mode == MODES[2]:
                time.sleep(LEASE_S)  # What was killed has lost its lease.
            verdicts = list(self.pool.map(self.verdict, cases))
            last = max(case.fault.n for case in cases) + 1
            failed = sum(case.count.failed for case in cases)
            deaths = sum(case.count.killed for case in cases)
            tally = collections.Counter(how for how, _ in verdicts)
            self.told.append(
                f"{self.call} {mode}: n from 1 to {last}, {len(cases)} times; "
                f"{failed} calls failed, {deaths} deaths; {dict(tally)}"
            )
            bad = [what for _, what in verdicts if what]
            assert not bad, f"{mode}: {len(bad)} bad; first: {bad[0]}"
        shutil.rmtree(self.template)


class Loops:
    """All of them, side by side, from the moment the first is asked for."""

    def __init__(self):
        self.todo = []
        self.futures = {}

    def add(self, story, call, error):
        def one():
            if not self.futures:
                self.start()
            told, future = self.futures[one]
            try:
                future.result()
            finally:
                for line in told():
                    print("#", line)

        one.__name__ = f"{story[0]}, {call}"
        add(f"{story[0]} when {call} fails: {errno.errorcode[error]}", one, ROWS.get(call, []))
        self.todo.append((one, story, call, error))

    def start(self):
        home = tempfile.TemporaryDirectory(prefix="idem-nth-", ignore_cleanup_errors=True)
        cases = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        loops = concurrent.futures.ThreadPoolExecutor(AT_ONCE // 2)
        only = [a for a in sys.argv if a not in ("--only", sys.argv[0])]
        for one, story, call, error in self.todo:
            if all(o in one.__name__ for o in only):
                loop = Loop(home.name, cases, story, call, error)
                self.futures[one] = (lambda loop=loop: loop.told), loops.submit(loop.run)
        self.home = home  # Until we end.


# ---- Where nobody can stand before a function -------------------------------------


def injected(case, call, error, n, args):
    """Run the program with its @n-th system call failing; True if it came so far."""
    log = case.file("strace")
    inject = f"inject={call}:error={error}:when={n}"
    strace = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e", inject]
    env = {"IDEM_STORE": case.idem.store, "HOME": case.path}
    with tap.start([*strace, tap.PROGRAM, *args], env, cwd=case.path) as process:
        stdout, stderr = process.communicate(timeout=TIMEOUT)
    case.got = tap.Result(process.returncode, stdout, stderr)
    with open(log, encoding="utf-8", errors="replace") as f:
        return "INJECTED" in f.read()


@tap.test(rows=[40])
def what_the_kernel_itself_refuses():
    """vfork() and what stdio writes, failed by strace: nothing runs without its
    record, and a token that reached nobody is given back."""
    try:
        probe = tap.run(["strace", "-qq", "-o", "/dev/null", "true"])
    except FileNotFoundError:
        probe = None
    if probe is None or probe.status != 0:
        tap.skip("strace does not work here")
    template = tempfile.mkdtemp(dir=os.getcwd())
    tally = collections.Counter()
    for call, error, args in (
        ("vfork", "EAGAIN", AGAIN),
        ("signalfd4", "EMFILE", AGAIN),
        ("timerfd_create", "EMFILE", AGAIN),
        ("socketpair", "ENFILE", AGAIN),
        ("write", "ENOSPC", ("begin", "-k", "k")),
    ):
        n = 1
        while True:
            case = Case(os.getcwd(), template)
            some(case)
            hit = injected(case, call, error, n, args)
            record = case.records().get("k")
            if not hit:
                equal(case.got.status, 0)
                break
            tally[f"{call}: {case.got.status} {record}"] += 1
            if case.got.status in NOT_RUN | {2}:
                equal(case.effects(), 0)
                assert record in (None, "released"), (call, n, case.got, record)
            elif case.got.status == 0:
                assert record == ("completed" if args is AGAIN else "in_progress")
            else:
                assert record == "unknown", (call, n, case.got, record)
            n += 1
        assert n > 1, f"no {call} was reached"
    print(f"# {dict(tally)}")


LOOPS = Loops()
for each_story in STORIES:
    for each_call, each_error in FAULTS:
        LOOPS.add(each_story, each_call, each_error)

if __name__ == "__main__":
    main()
