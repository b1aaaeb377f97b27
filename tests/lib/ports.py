"""Ports for servers of the tests."""

import socket

_kept = []


def free_port():
    """Return a port that no other process gets while this program runs: a socket that does
    not listen keeps it, and lets a server listen there."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    _kept.append(s)
    return s.getsockname()[1]
