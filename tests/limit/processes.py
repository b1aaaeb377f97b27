"""Many processes ask about the same requests: exactly the limit is admitted, and each
request hears the same whenever it is asked about; also while processes are killed, and
answers are lost on the way."""

import collections
import concurrent.futures
import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "chaos"), str(HERE)]

import dynamo  # noqa: E402
import proxy  # noqa: E402
from crowd import Crowd, table  # noqa: E402
from tap import LONG, PROGRAM, main, note, test  # noqa: E402

del sys.argv[1:2]


# ---- SQLite ----


def file_store(name="idem.db"):
    return "sqlite:" + os.path.abspath(name)


@test
def a_file_admits_exactly_the_limit():
    """On SQLite, with small limits and great ones, all requests asked about by 32
    processes, three of ten asks being retries."""
    sizes = [(8, 5900), (5000, 10), (50000, 1)] if LONG else [(8, 60), (3000, 1)]
    for limit, windows in sizes:
        Crowd(file_store(f"{limit}.db"), limit, windows).holds("sqlite")


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
        db.execute("UPDATE idem_limit_window SET used = ?", (limit - room,))
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO idem_limit_request"
            " SELECT seq, randomblob(16), 5 FROM idem_limit_window, n",
            (there,),
        )
    crowd.holds(f"sqlite, {there} requests there before")


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
    Crowd(file_store(), limit, windows, depth=1).holds("sqlite, killed", kills)


# ---- The controls ----

ROOM, WINDOWS, IDS, THREADS = 50, 20, 75, 8
ADD = ("INSERT INTO calls VALUES (?, 1) ON CONFLICT (w) DO UPDATE SET n = n + 1 RETURNING n")


def plain(careless):
    """What a plain counter in a file tells those who ask: {request: [admitted]}. One that is
    careless looks, and then counts."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("calls.db")
    with contextlib.closing(sqlite3.connect("calls.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE calls (w INTEGER PRIMARY KEY, n INTEGER NOT NULL)")

    def ask(db, window):
        if not careless:
            return db.execute(ADD, (window,)).fetchall()[0][0] <= ROOM
        row = db.execute("SELECT n FROM calls WHERE w = ?", (window,)).fetchone()
        time.sleep(0.0001)  # Others look meanwhile.
        admitted = row is None or row[0] < ROOM
        if admitted:
            db.execute(ADD, (window,)).fetchall()
        return admitted

    def work(number):
        chance, told = random.Random(number), []
        with contextlib.closing(
            sqlite3.connect("calls.db", timeout=60, isolation_level=None)
        ) as db:
            db.execute("PRAGMA synchronous = OFF")
            for window in range(WINDOWS):
                for one in range(number, IDS, THREADS):
                    again = [chance.randrange(IDS)] if chance.random() < 0.4 else []
                    told += [((window, r), ask(db, window)) for r in (one, *again)]
        return told

    heard = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for told in pool.map(work, range(THREADS)):
            for request, admitted in told:
                heard[request].append(admitted)
    return heard


@test
def plain_counters_do_not():
    """The control: a counter counts the retries and refuses too early, and tells a retry
    something else; one that looks before it counts admits too many."""
    heard = plain(careless=False)
    admitted = collections.Counter(window for (window, _), told in heard.items() if any(told))
    assert any(len(set(told)) > 1 for told in heard.values()), "each retry heard the same"
    assert min(admitted.values()) < ROOM, admitted

    # Two of them must look before either counts.
    for _ in range(20):
        told = sum(sum(told) for told in plain(careless=True).values())
        if told > ROOM * WINDOWS:
            break
    assert told > ROOM * WINDOWS, told
    note(f"careless: told {told} times that there was room, of {ROOM * WINDOWS}")


# ---- DynamoDB ----


def tables():
    return ("local", "dynoxide") if LONG else ("dynoxide",)


@test
def a_table_admits_exactly_the_limit():
    """On DynamoDB, with limits whose entries are in one item and limits that move them."""
    sizes = [(8, 100), (5000, 1)] if LONG else [(8, 10), (300, 1)]
    for kind in tables():
        for limit, windows in sizes:
            store, _ = table(kind, f"limits-{limit}")
            Crowd(store, limit, windows, depth=8).holds(kind)


@test
def a_great_limit_ends_exactly():
    """On DynamoDB a limit of 50,000, and one of a million, of which all but some was taken
    before: 32 processes get just the rest."""
    room = 1600 if LONG else 100
    for kind in tables():
        for limit in (50000, 1000000):
            store, url = table(kind, f"great-{limit}")
            crowd = Crowd(store, limit, depth=8, room=room)
            preload(crowd, url, f"great-{limit}")
            crowd.holds(f"{kind}, {room} left")


def preload(crowd, url, name):
    """Leave room in the window."""
    env = dict(dynamo.environment(), IDEM_STORE=crowd.place)
    subprocess.run([PROGRAM, *first_ask(crowd)], env=env, check=True)
    (item,) = dynamo.call(url, "Scan", {"TableName": name})["Items"]
    item["lim"] = {"N": str(crowd.limit - crowd.room)}
    dynamo.call(url, "PutItem", {"TableName": name, "Item": item})


@test
def killed_processes_change_nothing_in_a_table():
    """On DynamoDB, processes that are killed at random and ask all of it again."""
    sizes = [(8, 40, 100), (5000, 1, 200)] if LONG else [(8, 10, 15), (300, 1, 15)]
    for kind in tables():
        for limit, windows, kills in sizes:
            store, _ = table(kind, f"killed-{limit}")
            crowd = Crowd(store, limit, windows, depth=4, processes=8)
            crowd.holds(f"{kind}, killed", kills, seed=limit)


@test
def lost_answers_change_nothing():
    """On DynamoDB behind a proxy that loses answers, applies and then says 500, throttles,
    repeats and delays requests: the same counts."""
    sizes = [(8, 40), (1000, 1)] if LONG else [(8, 16), (260, 1)]
    for limit, windows in sizes:
        store, url = table("dynoxide", f"lost-{limit}")
        with proxy.chaos(url, seed=limit, rate=0.2) as between:
            crowd = Crowd(store.replace(url, between.url), limit, windows, depth=4, processes=8)
            crowd.holds("lost answers")
        note(f"{between.requests} requests, {between.hits.total()} faults: {dict(between.hits)}")
        assert between.hits["500 after"] > 0 and between.hits["no answer, applied"] > 0


if __name__ == "__main__":
    main()
