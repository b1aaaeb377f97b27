"""The PostgreSQL store beside what one writes by hand on the same server: cells like
those of cells.py, and their rows of the table.

"plain" is an INSERT that does nothing on conflict and an UPDATE, each a transaction;
"held" is both in one transaction, with the row FOR UPDATE. Both have a connection for
each caller; the store has one for all of them.
"""

import os
import subprocess
import time
from statistics import median

import peers
from cells import CALLERS
from report import number

REPLAYERS = (1, 8, 32)
GROWERS = (1, 32)
WRITERS = 8  # Beside a purge.
MANY, SMALL = 10_000_000, 64  # Records, and the bytes of a result of theirs.
KEPT_MS = 10 * 24 * 3600 * 1000  # What these record is not purged.


class Database:
    """Schemas on the server that was started for the peer."""

    def __init__(self, bench, build):
        self.bench = bench
        self.build = build
        self.pid, self.socket = bench.peers["postgres"]
        self.made = 0

    def url(self, schema):
        return f"postgres:///postgres?host={self.socket}&user=bench&schema={schema}"

    def sql(self, *statements):
        psql = peers.find("psql", "/usr/lib/postgresql/*/bin/psql")
        command = [psql, "-XqAth", self.socket, "-U", "bench", "postgres"]
        for statement in statements:
            command += ["-c", statement]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return done.stdout

    def create(self):
        """The name of a new schema."""
        self.made += 1
        schema = f"bench{self.made}"
        env = dict(os.environ, LD_LIBRARY_PATH=self.build, IDEM_STORE=self.url(schema))
        command = [f"{self.build}/idem", "store", "create"]
        subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
        return schema

    def size(self, schema):
        """The bytes of the records, with their indexes."""
        return int(self.sql(f"SELECT pg_total_relation_size('{schema}.idem_record')"))

    def drop(self, schema):
        self.sql(f"DROP SCHEMA {schema} CASCADE")

    def fill(self, records, *args):
        schema = self.create()
        self.bench.fill("idem", self.url(schema), records, *args)
        self.sql(f"VACUUM ANALYZE {schema}.idem_record", "CHECKPOINT")
        return schema

    # ---- Cells ----

    def load(self, callers):
        return ("--callers", callers, "--pid", self.pid, *self.bench.times())

    def new(self, who, callers, schema=None, part="database", cell=None):
        """New operations; on an empty table unless @schema is given."""
        if who == "store":
            on = schema or self.create()
            result = self.bench.run("idem", "new", self.url(on), *self.load(callers))
            if schema is None:
                self.drop(on)
        else:
            what = "held" if who == "held" else "new"
            kept = ("--from", 1) if schema else ()
            args = (what, self.socket, *kept, *self.load(callers))
            result = self.bench.run("postgres", *args)
        self.bench.add(part, who, cell or callers, result)

    def new_operations(self):
        cells = [
            lambda w=who, c=callers: self.new(w, c)
            for callers in CALLERS
            for who in ("store", "plain", "held")
        ]
        self.bench.rounds("new operations in PostgreSQL", cells)

    def replay(self, who, schema, records, callers):
        args = ("--records", records, *self.load(callers))
        program, where = ("postgres", self.socket)
        if who == "store":
            program, where = ("idem", self.url(schema))
        result = self.bench.run(program, "replay", where, *args)
        self.bench.add("database replay", who, callers, result)

    def many_records(self, sizes):
        """Replays among the most records, and new operations beside so many."""
        most = sizes[-1]
        schemas = {n: self.fill(n) for n in sizes}
        self.bench.fill("postgres", self.socket, most)
        cells = [
            lambda w=who, c=c: self.replay(w, schemas[most], most, c)
            for c in REPLAYERS
            for who in ("store", "plain")
        ]
        self.bench.rounds("replays from PostgreSQL", cells)

        part = "database growth"
        cells = [
            lambda c=c, n=n: self.new("store", c, schemas.get(n), part, (n, c))
            for c in GROWERS
            for n in (0, *sizes)
        ]
        # By hand the table is emptied for the size 0, so that goes last.
        cells += [lambda c=c: self.new("plain", c, "kept", part, (most, c)) for c in GROWERS]
        self.bench.rounds("a table that grows", cells)
        cells = [lambda c=c: self.new("plain", c, None, part, (0, c)) for c in GROWERS]
        self.bench.rounds("an empty table", cells)
        for schema in schemas.values():
            self.drop(schema)

    def purge(self, records):
        """Of a tenth of the records, with writers in another process; and these without
        it, on the same table."""
        schema = self.fill(records, "--short", 1)
        url = self.url(schema)
        self.new("store", WRITERS, schema, "database purge", "alone")
        writer = self.bench.start(
            *("idem", "new", url, "--callers", WRITERS, "--pid", self.pid),
            *("--seconds", 3600, "--warm", 1, "--retention", KEPT_MS),
        )
        time.sleep(1.2)  # It counts from here on.
        # Its clock is two days ahead, after the retention of these alone.
        result = self.bench.run("idem", "purge", url + "&clock=host", "--each", 100)
        writer.terminate()
        result["writer"] = self.bench.result(writer)
        result["writer_per_s"] = result["writer"]["per_s"]
        self.bench.add("database purge", "store", "purge", result)
        self.bench.add("database purge", "store", "beside", result["writer"])
        self.drop(schema)

    def ten_million(self):
        """Small ones; it takes a while."""
        number, part = MANY, "database ten million"
        schema = self.fill(number, "--bytes", SMALL)
        self.bench.add("database space", "store", number, {"bytes": self.size(schema) / number})
        cells = [
            lambda c=c, s=s, n=n: self.new("store", c, s, part, (n, c))
            for c in GROWERS
            for n, s in ((0, None), (number, schema))
        ]
        self.bench.rounds("ten million in PostgreSQL", cells)
        self.drop(schema)

        self.bench.fill("postgres", self.socket, number, "--bytes", SMALL)
        cells = [lambda c=c: self.new("plain", c, "kept", part, (number, c)) for c in GROWERS]
        self.bench.rounds("ten million by hand", cells)
        # The first of these empties the table; the ratios are those of the same round.
        cells = [lambda c=c: self.new("plain", c, None, part, (0, c)) for c in GROWERS]
        self.bench.rounds("an empty table", cells)

    def measure(self, options):
        self.new_operations()
        self.many_records(options.sizes)
        self.bench.rounds("purge in PostgreSQL", [lambda: self.purge(options.purged)])
        if options.ten_million:
            self.ten_million()


