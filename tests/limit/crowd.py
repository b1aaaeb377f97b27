"""Servers, and crowds of processes that ask about the same requests."""

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import dynamo
from tap import equal, note

CLIENT = str(Path(sys.argv[1]).resolve())
PROCESSES = 32


def table(kind, name, **more):
    """A new table on a server, as (its URL, the server's)."""
    url = dynamo.shared(kind)
    dynamo.make_table(url, name, **more)
    return f"dynamodb://{name}?endpoint={url}&index=off", url


class Crowd:
    """Processes that ask about the requests of some windows, and what they heard."""

    def __init__(self, place, limit, windows=1, depth=64, processes=PROCESSES, room=None):
        self.place = place
        self.limit = limit
        self.room = limit if room is None else room  # What is left at the start.
        self.ids = self.room + (self.room + 1) // 2
        self.windows = windows
        self.depth = depth
        self.processes = processes
        self.at_ms = int(time.time() * 1000)
        self.kills = 0

    def start(self, process):
        return subprocess.Popen(
            [
                *(CLIENT, self.place, str(self.limit), str(self.ids)),
                *(str(self.windows), str(process), str(self.processes), str(self.at_ms)),
                *(str(self.depth), f"log-{process}"),
            ],
            env=dict(dynamo.environment(), AWS_ACCESS_KEY_ID=f"AKID{process}"),
            stderr=subprocess.PIPE,
            preexec_fn=dynamo.die_with_parent,
        )

    def run(self, kills=0, seed=1):
        """Run them all to their end; kill some on the way, and start them again."""
        chance = random.Random(seed)
        running = {n: self.start(n) for n in range(self.processes)}
        try:
            self.watch(running, kills, chance)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
        self.read()

    def watch(self, running, kills, chance):
        """Wait until all of them ended by themselves; kill some on the way."""
        while running:
            time.sleep(0.002 if kills else 0.02)
            some = min(kills - self.kills, 1 + len(running) // 4)
            for victim in chance.sample(sorted(running), max(some, 0)):
                running[victim].kill()
                self.kills += 1
            for n, process in list(running.items()):
                status = process.poll()
                if status is None:
                    continue
                complaint = process.stderr.read().decode()
                process.stderr.close()
                del running[n]
                if status != -signal.SIGKILL:
                    equal((status, complaint), (0, ""))
                if status != 0 or self.kills < kills:  # Ask all of it again.
                    running[n] = self.start(n)

    def read(self):
        self.heard = collections.defaultdict(collections.Counter)
        self.times = {}  # When a request first heard that it is admitted.
        for n in range(self.processes):
            with open(f"log-{n}", encoding="ascii") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        window, request, admitted, remaining, ms = map(int, line.split())
                        self.heard[window, request][admitted == 1, remaining] += 1
                        if admitted:
                            first = self.times.setdefault((window, request), ms)
                            self.times[window, request] = min(first, ms)
            os.remove(f"log-{n}")
        self.asked = sum(c.total() for c in self.heard.values())
        self.retries = self.asked - len(self.heard)

    def admitted(self):
        """How many requests were told that they are admitted, by window."""
        count = collections.Counter({w: 0 for w in range(self.windows)})
        for (window, _), answers in self.heard.items():
            count[window] += any(admitted for admitted, _ in answers)
        return count

    def torn(self):
        """Requests that heard two things."""
        return [key for key, answers in self.heard.items() if len(answers) > 1]

    def check(self):
        equal(len(self.heard), self.ids * self.windows)
        equal(self.torn()[:3], [])
        equal(set(self.admitted().values()), {self.room})
        left = collections.defaultdict(list)
        for (window, _), answers in self.heard.items():
            (admitted, remaining), *_ = answers
            if admitted:
                left[window].append(remaining)
            else:
                equal(remaining, 0)
        for numbers in left.values():
            equal(sorted(numbers), list(range(self.room)))

    def holds(self, what, kills=0, seed=1):
        """All of them ask, and are told right; @what they are, for the note."""
        self.run(kills, seed)
        self.check()
        equal(self.kills, kills)
        note(
            f"{what}: limit {self.limit}, {self.windows} windows, {self.processes} processes: "
            f"{self.asked} asked, {self.retries} of them retries, "
            f"{sum(self.admitted().values())} of {len(self.heard)} admitted, {self.kills} kills"
        )
