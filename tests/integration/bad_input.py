"""What idem says to bad input: what failed, why, and what helps.

Each row is in golden/bad_input.txt as it looks in a terminal. A row that cannot be tried
here, for want of a DynamoDB or of the right to mount, is named in the results.
"""

import contextlib
import os
import re
import shlex
import shutil
import socket
import sqlite3
import stat
import subprocess
from typing import NamedTuple

import dynamo
from files import read, write
import golden
from patience import PATIENCE
from ports import free_port
from tap import PROGRAM, TOP, Idem, environment, equal, main, note, test
import web

GOLDEN = os.path.join(TOP, "tests/integration/golden/bad_input.txt")

# Words; test_cli.py has those that are usage errors.
ROWS = [
    ["complete", "--token", "rubbish"], ["complete", "--token", "idem1.AAAA"], ["show", "none"],
    ["list", "--store", "sqlite:none/idem.db"], ["list", "--store", "sqlite:"],
    ["list", "--store", "sqlite:directory"], ["list", "--store", "sqlite:link"],
    ["list", "--store", "sqlite:other.db"], ["list", "--store", "sqlite:text"],
    ["list", "--store", "sqlite:corrupt.db"], ["list", "--store", "sqlite:writable"],
    ["list", "--store", "dynamodb://idem"],
    ["list", "--store", "dynamodb://idem?region=x&endpoint=http://example.com:8000"],
    ["list", "--store", "dynamodb://idem?region=eu-central-1&endpoint=http://localhost:{port}"],
    ["consume", "--queue", "jobs", "--", "true"], ["run", "-k", "a", "--input", "@none", "--", "true"],
    ["run", "--key-from", ".id", "--", "true"], ["run", "--key-from", ".id", "--input", "{}", "--", "true"],
    ["run", "--key-from", ".[", "--input", "{}", "--", "true"], ["run", "-k", "b", "--", "./none"],
    ["run", "-k", "c", "--", "./plain"], ["import", "text"],
]  # fmt: skip

OTHER_USER = 54321  # Nobody's number: who has no home, and owns nothing.
EU = "region=eu-west-1"
TABLE = f"dynamodb://idem?{EU}&endpoint=http://localhost"
ORDERS = f"dynamodb://orders?{EU}&endpoint=http://localhost:{{dynamodb}}"
METADATA = "AWS_EC2_METADATA_DISABLED= AWS_EC2_METADATA_SERVICE_ENDPOINT=http://localhost"
GATEWAY = "idem gateway --store sqlite:theirs/idem.db --nginx /bin/true --module plain"
FULL = "mkdir full; mount -t tmpfs -o size=512k none full; "
BEGUN = "idem run -k a --store sqlite:full/idem.db -- true; "
FILL = "head -c 1m /dev/zero >full/filler 2>/dev/null; "


class Line(NamedTuple):
    """A line for the shell, after what @setup prepares unseen."""

    text: str
    setup: str = ""
    as_user: bool = False  # Not as root.
    mounts: bool = False  # It may mount file systems, which nobody else sees.
    keys: bool = True  # There are AWS credentials.
    warns: bool = False  # The work goes on: 0.


