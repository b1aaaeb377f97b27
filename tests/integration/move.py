"""idem export --open | idem import: a store moves, and is never in two places at once."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading

import dynamo
from files import read
import postgres
from checks import store_of
from patience import PATIENCE, until
from ports import free_port
from records import HEADER, line_of, sample
from tap import (
    LONG,
    PROGRAM,
    Idem,
    Result,
    environment,
    equal,
    main,
    note,
    run,
    test,
)

ENV = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}
TIMEOUT = 170


class Store(Idem):
    """A store at the URL @store, with credentials that no emulator looks at."""

    def __call__(self, *args, env=None, **rest):
        return super().__call__(*args, env={**ENV, **(env or {})}, timeout=TIMEOUT, **rest)


def in_file(name):
    return Store("sqlite:" + os.path.abspath(name + ".db"))


@contextlib.contextmanager
def place(kind, name):
    """A store in a new file, in a new table, or in a new database."""
    if kind == "file":
        yield in_file(name)
        return
    with store_of(kind, Store) as store:
        yield store


def lines_of(store):
    """The records of a store, as an export has them."""
    done = store("export", "-")
    equal((done.status, done.stderr), (0, b""))
    return sorted(done.stdout.splitlines()[1:])


def fill(store, n, seed=1, large=0):
    """Add @n records that nobody owns; one has a result of @large bytes."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        scope, key, record = sample(rng, i)
        if record["status"] == 1:
            record["status"], record["flags"] = 4, 0
        record["flags"] &= ~2  # By its lease: its owner could still end it.
        if i == 1 and large:
            record["result"] = rng.randbytes(large)
        lines.append(line_of(scope, key, record))
    done = store("import", "--json", "-", input=(HEADER + "\n".join(lines)).encode())
    equal((done.status, done.stderr), (0, b""))
    equal(json.loads(done.stdout)["added"], n)


def command(store, *args):
    return [PROGRAM, *args[:1], "--store", store.store, *args[1:]]


def leaving(source, *options):
    return command(source, "export", "--open", *options, "-")


