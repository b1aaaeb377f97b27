"""The PostgreSQL store from the command line: all that changes is IDEM_STORE."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import threading
import time

from files import read, read_bytes, write
import postgres
from patience import PATIENCE, until
from tap import SANITIZED, Idem, equal, main, run, skip, start, test

SECRET = "hunter2"


def here(schema):
    """The program on a new schema, and the server. Statements are logged."""
    server = postgres.shared(**postgres.LOGGED)
    idem = Idem(f"{server.url}&schema={schema}")
    equal(idem("store", "create").status, 0)
    return idem, server


def said(idem, *args):
    done = idem(*args)
    equal((args, done.status, done.stderr), (args, 0, b""))
    return done.stdout.decode()


@contextlib.contextmanager
def transaction(server, sql):
    """Somebody else's, which has done @sql and is committed at the end."""
    is_open = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    with server.session(stdin=subprocess.PIPE) as session:
        session.stdin.write(f"BEGIN; {sql};\n".encode())
        session.stdin.flush()
        until(lambda: server.psql(is_open) == ["1"], "it is open")
        yield
        session.communicate(b"COMMIT;\n")


def trips(server, idem, *args):
    log = postgres.Log(server)
    equal(idem(*args).status, 0)
    return log.transactions()


@test
def round_trips_are_few():
    """A new operation is two round trips, a duplicate one; a takeover is two."""
    idem, server = here("trips")
    new = ("run", "-k", "a", "--", "true")
    equal([trips(server, idem, *new), trips(server, idem, *new)], [2, 1])
    lease = ("--lease", "4s", "--on-expired-lease", "rerun")
    equal(trips(server, idem, "begin", "-k", "b", *lease), 1)
    time.sleep(6.5)
    equal(trips(server, idem, "begin", "-k", "b", *lease), 2)
    record = json.loads(said(idem, "show", "--json", "b"))
    equal((record["attempts"], record["status"]), (2, "in_progress"))


def scans(server, schema):
    """How often all of a table with records or limits was read."""
    return int(
        server.psql(
            "SELECT sum(seq_scan) FROM pg_stat_user_tables"
            f" WHERE schemaname = '{schema}' AND relname <> 'idem_store'"
        )[0]
    )


@test
def plans_are_those_of_a_full_table():
    """A plan is kept, and the table grows: one that was analyzed while it was empty is
    read through its indexes all the same. The control: PostgreSQL reads all of it."""
    idem, server = here("plans")
    server.psql("VACUUM ANALYZE plans.idem_record")
    server.psql("VACUUM ANALYZE plans.idem_limit_window")
    before = scans(server, "plans")
    server.psql("SELECT count(*) FROM plans.idem_record WHERE id = 'k'")
    until(lambda: scans(server, "plans") > before)
    before = scans(server, "plans")
    local = Idem("sqlite:" + os.path.abspath("plans.db"))
    for n in range(3):
        for store in (idem, local, idem):
            equal(store("run", "-qk", f"{store.store[0]}{n}", "--", "true").status, 0)
    said(local, "export", "plans.jsonl")
    said(idem, "import", "plans.jsonl")
    equal(idem("limit", "-n", "up", "-u", "u", "--max", "9", "--per", "1h", "-r", "1").status, 0)
    said(idem, "list")
    said(idem, "list", "--status", "failed")
    said(idem, "purge")
    time.sleep(0.5)  # A server process counts for all to see when it ends.
    equal(scans(server, "plans"), before)


