"""A log says which store an outcome is for, and anybody may have written it: idem
reconcile opens the stores that its user named, and follows no other word."""

import base64
import contextlib
import ctypes
import glob
import json
import os
import re
import socket
import struct

from files import read_bytes, write
import postgres
from kept import kept
from ports import free_port
from tap import PROGRAM, Idem, each, equal, main, note, run, skip, test

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIDHERE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "session-of-this-host",
    "PGPASSWORD": "hunter2",
}

NAMED = 78  # The exit status: an outcome is for a store that was not named.


def put(url, key, store="memory:", journal="from"):
    """An outcome of @key in the journal @journal that is for @url; the attempt is one
    of @store."""
    done = run([os.environ["IDEM_PUT_ENTRIES"], store, journal, key, "3600000", url])
    equal((done.status, done.stderr), (0, b""))


def forms(url):
    """All that can be named and has an outcome for @url: the words after the options,
    and the input."""
    if not os.path.exists("log"):
        put(url, "k")
        (name,) = kept("from", ".idj")
        entry = read_bytes(os.path.join("from", name))
        write("entry", entry)
        with open("log", "w", encoding="ascii") as f:
            json.dump({"message": "outcome", "entry": base64.b64encode(entry).decode()}, f)
            f.write("\n")
    text = read_bytes("log")
    return [(("log",), None), (("-",), text), (("entry",), None), (("from",), None)]


def reconcile(*args, store=None, status=0, input=None, env=None):
    """The rows; and of a status of NAMED, what a dry run without --json says."""
    env = {**SECRETS, **(env or {}), "IDEM_STORE": store}
    done = run([PROGRAM, "reconcile", "--json", *args], env, input)
    equal((args, done.status), (args, status))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if status == NAMED:
        done = run([PROGRAM, "reconcile", *args, *(["-n"] * ("-n" not in args))], env, input)
        equal((args, done.status), (args, status))
    return rows, done.stderr.decode()


def made(name):
    """The URL of a new store."""
    equal(Idem(f"sqlite:{name}.db")("store", "create").status, 0)
    return "sqlite:" + os.path.abspath(f"{name}.db")


def is_listed(url, found):
    """Whether the one outcome is shown as one that is for @url, and was not told."""
    (row,), said = found
    equal((row["state"], row["key"], row["store"], row["problem"]),
          ("waiting", "k", url, "CONFIG"))
    assert "--store" in row["why"], row
    assert re.search(r"^idem: for '?" + re.escape(url) + "'?: name it with --store$",
                     said, re.M), said


def is_told_to_nobody(url, reached):
    """Each form of an outcome for @url, with no store named and with another one, and in
    a dry run: it is listed, and @reached, which says what came there, says nothing."""
    other = made("other")
    for words, input in forms(url):
        for more in ((), ("-n",), ("--store", other), ("--from", other)):
            for store in (None, "", other):
                if "--from" in more and not store:
                    continue  # The one in which all is that names none.
                found = reconcile(*more, *words, store=store, status=NAMED, input=input)
                is_listed(url, found)
                equal((words, more, store, reached()), (words, more, store, None))
    equal(len(kept("from", ".idj")), 1)


# ---- Listeners ----------------------------------------------------------------


