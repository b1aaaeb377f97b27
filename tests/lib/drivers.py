"""The programs of examples/transfer on PostgreSQL: a transfer by several drivers.

    TRANSFERS[0].command(server)     # KEY FROM TO AMOUNT follow
"""

import atexit
import functools
import os
import shutil
import tempfile
from typing import NamedTuple

from languages import BUILD, EXAMPLES, MODULES, node
from tap import SANITIZED, Skip, run, skip

PYTHON = "/usr/bin/python3"  # It has Debian's psycopg.
JDBC = "/usr/share/java/postgresql.jar"
# The program ends after one transfer, before better code would pay.
JAVA = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def c_program(name):
    return [os.path.join(BUILD, "examples", name)]


@functools.lru_cache
def python_program(name):
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")
    if run([PYTHON, "-c", "import psycopg"]).status != 0:
        skip("python3-psycopg is not installed: see tools/deps")
    return [PYTHON, os.path.join(EXAMPLES, name)]


def node_program(name):
    return [node("pg"), os.path.join(EXAMPLES, name)]


@functools.lru_cache
def classes():
    """Compile the examples in Java. Return the class path of them and the driver."""
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")
    if shutil.which("javac") is None:
        skip("openjdk-17-jdk-headless is not installed: see tools/deps")
    if not os.path.exists(JDBC):
        skip("libpostgresql-jdbc-java is not installed: see tools/deps")
    folder = tempfile.mkdtemp(prefix="idem-java-", dir="/tmp")
    atexit.register(shutil.rmtree, folder)
    sources = [os.path.join(EXAMPLES, f"{name}.java") for name in ("Postgres", "ApartPostgres")]
    done = run(["javac", "-Xlint:all,-serial", "-Werror", "-d", folder, *sources])
    assert done.status == 0, done
    return f"{JDBC}:{folder}"


def java_program(name):
    return [*JAVA, "-cp", classes(), name]


def libpq_url(server):
    return server.url


def jdbc_url(server):
    """Return the URL for JDBC, which supports TCP only."""
    return f"jdbc:postgresql://127.0.0.1:{server.port}/idem?user=owner"


class Program(NamedTuple):
    """An example in one language."""

    language: str
    make: object  # Returns the command, or skips the test.
    name: str
    url: object = libpq_url

    def __str__(self):
        return self.language

    def command(self, server):
        return [*self.make(self.name), self.url(server)]

    def is_there(self):
        """Return whether it can run here."""
        try:
            self.make(self.name)
        except Skip:
            return False
        return True


def environment(server):
    """Return the settings with which they find idem, their modules and the store."""
    return {
        "IDEM_STORE": server.url,
        "LD_LIBRARY_PATH": BUILD,
        "NODE_PATH": MODULES,
        "PATH": BUILD + ":" + os.environ["PATH"],
    }


TRANSFERS = [
    Program("C", c_program, "example-transfer-postgres"),
    Program("Python", python_program, "postgres.py"),
    Program("Node.js", node_program, "postgres.js"),
    Program("Java", java_program, "Postgres", jdbc_url),
]
CONTROLS = [
    Program("C", c_program, "example-apart-postgres"),
    Program("Python", python_program, "apart-postgres.py"),
    Program("Node.js", node_program, "apart-postgres.js"),
    Program("Java", java_program, "ApartPostgres", jdbc_url),
]
