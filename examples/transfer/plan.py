#!/usr/bin/env python3
"""transfer.py for a Python whose SQLite loads no extensions.

    $ ./plan.py bank.db order-42 ann bob 30
    transfer 1: 30 from ann to bob

Here libidem is given no connection and runs no statement: this program reads one row
with its own driver, idem_plan() decides, and this program runs what it answers, in the
transaction of the transfer. Any driver of any language can do the same, also an
asynchronous one: <idem/plan.h>. ctypes calls the library, and the classes below repeat
the structs of its headers.

Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
65 the key is that of another transfer; 75 try again later.
"""

import ctypes
import sqlite3
import sys
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32
from ctypes import c_uint64, c_ubyte, c_void_p

IDEM = ctypes.CDLL("libidem.so.0")
NEVER = 2**63 - 1
HOLD = 2
STARTED, REPLAY, MISMATCH = 1, 2, 6
COMPLETED = 2
NULL, INTEGER, BYTES = 0, 1, 3


class Slice(ctypes.Structure):
    _fields_ = [("base", c_void_p), ("len", c_size_t)]


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("text", c_char * 252)]


class Request(ctypes.Structure):
    _fields_ = [
        *[("size", c_size_t), ("scope", Slice), ("key", Slice), ("on_expired_lease", c_int)],
        *[("owner", Slice), ("fingerprint", Slice), ("input", Slice), ("lease_ms", c_int64)],
        *[("retention_ms", c_int64), ("expect_ms", c_int64), ("attempts_max", c_uint32)],
        *[("wait_ms", c_int64), ("flags", c_uint32), ("join_fence", c_uint64)],
        ("bodies_max", c_uint64),
    ]


class Outcome(ctypes.Structure):
    _fields_ = [
        *[("status", c_int), ("bytes", Slice), ("content_type", Slice), ("meta", Slice)],
        *[("not_kept", c_bool), ("text", Slice), ("ended_boot_ms", c_int64)],
    ]


class Value(ctypes.Structure):
    _fields_ = [("type", c_int), ("integer", c_int64), ("bytes", Slice)]

    def to_python(self):
        if self.type == NULL:
            return None
        if self.type == INTEGER:
            return self.integer
        return ctypes.string_at(self.bytes.base, self.bytes.len)


class Statement(ctypes.Structure):
    _fields_ = [
        *[("text", c_char_p), ("rows", c_int64), ("values_len", c_size_t)],
        ("values", Value * 12),
    ]

    def run(self, db):
        values = [value.to_python() for value in self.values[: self.values_len]]
        return db.execute(self.text.decode(), values)


IDEM.idem_plan_table.argtypes = [c_size_t]
IDEM.idem_plan_table.restype = c_char_p
IDEM.idem_writes_at.argtypes = [c_void_p, c_size_t]
IDEM.idem_writes_at.restype = POINTER(Statement)
IDEM.idem_writes_destroy.argtypes = [c_void_p]
IDEM.idem_op_destroy.argtypes = [c_void_p]
IDEM.idem_attempt_destroy.argtypes = [c_void_p]
IDEM.idem_fingerprint.argtypes = [POINTER(Slice), c_size_t, Slice, c_void_p]


class Refused(Exception):
    """Nothing was transferred. Has the exit status."""


def slice_of(data):
    """Return the bytes @data as a slice; the caller keeps @data."""
    return Slice(ctypes.cast(c_char_p(data), c_void_p), len(data))


def value_of(column):
    if column is None:
        return Value(NULL)
    if isinstance(column, int):
        return Value(INTEGER, column)
    return Value(BYTES, 0, slice_of(column))


def call(function, *args):
    """Call a function of the library that explains its refusals."""
    error = Error()
    if function(*args, byref(error)) != 0:
        raise Refused(75 if error.code in (-2, -3) else 1, error.text.decode())


