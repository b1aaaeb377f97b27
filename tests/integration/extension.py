"""mod_idem: idem as SQL functions, in the SQLite of whatever program loads it."""

import json
import os
import subprocess
import time

import mounts
from accounts import Accounts
from languages import BUILD, MODULES, SANITIZED, environment, node
from tap import Idem, equal, main, run, skip, test

EXTENSION = os.path.join(BUILD, "mod_idem.so")


def sql(path, script, status=0):
    """Run @script in the shell of SQLite; return its output, or its complaint."""
    if SANITIZED:
        skip("a host without the sanitizer cannot load what is built with it")
    # Without -bail it goes on after an error, as a program could.
    got = run(["sqlite3", "-batch", path], environment(), f".load mod_idem\n{script}".encode())
    equal((script, got.status, got.stderr if status == 0 else b""), (script, status, b""))
    return (got.stderr if status else got.stdout).decode()


def symbols(*options):
    return subprocess.run(
        ["nm", "-D", *options, EXTENSION], capture_output=True, check=True
    ).stdout.decode()


@test
def brings_no_sqlite_along():
    """It has no SQLite inside, is linked with none, and gives away one function."""
    if SANITIZED:
        skip("the sanitizer has names of its own")
    equal([line.split()[-1] for line in symbols("--defined-only").splitlines()],
          ["sqlite3_modidem_init"])  # fmt: skip
    wanted = [line.split()[-1] for line in symbols("--undefined-only").splitlines()]
    equal([name for name in wanted if name.startswith(("sqlite3", "idem", "SHA"))], [])
    needed = subprocess.run(
        ["readelf", "-d", EXTENSION], capture_output=True, check=True
    ).stdout.decode()
    libraries = [line.split("[")[1] for line in needed.splitlines() if "(NEEDED)" in line]
    equal([name for name in libraries if not name.startswith(("libc.", "ld-"))], [])


@test
def refuses_hosts_that_it_would_harm():
    """A SQLite that is too old is refused, and so is a second one in the process."""
    old, first, second, again = (
        run([os.path.join(BUILD, "tests/integration/old_host"), EXTENSION])
        .stdout.decode()
        .splitlines()
    )
    equal(old, "1 mod_idem needs SQLite 3.37 or later; this program has 3.36.0")
    assert second.startswith("1 another SQLite in this process has loaded mod_idem"), second
    equal((first.strip(), again.strip()), ("7", "7"))  # NOMEM, as the fake host says.


TRANSFER = """
BEGIN IMMEDIATE;
CREATE TEMP TABLE claim AS SELECT verdict, token, result FROM idem_begin('order-42')
    WHERE fingerprint = idem_fingerprint('ann', 'bob', 30);
SELECT verdict, result FROM claim;
UPDATE account SET balance = balance - 30 WHERE name = 'ann';
UPDATE account SET balance = balance + 30 WHERE name = 'bob';
INSERT INTO transfer (key, payer, payee, amount) VALUES ('order-42', 'ann', 'bob', 30);
SELECT idem_complete(token, 'receipt 7', 'text/plain') FROM claim;
"""


@test
def a_rolled_back_transfer_leaves_nothing():
    """Rolled back, it leaves neither ledger line nor record; the next try makes both;
    the third is a replay."""
    bank = Accounts()
    equal(sql(bank.path, TRANSFER + "ROLLBACK;"), "STARTED|\ncompleted\n")
    equal(bank.effects(), {})
    with bank.open() as db:
        tables = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'idem%'"
        equal(db.execute(tables).fetchone(), (0,))
    equal(sql(bank.path, TRANSFER + "COMMIT;"), "STARTED|\ncompleted\n")
    bank.assert_once(["order-42"])
    third = sql(bank.path, "BEGIN IMMEDIATE; SELECT verdict, token, result, content_type, "
                "status, attempts, takeover FROM idem_begin('order-42'); ROLLBACK;")  # fmt: skip
    equal(third, "REPLAY||receipt 7|text/plain|completed|1|0\n")
    other = sql(bank.path, "BEGIN IMMEDIATE; SELECT verdict, result FROM idem_begin('order-42') "
                "WHERE fingerprint = idem_fingerprint('ann', 'bob', 31); ROLLBACK;")  # fmt: skip
    equal(other, "MISMATCH|\n")
    shown = Idem(f"sqlite:{bank.path}")("list")
    assert shown.status == 0 and b"order-42" in shown.stdout, shown


