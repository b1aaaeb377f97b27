"""The table: medians of the rounds; ratios within each round, with their range."""

from statistics import median

from cells import CALLERS, IN_FLIGHT, PROCESSES, REPLAY_CONNECTIONS


def number(value):
    """With as many digits as mean something."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class Table:
    def __init__(self, results):
        self.results = results

    def values(self, part, who, cell, name):
        rounds = self.results.get((part, who, cell), [])
        return [r[name] for r in rounds] if rounds and name in rounds[0] else None

    def median(self, part, who, cell, name, unit=1):
        values = self.values(part, who, cell, name)
        return median(values) / unit if values else None

    def ratio(self, above, below, name="per_s", factor=1.0):
        """Median and range over the rounds of one value by another."""
        a, b = self.values(*above, name), self.values(*below, name)
        if not a or not b:
            return "-"
        ratios = [x / (factor * y) if y else 0.0 for x, y in zip(a, b)]
        return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"

    # ---- Parts ----

    def people(self, part):
        found = dict.fromkeys(who for p, who, _ in self.results if p == part)
        return sorted(found, key=["idem", "redis", "postgres"].index)

    def operations(self, part, cells):
        for who in self.people(part):
            for name, label, unit in (
                ("per_s", "operations/s", 1),
                ("p50_us", "p50, ms", 1000),
                ("p99_us", "p99, ms", 1000),
            ):
                values = [self.median(part, who, c, name, unit) for c in cells]
                yield [f"{who}, {label}", *map(number, values)]
            yield [f"{who}, CPU us/operation", *(self.cpu(part, who, c) for c in cells)]
        for who in self.people(part)[1:]:
            ratios = [self.ratio((part, "idem", c), (part, who, c)) for c in cells]
            yield [f"idem / {who}", *ratios]

    def cpu(self, part, who, cell):
        """Of the callers, and of the server."""
        own = self.median(part, who, cell, "cpu_us")
        server = self.median(part, who, cell, "server_cpu_us")
        return f"{number(own)} + {number(server)}" if server else number(own)

    def new_operations(self):
        yield ["callers, one thread each", *map(str, CALLERS)]
        yield from self.operations("new", CALLERS)
        values = [self.median("next", "idem", c, "per_s") for c in CALLERS]
        yield ["idem_next(), operations/s", *map(number, values)]
        ratios = [self.ratio(("next", "idem", c), ("new", "idem", c)) for c in CALLERS]
        yield ["idem_next() / begin and complete", *ratios]
        ratio = self.ratio(("new", "idem", 1), ("disk", "over", 1))
        yield ["idem / flushes of written blocks", ratio, *[""] * (len(CALLERS) - 1)]

    def queues(self):
        yield ["in flight, from one thread", *map(str, IN_FLIGHT)]
        yield from self.operations("queue", IN_FLIGHT)

    def disk(self):
        yield ["4 KiB written, then fdatasync", "growing file", "written blocks"]
        for name, label, unit in (
            ("per_s", "flushes/s", 1),
            ("p50_us", "p50, ms", 1000),
            ("p99_us", "p99, ms", 1000),
        ):
            values = [self.median("disk", h, 1, name, unit) for h in ("append", "over")]
            yield [label, *map(number, values)]

    def processes(self):
        cells = PROCESSES
        yield ["processes x callers", *(f"{p} x {c}" for p, c in cells)]

        def row(label, name, unit=1):
            values = [self.median("processes", "idem", c, name, unit) for c in cells]
            return [label, *map(number, values)]

        yield row("operations/s in all", "per_s")
        yield row("share of the slowest, %", "slowest", 0.01)
        yield row("p50 of the slowest, ms", "p50_us", 1000)
        yield row("p99 of the slowest, ms", "p99_us", 1000)
        alone = ("processes", "idem", (1, 1))
        ratios = [self.ratio(("processes", "idem", c), alone) for c in cells]
        yield ["in all / one alone", *ratios]

    def replays(self):
        if not self.people("replay"):
            return
        best = max(
            REPLAY_CONNECTIONS,
            key=lambda c: self.median("replay", "redis", c, "per_s") or 0,
        )
        rows = [("idem", 1, "1 thread"), ("idem", 2, "2 threads")]
        rows += [("redis", c, f"{c} connections") for c in REPLAY_CONNECTIONS]
        rows += [("postgres", 8, "8 connections")]
        yield ["replays", "/s", "p50, us", "p99, us", "CPU us", "/ redis at its best"]
        for who, cell, label in rows:
            if who not in self.people("replay"):
                continue
            yield [
                f"{who}, {label}",
                *(
                    number(self.median("replay", who, cell, name))
                    for name in ("per_s", "p50_us", "p99_us")
                ),
                self.cpu("replay", who, cell),
                self.ratio(("replay", who, cell), ("replay", "redis", best)),
            ]
        two = self.ratio(("replay", "idem", 2), ("replay", "idem", 1))
        yield ["idem, 2 threads / 1", two, "", "", "", ""]

    def growth(self):
        cells = {cell for part, _, cell in self.results if part == "growth"}
        sizes = sorted({n for n, _ in cells})
        yield ["records before", *(number(n) if n else "none" for n in sizes)]
        for callers in (1, 32):
            values = [
                self.median("growth", "idem", (n, callers), "per_s") for n in sizes
            ]
            yield [f"{callers} callers, new operations/s", *map(number, values)]
            none = ("growth", "idem", (0, callers))
            yield [
                f"{callers} callers, / none",
                *(self.ratio(("growth", "idem", (n, callers)), none) for n in sizes),
            ]
        values = [self.median("space", "idem", n, "bytes") for n in sizes]
        yield ["bytes of the file per record", *map(number, values)]
        values = [self.median("fill", "idem", n, "per_s") for n in sizes]
        yield ["records imported/s, unflushed", *map(number, values)]

    def purge(self):
        for (part, _, cell), rounds in self.results.items():
            if part == "purge":
                yield ["purge", f"of {cell:,}"]
                yield ["records/s", number(median(r["per_s"] for r in rounds))]
                for name, label in (
                    ("p50_us", "a slice, p50, ms"),
                    ("max_us", "the longest slice, ms"),
                ):
                    value = median(r[name] for r in rounds) / 1000
                    yield [label, number(value)]
                waits = median(r["writer"]["max_us"] for r in rounds) / 1000
                yield ["longest new operation beside it, ms", number(waits)]

    # ---- All of it ----

    def parts(self):
        yield "New operations: begin and complete, both durable; results of 1 KiB", self.new_operations()
        yield "The same from one thread", self.queues()
        yield "The disk", self.disk()
        yield "Several processes on one store", self.processes()
        yield "Duplicates", self.replays()
        yield "A store that grows", self.growth()
        yield "Purge", self.purge()

    def lines(self, parts=None):
        for title, rows in parts or self.parts():
            rows = list(rows)
            if rows:
                yield ""
                yield title
                yield ""
                yield from layout(rows)


def layout(rows):
    """Rows of cells as a table in Markdown, which is readable as it is."""
    columns = max(map(len, rows))
    rows = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(columns)]

    def line(row):
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        return "| " + " | ".join([first, *rest]) + " |"

    yield line(rows[0])
    yield "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|"
    for row in rows[1:]:
        yield line(row)
