"""The module on a service: the same answers, and a table that goes away."""

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading

import dynamo
from kept import kept, written
from nginx import STATUS, Nginx, Upstream, read_answer, request_bytes
from patience import until
import postgres
from tap import LONG, PROGRAM, TOP, each, equal, main, note, run, start

sys.path.append(os.path.join(TOP, "tests", "chaos"))
import proxy  # noqa: E402

NAMES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"]
NAMES += ["AWS_EC2_METADATA_DISABLED", "AWS_CONFIG_FILE"]
NAMES += ["AWS_SHARED_CREDENTIALS_FILE"]


ENV = {name: dynamo.environment()[name] for name in NAMES}


def place_of(url):
    return url if url.startswith("postgres:") else f"dynamodb://idem?endpoint={url}"


@contextlib.contextmanager
def server(kind):
    """The URL of a service of this kind."""
    if kind == "postgresql":
        postgres.need()
        yield f"{postgres.shared().url}&schema=s{next(schemas)}"
    else:
        with dynamo.server(kind) as url:
            yield url


schemas = itertools.count()


@contextlib.contextmanager
def gateway(up, url, timeout="5s", **more):
    """An nginx on the store; it takes only named variables from its environment."""
    place = place_of(url)
    http = f"idempotency_store '{place}' timeout={timeout} journal=journal;"
    http += "idempotency on; idempotency_scope global;" + more.pop("http", "")
    with Nginx(
        up, http=http, env=ENV, server=STATUS,
        main="".join(f"env {name};" for name in NAMES), **more
    ) as nginx:
        yield nginx, place, ENV


def create(url):
    done = run([PROGRAM, "store", "create", "--store", place_of(url)], ENV)
    equal((done.status, done.stderr), (0, done.stderr))


@each((*dynamo.KINDS, "postgresql") if LONG else ("dynoxide", "postgresql"))
def the_same_answers(kind):
    """Replay, mismatch, unknown, 50 duplicates at once."""
    with server(kind) as url, Upstream() as up:
        create(url)
        with gateway(up, url, workers=2) as (nginx, _, _):
            for path in "/pay", "/pay?size=300000", "/pay?status=404":
                first = nginx.post(path, path.strip("/"), b"x")
                again = nginx.post(path, path.strip("/"), b"x")
                equal((again.status, again.body), (first.status, first.body))
                assert again.replayed and not first.replayed
            equal(nginx.post("/pay", "pay", b"y").problem, "request-mismatch")
            equal(nginx.post("/pay?mode=drop", "d", b"x").status, 502)
            equal(nginx.post("/pay?mode=drop", "d", b"x").problem, "outcome-unknown")
            go = (49, lambda: up.let_go("h"))
            answers = nginx.many([("/pay?hold=h", "k", b"x")] * 50, after=go)
            equal(sorted(a.status for a in answers), [201] + [409] * 49)
            equal(up.executions("k"), 1)
    note(f"{kind}: {up.executions()} executions")


@each(("dynoxide",))
def a_table_that_moves(kind):
    """A worker trusts for half a minute that the table was not moved. What it executes in
    that time is in the export, which lists the table only after it."""
    with dynamo.server(kind) as url, Upstream() as up:
        create(url)
        with gateway(up, url) as (nginx, place, env):
            equal(nginx.post("/pay", "first", b"x").status, 201)
            leave = [PROGRAM, "export", "--open", "--to", "sqlite:new.db", "--store", place, "-"]
            left = start(leave, env, stdout=subprocess.PIPE)
            header = json.loads(left.stdout.readline())
            assert "move" in header, header
            lines, executed, refused = [], ["first"], 0
            reader = threading.Thread(target=lambda: lines.extend(left.stdout))
            reader.start()
            while reader.is_alive():
                key = f"k{len(executed) + refused}"
                answer = nginx.post("/pay", key, b"x")
                if answer.status == 201:
                    executed.append(key)
                else:
                    equal(answer.problem, "store-unavailable")
                    refused += 1
                reader.join(0.2)
            equal(left.wait(), 0)
            equal(nginx.post("/pay", "last", b"x").problem, "store-unavailable")
            records = [json.loads(line) for line in lines]
            equal(records[-1]["idem_export_end"], len(records) - 1)
            equal(sorted(r["key"] for r in records[:-1]), sorted(executed))
            equal(up.executions(), len(executed))
            note(f"{len(executed)} executed, {refused} refused before the end of the export")


@each(("dynoxide", "postgresql"))
def limits_in_a_service(kind):
    """Two of twenty new keys, and their replays."""
    limits = "idempotency_limit few global 2r/2d; idempotency_limit many global 1000r/2d;"
    with server(kind) as url, Upstream() as up:
        create(url)
        with gateway(up, url, workers=2, http=limits) as (nginx, _, _):
            answers = nginx.many([("/pay", f"k{i}", b"x") for i in range(20)])
            equal(sorted(a.status for a in answers), [201] * 2 + [429] * 18)
            equal(up.executions(), 2)
            for key in up.counts():
                assert nginx.post("/pay", key, b"x").replayed
            names = [a.headers["ratelimit-policy"] for a in answers if a.status == 201]
            equal(names, ['"few";q=2;w=172800, "many";q=1000;w=172800'] * 2)


