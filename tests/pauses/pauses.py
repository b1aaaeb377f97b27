"""Owners that are stopped for a tenth of their lease to three times of it, or get no
processor: nobody follows them early, and what they say too late is refused."""

import collections
import concurrent.futures
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from tap import LONG, TIMEOUT, Idem, equal, main, test

OWNER = os.environ["IDEM_PAUSES_OWNER"]
LEASE_MS = 2000
LOST = -4
PAUSES = 10000 if LONG else 100
CONTROLS = 300 if LONG else 30
OWNERS = 150 if LONG else 36
SPINNERS = 6


class Storm:
    """Owners at work, and those of them that are stopped."""

    def __init__(self, count, kind=()):
        self.seed = int.from_bytes(os.urandom(4), "big")
        self.chance = random.Random(self.seed)
        self.directory = tempfile.TemporaryDirectory(prefix="idem-pauses-")
        self.idem = Idem(f"sqlite:{self.directory.name}/idem.db")
        self.ledger = os.path.join(self.directory.name, "ledger")
        with open(self.ledger, "w", encoding="ascii"):
            pass
        equal(self.idem("run", "-k", "made", "--", "true").status, 0)
        command = [OWNER, self.idem.store, self.ledger, str(count * 2 // 3)]
        self.owners = [
            subprocess.Popen([*command, str(n + 1), *kind], preexec_fn=lambda: os.nice(5))
            for n in range(count)
        ]
        self.asleep = {}
        self.pauses = 0
        self.slept = 0.0

    def wake(self, now):
        for owner in [o for o, until in self.asleep.items() if until <= now]:
            owner.send_signal(signal.SIGCONT)
            del self.asleep[owner]

    def pause(self, number, share=0.7):
        """Stop owners, @share of them at a time, until there were @number pauses."""
        target = self.pauses + number
        while self.pauses < target:
            self.wake(time.monotonic())
            awake = [o for o in self.owners if o not in self.asleep]
            if len(self.asleep) < share * len(self.owners):
                owner = self.chance.choice(awake)
                seconds = self.chance.uniform(0.1, 3) * LEASE_MS / 1000
                owner.send_signal(signal.SIGSTOP)
                self.asleep[owner] = time.monotonic() + seconds
                self.pauses += 1
                self.slept += seconds
            time.sleep(self.chance.uniform(0, 0.6 / len(self.owners) ** 0.5))

    def end(self):
        """Let all sleep, and work on, to their end; return the ledger."""
        while self.asleep:
            self.wake(time.monotonic())
            time.sleep(0.01)
        time.sleep(1)
        for owner in self.owners:
            owner.terminate()
        for owner in self.owners:
            try:
                assert owner.wait(timeout=TIMEOUT) in (0, -signal.SIGTERM)
            finally:
                owner.kill()
        with open(self.ledger, encoding="ascii") as f:
            return [(w[0], *map(int, w[1:])) for w in map(str.split, f)]


class Judge:
    """What the ledger says, beside what the store says."""

    def __init__(self, ledger):
        self.tally = collections.Counter(what for what, *_ in ledger)
        self.starts = {}  # (key, fence): (asked, known)
        self.newest = collections.defaultdict(int)
        self.least_end = collections.defaultdict(int)  # Of a lease.
        self.completed = collections.defaultdict(list)
        self.twice = self.early = self.stale = self.refused = self.takeovers = 0
        for what, key, fence, asked, known, code in ledger:
            if what == "S":
                self.twice += (key, fence) in self.starts
                self.starts[key, fence] = (asked, known)
                self.newest[key] = max(self.newest[key], fence)
                self.takeovers += code
            if what in "SR":
                least = self.least_end[key, fence]
                self.least_end[key, fence] = max(least, asked + LEASE_MS)
            if what == "C" and code == 0:
                self.completed[key].append(fence)
            if what == "C" and code == LOST:
                self.refused += 1
        self.judge_takeovers()
        self.stale = sum(
            len(fences) > 1 or fences[0] != self.newest[key]
            for key, fences in self.completed.items()
        )
        self.stale_effects = sum(
            self.is_followed(key, fence, asked)
            for what, key, fence, asked, *_ in ledger
            if what == "E"
        )

    def judge_takeovers(self):
        """Nobody starts while the lease before him may still run."""
        attempts = collections.defaultdict(list)
        for key, fence in self.starts:
            attempts[key].append(fence)
        self.followers = {}
        for key, fences in attempts.items():
            fences.sort()
            for before, after in zip(fences, fences[1:]):
                known = self.starts[key, after][1]
                self.followers[key, before] = known
                self.early += known < self.least_end[key, before]

    def is_followed(self, key, fence, when):
        return self.followers.get((key, fence), float("inf")) < when

    def recorded(self, idem):
        """The store has what was acknowledged."""
        listed = idem("list", "--json", timeout=TIMEOUT)
        equal(listed.status, 0)
        for line in listed.stdout.splitlines():
            record = json.loads(line)
            if record["key"] == "made":
                continue
            key = int(record["key"][1:])
            if record["status"] == "completed":
                yield key, record["fence"]

    def line(self):
        return (
            f"{len(self.starts)} attempts, {self.takeovers} takeovers, "
            f"{self.tally['R']} renewals, {self.tally['E']} effects, "
            f"{len(self.completed)} completions, {self.refused} refused, "
            f"{self.tally['L']} gave up; {self.early} early takeovers, "
            f"{self.stale} stale completions, {self.stale_effects} late effects"
        )


def judged(storm):
    judge = Judge(storm.end())
    print(f"# seed {storm.seed}: {storm.pauses} pauses, {storm.slept:.0f} s in all;")
    print("#   ", judge.line(), flush=True)
    equal(judge.twice, 0)
    on_record = dict(judge.recorded(storm.idem))
    for key, fences in judge.completed.items():
        equal((key, on_record.get(key)), (key, fences[0]))
    return judge


def spun(work):
    """Do @work while others take the processors."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(SPINNERS)
    ]
    try:
        work()
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def stop_them(storm, number):
    storm.pause(number)
    return judged(storm)


def starve_them(storm, number):
    spun(lambda: storm.pause(number, share=0.3))
    return judged(storm)


STORMS = {
    "pauses": (stop_them, OWNERS, (), PAUSES),
    "starvation": (starve_them, OWNERS // 2, (), PAUSES // 4),
    "careless": (stop_them, OWNERS, ("careless",), CONTROLS),
    "hasty": (stop_them, OWNERS, ("hasty",), CONTROLS),
}


@functools.cache
def storms():
    """All of them at once, for most of the time is slept."""
    pool = concurrent.futures.ThreadPoolExecutor(len(STORMS))
    return {
        name: pool.submit(live, Storm(owners, kind), number)
        for name, (live, owners, kind, number) in STORMS.items()
    }


@test(rows=[74])
def pauses_make_nobody_early_and_nothing_stale():
    """Stopped for up to three leases: no takeover comes early, no completion late."""
    judge = storms()["pauses"].result()
    equal((judge.early, judge.stale), (0, 0))
    assert judge.takeovers > 0 and judge.completed, judge.line()
    # One that is stopped between its look at the lease and the effect is late; it
    # takes the fence to find that out.
    assert judge.stale_effects <= 1 + PAUSES // 500, judge.line()


@test(rows=[74])
def starvation_makes_nobody_early_and_nothing_stale():
    """While others take the processors: likewise."""
    judge = storms()["starvation"].result()
    equal((judge.early, judge.stale), (0, 0))
    assert judge.starts, judge.line()


def control(name, shows):
    """A storm that has to show something: on a busy machine it may be too slow for
    that once, but not three times."""
    judge = storms()[name].result()
    for _ in range(2):
        if shows(judge):
            break
        live, owners, kind, number = STORMS[name]
        judge = live(Storm(owners, kind), number)
    return judge


@test
def who_does_not_look_at_the_lease_is_late():
    """The control: owners that never look have effects beside their successors; the
    store refuses what they say, all the same."""
    judge = control("careless", lambda j: j.stale_effects > 0 and j.refused > 0)
    equal((judge.early, judge.stale), (0, 0))
    assert judge.stale_effects > 0 and judge.refused > 0, judge.line()


@test
def a_clock_that_is_ahead_is_early():
    """The control: where every other owner has a clock that is ahead by most of a
    lease, early takeovers are seen."""
    judge = control("hasty", lambda j: j.early > 0)
    assert judge.early > 0, judge.line()


if __name__ == "__main__":
    main()
