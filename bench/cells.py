"""What is measured: cells of a table, each in turn in every round, so that a
machine that gets slower meanwhile is slow for all of them."""

import glob
import json
import os
import subprocess
import time

CALLERS = (1, 8, 32, 128)
IN_FLIGHT = (8, 32, 128)  # From one thread.
PROCESSES = ((1, 1), (2, 1), (4, 1), (4, 8))  # And callers in each.
REPLAY_CONNECTIONS = (2, 8, 32)


class Bench:
    """The programs, the servers, the files, and all results: a list with one
    entry for each round by (part, who, cell)."""

    def __init__(self, programs, place, peers, options):
        self.programs = programs
        self.place = place
        self.peers = peers  # {name: (pid, socket)}
        self.options = options
        self.results = {}
        self.running = []
        self.stores = 0

    # ---- Programs ----

    def start(self, name, *args):
        command = [os.path.join(self.programs, f"bench-{name}"), *map(str, args)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.running.append(process)
        return process

    def result(self, process):
        text, _ = process.communicate()
        self.running.remove(process)
        if process.returncode != 0:
            raise SystemExit(f"bench: {' '.join(process.args)} failed")
        return json.loads(text)

    def run(self, name, *args):
        return self.result(self.start(name, *args))

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()

    # ---- Results ----

    def add(self, part, who, cell, result):
        self.results.setdefault((part, who, cell), []).append(result)

    def times(self):
        return ("--seconds", self.options.seconds, "--warm", self.options.seconds / 4)

    def rounds(self, part, cells):
        """Run @cells, functions without arguments, in another order each time."""
        for n in range(self.options.rounds):
            self.options.progress(f"{part}, round {n + 1} of {self.options.rounds}")
            at = n % len(cells)
            for cell in cells[at:] + cells[:at]:
                cell()

    def fresh(self):
        """The path of a store that is not there yet."""
        self.stores += 1
        return f"{self.place}/{self.stores}.db"

    def remove(self, path):
        for name in glob.glob(f"{path}*"):
            os.unlink(name)

    # ---- New operations ----

    def disk(self, how):
        seconds = self.options.seconds / 2
        result = self.run("disk", f"{self.place}/pages", how, seconds)
        self.add("disk", how, 1, result)

    def new(self, who, callers, what="new", path=None, part=None, cell=None):
        """Callers that ask as fast as they are answered."""
        args = ("--callers", callers, *self.times())
        if who == "idem":
            store = path or self.fresh()
            result = self.run("idem", what, store, *args)
            if path is None:
                self.remove(store)
        else:
            pid, socket = self.peers[who]
            result = self.run(who, what, socket, "--pid", pid, *args)
        self.add(part or what, who, cell or callers, result)

    def new_operations(self):
        names = ["idem", *self.peers]
        cells = [lambda how=how: self.disk(how) for how in ("append", "over")]
        for callers in CALLERS:
            cells += [lambda n=name, c=callers: self.new(n, c) for name in names]
            cells.append(lambda c=callers: self.new("idem", c, "next"))
        queues = [name for name in names if name != "postgres"]
        for n in IN_FLIGHT:
            cells += [lambda w=w, n=n: self.new(w, n, "queue") for w in queues]
        self.rounds("new operations", cells)

    # ---- Processes ----

    def processes(self, number, callers):
        store = self.fresh()
        at = time.monotonic() + 0.5
        args = ("--callers", callers, *self.times(), "--start-at", at)
        started = [self.start("idem", "new", store, *args) for _ in range(number)]
        results = [self.result(process) for process in started]
        self.remove(store)
        total = sum(r["per_s"] for r in results)
        self.add(
            "processes",
            "idem",
            (number, callers),
            {
                "per_s": total,
                "slowest": min(r["per_s"] for r in results) / total if total else 0,
                "p50_us": max(r["p50_us"] for r in results),
                "p99_us": max(r["p99_us"] for r in results),
            },
        )

    def several_processes(self):
        cells = [lambda p=p, c=c: self.processes(p, c) for p, c in PROCESSES]
        self.rounds("processes", cells)

    # ---- Many records ----

    def fill(self, who, where, records, *args):
        self.options.progress(f"filling {who} with {records} records")
        result = self.run(who, "fill", where, "--records", records, *args)
        self.add("fill", who, records, result)

    def replay(self, who, where, records, callers):
        pid = self.peers[who][0] if who in self.peers else 0
        args = ("--records", records, "--callers", callers, "--pid", pid)
        result = self.run(who, "replay", where, *args, *self.times())
        self.add("replay", who, callers, result)

    def many_records(self):
        """Replays, and new operations, beside what is on record already."""
        sizes = self.options.sizes
        stores = {n: f"{self.place}/{n}.db" for n in sizes}
        for n in sizes:
            self.fill("idem", stores[n], n)
            size = os.path.getsize(stores[n])
            self.add("space", "idem", n, {"bytes": size / n})
        most = sizes[-1]
        for name, (_, socket) in self.peers.items():
            self.fill(name, socket, most)
        cells = [lambda c=c: self.replay("idem", stores[most], most, c) for c in (1, 2)]
        for name, (_, socket) in self.peers.items():
            counts = REPLAY_CONNECTIONS if name == "redis" else (8,)
            cells += [
                lambda n=name, s=socket, c=c: self.replay(n, s, most, c) for c in counts
            ]
        self.rounds("replays", cells)

        cells = []
        for callers in (1, 32):
            for n in (0, *sizes):
                cells.append(
                    lambda c=callers, n=n: self.new(
                        "idem", c, path=stores.get(n), part="growth", cell=(n, c)
                    )
                )
        self.rounds("growth", cells)
        for store in stores.values():
            self.remove(store)
        self.purges()
        if self.options.ten_million:
            self.ten_million()

    def ten_million(self):
        """Small ones; it takes a while."""
        store = self.fresh()
        number = 10_000_000
        self.fill("idem", store, number, "--bytes", 64)
        self.add("space", "idem", number, {"bytes": os.path.getsize(store) / number})
        cells = [
            lambda c=c, n=n, s=s: self.new("idem", c, path=s, part="growth", cell=(n, c))
            for c in (1, 32)
            for n, s in ((0, None), (number, store))
        ]
        self.rounds("ten million", cells)
        self.remove(store)

    # ---- Purge ----

    def purge(self):
        """With a writer in another process, which has to wait for the slices."""
        store = self.fresh()
        self.run("idem", "fill", store, "--records", self.options.purged)
        writer = self.start("idem", "new", store, "--seconds", 3600, "--warm", 0.1)
        result = self.run("idem", "purge", store, "--each", 100)  # A slice.
        writer.terminate()
        result["writer"] = self.result(writer)
        self.add("purge", "idem", self.options.purged, result)
        self.remove(store)

    def purges(self):
        self.rounds("purge", [self.purge])