@test
def a_held_row_holds_up_nobody_else():
    """An application's open transaction has a row: other keys go on at once, a duplicate
    is answered, and the row's own end is recorded after it. The control: ON CONFLICT alone would
    wait, too."""
    idem, server = here("held")
    token = said(idem, "begin", "-k", "held").strip()
    log = postgres.Log(server)
    with transaction(server, "UPDATE held.idem_record SET status = status WHERE key = 'held'"):
        plain = server.psql_try(
            "SET lock_timeout = '100ms'; INSERT INTO held.idem_record SELECT * FROM"
            " held.idem_record WHERE key = 'held' ON CONFLICT (id) DO NOTHING"
        )
        equal(idem("run", "-k", "other", "--", "true").status, 0)
        equal(idem("begin", "-k", "held").status, 75)
        # It waits as long as an end is told, and is kept here after that.
        ended = idem.start("complete", "--token", token)
        time.sleep(1)
    assert ended.wait(PATIENCE) in (0, 80)
    equal(idem("reconcile").status, 0)
    assert "lock timeout" in plain.stderr, plain
    equal(log.count("canceling statement due to lock timeout"), 1)
    equal(json.loads(said(idem, "show", "--json", "held"))["status"], "completed")


@test
def nobody_is_notified():
    """A claim, its renewals, a waiter and the end: no statement notifies or listens, for
    transactions that notify take one lock of the whole server as they commit."""
    idem, server = here("notified")
    token = said(idem, "begin", "-k", "k").strip()
    with idem.start("run", "-k", "k", "--wait", "30s", "--", "false") as waiter:
        time.sleep(0.5)
        said(idem, "renew", "--token", token)
        said(idem, "complete", "--token", token, "--result", "done")
        out, _ = waiter.communicate()
        equal((waiter.returncode, out), (0, b"done"))
    text = read(os.path.join(server.folder, "log"))
    assert "UPDATE notified.idem_record" in text
    equal(re.findall(r"(?i)\bnotify\b|pg_notify|\blisten\b", text), [])


@test
def a_password_is_shown_nowhere():
    """No message, JSON or export has the password of a URL."""
    _, server = here("secret")
    url = f"{server.url}&password={SECRET}&schema=secret"
    gone = f"postgres://u:{SECRET}@127.0.0.1:1/x"
    texts = []
    for store in (url, gone, f"postgrs://u:{SECRET}@h/x", f"{gone}?color={SECRET}x"):
        idem = Idem(store)
        for args in (
            ("store", "create", "--json"),
            ("store", "check", "--json"),
            ("doctor", "--json"),
            ("run", "-k", "k", "--status-fd", "1", "--", "true"),
            ("export",),
            ("list",),
        ):
            done = idem(*args)
            texts.append((args, done.stdout + done.stderr))
    for args, text in texts:
        assert f"{SECRET}@".encode() not in text and f"={SECRET}&".encode() not in text, (args, text)
    assert any(b"***" in text for _, text in texts)


def refusals(server):
    """Stores that cannot be used: what of the URL is changed, the status of idem run, and
    what its sentence has."""
    server.psql(
        "CREATE ROLE replica LOGIN SUPERUSER;"
        "ALTER ROLE replica SET default_transaction_read_only = on;"
        "CREATE ROLE locked_out NOLOGIN; CREATE ROLE crowded LOGIN CONNECTION LIMIT 0;"
        "CREATE ROLE uninvited LOGIN; REVOKE CONNECT ON DATABASE postgres FROM public"
    )
    owner, place = f"user={postgres.USER}", f"host={server.folder}"
    database = f"/{postgres.DATABASE}?"
    elsewhere = f"{place}-gone,{server.folder}"
    return [
        ((owner, "user=absent"), 77, '"absent" does not exist (28000); create the role with createuser'),
        ((owner, "user=replica&schema=refused"), 69, "(25006); name the primary, or all hosts"),
        ((owner, "user=locked_out"), 77, "is not permitted to log in (28000)"),
        ((owner, "user=crowded"), 69, "(53300); nothing was run; see: idem doctor"),
        ((database, "/absent?"), 78, '/absent): database "absent" does not exist (3D000); create it with createdb'),
        ((f"{database}{place}&{owner}", f"/postgres?{place}&user=uninvited"), 77, "(42501); the role needs"),
        ((owner, f"{owner}&schema=select"), 78, "(42601); choose another schema"),
        ((owner, f"{owner}&service=absent"), 78, 'definition of service "absent" not found'),
        ((owner, f"{owner}&port=99999"), 78, 'invalid port number: "99999"; correct it in the store URL'),
        ((owner, f"{owner}&sslmode=often"), 78, 'invalid sslmode value: "often"; correct it'),
        ((place, f"{place}-gone"), 69, "-gone:5432/idem): No such file or directory; nothing was run"),
        ((f"{place}&{owner}", f"{elsewhere}&user=absent"), 77, f"({server.folder}:5432/idem): role"),
    ]


