"""Whole stores: export and import, counters, versions, stores of several users."""

import json
import os
import random
import sqlite3
import stat
import time

from files import read_bytes, write
from records import HEADER, NOW, line_of, sample
from patience import PATIENCE
from tap import PROGRAM, Idem, equal, main, run, skip, test

NO_RETRY = {"retry": 0, "retry_attempts": 0, "retry_oldest_s": 0}
STATUSES = ["in_progress", "completed", "failed", "unknown", "released"]


def shop(name):
    """A store of this name."""
    return Idem("sqlite:" + os.path.abspath(name))


def run_ok(idem, *args, **rest):
    result = idem(*args, **rest)
    equal((result.status, result.stderr), (0, b""))
    return result.stdout


def records_of(idem, *args):
    """The lines of an export without its header, sorted."""
    lines = run_ok(idem, "export", *args, "-", timeout=120).splitlines()
    equal(json.loads(lines[0])["idem_export"], 1)
    return sorted(lines[1:])


def summary(result, status=0):
    equal(result.status, status)
    return json.loads(result.stdout)


def counts(result, status=0):
    told = summary(result, status)
    return told["added"], told["kept"], told["refused"]


# ---- Export and import -----------------------------------------------------


@test
def ten_thousand_records_survive_the_way():
    """What goes through export and import comes out as it went in."""
    rng = random.Random(1)
    with open("made.jsonl", "w", encoding="ascii") as f:
        f.write(HEADER)
        for n in range(10_000):
            f.write(line_of(*sample(rng, n)) + "\n")
    a, b = shop("a.db"), shop("b.db")

    verified = a("import", "--store", "memory:", "--json", "made.jsonl", timeout=120)
    equal(counts(verified), (10_000, 0, 0))
    assert not os.path.exists("a.db")
    equal(counts(a("import", "--json", "made.jsonl", timeout=120)), (10_000, 0, 0))
    equal(run_ok(a, "export", "a.jsonl", timeout=120), b"exported 10000 records\n")
    equal(stat.S_IMODE(os.stat("a.jsonl").st_mode), 0o600)
    equal([n for n in os.listdir() if n.startswith("a.jsonl.")], [])

    equal(counts(b("import", "--json", "a.jsonl", timeout=120)), (10_000, 0, 0))
    first = records_of(a)
    equal(len(first), 10_000)
    assert first == records_of(b)
    heads = {json.loads(line)["head"] for line in first}
    with open("made.jsonl", encoding="ascii") as f:
        assert heads == {json.loads(line)["head"] for line in list(f)[1:]}

    equal(counts(b("import", "--json", "a.jsonl", timeout=120)), (0, 10_000, 0))
    assert first == records_of(b)
    by_status = [len(records_of(b, "--status", name)) for name in STATUSES]
    equal(by_status, [2000] * 5)
    some = records_of(b, "--scope", "shop-7", "--status", "failed,unknown")
    assert some and all(json.loads(x)["scope"] == "shop-7" for x in some)


def export_of_one():
    idem = shop("a.db")
    run_ok(idem, "run", "-k", "a", "--", "echo", "hello")
    header, line = run_ok(idem, "export", "-").splitlines()
    return header, json.loads(line)


@test
def what_is_no_export_is_not_read():
    """A file without the header of an export adds nothing."""
    idem = shop("b.db")
    _, good = export_of_one()
    good = json.dumps(good).encode()
    for text, status, wanted in [
        (b"", 74, b"it is empty"),
        (b"hello\n", 74, b"not an idem export"),
        (good, 74, b"not an idem export"),
        (b'{"idem_export":2}\n' + good, 78, b"use a newer idem"),
    ]:
        told = idem("import", "--json", input=text)
        equal(counts(told, status), (0, 0, 0))
        assert wanted in told.stderr, told
    told = idem("import", "no-such-file")
    equal((told.status, told.stdout), (64, b""))
    equal(idem("import", "a", "b").status, 64)
    # Exports that were put together are one. What came before a stop is added.
    both = HEADER.encode() + good + b"\n" + HEADER.encode() + good
    equal(counts(idem("import", "--json", input=both)), (1, 1, 0))
    newer = HEADER.encode() + good + b'\n{"idem_export":2}\n'
    equal(counts(shop("c.db")("import", "--json", input=newer), 78), (1, 0, 0))


@test
def an_import_counts_what_it_adds():
    """Of a record that is there, of one that succeeds one that was released there, and of
    one past its retention."""
    a, b = shop("a.db"), shop("b.db")
    run_ok(a, "run", "-k", "there", "--", "true")
    token = run_ok(a, "begin", "-k", "released").decode().strip()
    run_ok(a, "release", "--token", token)
    run_ok(b, "import", input=run_ok(a, "export"))
    run_ok(a, "run", "-k", "released", "--", "true")
    scope, key, record = sample(random.Random(1), 1)
    past = line_of(scope, key, {**record, "expires": NOW - 1})
    lines = run_ok(a, "export") + past.encode()
    equal(counts(b("import", "--json", input=lines)), (1, 2, 0))