@test
def an_applications_database_is_not_moved():
    """Its records are the application's: idem export --open changes nothing, and says so."""
    bank = Accounts()
    sql(bank.path, TRANSFER + "COMMIT;")
    left = Idem(f"sqlite:{bank.path}")("export", "--open", "-")
    equal((left.status, left.stdout), (78, b""))
    assert b"is an application's database" in left.stderr, left
    begun = "BEGIN IMMEDIATE; SELECT verdict FROM idem_begin('order-43'); ROLLBACK;"
    equal(sql(bank.path, begun), "STARTED\n")


ENDS = [
    ("idem_complete(token)", "completed", "REPLAY|||"),
    ("idem_complete(token, x'00ff', 'a/b', 'm')", "completed", "REPLAY|00FF|a/b|"),
    ("idem_fail(token, 'no funds', 'out')", "failed", "FAILED|6F7574||no funds"),
    ("idem_release(token, 'not reached')", "released", "STARTED|||"),
    ("idem_retry(token, 'half of it')", "retry", "STARTED|||half of it"),
    ("idem_retry(token, 'half of it', 2, 0)", "retry", "STARTED|||half of it"),
    ("idem_retry(token, 'too often', 1)", "failed", "FAILED|||too often"),
    ("idem_retry(token, 'later', 0, 3600000)", "retry", "BUSY|||later"),
    ("idem_unknown(token, 'cut off')", "unknown", "UNKNOWN|||cut off"),
    ("idem_renew(token) BETWEEN 59000 AND 59500", "1", "BUSY|||"),
    ("idem_renew(token, 90000.0) BETWEEN 89000 AND 89500", "1", "BUSY|||"),
    ("idem_renew(token, 'never') = 9223372036854775807", "1", "BUSY|||"),
]


@test
def every_verb_answers():
    """Each way to end an attempt gives the status, and the next caller its verdict."""
    for number, (call, status, verdict) in enumerate(ENDS):
        got = sql("app.db", f"""
            BEGIN IMMEDIATE;
            SELECT {call} FROM idem_begin('k{number}');
            SELECT verdict, hex(result), content_type, text FROM idem_begin('k{number}');
            COMMIT;
        """)  # fmt: skip
        equal((call, got), (call, f"{status}\n{verdict}\n"))


@test
def a_claim_may_be_committed_first():
    """A claim of one transaction is ended in another, until it was taken over. Without
    rerun it is held: nobody takes it over."""
    token = sql("app.db", """
        BEGIN IMMEDIATE;
        SELECT token FROM idem_begin('k') WHERE on_expired_lease = 'rerun'
            AND lease_ms = 10000 AND keep_input = 'the order' AND owner = 'me';
        CREATE TEMP TABLE held AS SELECT * FROM idem_begin('held') WHERE lease_ms = 10000;
        COMMIT;
    """).strip()  # fmt: skip
    begin = """
        BEGIN IMMEDIATE;
        SELECT verdict, takeover, attempts, input, lease_left_ms > 0 FROM idem_begin('k')
            WHERE on_expired_lease = 'rerun';
        COMMIT;
    """
    equal(sql("app.db", begin), "BUSY|0|1||1\n")
    time.sleep(10.1)
    equal(sql("app.db", begin), "STARTED|1|2|the order|1\n")
    held = "BEGIN IMMEDIATE; SELECT verdict, attempts FROM idem_begin('held'); COMMIT;"
    equal(sql("app.db", held), "UNKNOWN|1\n")
    for verb in "release", "renew":
        late = sql("app.db", f"BEGIN IMMEDIATE; SELECT idem_{verb}('{token}');", status=1)
        assert f"idem_{verb}(): LOST: " in late, late


@test
def numbers_are_the_same_in_every_language():
    """A number without a fraction is one number, as an integer and as a real, as far as
    a real is exact."""
    got = sql("app.db", """
        SELECT idem_fingerprint('a', 30) = idem_fingerprint('a', 30.0),
            idem_fingerprint('a', 30) = idem_fingerprint('a', '30'),
            idem_fingerprint('a', 30.5) = idem_fingerprint('a', 30),
            idem_fingerprint(9007199254740992.0) = idem_fingerprint(9007199254740992),
            idem_fingerprint(9007199254740994.0) = idem_fingerprint(9007199254740994),
            idem_fingerprint(-9007199254740992.0) = idem_fingerprint(-9007199254740992),
            idem_fingerprint(-9007199254740994.0) = idem_fingerprint(-9007199254740994),
            length(idem_fingerprint());
        BEGIN IMMEDIATE;
        SELECT verdict FROM idem_begin(42);
        SELECT verdict FROM idem_begin(42.0);
        COMMIT;
    """)  # fmt: skip
    equal(got, "1|1|0|1|0|1|0|33\nSTARTED\nBUSY\n")


