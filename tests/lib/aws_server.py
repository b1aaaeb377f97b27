"""A server that answers each request as a script says, or does not.

    with Server(answers) as server:
        ... requests to server.url ...
        server.seen      what arrived, in order

@answers maps the part of X-Amz-Target after its dot to a function that gets the
Connection and the Request. The server checks the signature of each request on arrival.
"""

import contextlib
import socket
import ssl
import struct
import threading
import time
import zlib
from email.utils import formatdate
from typing import NamedTuple

import sigv4

SECRETS = {"AKIDTEST": "test/secret+key", "AKIDODD": "odd-secret"}
ENV = {
    "AWS_ACCESS_KEY_ID": "AKIDTEST",
    "AWS_SECRET_ACCESS_KEY": SECRETS["AKIDTEST"],
    "AWS_SESSION_TOKEN": None,
    "AWS_REGION": None,
    "AWS_DEFAULT_REGION": None,
    "http_proxy": None,
    "https_proxy": None,
    "HTTPS_PROXY": None,
    "all_proxy": None,
    "ALL_PROXY": None,
    "no_proxy": None,
    "NO_PROXY": None,
}


class Request(NamedTuple):
    """One request as it arrived."""

    connection: int
    head: bytes
    headers: dict
    body: bytes
    flaw: str  # What is wrong with the signature; None: nothing.
    at: float

    @property
    def action(self):
        return self.headers.get("x-amz-target", "").rpartition(".")[2]


class Connection:
    """One connection of a client, and ways to treat it."""

    def __init__(self, server, sock, number):
        self.server = server
        self.sock = sock
        self.number = number
        self.rest = b""

    def read(self):
        """Return the next Request, or None at the end."""
        while b"\r\n\r\n" not in self.rest:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.rest += data
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        headers = dict(sigv4.parse(head)[2])
        if self.server.early(self, headers):
            return None
        length = int(headers["content-length"])
        while len(self.rest) < length:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.rest += data
        body, self.rest = self.rest[:length], self.rest[length:]
        flaw = sigv4.check(head, body, SECRETS, service="dynamodb")
        return Request(self.number, head, headers, body, flaw, time.time())

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, body=b"{}", status="200 OK", date=True, length=True, **headers):
        """Send a whole answer. Write "_" for "-" in the names of @headers."""
        lines = [f"HTTP/1.1 {status}"]
        if date is True:
            date = formatdate(time.time() + self.server.offset, usegmt=True)
        if date:
            lines.append(f"Date: {date}")
        if length:
            lines.append(f"Content-Length: {len(body)}")
        for name, value in headers.items():
            lines.append(f"{name.replace('_', '-')}: {value}")
        self.send("\r\n".join(lines + ["", ""]).encode() + body)

    def crc_answer(self, body=b"{}", **headers):
        self.answer(body, x_amz_crc32=zlib.crc32(body), **headers)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def reset(self):
        """End the connection with RST."""
        raw = struct.pack("ii", 1, 0)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, raw)
        self.sock.close()


class Server:
    """Listens on loopback until the end of the with-block."""

    def __init__(self, answers, offset=0, early=None, tls=None, host="127.0.0.1"):
        self.answers = answers
        self.offset = offset  # Seconds that its clock is ahead.
        self.early = early or (lambda connection, headers: False)
        self.seen = []
        self.errors = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.tls = tls
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.listener = socket.create_server((host, 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{host}:{self.port}"
        self.sockets = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.stopping.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for sock in self.sockets:
                with contextlib.suppress(OSError):
                    sock.close()
        if error[0] is None:
            assert not self.errors, self.errors

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                number = self.connections
                self.connections += 1
                self.sockets.append(sock)
            threading.Thread(
                target=self._serve, args=(sock, number), daemon=True
            ).start()

    def _serve(self, sock, number):
        with self.lock:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            self._converse(Connection(self, sock, number))
        except (OSError, ssl.SSLError):
            pass  # The client went away, or the script closed the socket.
        except Exception as error:  # pylint: disable=broad-except
            if not self.stopping.is_set():
                self.errors.append(repr(error))
        finally:
            sock.close()
            with self.lock:
                self.open -= 1

    def _converse(self, connection):
        while True:
            request = connection.read()
            if request is None:
                return
            with self.lock:
                self.seen.append(request)
            answer = self.answers.get(request.action, Connection.crc_answer)
            if answer is Connection.crc_answer:
                connection.crc_answer()
            else:
                answer(connection, request)

    def all_signed(self):
        """Fail unless every request that arrived was signed as it was sent."""
        for request in self.seen:
            assert request.flaw is None, request.flaw
        return len(self.seen)
