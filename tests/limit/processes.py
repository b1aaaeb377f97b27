"""Many processes ask about the same requests: exactly the limit is admitted, and each
request hears the same whenever it is asked about; also while processes are killed, and
answers are lost on the way."""

import collections
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "chaos")]
CLIENT = str(Path(sys.argv[1]).resolve())
del sys.argv[1:2]

import dynamo  # noqa: E402
import proxy  # noqa: E402
from tap import LONG, PROGRAM, equal, main, note, skip, test  # noqa: E402

PROCESSES = 32
servers = contextlib.ExitStack()
started = {}


def server(kind):
    why = dynamo.missing(kind)
    if why is not None:
        skip(why)
    if kind not in started:
        started[kind] = servers.enter_context(dynamo.server(kind))
    return started[kind]


def table(kind, name):
    """A new table on a server, as (its URL, the server's)."""
    url = server(kind)
    dynamo.call(
        url,
        "CreateTable",
        {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        },
    )
    return f"dynamodb://{name}?endpoint={url}&index=off", url


class Crowd:
    """Processes that ask about the requests of some windows, and what they heard."""

    def __init__(
        self, place, limit, windows=1, how="idem", depth=64, processes=PROCESSES, room=None
    ):
        self.place = place
        self.limit = limit
        self.room = limit if room is None else room  # What is left at the start.
        self.ids = self.room + (self.room + 1) // 2
        self.windows = windows
        self.how = how
        self.depth = depth
        self.processes = processes
        self.at_ms = int(time.time() * 1000)
        self.kills = 0

    def start(self, process):
        return subprocess.Popen(
            [
                *(CLIENT, self.how, self.place, str(self.limit), str(self.ids)),
                *(str(self.windows), str(process), str(self.processes), str(self.at_ms)),
                *(str(self.depth), f"log-{process}"),
            ],
            env=dict(dynamo.environment(), AWS_ACCESS_KEY_ID=f"AKID{process}"),
            stderr=subprocess.PIPE,
        )

    def run(self, kills=0, seed=1):
        """Run them all to their end; kill some on the way, and start them again."""
        chance = random.Random(seed)
        running = {n: self.start(n) for n in range(self.processes)}
        while running:
            time.sleep(0.002 if kills else 0.02)
            if self.kills < kills:
                victim = chance.choice(sorted(running))
                running[victim].kill()
                self.kills += 1
            for n, process in list(running.items()):
                status = process.poll()
                if status is None:
                    continue
                complaint = process.stderr.read().decode()
                process.stderr.close()
                del running[n]
                if status == -signal.SIGKILL:
                    running[n] = self.start(n)
                else:
                    equal((status, complaint), (0, ""))
        self.read()

    def read(self):
        self.heard = collections.defaultdict(collections.Counter)
        for n in range(self.processes):
            with open(f"log-{n}", encoding="ascii") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        window, request, admitted, remaining = map(int, line.split())
                        self.heard[window, request][admitted == 1, remaining] += 1
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

    def check(self, exact_remaining=True):
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
            if exact_remaining:
                equal(sorted(numbers), list(range(self.room)))
            else:
                assert 0 <= min(numbers) and max(numbers) < self.limit

    def say(self, what):
        note(
            f"{what}: limit {self.limit}, {self.windows} windows, {self.processes} processes: "
            f"{self.asked} asked, {self.retries} of them retries, "
            f"{sum(self.admitted().values())} of {len(self.heard)} admitted, {self.kills} kills"
        )


# ---- SQLite ----


def file_store():
    return "sqlite:" + os.path.abspath("idem.db")


@test
def a_file_admits_exactly_the_limit():
    """On SQLite, with small limits and great ones, all requests asked about by 32
    processes, three of ten asks being retries."""
    sizes = [(8, 5900), (5000, 10), (50000, 1)] if LONG else [(8, 60), (3000, 1)]
    for limit, windows in sizes:
        crowd = Crowd(file_store(), limit, windows)
        crowd.run()
        crowd.check()
        crowd.say("sqlite")


@test
def a_million_but_for_the_last():
    """On SQLite, a limit of a million in whose window all but a few requests are counted
    already."""
    limit, room = 1000000, 3000 if LONG else 200
    crowd = Crowd(file_store(), limit, room=room)
    env = dict(os.environ, IDEM_STORE=crowd.place)
    subprocess.run([PROGRAM, *first_ask(crowd)], env=env, check=True)
    there = limit - room if LONG else 50000
    with contextlib.closing(sqlite3.connect("idem.db")) as db, db:
        db.execute("UPDATE idem_limit_window SET remaining = ?", (room,))
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO idem_limit_request"
            " SELECT seq, randomblob(16), 5 FROM idem_limit_window, n",
            (there,),
        )
    crowd.run()
    crowd.check()
    crowd.say(f"sqlite, {there} requests there before")


