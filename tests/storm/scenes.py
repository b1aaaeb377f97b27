"""What is run in the storm, over which keys, and how it is killed."""

import collections
import concurrent.futures
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import judge
import points
import procfs
from patience import PATIENCE
from tap import LONG, PROGRAM, TIMEOUT, Idem, equal, run, start

KILLS_PER_POINT = 100 if LONG else 10
RANDOM_KILLS = 2000 if LONG else 100
VICTIMS = ("program", "runner", "supervisor", "command", "runner and supervisor", "all of them")
PAUSES = 480 if LONG else 24
SIDE_BY_SIDE = 4
LEASE_S = 2
OPEN_KEYS = 700  # In the store that is put back: more than it marks at once.


def program(name):
    return os.path.join(os.path.dirname(PROGRAM), "tests", "storm", name)


WORKER, STORM_IDEM = program("storm-worker"), program("storm-idem")
EFFECT = program("storm-effect")

# What the command of an idem run prints, how long it takes, and what it minds.
STYLES = {
    "short": ("200", "0"),
    "long": ("1400000", "0"),
    "slow": ("200", "900"),
    "defiant": ("200", "2000", "defiant"),
    "failing": ("200", "0", "failing"),
}

# How an idem run may end: with the outcome, nothing run, busy, unknown, lost, or
# as its command was killed or failed.
STATUSES = {0, 3, 69, 75, 76, 80, 137, 143, -signal.SIGKILL}


class Keys:
    """A few keys that many want; one that was used enough makes room."""

    def __init__(self, chance):
        self.chance = chance
        self.lock = threading.Lock()
        self.active = collections.defaultdict(list)
        self.uses = collections.Counter()
        self.all = collections.defaultdict(list)

    def _make(self, kind):
        key = f"{kind}-{len(self.all[kind])}"
        self.all[kind].append(key)
        return key

    def make(self, kind):
        """A key that nobody else will use."""
        with self.lock:
            return self._make(kind)

    def pick(self, kind, number=1, active=3, uses=5):
        """@number keys of a kind, whose first letter is the policy. The first is
        mostly a new one, which the next ones will want too."""
        with self.lock:
            pool = self.active[kind]
            chosen = [self._make(kind)] if self.chance.random() < 0.7 else []
            pool += chosen
            while len(pool) < max(active, number):
                pool.append(self._make(kind))
            others = [key for key in pool if key not in chosen]
            chosen += self.chance.sample(others, number - len(chosen))
            for key in chosen:
                self.uses[key] += 1
                if self.uses[key] >= uses:
                    pool.remove(key)
            return chosen

    def of(self, part):
        return {key for kind in self.all if part in kind for key in self.all[kind]}


def check_integrity(path):
    db = sqlite3.connect(path)
    found = db.execute("PRAGMA integrity_check").fetchall()
    db.close()
    equal((path, found), (path, [("ok",)]))


