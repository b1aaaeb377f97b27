#!/usr/bin/env python3
"""Handles orders from a queue, one after the other in one process:

    idem consume --queue orders --key-from .orderId --lines -w 4 -- ./handle.py

Each line of standard input is a message, each line of standard output the answer to
it. What is printed otherwise belongs on standard error.
"""

import json
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1] if len(sys.argv) > 1 else "orders.db", timeout=60)
db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, fence, sum)")


def book(message):
    """The answer to @message. An attempt before this one may have booked it: then the
    order is there, and is not booked again."""
    order = json.loads(message["body"])
    if order["sum"] <= 0:
        return {"outcome": "fail", "error": "an order of nothing"}
    with db:
        db.execute(
            "INSERT OR IGNORE INTO orders VALUES (?, ?, ?)",
            (message["key"], message["fence"], order["sum"]),
        )
    return {"outcome": "done", "result": {"booked": order["sum"]}}


for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = book(message)
    except sqlite3.OperationalError as error:  # The transaction was undone.
        answer = {"outcome": "release", "error": str(error)}
    print(json.dumps({"id": message["id"], **answer}), flush=True)