def carry_out(db, op):
    """Read, decide and write, inside the transaction that is open. Return the row."""
    query, moment, writes = Statement(), (c_ubyte * 64)(), c_void_p()
    if IDEM.idem_plan_read(op, byref(query)) != 0:
        raise Refused(1, "the operation cannot be planned")
    row = query.run(db).fetchone()
    values = (Value * len(row))(*map(value_of, row))
    call(IDEM.idem_moment_read, byref(moment))
    call(IDEM.idem_plan, op, values, c_size_t(len(row)), byref(moment), byref(writes))
    try:
        number = 0
        while write := IDEM.idem_writes_at(writes, number):
            if write.contents.run(db).rowcount != write.contents.rows:
                raise Refused(75, "somebody changed the record in the meantime")
            number += 1
    finally:
        IDEM.idem_writes_destroy(writes)
    return row


def begin(db, key, parts):
    """Claim @key. Return the verdict, the recorded result, and the attempt."""
    fingerprint, op, attempt = ctypes.create_string_buffer(33), c_void_p(), c_void_p()
    slices = (Slice * len(parts))(*map(slice_of, parts))
    if IDEM.idem_fingerprint(slices, len(parts), Slice(), fingerprint) != 0:
        raise Refused(75, "out of memory")
    request = Request(size=ctypes.sizeof(Request), key=slice_of(key))
    request.fingerprint = Slice(ctypes.cast(fingerprint, c_void_p), 33)
    request.on_expired_lease, request.retention_ms = HOLD, NEVER
    request.lease_ms, request.attempts_max = 60000, 5
    call(IDEM.idem_op_begin, byref(request), byref(op))
    try:
        row = carry_out(db, op)
        verdict = IDEM.idem_op_verdict(op)
        if IDEM.idem_op_take_attempt(op, byref(attempt)) != 0:
            raise Refused(75, "out of memory")
    finally:
        IDEM.idem_op_destroy(op)
    return verdict, row[14], attempt


def complete(db, attempt, result):
    outcome = Outcome(status=COMPLETED, bytes=slice_of(result))
    outcome.content_type = slice_of(b"text/plain")
    op = c_void_p()
    call(IDEM.idem_op_end, attempt, byref(outcome), byref(op))
    try:
        carry_out(db, op)
    finally:
        IDEM.idem_op_destroy(op)


PAY = "UPDATE account SET balance = balance + ? WHERE name = ?"
WRITE_DOWN = "INSERT INTO transfer (key, payer, payee, amount) VALUES (?, ?, ?, ?)"


def move_money(db, key, payer, payee, amount):
    """The effect. Answers the receipt."""
    for name, change in (payer, -amount), (payee, amount):
        if db.execute(PAY, (change, name)).rowcount != 1:
            raise Refused(1, f"there is no account {name}")
    number = db.execute(WRITE_DOWN, (key, payer, payee, amount)).lastrowid
    return f"transfer {number}: {amount} from {payer} to {payee}\n"


def claim_and_transfer(db, key, payer, payee, amount):
    """Answers the receipt, inside the transaction that is open."""
    parts = [payer.encode(), payee.encode(), str(amount).encode()]
    verdict, result, attempt = begin(db, key.encode(), parts)
    try:
        if verdict == REPLAY:
            return result.decode()
        if verdict != STARTED:
            status = 65 if verdict == MISMATCH else 75
            raise Refused(status, "this key is that of another transfer, or not free")
        receipt = move_money(db, key, payer, payee, amount)
        complete(db, attempt, receipt.encode())
        return receipt
    finally:
        IDEM.idem_attempt_destroy(attempt)


def open_bank(path):
    """Transactions are begun and ended by us: isolation_level is None."""
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    number = 0
    while table := IDEM.idem_plan_table(number):
        db.execute(table.decode())
        number += 1
    return db


def transfer(db, *request):
    """Answers the receipt: that of the first transfer with this key."""
    db.execute("BEGIN IMMEDIATE")
    try:
        receipt = claim_and_transfer(db, *request)
        db.execute("COMMIT")
        return receipt
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def main():
    if len(sys.argv) != 6 or not sys.argv[5].isdecimal():
        print("usage: plan.py DB KEY FROM TO AMOUNT", file=sys.stderr)
        sys.exit(64)
    path, key, payer, payee, amount = sys.argv[1:]
    try:
        print(transfer(open_bank(path), key, payer, payee, int(amount)), end="")
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