def first_ask(crowd):
    """The arguments of idem for a request that makes the window of @crowd."""
    return [
        *("limit", "-q", "-n", "test", "-u", "u0", "-r", "first", "-p", "day"),
        *("-m", str(crowd.limit), "--at", str(crowd.at_ms)),
    ]


@test
def killed_processes_change_nothing():
    """Processes that are killed at random and ask all of it again: the same counts."""
    limit, windows, kills = (5000, 4, 1000) if LONG else (500, 2, 60)
    crowd = Crowd(file_store(), limit, windows)
    crowd.run(kills)
    crowd.check()
    assert crowd.kills == kills, crowd.kills
    crowd.say("sqlite, killed")


@test
def plain_counters_do_not():
    """The control: a counter counts the retries and refuses too early, and tells a retry
    something else; one that looks before it counts admits too many."""
    for how in ("counter", "careless"):
        with contextlib.closing(sqlite3.connect("calls.db")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("DROP TABLE IF EXISTS calls")
            db.execute("CREATE TABLE calls (w INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        crowd = Crowd("calls.db", 50, 20, how, processes=8)
        crowd.run()
        crowd.say(how)
        told = sum(
            count
            for answers in crowd.heard.values()
            for (admitted, _), count in answers.items()
            if admitted
        )
        if how == "counter":
            assert crowd.torn(), "a retry heard what it heard before"
            assert min(crowd.admitted().values()) < 50, crowd.admitted()
        else:
            assert told > 50 * 20, told
            note(f"careless: told {told} times that there was room, of {50 * 20}")


# ---- DynamoDB ----


def tables():
    return ("local", "dynoxide") if LONG else ("dynoxide",)


@test
def a_table_admits_exactly_the_limit():
    """On DynamoDB, with limits in one item and limits in shards."""
    sizes = [(8, 100), (5000, 1)] if LONG else [(8, 10), (300, 1)]
    for kind in tables():
        for limit, windows in sizes:
            store, _ = table(kind, f"limits-{limit}")
            crowd = Crowd(store, limit, windows, depth=8)
            crowd.run()
            crowd.check(exact_remaining=limit <= 256)
            crowd.say(kind)


@test
def a_great_limit_ends_exactly():
    """On DynamoDB a limit of 50,000, and one of a million, of which all but some was taken
    before: 32 processes get just the rest, to the last shard."""
    room = 1600 if LONG else 100
    for kind in tables():
        for limit in (50000, 1000000):
            store, url = table(kind, f"great-{limit}")
            crowd = Crowd(store, limit, depth=8, room=room)
            preload(crowd, url, f"great-{limit}")
            crowd.run()
            crowd.check(exact_remaining=False)
            crowd.say(f"{kind}, {room} left")


def preload(crowd, url, name):
    """Leave room in the shards of the window, unevenly."""
    env = dict(dynamo.environment(), IDEM_STORE=crowd.place)
    subprocess.run([PROGRAM, *first_ask(crowd)], env=env, check=True)
    items = dynamo.call(url, "Scan", {"TableName": name})["Items"]
    shard = next(i for i in items if i["id"]["S"].count("#") == 2)
    window = shard["id"]["S"].rsplit("#", 1)[0]
    left = [0] * 16
    chance = random.Random(3)
    for _ in range(crowd.room):
        left[min(chance.randrange(16), chance.randrange(16))] += 1
    for n, count in enumerate(left):
        item = {"id": {"S": f"{window}#{n}"}, "lim": {"N": str(count)}, "ttl": shard["ttl"]}
        dynamo.call(url, "PutItem", {"TableName": name, "Item": item})


@test
def killed_processes_change_nothing_in_a_table():
    """On DynamoDB, processes that are killed at random and ask all of it again."""
    sizes = [(8, 40, 100), (5000, 1, 200)] if LONG else [(8, 10, 15), (300, 1, 15)]
    for kind in tables():
        for limit, windows, kills in sizes:
            store, _ = table(kind, f"killed-{limit}")
            crowd = Crowd(store, limit, windows, depth=4, processes=8)
            crowd.run(kills, seed=limit)
            crowd.check(exact_remaining=limit <= 256)
            equal(crowd.kills, kills)
            crowd.say(f"{kind}, killed")


@test
def lost_answers_change_nothing():
    """On DynamoDB behind a proxy that loses answers, applies and then says 500, throttles,
    repeats and delays requests: the same counts."""
    sizes = [(8, 40), (1000, 1)] if LONG else [(8, 8), (260, 1)]
    for limit, windows in sizes:
        store, url = table("dynoxide", f"lost-{limit}")
        with proxy.chaos(url, seed=limit, rate=0.2) as between:
            crowd = Crowd(store.replace(url, between.url), limit, windows, depth=4, processes=8)
            crowd.run()
        crowd.check(exact_remaining=limit <= 256)
        crowd.say("lost answers")
        note(f"{between.requests} requests, {between.hits.total()} faults: {dict(between.hits)}")
        assert between.hits["500 after"] > 0 and between.hits["no answer, applied"] > 0


if __name__ == "__main__":
    with servers:
        main()
