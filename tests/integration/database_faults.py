"""What goes wrong between a PostgreSQL server and its clients: races, refusals that pass,
connections that end after the commit, a pooler. Each case fails without what it is about
(tests/mutants/postgres)."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from files import read, write
import postgres
import postgres_line
from moved_clocks import elsewhere, faketime_library
from patience import PATIENCE, until
from tap import PROGRAM, Idem, equal, main, note, run, skip, start, test

LIBRARIES = {"LD_LIBRARY_PATH": os.path.dirname(PROGRAM)}


def the_server():
    return postgres.shared(**postgres.LOGGED, deadlock_timeout="10ms")


def here(schema, at=None, user=postgres.USER):
    """The program on a new schema, by @at's URL, and the server."""
    server = the_server()
    url = (at or server).url.replace(f"user={postgres.USER}", f"user={user}")
    equal(Idem(f"{server.url}&schema={schema}")("store", "create").status, 0)
    return Idem(f"{url}&schema={schema}"), server


def work(key):
    """A command whose effects are counted, one file for each key."""
    return ("run", "-k", key, "--", "sh", "-c", f"echo done; echo x >>effects-{key}")


def once(idem, key):
    """Run, and run again: the second is a replay, and there is one effect."""
    for _ in range(2):
        done = idem(*work(key))
        equal((key, done.status, done.stdout), (key, 0, b"done\n"))
    equal((key, read(f"effects-{key}")), (key, "x\n"))
    record = json.loads(idem("show", "--json", key).stdout)
    equal((key, record["attempts"], record["status"]), (key, 1, "completed"))


# ---- Races ----


@contextlib.contextmanager
def uncommitted(server, schema, end):
    """Another's insert of the key "k", whose transaction does @end: SQL, in which WAITS
    is whether a claim waits for it."""
    other, _ = here(schema + "_from")
    equal(other("begin", "-k", "k").status, 0)
    waits = "EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
    sql = (
        f"BEGIN; INSERT INTO {schema}.idem_record SELECT * FROM {schema}_from.idem_record;"
        + end.replace("WAITS", waits)
    )
    inserted = (
        "SELECT count(*) FROM pg_stat_activity"
        f" WHERE query LIKE 'BEGIN; INSERT INTO {schema}.%' AND wait_event = 'PgSleep'"
    )
    with server.session("-c", sql) as process:
        until(lambda: server.psql(inserted) == ["1"])
        yield
        _, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, err), (0, b""))


LOOP = "DO $$ BEGIN WHILE NOT WAITS LOOP PERFORM pg_sleep(0.002); END LOOP; END $$; "


def lose_a_race(idem, server, schema):
    """A claim waits for an insert that is committed meanwhile."""
    log = postgres.Log(server)
    with uncommitted(server, schema, LOOP + "COMMIT"):
        equal(idem("begin", "-k", "k").status, 75)
    # One round trip, but for those that a slow machine's wait took too long for.
    # That of the other's own begin, too.
    equal(log.transactions(), 2 + log.count("due to lock timeout"))
    return log


@test
def a_claim_sees_in_one_round_trip_who_won():
    """A statement of its own shows the record that a claim waited for: a claim and a
    read in one statement would see neither's row."""
    idem, server = here("neither")
    lose_a_race(idem, server, "neither")


@test
def another_isolation_level_is_not_taken_over():
    """A role whose transactions are serializable by default: idem's are READ COMMITTED,
    and no claim is refused with 40001."""
    the_server().psql(
        "CREATE ROLE strict LOGIN SUPERUSER;"
        "ALTER ROLE strict SET default_transaction_isolation = 'serializable'"
    )
    idem, server = here("strict", user="strict")
    log = lose_a_race(idem, server, "strict")
    equal(log.count("could not serialize"), 0)
    once(idem, "a")


def claim(url, rounds, keys):
    """Two clients claim @rounds times @keys keys: how many claims were started, found
    an attempt in progress, and failed."""
    command = [os.environ["IDEM_POSTGRES_CLAIMS"], url, str(rounds), str(keys)]
    done = run(command, env=LIBRARIES)
    said = re.fullmatch(rb"(\d+) started, (\d+) in progress, (\d+) failed\n", done.stdout)
    assert done.status == 0 and said, done
    return tuple(int(n) for n in said.groups())