@test
def each_refusal_says_what_helps():
    """Why there is no connection, by the status and in one sentence: which database, the
    reason, what helps. A store that is set up wrong is never "away"."""
    _, server = here("refused")
    for (old, new), status, words in refusals(server):
        url = server.url.replace(old, new)
        assert url != server.url, old
        done = Idem(url)("run", "-k", "k", "--", "touch", "ran")
        text = done.stderr.decode()
        equal((new, done.status), (new, status))
        assert words in text, text
        assert "connection to server" not in text and "FATAL" not in text, text
    assert not os.path.exists("ran")
    absent = Idem(server.url.replace("user=owner", "user=absent"))
    for command in ("check", "create"):
        done = absent("store", command)
        assert done.status == 77 and b"(28000)" in done.stdout + done.stderr, done


GERMAN = "Passwort-Authentifizierung für Benutzer »u« fehlgeschlagen"


def refuse_in_german(listener, state):
    """A server that lets nobody in, and says why in its own language."""
    text = f"SFATAL\0VFATAL\0C{state}\0M{GERMAN}\0Fauth.c\0L335\0Rauth_failed\0\0".encode()
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.recv(4096)
            client.sendall(b"E" + struct.pack("!I", len(text) + 4) + text)


@test
def a_refusal_in_another_language_is_understood():
    """The status follows the SQLSTATE, for a server may say the rest in any language."""
    for state, status in (("28P01", 77), ("3D000", 78), ("57P03", 69)):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=refuse_in_german, args=(listener, state), daemon=True).start()
            port = listener.getsockname()[1]
            idem = Idem(f"postgres://u@127.0.0.1:{port}/x?sslmode=disable&gssencmode=disable")
            for args in (("run", "-k", "k", "--", "true"), ("store", "check")):
                done = idem(*args)
                equal((args, done.status), (args, status))
                assert f"{GERMAN} ({state})" in (done.stdout + done.stderr).decode(), done
            listener.shutdown(socket.SHUT_RDWR)


def page_of_docs():
    return read(os.path.join(postgres.TOP, "docs", "postgresql.md"))


def as_role(server, role):
    return Idem(server.url.replace(f"user={postgres.USER}", f'user={role.replace(" ", "%20")}'))


def mended(server, check):
    """Runs the SQL that a check names as the mend of the rights."""
    grants = re.search(r"; mend: (GRANT .*)\.$", check.stdout.decode(), re.M)
    assert grants, check
    server.psql(grants[1])