def read_from(pipe, words, env=None):
    """How @words ended, whose standard input is @pipe, which is closed then."""
    with subprocess.Popen(words, env=environment({**ENV, **(env or {})}), stdin=pipe,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(pipe)
        stdout, stderr = process.communicate(timeout=TIMEOUT)
    return Result(process.returncode, stdout, stderr)


def move(source, target, *options, into=()):
    """The statuses of both sides, what the target counted without what is 0, and what
    they said."""
    stdout, stdin = os.pipe()
    with subprocess.Popen(leaving(source, *options), env=environment(ENV), stdout=stdin,
                          stderr=subprocess.PIPE) as left:
        os.close(stdin)
        done = read_from(stdout, command(target, "import", "--json", *into, "-"))
        said = left.stderr.read()
    told = {name: n for name, n in json.loads(done.stdout or b"{}").items() if n}
    return (left.returncode, done.status), told, said + done.stderr


def begins(store, key):
    """Whether work begins at @store, and ends there as released."""
    done = store("run", "-k", key, "--", "sh", "-c", "exit 75")
    assert done.status in (75, 78), done
    return done.status == 75


def every_way(kinds, n):
    """Move from the first place to the second, from there to the third ..."""
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(place(kinds[0], "0"))
        fill(a, n, large=1_500_000)
        wanted = lines_of(a)
        equal(len(wanted), n)
        for i, kind in enumerate(kinds[1:], 1):
            b = stack.enter_context(place(kind, str(i)))
            equal(move(a, b), ((0, 0), {"added": n, "moved": True}, b""))
            equal(lines_of(b), wanted)
            # Once more: it is the same move, and nothing changes. A table takes its time.
            if LONG or kinds[i - 1] in ("file", "postgresql"):
                equal(move(a, b), ((0, 0), {"kept": n, "moved": True}, b""))
            equal((lines_of(a), lines_of(b)), (wanted, wanted))
            equal(begins(a, "of a moved store"), False)
            note(f"{n} records from {kinds[i - 1]} to {kind}")
            a = b
        equal(begins(a, "of a moved store"), True)


@test
def from_a_file_to_a_file():
    """From a file to a file every record arrives with its bodies, fence, times and
    verdict; the same once more changes nothing."""
    every_way(("file", "file"), 2000)


@test
def from_a_file_to_postgresql_and_back():
    """From a file to PostgreSQL, and from there to a file, likewise."""
    every_way(("file", "postgresql", "file"), 600)


@test
def from_a_file_to_tables_and_back():
    """From a file to a table, from there to a table of another server, and from there to
    a file, likewise."""
    every_way(("file", "local", "dynoxide", "file") if LONG else ("file", "dynoxide", "file"),
              1000 if LONG else 60)


@test
def replays_go_on_at_the_target():
    """What ran at the source is replayed at the target, and does not run again; the source
    says where to go, with 78."""
    work = ("run", "-k", "a", "--", "sh", "-c", "echo out; echo err >&2; echo x >>effects; exit 3")
    a, b = in_file("a"), in_file("b")
    first = a(*work)
    equal(first.status, 3)
    to = "postgres://ann:secret@db.example.com/idem"
    equal(move(a, b, "--to", to)[0], (0, 0))
    equal(b(*work), first)
    limit = ("limit", "-n", "calls", "-u", "ann", "-r", "1", "--max", "3", "--per", "hour")
    for words in work, ("run", "-k", "b", "--", "true"), ("begin", "-k", "a"), limit:
        refused = a(*words)
        equal((words, refused.status), (words, 78))
        assert b"moved to postgres://ann" in refused.stderr, refused
        assert b"secret" not in refused.stderr, refused
    equal(read("effects"), "x\n")
    # Control: where nothing was moved it runs again.
    equal(in_file("c")(*work), first)
    equal(read("effects"), "x\nx\n")


# ---- What is in progress ----


def show(store, key):
    done = store("show", "--json", key)
    return json.loads(done.stdout) if done.status == 0 else done.status


def token_of(store, key, *options):
    done = store("begin", "-k", key, *options)
    equal((done.status, done.stderr), (0, b""))
    return {"IDEM_TOKEN": done.stdout.decode().strip()}


@test
def work_in_progress_is_waited_for():
    """The move waits for what is in progress; its owner renews and ends it at the source,
    and the target has what came of it."""
    for kind in ("file", "postgresql"):
        with place(kind, "a") as a:
            b = in_file("b-" + kind)
            fill(a, 20)
            owners = [token_of(a, key, "--on-expired-lease", "hold") for key in ("x", "y")]
            result = []
            mover = threading.Thread(target=lambda: result.append(move(a, b, "--wait", "10m")))
            mover.start()
            try:
                until(lambda: not begins(a, "probe"), "the mark of the move")
                equal(a("renew", "--self", env=owners[0]).status, 0)
                equal(a("complete", "--self", "--result", "-", input=b"42", env=owners[0]).status, 0)
                equal(a("retry", "--self", env=owners[1]).status, 0)
            finally:
                for owner in owners:
                    a("release", "--self", env=owner)
                mover.join()
            probes = len([line for line in lines_of(b) if b'"probe"' in line])
            equal(result, [((0, 0), {"added": 22 + probes, "moved": True}, b"")])
            equal(lines_of(b), lines_of(a))
            equal(b("show", "--output", "x").stdout, b"42")
            equal(show(b, "y")["status"], "retry")


@test
def what_remains_is_unknown():
    """What is still in progress is unknown at the target: nobody runs it there, its owner
    cannot end it there, and can at the source."""
    for kind in ("file", "dynoxide", "postgresql"):
        with place(kind, f"b-{kind}") as b:
            a = in_file(f"a-{kind}")
            begin = ("begin", "-k", "open", "--on-expired-lease", "rerun")
            owner = token_of(a, *begin[2:])
            statuses, told, said = move(a, b, "--wait", "0s")
            equal((statuses, told), ((0, 0), {"added": 1, "moved": True}))
            assert b"1 were still in progress" in said, said
            there, here = show(b, "open"), show(a, "open")
            equal((there["status"], there["fence"]), ("unknown", here["fence"]))
            assert "in progress in sqlite:" in there["note"], there
            equal(b(*begin).status, 76)
            equal(b("complete", "--self", "--result", "-", input=b"42", env=owner).status, 80)
            equal(b("unknown", "--self", env=owner).status, 80)
            equal(a("complete", "--self", "--result", "-", input=b"42", env=owner).status, 0)
            equal(show(b, "open"), there)


@test
def an_end_by_the_lease_stays_so():
    """Of an attempt that only its lease has ended the owner can say at the source how it
    ended, and not at the target."""
    a, b = in_file("a"), in_file("b")
    owner = token_of(a, "open", "--lease", "2s")
    until(lambda: a("begin", "-k", "open").status == 76, "the end of the lease")
    equal(move(a, b), ((0, 0), {"added": 1, "moved": True}, b""))
    there = show(b, "open")
    equal(b("complete", "--self", "--result", "-", input=b"42", env=owner).status, 80)
    equal(a("complete", "--self", "--result", "-", input=b"42", env=owner).status, 0)
    equal((there["status"], show(b, "open")), ("unknown", there))


@test
def an_attempt_that_ended_between_two_tries_is_told_of():
    """What a first try took over as unknown stays so, though it has ended since: a person
    is told to look at both, and the move completes."""
    a, b = in_file("a"), in_file("b")
    owner = token_of(a, "open")
    equal(a("run", "-k", "done", "--", "true").status, 0)
    export = a("export", "--open", "--wait", "0s", "-")
    equal(export.status, 0)
    lines = export.stdout.splitlines(keepends=True)
    equal(len(lines), 4)
    equal(b("import", "-", input=b"".join(lines[:3])).status, 75)
    equal(a("complete", "--self", "--result", "-", input=b"42", env=owner).status, 0)
    statuses, told, said = move(a, b)
    equal((statuses, told), ((0, 0), {"kept": 2, "moved": True}))
    equal(said.count(b"see both: idem show"), 1)
    equal((show(b, "open")["status"], show(a, "open")["status"]), ("unknown", "completed"))


@test
def a_move_that_is_complete_changes_nothing_more():
    """Said once more when the target is in use, the move is complete, and what was done
    there since stays."""
    a, b = in_file("a"), in_file("b")
    equal(a("run", "-k", "k", "--", "sh", "-c", "exit 75").status, 75)
    equal(move(a, b), ((0, 0), {"added": 1, "moved": True}, b""))
    equal(b("run", "-k", "k", "--", "true").status, 0)
    wanted = lines_of(b)
    equal(move(a, b), ((0, 0), {"kept": 1, "moved": True}, b""))
    equal(lines_of(b), wanted)


def put(store, key, **changes):
    scope, _, record = sample(random.Random(key), 1)
    record.update(status=2, flags=0, error=b"", note=b"", later=b"", expires=2**63 - 1)
    record.update(changes)
    line = line_of(scope, key.encode(), record)
    equal(store("import", "-", input=(HEADER + line).encode()).status, 0)


@test
def nothing_is_written_over():
    """A record of another attempt that came into the target while it was filled stays, and
    keeps it closed; one that has changed stays, and a person is told."""
    for kind in ("file", "dynoxide"):
        a = in_file(f"a-{kind}")
        with place(kind, f"b-{kind}") as b:
            for key in ("changed", "higher", "lower"):
                put(a, key, fence=11, result=b"ours")
            header = a("export", "--open", "-").stdout.splitlines(keepends=True)[0]
            equal(b("import", "-", input=header).status, 75)
            for key, fence in (("changed", 11), ("higher", 12), ("lower", 10)):
                put(b, key, fence=fence, result=b"theirs")
            before = lines_of(b)
            for _ in range(2):
                statuses, told, said = move(a, b)
                equal((statuses, told), ((0, 76), {"kept": 3}))
                equal(said.count(b"has a different attempt"), 2)
                equal(said.count(b"see both: idem show"), 1)
                equal((lines_of(b), begins(b, "k")), (before, False))


# ---- A move that was cut short ----


@test
def without_its_last_line_nothing_begins():
    """Cut off after any line, or with a line of a record left out, an export opens no
    store; the whole of it does, into the same store."""
    for kind in ("file", "postgresql", "dynoxide"):
        with place(kind, f"b-{kind}") as b:
            a = in_file(f"a-{kind}")
            fill(a, 4)
            export = a("export", "--open", "-")
            equal((export.status, export.stderr), (0, b""))
            lines = export.stdout.splitlines(keepends=True)
            equal(len(lines), 6)
            for n in range(1, 6):
                done = b("import", "-", input=b"".join(lines[:n]))
                equal((n, done.status), (n, 75))
                assert b"is incomplete" in done.stderr, done
                equal(begins(b, "k"), False)
            done = b("import", "-", input=b"".join(lines[:2] + lines[3:]))
            equal(done.status, 74)
            equal(begins(b, "k"), False)
            bad = lines[2].replace(b'"head":"SURS', b'"head":"SURT')
            done = b("import", "-", input=b"".join([*lines[:2], bad, *lines[3:]]))
            equal(done.status, 74)
            equal(begins(b, "k"), False)
            done = b("import", "--json", "-", input=export.stdout)
            equal((done.status, done.stderr), (0, b""))
            equal(begins(b, "k"), True)


def state(store):
    """The mark of a store in a file; None: there is none yet."""
    path = store.store.removeprefix("sqlite:")
    if not os.path.exists(path):
        return None
    done = run(["sqlite3", "-readonly", path, "SELECT mark FROM idem_clock"])
    return done.stdout.decode().split(" ")[0].strip() if done.status == 0 else None


def replays(store):
    """Whether the store answers for what was done before."""
    status = store("begin", "-k", "done").status
    assert status in (10, 78), status
    return status == 10


def assert_one_answers(a, b):
    """At most one of both does: the target, when all has come in, and the source only
    before it was marked. Return where they are."""
    source, target = state(a), state(b)
    equal(replays(a), source == "")
    if target:
        equal((source, target in ("filling", "here")), ("left", True))
        equal(replays(b), target == "here")
    if source == "":
        assert target in (None, ""), target
    return source, target


def killed_at(side, step, a, b):
    """Move with one side killed at its @step-th step of SQLite; False: it has fewer."""
    kill = {"KILL_AT": step, "LD_PRELOAD": os.environ["IDEM_KILL_AT"]}
    pipe = os.pipe()
    with subprocess.Popen(leaving(a), stdout=pipe[1], stderr=subprocess.DEVNULL,
                          env=environment({**ENV, **(kill if side == "export" else {})})) as left:
        os.close(pipe[1])
        done = read_from(pipe[0], command(b, "import", "-"), kill if side == "import" else {})
    killed = left.returncode if side == "export" else done.status
    if killed != -signal.SIGKILL:
        equal((killed, step > 8), (0, True))
    return killed == -signal.SIGKILL


@test
def killed_at_any_step_the_move_is_repeated():
    """Killed before and after any statement of either side, a move leaves one store that
    answers, or none until it is repeated; then the target answers, with all of it."""
    where = {}
    for side in ("export", "import"):
        step, kills, last = 0, 0, 0
        while True:
            step += 1 if LONG or step < 20 or last else 5
            for name in os.listdir("."):
                if ".db" in name:
                    os.unlink(name)
            a, b = in_file("a"), in_file("b")
            fill(a, 5)
            equal(a("run", "-k", "done", "--", "true").status, 0)
            wanted = lines_of(a)
            if not killed_at(side, step, a, b):
                if LONG or last:
                    break
                step, last = step - 10, step  # One by one, up to the last.
                continue
            kills += 1
            places = assert_one_answers(a, b)
            where[places] = where.get(places, 0) + 1
            equal(move(a, b)[0], (0, 0))
            equal(lines_of(b), wanted)
            equal(assert_one_answers(a, b), ("left", "here"))
        note(f"{side} killed {kills} times")
    note(f"source and target were then: {where}")
    assert ("", "") in where and ("left", "filling") in where, where
    assert ("left", "here") in where, where


# ---- While it is in use ----


def work(a, b, key, arrives):
    """Run the work of @key at @a, or at @b where that says that it was moved."""
    script = f"echo x >>effects-{key}"
    store = a

    def is_done():
        nonlocal store
        done = store("run", "-q", "-k", key, "--", "sh", "-c", script)
        assert done.status in (0, 75, 76, 78), (key, done)
        if done.status == 78 and store is a:
            until(arrives, "the move at the target")
            store = b
        return done.status in (0, 76)

    until(is_done, f"the work of {key}", 2 * PATIENCE)
    return store is b


def in_use(kind, target, keys):
    with place(kind, f"a-{kind}-{target}") as a, place(target, f"b-{kind}-{target}") as b:
        got, todo, over = {}, list(range(keys)), threading.Event()

        def arrives():
            """The target is not one that nobody moves to."""
            return over.is_set() or len(b("export", "-").stdout.splitlines()) > 1

        def worker():
            with contextlib.suppress(IndexError):
                while True:
                    key = todo.pop()
                    got[key] = work(a, b, f"{kind}-{target}-{key // 2}", arrives)

        workers = [threading.Thread(target=worker) for _ in range(3)]
        for each in workers:
            each.start()
        until(lambda: len(got) > keys // 5)
        statuses, told, said = move(a, b)
        over.set()
        for each in workers:
            each.join()
        equal((statuses, told.get("moved"), said), ((0, 0), True, b""))
        equal(len(got), keys)
        for key in range(keys // 2):
            equal((key, read(f"effects-{kind}-{target}-{key}")), (key, "x\n"))
        late = sum(got.values())
        assert 0 < late < keys, late
        note(f"{kind} to {target}: {late} of {keys} came after the move")


@test
def nothing_is_done_twice_while_a_table_moves():
    """Likewise from a table, whose users do not hear at once that it was moved."""
    in_use("dynoxide", "file", 300 if LONG else 120)


@test
def the_export_waits_for_claims_that_may_not_know_the_mark():
    """In PostgreSQL a transaction that began before the mark was set may still add a claim:
    the export lists nothing before that has ended."""
    with postgres.server() as started:
        a = Store(started.url)
        equal(a("store", "create").status, 0)
        table = "idem.idem_record"
        claim = f"BEGIN; LOCK TABLE {table} IN ROW EXCLUSIVE MODE; SELECT pg_backend_pid();"
        with subprocess.Popen(
            [started.program("psql"), "-XAtq", "-h", started.folder, "-U", postgres.USER,
             "-d", postgres.DATABASE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as session:
            session.stdin.write(claim + "\n")
            session.stdin.flush()
            assert session.stdout.readline().strip().isdigit()
            with subprocess.Popen(leaving(a), env=environment(ENV),
                                  stdout=subprocess.PIPE) as left:
                waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND " \
                        f"relation = '{table}'::regclass"
                until(lambda: started.psql(waits) != ["0"] or left.poll() is not None)
                equal(left.poll(), None)
                session.stdin.write("COMMIT;\n")
                session.stdin.close()
                lines = left.stdout.read().splitlines()
            equal((left.returncode, len(lines)), (0, 2))


# ---- What goes wrong ----


@test
def records_that_cannot_be_trusted_keep_the_target_closed():
    """A damaged record is named and left out, and its work would be run again: so the move
    has no last line, and nothing begins at the target."""
    a, b = in_file("a"), in_file("b")
    fill(a, 50)
    run(["sqlite3", "a.db", "UPDATE idem_record SET head = CAST(substr(head, 1, 30) || x'ff' "
         "|| substr(head, 32) AS BLOB) WHERE seq IN (SELECT seq FROM idem_record LIMIT 2)"])
    statuses, told, said = move(a, b)
    equal((statuses, told), ((74, 75), {"added": 48}))
    equal(said.count(b"cannot be trusted"), 2)
    equal((begins(a, "k"), begins(b, "k")), (False, False))


@test
def a_damaged_mark_closes_the_store():
    """A mark that cannot be read may have been that of a store that was left: whatever it
    begins with, nothing begins; under the mark as it was, work goes on."""
    a, b = in_file("a"), in_file("b")
    fill(a, 1)
    equal(move(a, b)[0], (0, 0))
    mark = run(["sqlite3", "b.db", "SELECT mark FROM idem_clock"]).stdout.decode().strip()
    assert mark.startswith("here "), mark
    for damaged in ("here zz", "left zz", mark.upper(), mark + " x", mark + "0" * 300):
        run(["sqlite3", "b.db", f"UPDATE idem_clock SET mark = '{damaged}'"])
        for key in ("new", "k"):
            done = b("begin", "-k", key)
            equal((damaged, done.status), (damaged, 78))
            assert b"mark of a move is damaged" in done.stderr, done
    run(["sqlite3", "b.db", f"UPDATE idem_clock SET mark = '{mark}'"])
    equal(begins(b, "new"), True)


@test
def wrong_stores_are_refused():
    """A target that is in use, was moved itself or is filled by another move; the source
    itself, one in memory, one that is missing or away: refused, and nothing is made or
    marked."""
    a, b, c = in_file("a"), in_file("b"), in_file("c")
    fill(a, 3)
    fill(b, 1)

    def status(*words, env=None, **rest):
        done = run([PROGRAM, *words], {**ENV, **(env or {})}, **rest)
        assert done.stderr, done
        return done.status

    equal(status("export", "--store", a.store, "--to", "x", "-"), 64)
    equal(status("export", "--store", a.store, "--wait", "1s", "-"), 64)
    equal(status("export", "--store", a.store, "--open", "--status", "failed", "-"), 64)
    equal(status("export", "--store", a.store, "--open", "--scope", "s", "-"), 64)
    equal(status("export", "--store", a.store, "--open", "--to", "two words", "-"), 64)
    equal(status("export", "--store", a.store, "--open", "--to", "x" * 101, "-"), 64)
    equal(status("export", "--store", "memory:", "--open", "-"), 64)
    equal(status("export", "--store", "sqlite:none.db", "--open", "-"), 78)
    equal(os.path.exists("none.db"), False)
    equal((state(a), begins(a, "k")), ("", True))

    equal(move(a, b)[0][1], 78)
    equal(begins(b, "k"), True)
    export = a("export", "--open", "-").stdout
    equal(status("import", "--store", a.store, input=export), 78)
    equal(status("import", "--store", "memory:", input=export), 64)
    nowhere = f"dynamodb://orders?endpoint=http://127.0.0.1:{free_port()}"
    equal(status("export", "--open", "--store", nowhere, "-"), 69)
    equal(status("import", "--store", nowhere, input=export), 69)
    equal(c("import", input=export.splitlines(keepends=True)[0]).status, 75)
    equal(status("export", "--store", c.store, "--open", "-"), 78)
    b("export", "--open", "-")
    equal(status("import", "--store", b.store, input=export), 78)
    other = b("export", "--open", "-").stdout
    equal(status("import", "--store", c.store, input=other), 78)
    # A plain import does not fill a store that was left, either.
    equal(status("import", "--store", b.store, input=HEADER.encode() + b"\n".join(lines_of(a))), 78)
    equal(c("import", input=export).status, 0)


@test
def fences_go_on_above_those_of_the_source():
    """Fences of the target are above all of the source, also those of what was purged, and
    its time is not before that of the source."""
    a, b = in_file("a"), in_file("b")
    equal(a("run", "-k", "a", "--", "true").status, 0)
    equal(a("store", "mark-restored", "--yes").status, 0)
    floor = int(run(["sqlite3", "a.db", "SELECT fence_floor FROM idem_clock"]).stdout)
    # A year ahead, as of a host whose clock was wrong.
    run(["sqlite3", "a.db", "UPDATE idem_clock SET store_ms = store_ms + 31536000000, "
         "last_ms = last_ms + 31536000000"])
    equal(move(a, b)[0], (0, 0))
    equal(b("run", "-k", "b", "--", "true").status, 0)
    there = show(b, "b")
    assert there["fence"] > floor, (there["fence"], floor)
    assert there["started_ms"] > show(a, "a")["started_ms"] + 31_000_000_000, there
    # Control: the same copied, and not moved.
    c = in_file("c")
    equal(c("import", input=a("export", "-").stdout).status, 0)
    equal(c("run", "-k", "b", "--", "true").status, 0)
    assert show(c, "b")["fence"] < floor, show(c, "b")


if __name__ == "__main__":
    if shutil.which("sqlite3") is None:
        sys.exit("sqlite3 is needed")
    sys.exit(main())