@contextlib.contextmanager
def listener():
    """A port that answers nothing, and what is read there: None where nobody ever
    connected. Whoever did is gone before this is asked."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as door:
        door.setblocking(False)

        def reached():
            try:
                who, _ = door.accept()
            except BlockingIOError:
                return None
            with who:
                who.settimeout(10)
                text = b""
                with contextlib.suppress(ConnectionResetError):
                    while more := who.recv(65536):
                        text += more
                return text

        yield door.getsockname()[1], reached


def told(url, store, reached):
    """The control: what comes there once the store is named."""
    got = {}
    for words, input in forms(url)[:1]:
        for more in (("--store", store), ("-n", "--store", store)):
            env = {**SECRETS, "IDEM_STORE": None}
            done = run([PROGRAM, "reconcile", *more, *words], env, input)
            assert done.status != 0, done
            got[more[0]] = reached()
            assert got[more[0]], (more, done)
            while reached() is not None:
                pass  # It may have tried more than once.
    return got


# A store at a port, and what is read there once it is named.
SERVICES = {
    "aws": ("dynamodb://orders?region=eu-west-1&endpoint=http://127.0.0.1:%d/", b"session-of-this-host"),
    "postgresql": ("postgres:///orders?host=127.0.0.1&port=%d&sslmode=disable&user=idem", b"user\0idem\0"),
}  # fmt: skip


@each(SERVICES)
def hears_nothing_for_a_log(service):
    """An outcome for a store at some address opens no connection there, from each form,
    until --store names it; then requests to AWS have the session token."""
    place, words = SERVICES[service]
    if service == "postgresql" and postgres.missing():
        skip(postgres.missing())
    with listener() as (port, reached):
        url = place % port
        is_told_to_nobody(url, reached)
        for more, text in told(url, url, reached).items():
            assert words in text, (more, text)
            note(f"{service}, {more}: {len(text)} bytes, once it is named")


# ---- Files and libraries ------------------------------------------------------


@contextlib.contextmanager
def opens(directory):
    """The names of files in @directory that were opened or made, since it was asked
    last; None: none was."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    in_open, in_create = 0x20, 0x100
    assert fd >= 0 and libc.inotify_add_watch(fd, directory.encode(), in_open | in_create) > 0

    def reached():
        names = set()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(fd, 65536):
                while data:
                    size = struct.unpack_from("iIII", data)[3]
                    names.add(data[16:16 + size].rstrip(b"\0").decode())
                    data = data[16 + size:]
        return names or None

    try:
        yield reached
    finally:
        os.close(fd)


@test
def no_file_is_opened_for_a_log():
    """An outcome for sqlite:PATH neither opens PATH nor makes a file beside it, from each
    form, until --store names it."""
    os.mkdir("victim")
    there = Idem("sqlite:victim/idem.db")
    equal(there("store", "create").status, 0)
    url = "sqlite:" + os.path.abspath("victim/idem.db")
    with opens("victim") as reached:
        is_told_to_nobody(url, reached)
        (row,), _ = reconcile("log", "--store", url, status=80)  # A table has no such attempt.
        equal(row["state"], "lost")
        assert "idem.db" in reached()


@test
def no_library_is_loaded_for_a_log():
    """An outcome for a kind of store that is in another library loads none, from each
    form, until --store names it; and no library is looked for by a name of the URL."""
    url = f"dynamodb://orders?region=eu-west-1&endpoint=http://127.0.0.1:{free_port()}/"
    env = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": os.path.abspath("loader")}

    def reached():
        text = ""
        for path in glob.glob("loader.*"):
            with open(path, encoding="utf-8", errors="replace") as f:
                text += f.read()
            os.unlink(path)
        assert "libc.so.6" in text, text
        return sorted(set(re.findall(r"libidem-\w+\.so", text)))

    run([PROGRAM, "--version"], env)
    if not glob.glob("loader.*"):
        skip("the program loads no libraries")
    for words, input in forms(url):
        for more in ((), ("-n",)):
            is_listed(url, reconcile(*more, *words, status=NAMED, input=input, env=env))
            equal((words, more, reached()), (words, more, []))
    reconcile("log", "--store", "evil:whatever", status=64, env=env)
    equal(reached(), [])
    run([PROGRAM, "reconcile", "log", "--store", url], {**SECRETS, **env})
    equal(reached(), ["libidem-aws.so"])


# ---- Which store is meant ---------------------------------------------------------


