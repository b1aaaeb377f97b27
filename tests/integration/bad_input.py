"""What idem says to bad input: what failed, why, and what helps.

Each row is in golden/bad_input.txt as it looks in a terminal. IDEM_REGEN=1 writes
the file anew; look at the difference before you keep it.
"""

import difflib
import os
import re
import shlex
import socket
import sqlite3
import sys

from tap import TOP, Idem, equal, main, test

GOLDEN = os.path.join(TOP, "tests/integration/golden/bad_input.txt")
KEY = "x" * 4096
CHARGE = ["run", "-k", "a", "--", "true"]
TOKEN = ["complete", "--token"]

# A line of words for the shell, or words. {store} takes the place of --store.
ROWS = [
    # The command line.
    ["no-such"], ["run", "--leese", "5s", *CHARGE[1:]], ["run", "-k", "a", "ls"],
    ["run", "ls"], ["run"], ["run", "-k", "x", "--"], ["run", "-k", ""],
    ["run", "-k", "a", "-k", "b"], ["run", "-k"], ["run", "-k", KEY, "--", "true"],
    ["run", "--retention", "1", *CHARGE[1:]], ["run", "--retention", "1w", *CHARGE[1:]],
    ["run", "--retention", "1y", *CHARGE[1:]], ["run", "--lease", "1s", *CHARGE[1:]],
    ["run", "--lease", "2d", *CHARGE[1:]], ["run", "--wait", "-5s", *CHARGE[1:]],
    ["run", "--on-expired-lease", "again", *CHARGE[1:]],
    ["run", "--max-output", "100G", *CHARGE[1:]], ["run", "--release-on", "x", *CHARGE[1:]],
    ["run", "--busy-exit", "300", *CHARGE[1:]], ["run", "--status-fd", "99", *CHARGE[1:]],
    ["run", "--ma", "1", *CHARGE[1:]], ["run", "--scope", "y" * 300, *CHARGE[1:]],
    ["begin", "KEY"], ["release", "KEY"], ["complete", "-k", "KEY"], ["renew", "KEY"],
    [*TOKEN, "rubbish"], [*TOKEN, "idem1.AAAA"], ["complete"],
    ["resolve", "a", "--release"], ["resolve", "a", "--reason", "x"], ["show"],
    ["show", "none"], ["show", "escaped:\\n"], ["list", "foo"],
    ["list", "--status", "bogus"], ["list", "--fields", "bogus"],
    ["list", "--sort", "key,exit"], ["list", "--color", "maybe"], ["list", "--since", "5"],
    ["purge", "a"], ["completion", "tcsh"], ["limit", "-n", "a"],
    # Stores.
    ["list", "--store", "sqlite:none/idem.db"], ["list", "--store", "none.db"],
    ["list", "--store", "none/x.db"], ["list", "--store", "postgres://h/db"],
    ["list", "--store", "redis://h"], ["list", "--store", "mysql:x"],
    ["list", "--store", "dynamodb:idem"], ["list", "--store", "dynamodb://"],
    ["list", "--store", "sqlite:"], ["list", "--store", "sqlite:i.db?foo=1"],
    ["list", "--store", "sqlite:directory"], ["list", "--store", "sqlite:link"],
    ["list", "--store", "sqlite:other.db"], ["list", "--store", "sqlite:text"],
    ["list", "--store", "sqlite:corrupt.db"], ["list", "--store", "sqlite:writable"],
    ["list", "--store", "dynamodb://idem"],
    ["list", "--store", "dynamodb://idem?region=eu-central-1&foo=1"],
    ["list", "--store", "dynamodb://idem?region=x&endpoint=http://example.com:8000"],
    ["list", "--store", "dynamodb://idem?region=eu-central-1&endpoint=http://localhost:{port}"],
    # Files and services.
    ["gateway"], ["gateway", "--upstream", "ftp://x", "--global-scope"],
    ["gateway", "--upstream", "http://localhost:1/path", "--global-scope"],
    ["consume", "--queue", "jobs", "--", "true"],
    ["run", "-k", "a", "--input", "@none", "--", "true"],
    ["run", "--key-from", ".id", "--", "true"],
    ["run", "--key-from", ".id", "--input", "{}", "--", "true"],
    ["run", "--key-from", ".[", "--input", "{}", "--", "true"],
    ["run", "-k", "b", "--", "./none"], ["run", "-k", "c", "--", "./plain"],
    ["import", "text"],
]  # fmt: skip

