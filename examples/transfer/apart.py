#!/usr/bin/env python3
"""The control of transfer.py: the same with a table of keys, and two commits.

The transfer is committed, and then its key. Killed in between, this program leaves a
transfer without a key, and the next try transfers again. (The other order could
leave a key without a transfer, which no later try would make.)
"""

import sqlite3
import sys

KEYS = "CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, receipt TEXT)"
PAY = "UPDATE account SET balance = balance + ? WHERE name = ?"
WRITE_DOWN = "INSERT INTO transfer (key, payer, payee, amount) VALUES (?, ?, ?, ?)"


def transfer(db, key, payer, payee, amount):
    db.execute(KEYS)
    row = db.execute("SELECT receipt FROM done WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return row[0]
    db.execute("BEGIN IMMEDIATE")
    db.execute(PAY, (-amount, payer))
    db.execute(PAY, (amount, payee))
    number = db.execute(WRITE_DOWN, (key, payer, payee, amount)).lastrowid
    db.execute("COMMIT")
    receipt = f"transfer {number}: {amount} from {payer} to {payee}\n"
    db.execute("INSERT INTO done VALUES (?, ?)", (key, receipt))
    return receipt


def main():
    path, key, payer, payee, amount = sys.argv[1:]
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    print(transfer(db, key, payer, payee, int(amount)), end="")


if __name__ == "__main__":
    main()