LINES = [
    # Output.
    Line("idem list >/dev/full"),
    Line("idem run -k out -- echo hello >/dev/full"),
    # Keys that are in the way.
    Line("idem resolve deploy --release --reason x", "idem run -k deploy -- sh -c 'exit 3'; "),
    Line("idem run -k deploy -- true"),
    Line("idem complete --token @token --as-sql", "idem begin -k sql >token; "),
    Line("idem resolve live --release --reason x", "idem begin -k live --lease 10h; "),
    Line("idem resolve released --release --reason x", "idem run -k released -- sh -c 'exit 75'; "),
    # Files and directories.
    Line("IDEM_STORE=sqlite:none.db idem list"),
    Line("idem list", "unset HOME IDEM_STORE; ", as_user=True),
    Line("idem run -k a --store sqlite:read-only/idem.db -- true", as_user=True),
    Line("idem list --store sqlite:idem.db", as_user=True),
    Line("ulimit -n 5; idem list"),
    Line("idem run -k a --store sqlite:gone.db -- true", "idem run -k a --store sqlite:gone.db -- true; rm gone.db; "),
    Line("idem run -k a --store sqlite:empty.db -- true", "idem run -k a --store sqlite:empty.db -- true; : >empty.db; "),
    Line("idem run -k a --store sqlite:app.db -- true"),
    Line("idem store check --store sqlite:corrupt.db | grep -v '^ok'; idem list --store sqlite:corrupt.db"),
    Line("idem run -k new --store sqlite:full/idem.db -- true", FULL + BEGUN + FILL, mounts=True),
    Line("idem run -k new --store sqlite:full/new.db -- true", FULL + FILL, mounts=True),
    Line("idem store check --store sqlite:full/idem.db | grep bad; idem doctor --store sqlite:full/idem.db >/dev/null", FULL + BEGUN + FILL, mounts=True),
    Line("IDEM_METER=none/meter idem run -k meter -- true", warns=True),
    # Services.
    Line(f"idem list --store 'dynamodb://idem?{EU}'", keys=False),
    Line(f"AWS_PROFILE=none idem list --store 'dynamodb://idem?{EU}'", keys=False),
    Line(f"{METADATA}:{{closed}} idem list --store 'dynamodb://idem?{EU}'", keys=False),
    Line(f"{METADATA}:{{403}} idem list --store 'dynamodb://idem?{EU}'", keys=False),
    Line(f"idem list --store '{TABLE}:{{silent}}'"),
    Line(f"idem list --store '{TABLE}:{{502}}'"),
    Line(f"idem list --store '{TABLE}:{{dynamodb}}'"),
    Line(f"idem stats --store '{ORDERS}'; idem stats --json --store '{ORDERS}'; idem stats --format prometheus --store '{ORDERS}' | grep -c started",
         f"idem store create --store '{ORDERS}'; "),
    Line("idem gateway --upstream http://localhost:1"),
    Line(f"{GATEWAY} --upstream http://no.such.invalid --global-scope --listen 127.0.0.1:0", as_user=True),
    Line(f"{GATEWAY} --upstream http://localhost:1 --global-scope --listen 80", as_user=True),
    Line(f"{GATEWAY} --upstream http://localhost:1 --global-scope --listen 127.0.0.1:{{taken}}", as_user=True),
]  # fmt: skip

# What differs between runs and machines.
MASKS = [
    (r"https?://(localhost|127\.0\.0\.1):\d+", r"http://localhost:PORT"),
    (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
    (r"by \S+/\d+ at", "by OWNER at"),
    (r"renewed \w+ ago, \w+ left, owner [^)]*", "renewed 5ms ago, 9h left, owner OWNER"),
    (r"after \d+\.\d s", "after N s"),
    (r"--fence \d+", "--fence N"),
    (r"cannot be resolved: [^;]*;", "cannot be resolved: REASON;"),
    (r"\d+ KiB", "N KiB"),
    (r"localhost:\d+|127\.0\.0\.1:\d+|\[?::1\]?:\d+", "localhost:PORT"),
    (r"localhost port \d+ after \d+ ms", "localhost port PORT after N ms"),
]


def prepare(idem):
    """Files and stores that cannot be used."""
    os.mkdir("directory")
    os.symlink("idem.db", "link")
    for name, text in [("text", "this is no database\n" * 100), ("plain", "x"), ("writable", "")]:
        write(name, text)
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
    os.mkdir("bin")
    os.symlink(PROGRAM, "bin/idem")
    os.mkdir("read-only", 0o555)
    os.mkdir("theirs")
    os.chmod("theirs", 0o777)
    make_application()


def make_application():
    """A database in which idem_sqlite_begin_in() has kept a record."""
    with sqlite3.connect("app.db") as db:
        db.execute("ATTACH 'idem.db' AS store")
        for (sql,) in db.execute(
            "SELECT sql FROM store.sqlite_schema WHERE name IN ('idem_record', 'idem_clock')"
        ).fetchall():
            db.execute(sql)
        db.execute("INSERT INTO main.idem_record SELECT * FROM store.idem_record")
        db.execute("INSERT INTO main.idem_clock SELECT * FROM store.idem_clock")


KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}


def aws(keys):
    """No region, no metadata service, and credentials or none."""
    names = [*KEYS, "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"]
    return {
        **dict.fromkeys(names),
        "AWS_EC2_METADATA_DISABLED": "true",
        **(KEYS if keys else {}),
    }


def ask(idem, words):
    return idem(*words, env=aws("endpoint" in " ".join(words)))


# ---- Services that are in the way ----


class Refuses(web.Handler):
    """Answers all with the status of its server, as a proxy does."""

    def answer(self):
        self.body()
        self.say(self.server.status, b"<html>", [("Content-Type", "text/html")])

    do_GET = do_PUT = do_POST = answer


@contextlib.contextmanager
def refusing(status):
    with web.Server(Refuses, ("localhost", 0)) as server:
        server.status = status
        yield server.server_port


@contextlib.contextmanager
def silent():
    """A port at which connections are taken, and nothing is answered."""
    with socket.create_server(("localhost", 0)) as s:
        yield s.getsockname()[1]


@contextlib.contextmanager
def table_service():
    """A DynamoDB without a table that is named orders; None: there is none here."""
    kind = next((kind for kind in reversed(dynamo.KINDS) if dynamo.missing(kind) is None), None)
    if kind is None:
        yield None
        return
    with dynamo.server(kind) as url:
        yield url.rsplit(":", 1)[1].strip("/")


