"""The rows of bench/growth for a DynamoDB table: requests and units, not time.

They are counted by a proxy between idem and Amazon's DynamoDB Local, which says of
each request what the service would bill. The server holds all in one process and
is slow, so that what takes too long at a size is left out, and the table says so.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))

import counting  # noqa: E402
import dynamo  # noqa: E402
import report  # noqa: E402

CONSTANT = "constant"
OPEN = "linear in what is open: 10 of 1,000"
TABLE = "linear in the table"
GONE = "linear in the table, and in what goes: 100 of 1,000"
# How much more a record may take at the largest size than at the smallest, and how
# many units more all of it: pages end where they end.
MOST, MORE = 1.25, 20
FOUND = (0, 1, 2)


@dataclass
class Row:
    name: str
    words: tuple
    grows: str = CONSTANT
    ok: tuple = (0,)


ROWS = [
    Row("idem stats", ("stats",), OPEN),
    Row("idem watch", ("watch", "--once"), OPEN, FOUND),
    Row("idem list, 20 failed", ("list", "--status", "failed", "--max", "20"), OPEN),
    Row("idem list, 20 of any", ("list", "--max", "20")),
    Row("idem list, all", ("list",), TABLE),
    Row("idem purge", ("purge", "--rate", "100000"), GONE),
]


@dataclass
class Table:
    title: str = "Records of a DynamoDB table, in units (requests)"
    unit: str = "records"
    sizes: tuple = (10**4, 10**5, 10**6)
    rows: list = field(default_factory=lambda: ROWS)


class Cells:
    """As those of bench/growth: the counts of each row at each size."""

    def __init__(self, bench, sizes, progress):
        self.bench = bench
        self.table = Table()
        self.sizes = sizes
        self.progress = progress
        self.rounds = {}
        self.why = {}
        self.took = {}

    # ---- Measuring ----

    def missing(self, n, why):
        self.progress(f"  {n:,}: {why}")
        for i in range(len(ROWS)):
            self.why[i, n] = why

    def run(self):
        fill = os.path.join(self.bench.build, "tests", "integration", "fill_table")
        lacks = dynamo.missing("local")
        if lacks is None and not os.path.exists(fill):
            lacks = "it needs a build with -Dtests=enabled"
        if lacks is not None:
            self.missing(self.sizes[0], f"left out: {lacks}")
            return
        with dynamo.server("local") as url:
            for n in self.sizes:
                guess = 10 * self.took.get(("fill", n // 10), 0)
                if time.monotonic() + guess > self.bench.until or guess > 20 * self.bench.options.row_seconds:
                    self.missing(n, f"left out: some {guess:.0f} s to fill")
                    self.took["fill", n] = guess
                    continue
                with counting.proxy(url) as counted:
                    self.measure_table(url, counted, fill, n)

    def measure_table(self, url, counted, fill, n):
        name = f"growth-{n}"
        place = self.bench.place(name)
        table = f"dynamodb://{name}?endpoint={counted.url}"
        self.progress(f"{self.table.title}: {n:,}")
        start = time.monotonic()
        try:
            self.idem(place, table, ("store", "create"), (0,))
            self.fill(url, fill, name, n)
        except (OSError, RuntimeError, self.bench.failed) as failed:
            self.missing(n, f"failed: {failed}")
            return
        self.took["fill", n] = time.monotonic() - start
        for i, row in enumerate(ROWS):
            self.measure(place, table, counted, i, n)
        dynamo.call(url, "DeleteTable", {"TableName": name})

    @staticmethod
    def fill(url, fill, name, n):
        with subprocess.Popen([fill, name, str(n)], stdout=subprocess.PIPE) as made:
            for line in made.stdout:
                answer = dynamo.call(url, "BatchWriteItem", json.loads(line))
                if answer.get("UnprocessedItems"):
                    raise RuntimeError("the server did not take all records")

    def idem(self, place, table, words, ok):
        env = dict(dynamo.environment(), XDG_STATE_HOME=place.folder, NO_COLOR="1", IDEM_STORE=table)
        return self.bench.command(words, ok, env)

    def measure(self, place, table, counted, i, n):
        row = ROWS[i]
        before = self.took.get((i, n // 10))
        left = self.bench.until - time.monotonic()
        if before is not None and row.grows != CONSTANT:
            guess = before * 10
            if guess > min(10 * self.bench.options.row_seconds, left):
                self.why[i, n] = f"left out: some {guess:.0f} s"
                self.took[i, n] = guess
                return
        counted.take()
        self.progress(f"  {row.name}")
        start = time.monotonic()
        try:
            got = self.idem(place, table, row.words, row.ok)
        except self.bench.failed as failed:
            self.why[i, n] = f"failed: {failed}"
            self.progress(f"  {self.why[i, n]}")
            return
        self.took[i, n] = time.monotonic() - start
        seen = counted.take()
        self.rounds[i, n] = [{
            **got, "requests": len(seen),
            "write": sum(one[1] for one in seen), "read": sum(one[2] for one in seen),
            "operations": Counter(one[0] for one in seen),
        }]  # fmt: skip

    # ---- The table ----

    def units(self, i, n):
        got = self.rounds[i, n][0]
        return got["read"] + got["write"]

    def judge(self, i):
        failed = [w for (j, _), w in self.why.items() if j == i and w.startswith("failed")]
        measured = [n for n in self.sizes if (i, n) in self.rounds]
        if failed or len(measured) < 2:
            return failed[0] if failed else None
        first, last = measured[0], measured[-1]
        most = self.units(i, first) * MOST + MORE
        if ROWS[i].grows != CONSTANT:
            most *= last / first
        found = self.units(i, last)
        return f"{found:,.0f} units at {last:,}, above {most:,.0f}" if found > most else None

    def cell(self, i, n):
        if (i, n) not in self.rounds:
            return "-"
        got = self.rounds[i, n][0]
        text = f"{got['read']:,.0f}"
        if got["write"]:
            text += f", {got['write']:,.0f} written"
        return f"{text} ({got['requests']:,})"

    def lines(self):
        yield ["records", *(f"{n:,}" for n in self.sizes), "CPU, ms", "MiB", "grows"]
        for i, row in enumerate(ROWS):
            measured = [n for n in self.sizes if (i, n) in self.rounds]
            left = sorted((n, w) for (j, n), w in self.why.items() if j == i)
            if not measured and not left:
                continue
            grown = self.judge(i)
            said = row.grows if grown is None else f"**{grown}**"
            if grown is None and left:
                said += f" ({left[0][0]:,}: {left[0][1]})"
            ends = [self.rounds[i, n][0] for n in (measured[:1] + measured[-1:])]
            yield [
                row.name, *(self.cell(i, n) for n in self.sizes),
                " to ".join(report.number(e["cpu_us"] / 1000) for e in ends),
                " to ".join(report.number(e["peak_kib"] / 1024) for e in ends), said,
            ]  # fmt: skip