@test
def the_grants_of_the_page_are_enough():
    """A role with the rights that docs/postgresql.md names works; without one of them it
    is denied. The check names what the role lacks, also USAGE on the schema, without which
    no table can be named; with the SQL that it prints the role works again."""
    idem, server = here("idem")
    grants = re.findall(r"^    (GRANT [^;]*;)", page_of_docs(), re.M)
    server.psql("CREATE ROLE worker LOGIN; " + " ".join(grants))
    worker = as_role(server, "worker")
    equal(said(worker, "run", "-k", "k", "--", "echo", "hi"), "hi\n")
    old = ("--lease", "never", "--retention", "1ms")
    equal(said(worker, "run", "-k", "old", *old, "--", "echo", "hi"), "hi\n")
    assert "the role worker may do all that" in worker("store", "check").stdout.decode()
    every = "SELECT, INSERT, UPDATE, DELETE"
    # It has an argument more since PostgreSQL 17.
    (function,) = server.psql(
        "SELECT oid::regprocedure FROM pg_proc WHERE proname = 'pg_logical_emit_message'"
        " AND proargtypes[2] = 'text'::regtype"
    )
    emit = f"EXECUTE ON FUNCTION {function}"
    server.psql(f"REVOKE {emit} FROM public")
    denied = worker("run", "-k", "l", "--", "true")
    equal(denied.status, 77)
    assert b"permission denied for function pg_logical_emit_message" in denied.stderr, denied
    server.psql(f"GRANT {emit} TO public")
    for sql, words in (
        ("INSERT ON idem.idem_record", "INSERT on idem_record"),
        ("USAGE ON SCHEMA idem", "USAGE on the schema"),
        ("SELECT ON idem.idem_store", "SELECT on idem_store"),
        ("UPDATE ON idem.idem_store", "UPDATE on idem_store"),
        ("DELETE ON idem.idem_limit_request", "DELETE on idem_limit_request"),
        (
            "ALL ON idem.idem_record, idem.idem_limit_window",
            f"{every} on idem_record; {every} on idem_limit_window",
        ),
    ):
        server.psql(f"REVOKE {sql} FROM worker")
        check = worker("store", "check")
        lacks = f"bad   rights: the role worker lacks {words}; mend: GRANT "
        assert lacks in check.stdout.decode(), check
        assert b"PostgreSQL (" not in check.stdout, check
        if " ON idem.idem_limit_" not in sql:
            equal((sql, worker("run", "-k", "l", "--", "true").status), (sql, 77))
        mended(server, check)
        assert b"may do all that" in worker("store", "check").stdout
    equal(said(worker, "run", "-k", "l", "--", "echo", "ho"), "ho\n")
    time.sleep(2.5)
    equal(said(worker, "purge"), "purged 1 record\n")


@test
def a_policy_that_hides_a_record_runs_nothing_twice():
    """Row security hides the record of a key from a role: its command runs nothing, and
    the check names the table and the SQL that ends that. The control: a role that no
    policy hides anything from has the outcome."""
    idem, server = here("idem")
    grants = re.findall(r"^    (GRANT [^;]*;)", page_of_docs(), re.M)
    server.psql("CREATE ROLE tenant LOGIN; " + " ".join(grants).replace("worker", "tenant"))
    tenant = as_role(server, "tenant")
    equal(said(tenant, "run", "-k", "hidden", "--", "echo", "hi"), "hi\n")
    server.psql(
        "ALTER TABLE idem.idem_record ENABLE ROW LEVEL SECURITY; CREATE POLICY own"
        " ON idem.idem_record TO tenant USING (key <> 'hidden'::bytea) WITH CHECK (true)"
    )
    equal(said(tenant, "run", "-k", "seen", "--", "echo", "hi"), "hi\n")
    again = tenant("run", "-k", "hidden", "--", "touch", "twice")
    equal((again.status, os.path.exists("twice")), (77, False))
    equal(said(idem, "run", "-k", "hidden", "--", "echo", "hi"), "hi\n")
    check = tenant("store", "check").stdout.decode()
    hides = "bad   rights: row security hides rows from the role tenant: idem_record; mend: "
    assert hides in check, check
    server.psql(re.search(r"; mend: (ALTER TABLE .*)\.$", check, re.M)[1])
    assert b"row security" not in tenant("store", "check").stdout
    equal(said(tenant, "run", "-k", "hidden", "--", "echo", "hi"), "hi\n")
    server.psql("DROP POLICY own ON idem.idem_record")


