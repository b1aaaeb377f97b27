"""The whole contents of files, for tests. A path may come in parts."""

import os


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def read_bytes(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def lines(*path):
    """The lines of a file; none where there is no file."""
    return read(*path).splitlines() if os.path.exists(os.path.join(*path)) else []


def write(path, content, mode=None):
    """Make a file and its directories, or replace what is in it, by text or bytes."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    if mode is not None:
        os.chmod(path, mode)
