"""A real PostgreSQL for the tests, on a socket of its own.

    with postgres.server() as server:   # or server = postgres.shared(), for all tests
        server.url                  # of an empty database
        server.psql("SELECT 1")     # lines of text
        server.stop(); server.start()
        with postgres.replica(server) as replica:
            server.await_replica()  # all that is committed is there
            server.die()            # as if its power was cut; or server.freeze()
            replica.promote()

As a program it runs another one beside a server, whose URL is in IDEM_TEST_POSTGRES, and
ends the server with it:

    python3 postgres.py PROGRAM [ARGUMENT ...]

PostgreSQL refuses to run as root: there it runs as "nobody", in a folder of that user's.
"""

import contextlib
import ctypes
import functools
import glob
import hashlib
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from dynamo import SERVERS
from patience import PATIENCE, until
import procfs
from tap import PROGRAM, for_all, skip, start, watched

PR_SET_PDEATHSIG = 1
DATABASE = "idem"
USER = "owner"
INITDB = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A test needs neither a durable disk nor work in the background.
FAST = {"fsync": "off", "autovacuum": "off", "shared_buffers": "16MB"}


def folder_of_programs():
    """Return the folder of the newest version's programs, or None."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    found.sort(key=lambda path: int(path.split("/")[4]))
    path = found[-1] if found else shutil.which("postgres")
    return path and os.path.dirname(os.path.realpath(path))


def missing():
    """Return why it cannot be started here, or None."""
    if folder_of_programs() is None:
        return "PostgreSQL is not installed: see tools/deps"
    return None


def need():
    """Skip a test of the PostgreSQL store where there is no server or no such store."""
    why = missing()
    if why is not None:
        skip(why)
    if not os.path.exists(os.path.join(os.path.dirname(PROGRAM), "libidem-postgres.so.0")):
        skip("the PostgreSQL store was not built: libpq-dev is not installed")


def literal(statement):
    """Return a statement of idem with its values in the text, for psql."""
    values = ["NULL" if v is None else "'" + v.replace("'", "''") + "'" for v in statement["values"]]
    return re.sub(r"\$(\d+)", lambda m: values[int(m[1]) - 1], statement["text"])


def somebody():
    """Return the user for subprocess as whom it runs; nothing, if we are not root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A server, running or stopped."""

    def __init__(self, folder, settings, env=None):
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C", **(env or {})}
        self.data = os.path.join(folder, "data")
        self.settings = settings
        self.process = None
        self.url = f"postgres:///{DATABASE}?host={folder}&user={USER}"
        self.port = settings.get("port")  # Also in the name of its socket.
        if self.port is not None:
            self.url += f"&port={self.port}"
        self.programs = folder_of_programs()

    def program(self, name):
        return os.path.join(self.programs, name)

    def run(self, *command):
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            **somebody(),
        )

    def make(self):
        """Make its data. initdb takes a second of CPU, so all tests share its result."""
        version = subprocess.check_output([self.program("postgres"), "--version"])
        user = somebody().get("user", os.geteuid())
        name = hashlib.sha256(repr((version, user, INITDB)).encode()).hexdigest()[:12]
        kept = os.path.join(SERVERS, f"postgres-{name}")
        if os.path.isdir(kept):
            subprocess.run(["cp", "-a", kept, self.data], check=True)
            return
        self.run(self.program("initdb"), "-D", self.data, *INITDB)
        if os.access(SERVERS, os.W_OK):
            with tempfile.TemporaryDirectory(dir=SERVERS) as new:
                subprocess.run(["cp", "-a", self.data, f"{new}/data"], check=True)
                with contextlib.suppress(OSError):  # Another program was first.
                    os.rename(f"{new}/data", kept)

    def start(self, **settings):
        """Start it with more settings, and wait until it answers."""
        options = {**self.settings, **settings}
        self.process = subprocess.Popen(
            [self.program("postgres"), "-D", self.data, "-k", self.folder]
            + ["-c", "listen_addresses="]
            + [word for k, v in options.items() for word in ("-c", f"{k}={v}")],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(self.folder, "log"), "ab"),
            preexec_fn=die_with_parent,
            **somebody(),
        )
        until = time.monotonic() + PATIENCE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                    raise RuntimeError("PostgreSQL does not start: " + log.read()[-2000:])
            time.sleep(0.05)

    def answers(self):
        return self.psql_try("SELECT 1", "postgres").returncode == 0

    def psql_try(self, sql, database=DATABASE):
        command = [self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"]
        if self.port is not None:
            command += ["-p", str(self.port)]
        return subprocess.run(
            [*command, "-h", self.folder, "-U", USER, "-d", database, "-c", sql],
            capture_output=True,
            text=True,
        )

    def psql(self, sql, database=DATABASE):
        """Run @sql, and return the lines that it prints, with "|" between fields."""
        done = self.psql_try(sql, database)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.splitlines()

    def stop(self, how=signal.SIGINT):
        """Stop it: SIGINT in order, SIGQUIT as if it had crashed."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def session(self, *more, **popen):
        """Start psql as another client of the server, for a with block."""
        command = [self.program("psql"), "-Xq", "-h", self.folder, "-U", USER, "-d", DATABASE]
        return start([*command, *more], **popen)

    def children(self):
        return procfs.children(self.process.pid)

    def freeze(self):
        """Stop its processes: the kernel takes connections, and nobody answers."""
        self.process.send_signal(signal.SIGSTOP)  # It starts no more of them.
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def die(self):
        """Kill its processes at one moment, so that none sees another's death. Wait until
        they are gone: the next server refuses to start while one still has its memory."""
        self.freeze()
        with contextlib.ExitStack() as stack:
            ends = [os.pidfd_open(pid) for pid in self.children()]
            for end in ends:
                stack.callback(os.close, end)
                signal.pidfd_send_signal(end, signal.SIGKILL)
            self.stop(signal.SIGKILL)
            for end in ends:
                select.select([end], [], [])

    # ---- Replicas ----

    def senders(self):
        """Return the processes that send the log to replicas."""
        return [int(pid) for pid in self.psql("SELECT pid FROM pg_stat_replication")]

    def send_nothing(self):
        """Stop sending to replicas, for good."""
        for pid in self.senders():
            os.kill(pid, signal.SIGSTOP)

    def await_replica(self, state=""):
        """Wait until a replica, one in @state if that is given, has everything."""
        wanted = f" AND sync_state = '{state}'" if state else ""
        there = (
            "SELECT count(*) FROM pg_stat_replication"
            f" WHERE replay_lsn >= pg_current_wal_flush_lsn(){wanted}"
        )
        until(lambda: self.psql(there) != ["0"])

    def wait_for_replicas(self, names):
        """Set synchronous_standby_names."""
        self.psql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.psql("SELECT pg_reload_conf()")
        until(lambda: self.psql("SHOW synchronous_standby_names") == [names])

    def promote(self):
        """Make a replica a server of its own, which takes writes."""
        if self.psql("SELECT pg_promote()") != ["t"]:
            raise RuntimeError("the replica was not promoted")