# ---- The table ----

NAMES = {"store": "idem", "plain": "INSERT, UPDATE", "held": "FOR UPDATE"}


class Report:
    """Its rows, out of those of a report.Table."""

    def __init__(self, table):
        self.table = table

    def cpu(self, part, who, cell):
        own = self.table.median(part, who, cell, "cpu_us")
        server = self.table.median(part, who, cell, "server_cpu_us")
        return f"{number(own)} + {number(server)}" if server is not None else number(own)

    def operations(self, part, people, cells):
        for who in people:
            for name, label, unit in (
                ("per_s", "/s", 1),
                ("p50_us", "p50, ms", 1000),
                ("p99_us", "p99, ms", 1000),
            ):
                values = [self.table.median(part, who, c, name, unit) for c in cells]
                yield [f"{NAMES[who]}, {label}", *map(number, values)]
            yield [f"{NAMES[who]}, CPU us", *(self.cpu(part, who, c) for c in cells)]
        for who in people[1:]:
            ratios = [self.table.ratio((part, "store", c), (part, who, c)) for c in cells]
            yield [f"idem / {NAMES[who]}", *ratios]

    def new_operations(self):
        yield ["callers of one process", *map(str, CALLERS)]
        yield from self.operations("database", ("store", "plain", "held"), CALLERS)

    def replays(self):
        yield ["callers of one process", *map(str, REPLAYERS)]
        yield from self.operations("database replay", ("store", "plain"), REPLAYERS)

    def growth(self, part="database growth"):
        cells = {c for p, who, c in self.table.results if (p, who) == (part, "store")}
        sizes = sorted({n for n, _ in cells})
        if not sizes:
            return
        yield ["records before", *(number(n) if n else "none" for n in sizes)]
        for callers in GROWERS:
            values = [self.table.median(part, "store", (n, callers), "per_s") for n in sizes]
            yield [f"idem, {callers} callers, /s", *map(number, values)]
            for who in ("store", "plain"):
                none = (part, who, (0, callers))
                ratios = [self.table.ratio((part, who, (n, callers)), none) for n in sizes]
                yield [f"{NAMES[who]}, {callers} callers, / none", *ratios]

    def ten_million(self):
        yield from self.growth("database ten million")
        for size in self.table.results.get(("database space", "store", MANY), []):
            yield ["idem, bytes of a record", "", number(size["bytes"])]

    def purge(self):
        part = "database purge"
        rounds = self.table.results[(part, "store", "purge")]
        yield [f"purge beside {WRITERS} writers", ""]
        yield ["records purged in a round", number(median(r["purged"] for r in rounds))]
        yield ["records/s", number(median(r["per_s"] for r in rounds))]
        beside, alone = (part, "store", "beside"), (part, "store", "alone")
        yield ["writers beside it / without it", self.table.ratio(beside, alone)]
        longest = median(r["writer"]["max_us"] for r in rounds) / 1000
        yield ["longest new operation beside it, ms", number(longest)]

    def parts(self):
        yield (
            "New operations in PostgreSQL: begin and complete; results of 1 KiB",
            self.new_operations(),
        )
        yield "Duplicates from PostgreSQL", self.replays()
        yield "A table that grows", self.growth()
        yield "Purge in PostgreSQL", self.purge()
        yield "Ten million small records", self.ten_million()