@test
def every_argument_counts():
    """Each argument of a claim is on record, by name or by its place in the brackets."""
    got = sql("app.db", """
        BEGIN IMMEDIATE;
        SELECT idem_complete(token, 'r') FROM idem_begin('k') WHERE scope = 'shop'
            AND owner = 'me' AND attempts_max = 3 AND retention_ms = 'never';
        SELECT verdict FROM idem_begin('k');
        SELECT verdict FROM idem_begin('k', 'shop');
        SELECT verdict FROM idem_begin('k', 'shop', NULL, 'rerun', 90000, 80000, 5000)
            WHERE owner = NULL;
        SELECT verdict, lease_left_ms BETWEEN 79000 AND 79500
            FROM idem_begin('l', 'shop', NULL, 'rerun', 90000, 80000, 5000);
        COMMIT;
    """)  # fmt: skip
    equal(got, "completed\nSTARTED\nREPLAY\nREPLAY\nSTARTED|1\n")
    idem = Idem(f"sqlite:{os.path.abspath('app.db')}")
    first = json.loads(idem("show", "--json", "--scope", "shop", "k").stdout)
    equal((first["owner"], first["retention_ms"]), ("me", None))
    second = json.loads(idem("show", "--json", "--scope", "shop", "l").stdout)
    equal(second["on_expired_lease"], "rerun")
    equal((second["retention_ms"], second["lease_ms"]), (90000, 80000))
    equal(second["expected_ms"] - second["started_ms"], 5000)


REFUSED = [
    ("SELECT * FROM idem_begin('k')", "INVALID: no transaction is open: run BEGIN IMMEDIATE"),
    ("BEGIN; SELECT * FROM idem_begin", "no key given: FROM idem_begin('KEY')"),
    ("BEGIN; SELECT * FROM idem_begin('')", "INVALID: key must not be empty"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE key = 'l'", "key is given twice"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE lease_ms > 5",
     "lease_ms is an argument: give it in the brackets, or as WHERE lease_ms = VALUE"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE retention_ms = 'soon'",
     "INVALID: retention_ms: give a whole number, or 'never'"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE attempts_max = 0.5",
     "INVALID: attempts_max: give a whole number"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE attempts_max = 4294967296",
     "INVALID: attempts_max: too large"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE expect_ms = 9007199254740994.0",
     "INVALID: expect_ms: give a whole number"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE retention_ms = 'never' || char(0)",
     "INVALID: retention_ms: give a whole number, or 'never'"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE on_expired_lease = 'maybe'",
     "INVALID: on_expired_lease: give 'hold' or 'rerun'"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE fingerprint = 'mine'",
     "INVALID: fingerprint: leave it empty, or give the 33 bytes of idem_fingerprint()"),
    ("BEGIN; SELECT * FROM idem_begin('k') WHERE network = 'no'",
     "INVALID: network: give 'yes', or leave it out"),
    ("BEGIN; CREATE VIEW v AS SELECT * FROM idem_begin('k'); SELECT * FROM v",
     "unsafe use of virtual table"),
    ("SELECT idem_complete('idem1.x')", "INVALID: not an idem token"),
    ("SELECT idem_complete(NULL)", "INVALID: the token is NULL"),
    ("BEGIN; SELECT idem_complete(token || char(0) || 'x') FROM idem_begin('k')",
     "INVALID: not an idem token: it contains a NUL byte"),
    ("BEGIN; SELECT idem_retry(token, '', 4294967296) FROM idem_begin('k')",
     "INVALID: max_failures: too large"),
    ("BEGIN; SELECT idem_retry(token, '', 1, 'soon') FROM idem_begin('k')",
     "INVALID: retry_after_ms: give a whole number"),
    ("SELECT idem_fingerprint('', NULL)", "INVALID: part 2 is NULL: give quote(X)"),
    ("SELECT idem_complete(token) FROM idem_begin('k')", "no transaction is open"),
    ("BEGIN; CREATE TEMP TABLE t AS SELECT token FROM idem_begin('k'); ROLLBACK; "
     "BEGIN; SELECT idem_complete(token) FROM temp.t", "no such table"),
]  # fmt: skip


