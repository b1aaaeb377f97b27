"""The named crash points: found in the sources, counted in a file."""

import mmap
import os
import re
import struct
import threading
from pathlib import Path

from tap import TOP

CALL = re.compile(r"\bIDEM__CRASH_POINT\(([^;]*)\);", re.S)
SLOT = struct.Struct("48sQQ")  # As in crash.c.


def names_in(*folders):
    """The names of all points in the C files below @folders."""
    found = set()
    for folder in folders:
        for path in Path(TOP, folder).rglob("*.c"):
            for call in CALL.findall(path.read_text(encoding="utf-8")):
                names = re.findall(r'"([^"]+)"', call)
                assert names, f"{path}: a crash point without a name"
                found.update(names)
    return sorted(found)


def files_with_points(*folders):
    """The C files below @folders that have a point, from the top."""
    paths = (path for folder in folders for path in Path(TOP, folder).rglob("*.c"))
    found = (p for p in paths if CALL.search(p.read_text(encoding="utf-8")))
    return sorted(os.path.relpath(path, TOP) for path in found)


def files_compiled():
    """The files that the storm compiles with their points: meson.build names them."""
    text = Path(__file__).with_name("meson.build").read_text(encoding="utf-8")
    return sorted(re.findall(r"'\.\./\.\./((?:src|aws|cli)/\S+\.c)'", text))


class Counters:
    """The file that the processes count in."""

    def __init__(self, path, names):
        self.path = path
        self.names = {name: at for at, name in enumerate(names)}
        with open(path, "wb") as f:
            for name in names:
                assert len(name) < 48, name
                f.write(SLOT.pack(name.encode(), 0, 0))
        with open(path, "r+b") as f:
            self._map = mmap.mmap(f.fileno(), 0)

    def _slot(self, name):
        return SLOT.unpack_from(self._map, self.names[name] * SLOT.size)

    def hits(self, name):
        return self._slot(name)[1]

    def kills(self, name):
        return self._slot(name)[2]

    def all_kills(self):
        return sum(self.kills(name) for name in self.names)


class Targets:
    """Which points still need deaths; given out in turn, to many threads."""

    def __init__(self, counters, names, wanted):
        self.counters, self.names, self.wanted = counters, list(names), wanted
        self.tries = {name: 0 for name in names}
        self._lock = threading.Lock()
        self._at = 0

    def next(self):
        """(a point, how often it was tried) or None; one that is never reached is
        given up after a while."""
        with self._lock:
            for _ in self.names:
                self._at = (self._at + 1) % len(self.names)
                name = self.names[self._at]
                if (
                    self.counters.kills(name) < self.wanted
                    and self.tries[name] < 40 + 8 * self.wanted
                ):
                    self.tries[name] += 1
                    return name, self.tries[name]
        return None

    def missing(self):
        return [n for n in self.names if self.counters.kills(n) < self.wanted]


def environment(counters, deaths, stop=None):
    """What a process needs to count, to die at @deaths, which are (point, nth), and
    to stop at the point @stop."""
    return {
        "IDEM_STORM_HITS": os.path.abspath(counters.path),
        "IDEM_STORM_DIE": ",".join(f"{name}:{nth}" for name, nth in deaths) or None,
        "IDEM_STORM_STOP": f"{stop}:1" if stop else None,
    }
