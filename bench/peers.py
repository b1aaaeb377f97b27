"""The peers' servers: private ones, each in a directory of its own, on a Unix
socket, stopped when the with block ends, however it ends."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import time


class Missing(Exception):
    """A peer that cannot be measured here; the text says why."""


def find(name, *places):
    """The path of a server's program."""
    found = [path for place in places for path in sorted(glob.glob(place))]
    path = shutil.which(name) or (found[-1] if found else None)
    if path is None:
        raise Missing(f"{name} is not installed")
    return path


def unprivileged():
    """For Popen: PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise Missing("root cannot run it, and there is no user postgres") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def server(command, log, how, is_up, **popen):
    """Run @command until the end of the block; stop it with the signal @how. A
    session of its own keeps a Ctrl-C at the terminal from it."""
    with open(log, "ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            **popen,
        )
    try:
        for _ in range(200):
            if process.poll() is not None or is_up():
                break
            time.sleep(0.05)
        if process.poll() is not None or not is_up():
            with open(log, encoding="utf-8", errors="replace") as text:
                raise Missing(f"it does not start: {text.read()[-300:].strip()}")
        yield process.pid
    finally:
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def redis(place, sockets):
    """Each answer is in the log, flushed. Yields (pid, socket)."""
    program = find("redis-server")
    os.mkdir(f"{place}/redis")
    socket = f"{sockets}/redis"
    command = [
        *(program, "--port", "0", "--unixsocket", socket),
        *("--dir", f"{place}/redis", "--save", "", "--appendonly", "yes"),
        # Its log is never written anew: that would cost it time now and then.
        *("--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"),
    ]
    log = f"{place}/redis/log"
    up = lambda: os.path.exists(socket)  # noqa: E731
    with server(command, log, signal.SIGKILL, up) as pid:
        yield pid, socket


@contextlib.contextmanager
def postgres(place, sockets):
    """As it comes; synchronous_commit is on. Yields (pid, socket's folder)."""
    program = find("postgres", "/usr/lib/postgresql/*/bin/postgres")
    home, socket = f"{place}/postgres", f"{sockets}/postgres"
    who = unprivileged()
    for path in (home, socket):
        os.mkdir(path, 0o700)
        if who:
            os.chown(path, who["user"], who["group"])
    initdb = os.path.join(os.path.dirname(os.path.realpath(program)), "initdb")
    made = subprocess.run(
        [initdb, "-D", f"{home}/data", "-U", "bench", "-A", "trust", "--locale=C"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **who,
    )
    if made.returncode != 0:
        raise Missing(f"initdb: {made.stderr.strip()[-300:]}")
    command = [
        *(program, "-D", f"{home}/data", "-k", socket, "-c", "listen_addresses="),
        *("-c", "max_connections=200"),
    ]
    up = lambda: os.path.exists(f"{socket}/.s.PGSQL.5432")  # noqa: E731
    with server(command, f"{place}/postgres.log", signal.SIGINT, up, cwd="/", **who) as pid:
        yield pid, socket


SERVERS = {"redis": redis, "postgres": postgres}