@test
def refusals_say_why():
    """Each wrong use is refused with a sentence, and changes nothing."""
    for script, sentence in REFUSED:
        got = sql("app.db", script + ";", status=1)
        assert sentence in got, f"{script}\n{got}"
    equal(sql("app.db", "SELECT count(*) FROM sqlite_schema;"), "0\n")


# Of an argument that is in an expression SQLite tells xBestIndex nothing.
EXPRESSIONS = [
    ("scope", "SELECT * FROM idem_begin('k') WHERE +scope = 'a'"),
    ("key", "SELECT * FROM idem_begin WHERE +key = 'k'"),
    ("scope", "SELECT * FROM idem_begin('k') WHERE scope = 'a' OR owner = 'b'"),
    ("network", "SELECT * FROM idem_begin('k') WHERE (network = 'yes') = 1"),
    ("retention_ms", "SELECT * FROM idem_begin('k') WHERE retention_ms IS 'never'"),
    ("owner", "SELECT * FROM idem_begin('k', 'a') WHERE scope || owner = 'ab'"),
    ("scope", "SELECT verdict, scope FROM idem_begin('k')"),
    ("scope", "SELECT (SELECT x FROM other WHERE x = +scope) FROM idem_begin('k')"),
    ("scope", "SELECT * FROM other LEFT JOIN idem_begin('k') ON +scope = x"),
    ("scope", "SELECT * FROM idem_begin('k') LEFT JOIN other ON scope = x"),
    ("scope", "UPDATE other SET x = verdict FROM idem_begin('k') WHERE +scope = x"),
    ("scope", "WITH c AS (SELECT verdict, scope AS s FROM idem_begin('k')) "
     "SELECT * FROM c WHERE +s = 'a'"),
]  # fmt: skip
# Each gives one row, and claims in this scope.
ARGUMENTS = [
    ("", "SELECT verdict FROM idem_begin('k')"),
    ("a", "SELECT verdict FROM idem_begin('k') WHERE 'a' = scope"),
    ("a", "SELECT verdict FROM idem_begin WHERE (key, scope) = ('k', 'a')"),
    ("a", "SELECT verdict FROM idem_begin('k', 'a') WHERE scope || '' = 'a'"),
    ("a", "SELECT verdict FROM idem_begin('k') WHERE scope IN (SELECT x FROM other)"),
    ("a", "SELECT verdict FROM idem_begin('k'), other WHERE scope = x"),
    ("a", "SELECT verdict FROM other LEFT JOIN idem_begin('k') ON scope = x"),
    ("a", "SELECT verdict FROM other, idem_begin('k', x)"),
    ("a", "SELECT verdict FROM (SELECT verdict, scope AS s FROM idem_begin('k')) "
     "WHERE s = 'a'"),
    ("", "SELECT max(verdict) FROM idem_begin('k') GROUP BY status"),
]  # fmt: skip


@test
def an_argument_in_an_expression_is_refused():
    """A comparison that SQLite would make on the row, after the claim, claims nothing;
    one of those that it passes on is an argument, however it is written."""
    other = "BEGIN IMMEDIATE; CREATE TEMP TABLE other AS SELECT 'a' AS x;"
    for name, statement in EXPRESSIONS:
        got = sql("app.db", f"{other}{statement}; COMMIT;", status=1)
        sentence = f"{name} is an argument: give it in the brackets"
        assert sentence in got, f"{statement}\n{got}"
    equal(sql("app.db", "SELECT count(*) FROM sqlite_schema;"), "0\n")
    for scope, statement in ARGUMENTS:
        got = sql(":memory:", f"{other}{statement}; "
                  "SELECT CAST(scope AS TEXT), CAST(key AS TEXT) FROM idem_record;")  # fmt: skip
        equal((statement, got), (statement, f"STARTED\n{scope}|k\n"))


