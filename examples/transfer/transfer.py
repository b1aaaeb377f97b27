#!/usr/bin/env python3
"""A transfer of money and its record in one transaction, from Python.

    $ ./transfer.py bank.db order-42 ann bob 30
    transfer 1: 30 from ann to bob
    $ ./transfer.py bank.db order-42 ann bob 30     # again, after a time-out
    transfer 1: 30 from ann to bob

The database is that of ../transaction.c, which is the same in C. Here the extension
mod_idem adds SQL functions to Python's own SQLite: the record is a row of the same
database, and one COMMIT makes transfer and record durable. Whenever this program is
killed, both are there or neither is.

Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
65 the key is that of another transfer; 75 try again later.
"""

import sqlite3
import sys

BEGIN = """
SELECT verdict, token, result FROM idem_begin(:key)
WHERE fingerprint = idem_fingerprint(:payer, :payee, :amount)
    AND retention_ms = 'never'
"""
PAY = "UPDATE account SET balance = balance + :change WHERE name = :name"
WRITE_DOWN = """
INSERT INTO transfer (key, payer, payee, amount) VALUES (:key, :payer, :payee, :amount)
"""
COMPLETE = "SELECT idem_complete(:token, :receipt, 'text/plain')"


class Refused(Exception):
    """Nothing was transferred. Has the exit status."""


def move_money(db, t):
    """The effect. Answers the receipt."""
    for name, change in (t["payer"], -t["amount"]), (t["payee"], t["amount"]):
        if db.execute(PAY, {"name": name, "change": change}).rowcount != 1:
            raise Refused(1, f"there is no account {name}")
    number = db.execute(WRITE_DOWN, t).lastrowid
    return f"transfer {number}: {t['amount']} from {t['payer']} to {t['payee']}\n"


def claim_and_transfer(db, t):
    """Answers the receipt, inside the transaction that is open."""
    verdict, token, result = db.execute(BEGIN, t).fetchone()
    if verdict == "REPLAY":
        return result.decode()
    if verdict == "MISMATCH":
        raise Refused(65, "this key is that of another transfer")
    if verdict != "STARTED":
        raise Refused(75, f"the record says {verdict}")
    receipt = move_money(db, t)
    db.execute(COMPLETE, {"token": token, "receipt": receipt}).fetchone()
    return receipt


def open_bank(path):
    """Transactions are begun and ended by us: isolation_level is None."""
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension("mod_idem")
    db.enable_load_extension(False)
    return db


def transfer(db, t):
    """Answers the receipt: that of the first transfer with this key."""
    db.execute("BEGIN IMMEDIATE")
    try:
        receipt = claim_and_transfer(db, t)
        db.execute("COMMIT")
        return receipt
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def main():
    if len(sys.argv) != 6 or not sys.argv[5].isdecimal():
        print("usage: transfer.py DB KEY FROM TO AMOUNT", file=sys.stderr)
        sys.exit(64)
    path, key, payer, payee, amount = sys.argv[1:]
    request = {"key": key, "payer": payer, "payee": payee, "amount": int(amount)}
    try:
        print(transfer(open_bank(path), request), end="")
    except Refused as refused:
        status, why = refused.args
        print(f"nothing was transferred: {why}", file=sys.stderr)
        sys.exit(status)
    except sqlite3.Error as error:
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        print(f"nothing was transferred: {error}", file=sys.stderr)
        sys.exit(75 if busy else 1)


if __name__ == "__main__":
    main()
