"""A transfer and the end of its attempt in one commit of PostgreSQL, under kills."""

import collections
import os
import sys
import time

import postgres
from patience import PATIENCE
from tap import LONG, PROGRAM, SANITIZED, TOP, Idem, add, equal, main, note, run, skip

AMOUNT = 3
KILLS = 300 if LONG else 0  # At least; and one at each place.
EXAMPLES = os.path.join(TOP, "examples", "transfer")
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
PYTHON = "/usr/bin/python3"  # It has Debian's psycopg.
servers = []  # The one of this file, once it runs.


def python_program(name):
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")
    if run([PYTHON, "-c", "import psycopg"]).status != 0:
        skip("python3-psycopg is not installed: see tools/deps")
    return [PYTHON, os.path.join(EXAMPLES, name)]


def c_program(name):
    return [os.path.join(os.path.dirname(PROGRAM), "examples", name)]


class Bank:
    """A database with a store, a ledger and a program that transfers."""

    def __init__(self, command):
        if postgres.missing() is not None:
            skip(postgres.missing())
        self.command = command
        self.server = servers[0]
        self.server.psql(EMPTY + TABLES)
        self.idem = Idem(self.server.url)
        equal(self.idem("store", "create").status, 0)

    def transfer(self, key, kill_at=0, amount=AMOUNT):
        built = os.path.dirname(PROGRAM)
        env = {"IDEM_STORE": self.server.url, "LD_LIBRARY_PATH": built}
        env["PATH"] = built + ":" + os.environ["PATH"]
        if kill_at:
            env.update(KILL_AT=str(kill_at), LD_PRELOAD=os.environ["IDEM_KILL_SEND"])
        return run([*self.command, self.server.url, key, "ann", "bob", str(amount)], env)

    def effects(self):
        return collections.Counter(self.server.psql("SELECT key FROM transfer"))

    def completed(self):
        query = "SELECT convert_from(key, 'UTF8') FROM idem.idem_record WHERE status = 2"
        return collections.Counter(self.server.psql(query))

    def assert_balanced(self):
        moved = "SELECT coalesce(sum(amount), 0) FROM transfer"
        total = "SELECT sum(balance) FROM account"
        bob = "SELECT balance FROM account WHERE name = 'bob'"
        equal(self.server.psql(total), ["1000000"])
        equal(self.server.psql(bob), self.server.psql(moved))


def killed_everywhere(bank, look):
    """Transfer with one key after the other, killed a step later each time, until the
    program reaches its end. @look is told of each key."""
    keys, step, kills = [], 0, 0
    while True:
        step += 1
        keys.append(f"k{len(keys)}")
        got = bank.transfer(keys[-1], kill_at=step)
        look(keys[-1])
        if got.status == 0:
            assert step > 8, f"only {step} steps"
            if kills >= KILLS:
                break
            step = 0
        kills += 1
        assert step < 100, got
    note(f"killed {kills} times")
    return keys


def receipt(bank, key):
    """Let @key through, also where it has to wait until a lease is over."""
    until = time.monotonic() + PATIENCE
    got = bank.transfer(key)
    while got.status == 75 and time.monotonic() < until:
        time.sleep(0.5)
        got = bank.transfer(key)
    equal((key, got.status), (key, 0))
    return got.stdout


def kills_double_nothing(bank):
    there = {}

    def look(key):
        """Effect and record are both there, or neither is."""
        equal(bank.effects(), bank.completed())
        there[key] = bank.effects()[key]

    keys = killed_everywhere(bank, look)
    receipts = {key: receipt(bank, key) for key in keys}
    for key in keys[::4]:
        equal(bank.transfer(key).stdout, receipts[key])
    equal(bank.effects(), collections.Counter(keys))
    equal(bank.completed(), collections.Counter(keys))
    equal(bank.transfer(keys[0], amount=4).status, 65)
    bank.assert_balanced()
    assert "records can be trusted" in bank.idem("store", "check").stdout.decode()
    without = list(there.values()).count(0)
    assert 0 < without < len(there), there
    note(f"{without} left neither, {len(there) - without} left both")


def control_doubles(bank):
    keys = killed_everywhere(bank, lambda key: None)
    for key in keys:
        receipt(bank, key)
    twice = [key for key, n in bank.effects().items() if n > 1]
    assert twice, "nothing was transferred twice"
    note(f"{len(twice)} keys were transferred twice")


def register():
    for language, program, name in (
        ("C", c_program, "example-transfer-postgres"),
        ("Python", python_program, "postgres.py"),
    ):
        add(
            f"{language}: killed before and after anything that it sends, the example leaves "
            "transfer and record, or neither, and transfers nothing twice",
            lambda program=program, name=name: kills_double_nothing(Bank(program(name))),
        )
    add(
        "Python, the control: a table of keys in a commit of its own drifts from the ledger",
        lambda: control_doubles(Bank(python_program("apart-postgres.py"))),
    )


if __name__ == "__main__":
    register()
    if postgres.missing() is not None:
        sys.exit(main())
    with postgres.server() as started:
        servers.append(started)
        sys.exit(main())
