"""A line to a PostgreSQL server that treats batches wrongly, by a rule or a seed.

    with postgres_line.before(server, rule) as line:
        line.url                    # Works as the server's, but for
        rule(batch)                 # ... the fault that this names, or None.
        line.hits                   # Counter: how often each fault was met.

A batch is everything that a client sends up to a Sync, in idem a transaction; its answer
ends with the server's "ready". A connection has one batch at a time: what the client sends
meanwhile waits in its socket, and is lost with the connection.
"""

import collections
import contextlib
import os
import random
import socket
import struct
import tempfile
import threading
import time

PORT = 5432
CANCEL = 80877102  # Takes the place of the version in a request to cancel.
FAULTS = (
    "latency",
    "slow bytes",
    "cut before",
    "cut in the batch",
    "cut, and done later",
    "cut after",
    "cut in the answer",
    "cancelled",
    "no answer",
)


class Cut(Exception):
    """The connection ends here."""


class Batch:
    """The messages of a client up to a Sync."""

    def __init__(self, data):
        self.bytes = data

    def has(self, name):
        """Return whether it has the statement @name, of postgres/sql.c."""
        text = {
            "claim": b"idem_record AS r (id",
            "update": b"idem_record r SET nonce",
            "rollback": b"ROLLBACK",
        }[name]
        names = [b"\0idem_%s_" % name.encode()]
        if name == "update":
            names.append(b"\0idem_end_")
        return any(part in self.bytes for part in (text, *names))

    @property
    def writes(self):
        return self.has("claim") or self.has("update")


def take(sock, size):
    data = b""
    while len(data) < size:
        some = sock.recv(size - len(data))
        if not some:
            raise Cut
        data += some
    return data


def message(sock):
    """Read the next message, as (type, bytes)."""
    head = take(sock, 5)
    return head[:1], head + take(sock, struct.unpack(">I", head[1:])[0] - 4)


def upto(sock, types):
    """Read all messages up to one of @types."""
    parts = []
    while True:
        kind, data = message(sock)
        parts.append(data)
        if kind in types:
            return kind, b"".join(parts)


