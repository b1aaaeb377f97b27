"""Effect and record in one transaction, under kill -9: examples/transaction.c."""

import os
import shutil
import statistics
import time

from accounts import Accounts
from kill_storm import Storm
from tap import LONG, PROGRAM, each, equal, main, run, skip, test

TRANSACTION = os.path.join(os.path.dirname(PROGRAM), "examples/example-transaction")
KILLS = 1000 if LONG else 100
CLIENTS = 4
AMOUNT = 3

# What a client without idem does: the same transfer in one transaction.
WITHOUT_IDEM = """
BEGIN IMMEDIATE;
UPDATE account SET balance = balance - {amount} WHERE name = 'ann';
UPDATE account SET balance = balance + {amount} WHERE name = 'bob';
INSERT INTO transfer (key, payer, payee, amount)
    VALUES ('{key}', 'ann', 'bob', {amount});
COMMIT;
SELECT 'transfer ' || last_insert_rowid();
"""


class Bank(Accounts):
    """A bank, and the ways to transfer money in it."""

    def with_idem(self, key, amount=AMOUNT):
        return [TRANSACTION, self.path, key, "ann", "bob", str(amount)]

    def without_idem(self, key):
        script = WITHOUT_IDEM.format(key=key, amount=AMOUNT)
        options = ["-batch", "-bail", "-cmd", ".timeout 20000"]
        return ["sqlite3", *options, self.path, script]


# ---- A transfer, and its replay ----------------------------------------------


@test
def a_refusal_leaves_nothing():
    """A transfer that fails leaves neither effect nor record, and may be retried."""
    bank = Bank()
    got = run(bank.with_idem("k", 1000001))
    equal((got.status, got.stdout), (1, b""))
    assert b"CHECK constraint" in got.stderr, got
    equal(bank.effects(), {})
    got = run([TRANSACTION, bank.path, "k", "ann", "eve", "3"])
    equal((got.status, b"no such account" in got.stderr), (1, True))
    equal(run(bank.with_idem("k")).status, 0)
    bank.assert_once(["k"])


# ---- A storm of kills --------------------------------------------------------


def storm(command, kills, **more):
    """A storm in which a run has up to twice the time that it takes alone: the others
    want the same lock."""
    calm = Storm(command, 0, None, 0)

    def timed(key):
        before = time.monotonic()
        calm.run(key, lambda: None)
        return time.monotonic() - before

    typical = statistics.median(timed(f"warm{i}") for i in range(9))
    made = Storm(command, kills, lambda rng: rng.uniform(0, 2 * typical), CLIENTS, **more)
    made.receipts.update(calm.receipts)
    return made.blow()


@each(("wal", "delete"))
def storm_of_kills_doubles_nothing(journal):
    """Under kill -9 effects equal completed records, one each, with either journal."""
    bank = Bank(journal)
    over = storm(bank.with_idem, KILLS // 2)
    assert over.kills >= KILLS // 2, over.kills
    bank.assert_once(over.answered())
    print(f"{journal}: {over.kills} kills, {len(over.receipts)} keys")


@test
def the_control_doubles():
    """The control: the same storm without idem transfers twice."""
    if not shutil.which("sqlite3"):
        skip("sqlite3 is not installed")
    bank = Bank()

    def doubled():
        # Each key comes from two clients: without idem that alone is twice, so
        # what counts is more than that.
        return [key for key, n in bank.effects().items() if n > 2]

    over = storm(bank.without_idem, 20 * KILLS, may_stop=doubled)
    bank.assert_whole()
    assert doubled(), f"none in {over.kills} kills"
    print(f"without idem: {over.kills} kills, {len(doubled())} keys thrice")


if __name__ == "__main__":
    main()