@test
def sorted_claims_do_not_deadlock():
    """Two connections claim the same keys in opposite orders, many in a batch: no
    transaction waits for one that waits for it, and each key is started once."""
    _, server = here("sorted")
    # So slow that the two are at it at the same time.
    server.psql(
        "CREATE FUNCTION sorted.rest() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END $$;"
        "CREATE TRIGGER slow BEFORE INSERT ON sorted.idem_record"
        " FOR EACH ROW EXECUTE FUNCTION sorted.rest()"
    )
    log = postgres.Log(server)
    equal(claim(f"{server.url}&schema=sorted", 20, 20), (400, 400, 0))
    equal(log.count("deadlock detected"), 0)


# ---- Refusals that pass ----

PLANT = """
CREATE SEQUENCE planted.inserts; CREATE SEQUENCE planted.updates;
CREATE TABLE planted.state (code text);
CREATE FUNCTION planted.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('planted.' || TG_ARGV[0]) <= 2 THEN
    RAISE EXCEPTION 'planted' USING ERRCODE = (SELECT code FROM planted.state);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER inserts BEFORE INSERT ON planted.idem_record
  FOR EACH ROW EXECUTE FUNCTION planted.refuse('inserts');
CREATE TRIGGER updates BEFORE UPDATE ON planted.idem_record
  FOR EACH ROW EXECUTE FUNCTION planted.refuse('updates');
"""


@test
def refusals_that_pass_are_tried_again():
    """Serialisation, deadlock, a lock, a cancelled statement, too many clients, a server
    that ends or has become a replica: a claim and an end that are refused twice with each
    are done then, once. A refusal that stays is told, and nothing begins."""
    idem, server = here("planted")
    server.psql(PLANT)

    def plant(code):
        server.psql(
            f"DELETE FROM planted.state; INSERT INTO planted.state VALUES ('{code}');"
            "ALTER SEQUENCE planted.inserts RESTART; ALTER SEQUENCE planted.updates RESTART"
        )

    for code in "40001", "40P01", "55P03", "57014", "53300", "25006", "57P01":
        plant(code)
        log = postgres.Log(server)
        once(idem, code)
        equal((code, log.count("ERROR:  planted")), (code, 4))
    plant("23514")
    done = idem(*work("never"))
    equal((done.status, b"planted (23514)" in done.stderr), (78, True))
    assert not os.path.exists("effects-never")


@test
def a_commit_that_is_refused_is_tried_again():
    """What fails only as a transaction is committed, such as a constraint that is checked
    late: a claim and an end that are refused twice are done then, once. A refusal that
    stays is told, and nothing begins."""
    idem, server = here("late")
    late = PLANT.replace("planted.", "late.")
    for event, name in ("INSERT", "inserts"), ("UPDATE", "updates"):
        late = late.replace(
            f"CREATE TRIGGER {name} BEFORE {event} ON late.idem_record",
            f"CREATE CONSTRAINT TRIGGER {name} AFTER {event} ON late.idem_record"
            " DEFERRABLE INITIALLY DEFERRED",
        )
    server.psql(late + "INSERT INTO late.state VALUES ('40001')")
    log = postgres.Log(server)
    once(idem, "k")
    equal(log.count("ERROR:  planted"), 4)
    server.psql("UPDATE late.state SET code = '23514'; ALTER SEQUENCE late.inserts RESTART")
    done = idem(*work("never"))
    equal((done.status, b"planted (23514)" in done.stderr), (78, True))
    assert not os.path.exists("effects-never")


