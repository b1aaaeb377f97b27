"""A proxy before a DynamoDB server that counts what goes through it.

    with counting.proxy(url) as counted:
        ... work at counted.url ...
        counted.take()      # [("PutItem", write units, read units), ...]
        counted.throttles = lambda operation, body: ...  # Which requests it refuses.

It asks the server for the capacity that each request consumed, and takes that
out of the answer again unless the client has asked too, so that neither side sees a
difference. Units that are
half are as the service counts them: a write of a table and of its index is one
request.
"""

import contextlib
import http.client
import http.server
import json
import threading
import urllib.parse
import zlib


class Counted:
    """The proxy's address and what went through it since the last look."""

    def __init__(self):
        self.url = None
        self.seen = []
        self.refused = []  # The items that stood against conditional writes.
        self.throttles = None  # Of an operation and its body: refuse it as throttled?
        self.throttled = 0
        self.lock = threading.Lock()

    def add(self, operation, write, read):
        with self.lock:
            self.seen.append((operation, write, read))

    def take(self):
        with self.lock:
            seen, self.seen = self.seen, []
        return seen


def is_write(operation):
    writes = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
    return operation in writes


def units(consumed):
    """Units of a ConsumedCapacity, or of a list of them."""
    if isinstance(consumed, list):
        return sum(units(each) for each in consumed)
    return consumed.get("CapacityUnits", 0) if consumed else 0


def handler(counted, host, port):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def upstream(self):
            if not hasattr(self.server.local, "connection"):
                self.server.local.connection = http.client.HTTPConnection(host, port)
            return self.server.local.connection

        def throttle(self):
            with counted.lock:
                counted.throttled += 1
            text = json.dumps({
                "__type": "com.amazonaws.dynamodb.v20120810"
                "#ProvisionedThroughputExceededException",
                "message": "The level of configured provisioned throughput for the "
                "table was exceeded.",
            }).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("x-amz-crc32", str(zlib.crc32(text)))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(text)

        def do_POST(self):
            operation = self.headers["X-Amz-Target"].partition(".")[2]
            text = self.rfile.read(int(self.headers["Content-Length"]))
            if operation.endswith(("Item", "Items", "Query", "Scan")):
                body = json.loads(text)
                asked = "ReturnConsumedCapacity" in body
                body["ReturnConsumedCapacity"] = "TOTAL"
                text = json.dumps(body).encode()
            headers = {
                k: v
                for k, v in self.headers.items()
                if k.lower() not in ("content-length", "host", "connection")
            }
            if counted.throttles is not None and counted.throttles(operation, text):
                self.throttle()
                return
            connection = self.upstream()
            connection.request("POST", "/", text, headers)
            answer = connection.getresponse()
            text = answer.read()
            consumed = None
            if operation.endswith(("Item", "Items", "Query", "Scan")):
                body = json.loads(text)
                consumed = body.get("ConsumedCapacity")
                if not asked:
                    body.pop("ConsumedCapacity", None)
                if answer.status == 400 and "Item" in body:
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
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() in ("content-type", "x-amzn-requestid"):
                    self.send_header(name, value)
            self.send_header("x-amz-crc32", str(zlib.crc32(text)))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            # A client may have stopped waiting.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(text)

    return Handler


@contextlib.contextmanager
def proxy(url):
    """Count what goes to the server at @url."""
    parts = urllib.parse.urlsplit(url)
    counted = Counted()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), handler(counted, parts.hostname, parts.port)
    )
    server.daemon_threads = True
    server.local = threading.local()
    counted.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield counted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
