"""idem store copy: every record arrives as it was, however often it is begun."""

import contextlib
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

import dynamo
from checks import server
from records import HEADER, line_of, sample
from ports import free_port
from tap import LONG, PROGRAM, SANITIZED, Idem, environment, equal, main, note, run, test

ENV = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}


class Store(Idem):
    """A store at the URL @store, with credentials that no emulator looks at."""

    def __call__(self, *args, env=None, **rest):
        return super().__call__(*args, env={**ENV, **(env or {})}, timeout=120, **rest)


@contextlib.contextmanager
def place(kind, name):
    """A store in a new file, or in a new table."""
    if kind == "file":
        yield Store("sqlite:" + os.path.abspath(name + ".db"))
        return
    with server(kind) as (_, url):
        store = Store(url)
        equal(store("store", "create").status, 0)
        yield store


def lines_of(store):
    """The records of a store, as an export has them."""
    done = store("export", "-")
    equal((done.status, done.stderr), (0, b""))
    return sorted(done.stdout.splitlines()[1:])


def fill(store, n, seed=1, large=0, open_too=False):
    """Add @n records of all kinds; one has a result of @large bytes."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        scope, key, record = sample(rng, i)
        if record["status"] == 1 and not open_too:
            record["status"], record["flags"] = 4, 2
        if i == 1 and large:
            record["result"] = rng.randbytes(large)
        lines.append(line_of(scope, key, record))
    done = store("import", "--json", "-", input=(HEADER + "\n".join(lines)).encode())
    equal((done.status, done.stderr), (0, b""))
    equal(json.loads(done.stdout)["added"], n)


def copy(source, target, *options, status=0):
    """What a copy counted, without what is 0."""
    done = run([PROGRAM, "store", "copy", "--json", "--from", source.store, "--to",
                target.store, *options], ENV, timeout=120)
    equal((done.status, done.stderr if status == 0 else b""), (status, b""))
    return {name: count for name, count in json.loads(done.stdout).items() if count}


def every_way(kinds, n):
    """Copy from the first place to the second, from there to the third ..."""
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(place(kinds[0], "0"))
        fill(a, n, large=1_500_000)
        wanted = lines_of(a)
        equal(len(wanted), n)
        for i, kind in enumerate(kinds[1:], 1):
            b = stack.enter_context(place(kind, str(i)))
            equal(copy(a, b), {"copied": n})
            equal(lines_of(b), wanted)
            equal(copy(a, b), {"same": n})
            equal((lines_of(a), lines_of(b)), (wanted, wanted))
            note(f"{n} records from {kinds[i - 1]} to {kind}, twice")
            a = b


@test
def from_a_file_to_a_file():
    """From a file to a file every record arrives with its bodies, fence, times and
    verdict; a second copy changes nothing."""
    every_way(("file", "file"), 2000)


@test
def from_a_file_to_tables_and_back():
    """From a file to a table, from there to a table of another server, and from there to
    a file, likewise."""
    every_way(("file", "local", "dynoxide", "file"), 1000 if LONG else 60)


@test
def replays_go_on_at_the_target():
    """What ran at the source is replayed at the target, and does not run again."""
    work = ("run", "-k", "a", "--", "sh", "-c", "echo out; echo err >&2; echo x >>effects; exit 3")
    with place("file", "a") as a, place("dynoxide", "b") as b:
        first = a(*work)
        equal(first.status, 3)
        equal(copy(a, b), {"copied": 1})
        equal(b(*work), first)
        with open("effects", encoding="ascii") as f:
            equal(f.read(), "x\n")
        # Control: where nothing was copied it runs again.
        equal(Store("sqlite:" + os.path.abspath("c.db"))(*work), first)
        with open("effects", encoding="ascii") as f:
            equal(f.read(), "x\nx\n")


# ---- What is in progress ----


def show(store, key):
    done = store("show", "--json", key)
    return json.loads(done.stdout) if done.status == 0 else done.status


@test
def attempts_in_progress_are_left_out():
    """An attempt in progress is left out, which is no success; when it has ended, the
    next copy brings it."""
    for kind in ("file", "dynoxide"):
        with place("file", f"a-{kind}") as a, place(kind, f"b-{kind}") as b:
            fill(a, 20)
            token = a("begin", "-k", "open", "--on-expired-lease", "hold").stdout.decode().strip()
            equal(copy(a, b, status=75), {"copied": 20, "in_progress": 1})
            equal(show(b, "open"), 1)
            done = a("complete", "--self", "--result", "-", input=b"42", env={"IDEM_TOKEN": token})
            equal(done.status, 0)
            equal(copy(a, b), {"copied": 1, "same": 20})
            equal(lines_of(b), lines_of(a))


@test
def attempts_in_progress_can_be_unknown():
    """With --open unknown it is unknown at the target: nobody runs it there, its owner
    cannot end it there, and can at the source."""
    for kind in ("file", "dynoxide"):
        with place("file", f"a-{kind}") as a, place(kind, f"b-{kind}") as b:
            begin = ("begin", "-k", "open", "--on-expired-lease", "rerun", "--lease", "4s")
            token = a(*begin).stdout.decode().strip()
            before = lines_of(a)
            equal(copy(a, b, "--open", "unknown"), {"copied": 1, "unknown": 1})
            equal(lines_of(a), before)
            there = show(b, "open")
            equal((there["status"], there["fence"]), ("unknown", show(a, "open")["fence"]))
            assert "in progress in " in there["note"], there
            equal(b(*begin).status, 76)
            time.sleep(4.2)
            equal(b(*begin).status, 76)
            owner = {"IDEM_TOKEN": token}
            equal(b("complete", "--self", "--result", "-", input=b"42", env=owner).status, 80)
            equal(copy(a, b, "--open", "unknown"), {"newer": 1})
            equal(copy(a, b), {"newer": 1})
            equal(show(b, "open"), there)
            # The target says less than the source by now: a person must look.
            equal(a("complete", "--self", "--result", "-", input=b"42", env=owner).status, 0)
            equal(copy(a, b, status=76), {"differ": 1})
            equal(show(b, "open"), there)


# ---- What is at the target ----


def put(store, key, **changes):
    scope, _, record = sample(random.Random(key), 1)
    record.update(status=2, flags=0, error=b"", note=b"", later=b"", expires=2**63 - 1)
    record.update(changes)
    line = line_of(scope, key.encode(), record)
    equal(store("import", "-", input=(HEADER + line).encode()).status, 0)


@test
def nothing_is_written_over():
    """A record at the target that is newer stays, and is counted; one that is not newer
    stays too, and a person is told."""
    for kind in ("file", "dynoxide"):
        with place("file", f"a-{kind}") as a, place(kind, f"b-{kind}") as b:
            for key, fence in (("higher", 12), ("lower", 10), ("equal", 11), ("resolved", 11)):
                status = 4 if key == "resolved" else 2
                put(a, key, fence=11, status=status, flags=2 if status == 4 else 0,
                    result=b"" if status == 4 else b"ours")
                put(b, key, fence=fence, result=b"theirs")
            put(b, "only there", fence=5)
            before = lines_of(b)
            for _ in range(2):
                equal(copy(a, b, status=76), {"newer": 2, "differ": 2})
                equal(lines_of(b), before)
            done = run([PROGRAM, "store", "copy", "--from", a.store, "--to", b.store], ENV)
            equal(done.stderr.count(b"has another record"), 2)


@test
def what_was_released_does_not_hide_what_came_after():
    """A released record that was copied gives way to what came of the next attempt."""
    for kind in ("file", "dynoxide"):
        with place("file", f"a-{kind}") as a, place(kind, f"b-{kind}") as b:
            equal(a("run", "-k", "a", "--", "sh", "-c", "exit 75").status, 75)
            equal(copy(a, b), {"copied": 1})
            work = ("run", "-k", "a", "--", "sh", "-c", f"echo x >>effects-{kind}; echo done")
            first = a(*work)
            equal((first.status, first.stdout), (0, b"done\n"))
            equal(copy(a, b), {"copied": 1})
            equal(lines_of(b), lines_of(a))
            equal(b(*work), first)
            with open(f"effects-{kind}", encoding="ascii") as f:
                equal(f.read(), "x\n")
            equal(b("run", "-k", "b", "--", "sh", "-c", "exit 75").status, 75)
            equal(copy(b, a), {"copied": 1, "same": 1})
            equal(b("run", "-k", "b", "--", "true").status, 0)
            equal(copy(a, b), {"same": 1, "newer": 1})


# ---- What goes wrong ----


@test
def records_that_cannot_be_trusted_are_left_out():
    """A damaged record is named and left out; all others arrive."""
    with place("file", "a") as a, place("file", "b") as b:
        fill(a, 50)
        run(["sqlite3", "a.db", "UPDATE idem_record SET head = CAST(substr(head, 1, 30) || x'ff' "
             "|| substr(head, 32) AS BLOB) WHERE seq IN (SELECT seq FROM idem_record LIMIT 2)"])
        equal(copy(a, b, status=74), {"copied": 48, "corrupt": 2})
        equal(copy(a, b, status=74), {"same": 48, "corrupt": 2})


@test
def wrong_stores_are_refused():
    """The same store, one in memory, one that is missing: refused, and nothing is made."""
    with place("file", "a") as a, place("dynoxide", "b") as table:
        fill(a, 3)
        os.mkdir("real")
        fill(Store("sqlite:" + os.path.abspath("real/x.db")), 1)

        def status(source, target, *more):
            done = run([PROGRAM, "store", "copy", "--from", source, "--to", target, *more], ENV)
            assert done.stderr, done
            return done.status

        equal(status(a.store, a.store), 64)
        equal(status("sqlite:real/x.db", "sqlite:" + os.getcwd() + "/real/../real/x.db"), 64)
        equal(status(table.store, table.store + "&region=eu-west-1"), 64)
        equal(status(a.store, "memory:"), 64)
        equal(status(a.store, "sqlite:new.db", "--store", a.store), 64)
        equal(status(a.store, "sqlite:new.db", "--open", "keep"), 64)
        equal(run([PROGRAM, "store", "copy", "--from", a.store], ENV).status, 64)
        equal(run([PROGRAM, "store", "copy", "--to", a.store], ENV).status, 64)
        equal(status("sqlite:none.db", "sqlite:new.db"), 78)
        equal(os.path.exists("new.db") or os.path.exists("none.db"), False)
        equal(status(a.store, table.store.replace("orders", "missing")), 78)
        nowhere = f"dynamodb://orders?endpoint=http://127.0.0.1:{free_port()}"
        equal(status(nowhere, a.store), 69)
        equal(status(a.store, nowhere), 69)
        equal(len(lines_of(a)), 3)


def lines_so_far(store):
    """Likewise, of a store that may have no tables yet."""
    done = store("export", "-")
    assert done.status in (0, 78), done
    return sorted(done.stdout.splitlines()[1:])


def killed(kind, n):
    """Kill copies until one of them has left a part behind."""
    with place("file", "a") as a, place(kind, "scratch") as scratch:
        fill(a, n)
        begun = time.monotonic()
        equal(copy(a, scratch), {"copied": n})
        whole = time.monotonic() - begun
        for target in "bcdef":
            kills, partly = killed_until_it_ends(kind, n, a, target, whole)
            if partly:
                break
            whole /= 2  # The first one was slow.
        assert kills >= 1 and partly >= 1, (kills, partly)


def killed_until_it_ends(kind, n, a, target, whole):
    """Kill a copy, which takes about @whole seconds, again and again, until one comes
    through: (how many were killed, how many left a part behind)."""
    with place(kind, target) as b:
        wanted = lines_of(a)
        command = [PROGRAM, "store", "copy", "--from", a.store, "--to", b.store]
        rng = random.Random(7)
        kills, partly = 0, 0
        while kills < (60 if LONG else 12):
            with subprocess.Popen(command, env=environment(ENV), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(rng.uniform(0.1, 0.6) * whole)
                process.send_signal(signal.SIGKILL)
                process.wait()
            kills += process.returncode == -signal.SIGKILL
            if process.returncode == 0:
                break
            there = lines_so_far(b)
            assert set(there) <= set(wanted)
            partly += 0 < len(there) < n
        told = copy(a, b)
        equal(sum(told.values()), n)
        equal(lines_of(b), wanted)
        note(f"{kind}: {kills} copies of {n} records killed, {partly} left a part behind, "
             f"the last one added {told.get('copied', 0)}")
        return kills, partly


@test
def a_copy_that_is_killed_is_begun_again():
    """Killed at any moment and run again until it ends, a copy is whole, and had nothing
    in it in between that the source does not have."""
    killed("file", 20_000 if LONG else 4000)
    for path in glob.glob("a.db*"):
        os.unlink(path)
    killed("dynoxide", 3000 if LONG else 600)


SMALL = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@test
def little_memory_is_enough():
    """A store of 40 MiB is copied in a fraction of that."""
    with place("file", "a") as a, place("file", "b") as b:
        rng = random.Random(3)
        n = 640
        with open("made.jsonl", "w", encoding="ascii") as f:
            f.write(HEADER)
            for i in range(n):
                scope, key, record = sample(rng, i)
                record.update(status=2, flags=0, error=b"", note=b"",
                              result=rng.randbytes(65536))
                f.write(line_of(scope, key, record) + "\n")
        equal(a("import", "made.jsonl").status, 0)
        command = [PROGRAM, "store", "copy", "--json", "--from", a.store, "--to", b.store]
        # What a process may have used before it began counts too: so by a small one.
        done = run([sys.executable, "-S", "-c", SMALL, *command], ENV, timeout=120)
        told, used = (json.loads(line) for line in done.stdout.splitlines())
        equal((done.status, told["copied"]), (0, n))
        note(f"{n * 65536 >> 20} MiB of results, {used >> 10} MiB of memory at most")
        # The sanitizers keep what was freed.
        if not SANITIZED:
            assert used < 32 << 10, used


if __name__ == "__main__":
    sys.exit(main())