@contextlib.contextmanager
def folder_of_server():
    # The path of a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="idem-pg-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        who = somebody()
        if who:
            os.chown(folder, who["user"], who["group"])
        yield folder


@contextlib.contextmanager
def server(env=None, **settings):
    """Give a server with an empty database, for a with block. Only its processes get @env."""
    if missing():
        skip(missing())
    with folder_of_server() as folder:
        started = Server(folder, {**FAST, **settings}, env)
        started.make()
        try:
            started.start()
            started.psql(f"CREATE DATABASE {DATABASE}", "postgres")
            yield started
        finally:
            started.stop(signal.SIGQUIT)


@functools.cache
def shared(**settings):
    """Return a server for all tests of this program."""
    return for_all(server(**settings))


@contextlib.contextmanager
def replica(primary, name="replica", **settings):
    """Give a streaming replica of @primary, for a with block, under @name in its settings."""
    with folder_of_server() as folder:
        started = Server(folder, {**FAST, "cluster_name": name, **settings})
        copy = (started.program("pg_basebackup"), "-D", started.data)
        started.run(*copy, "-h", primary.folder, "-U", USER, "-R", "-c", "fast", "--no-sync")
        try:
            started.start()
            yield started
        finally:
            started.stop(signal.SIGQUIT)


class Log:
    """The lines that the server logs from here on."""

    def __init__(self, server):
        self.path = os.path.join(server.folder, "log")
        self.at = os.path.getsize(self.path)

    def text(self):
        with open(self.path, encoding="utf-8") as log:
            log.seek(self.at)
            return log.read()

    def count(self, text):
        return self.text().count(text)

    def transactions(self):
        """Return how many transactions were idem's: those with a statement about its tables.
        The server must have the settings LOGGED."""
        return len(set(re.findall(r" (\d+/\d+) LOG:  execute [^:]*: .*\.idem_", self.text())))


# Settings for it.
LOGGED = {"log_statement": "all", "log_line_prefix": "%m [%p] %v "}


def url_of(*servers):
    """Return one URL with all @servers, as the hosts of one cluster."""
    hosts = ",".join(server.folder for server in servers)
    return f"postgres:///{DATABASE}?host={hosts}&user={USER}"


def main():
    why = missing()
    if why is not None:
        print(f"1..0 # SKIP {why}")
        return 0
    with server() as started:
        env = dict(os.environ, IDEM_TEST_POSTGRES=started.url)
        return subprocess.run(watched(sys.argv[1:]), env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