@test
def settings_that_are_taken_back_are_noticed():
    """Something between resets the session before the end of an attempt, and the role's
    commits wait for no disk: the end is not written there, and is in the journal. The
    control: without that it is."""
    the_server().psql(
        "CREATE ROLE lax LOGIN SUPERUSER; ALTER ROLE lax SET synchronous_commit = off"
    )
    idem, server = here("lax", user="lax")
    for fault, status, shown in ("reset", 80, "in_progress"), (None, 0, "completed"):
        key = str(fault)
        rule = postgres_line.once(fault, lambda batch: batch.has("update"))
        with postgres_line.before(server, rule) as line:
            through, _ = here("lax", at=line, user="lax")
            done = through(*work(key))
            equal((done.status, line.hits.total()), (status, fault is not None))
            record = json.loads(idem("show", "--json", key).stdout)
            equal((fault, record["status"]), (fault, shown))
            said = b"has lost its settings; a connection pooler needs prepare=no"
            equal((fault, said in done.stderr), (fault, fault is not None))
            equal(through("reconcile").status, 0)
        once(idem, key)


@test
def a_claim_that_is_cancelled_is_tried_again():
    """A claim waits for a row that somebody inserts for a while, and takes back: it is
    ended by lock_timeout, by the role's statement_timeout and by pg_cancel_backend(),
    and has the key in the end."""
    the_server().psql(
        "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET statement_timeout = '100ms'"
    )
    hold = "SELECT pg_sleep(2.5); ROLLBACK"
    cancel = (
        "DO $$ BEGIN FOR i IN 1..3 LOOP WHILE NOT WAITS LOOP PERFORM pg_sleep(0.002); END LOOP;"
        " PERFORM pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted;"
        " WHILE WAITS LOOP PERFORM pg_sleep(0.002); END LOOP; END LOOP; END $$; ROLLBACK"
    )
    for schema, user, end, said in (
        ("locked", postgres.USER, hold, "due to lock timeout"),
        ("hasty", "hasty", hold, "due to statement timeout"),
        ("cancelled", postgres.USER, cancel, "due to user request"),
    ):
        idem, server = here(schema, user=user)
        log = postgres.Log(server)
        with uncommitted(server, schema, end):
            once(idem, "k")
        os.remove("effects-k")
        assert log.count(said) > 1, (schema, log.count(said))
        note(f"{said}: {log.count(said)} times")


@test
def a_connection_that_lacks_statements_is_replaced():
    """The table is locked while a connection names its statements, and the role's
    statement_timeout ends that: what is asked is done once the lock is gone."""
    the_server().psql(
        "CREATE ROLE brief LOGIN SUPERUSER; ALTER ROLE brief SET statement_timeout = '50ms'"
    )
    idem, server = here("brief", user="brief")
    log = postgres.Log(server)
    # Those that were run without a name say so in their place in the log.
    prepared = r"due to statement timeout\n[^\n]*STATEMENT: +SELECT r.id, .* WHERE r.id > "
    lock = "BEGIN; LOCK TABLE brief.idem_record; SELECT pg_sleep(60)"
    unlock = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; LOCK%'"
    with server.session("-c", lock), ThreadPoolExecutor(1) as pool:
        until(lambda: log.count("SELECT pg_sleep(60)") == 1)
        work = pool.submit(once, idem, "k")
        until(lambda: re.search(prepared, log.text()) or work.done(), "a statement was not named")
        the_server().psql(unlock)
        work.result()
    assert re.search(prepared, log.text()), "the statements were named in spite of the lock"


# ---- Connections that end ----


@test
def a_lost_answer_is_read_back():
    """The connection ends before, in and after a transaction, or while it is still to be
    done, of a claim and of an end: the operation knows its own write, and the effect is
    there once. The control, an insert that is repeated, is there twice."""
    server = the_server()
    schemas = iter(range(100))
    for fault in postgres_line.FAULTS:
        for what in "claim", "update":
            rule = postgres_line.once(fault, lambda batch: batch.has(what))
            if fault == "no answer":
                continue  # It takes its time: tests/chaos.
            with postgres_line.before(server, rule) as line:
                idem, _ = here(f"lost{next(schemas)}", at=line)
                once(idem, what)
                equal((fault, what, line.hits.total()), (fault, what, 1))
            os.remove(f"effects-{what}")
    server.psql("CREATE TABLE effects (n int)")
    rule = postgres_line.once("cut after", lambda batch: b"INSERT" in batch.bytes)
    with postgres_line.before(server, rule) as line:
        folder = os.path.dirname(line.socket.getsockname())
        psql = [server.program("psql"), "-Xq", "-h", folder, "-U", postgres.USER]
        insert = [*psql, "-d", postgres.DATABASE, "-c", "INSERT INTO effects VALUES (1)"]
        equal([run(insert).status == 0 for _ in range(2)], [False, True])
    equal(server.psql("SELECT count(*) FROM effects"), ["2"])


