"""A transfer and the end of its attempt in one commit of PostgreSQL, by several drivers.

Their programs are killed before and after each thing that they, and the idem that they
start, send to the server; and stopped there while another caller takes their key over.
"""

import collections
import contextlib
import functools
import os
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor, wait

from files import read_bytes, write
import postgres
from drivers import CONTROLS, TRANSFERS, environment
from patience import PATIENCE, until
from ports import free_port
from tap import LONG, Idem, each, equal, kill_session, main, note, run, start, test

AMOUNT = 3
KILLS = {"C": 10_000} if LONG else {}  # At least; and one at each of the places.
KILLS_OF_OTHERS = 1000 if LONG else 0
WORKERS = os.cpu_count() if LONG else 1  # Each with accounts of its own.
# Of a test that is in a hurry, where a program takes long to start.
STRIDE = {} if LONG else {"Python": 3, "Node.js": 3, "Java": 12}
LEASE_IS_OVER_S = 4 + 2 + 0.5  # As a taker sees it; see docs/postgresql.md.
EMPTY = """
DROP SCHEMA IF EXISTS idem CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public;
"""
TABLES = """
CREATE TABLE account (name text PRIMARY KEY, balance int8 NOT NULL CHECK (balance >= 0));
CREATE TABLE transfer (id int8 GENERATED ALWAYS AS IDENTITY, key text,
    payer text, payee text, amount int8);
CREATE TABLE done (key text PRIMARY KEY, receipt text);
INSERT INTO account VALUES ('ann', 1000000), ('bob', 0);
"""
CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
PORT = free_port()  # Java's driver has no sockets but those of TCP.



class Steps:
    """Counts what a program and its idem send, and has one killed, or stopped, at a step."""

    def __init__(self, at, name="steps"):
        self.at = at
        self.path = os.path.abspath(name)
        write(self.path, struct.pack("q", at))

    @property
    def left(self):
        return struct.unpack("q", read_bytes(self.path))[0]

    @property
    def done(self):
        return self.at - self.left

    @property
    def hit(self):
        """Whether somebody came to the step."""
        return self.left <= 0

    def environment(self, sent):
        preload = os.environ["IDEM_KILL_SEND"]
        return {"KILL_STEPS": self.path, "KILL_SIGNAL": int(sent), "LD_PRELOAD": preload}


class Bank:
    """A database with a store and a ledger."""

    def __init__(self, accounts=0):
        self.server = postgres.shared(listen_addresses="127.0.0.1", port=PORT)
        self.server.psql(EMPTY + TABLES)
        more = "INSERT INTO account SELECT who || n, {} FROM generate_series(1, {}) AS n, {} "
        for who, balance in ("ann", 1000000), ("bob", 0):
            self.server.psql(more.format(balance, accounts, f"(VALUES ('{who}')) AS v (who)"))
        self.idem = Idem(self.server.url)
        equal(self.idem("store", "create").status, 0)

    def command(self, program, key, number="", amount=AMOUNT):
        parts = (key, f"ann{number}", f"bob{number}", str(amount))
        return [*program.command(self.server), *parts]

    def transfer(self, program, key, number="", amount=AMOUNT, steps=None):
        """Run @program; it, or its idem, is killed at a step."""
        env = environment(self.server)
        if steps is not None:
            env.update(steps.environment(signal.SIGKILL))
        return run(self.command(program, key, number, amount), env)

    def let_through(self, program, key, number=""):
        """Call until @key has its receipt, also where a lease has to be over first."""
        until_s = time.monotonic() + PATIENCE
        got = self.transfer(program, key, number)
        while got.status == 75 and time.monotonic() < until_s:
            time.sleep(0.5)
            got = self.transfer(program, key, number)
        equal((key, got.status), (key, 0))
        return got.stdout

    def effects(self):
        return collections.Counter(self.server.psql("SELECT key FROM transfer"))

    def completed(self):
        query = "SELECT convert_from(key, 'UTF8') FROM idem.idem_record WHERE status = 2"
        return collections.Counter(self.server.psql(query))

    def owner(self, key, how=""):
        """The nonce of its attempt, in a list that may be empty."""
        query = f"SELECT nonce FROM idem.idem_record WHERE key = '{key}'::bytea {how}"
        return self.server.psql(query)

    def is_locked(self, key):
        """Whether a transaction has the record of @key."""
        return self.owner(key) != self.owner(key, "FOR UPDATE SKIP LOCKED")

    def waits(self):
        """Whether anybody waits for a lock."""
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return self.server.psql(query) != []

    def there(self, keys):
        """How many transfers and records each of @keys has, at one time."""
        names = ", ".join(f"'{key}'" for key in keys)
        records = "SELECT convert_from(key, 'UTF8') AS key FROM idem.idem_record WHERE status = 2"
        lines = collections.Counter(
            self.server.psql(
                f"SELECT 'transfer', key FROM transfer WHERE key IN ({names}) UNION ALL"
                f" SELECT 'record', key FROM ({records}) AS r WHERE key IN ({names})"
            )
        )
        return {key: (lines[f"transfer|{key}"], lines[f"record|{key}"]) for key in keys}

    def assert_once(self, keys):
        """Each of @keys has one transfer and one record, and nothing else has any."""
        once = collections.Counter(keys)
        equal(self.effects(), once)
        equal(self.completed(), once)
        equal(self.server.psql("SELECT count(*) FROM idem.idem_record"), [str(len(keys))])
        assert "records can be trusted" in self.idem("store", "check").stdout.decode()
        moved = "SELECT coalesce(sum(amount), 0) FROM transfer"
        bobs = "SELECT sum(balance) FROM account WHERE name LIKE 'bob%'"
        equal(self.server.psql(bobs), self.server.psql(moved))