class Storm:
    """Stores, a ledger, and everything that is killed on them."""

    def __init__(self, directory, seed):
        self.directory = directory
        self.chance = random.Random(seed)
        names = points.names_in("src", "aws", "cli", "tests/storm")
        # A commit is of a table: tests/integration/commit.py kills what makes one.
        names = [name for name in names if not name.startswith("api/commit/")]
        self.counters = points.Counters(self.file("hits"), names)
        self.names = names
        self.targets = points.Targets(self.counters, names, KILLS_PER_POINT)
        self.keys = Keys(self.chance)
        self.ledger = self.file("ledger")
        self.path = self.file("idem.db")
        self.idem = Idem("sqlite:" + self.path)
        self.answers = []  # (key, stdout) of each idem run that ended with 0
        self.statuses = collections.Counter()
        self.complaints = []
        self.random_kills = collections.Counter()
        self.pauses = collections.Counter()
        self.in_journal = set()  # Keys of outcomes that were flushed there.
        self.fresh = self.larges = self.paused = 0

    def file(self, name):
        return os.path.join(self.directory, name)

    def environment(self, deaths, stop=None):
        env = points.environment(self.counters, deaths, stop)
        journal = self.file("journal")
        return {**env, "IDEM_STORE": self.idem.store, "IDEM_JOURNAL_DIR": journal}

    # ---- Programs on libidem ----

    def worker(self, role, path, length, keys, deaths, disturb=None, stop=None):
        """A worker, to its end."""
        command = [WORKER, role, path, self.ledger, str(length), *keys]
        env = self.environment(deaths, stop)
        process = start(command, env, stdout=subprocess.DEVNULL)
        if disturb:
            disturb(process, is_run=False)
        _, told = process.communicate(timeout=TIMEOUT)
        if told or process.returncode not in (0, -signal.SIGKILL):
            self.complaints.append((command[:5], process.returncode, told[-500:]))

    def work(self, deaths, disturb=None, role="work", length=200):
        keys = self.keys.pick("r-work", 2) + self.keys.pick("h-work", 2)
        self.worker(role, self.path, length, keys, deaths, disturb)

    def renew(self, deaths, disturb=None):
        self.work(deaths, disturb, role="renew")

    def threads(self, deaths, disturb=None):
        self.work(deaths, disturb, role="threads")

    def batch(self, deaths, disturb=None):
        self.work(deaths, disturb, role="batch", length=3000)

    def chain(self, deaths, disturb=None):
        self.work(deaths, disturb, role="chain")

    def again(self, deaths, disturb=None):
        """A key that was released is begun once more."""
        keys = self.keys.pick("r-work")
        self.worker("release", self.path, 200, keys, [])
        self.worker("work", self.path, 200, keys, deaths, disturb)

    def abandon(self, deaths, disturb=None):
        keys = self.keys.pick("r-left", 8, active=12)
        self.worker("abandon", self.path, 200, keys, deaths, disturb)

    def purge(self, deaths, disturb=None, name="p", of=1500, number=8, length=200):
        """Over keys whose records are past their retention after two seconds."""
        keys = [f"{name}-{n}" for n in self.chance.sample(range(of), number)]
        self.worker("purge", self.file("purge.db"), length, keys, deaths, disturb)

    def large(self, deaths, disturb=None):
        """More than the log holds before it is carried over."""
        with self.keys.lock:
            self.larges += 1
            name = f"p-large-{self.larges % 8}"  # Its last life is over by then.
        self.purge(deaths, disturb, name, 17, 17, 1_000_000)

    def middling(self, deaths, disturb=None):
        """Less than that, but too much to be left to the next process."""
        self.purge(deaths, disturb, "p-middling", 100, 10, 60_000)

    def fill(self):
        """What the first purges will find."""
        keys = [f"p-{n}" for n in range(1500)]
        self.worker("purge", self.file("purge.db"), 0, keys, [])

    def leave_open(self):
        """A store whose copies are put back."""
        path, keys = self.file("open.db"), [f"h-open-{n}" for n in range(OPEN_KEYS)]
        self.worker("leave", path, 0, keys, [])
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def restored(self, deaths, disturb=None):
        """A copy is marked, and once more after the death: then all is marked."""
        path = self.fresh_file()
        shutil.copy(self.file("open.db"), path)
        for deaths_then in (deaths, []):
            self.worker("restore", path, 0, [], deaths_then)
        db = sqlite3.connect(path)
        statuses = db.execute("SELECT DISTINCT status FROM idem_operations").fetchall()
        floor, last = db.execute("SELECT fence_floor, last_ms FROM idem_clock").fetchone()
        db.close()
        if statuses != [("unknown",)] or floor < last * 1000:
            self.complaints.append((path, statuses, floor, last))
        self.remove(path)

    def transaction(self, deaths, disturb=None):
        keys = self.keys.pick("r-in", 2) + self.keys.pick("h-in", 1)
        self.worker("in", self.file("in.db"), 200, keys, deaths, disturb)

    def fresh_file(self):
        with self.keys.lock:
            self.fresh += 1
            return self.file(f"fresh-{self.fresh}.db")

    def remove(self, path):
        """Remove a sound store."""
        check_integrity(path)
        for suffix in ("", "-wal", "-shm", "-lock", "-reserve"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)

    def first(self, deaths, disturb=None, role="open"):
        """A store, or tables in a database, that are not there yet. Whoever comes
        after the death finds them whole."""
        path = self.fresh_file()
        keys = ["r-fresh"] if role == "in" else []
        ledger = self.file("fresh-ledger")
        for deaths_then in (deaths, []):
            command = [WORKER, role, path, ledger, "0", *keys]
            process = start(command, self.environment(deaths_then))
            _, told = process.communicate(timeout=TIMEOUT)
            if told or (process.returncode != 0 and not deaths_then):
                self.complaints.append((command, process.returncode, told))
        self.remove(path)

    def first_in(self, deaths, disturb=None):
        self.first(deaths, disturb, role="in")

    # ---- idem run ----

    def command(self, key, style, *options, lease=f"{LEASE_S}s"):
        policy = {"h": "hold", "r": "rerun"}[key[0]]
        return [
            *(STORM_IDEM, "run", "-k", key, "--on-expired-lease", policy),
            *("--lease", lease, "--kill-after", "60ms"),
            *("--max-attempts", "0", "--fingerprint", key, *options),
            *("--", EFFECT, self.ledger, *STYLES[style]),
        ]

    def run(self, deaths, disturb=None, style="short", options=(), key=None, stop=None, **how):
        key = key or self.keys.pick(self.chance.choice("rh") + "-run-" + style)[0]
        command = self.command(key, style, *options, **how)
        process = start(command, self.environment(deaths, stop))
        if disturb:
            disturb(process, is_run=True)
        out, told = process.communicate(timeout=TIMEOUT)
        self.statuses[process.returncode] += 1
        if process.returncode == 0:
            self.answers.append((key, out))
        if process.returncode not in STATUSES:
            self.complaints.append((key, process.returncode, told))

    def run_long(self, deaths, disturb=None):
        self.run(deaths, disturb, "long")

    def run_slow(self, deaths, disturb=None):
        self.run(deaths, disturb, "slow")

    def replay(self, deaths, disturb=None):
        done = [key for key, _ in list(self.answers) if "-short-" in key]
        self.run(deaths, disturb, key=self.chance.choice(done) if done else None)

    def orphaned(self, deaths, disturb=None, style="slow"):
        """The runner dies while its command works, and then its supervisor."""
        self.run([("run/launch/started", 1), *deaths], disturb, style)
        time.sleep(0.1)  # The supervisor has its moment.

    def overdue(self, deaths, disturb=None):
        """The command takes too long, and does not mind SIGTERM."""
        options = ("--max-time", "200ms")
        self.run(deaths, disturb, "defiant", options)

    def unsaid(self, deaths, disturb=None):
        """The runner dies with a claim that its supervisor was not told of."""
        self.run([("run/claim/answered", 1), *deaths], disturb)
        time.sleep(0.05)

    def widowed(self, deaths, disturb=None):
        """The supervisor dies, and then its runner."""
        self.run([("supervisor/start/tells", 1), *deaths], disturb)

    def retried(self, deaths, disturb=None):
        """The command fails after its effect, and is to be run again."""
        key = self.keys.pick("r-run-failing")[0]
        style = self.chance.choice(("failing", "failing", "short"))
        self.run(deaths, disturb, style, ("--outcome", "jobs"), key=key)

    def kept(self, deaths, disturb=None):
        """The outcome is put into the journal before the store is told."""
        self.run(deaths, disturb, options=("--journal", "always"))

    def told(self, deaths, disturb=None):
        """The runner dies once the outcome is in the journal; its supervisor tells it,
        and dies, or whoever comes next."""
        key = self.keys.make(self.chance.choice("rh") + "-run-kept")
        how = {}
        if disturb is None:
            how["lease"] = "1h"  # No stall ends it before the outcome is kept.
            with self.keys.lock:
                self.in_journal.add(key)
        dead = [("journal/put/flushed", 1), *deaths]
        self.run(dead, disturb, options=("--journal", "always"), key=key, **how)
        time.sleep(0.1)  # The supervisor has its moment.

    # ---- Kills at named points ----

    def kill_at_points(self):
        """One thread of the storm: kills at whatever still needs it."""
        while (turn := self.targets.next()) is not None:
            name, tries = turn
            found = scenes_of(name)
            nth = self.chance.choice((1, 1, 2, 3, 5)) if tries % 3 == 0 else 1
            found[tries % len(found)](self, [(name, nth)])
            if tries > 2 * KILLS_PER_POINT:
                # It wants something that only time brings, as a record to purge.
                time.sleep(0.1)

    # ---- Kills at random moments ----

    def kill_at_random(self):
        def disturb(process, is_run):
            time.sleep(self.chance.random() ** 2 * 0.06)
            self.strike(process, is_run)

        # On a busy machine many die before they have a supervisor or a command.
        while (kills := sum(self.random_kills.values())) < RANDOM_KILLS or (
            len(self.random_kills) < len(VICTIMS) and kills < 10 * RANDOM_KILLS
        ):
            self.chance.choice(AT_RANDOM)(self, [], disturb)

    def victims(self, process, is_run):
        """Whom one can kill there: {name: processes}."""
        if not is_run:
            return {"program": [process.pid]}
        family = procfs.below(process.pid)
        keepers = [pid for pid, name in family.items() if name == "idem-supervisor"]
        return {
            "runner": [process.pid],
            "supervisor": keepers,
            "command": [pid for pid in family if pid not in keepers],
            "runner and supervisor": [process.pid, *keepers],
            "all of them": [process.pid, *family],
        }

    def strike(self, process, is_run):
        victims = self.victims(process, is_run)
        there = sorted(name for name in victims if victims[name])
        rare = [name for name in there if name not in self.random_kills]
        whom = self.chance.choice(rare or there)
        if process.poll() is None:
            signal_all(victims[whom], signal.SIGKILL)
            self.random_kills[whom] += 1

    # ---- Pauses ----

    def pause_at_points(self):
        while self.paused < PAUSES:
            with self.keys.lock:
                at, self.paused = self.paused, self.paused + 1
            stop = PAUSE_AT[at % len(PAUSE_AT)]
            kind = "work" if re.match("worker/|api/|local/", stop) else "run-slow"
            policy = "rh"[at // len(PAUSE_AT) % 2]
            self.outsleep(self.keys.make(f"{policy}-{kind}"), stop)

    def outsleep(self, key, stop):
        """One that sleeps at a point until its lease is over and another is at
        work, and wakes while that one sleeps in turn."""

        def visit(stop, disturb):
            if "-run-" in key:
                self.run([], disturb, "slow", key=key, stop=stop)
            else:
                self.worker("complete", self.path, 200, [key], [], disturb, stop)

        def sleeper(process, is_run):
            def rival(other, is_run):
                wait_until_stopped(other)
                wake(process)
                wait_for_end(process)
                wake(other)

            if wait_until_stopped(process):
                time.sleep(LEASE_S + 0.1)
                self.pauses[stop] += 1
                visit("run/finish/ended" if is_run else "worker/after-effect", rival)
                wake(process)

        visit(stop, sleeper)

    # ---- All of it ----

    def side_by_side(self, function, number=SIDE_BY_SIDE):
        with concurrent.futures.ThreadPoolExecutor(number) as pool:
            for future in [pool.submit(function) for _ in range(number)]:
                future.result()

    def starved(self, function, number):
        """The same with too few processors for all."""
        burners = [
            subprocess.Popen(["sh", "-c", "while :; do :; done"])
            for _ in range(3 * (os.cpu_count() or 1))
        ]
        try:
            self.side_by_side(function, number)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()

    def reconcile(self):
        """What is left in the journal is told; some of it comes too late."""
        told = run([STORM_IDEM, "reconcile"], self.environment([]))
        if told.status not in (0, 80):
            self.complaints.append(("reconcile", told))

    def records(self):
        told = self.idem("export", "-")
        equal((told.status, told.stderr), (0, b""))
        return judge.read_export(told.stdout)

    def settle(self):
        """A quiet time, in which every key comes to an end."""
        by_run = self.keys.of("-run-")
        wanted = by_run | self.keys.of("-work") | self.keys.of("-left")
        time.sleep(LEASE_S)
        self.idem("reconcile", env={"IDEM_JOURNAL_DIR": self.file("journal")})
        for _ in range(40):
            records = self.records()
            going = {key for key in wanted if not is_over(key, records.get(key))}
            if not going:
                self.reconcile()
                return
            with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                for key in going & by_run:
                    pool.submit(self.run, [], key=key)
            if going - by_run:
                self.worker("complete", self.path, 200, sorted(going - by_run), [])
        raise AssertionError(f"they never came to an end: {sorted(going)}")


def is_over(key, record):
    if record is None:
        return False
    return record.status == "completed" or (record.status, key[0]) == ("unknown", "h")


def wait_until_stopped(process):
    """False: it has ended, or nothing stops it."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if procfs.is_stopped(process.pid):
            return True
        time.sleep(0.02)
    return False


def wait_for_end(process):
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def wake(process):
    if process.poll() is None:
        signal_all([process.pid, *procfs.below(process.pid)], signal.SIGCONT)


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


# Which scenes come to a point: the first pattern that fits.
S = Storm
SCENES = [
    (r"sqlite/making/accepted", [S.restored]),
    (r"sqlite/(schema|open|clock|making)/", [S.first]),
    (r"sqlite/in/tables-made", [S.first_in]),
    (r"sqlite/pass/", [S.restored]),
    (r"sqlite/in/|worker/in/", [S.transaction]),
    (r"sqlite/purge/", [S.purge]),
    (r"sqlite/checkpoint/", [S.large]),
    (r"sqlite/tidy/carried", [S.middling]),
    (r"sqlite/table/all-set", [S.again]),
    (r"sqlite/table/head-set|api/renew/", [S.renew]),
    (r"api/next/", [S.chain]),
    (r"shared/group/gives-back", [S.abandon]),
    (r"sqlite/batch/op-run|shared/group/|queue/", [S.batch, S.threads, S.work]),
    (r"sqlite/|api/|worker/", [S.work, S.threads]),
    (r"journal/replay/", [S.told]),
    (r"journal/", [S.kept]),
    (r"run/lease/", [S.run_slow]),
    (r"run/not_started/", [S.replay]),
    (r"run/wait/supervisor-died", [S.widowed]),
    (r"supervisor/killed", [S.overdue]),
    (r"supervisor/(orphaned|told-to-end|alone|runner_death/sa)", [S.orphaned]),
    (r"supervisor/runner_death/settle", [S.unsaid]),
    (r"run/|supervisor/", [S.run, S.retried]),
]
AT_RANDOM = [
    *(S.work, S.renew, S.threads, S.batch, S.chain, S.purge, S.abandon),
    S.transaction,
    *(S.run, S.run, S.run_slow, S.run_slow, S.run_slow, S.run_long, S.replay),
    *(S.kept, S.kept, S.told, S.retried, S.retried),
]


# Where one may be stopped without all others having to wait for it.
PAUSE_AT = [
    *("worker/before-effect", "worker/after-effect", "api/end/asks"),
    *("api/begin/answered", "shared/group/handed-over", "run/claim/answered"),
    *("run/launch/ready", "run/launch/started", "run/finish/ended"),
    *("supervisor/start/ordered", "supervisor/start/started", "supervisor/ended/tells"),
]


def scenes_of(name):
    """The scenes in which processes come to the crash point @name."""
    for pattern, found in SCENES:
        if re.match(pattern, name):
            return found
    raise AssertionError(f"no scene comes to the crash point {name}")
