"""Programs under libnth: the n-th call of a function fails; see nth.h."""

import os
import struct
from typing import NamedTuple

from tap import PROGRAM, SANITIZED

LIBRARY = os.environ.get("NTH_LIBRARY", "")
CLASSES = (
    "alloc open read write sync truncate stat lock map fork pipe send clock "
    "random thread change"
).split()
LAYOUT = f"<iiiiqqqq{len(CLASSES)}q"


class Fault(NamedTuple):
    """The calls that are to fail."""

    call: str
    n: int  # From 0.
    on: bool  # All later calls fail, too.
    error: int  # An errno.
    kill: int = -1  # Further calls until the process is killed; -1: it lives.


class Count(NamedTuple):
    """The calls that were counted, and the failures."""

    failed: int
    killed: bool
    calls: dict

    def hit(self):
        return self.failed > 0 or self.killed


def write_page(path, fault=None):
    """Make the page at @path in which a program is to count."""
    fault = fault or Fault("alloc", -1, False, 0)
    head = (CLASSES.index(fault.call), fault.on, fault.error, fault.kill, fault.n)
    with open(path, "wb") as f:
        f.write(struct.pack(LAYOUT, *head, *[0] * (3 + len(CLASSES))))


def read_page(path):
    with open(path, "rb") as f:
        page = struct.unpack(LAYOUT, f.read())
    return Count(page[5], page[6] != 0, dict(zip(CLASSES, page[8:])))


def environment(path):
    """Return settings by which the program, and no program that it starts, counts in
    @path."""
    env = {
        "LD_PRELOAD": LIBRARY,
        "NTH_PAGE": os.path.abspath(path),
        "NTH_PROGRAM": PROGRAM,
    }
    if SANITIZED:
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"
    return env