class Connection:
    """A connection of a client, and the one to the server for it."""

    def __init__(self, line, client):
        self.line = line
        self.client = client
        self.server = line.connect()
        self.key = b""

    def run(self):
        try:
            self.start()
            while True:
                kind, data = upto(self.client, (b"S", b"Q", b"X"))
                if kind == b"X":
                    self.server.sendall(data)
                    return
                self.exchange(Batch(data))
        except (Cut, OSError):
            pass
        finally:
            for sock in filter(None, (self.client, self.server)):
                with contextlib.suppress(OSError):
                    sock.close()

    def start(self):
        """Pass the first message on, which has no type. The server wants no password."""
        size = take(self.client, 4)
        first = size + take(self.client, struct.unpack(">I", size)[0] - 4)
        self.server.sendall(first)
        if struct.unpack(">I", first[4:8])[0] == CANCEL:
            raise Cut
        answer = b""
        while not answer.startswith(b"Z"):
            kind, answer = message(self.server)
            if kind == b"K":
                self.key = answer[5:]
            self.client.sendall(answer)
            if kind == b"E":
                raise Cut

    def exchange(self, batch):
        fault = self.line.deal(batch)
        if fault is None:
            self.server.sendall(batch.bytes)
            self.client.sendall(self.answer())
        else:
            getattr(self, "meet_" + fault.replace(",", "").replace(" ", "_"))(batch)

    def answer(self):
        return upto(self.server, (b"Z",))[1]

    # ---- Faults ----

    def pause(self, low, high):
        time.sleep(self.line.random.uniform(low, high))

    def meet_latency(self, batch):
        self.pause(0.005, 0.05)
        self.server.sendall(batch.bytes)
        answer = self.answer()
        self.pause(0.005, 0.05)
        self.client.sendall(answer)

    def meet_slow_bytes(self, batch):
        self.server.sendall(batch.bytes)
        answer = self.answer()
        step = max(7, len(answer) // 12)
        for at in range(0, len(answer), step):
            self.client.sendall(answer[at : at + step])
            time.sleep(0.002)

    def meet_reset(self, batch):
        """Reset the settings of the session, as a pooler does."""
        sql = b"RESET ALL\0"
        self.server.sendall(b"Q" + struct.pack(">I", 4 + len(sql)) + sql)
        self.answer()
        self.server.sendall(batch.bytes)
        self.client.sendall(self.answer())

    def meet_cut_before(self, batch):
        raise Cut

    def meet_cut_in_the_batch(self, batch):
        """Cut the connection within the batch: the server rolls back what it has seen."""
        self.server.sendall(batch.bytes[: self.line.random.randrange(len(batch.bytes))])
        raise Cut

    def meet_cut_and_done_later(self, batch):
        """Cut the connection, and send the batch later: before, during or after the read
        with which the client looks for it."""
        self.client.shutdown(socket.SHUT_RDWR)
        self.client.close()
        self.pause(0, self.line.late_s)
        self.server.sendall(batch.bytes)
        self.answer()
        raise Cut

    def meet_cut_after(self, batch):
        """Cut the connection after the server has committed."""
        self.server.sendall(batch.bytes)
        self.answer()
        raise Cut

    def meet_cut_in_the_answer(self, batch):
        self.server.sendall(batch.bytes)
        answer = self.answer()
        self.client.sendall(answer[: self.line.random.randrange(len(answer))])
        raise Cut

    def meet_cancelled(self, batch):
        """Cancel the batch, as another client may, unless it is done before that."""
        self.server.sendall(batch.bytes)
        with contextlib.suppress(OSError), self.line.connect() as other:
            other.sendall(struct.pack(">II", 16, CANCEL) + self.key)
            other.recv(1)
        self.client.sendall(self.answer())

    def meet_no_answer(self, batch):
        """Answer nothing until the client gives up."""
        self.server.sendall(batch.bytes)
        self.answer()
        with contextlib.suppress(OSError):
            while self.client.recv(65536):
                pass
        raise Cut


class Line:
    """The address of the clients, and the faults that they met."""

    def __init__(self, server, folder, rule):
        self.to = os.path.join(server.folder, f".s.PGSQL.{PORT}")
        self.url = server.url.replace(server.folder, folder)
        self.rule = rule
        self.random = random.Random(1)
        self.late_s = 0.3
        self.lock = threading.Lock()
        self.hits = collections.Counter()
        self.batches = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.path.join(folder, f".s.PGSQL.{PORT}"))
        self.socket.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def connect(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self.to)
        return sock

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                try:
                    connection = Connection(self, client)
                except OSError:
                    client.close()  # There is no server now.
                    continue
                threading.Thread(target=connection.run, daemon=True).start()

    def deal(self, batch):
        """Return the fault that @batch meets, or None."""
        with self.lock:
            self.batches += 1
            fault = self.rule(batch)
            if fault is not None:
                self.hits[fault] += 1
            return fault


@contextlib.contextmanager
def before(server, rule):
    """Run a line before @server, of postgres.py."""
    with tempfile.TemporaryDirectory(prefix="idem-pgl-", dir="/tmp") as folder:
        line = Line(server, folder, rule)
        try:
            yield line
        finally:
            line.socket.shutdown(socket.SHUT_RDWR)
            line.socket.close()


def by_seed(seed, rate, kinds=FAULTS):
    """Return a rule: a batch meets a fault at @rate, and each kind as often as the others."""
    dice = random.Random(seed)
    deck = []

    def rule(_batch):
        if dice.random() >= rate:
            return None
        if not deck:
            deck.extend(kinds)
            dice.shuffle(deck)
        return deck.pop()

    return rule


def once(fault, suits):
    """Return a rule: the first batch that @suits meets @fault."""
    left = [fault]

    def rule(batch):
        return left.pop() if left and suits(batch) else None

    return rule
