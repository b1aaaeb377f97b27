"""The programs of examples/transfer on PostgreSQL: a transfer by several drivers.

    TRANSFERS[0].command(server)     # KEY FROM TO AMOUNT follow
"""

import functools
import os
from typing import NamedTuple

from languages import BUILD, EXAMPLES
from tap import SANITIZED, Skip, run, skip

PYTHON = "/usr/bin/python3"  # It has Debian's psycopg.


def c_program(name):
    return [os.path.join(BUILD, "examples", name)]


@functools.lru_cache
def python_program(name):
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")
    if run([PYTHON, "-c", "import psycopg"]).status != 0:
        skip("python3-psycopg is not installed: see tools/deps")
    return [PYTHON, os.path.join(EXAMPLES, name)]


class Program(NamedTuple):
    """An example in one language."""

    language: str
    make: object  # Answers the command, or skips the test.
    name: str

    def command(self, server):
        return [*self.make(self.name), server.url]

    def is_there(self):
        """Whether it can run here."""
        try:
            self.make(self.name)
        except Skip:
            return False
        return True


def environment(server):
    """The settings with which they find idem and the store."""
    return {
        "IDEM_STORE": server.url,
        "LD_LIBRARY_PATH": BUILD,
        "PATH": BUILD + ":" + os.environ["PATH"],
    }


TRANSFERS = [
    Program("C", c_program, "example-transfer-postgres"),
    Program("Python", python_program, "postgres.py"),
]
CONTROLS = [
    Program("C", c_program, "example-apart-postgres"),
    Program("Python", python_program, "apart-postgres.py"),
]
