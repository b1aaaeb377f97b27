"""The seeds that once failed: seeds.txt."""

import re
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parent / "seeds.txt"
LINE = re.compile(r"^(\d+) +(embedded|remote) +(uniform|priority|swizzle) +(\d\d)\b", re.M)


class Seed(NamedTuple):
    number: str
    mode: str
    cls: str
    mutant: str

    def options(self):
        """What makes sim replay it."""
        options = ["--seed", self.number, "--schedules", "1"]
        return [*options, "--mode", self.mode, "--class", self.cls]


def read():
    return [Seed(*found) for found in LINE.findall(FILE.read_text())]


def replace(better):
    """Rewrite the lines of @better: {seed: (number, mode, class)}."""
    by_mutant = {seed.mutant: words for seed, words in better.items()}

    def line(found):
        words = by_mutant.get(found[4], found.groups()[:3])
        return f"{words[0]:<8} {words[1]:<8} {words[2]:<8} {found[4]}"

    FILE.write_text(LINE.sub(line, FILE.read_text()))
