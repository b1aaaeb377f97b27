#!/usr/bin/env python3
"""The control of postgres.py: the same with a table of keys, and two commits.

The transfer is committed, and then its key. Killed in between, this program leaves a
transfer without a key, and the next try transfers again.
"""

import sys

import psycopg

PAY = "UPDATE account SET balance = balance + %s WHERE name = %s"
WRITE_DOWN = """
INSERT INTO transfer (key, payer, payee, amount) VALUES (%s, %s, %s, %s) RETURNING id
"""


def main():
    path, key, payer, payee, amount = sys.argv[1:]
    with psycopg.connect(path, autocommit=True) as db:
        done = db.execute("SELECT receipt FROM done WHERE key = %s", (key,)).fetchone()
        if done is None:
            with db.transaction():
                db.execute(PAY, (-int(amount), payer))
                db.execute(PAY, (amount, payee))
                (number,) = db.execute(WRITE_DOWN, (key, payer, payee, amount)).fetchone()
            done = (f"transfer {number}: {amount} from {payer} to {payee}\n",)
            db.execute("INSERT INTO done VALUES (%s, %s)", (key, *done))
        print(done[0], end="")


if __name__ == "__main__":
    main()
