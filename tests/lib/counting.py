"""A proxy before a DynamoDB server that counts what goes through it.

    with counting.proxy(url) as counted:
        ... work at counted.url ...
        counted.take()      # [("PutItem", write units, read units), ...]
        counted.throttles = lambda operation, body: ...  # Which requests it refuses.
        counted.unheard()   # How many answers came after their client had left.

It asks the server for the capacity that each request consumed, and takes that out of the
answer again unless the client has asked too, so that neither side sees a difference. The
service counts half units, too. A write of a table and of its index is one request.
"""

import contextlib
import json
import socket
import threading
import zlib

import web
from patience import until


class Counted:
    """The proxy's address, and the requests since the last take()."""

    def __init__(self):
        self.url = None
        self.seen = []
        self.refused = []  # The items for which conditional writes were refused.
        self.throttles = None  # Whether to throttle an operation with its body.
        self.throttled = 0
        self.answering = 0
        self.left = 0
        self.lock = threading.Lock()

    def add(self, operation, write, read):
        with self.lock:
            self.seen.append((operation, write, read))

    def unheard(self):
        """Wait for all answers; return how many came after their client had left."""
        until(lambda: self.answering == 0, "all are answered")
        return self.left

    def take(self):
        with self.lock:
            seen, self.seen = self.seen, []
        return seen


def is_write(operation):
    writes = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
    return operation in writes


def units(consumed):
    """Return the units of a ConsumedCapacity, or of a list of them."""
    if isinstance(consumed, list):
        return sum(units(each) for each in consumed)
    return consumed.get("CapacityUnits", 0) if consumed else 0


class Handler(web.Relay):
    def client_left(self):
        """Return whether the client has closed the connection, tired of waiting."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def throttle(self, counted):
        with counted.lock:
            counted.throttled += 1
        text = json.dumps({
            "__type": "com.amazonaws.dynamodb.v20120810"
            "#ProvisionedThroughputExceededException",
            "message": "The level of configured provisioned throughput for the "
            "table was exceeded.",
        }).encode()
        json_type = ("Content-Type", "application/x-amz-json-1.0")
        self.say(400, text, [json_type, ("x-amz-crc32", str(zlib.crc32(text)))])

    def do_POST(self):
        counted = self.server.counted
        with counted.lock:
            counted.answering += 1
        try:
            self.relay(counted)
        finally:
            with counted.lock:
                counted.answering -= 1

    def relay(self, counted):
        operation = self.headers["X-Amz-Target"].partition(".")[2]
        text = self.body()
        if operation.endswith(("Item", "Items", "Query", "Scan")):
            body = json.loads(text)
            asked = "ReturnConsumedCapacity" in body
            body["ReturnConsumedCapacity"] = "TOTAL"
            text = json.dumps(body).encode()
        if counted.throttles is not None and counted.throttles(operation, text):
            self.throttle(counted)
            return
        status, text, headers = self.ask(text)
        consumed = None
        if operation.endswith(("Item", "Items", "Query", "Scan")):
            body = json.loads(text)
            consumed = body.get("ConsumedCapacity")
            if not asked:
                body.pop("ConsumedCapacity", None)
            if status == 400 and "Item" in body:
                counted.refused.append(body["Item"])
            for reason in body.get("CancellationReasons", ()):
                # Each write of a transaction is billed twice, refused or not.
                counted.refused += 2 * [reason.get("Item", {})]
            text = json.dumps(body).encode()
        used = units(consumed)
        counted.add(
            operation,
            used if is_write(operation) else 0,
            0 if is_write(operation) else used,
        )
        headers = [(k, v) for k, v in headers if k.lower() != "x-amz-crc32"]
        if self.client_left():
            with counted.lock:
                counted.left += 1
        self.say(status, text, [*headers, ("x-amz-crc32", str(zlib.crc32(text)))])


@contextlib.contextmanager
def proxy(url):
    """Count the requests to the server at @url."""
    with web.Server(Handler) as server:
        counted = server.counted = Counted()
        server.upstream, counted.url = url, server.url
        yield counted
