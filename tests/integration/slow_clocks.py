"""Machines whose clocks are slow, at their first claim in a store across a network. What they
claim then has the time of their own clock, whose lease is over for all others."""

import contextlib
import os
import subprocess
import threading

import dynamo
from files import read
import postgres
from moved_clocks import elsewhere, needs_faketime
from patience import PATIENCE, until
from tap import PROGRAM, equal, kill_session, main, note, run, test
import web

# A machine waits for the race to begin.
MACHINE = 'read -r go <"$GATE" && exec faketime -f "$CLOCK" "$@"'
CLOCKS = ("+0", "-47s", "-20s", "+3600s", "-3600s", "-47s")
LEASE = ("--lease", "10s", "--on-expired-lease")
ROUNDS = {"hold": 8, "rerun": 2}
CALLERS = 2  # On each machine.


def machine(name, by="+0"):
    """The command before another that runs it on a machine whose clock is off @by, and its
    environment. Until a line comes from the file "gate" it does not begin."""
    env = {"GATE": os.path.abspath("gate"), "CLOCK": by}
    return (*elsewhere(int(name)), "sh", "-c", MACHINE, "machine"), env


@contextlib.contextmanager
def gate():
    """What opens the gate for @n machines."""
    os.mkfifo("gate")
    fd = os.open("gate", os.O_RDWR)
    try:
        yield lambda n: os.write(fd, b"\n" * n)
    finally:
        os.close(fd)
        os.unlink("gate")


def needs_machines():
    needs_faketime()
    elsewhere()


def create(env):
    equal(run([PROGRAM, "store", "create"], env).status, 0)


@contextlib.contextmanager
def table():
    """A table of DynamoDB, as the environment of its users."""
    with dynamo.server("dynoxide") as url:
        env = dict(dynamo.environment(), IDEM_STORE=f"dynamodb://orders?endpoint={url}")
        create(env)
        yield env, url


@contextlib.contextmanager
def database():
    with postgres.server() as server:
        env = {"IDEM_STORE": server.url}
        create(env)
        yield env, server


def begin_at_once(env, key, policy):
    """All machines race for @key; how each caller ended."""
    work = ("sh", "-c", f"echo x >>effects-{key}; sleep 0.2")
    running = []
    with gate() as let_go, contextlib.ExitStack() as stack:
        for number in range(CALLERS * len(CLOCKS)):
            name = number % len(CLOCKS)
            before, own = machine(str(name), CLOCKS[name])
            command = [*before, PROGRAM, "run", "-k", key, *LEASE, policy, "--", *work]
            running.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **env, **own, "XDG_STATE_HOME": f"state-{name}"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            )
            stack.callback(kill_session, running[-1])
        let_go(len(running))
        ended = [(process.communicate(timeout=PATIENCE)[1], process) for process in running]
    return [(process.returncode, err) for err, process in ended]


def race(env):
    """How many callers were told that a person must look; each key was run once."""
    needs_machines()
    called = 0
    for policy, rounds in ROUNDS.items():
        for number in range(rounds):
            key = f"{policy}-{number}"
            ended = begin_at_once(env, key, policy)
            assert os.path.exists(f"effects-{key}"), (key, "nothing ran", ended)
            equal((key, read(f"effects-{key}")), (key, "x\n"))
            statuses = [status for status, _ in ended]
            assert set(statuses) <= {0, 75, 76}, ended
            assert 0 in statuses, ended
            called += statuses.count(76)
    note(f"{called} callers were told 76")
    return called


@test(rows=[21, 22])
def machines_with_slow_clocks_race_for_a_key_on_dynamodb():
    """Six machines, whose clocks are right, slow by up to an hour or an hour ahead, race for
    new keys in DynamoDB: one of them runs the work, once."""
    with table() as (env, _):
        race(env)


@test
def machines_with_slow_clocks_race_for_a_key_on_postgresql():
    """The same in PostgreSQL, where nobody ever sees a claim whose lease is over."""
    with database() as (env, _):
        equal(race(env), 0)


@contextlib.contextmanager
def held_up(url, nth):
    """A line to @url on which the @nth request that writes an item waits: its URL, whether it
    is there, and what lets it go on."""
    came, go = threading.Event(), threading.Event()
    writes = []

    class Line(web.Relay):
        def do_POST(self):
            body = self.body()
            if self.headers["X-Amz-Target"].endswith("PutItem"):
                writes.append(body)
                if len(writes) == nth:
                    came.set()
                    go.wait(PATIENCE)
            # The Date of an answer about the mark would tell the time before.
            plain, dated = self.send_response_only, super().send_response
            self.send_response = plain if b"idem#move" in body else dated
            self.say(*self.ask(body))

    with web.Server(Line) as server:
        server.upstream = url
        try:
            yield server.url, came.is_set, go.set
        finally:
            go.set()


@test
def a_claim_that_others_ended_is_taken_back_on_dynamodb():
    """A machine claims a key with a clock that is an hour slow. Before the write that mends
    its lease is done, another ends the claim as unknown. The owner was told of nothing: it
    takes its claim back, and runs."""
    needs_machines()
    with table() as (env, url), held_up(url, 2) as (line, came, go), gate() as let_go:
        before, own = machine("1", "-3600s")
        own.update(env, IDEM_STORE=f"dynamodb://orders?endpoint={line}", IDEM_STORE_TIMEOUT="60s")
        work = ("run", "-k", "k", *LEASE, "hold", "--", "sh", "-c", "echo x >>effects; echo done")
        owner = subprocess.Popen(
            [*before, PROGRAM, *work], env={**os.environ, **own}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )
        try:
            let_go(1)
            until(came, "the owner mends its claim")
            other = run([PROGRAM, *work], env)
            equal(other.status, 76)
            go()
            out, err = owner.communicate(timeout=PATIENCE)
        finally:
            kill_session(owner)
        equal((owner.returncode, out), (0, b"done\n"))
        equal(read("effects"), "x\n")
        equal(run([PROGRAM, *work], env)[:2], (0, b"done\n"))


@test
def a_claim_whose_lease_is_over_is_not_written_on_postgresql():
    """A machine whose clock is an hour slow claims keys, alone and several in one batch: no
    row is ever added whose lease is over by the server's clock."""
    needs_machines()
    with database() as (env, server), gate() as let_go:
        server.psql(
            "CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF to_timestamp(NEW.deadline / 1000) < clock_timestamp() THEN"
            " RAISE EXCEPTION 'its lease is over'; END IF; RETURN NEW; END $$;"
            " CREATE TRIGGER judge BEFORE INSERT ON idem.idem_record"
            " FOR EACH ROW EXECUTE FUNCTION judge()"
        )
        libraries = {"LD_LIBRARY_PATH": os.path.dirname(PROGRAM)}
        before, own = machine("2", "-3600s")
        let_go(1)
        done = run([*before, os.environ["IDEM_POSTGRES_CLAIMS"], server.url, "20", "2"],
                   {**env, **own, **libraries})
        equal(done.stdout, b"40 started, 40 in progress, 0 failed\n")
        for by in "-20s", "-3600s":
            before, own = machine("1", by)
            let_go(1)
            done = run([*before, PROGRAM, "run", "-k", by, *LEASE, "hold", "--", "echo", "done"],
                       {**env, **own})
            equal((by, done.status, done.stdout), (by, 0, b"done\n"))


if __name__ == "__main__":
    main()
