"""Histories of real stores: processes, threads, and processes that are killed.

Usage: stores.py CHECK DRIVE ARCHIVE ARCHIVE COMPILER [ARGUMENT ...]

IDEM_HISTORY_STORE names one more store to be driven by processes, by its URL.
"""

import contextlib
import os
import queue
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import histories  # noqa: E402
import postgres  # noqa: E402
from patience import in_time
import tap  # noqa: E402

ARGUMENTS = tap.arguments()
CHECK, DRIVE, *ARCHIVES = (Path(arg).resolve() for arg in ARGUMENTS[:4])
COMPILER = ARGUMENTS[4:] or ["cc"]

HISTORIES = 60 if tap.LONG else 6
CALLS = 200 if tap.LONG else 100  # For each thread, which may sleep between them.
# The threads sleep most of the time, so that leases end.
AT_ONCE = 8
# On a server each client costs a process too: many short histories, and few of CALLS.
SHORT = 10_000 if tap.LONG else 12
SHORT_CALLS = 12


def drive(program, name, store, *options):
    """Drive @store; return the files of the history."""
    os.mkdir(name)
    command = [program, "--store", store, "--into", name, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(Path(name).glob("history-*"))


def met(paths):
    """Count the answers that callers got."""
    found = Counter()
    for path in paths:
        text = path.read_text()
        found.update(re.findall(r"^ret \S+ \S+ (\S+)", text, re.M))
        found["takeover"] += text.count("takeover=1")
    return found


def explain(number, stores, options):
    """Drive a store once; return (number of operations, the answers)."""
    name = f"history-{number}"
    store = stores.get()
    url = store.format(name=os.path.abspath(name))
    try:
        paths = drive(DRIVE, name, url, "--seed", number, *options)
    finally:
        stores.put(store)  # Others wait for it.
    count, ops, slowest = histories.explained(CHECK, "--merge", *paths)
    tap.equal(count, 1)
    if not tap.SANITIZED:
        in_time(slowest, 60 if tap.LONG else 1)
    return ops, met(paths)


def explain_all(urls, options, number=HISTORIES, calls=CALLS):
    """Drive a store @number times, one of @urls at a time; explain each history."""
    total, seen = 0, Counter()
    stores = queue.SimpleQueue()
    for url in urls:
        stores.put(url)
    with ThreadPoolExecutor(len(urls)) as pool:
        options = ["--calls", calls, *options]
        jobs = [pool.submit(explain, n, stores, options) for n in range(number)]
        for job in jobs:
            ops, found = job.result()
            total += ops
            seen += found
    told = ", ".join(f"{word} {n}" for word, n in seen.most_common())
    print(f"{number} histories, {total} operations: {told}")
    for word in ("STARTED", "takeover", "REPLAY", "BUSY", "UNKNOWN", "OK", "LOST"):
        assert seen[word] > 0, f"nobody was told {word}"


@tap.test
def sqlite_with_processes():
    """Four processes of two threads on one file get answers that some order explains."""
    options = ["--processes", 4, "--threads", 2, "--keys", 2]
    explain_all(["sqlite:{name}.db"] * AT_ONCE, options)


@tap.test
def sqlite_with_processes_that_are_killed():
    """Processes on one file, some of them killed, get answers that some order explains."""
    options = ["--processes", 4, "--threads", 2, "--keys", 2, "--kills", 8]
    explain_all(["sqlite:{name}.db"] * AT_ONCE, options)


@tap.test
def memory_with_threads():
    """Eight threads on the store in memory get answers that some order explains."""
    explain_all(["memory:"] * AT_ONCE, ["--threads", 8, "--keys", 2])


@contextlib.contextmanager
def database():
    """Start a PostgreSQL server; give a function that returns the URLs of n stores in it."""
    postgres.need()
    with postgres.server(max_connections=200) as server:

        def stores(number):
            urls = [f"{server.url}&schema=s{n}" for n in range(number)]
            for url in urls:
                made = tap.Idem(url)("store", "create")
                tap.equal((made.status, made.stderr), (0, b""))
            return urls

        yield stores


@tap.test
def postgres_with_processes():
    """Some order explains many short histories of processes on one PostgreSQL."""
    with database() as stores:
        options = ["--processes", 2, "--threads", 2, "--keys", 2]
        explain_all(stores(min(SHORT, 40)), options, SHORT, SHORT_CALLS)


@tap.test
def postgres_with_processes_that_are_killed():
    """Some order explains long histories on one PostgreSQL, with processes that are killed."""
    with database() as stores:
        options = ["--processes", 4, "--threads", 2, "--keys", 2, "--kills", 8]
        explain_all(stores(3), options, HISTORIES // 2)


@tap.test
def another_store():
    """Some order explains the answers of the store that IDEM_HISTORY_STORE names."""
    store = os.environ.get("IDEM_HISTORY_STORE")
    if not store:
        tap.skip("IDEM_HISTORY_STORE is not set")
    explain_all([store], ["--processes", 8, "--keys", 2, "--copies"], number=1)


@tap.test
def a_wrong_store_is_found():
    """The checker finds real processes out whose ends compare the status only."""
    if tap.SANITIZED:
        tap.skip("the archive needs the sanitizer that it was built with")
    _, program = histories.mutant_program(2, DRIVE, ARCHIVES, COMPILER)
    options = ["--processes", 4, "--threads", 2, "--keys", 1, "--calls", 100]
    for tried in range(5):  # It takes two that meet.
        url = "sqlite:" + os.path.abspath(f"wrong-{tried}.db")
        paths = drive(program.resolve(), f"wrong-{tried}", url, "--seed", tried, *options)
        status, output = histories.check(CHECK, "--quiet", "--merge", *paths)
        print(histories.summary(output))
        if status == 1:
            return
    raise AssertionError("the mistake was never seen")


if __name__ == "__main__":
    tap.main()