@contextlib.contextmanager
def services():
    """The ports that lines name."""
    with contextlib.ExitStack() as stack:
        yield {
            "closed": free_port(),
            "silent": stack.enter_context(silent()),
            "taken": stack.enter_context(silent()),
            "403": stack.enter_context(refusing(403)),
            "502": stack.enter_context(refusing(502)),
            "dynamodb": stack.enter_context(table_service()),
        }


# ---- Lines for the shell ----


def can_mount():
    """The words before a command that may mount file systems, or None."""
    for words in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    return None


def be_other_user():
    os.setgroups([])
    os.setgid(OTHER_USER)
    os.setuid(OTHER_USER)


def other_user_sees_us():
    """True if somebody else may start the program in this directory."""
    where = os.getcwd()
    while where != "/" and os.stat(where).st_uid == os.getuid() and not os.stat(where).st_mode & stat.S_ISVTX:
        os.chmod(where, os.stat(where).st_mode | 0o055)
        where = os.path.dirname(where)
    tried = subprocess.run(["bin/idem", "--version"], preexec_fn=be_other_user, capture_output=True)
    return tried.returncode == 0


def why_not(line, ports, mount):
    """Why @line cannot be tried here, or None."""
    if "{dynamodb}" in line.text and ports["dynamodb"] is None:
        return "no DynamoDB"
    if line.mounts and mount is None:
        return "nothing can be mounted"
    if line.as_user and os.getuid() == 0 and not other_user_sees_us():
        return "no other user can run the program"
    return None


def ask_shell(line, ports, mount):
    """What comes of @line: its status, and its output in one stream."""
    text, setup = line.text, line.setup
    for name, port in ports.items():
        text = text.replace("{" + name + "}", str(port))
        setup = setup.replace("{" + name + "}", str(port))
    env = {
        **aws(line.keys),
        "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
        "IDEM_STORE": "sqlite:idem.db",
    }
    words = ["sh", "-c", f"{{ {setup} }} >/dev/null 2>&1; {{ {text}; }} 2>&1" if setup else f"{{ {text}; }} 2>&1"]
    if line.mounts:
        words = mount + words
    other = line.as_user and os.getuid() == 0
    done = subprocess.run(
        words,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        preexec_fn=be_other_user if other else None,
    )
    if not line.mounts:
        shutil.rmtree("full", ignore_errors=True)
    return done.returncode, done.stdout.decode()


def masked(text):
    text = text.replace(os.getcwd(), "DIRECTORY")
    for pattern, word in MASKS:
        text = re.sub(pattern, word, text)
    return text


def blocks(text):
    """What a golden file says, by the line that was typed."""
    parts = re.split(r"^(?=\$ )", text, flags=re.MULTILINE)
    return {part.splitlines()[0]: part for part in parts if part.strip()}


def see_words(idem):
    """Yields each row of words with what came of it."""
    port = str(free_port())
    for row in ROWS:
        words = [word.replace("{port}", port) for word in row]
        got = ask(idem, words)
        assert got.status not in (0, 70), (words, got)
        assert got.stderr, (words, got)
        said = (got.stdout + got.stderr).decode()
        yield "$ idem " + " ".join(map(shlex.quote, words)) + f"\n{said}= {got.status}\n\n"


def see_lines(wanted):
    """Likewise each line; one that cannot be tried is as it was."""
    mount = can_mount()
    shown = {}
    with services() as ports:
        for line in LINES:
            typed = "$ " + line.text
            while typed in shown:
                typed += " "  # The same, in another place.
            why = why_not(line, ports, mount)
            if why is not None:
                note(f"not tried, {why}: {line.text}")
                shown[typed] = wanted.get(masked(typed), "")
                continue
            status, said = ask_shell(line, ports, mount)
            assert said and status != 70 and (line.warns or status != 0), (line, status, said)
            shown[typed] = f"{typed}\n{said}= {status}\n\n"
    yield from shown.values()


@test
def bad_input_is_answered_in_full():
    """Each bad input is refused, with what failed, why, and what helps; none runs its
    command, or makes a store where there was none."""
    idem = Idem()
    prepare(idem)
    before = set(os.listdir())
    words = list(see_words(idem))
    equal({name for name in set(os.listdir()) - before if not name.endswith("-lock")}, set())
    listed = idem("list", "--fields", "key").stdout.decode().split()
    equal(sorted(listed), ["b", "c", "k"])  # 126 and 127 release their key.
    wanted = read(GOLDEN) if os.path.exists(GOLDEN) else ""
    golden.check(GOLDEN, masked("".join([*words, *see_lines(blocks(wanted))])))


if __name__ == "__main__":
    main()