@test
def a_role_that_may_do_nothing_is_told_what_it_may_not():
    """A new role, whose name needs quotes: one line has all that it lacks, what was not
    read is said, and the SQL of the mend gives it what a store needs. A schema without
    tables, and without some of them, is told likewise."""
    _, server = here("idem")
    server.psql('CREATE ROLE "New Role" LOGIN')
    role = as_role(server, "New Role")
    check = role("store", "check")
    text = check.stdout.decode()
    assert 'the role "New Role" lacks USAGE on the schema; SELECT, INSERT' in text, text
    assert "skip  records: neither the version" in text and "\\x0a" not in text, text
    mended(server, check)
    equal(said(role, "run", "-k", "new", "--", "echo", "hi"), "hi\n")
    idem, _ = here("parts")
    server.psql("DROP TABLE parts.idem_limit_request")
    check = idem("store", "check")
    lacks = b'schema "parts" lacks tables: idem_limit_request; mend: run what idem store template'
    assert lacks in check.stdout and b"records can be trusted" in check.stdout, check
    server.psql("DROP SCHEMA parts CASCADE; CREATE SCHEMA parts")
    check = idem("store", "check")
    none = b"idem_store, idem_limit_window, idem_limit_request; mend: idem store create"
    assert none in check.stdout, check
    equal(idem("store", "create").status, 0)
    server.psql("DROP SCHEMA parts CASCADE")
    check = idem("store", "check")
    none = b'no schema "parts" in this database; mend: idem store create'
    assert none in check.stdout, check


def with_values(end):
    """The SQL of an end, with its values in it."""
    quoted = ["NULL" if v is None else f"'{v}'" for v in end["values"]]
    return re.sub(r"\$(\d+)", lambda m: quoted[int(m[1]) - 1], end["text"])


def completion(idem, key):
    """SQL that ends a new attempt of @key, and its token."""
    token = said(idem, "begin", "-k", key).strip()
    return with_values(json.loads(said(idem, "complete", "--token", token, "--as-sql"))), token


SSL = "server does not support SSL, but SSL was required"
GERMAN_SSL = "Server unterstützt kein SSL, aber SSL wurde verlangt"


def write_catalogue(folder):
    """A catalogue of translations for libpq with one sentence, which ended with a line
    feed before version 16."""
    domain = re.search(rb"\0(libpq5-\d+)\0", libpq_bytes())
    if domain is None:
        skip("this libpq speaks one language")
    texts = [("", "Content-Type: text/plain; charset=UTF-8\n")]
    texts += [(SSL, GERMAN_SSL), (SSL + "\n", GERMAN_SSL + "\n")]
    tables, strings = b"", b""
    start = 28 + 16 * len(texts)
    for column in 0, 1:
        for text in texts:
            data = text[column].encode()
            tables += struct.pack("<II", len(data), start + len(strings))
            strings += data + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(texts), 28, 28 + 8 * len(texts), 0, 0)
    os.makedirs(f"{folder}/de/LC_MESSAGES")
    write(f"{folder}/de/LC_MESSAGES/{domain[1].decode()}.mo", head + tables + strings)


def libpq_bytes():
    linked = run(["ldd", os.environ["IDEM_POSTGRES_LOCALIZED"]], {"LC_ALL": "C"}).stdout.decode()
    path = re.search(r"libpq\.so\.5 => (\S+)", linked)
    return read_bytes(path[1])


def refuse_ssl(listener):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.recv(8)
            client.sendall(b"N")


@test
def a_host_in_another_language_changes_no_error():
    """A program that has set a German locale hears from libpq in German; what idem makes
    of a refusal, by its words, is the same as ever."""
    write_catalogue("locales")
    env = {"LC_ALL": "C.UTF-8", "LANGUAGE": "de", "PGLOCALEDIR": os.path.abspath("locales")}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refuse_ssl, args=(listener,), daemon=True).start()
        place = f"//u@127.0.0.1:{listener.getsockname()[1]}/x?sslmode=require&gssencmode=disable"
        program = os.environ["IDEM_POSTGRES_LOCALIZED"]
        done = run([program, f"postgresql:{place}", f"postgres:{place}"], env)
        listener.shutdown(socket.SHUT_RDWR)
    control, _, told = done.stdout.decode().strip().rpartition("\n")
    if SSL in control:
        skip("this C library has no translations: " + control)
    assert GERMAN_SSL in control, done
    assert told.startswith("CONFIG ") and SSL + "; set ssl = on there" in told, done