@test
def a_damaged_record_stops_no_import():
    """A record that cannot be trusted is told by the line that has its key; the other
    lines are added."""
    a, b = shop("a.db"), shop("b.db")
    for key in ("a", "b"):
        run_ok(a, "run", "-k", key, "--", "true")
    lines = run_ok(a, "export")
    run_ok(b, "run", "-k", "a", "--", "true")
    with sqlite3.connect("b.db") as db:
        db.execute("UPDATE idem_record SET head = x'00' WHERE key = x'61'")
    db.close()
    damaged = [b'"key":"a"' in line for line in lines.splitlines()].index(True) + 1
    told = b("import", "--json", input=lines)
    equal(counts(told, 74), (1, 0, 1))
    equal(summary(told, 74)["refused_lines"], [damaged])


@test
def an_export_replaces_files_and_nothing_else():
    """An export takes the place of a file when it is whole; devices stay."""
    idem = shop("a.db")
    equal(idem("export", "x").status, 78)
    equal(os.listdir(), [])
    run_ok(idem, "run", "-k", "a", "--", "true")
    write("x", "old")
    os.chmod("x", 0o644)
    equal(run_ok(idem, "export", "x"), b"exported 1 record\n")
    equal(stat.S_IMODE(os.stat("x").st_mode), 0o600)
    os.mkfifo("pipe")
    os.symlink("x", "link")
    for name in ("pipe", "link", "/dev/null", "."):
        told = idem("export", name)
        equal(told.status, 64)
        assert b"not a regular file" in told.stderr, told
    equal(idem("export", "no/such").status, 2)
    told = run(["sh", "-c", f"{PROGRAM} export - >/dev/full"], {"IDEM_STORE": idem.store})
    equal(told.status, 2)


@test
def a_damaged_record_is_left_out():
    """An export leaves out what cannot be trusted, says so, and exits 74."""
    idem = shop("a.db")
    for key in ("a", "b"):
        run_ok(idem, "run", "-k", key, "--", "echo", key)
    with sqlite3.connect("a.db") as db:
        db.execute("UPDATE idem_record SET result = x'00' WHERE key = x'61'")
    db.close()
    told = idem("export", "out")
    equal((told.status, told.stdout), (74, b"exported 1 record\n"))
    assert b'"a" cannot be trusted' in told.stderr, told
    equal(run_ok(shop("b.db"), "import", "out"), b"added 1, kept 0, refused 0\n")


# ---- Counters ----------------------------------------------------------------


def stats(idem):
    return json.loads(run_ok(idem, "stats", "--json"))


def counters(idem):
    """The counters that are not 0."""
    return {k: v for k, v in stats(idem)["counters"].items() if v}


@test
def leases_and_purges_are_counted():
    """What a lease did, a takeover and a purge are counted; so are the gauges."""
    idem = shop("a.db")
    for policy in ("hold", "rerun", "hold"):
        key = policy + str(time.time())
        run_ok(idem, "begin", "-k", key, "--lease", "2s", "--retention", "1h",
               "--on-expired-lease", policy)  # fmt: skip
        again = ["begin", "-k", key, "--on-expired-lease", policy]
        if policy == "rerun":
            rerun = again
        else:
            hold = again
    run_ok(idem, "run", "-k", "p", "--lease", "2s", "--retention", "2s", "--", "true")
    time.sleep(2.3)
    equal(stats(idem)["records"]["overdue"], 3)
    equal(idem(*hold).status, 76)
    equal(idem(*rerun).status, 0)
    run_ok(idem, "purge")
    equal(counters(idem), dict(started=5, takeovers=1, completed=1, unknown=1, purged=1))
    now = stats(idem)["records"]
    equal(now, dict(in_progress=2, **NO_RETRY, overdue=1, failed=0, unknown=1, corrupt=0, failed_outcomes=0))


# ---- Versions ----------------------------------------------------------------


@test
def the_store_tells_what_it_is():
    """info says what the file holds."""
    idem = shop("a.db")
    equal(idem("store", "info").status, 78)
    equal(os.listdir(), [])
    for n in range(3):
        run_ok(idem, "run", "-k", f"k{n}", "--", "true")
    run_ok(idem, "begin", "-k", "a")
    told = json.loads(run_ok(idem, "store", "info", "--json"))
    equal(told["path"], os.path.abspath("a.db"))
    equal(told["schema"], 1)
    equal(told["file_bytes"], os.stat("a.db").st_size)
    equal(told["wal_bytes"], os.stat("a.db-wal").st_size)
    assert told["pages"] > 3 and told["page_bytes"] == 4096, told
    assert abs(told["store_ms"] - time.time() * 1000) < 60_000, told
    equal(told["records"], dict(in_progress=1, completed=3, failed=0, unknown=0, released=0))
    equal(idem("store").status, 64)
    equal(idem("store", "shrink").status, 64)