@test
def a_host_that_says_nothing_is_passed_by():
    """The first of two hosts takes connections and says nothing, as one that is frozen:
    an operation is done by the second one, in the time that it has. The control: libpq
    alone stays with the first."""
    idem, server = here("mute_host")
    with socket.socket() as frozen:
        frozen.bind(("127.0.0.1", 0))
        frozen.listen(50)
        hosts = f"host=127.0.0.1,{server.folder}&port={frozen.getsockname()[1]},5432"
        url = f"postgres:///{postgres.DATABASE}?{hosts}&user={postgres.USER}"
        plain = ("timeout", "5", server.program("psql"), url.replace("postgres:", "postgresql:"))
        equal(run([*plain, "-Xc", "SELECT 1"]).status, 124)
        idem = Idem(f"{url}&schema=mute_host")
        for _ in range(2):
            done = idem(*work("k"), env={"IDEM_STORE_TIMEOUT": "4s"})
            equal((done.status, done.stdout, done.stderr), (0, b"done\n", b""))
    equal(read("effects-k"), "x\n")


HANGS = "hangs, then run this again"
NO_ANSWER = "s waiting for PostgreSQL ("
SILENT = "timed out after 15 " + NO_ANSWER


def without_answer(case):
    """The output of a command on a server that does not answer what has this text."""
    text, schema, args = case
    rule = postgres_line.once("no answer", lambda batch: text in batch.bytes)
    with postgres_line.before(the_server(), rule) as line:
        done = Idem(f"{line.url}&schema={schema}")("store", *args)
        equal((case, line.hits.total()), (case, 1))
        return (done.stdout + done.stderr).decode()


@test
def a_server_that_falls_silent_holds_up_no_check():
    """A server that answers nothing from the middle on: store check and store create end
    in the time that they state, the check with what it had found. A commit that was not
    answered may have been made."""
    here("silent")
    cases = (
        (b"synchronous_standby_names", "silent", ("check",)),
        (b"idem_record r WHERE", "silent", ("check",)),
        (b"COMMIT", "silent_new", ("create",)),
    )
    with ThreadPoolExecutor(len(cases)) as pool:
        replicas, records, commit = pool.map(without_answer, cases)
    for said, words in (replicas, "bad   replicas: "), (records, "records cannot be read: "):
        assert words + SILENT in said and HANGS in said, said
        assert said.startswith("ok    server: ") and said.endswith("rest was not checked\n"), said
    assert SILENT in commit and HANGS + "; the tables may have been made" in commit, commit
    equal(Idem(f"{the_server().url}&schema=silent_new")("store", "create").status, 0)


@test
def a_frozen_server_holds_up_nobody():
    """A server accepts connections and never answers: store check, store create, doctor,
    list and export end, though the URL sets connect_timeout=0, and say why. The
    control: psql with that URL is still waiting then."""
    the_server()
    with postgres.server() as server:
        url = server.url + "&connect_timeout=0"
        equal(Idem(url)("store", "create").status, 0)
        server.freeze()
        plain = (server.program("psql"), url.replace("postgres:", "postgresql:"))
        with start([*plain, "-Xc", "SELECT 1"]) as waits:
            try:
                for args, words in (
                    (("store", "check"), HANGS),
                    (("store", "create"), HANGS),
                    (("doctor",), HANGS),
                    (("list",), NO_ANSWER),
                    (("export",), NO_ANSWER),
                    (("export", "--open", "moved.jsonl"), NO_ANSWER),
                ):
                    done = Idem(url)(*args, env={"IDEM_STORE_TIMEOUT": "2s"})
                    said = (done.stdout + done.stderr).decode()
                    assert done.status != 0 and words in said, (args, done)
                equal(waits.poll(), None)
            finally:
                waits.kill()
                server.die()