@test
def the_rights_of_a_completion_are_those_of_the_page():
    """The role of an application that ends an attempt by the statement needs what
    docs/postgresql.md says, and fails without each of them."""
    idem, server = here("ended")
    said_there = "needs `USAGE` on the schema, and `SELECT` and `UPDATE` on `idem_record`"
    assert said_there in page_of_docs()
    rights = ("USAGE ON SCHEMA ended", "SELECT ON ended.idem_record", "UPDATE ON ended.idem_record")
    server.psql("CREATE ROLE payer; " + "; ".join(f"GRANT {right} TO payer" for right in rights))
    for n, right in enumerate(rights):
        end, _ = completion(idem, str(n))
        server.psql(f"REVOKE {right} FROM payer")
        refused = server.psql_try(f"SET ROLE payer; {end}").stderr
        assert "permission denied" in refused, (right, refused)
        server.psql(f"GRANT {right} TO payer")
        equal(server.psql(f"SET ROLE payer; {end}"), ["1"])


@test
def the_check_grades_the_server():
    """fsync that is off, a missing schema and a damaged record are told as bad."""
    idem, server = here("graded")
    done = idem("store", "check")
    assert b"bad   durability: fsync is off" in done.stdout, done
    said(idem, "begin", "-k", "k")
    server.psql("UPDATE graded.idem_record SET head = set_byte(head, 30, 1)")
    assert b"1 of 1 records cannot be trusted" in idem("store", "check").stdout
    equal(idem("run", "-k", "k", "--", "true").status, 74)
    missing = Idem(f"{server.url}&schema=nowhere")
    done = missing("run", "-k", "k", "--", "touch", "ran")
    equal(done.status, 78)
    assert b"idem store create" in done.stderr and not os.path.exists("ran"), done


@test
def a_server_s_text_is_made_plain():
    """A database in LATIN1, and a message with control characters: what is printed is
    UTF-8, and nothing of it commands a terminal."""
    _, server = here("plain")
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0", "postgres")
    idem = Idem(server.url.replace(f"/{postgres.DATABASE}?", "/latin?"))
    equal(idem("store", "create").status, 0)
    done = server.psql_try(
        "CREATE FUNCTION idem.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
        " EXCEPTION 'n%h %[31m', chr(228), chr(27) USING ERRCODE = '23514'; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON idem.idem_record"
        " FOR EACH ROW EXECUTE FUNCTION idem.refuse()",
        "latin",
    )
    equal(done.stderr, "")
    done = idem("run", "-k", "k", "--", "true")
    equal(done.status, 78)
    assert b": n?h ?[31m (23514)" in done.stderr, done


@test
def rows_without_an_id_stop_nobody():
    """More rows than a page has, whose id is not one of idem's: no key leads to them, and
    lists, purges and the check come to their ends."""
    idem, server = here("ids")
    said(idem, "run", "-k", "k", "--", "true")
    server.psql(
        "INSERT INTO ids.idem_record SELECT decode(lpad(to_hex(n), 62, '0'), 'hex'), scope,"
        " key, nonce, fence, status, 1000, tag, head, result, input"
        " FROM ids.idem_record, generate_series(1, 250) n"
    )
    for args, status, text in (
        (("list",), 0, "completed"),
        (("purge",), 0, "purged 0 records"),
        (("store", "check"), 78, "1 records can be trusted"),  # 78: fsync is off.
    ):
        with idem.start(*args) as process:
            out, _ = process.communicate(timeout=PATIENCE)
        equal((args, process.returncode), (args, status))
        assert text in out.decode(), (args, out)


