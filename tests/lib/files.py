"""The whole contents of files, for tests. A path may come in parts."""

import os


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def read_bytes(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def lines(*path):
    """Return the lines of a file, or none if there is no file."""
    return read(*path).splitlines() if os.path.exists(os.path.join(*path)) else []


def write(path, content, mode=None):
    """Write text or bytes to a file, in place of its old content; make its directories."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    if mode is not None:
        os.chmod(path, mode)