@test
def a_rollback_without_an_answer_holds_up_nobody():
    """With prepare=no: a claim is refused, and the rollback of its transaction is never
    answered: it is made over another connection, once."""
    server = the_server()
    idem, _ = here("undone")
    server.psql(
        PLANT.replace("planted.", "undone.") + "INSERT INTO undone.state VALUES ('40001')"
    )
    rule = postgres_line.once("no answer", lambda batch: batch.has("rollback"))
    with postgres_line.before(server, rule) as line:
        idem, _ = here("undone", at=line)
        once(Idem(f"{idem.store}&prepare=no"), "k")
        equal(line.hits.total(), 1)


@test
def no_answer_is_not_taken_for_nothing_done():
    """No answer to a claim, nor to a look at it: the claim was made, but nobody heard of
    it; nothing is run, and the caller is told that the key may be claimed. Without a
    connection nothing was claimed, and that is not said."""
    server = the_server()
    cut = postgres_line.by_seed(1, rate=1.1, kinds=("cut after",))

    def rule(batch):
        return cut(batch) if b".idem_record" in batch.bytes else None

    with postgres_line.before(server, rule) as line:
        idem, _ = here("mute", at=line)
        done = idem(*work("k"), env={"IDEM_STORE_TIMEOUT": "2s"})
        equal((done.status, done.stdout), (69, b""))
        said = b"; nothing was run, but the key may be claimed until the lease ends\n"
        assert done.stderr.endswith(said), done
        assert not os.path.exists("effects-k")
    equal(server.psql("SELECT count(*) FROM mute.idem_record"), ["1"])
    done = Idem("postgres:///idem?host=/nowhere")(*work("k"))
    equal((done.status, b"; nothing was run; " in done.stderr), (69, True))
    assert b"may be claimed" not in done.stderr, done


# ---- Clocks ----