@test
def a_row_that_was_made_huge_is_not_fetched():
    """Somebody adds 48 MiB to the head of a record, and 80 MiB to another's result: each
    is damage, and the program takes no such memory to see it; a list goes on."""
    idem, server = here("huge")
    hi = ("--", "echo", "hi")
    for key, size in ("head", 48), ("result", 80):
        said(idem, "run", "-k", key, *hi)
        more = f"{key} || decode(repeat('00', {size << 20}), 'hex')"
        server.psql(f"UPDATE huge.idem_record SET {key} = {more} WHERE key = '{key}'")
    for args, status in (
        (("run", "-k", "head", *hi), 74),
        (("run", "-k", "result", *hi), 74),
        (("list",), 74),
    ):
        process = idem.start(*args)
        _, ended, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        process.communicate()
        equal((args, process.returncode), (args, status))
        assert SANITIZED or usage.ru_maxrss < 40 << 10, (args, usage.ru_maxrss)


@test
def an_owner_ends_its_attempt_itself():
    """complete --as-sql: effect and record are one commit, renewed in between or not. Run
    again, the statement fails, and its transaction with it; asked for again, it is 80."""
    idem, server = here("itself")
    server.psql("CREATE TABLE itself.ledger (key text)")
    token = said(idem, "begin", "-k", "k", "--on-expired-lease", "rerun").strip()
    complete = ("complete", "--token", token, "--result", "paid", "--as-sql")
    end = json.loads(said(idem, *complete))
    equal((sorted(end), end["rows"]), (["rows", "text", "values"], 1))
    transaction = f"BEGIN; INSERT INTO itself.ledger VALUES ('k'); {with_values(end)}; COMMIT"
    said(idem, "renew", "--token", token, "--lease", "1h")
    equal(server.psql(transaction), ["1"])
    assert "idem: the attempt is lost" in server.psql_try(transaction).stderr
    equal(said(idem, "run", "-k", "k", "--", "false"), "paid")
    done = idem(*complete)
    equal((done.status, done.stdout), (80, b""))
    assert b"already completed with this outcome" in done.stderr, done
    equal(server.psql("SELECT count(*) FROM itself.ledger"), ["1"])
    equal(said(idem, "complete", "--token", token, "--result", "paid"), "")


@test
def a_newer_schema_is_left_alone():
    """A schema that this program is too old for is refused before anything is written,
    also by a connection that was open before: the outcome is kept on this host."""
    idem, server = here("newer")
    newer = "UPDATE newer.idem_store SET version = 2, least = 2"
    with idem.start("run", "-k", "old", "--", "sh", "-c", "touch began; sleep 2") as process:
        until(lambda: os.path.exists("began"))
        server.psql(newer)
        _, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, b"newer version" in err), (80, True))
    equal(server.psql("SELECT status FROM newer.idem_record"), ["1"])
    server.psql("DELETE FROM newer.idem_record")
    done = idem("run", "-k", "k", "--", "true")
    equal(done.status, 78)
    assert b"newer version" in done.stderr, done
    equal(server.psql("SELECT count(*) FROM newer.idem_record"), ["0"])


@test
def a_floor_above_all_fences_is_named():
    """fence_floor at the end of its range, by somebody's hand: a claim is refused at once
    and says which column it is, and the SQL that the check prints mends it. A little lower
    it is a warning, and a claim starts."""
    idem, server = here("floor")
    token = said(idem, "begin", "-k", "open").strip()
    server.psql(f"UPDATE floor.idem_store SET fence_floor = {2**63 - 2}")
    said(idem, "run", "-k", "a", "--", "true")
    assert b"warn  fences: fence_floor" in idem("store", "check").stdout
    server.psql(f"UPDATE floor.idem_store SET fence_floor = {2**63 - 1}")
    done = idem("run", "-k", "b", "--", "touch", "ran")
    equal(done.status, 74)
    assert b"fence_floor in the table idem_store" in done.stderr, done
    assert not os.path.exists("ran")
    equal(json.loads(said(idem, "show", "--json", "a"))["status"], "completed")
    said(idem, "complete", "--token", token)
    check = idem("store", "check").stdout.decode()
    mend = re.search(r"^bad   fences: fence_floor .*; mend: (UPDATE .*)\.$", check, re.M)
    assert mend, check
    server.psql(mend[1])
    equal(said(idem, "run", "-k", "b", "--", "echo", "hi"), "hi\n")
    assert b"fences" not in idem("store", "check").stdout


