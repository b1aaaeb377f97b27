"""A line to a server, which may go dead, or be cut.

    line = Line("http://127.0.0.1:8000")
    ... line.url ...        # As good as the server, until
    line.dead = True        # it takes all and answers nothing, or
    line.cut()              # there are no connections, until line.mend().
"""

import contextlib
import socket
import threading
import urllib.parse


class Line:
    """Passes on what comes and goes while it is not dead; with the context @tls it is
    spoken to over TLS."""

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