@test
def another_schema_is_left_alone():
    """A store of another schema is refused with 78, byte for byte as it was."""
    for sql, wanted in [
        ("PRAGMA user_version = 2", b"use a newer idem"),
        ("UPDATE idem_clock SET schema = 2", b"use a newer idem"),
        ("PRAGMA user_version = 0", b"no release"),
    ]:
        idem = shop("a.db")
        token = run_ok(idem, "begin", "-k", "a").decode().strip()
        db = sqlite3.connect("a.db", isolation_level=None)
        db.execute(sql)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        before = read_bytes("a.db")
        for args in [
            ["run", "-k", "b", "--", "true"],
            ["begin", "-k", "a"],
            ["complete", "--token", token],
            ["show", "a"],
            ["list"],
            ["stats"],
            ["purge"],
            ["export", "-"],
            ["store", "info"],
        ]:
            told = idem(*args)
            equal((told.status, told.stdout), (78, b""))
            assert wanted in told.stderr, told
            equal(read_bytes("a.db"), before)
        for name in os.listdir():
            os.unlink(name)


# ---- Several users -----------------------------------------------------------

SHARED, OTHER = 60, 61  # Groups, by number: no name is needed.
ANNA, BERT, CARL = 65534, 65533, 65532


def modes():
    """Mode and group of the files of the store, without their directory."""
    return {
        name: (oct(stat.S_IMODE(os.stat(name).st_mode)), os.stat(name).st_gid)
        for name in sorted(os.listdir("."))
        if name.startswith("a.db")
    }


def user(uid, *groups):
    """The program as this user, whose own group is nobody else's."""

    def idem(*args, store):
        process = Idem("sqlite:" + os.path.abspath(store)).start(
            *args, user=uid, group=uid, extra_groups=list(groups)
        )
        with process:
            out, err = process.communicate(timeout=PATIENCE)
            return process.returncode, out, err

    return idem


def become_others():
    if os.geteuid() != 0:
        skip("only root can become somebody else")
    os.mkdir("dir")
    os.chmod(".", 0o755)
    os.chown("dir", 0, SHARED)
    os.chmod("dir", 0o777)
    os.chdir("dir")
    try:
        with Idem().start("help", user=CARL) as process:
            process.communicate()
    except PermissionError:
        skip("the program cannot be reached by another user")


@test
def a_group_shares_a_store():
    """Members of the group of a store use it together; others are denied."""
    become_others()
    anna, bert = user(ANNA, SHARED), user(BERT, SHARED)
    shared = f"a.db?group={SHARED}"
    status, token, err = anna("begin", "-k", "a", store=shared)
    equal((status, err), (0, b""))
    all_shared = {
        name: ("0o660", SHARED)
        for name in ("a.db", "a.db-lock", "a.db-reserve", "a.db-shm", "a.db-wal")
    }
    equal(modes(), all_shared)
    equal(bert("begin", "-k", "a", store="a.db")[0], 75)
    equal(bert("run", "-k", "b", "--", "echo", "hi", store=shared)[:2], (0, b"hi\n"))
    equal(anna("run", "-k", "b", "--", "echo", "hi", store="a.db")[:2], (0, b"hi\n"))
    token = token.decode().strip()
    equal(bert("complete", "--token", token, store="a.db")[0], 0)
    equal(user(CARL)("run", "-k", "c", "--", "true", store="a.db")[0], 77)
    equal(user(CARL)("list", store="a.db")[0], 77)

    # What another member, or root, has to make anew is shared too.
    for maker in (bert, user(0)):
        db = sqlite3.connect("a.db")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        for name in ("a.db-wal", "a.db-shm", "a.db-lock"):
            if os.path.exists(name):
                os.unlink(name)
        equal(maker("begin", "-k", f"{maker}", store="a.db")[0], 78)
        equal(maker("store", "mark-restored", "--yes", store="a.db")[0], 0)
        equal(maker("begin", "-k", f"{maker}", store="a.db")[0], 0)
        equal(modes(), all_shared)
        equal(os.stat("a.db").st_uid, ANNA)
        equal(anna("run", "-k", "d", "--", "true", store="a.db")[0], 0)


@test
def a_group_is_for_its_members_to_give():
    """A store is shared only with a group that there is and that one is in."""
    become_others()
    anna = user(ANNA, SHARED)
    for suffix, status, wanted in [
        (f"?group={OTHER}", 77, b"only its members and root"),
        ("?group=no-such-group", 78, b'unknown group "no-such-group"'),
        ("?group=", 64, b"group=NAME"),
        ("?mode=rw", 64, b'unknown option "mode=rw"'),
        ("?create=yes", 64, b'unknown option "create=yes"'),
        ("?", 64, b"group=NAME"),
    ]:
        told = anna("begin", "-k", "a", store="a.db" + suffix)
        equal(told[:2], (status, b""))
        assert wanted in told[2], told
        equal(modes(), {})
    equal(anna("begin", "-k", "a", store="a.db")[0], 0)
    equal({mode for mode, _ in modes().values()}, {"0o600"})
    told = anna("begin", "-k", "b", store=f"a.db?group={SHARED}")
    equal(told[:2], (78, b""))
    assert b"not shared with group" in told[2], told


if __name__ == "__main__":
    main()