@each(("dynoxide",))
def a_table_that_goes_away(kind):
    """503 at begin; the real answer and the journal at the end."""
    with Upstream() as up, contextlib.ExitStack() as stack:
        url = stack.enter_context(dynamo.server(kind))
        create(url)
        with gateway(up, url, timeout="5s") as (nginx, _, _):
            equal(nginx.post("/pay", "warm", b"x").status, 201)
            with nginx.working("/pay?hold=h") as answer:
                stack.close()
                up.let_go("h")
                got = answer()
            equal((got.status, got.headers["idempotency-recorded"]), (201, "false"))
            equal(len(kept(nginx.home + "/journal")), 1)
            late = nginx.post("/pay", "other", b"x")
            equal((late.status, late.problem), (503, "store-unavailable"))
            equal(up.executions("other"), 0)


@each(("dynoxide",))
def a_table_that_stands_still(kind):
    """A finished response does not wait for a table that does not answer, however long a
    claim may: it goes out unrecorded, its outcome is in the journal, and is told later."""
    with Upstream() as up, dynamo.server(kind) as url:
        create(url)
        with gateway(up, url, timeout="120s") as (nginx, _, _):
            equal(nginx.post("/pay", "warm", b"x").status, 201)
            journal = nginx.home + "/journal"
            with nginx.working("/pay?hold=h") as answer:
                with dynamo.frozen(url):
                    up.let_go("h")
                    got = answer()
                    equal((got.status, got.headers["idempotency-recorded"]), (201, "false"))
                    equal(len(kept(journal)), 1)
            until(lambda: not kept(journal))
            again = nginx.post("/pay?hold=h", "k", b"x")
            equal((again.status, again.replayed, up.executions("k")), (201, True, 1))


@each(("dynoxide",))
def a_waiter_outlasts_an_outage(kind):
    """A table that stands still for longer than the store's timeout, while a duplicate
    waits: it goes on waiting, and gets the answer."""
    with Upstream() as up, dynamo.server(kind) as url, contextlib.ExitStack() as stack:
        create(url)
        more = {"http": "idempotency_wait 300s;"}
        with gateway(up, url, timeout="6s", **more) as (nginx, _, _):
            equal(nginx.post("/pay", "warm", b"x").status, 201)
            first, second = (stack.enter_context(nginx.connect()) for _ in range(2))
            wire = request_bytes("/pay?hold=h", "k", b"x")
            first.sendall(wire)
            up.wait_for(1, "k")
            second.sendall(wire)
            until(lambda: nginx.at_work() == 2)
            with dynamo.frozen(url):
                answered = select.select([second], [], [], 8)[0]
            equal(answered, [])
            up.let_go("h")
            with first.makefile("rb") as stream:
                equal(read_answer(stream).status, 201)
            with second.makefile("rb") as stream:
                again = read_answer(stream)
            equal((again.status, again.replayed, up.executions("k")), (201, True, 1))


@each(("dynoxide",))
def a_worker_that_dies_while_it_tells(kind):
    """It told the journal first: the next worker tells the table."""
    with Upstream() as up, dynamo.server(kind) as url:
        create(url)
        with gateway(up, url, timeout="30s end_timeout=30s") as (nginx, _, _):
            equal(nginx.post("/pay", "warm", b"x").status, 201)
            journal = nginx.home + "/journal"
            equal(kept(journal), [])
            with nginx.connect() as s:
                s.sendall(request_bytes("/pay?hold=h", "k", b"x"))
                up.wait_for(1, "k")
                with dynamo.frozen(url):
                    up.let_go("h")
                    until(lambda: written(journal))
                    equal(select.select([s], [], [], 0.2)[0], [])
                    os.kill(nginx.workers()[0], signal.SIGKILL)

            def told():
                with contextlib.suppress(OSError):
                    answer = nginx.post("/pay?hold=h", "k", b"x")
                    return answer if answer.problem != "in-progress" else None

            got = until(told)
            equal((got.status, got.replayed), (201, True))
            until(lambda: not kept(journal))
            equal(up.executions("k"), 1)


@each(("dynoxide",))
def a_claim_whose_answer_is_lost(kind):
    """The table makes the claim, and no answer comes through: 503, or the client has
    left. When answers come again, the claim is given back, long before its lease of ten
    minutes ends."""
    losing = threading.Event()

    async def lose(between, client, request):
        if not losing.is_set():
            return await proxy.passed_on(between, client, request)
        if request.writes:
            await between.forward(request)
        client.reset()
        return True

    http = "idempotency_lease 10m;"
    for leaves in False, True:
        with dynamo.server(kind) as url, Upstream() as up, proxy.chaos(url, rule=lose) as bad:
            create(url)
            with gateway(up, bad.url, timeout="6s", http=http) as (nginx, _, env):
                equal(nginx.post("/pay", "warm", b"x").status, 201)
                losing.set()
                with nginx.connect() as s, s.makefile("rb") as stream:
                    s.sendall(request_bytes("/pay", "k", b"x"))
                    until(lambda: shown(url, env) == "in_progress")
                    if not leaves:
                        equal(read_answer(stream).problem, "store-unavailable")
                until(lambda: nginx.errors().count("cannot look up a key") == 1 + leaves)
                equal(shown(url, env), "in_progress")
                losing.clear()
                until(lambda: shown(url, env) == "released")
                equal(up.executions("k"), 0)
                until(lambda: nginx.post("/pay", "k", b"x").status == 201)


def shown(url, env):
    """The status of the record of "k", or None."""
    done = run([PROGRAM, "show", "--json", "--store", place_of(url), "k"], env)
    return json.loads(done.stdout)["status"] if done.status == 0 else None


if __name__ == "__main__":
    main()