@test
def a_schema_without_its_row_is_left_alone():
    """A schema whose idem_store has lost its row, by which each transaction is set up, is
    refused: nothing is answered that may not be on disk. The template mends it."""
    idem, server = here("rowless")
    token = said(idem, "begin", "-k", "k").strip()
    server.psql("DELETE FROM rowless.idem_store")
    complete = ("complete", "--token", token, "--journal", "off")
    for args in complete, ("run", "-k", "l", "--", "true"):
        done = idem(*args)
        equal((args[0], done.status), (args[0], 78))
        assert b"rowless.idem_store" in done.stderr and b"is empty" in done.stderr, done
    equal(server.psql("SELECT status FROM rowless.idem_record"), ["1"])
    server.psql(said(idem, "store", "template"))
    said(idem, "complete", "--token", token)


TRAPS = {
    "*(numeric, int4)": "multiplication, of an epoch",
    "*(float8, int4)": "the same, in PostgreSQL 13",
    "<=(int8, numeric)": "a deadline and an epoch",
    "&(int8, int4)": "which bodies an update sets",
    "||(int8, int8)": "a text without a type and a count",
    "||(text, int8)": "a text and a count",
}


@test
def a_stranger_s_operators_are_not_called():
    """Another user of the database makes operators and a function that fit our operands
    in the schema public, as each may before PostgreSQL 15: none of them is called. The
    control: such an expression calls one."""
    idem, server = here("traps")
    sql = [
        "CREATE FUNCTION public.pg_advisory_xact_lock(int4) RETURNS void LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $$"
    ]
    drop = ["DROP FUNCTION public.pg_advisory_xact_lock(int4)"]
    for n, trap in enumerate(TRAPS):
        name, left, right = re.fullmatch(r"(.*)\((.*), (.*)\)", trap).groups()
        sql.append(
            f"CREATE FUNCTION public.trap{n}({left}, {right}) RETURNS {left} LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $$;"
            f"CREATE OPERATOR public.{name} (FUNCTION = public.trap{n},"
            f" LEFTARG = {left}, RIGHTARG = {right})"
        )
        drop.append(f"DROP FUNCTION public.trap{n} CASCADE")
    server.psql(
        "CREATE ROLE stranger LOGIN; GRANT CREATE ON SCHEMA public TO stranger;"
        "SET ROLE stranger;" + ";".join(sql)
    )
    try:
        for expression in "1.5 * 1000", "1::int8 & 1", "'a'::text || 1::int8", "'1' || 1::int8", "1::int8 <= 1.5":
            control = server.psql_try(f"SELECT {expression}").stderr
            assert "called as owner" in control, (expression, control)
        more, _ = here("traps_more")
        for _ in range(2):
            equal(said(idem, "run", "-k", "k", "--", "echo", "hi"), "hi\n")
        equal(said(idem, "purge"), "purged 0 records\n")
        limit = ("limit", "-n", "up", "-u", "u", "--max", "1", "--per", "1h", "-r", "1")
        equal([idem(*limit).status for _ in range(2)], [0, 0])
        check = more("store", "check").stdout
        assert b"called as" not in check and b"ok    clock" in check, check
        end, token = completion(idem, "l")
        said(idem, "complete", "--token", token)
        assert "idem: the attempt is lost" in server.psql_try(end).stderr
    finally:
        server.psql(";".join(drop))


if __name__ == "__main__":
    main()
