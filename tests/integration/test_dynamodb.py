"""idem on a DynamoDB table: the same program, the same answers, few requests."""

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time

from aws_server import ENV, Server
import counting
import dynamo
from files import read
from moved_clocks import elsewhere, needs_faketime
from ports import free_port
from tap import PROGRAM, TOP, at_once, equal, main, test

TABLE = "orders"


def program(*args, env, prefix=()):
    """Run idem; (status, stdout, stderr)."""
    done = subprocess.run(
        [*prefix, PROGRAM, *args],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def machine(url, more=""):
    """The environment of a host of its own that uses the table at @url."""
    with tempfile.TemporaryDirectory() as state:
        yield dict(
            dynamo.environment(),
            IDEM_STORE=f"dynamodb://{TABLE}?endpoint={url}{more}",
            XDG_STATE_HOME=state,
        )


@contextlib.contextmanager
def table(kind):
    """A server with the table on it."""
    with dynamo.server(kind) as url:
        with machine(url) as env:
            equal(program("store", "create", env=env)[0], 0)
        yield url


@test
def a_table_is_listed_page_by_page():
    """A page reads no more than it shows, is sorted by itself, and leads to the next one."""
    with table("local") as url, machine(url) as env:
        for n in range(5):
            program("run", "-k", f"order-{n}", "-s", "a b", "--", "sh", "-c", f"exit {n % 2}", env=env)
        for options in ([], ["--failed"], ["-s", "a b"]):
            whole = program("list", "--json", *options, env=env)[1].splitlines()
            seen, command = [], ["list", "--json", "--max", "2", *options]
            while command:
                status, out, said = program(*command, env=env)
                page = [json.loads(line) for line in out.splitlines()]
                equal((status, len(page) <= 2), (0, True))
                created = [record["created_ms"] for record in page]
                equal(created, sorted(created, reverse=True))
                seen += out.splitlines()
                found = re.search(rb"more; repeat the command with (--after) (.*)$", said)
                command = found and [*command[:4], *options, *map(bytes.decode, found.groups())]
            equal(sorted(seen), sorted(whole))
            equal(len(seen), 2 if options == ["--failed"] else 5)


def any_of_three(measure, wanted):
    """@measure, told a character for a key of its own, gives @wanted: what is answered
    late is sent again, and counts twice."""
    for mark in "abc":
        got = measure(mark)
        if got == wanted:
            return
    equal(got, wanted)


def price(counted, size, index, mark="-"):
    """Requests and units of a new operation and of a duplicate."""
    more = "&clock=host" + ("" if index == "on" else "&index=off")
    with machine(counted.url, more) as env, tempfile.NamedTemporaryFile() as f:
        f.write(os.urandom(size))
        f.flush()
        work = ("run", "-k", f"{size}{mark}{index}", "--", "cat", f.name)
        program(*work, env=env)
        new = counted.take()
        program(*work, env=env)
        again = counted.take()
    return (len(new), sum(each[1] for each in new), len(again),
            sum(each[2] for each in again))


@test
def costs_what_the_page_says():
    """The table in docs/dynamodb.md is what the server counts."""
    page = os.path.join(TOP, "docs", "dynamodb.md")
    rows = read(page).split("<!-- measured -->")[1].split("\n\n")[0].splitlines()[3:]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    equal(len(rows), 10)
    with table("local") as url, counting.proxy(url) as counted:
        price(counted, 10001, "on")  # A server that has just begun is slow.
        for size, index, *told in rows:
            any_of_three(lambda m, s=size, i=index: [s, i, *price(counted, int(s), i, m)],
                         [size, index, *(int(cell) for cell in told)])


def requests_of(counted, env, *args):
    """(the operations of one command, what it printed)"""
    counted.take()
    got, out, err = program(*args, env=env)
    assert got == 0, (args, got, err)
    return [each[0] for each in counted.take()], out.decode().strip()


@test
def each_step_needs_what_the_page_says():
    """By hand a begin is one request, an end by token two, a takeover two; and one before a
    claim, for the mark of a move."""
    begin = ("begin", "--on-expired-lease", "rerun", "-k")
    with table("local") as url, counting.proxy(url) as counted:
        price(counted, 10001, "on")  # A server that has just begun is slow.
        with machine(counted.url, "&clock=host") as env:
            for end in ("complete", "fail", "release", "retry", "unknown"):

                def by_token(mark, end=end):
                    began, token = requests_of(counted, env, *begin, f"{end}{mark}")
                    ended, _ = requests_of(counted, dict(env, IDEM_TOKEN=token), end, "--self")
                    return began, ended

                any_of_three(by_token, (["GetItem", "PutItem"], ["GetItem", "PutItem"]))

            def takeover(mark):
                requests_of(counted, env, *begin, f"t{mark}", "--lease", "5s")
                time.sleep(7.5)  # The lease, and two seconds for the clocks.
                return requests_of(counted, env, *begin, f"t{mark}")[0]

            any_of_three(takeover, ["GetItem", "PutItem", "PutItem"])


@test
def commands_inherit_nothing():
    """A command has the descriptors that its caller gave it, and none of ours."""
    with table("dynoxide") as url, machine(url) as env:
        done = subprocess.run(
            ["sh", "-c", 'exec 7<"$0"; exec "$@"', __file__, PROGRAM, "run", "-k", "a",
             "--", "sh", "-c", "ls /proc/$$/fd; head -c 3 <&7"],
            env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        equal(done.stdout.split(b"\n"), [b"0", b"1", b"2", b"7", b'"""'])


@test
def a_short_lease_is_renewed_in_time():
    """An owner here stops 2 s before its lease ends; a command that takes longer than
    what that leaves of 4 s still ends well. A machine that stands still for a
    moment may stop one, but not each of five."""
    with table("dynoxide") as url, machine(url) as env:
        ends = (program("run", "--lease", "4s", "-k", f"long-{n}", "--", "sleep", "2.5", env=env)
                for n in range(5))
        assert any(status == 0 for status, _, _ in ends)


@test
def a_lease_that_carries_nothing_is_refused():
    """What leaves no time to run anything is refused before anything is asked; the
    message says how long it was, and how long it must be."""
    with machine(f"http://127.0.0.1:{free_port()}") as env:
        for verb in (("run", "-k", "a", "--", "true"), ("begin", "-k", "a")):
            for lease in ("2s", "3999ms"):
                status, _, err = program(verb[0], "--lease", lease, "--on-expired-lease",
                                         "rerun", *verb[1:], env=env)
                equal((status, b"the shortest is 4000 ms" in err), (64, True))
                assert (b"2000 ms" if lease == "2s" else b"3999 ms") in err, err
        status, _, err = program("consume", "--queue", "http://127.0.0.1:9/q", "--lease", "2s",
                                 "--", "true", env=env)
        equal((status, err),
              (64, b"idem: --lease 2s is too short for this store; the shortest is 4s\n"))


def record_at(url):
    """The one record of the table, as a machine with the right clock shows it."""
    with machine(url) as env:
        status, out, _ = program("show", "--json", "k", env=env)
        equal(status, 0)
        return json.loads(out)


def shifted(by, *args, env, machine=()):
    """Run idem on a @machine whose clock is off @by; what it printed."""
    got = program(*args, env=env, prefix=(*machine, "faketime", "-f", by))
    equal((args, got[0]), (args, 0))
    return got[1]


@test(rows=[21, 22])
def a_lease_of_a_machine_a_year_ahead_is_bounded():
    """A machine that believes its clock, a year ahead, claims a key. Another meets its
    lease: BUSY, nobody takes over then and there, and the lease is written down to its
    length and half an hour, for the same owner and fence."""
    needs_faketime()
    year, bound = 365 * 86_400_000, 60_000 + 30 * 60_000
    begin = ("begin", "-k", "k", "--on-expired-lease", "rerun")
    with contextlib.ExitStack() as stack:
        there = elsewhere()
        url = stack.enter_context(table("local"))
        wrong = stack.enter_context(machine(url, "&clock=host"))
        right = stack.enter_context(machine(url))
        token = shifted("+365d", *begin, env=wrong, machine=there).decode().strip()
        before, now = record_at(url), time.time() * 1000
        # The control: so long nobody could have taken over.
        assert before["lease_end_ms"] - now > year - 86_400_000, before
        status, _, err = program(*begin, env=right)
        equal((status, b"has not ended" in err), (75, True))
        after, now = record_at(url), time.time() * 1000
        assert bound - 120_000 < after["lease_end_ms"] - now < bound + 120_000, after
        same = ("status", "owner", "fence", "attempts")
        equal([after[name] for name in same], [before[name] for name in same])
        equal(program(*begin, env=right)[0], 75)
        again = record_at(url)["lease_end_ms"]  # Its estimates are not all alike.
        assert after["lease_end_ms"] - 2000 <= again <= after["lease_end_ms"], again
        shifted("+365d", "complete", "--token", token, env=wrong, machine=there)
        equal(record_at(url)["status"], "completed")


@test(rows=[21, 22])
def no_time_of_a_record_goes_back():
    """Machines whose clocks differ end, take over and end again within a second, each
    with its own estimate of the time: no time of the record is before an earlier one."""
    needs_faketime()
    by = ("+2s", "-2s", "+1s", "-1s", "+3s", "-3s")
    begin = ("begin", "-k", "k", "--on-expired-lease", "rerun")
    with table("local") as url, machine(url, "&clock=host") as env:
        for n in range(0, len(by), 2):
            token = shifted(by[n], *begin, env=env).decode().strip()
            last = n == len(by) - 2
            shifted(by[n + 1], "complete" if last else "retry", "--token", token, env=env)
            times = [record_at(url)]
            r = times[0]
            assert r["created_ms"] <= r["started_ms"] <= r["ended_ms"], r
            for past in r.get("history", []):
                assert r["created_ms"] <= past["started_ms"] <= past["ended_ms"], r
                assert past["ended_ms"] <= r["started_ms"] or past["fence"] == r["fence"], r


@test
def five_megabytes_come_back():
    """A result of 5 MB is replayed byte for byte; without one of its parts, or with
    a record of a newer version, nothing is replayed and nothing runs."""
    with table("local") as url, machine(url) as env:
        with tempfile.NamedTemporaryFile() as f:
            f.write(os.urandom(5_000_000))
            f.flush()
            work = ("run", "-k", "big", "--", "cat", f.name)
            first = program(*work, env=env)[1]
            again = program(*work, env=env)
        equal(len(first), 5_000_000)
        equal((again[0], hashlib.sha256(again[1]).hexdigest()),
              (0, hashlib.sha256(first).hexdigest()))
        items = dynamo.call(url, "Scan", {"TableName": TABLE})
        parts = [i for i in items["Items"] if "body" in i]
        while "LastEvaluatedKey" in items:
            items = dynamo.call(url, "Scan", {"TableName": TABLE,
                                "ExclusiveStartKey": items["LastEvaluatedKey"]})
            parts += [i for i in items["Items"] if "body" in i]
        equal(len(parts), 13)
        dynamo.call(url, "DeleteItem",
                    {"TableName": TABLE, "Key": {"id": parts[7]["id"]}})
        gone = program(*work[:4], "cat", f.name, env=env)
        equal((gone[0], gone[1]), (74, b""))


# Every verb of an operator, and those by which an attempt is ended by its token, with
# what it exits with while the store is away. Those that are not here need no store, or
# work depends on their answer: run, begin, limit, consume, gateway, lambda.
VERBS = {
    "list": 69, "list --overdue": 69, "show a": 69, "purge": 69, "stats": 69, "export": 69,
    "store check": 69, "doctor": 69, "watch --once": 3, "watch --once --hook cat": 3,
    "resolve a --release --reason x": 69, "resolve --overdue --release --reason x --yes": 69,
    "reopen a --reason x": 69, "reconcile": 69, "import empty.json": 69,
    "export --open": 69,
    "complete --self": 80, "fail --self": 80, "release --self": 80, "retry --self": 80,
    "unknown --self": 80, "renew --self": 69,
}
TIMED_OUT = rb"timed out after (\d+)\.\d s waiting for DynamoDB \((.*)/\)"


def told_soon(what, text, url):
    """It gave up after three seconds, or two, and named the cause."""
    told = re.search(TIMED_OUT, text)
    assert told is not None, (what, text)
    equal((what, int(told[1]) <= 3, told[2]), (what, True, url.encode()))


@contextlib.contextmanager
def silent_service():
    """The URL of a service that takes connections and answers nothing, the environment
    with a table there, and the directory in which its machine works."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with machine(url) as env:
            here = env["XDG_STATE_HOME"]
            local = dict(env, IDEM_STORE=f"sqlite:{here}/here.db")
            equal(program("run", "-k", "a", "--", "true", env=local)[0], 0)
            exported = program("export", env=local)[1].splitlines(keepends=True)
            with open(os.path.join(here, "empty.json"), "wb") as f:
                f.writelines(exported)
            yield url, env, here


@test
def operators_are_told_soon_that_the_service_does_not_answer():
    """Where a service takes connections and answers nothing, each verb of an operator
    gives up after three seconds, and names the cause."""
    with silent_service() as (url, env, here):
        # A token, and an outcome that waits in the journal for this store.
        with table("dynoxide") as there:
            begun = dict(env, IDEM_STORE=f"dynamodb://{TABLE}?endpoint={there}")
            token = program("begin", "-k", "t", "--on-expired-lease", "hold", env=begun)[1]
        env["IDEM_TOKEN"] = token.decode().strip()
        env["IDEM_STORE_TIMEOUT"] = "2s"

        def ask(verb):
            return subprocess.run([PROGRAM, *verb.split()], env=env, cwd=here, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=60)

        # The first leaves what reconcile finds; the others, some at a time, only wait.
        first, *others = ("complete --self", *(v for v in VERBS if v != "complete --self"))
        for verbs in [first], *(others[n : n + 4] for n in range(0, len(others), 4)):
            for verb, done in zip(verbs, at_once(ask, verbs)):
                equal((verb, done.returncode), (verb, VERBS[verb]))
                told_soon(verb, done.stdout + done.stderr, url)


def runs_nothing(url, wanted, says):
    """A run against the service at @url ends with @wanted, says why, and runs nothing."""
    with tempfile.TemporaryDirectory() as top, machine(url) as env:
        effect = os.path.join(top, "effect")
        status, _, err = program("run", "-k", "a", "--", "touch", effect, env=env)
        equal((status, os.path.exists(effect)), (wanted, False))
        assert says in err, err


@test(rows=[24])
def nothing_runs_without_the_service():
    """With the service away nothing runs."""
    runs_nothing(f"http://127.0.0.1:{free_port()}", 69, b"cannot be reached")


@test(rows=[24])
def nothing_runs_without_the_table():
    """With the table not there nothing runs."""
    with dynamo.server("dynoxide") as url:
        runs_nothing(url, 78, b"idem store create")


@test
def a_table_whose_creation_was_not_answered_was_made():
    """The request is sent again, and meets the table that the first one made; of a table
    that was there before, it is not sent at all."""
    def refuse(connection, error):
        connection.answer(json.dumps({"__type": error}).encode(), "400 Bad Request")

    def describe(connection, _):
        if made:
            connection.answer(b'{"Table":{"TableStatus":"ACTIVE"}}')
        else:
            refuse(connection, "ResourceNotFoundException")

    def create(connection, _):
        made.append(1)
        if len(made) == 1:
            connection.close()
        else:
            refuse(connection, "ResourceInUseException")

    made = []
    with Server({"DescribeTable": describe, "CreateTable": create}) as server:
        with machine(server.url) as env:
            env = {k: v for k, v in {**env, **ENV}.items() if v is not None}
            env["AWS_REGION"] = "eu-west-1"
            equal(json.loads(program("store", "create", "--json", env=env)[1])["created"], True)
            sent = len(made)
            assert sent > 1
            equal(json.loads(program("store", "create", "--json", env=env)[1])["created"], False)
            equal(len(made), sent)


if __name__ == "__main__":
    main()
