"""Small HTTP servers: stand-ins for services, and relays.

    class Hello(web.Handler):
        def do_GET(self):
            self.say(200, b"hello")

    with web.Server(Hello) as server:
        ... work at server.url ...

A web.Relay passes requests on to the server's @upstream, a URL.
"""

import contextlib
import http.client
import http.server
import os
import socket
import threading
import urllib.parse

from patience import PATIENCE


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def disable_nagle_algorithm(self):
        return self.server.path is None

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def say(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # The client may be gone.
            self.wfile.write(body)


class Relay(Handler):
    def do_POST(self):
        self.say(*self.ask(self.body()))

    def ask(self, body):
        """Send this request with @body to the service; return its answer, as for say()."""
        at = urllib.parse.urlsplit(self.server.upstream)
        with contextlib.closing(
            http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
        ) as connection:
            ours = ("connection", "content-length", "host")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ours}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        kept = [(k, v) for k, v in answer.getheaders() if k.lower().startswith(("content-type", "x-am"))]
        return answer.status, text, kept


class Server(http.server.ThreadingHTTPServer):
    """A server at a free port, or at a socket by its path."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, handler, address=("127.0.0.1", 0)):
        self.path = address if isinstance(address, str) else None
        if self.path:
            self.address_family = socket.AF_UNIX
        super().__init__(address, handler)
        self.url = f"http://unix:{self.path}" if self.path else f"http://127.0.0.1:{self.server_port}"

    def server_bind(self):
        if not self.path:
            super().server_bind()
            return
        self.socket.bind(self.path)
        self.server_port = 0

    def get_request(self):
        connection, address = super().get_request()
        return connection, address or ("unix", 0)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()
        if self.path:
            os.unlink(self.path)