@test
def a_server_s_clock_that_is_set_back_ends_no_lease():
    """The server's clock is set back by an hour while attempts are open: nothing begins
    beside them, those that are renewed meanwhile go on, one of them beside a waiter on
    another machine that knows the time of before, and all end as completed."""
    the_server()
    library = faketime_library()
    with tempfile.NamedTemporaryFile("w", dir="/tmp", prefix="idem-clock-") as clock:
        os.chmod(clock.name, 0o644)

        def set_clock(to):
            clock.seek(0)
            clock.write(to + "\n")
            clock.truncate()
            clock.flush()

        set_clock("+0")
        env = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock.name}
        env.update(FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1")
        with postgres.server(env) as server:
            idem = Idem(server.url)
            equal(idem("store", "create").status, 0)
            lease = ("--lease", "12s", "--on-expired-lease", "rerun")
            a, c = (idem("begin", "-k", key, *lease).stdout.decode().strip() for key in "ac")
            text = "echo done; echo x >>effects-b; sleep 14"
            b = idem.start("run", "-k", "b", *lease, "--", "sh", "-c", text)
            wait = ("run", "-k", "c", *lease, "--wait", "60s", "--wait-then-run")
            other = [*elsewhere(), PROGRAM, *wait, "--", "touch", "ran"]
            other = start(other, {"IDEM_STORE": server.url})
            with b as running, other as waiter:
                until(lambda: os.path.exists("effects-b"))
                time.sleep(1)  # It has asked, and knows the time, by then.
                before = server.psql("SELECT floor(extract(epoch FROM clock_timestamp()))")
                set_clock("-3600")
                after = server.psql("SELECT floor(extract(epoch FROM clock_timestamp()))")
                assert int(before[0]) - int(after[0]) > 3000, (before, after)
                for key in "a", "b":
                    equal((key, idem("begin", "-k", key, *lease).status), (key, 75))
                equal(idem("complete", "--token", a).status, 0)
                for _ in range(17):  # The lease of before, the margin of a taker, and more.
                    equal(idem("renew", "--token", c).status, 0)
                    time.sleep(1)
                equal(idem("complete", "--token", c, "--result", "done\n").status, 0)
                for process in running, waiter:
                    out, err = process.communicate(timeout=PATIENCE)
                    equal((process.returncode, out, err), (0, b"done\n", b""))
            assert not os.path.exists("ran")
            for key in "a", "b", "c":
                record = json.loads(idem("show", "--json", key).stdout)
                equal((key, record["attempts"], record["status"]), (key, 1, "completed"))


@test
def a_client_s_clock_may_be_decades_off():
    """A machine whose clock shows 1996, or some years to come, claims a key: nobody takes
    it over while the lease runs by the server's clock, and the attempt is completed."""
    idem, _ = here("decades")
    library = faketime_library()
    lease = ("--lease", "1h", "--on-expired-lease", "rerun")
    for off in "-30y", "-400d", "+3y":
        env = {"LD_PRELOAD": library, "FAKETIME": off, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        begun = idem("begin", "-k", off, *lease, env=env)
        equal((off, begun.status), (off, 0))
        equal((off, idem("begin", "-k", off, *lease).status), (off, 75))
        token = begun.stdout.decode().strip()
        equal((off, idem("complete", "--token", token).status), (off, 0))


# ---- PgBouncer ----


@contextlib.contextmanager
def bouncer(server):
    """PgBouncer in transaction mode before the server, as its URL."""
    program = shutil.which("pgbouncer", path="/usr/sbin:" + os.environ["PATH"])
    if program is None:
        skip("PgBouncer is not installed: see tools/deps")
    with tempfile.TemporaryDirectory(prefix="idem-pgb-", dir="/tmp") as folder:
        conf = os.path.join(folder, "ini")
        write(conf, "[databases]\n"
            f"* = host={server.folder} user={postgres.USER}\n"
            "[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 2\n"
            "auth_type = any\nlisten_addr =\nlisten_port = 5432\n"
            f"unix_socket_dir = {folder}\nlogfile = {folder}/log\n")
        who = postgres.somebody()
        if who:
            os.chown(folder, who["user"], who["group"])
        os.chmod(folder, 0o755)
        process = subprocess.Popen(
            [program, "-q", conf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who
        )
        try:
            until(lambda: os.path.exists(f"{folder}/.s.PGSQL.5432"))
            yield server.url.replace(server.folder, folder)
        finally:
            process.terminate()
            process.wait()


@test
def pgbouncer_in_transaction_mode():
    """With prepare=no: run, replay, list, purge, a move of the store, and a crowd of
    claims by two clients over the pooler's two connections."""
    plain, server = here("pool")
    for n in range(12):
        equal(plain("run", "-k", str(n), "--", "true").status, 0)
    with bouncer(server) as url:
        idem = Idem(f"{url}&schema=pool&prepare=no")
        once(idem, "a")
        equal(len(idem("list", "--json").stdout.splitlines()), 13)
        equal(idem("purge").stdout, b"purged 0 records\n")
        here("moved")
        new = Idem(f"{url}&schema=moved&prepare=no")
        equal(idem("export", "--open", "moved.jsonl").status, 0)
        equal(new("import", "moved.jsonl").status, 0)
        equal(len(new("list", "--json").stdout.splitlines()), 13)
        here("crowd")
        equal(claim(f"{url}&schema=crowd&prepare=no", 20, 2), (40, 40, 0))


@test
def a_pooler_s_statements_are_of_one_schema():
    """Without prepare=no, two schemas through PgBouncer: claims may be refused, for the
    sessions that it shares lack statements; none is answered from the other's table."""
    server = the_server()
    refused = 0
    with bouncer(server) as url:
        for schema in "shared_a", "shared_b":
            here(schema)
            started, busy, failed = claim(f"{url}&schema={schema}", 30, 2)
            rows = int(server.psql(f"SELECT count(*) FROM {schema}.idem_record")[0])
            assert started <= rows and started + busy <= 2 * rows, (started, busy, rows)
            refused += failed
    note(f"{refused} claims were refused")


if __name__ == "__main__":
    main()