@test
def a_row_has_its_arguments():
    """What was given can be read from the row; a blob and a number stay what they are."""
    got = sql("app.db", """
        BEGIN IMMEDIATE;
        SELECT key, quote(scope), quote(fingerprint), lease_ms, retention_ms, verdict
            FROM idem_begin('k', x'00ff', NULL) WHERE lease_ms = 5000.0
            AND retention_ms = 'never';
        SELECT key, verdict FROM idem_begin WHERE key IN ('l', 'm');
        ROLLBACK;
    """)  # fmt: skip
    equal(got, "k|X'00FF'|NULL|5000.0|never|STARTED\nl|STARTED\nm|STARTED\n")


VERBS = ["complete", "fail", "release", "retry", "unknown", "renew"]


@test
def a_view_changes_nothing():
    """No function that changes a record is called by a view that a file brings along,
    whatever the file has in it; those that only compute are."""
    sql("app.db", """
        BEGIN IMMEDIATE;
        CREATE TABLE claim AS SELECT token FROM idem_begin('k');
        CREATE VIEW print AS SELECT length(idem_fingerprint('k')) FROM claim;
        COMMIT;
    """)  # fmt: skip
    before = sql("app.db", "SELECT hex(head) FROM idem_record;")
    for verb in VERBS:
        got = sql("app.db", f"""
            BEGIN IMMEDIATE;
            CREATE VIEW {verb} AS SELECT idem_{verb}(token) FROM claim;
            SELECT * FROM {verb};
            COMMIT;
        """, status=1)  # fmt: skip
        assert f"unsafe use of idem_{verb}()" in got, got
    equal(sql("app.db", "SELECT * FROM print;"), "33\n")
    equal(sql("app.db", "SELECT hex(head) FROM idem_record;"), before)


@test
def another_version_is_left_alone():
    """Tables of another version of idem are refused, and not changed."""
    sql("app.db", "BEGIN IMMEDIATE; SELECT idem_complete(token) FROM idem_begin('k'); "
        "UPDATE idem_clock SET schema = 2; COMMIT;")  # fmt: skip
    got = sql("app.db", "BEGIN IMMEDIATE; SELECT * FROM idem_begin('k');", status=1)
    assert "CONFIG: the store has schema version 2" in got, got


@test
def a_network_file_system_is_refused():
    """A database on a network file system is refused, unless the caller takes it."""
    with mounts.fuse_at("d", "fuse.sshfs"):
        begin = "BEGIN IMMEDIATE; SELECT verdict FROM idem_begin('k')"
        got = sql("d/app.db", f"{begin};", status=1)
        assert "CONFIG: " in got and "network file system (fuse.sshfs)" in got, got
        equal(sql("d/app.db", f"{begin} WHERE network = 'yes'; ROLLBACK;"), "STARTED\n")


HOSTS = """
const path = process.argv[1];
const script = [
  ['BEGIN IMMEDIATE'],
  ["SELECT verdict, CAST(result AS TEXT) AS result FROM idem_begin('k')"],
  ["SELECT idem_complete(token, 'receipt') FROM idem_begin('l')"],
  ["SELECT verdict, CAST(result AS TEXT) AS result FROM idem_begin('l')"],
  ['COMMIT'],
];
const said = [];
for (const [sql] of script) {
  const stmt = db.prepare(sql);
  said.push(sql.startsWith('SELECT') ? JSON.stringify(stmt.get()) : '' + (stmt.run(), ''));
}
db.close();
console.log(said.join('\\n').trim());
"""
SAID = (
    '{"verdict":"STARTED","result":null}\n'
    "{\"idem_complete(token, 'receipt')\":\"completed\"}\n"
    '{"verdict":"REPLAY","result":"receipt"}\n'
)


@test
def works_in_sqlites_of_others():
    """It uses the SQLite that better-sqlite3, and Node.js itself, have inside."""
    hosts = {
        "better": "const D = require('better-sqlite3'); const db = new D(process.argv[1]);",
        "node": "const { DatabaseSync } = require('node:sqlite');"
                "const db = new DatabaseSync(process.argv[1], { allowExtension: true });",
    }  # fmt: skip
    for name, start in hosts.items():
        script = f"{start} db.loadExtension('mod_idem'); {HOSTS}"
        got = run([node(), "--no-warnings", "-e", script, f"{name}.db"], environment())
        equal((name, got.status, got.stdout.decode()), (name, 0, SAID))
    assert os.path.isdir(MODULES)


if __name__ == "__main__":
    main()