@functools.lru_cache
def steps_of(program):
    """How many steps a first transfer has."""
    steps = Steps(1_000_000)
    got = Bank().transfer(program, "first", steps=steps)
    equal((got.status, got.stderr), (0, b""))
    assert 16 < steps.done < 100, steps.done
    return steps.done


# ---- Kills ----


def by_workers(function, keys):
    """What function(key, number of its accounts) gives for each of @keys."""
    keys = list(keys)
    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(zip(keys, pool.map(function, keys, map(accounts_of, keys))))


def accounts_of(key):
    """The accounts of its worker."""
    return 1 + int(key[1:]) % WORKERS


def killed_everywhere(bank, program, wanted, steps):
    """Transfer with one key after the other, killed at one of @steps each time, until
    there were as many kills as @wanted. Return what each key had after that."""
    there, places, kills = {}, {}, 0

    def killed(key, number):
        step = places[key]
        counted = Steps(step, f"steps-{key}")
        got = bank.transfer(program, key, number, steps=counted)
        hit = counted.hit
        os.unlink(counted.path)
        if not hit:
            equal((got.status, got.stderr), (0, b""))
        else:  # If it was its idem, the program asks for another try.
            assert got.status in (-signal.SIGKILL, 75), (step, got)
        return hit

    while not there or kills < wanted:
        places = {f"k{n}": step for n, step in enumerate(steps, len(there))}
        kills += sum(by_workers(killed, places).values())
        there.update(bank.there(places))
    note(f"killed {kills} times, at {len(steps)} places")
    return there


@each(TRANSFERS)
def kills_double_nothing(program):
    """Killed before and after anything that is sent, the example leaves transfer and record,
    or neither, and transfers nothing twice."""
    last = steps_of(program)
    bank = Bank(accounts=WORKERS)
    wanted = KILLS.get(program.language, KILLS_OF_OTHERS)
    there = killed_everywhere(
        bank, program, wanted, range(last, 0, -STRIDE.get(program.language, 1))
    )
    equal({key: n for key, n in there.items() if n not in ((0, 0), (1, 1))}, {})

    let_through = functools.partial(bank.let_through, program)
    receipts = by_workers(let_through, there)
    equal(len(set(receipts.values())), len(there))
    again = list(there)[::4][:500]
    equal(by_workers(let_through, again), {key: receipts[key] for key in again})
    equal(bank.transfer(program, "k0", accounts_of("k0"), amount=4).status, 65)
    bank.assert_once(list(there))
    both = list(there.values()).count((1, 1))
    assert 0 < both < len(there), there
    note(f"{len(there) - both} left neither, {both} left both")


@each(CONTROLS)
def control_doubles(program):
    """The control: a table of keys in a commit of its own drifts from the ledger."""
    last = steps_of(program)
    bank = Bank(accounts=WORKERS)
    wanted = KILLS.get(program.language, KILLS_OF_OTHERS) // 10
    steps = range(last, 0, -1) if LONG else range(last, last - 8, -2)
    keys = killed_everywhere(bank, program, wanted, steps)
    by_workers(functools.partial(bank.let_through, program), keys)
    twice = [key for key, n in bank.effects().items() if n > 1]
    assert twice, "nothing was transferred twice"
    note(f"{len(twice)} keys were transferred twice")


# ---- Two owners ----


