"""The API that the handlers call, for the stories of this folder and of lambda/."""

import contextlib
import http.server
import json
import threading


class Service:
    """Each call books something, unless it has the key of an earlier call: then it gets the
    receipt of that one. For a call about @word the service calls @hooks[word] after the
    booking and before the answer, and answers with @status[word] instead of 201; 0: it
    closes the connection."""

    def __init__(self):
        self.calls, self.booked, self.receipts = [], [], {}
        self.hooks, self.status = {}, {}
        self.lock = threading.Lock()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One call."""

            def log_message(self, *_):
                pass

            def do_POST(self):  # pylint: disable=invalid-name
                size = int(self.headers["Content-Length"])
                service.serve(self, self.rfile.read(size).decode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, request, body):
        key = request.headers.get("Idempotency-Key") or None
        name = self.name_of(body)
        status = self.status.get(name, 201)
        with self.lock:
            self.calls.append(name)
            receipt = self.receipts.get(key)
            if receipt is None and status == 201:
                self.booked.append(name)
                receipt = f"receipt-{len(self.booked)}"
                if key is not None:
                    self.receipts[key] = receipt
        self.hooks.get(name, lambda: None)()
        if status == 0:
            request.close_connection = True
            return
        answer = json.dumps({"receipt": receipt}).encode()
        with contextlib.suppress(OSError):
            request.send_response(status)
            request.send_header("Content-Length", str(len(answer)))
            request.end_headers()
            request.wfile.write(answer)

    @staticmethod
    def name_of(body):
        """Return the order or amount in @body, which is a message or an event with one."""
        told = json.loads(body)
        if "Records" in told:
            told = json.loads(told["Records"][0]["body"])
        return str(told["orderId"] if "orderId" in told else told["amount"])

    def bookings(self):
        """Return how often each order was booked."""
        return {name: self.booked.count(name) for name in sorted(set(self.booked))}


def once(act):
    """Return a function that calls @act, but only the first time."""
    acts = [act]
    return lambda: acts.pop()() if acts else None
