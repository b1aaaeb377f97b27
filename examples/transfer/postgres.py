#!/usr/bin/env python3
"""A transfer of money and the end of its attempt in one commit of PostgreSQL.

    $ export IDEM_STORE=postgres:///bank        # made by: idem store create
    $ ./postgres.py postgres:///bank order-42 ann bob 30
    transfer 1: 30 from ann to bob
    $ ./postgres.py postgres:///bank order-42 ann bob 30     # again, after a time-out
    transfer 1: 30 from ann to bob

The database has the tables of postgres.c, which is the same in C. idem claims the key, with
a lease. "idem complete --as-sql" prints the statement that ends the attempt, and this
program runs it with its own driver, beside its own changes. Whenever it is killed, both are
there or neither is; once the lease is over, the next call does the rest.

Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
65 the key is that of another transfer; 75 try again later.
"""

import json
import re
import subprocess
import sys

import psycopg

PAY = "UPDATE account SET balance = balance + %s WHERE name = %s"
WRITE_DOWN = """
INSERT INTO transfer (key, payer, payee, amount) VALUES (%s, %s, %s, %s) RETURNING id
"""
# A transfer takes milliseconds, and after a crash the next caller waits for this lease.
CLAIM = ["--lease", "4s", "--on-expired-lease", "rerun", "--max-attempts", "0"]


class Refused(Exception):
    """Nothing was transferred. Has the exit status."""


class NoSuchAccount(Exception):
    """Has the name of the account."""


def idem(*args):
    """Run a command of idem. Return its exit status and what it printed."""
    done = subprocess.run(["idem", *args], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def claim(key, payer, payee, amount):
    """Return the token of an attempt, or None and the receipt of an earlier transfer."""
    parts = f"{payer} {payee} {amount}"
    options = [*CLAIM, "--retention", "never", "--fingerprint", parts]
    status, printed = idem("begin", "-k", key, *options)
    if status == 0:
        return printed.strip(), None
    if status == 10:
        return None, printed
    raise Refused(65 if status == 65 else 75, "idem begin failed")


def move_money(db, key, payer, payee, amount):
    """The effect. Answers the receipt."""
    for name, change in (payer, -amount), (payee, amount):
        if db.execute(PAY, (change, name)).rowcount != 1:
            raise NoSuchAccount(name)
    (number,) = db.execute(WRITE_DOWN, (key, payer, payee, amount)).fetchone()
    return f"transfer {number}: {amount} from {payer} to {payee}\n"


def end(db, token, receipt):
    """Complete the attempt in the transaction that is open."""
    status, printed = idem("complete", "--token", token, "--result", receipt, "--as-sql")
    if status != 0:
        raise Refused(75, "idem complete failed")
    statement = json.loads(printed)
    # psycopg does not write its parameters as PostgreSQL does.
    text = re.sub(r"\$(\d+)", r"%(p\1)s", statement["text"])
    db.execute(text, {f"p{n}": value for n, value in enumerate(statement["values"], 1)})


def transfer(path, key, payer, payee, amount):
    """Answers the receipt: that of the first transfer with this key."""
    token, receipt = claim(key, payer, payee, amount)
    if token is None:
        return receipt
    try:
        with psycopg.connect(path) as db:  # One transaction, committed at its end.
            receipt = move_money(db, key, payer, payee, amount)
            end(db, token, receipt)
    except (NoSuchAccount, psycopg.errors.CheckViolation) as refused:
        idem("release", "--token", token)
        raise Refused(1, "there is no such account, or not enough in it") from refused
    return receipt


def main():
    if len(sys.argv) != 6 or not sys.argv[5].isdecimal():
        print("usage: postgres.py DB KEY FROM TO AMOUNT", file=sys.stderr)
        sys.exit(64)
    path, key, payer, payee, amount = sys.argv[1:]
    try:
        print(transfer(path, key, payer, payee, int(amount)), end="")
    except Refused as refused:
        status, why = refused.args
        print(f"nothing was transferred: {why}", file=sys.stderr)
        sys.exit(status)
    except psycopg.Error as error:
        # Also where the answer to COMMIT was lost: the next call knows what came of it.
        print(f"try again: {error}", file=sys.stderr)
        sys.exit(75)


if __name__ == "__main__":
    main()
