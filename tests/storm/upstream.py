"""An HTTP service that notes each request as an effect, takes its time, and answers with
a receipt of its own: upstream.py PORT LEDGER."""

import http.server
import os
import random
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        key = self.headers["Idempotency-Key"].strip('"')
        fence = self.headers.get("Idempotency-Fence", "0")
        takeover = self.headers.get("Idempotency-Takeover", "false")
        line = f"{key} {fence} {takeover}"
        os.write(self.server.ledger, f"{line:<255}\n".encode())  # As whole_line.h.
        time.sleep(random.uniform(0, 0.04))
        body = f"{key} {os.urandom(8).hex()}\n".encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass  # Who asked was killed.


def main():
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    server.ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    server.serve_forever()


if __name__ == "__main__":
    main()