# What differs between runs and machines.
MASKS = [
    (r"localhost:\d+|127\.0\.0\.1:\d+|\[?::1\]?:\d+", "localhost:PORT"),
    (r"localhost port \d+ after \d+ ms", "localhost port PORT after N ms"),
    (r"x{100,}", "xxx..."),
    (r"y{100,}", "yyy..."),
]


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def prepare(idem):
    """Files and stores that cannot be used."""
    os.mkdir("directory")
    os.symlink("idem.db", "link")
    for name, text in [("text", "this is no database\n" * 100), ("plain", "x"), ("writable", "")]:
        with open(name, "w", encoding="ascii") as f:
            f.write(text)
    os.chmod("writable", 0o666)
    with sqlite3.connect("other.db") as db:
        db.execute("CREATE TABLE t (x)")
    equal(idem("begin", "-k", "k").status, 0)
    equal(idem("begin", "-k", "k", "--store", "sqlite:corrupt.db").status, 0)
    for suffix in ["-wal", "-shm"]:
        if os.path.exists("corrupt.db" + suffix):
            os.remove("corrupt.db" + suffix)
    with open("corrupt.db", "r+b") as f:
        f.seek(0)
        f.write(b"\xff" * 4096)


def ask(idem, words):
    env = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "a" if "endpoint" in " ".join(words) else None,
        "AWS_SECRET_ACCESS_KEY": "b" if "endpoint" in " ".join(words) else None,
        "AWS_REGION": None,
        "AWS_DEFAULT_REGION": None,
    }
    return idem(*words, env=env)


def masked(text):
    text = text.replace(os.getcwd(), "DIRECTORY")
    for pattern, word in MASKS:
        text = re.sub(pattern, word, text)
    return text


@test
def bad_input_is_answered_in_full():
    """Each bad input is refused, with what failed, why, and what helps."""
    idem = Idem()
    prepare(idem)
    port = str(free_port())
    seen = ""
    for row in ROWS:
        words = [word.replace("{port}", port) for word in row]
        got = ask(idem, words)
        assert got.status not in (0, 70), (words, got)
        assert got.stderr, (words, got)
        seen += "$ idem " + " ".join(map(shlex.quote, words)) + "\n"
        seen += (got.stdout + got.stderr).decode() + f"= {got.status}\n\n"
    seen = masked(seen)
    wanted = ""
    if os.path.exists(GOLDEN):
        with open(GOLDEN, encoding="utf-8") as f:
            wanted = f.read()
    diff = "\n".join(difflib.unified_diff(wanted.splitlines(), seen.splitlines(), "golden", "now", lineterm=""))
    if diff and os.environ.get("IDEM_REGEN") == "1":
        print(diff, file=sys.stderr)
        with open(GOLDEN, "w", encoding="utf-8") as f:
            f.write(seen)
        return
    assert not diff, diff


def listed_keys(idem):
    return sorted(idem("list", "--fields", "key").stdout.decode().split())


@test
def nothing_is_run_or_made():
    """No bad input ran its command, or made a store where there was none."""
    idem = Idem()
    prepare(idem)
    before = sorted(os.listdir())
    for row in ROWS:
        ask(idem, [word.replace("{port}", str(free_port())) for word in row])
    made = {name for name in os.listdir() if name not in before}
    equal({name for name in made if not name.endswith("-lock")}, set())
    equal(listed_keys(idem), ["b", "c", "k"])  # 126 and 127 release their key.


if __name__ == "__main__":
    main()