@test
def only_the_named_store_is_told():
    """Of a log with outcomes for two stores the one that is named gets its own, and the
    other is listed; the status is not 0 until both were told."""
    urls = {}
    for name in ("a", "b"):
        urls[name] = made(name)
        put(urls[name], name, store=urls[name])
    rows, _ = reconcile("-n", "from", store=urls["a"], status=NAMED)
    equal({(row["key"], row["would_be"]) for row in rows}, {("a", "recorded"), ("b", "waiting")})
    rows, said = reconcile("from", store=urls["a"], status=NAMED)
    equal({(row["key"], row["state"]) for row in rows}, {("a", "recorded"), ("b", "waiting")})
    assert f"for {urls['b']}: name it with --store" in said, said
    rows, _ = reconcile("from", "--store", urls["b"], store=urls["a"])
    equal([(row["key"], row["state"]) for row in rows], [("b", "recorded")])
    equal(kept("from"), [])


@test
def what_this_user_keeps_here_goes_to_its_own_store():
    """The journal that the commands of this user write, without names: each outcome goes
    to its own store, and with --store the others are listed."""
    urls = {}
    for name in ("a", "b"):
        urls[name] = made(name)
        for key in (f"{name}1", f"{name}2"):
            put(urls[name], key, store=urls[name], journal="journal")
    rows, _ = reconcile("-n", "--store", urls["a"], status=NAMED)
    equal(sorted((row["key"], row["would_be"]) for row in rows),
          [("a1", "recorded"), ("a2", "recorded"), ("b1", "waiting"), ("b2", "waiting")])
    rows, _ = reconcile()
    equal({(row["key"], row["state"]) for row in rows},
          {(key, "recorded") for key in ("a1", "a2", "b1", "b2")})
    equal(kept("journal"), [])


@test
def an_outcome_under_another_name_is_recorded():
    """An entry whose URL is not the one that its store has today, as when its directory
    has become a link, is recorded from the journal of this host. In a log, or where
    --store names the store as it is today, it is listed with its URL; who names that
    gets it recorded."""
    os.mkdir("real")
    os.symlink("real", "link")
    made("real/idem")
    real, link = (f"sqlite:{os.path.abspath(d)}/idem.db" for d in ("real", "link"))
    for key, told in ("here", ()), ("k", ("journal", "--store", link)):
        put(link, key, store=real, journal="journal")
        if told:
            is_listed(link, reconcile("--store", real, status=NAMED))
            is_listed(link, reconcile("journal", store=real, status=NAMED))
        (row,), _ = reconcile("-n", *told)
        equal((row["store"], row["would_be"]), (link, "recorded"))
        (row,), _ = reconcile(*told)
        equal((row["store"], row["state"]), (link, "recorded"))
        equal(kept("journal"), [])
        equal(Idem(real)("show", "--output", key).stdout, b"receipt")


@test
def what_is_no_url_is_not_passed_over():
    """An entry whose URL no store can have is listed, and the status says so."""
    real = made("a")
    for url in ("nonsense", "dynamodb://", "sqlite:", "é:\x1b[31m"):
        put(url, "k", store="memory:", journal="journal")
        (row,), said = reconcile("--store", real, status=NAMED)
        equal((row["state"], row["store"], "\x1b" in said), ("waiting", url, False))
        env = {"IDEM_STORE": None}
        done = run([PROGRAM, "reconcile", "--json"], env)
        (row,) = [json.loads(line) for line in done.stdout.splitlines()]
        equal((row["state"], row["store"]), ("waiting", url))
        assert done.status in (64, 78), (url, done)
        equal(run([PROGRAM, "reconcile", "--drop", row["entry"]]).status, 0)


@test
def damage_is_shown_beside_what_is_recorded():
    """A damaged entry is shown and counts, although others of its store are recorded."""
    url = made("a")
    for key in ("good", "torn"):
        put(url, key, store=url, journal="journal")
    rows, _ = reconcile("--list")
    (name,) = [row["entry"] for row in rows if row["key"] == "torn"]
    with open(os.path.join("journal", name), "r+b") as f:
        f.seek(50)
        f.write(b"?")
    rows, _ = reconcile(status=74)
    equal(sorted(row["state"] for row in rows), ["damaged", "recorded"])


if __name__ == "__main__":
    main()
