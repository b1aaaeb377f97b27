"""A line to a server, which a test can make dead, or cut.

    line = Line("http://127.0.0.1:8000")
    ... line.url ...        # Works as the server does, until
    line.dead = True        # it takes everything and answers nothing, or
    line.cut()              # it refuses connections, until line.mend().
"""

import contextlib
import socket
import threading
import urllib.parse


class Line:
    """Passes bytes on in both directions while it is not dead; its clients speak TLS if
    the context @tls is given."""

    def __init__(self, url, tls=None):
        self.to = urllib.parse.urlsplit(url)
        self.dead = self.is_cut = False
        self.open = []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
            self.url = self.url.replace("http", "https")
        threading.Thread(target=self._take, daemon=True).start()

    def cut(self):
        self.is_cut = True
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.is_cut = False

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self.socket.accept()
                if self.is_cut:
                    ours.close()
                    continue
                theirs = socket.create_connection((self.to.hostname, self.to.port))
                self.open += [ours, theirs]
                for a, b in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        with contextlib.suppress(OSError):
            while some := a.recv(65536):
                if not self.dead:
                    b.sendall(some)
            if not self.dead:
                b.shutdown(socket.SHUT_WR)