class Stopped:
    """A program, stopped at a step; what it starts is stopped where it waits for it."""

    def __init__(self, bank, program, key, number, step):
        steps = Steps(step, f"steps-{key}")
        self.process = start(
            bank.command(program, key, number),
            {**environment(bank.server), **steps.environment(signal.SIGSTOP)},
        )
        try:
            until(lambda: steps.hit or self.process.poll() is not None)
            assert steps.hit, self.process.communicate()
        except BaseException:
            kill_session(self.process)
            raise

    def go_on(self):
        """Let it run to its end: the status, and what it said."""

        def ended():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGCONT)
            return self.process.poll() is not None

        try:
            until(ended, "the end of the first owner")
        finally:
            kill_session(self.process)
        stdout, stderr = self.process.communicate()
        return self.process.returncode, stdout, stderr


def until_done(future, holds):
    """Wait until @future is done, or until @holds(), which starts a program."""
    until(lambda: wait([future], timeout=0.2).done or holds())


def overtaken(bank, key, program, number, step):
    """Stop the first caller with @key at @step. A second one comes when its lease is over,
    and the first goes on when that has the key, or cannot have it: then the statement of
    the first was run, and locks the record."""
    first = Stopped(bank, program, key, number, step)
    with ThreadPoolExecutor(1) as pool:
        try:
            time.sleep(LEASE_IS_OVER_S)
            owner, locked = bank.owner(key), bank.is_locked(key)
            second = pool.submit(bank.let_through, program, key, number)
            if locked:
                wait([second], timeout=1)
            else:
                until_done(second, lambda: bank.owner(key) != owner)
        finally:
            status, stdout, stderr = first.go_on()
        receipt = second.result()
    assert status in (0, 75), (key, status, stderr)
    assert status != 0 or stdout == receipt, (key, stdout, receipt)
    return status, stderr


def at_places(programs, steps):
    """A bank, and of each key the program, its accounts and the step: for each of
    @programs, each of @steps(program, how many it has)."""
    there = [program for program in programs if program.is_there()]
    places = [(program, step) for program in there for step in steps(program, steps_of(program))]
    return Bank(accounts=len(places)), {
        f"{program.language} {step}": (program, number, step)
        for number, (program, step) in enumerate(places, 1)
    }


def every(_program, last):
    return range(1, last + 1)


@test
def of_two_owners_one_commits():
    """An owner that is stopped past its lease at any step, in any language: it or its taker
    commits, and the transaction of the other one fails."""

    def two(program, last):
        """Before the statement that ends the attempt, and before COMMIT: in C idem's own
        connection sends a last message after all others."""
        before = last - 7 if program.language == "C" else last - 5
        return before, before + 2

    bank, at = at_places(TRANSFERS, every if LONG else two)
    with ThreadPoolExecutor(16) as pool:
        futures = {key: pool.submit(overtaken, bank, key, *place) for key, place in at.items()}
        ends = {key: future.result() for key, future in futures.items()}
    bank.assert_once(list(ends))
    lost = [key for key, (_, stderr) in ends.items() if b"the attempt is lost" in stderr]
    equal({key.split()[0] for key in lost}, {key.split()[0] for key in ends})
    statuses = collections.Counter(status for status, _ in ends.values())
    assert statuses[0] and statuses[75], ends
    note(
        f"{len(ends)} pairs; {statuses[75]} first owners failed, {len(lost)} of them by the "
        f"statement; {statuses[0]} committed, or had the receipt"
    )


@test
def without_owners_both_commit():
    """The control: with a table of keys in a commit of its own, both transfer."""
    bank, places = at_places(CONTROLS, lambda _program, last: [last // 2])
    for key, (program, number, step) in places.items():
        first = Stopped(bank, program, key, number, step)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(bank.transfer, program, key, number)
            try:
                until_done(second, bank.waits)
            finally:
                first.go_on()
            second.result()
    equal(bank.effects(), collections.Counter(2 * list(places)))
    note(f"{len(places)} of {len(places)} keys were transferred twice")


# ---- Connections ----


@test
def a_lost_connection_is_for_another_try():
    """The server ends all connections of a caller at any step, in any language: it has
    committed, or asks to be called again, and then there is one transfer."""
    bank, places = at_places(TRANSFERS, every if LONG else lambda _program, last: [last - 9])
    statuses = collections.Counter()
    for key, (program, number, step) in places.items():
        first = Stopped(bank, program, key, number, step)
        bank.server.psql(CUT_OFF)
        status, _, stderr = first.go_on()
        assert status in (0, 75), (key, status, stderr)
        statuses[status] += 1
    for key, (program, number, _) in places.items():
        bank.let_through(program, key, number)
    bank.assert_once(list(places))
    assert statuses[75], statuses
    note(f"{len(places)} places: {statuses[0]} callers had committed, or got over it")


if __name__ == "__main__":
    main()
