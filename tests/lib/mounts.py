"""File systems that are mounted for a test."""

import contextlib
import os
import sys

import fuse
from tap import skip, start


@contextlib.contextmanager
def fuse_at(directory, kind, source="here", locks="kernel"):
    """Make @directory, and mount the file system of fuse.py there, of the type @kind."""
    if os.getuid() != 0 or not os.access("/dev/fuse", os.W_OK):
        skip("only root can mount, and /dev/fuse must be there")
    os.mkdir(directory)
    with start([sys.executable, fuse.__file__, directory, kind, source, locks]) as server:
        try:
            if server.stdout.readline() != b"ready\n":
                skip(f"no FUSE here: {server.stderr.read().decode()[-200:]}")
            yield
        finally:
            fuse.unmount(directory)
            server.kill()
