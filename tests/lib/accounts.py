"""A bank in an SQLite database, for tests of effect and record in one transaction."""

import collections
import contextlib
import os
import sqlite3

from tap import equal

SCHEMA = """
CREATE TABLE account (name TEXT PRIMARY KEY,
    balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE transfer (id INTEGER PRIMARY KEY, key TEXT,
    payer TEXT, payee TEXT, amount INTEGER);
INSERT INTO account VALUES ('ann', 1000000), ('bob', 0);
"""


class Accounts:
    """A database of accounts, with a ledger of the transfers between them."""

    def __init__(self, journal="wal", fresh=True):
        self.path = os.path.abspath(f"bank-{journal}.db")
        if fresh:
            with self.open() as db:
                db.execute(f"PRAGMA journal_mode = {journal}")
                db.executescript(SCHEMA)

    @contextlib.contextmanager
    def open(self):
        db = sqlite3.connect(self.path, timeout=20, isolation_level=None)
        try:
            yield db
        finally:
            db.close()

    def effects(self):
        """Return how many transfers each key had."""
        with self.open() as db:
            keys = db.execute("SELECT key FROM transfer").fetchall()
        return collections.Counter(key for key, in keys)

    def completed(self):
        """Return the keys with a completed record, and how many have another one."""
        with self.open() as db:
            rows = db.execute("SELECT key, status FROM idem_operations").fetchall()
        keys = [key for key, status in rows if status == "completed"]
        return collections.Counter(keys), len(rows) - len(keys)

    def assert_whole(self):
        """Fail unless the file is sound, and only transfers have moved money."""
        with self.open() as db:
            equal(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            ann, bob = (b for b, in db.execute("SELECT balance FROM account"))
            moved = db.execute("SELECT coalesce(sum(amount), 0) FROM transfer")
            equal(bob, moved.fetchone()[0])
            equal(ann + bob, 1000000)

    def assert_once(self, keys):
        """Fail unless each of @keys, and no other key, has one effect and one completed
        record. Nothing is in progress, although nobody took anything over."""
        self.assert_whole()
        once = collections.Counter(keys)
        completed, others = self.completed()
        equal((completed, others), (once, 0))
        equal(self.effects(), once)
        with self.open() as db:
            counts = "SELECT (SELECT count(*) FROM transfer), count(*) FROM idem_record"
            effects, records = db.execute(counts).fetchone()
        equal(effects, records)
