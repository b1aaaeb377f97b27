"""The Python package: what it does once, what it tells of the verdicts, and what remains
when it, its process or its child is killed."""

import ast
import asyncio
import contextlib
import glob
import importlib.util
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import wraps

import packed
import postgres
from box import Worker, case, contains
import deaths
from files import read
from patience import PATIENCE, until
from procfs import children, marked, named
from tap import PROGRAM, TOP, at_once, environment, equal, main, skip

PACKAGE = os.path.join(TOP, "clients", "python")
sys.path.insert(0, PACKAGE)

import idem  # noqa: E402


@contextlib.contextmanager
def store_of(b, program=PROGRAM):
    with settings(b), idem.open(b.idem.store, program) as store:
        yield store


@contextlib.contextmanager
def settings(b):
    """The files of the child are in the box."""
    before = dict(os.environ)
    os.environ.update(environment_of(b))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def environment_of(b):
    return environment({
        "IDEM_AUDIT_LOG": b.file("audit.log"), "IDEM_JOURNAL_DIR": b.file("journal"),
        "PYTHONPATH": PACKAGE, "IDEM_PROGRAM": PROGRAM, "HOME": b.path, "STORE": b.idem.store,
    })


HEAD = """
import asyncio, idem, os, signal, sys, threading
store = idem.open(os.environ["STORE"])
def effect():
    with open("ledger", "a") as f:
        f.write("effect\\n")
    return "charged"
def say(word):
    print(word, flush=True)
def wait():
    sys.stdin.readline()
def never():
    raise AssertionError("it ran again")
def raises(kind, key, **words):
    try:
        store.once(key, never, **words)
    except kind:
        return
    raise AssertionError(key)
"""


def started(b, script, **more):
    return Worker(b, [sys.executable, "-c", HEAD + script], {**environment_of(b), **more})


def raised(kind, function, *args, **words):
    try:
        got = function(*args, **words)
    except kind as error:
        return error
    raise AssertionError(f"not raised, but returned: {got!r}")


def raises(error):
    def work():
        raise error

    return work


def never():
    raise AssertionError("it ran again")


def takeover(attempt):
    return attempt.takeover


@case
def a_path_that_is_not_utf_8(b):
    """Answers and errors that show it are JSON all the same."""
    with settings(b), idem.open(f"sqlite:{b.path}/\udcff.db", PROGRAM) as store:
        equal(store.once("k", lambda: 1), 1)


# ---- The verbs ---------------------------------------------------------------


@case
def once_is_one_run(b):
    """A second call returns what the first did, whatever JSON, text or bytes it was;
    without idem the effect doubles."""
    runs = []

    def charge():
        runs.append(1)
        return {"receipt": (1, 2), "ä\0": None}

    with store_of(b) as store:
        charge(), charge()
        equal(len(runs), 2)
        first = store.once("order-42", charge)
        equal(first, {"receipt": [1, 2], "ä\0": None})
        equal((store.once("order-42", never), len(runs)), (first, 3))
        deep = []
        for _ in range(300):
            deep = [deep]
        for n, value in enumerate((None, "", "[1]", b"\0\xff", b"", b"ab", 0, [1.5, 10**30], "ä\0", deep)):
            equal(store.once(["t", n], lambda value=value: value), value)
            equal(store.once(["t", n], never), value)
        equal(b.record('=["t","0"]')["status"], "completed")


@case
def results_that_cannot_be_kept(b):
    """Work whose result is not JSON, or too long, is done all the same, and the first
    caller hears of it."""
    with store_of(b) as store:
        for n, value in enumerate((object(), float("nan"), "\ud800", "x" * (25 << 20))):
            assert raised(idem.NotKept, store.once, f"k{n}", lambda value=value: value).result is value
            raised(idem.NotKept, store.once, f"k{n}", never)
            equal(b.record(f"k{n}")["status"], "completed")


@case
def what_is_raised_decides(b):
    """NothingHappened releases, Failed fails, and anything else is unknown under hold
    and another attempt under rerun; all are raised again."""
    with store_of(b) as store:
        for kind, policy, status in (
            (idem.NothingHappened, "hold", "released"), (idem.Failed, "rerun", "failed"),
            (ValueError, "hold", "unknown"), (KeyboardInterrupt, "rerun", "retry"),
            (SystemExit, "hold", "unknown"),
        ):
            key, error = f"{kind.__name__}-{policy}", kind("why")
            words = {"on_expired_lease": policy}
            assert raised(kind, store.once, key, raises(error), **words) is error
            equal((key, b.record(key)["status"]), (key, status))
        equal(store.once("NothingHappened-hold", lambda: "now"), "now")
        equal(store.once("KeyboardInterrupt-rerun", lambda attempt: attempt.takeover), True)
        equal(store.once("wrapped", wraps(takeover)(lambda *args, **words: takeover(**words))), False)
        failed = raised(idem.Failed, store.once, "f", raises(idem.Failed("no money", {"code": 7})))
        again = raised(idem.Failed, store.once, "f", never)
        equal((str(again), again.result), (str(failed), failed.result))
        contains(str(raised(idem.Unknown, store.once, "ValueError-hold", never)), "why")


@case
def verdicts_are_exceptions(b):
    """Each verdict but STARTED and REPLAY, and each kind of error; a missing key never
    runs the work; no text has a token."""
    with store_of(b) as store:
        attempt = store.begin("k", fingerprint={"a": 1}, lease=600)
        texts = [repr(attempt), str(attempt.__dict__["record"])]
        busy = raised(idem.Busy, store.once, "k", never)
        assert 590 < busy.lease_left <= 600
        texts.append(str(busy))
        equal(busy.record["status"], "in_progress")
        mismatch = raised(idem.Mismatch, store.once, "k", never, fingerprint={"a": 2})
        equal(attempt.renew(lease=900) > 800, True)
        attempt.check()
        attempt.complete("secret", text="note")
        for call in (attempt.check, attempt.renew, attempt.complete, attempt.release):
            texts.append(str(raised(idem.Lost, call)))
        texts.append(str(mismatch))
        replay = store.begin("k", fingerprint={"a": 1})
        equal((replay.replayed, replay.result), (True, "secret"))
        for verb, status in (("fail", "failed"), ("release", "released"), ("retry", "retry"),
                             ("unknown", "unknown")):
            getattr(store.begin(verb), verb)("why")
            equal(b.record(verb)["status"], status)
        for text in texts:
            assert attempt._token not in text and "secret" not in text, text
        for key in (None, "", [], ["a", None]):
            raised(idem.MissingKey, store.once, key, never)
        raised(TypeError, store.once, "x", never, leese=1)
        raised(idem.Invalid, store.once, "x" * 2000, never)
        raised(idem.Invalid, store.once, "x", never, on_expired_lease="both")
        deep = []
        for _ in range(300):
            deep = [deep]
        raised(idem.Invalid, store.once, "x", never, fingerprint=deep)
        words = {"max": 1, "per": 3600}
        got = [store.limit("up", "ann", r, **words).admitted for r in ("a", "b", "a")]
        equal(got, [True, False, True])
        store.begin("open")
        raised(idem.Invalid, store.close)
        store.begin("other").release()
        next(iter(store.open.values())).release()
    contains(str(raised(idem.Invalid, store.begin, "x")), "closed")


@case
def a_lease_that_is_over(b):
    """check() asks where the lease is over by the clock, and where it runs a notice of
    the server suffices."""
    with store_of(b) as store:
        attempt = store.begin("taken")
        equal(b("resolve", "taken", "--release", "--force", "--reason", "test").status, 0)
        attempt.check()  # By our clock it runs, and nobody has told us.
        attempt._until = 0
        raised(idem.Lost, attempt.check)
        raised(idem.Lost, attempt.complete)
        told = store.begin("told")
        told._child.lost[told._number] = "lease_over"
        raised(idem.Lost, told.check)
        told.complete("nobody followed")
        equal(store.once("told", never), "nobody followed")


@case
def time_that_tests_move(b):
    """Tests move the time of a store in memory: a lease that ended is lost before the call
    returns, and who waits for it goes on. Other stores refuse it."""
    rerun = {"on_expired_lease": "rerun"}
    with settings(b), idem.open("memory:", PROGRAM) as store, ThreadPoolExecutor() as pool:
        attempt = store.begin("k", **rerun)
        for _ in range(2):
            store.advance(40)
            attempt.check()  # It was renewed.
        waits = pool.submit(store.once, "k", takeover, wait=86400, wait_then_run=True, **rerun)
        until(lambda: store.child.pending, "it has asked")
        store.advance(timedelta(minutes=2))
        raised(idem.Lost, attempt.check)
        equal(waits.result(PATIENCE), True)
        raised(idem.Lost, attempt.complete)
        store.advance(timedelta(days=2))
        equal(store.once("k", lambda: "anew", **rerun), "anew")
        raised(idem.Invalid, store.advance, -1)
        raised(idem.Invalid, store.advance, None)

    async def main():
        async with idem.open_async("memory:", PROGRAM) as store:
            attempt = await store.begin("k")
            await store.advance(61)
            with contextlib.suppress(idem.Lost):
                await attempt.check()
                raise AssertionError("not lost")
            await attempt.release()

    with settings(b):
        asyncio.run(main())
    with store_of(b) as store:
        contains(str(raised(idem.Invalid, store.advance, 1)), "cannot be moved; use memory:")


@case
def a_decorator(b):
    """The key, and the fingerprint, come from the arguments; the attempt is given to a
    function that wants it."""
    with store_of(b) as store:
        @store.idempotent(key=lambda order: order.get("id"), fingerprint=lambda order: order)
        def charge(order, *, attempt):
            """Charge it."""
            attempt.check()
            return [order["id"], attempt.key, attempt.fence > 0, attempt.takeover]

        equal((charge.__name__, charge.__doc__), ("charge", "Charge it."))
        equal(charge({"id": "42"}), ["42", "42", True, False])
        equal(charge({"id": "42"}), ["42", "42", True, False])
        raised(idem.Mismatch, charge, {"id": "42", "amount": 7})
        raised(idem.MissingKey, charge, {})
        raised(TypeError, store.idempotent(key="42"), never)


@case
def no_program(b):
    """One sentence says so, or that it does not start or has no store."""
    with settings(b):
        os.environ.pop("IDEM_PROGRAM")
        os.environ["PATH"] = "/nonexistent"
        contains(str(raised(idem.NoProgram, idem.open, b.idem.store)), "no idem program for linux-")
        os.environ["PATH"] = b.path  # Which has the program.
        idem.open(b.idem.store).close()
        raised(idem.NoProgram, idem.open(b.idem.store, "/dev/null").begin, "k")
        store = idem.open("sqlite:/nonexistent/idem.db", PROGRAM)
        raised(idem.Unavailable, store.begin, "k")
        raised(idem.Invalid, idem.open, "")


@case
def effect_and_record_in_one_commit(b):
    """On PostgreSQL the statement completes the attempt in the caller's own transaction."""
    postgres.need()
    with postgres.server() as database, settings(b):
        equal(b("store", "create", "--store", database.url).status, 0)
        with idem.open(database.url, PROGRAM) as store:
            attempt = store.begin("k", on_expired_lease="rerun")
            made = attempt.statement({"receipt": 42})
            database.psql(f"BEGIN; CREATE TABLE effect (); {postgres.literal(made)}; COMMIT")
            attempt.recorded()
            equal(store.once("k", never), {"receipt": 42})


# ---- Threads and asyncio -----------------------------------------------------


@case
def threads_share_one_child(b):
    """64 threads, each with a key of its own and one that all want."""
    runs = []

    def work(n):
        equal(store.once(f"own-{n}", lambda: n), n)
        equal(store.once("all", lambda: runs.append(n) or "one", wait=60), "one")

    with store_of(b) as store:
        at_once(work, range(64))
        equal(len(runs), 1)
        equal(list(named(children(os.getpid())).values()).count("idem"), 1)


@case
def asyncio_and_cancellation(b):
    """64 in flight, one of them waiting for another; what is cancelled while it waits
    claims nothing, and what is cancelled at its work is ended as any failure."""

    async def everything():
        async with idem.open_async(b.idem.store, PROGRAM) as store:
            async def number(n):
                await asyncio.sleep(0)
                return n

            some = [store.once(f"k{n}", lambda n=n: number(n)) for n in range(64)]
            equal(await asyncio.gather(*some), list(range(64)))
            equal(await store.once("k7", never), 7)
            equal(await store.once("plain", lambda: "not a coroutine"), "not a coroutine")

            for policy, status in (("hold", "unknown"), ("rerun", "retry")):
                at_work = asyncio.Event()

                @store.idempotent(key=lambda k: k, on_expired_lease=policy)
                async def hang(key, *, attempt, at_work=at_work):
                    await attempt.check()
                    at_work.set()
                    await asyncio.Event().wait()

                task = asyncio.ensure_future(hang(policy))
                await at_work.wait()
                waits = asyncio.ensure_future(store.begin(policy, wait=600))
                await asyncio.sleep(0)  # It has asked.
                waits.cancel()
                await asyncio.gather(waits, return_exceptions=True)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                equal((waits.cancelled(), task.cancelled()), (True, True))
                equal(b.record(policy)["status"], status)

            task = asyncio.ensure_future(store.begin("cut"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await (await store.begin("cut", wait=60, wait_then_run=True)).complete({"a": 1})
            equal((await store.begin("cut")).result, {"a": 1})
            got = await store.limit("l", "s", "r", max=1, per=60)
            equal(got.admitted, True)

    with settings(b):
        asyncio.run(everything())
    assert "idem" not in named(children(os.getpid())).values()


@case
def a_loop_ends_with_a_call_unsent(b):
    """The next loop sends it: the one that had it to send does nothing any more."""

    async def numbered(n):
        got = await asyncio.wait_for(store.limit("l", "s", f"r{n}", max=9, per=60), PATIENCE)
        equal(got.remaining, 9 - n)

    with settings(b):
        store = idem.open_async(b.idem.store, PROGRAM)
        first, second, third = (asyncio.new_event_loop() for _ in range(3))
        first.run_until_complete(numbered(1))
        second.call_soon(lambda: store.limit("l", "s", "r2", max=9, per=60).send(None))
        second.call_soon(second.stop)
        second.run_forever()
        third.run_until_complete(numbered(3))
        third.run_until_complete(store.close())
        for loop in (first, second, third):
            loop.close()


# ---- Deaths ------------------------------------------------------------------


deaths.add_cases(started, {
    "race": "say('ready'); wait(); say(store.once('k', effect, wait=60))",
    "control": "say('ready'); wait(); say(effect())",
    "hang": """
def hang():
    effect()
    say(store.child.process.pid)
    wait()
    THEN
    wait()
store.once("KEY", hang, on_expired_lease="POLICY", on_death="DEATH", lease=60)
""",
    "kills its child": """
    child = store.child
    os.kill(child.process.pid, signal.SIGKILL)
    while store.child is child:
        threading.Event().wait(0.01)
    attempt, = store.open.values()
    attempt.check()
    assert attempt._child is store.child
    say(store.child.process.pid)""",
    "request": """
from idem.core import run
def hang():
    headers = [("Idempotency-Key", "request")]
    request = {"method": "POST", "target": "/", "headers": headers, "scope": "", "body": ""}
    begun = run(store.http_(request, {}))
    THEN
    assert run(begun._respond({"http_status": 201, "headers": []}))
hang()
""",
    "after": """
raises(idem.Unknown, "hold-lease")
again = {"on_expired_lease": "rerun"}
raises(idem.Busy, "rerun-lease", **again)
assert store.once("rerun-now", lambda attempt: attempt.takeover, **again) is True
""",
    "once": """
runs = []
def work(attempt):
    runs.append(1)
    return [len(runs), attempt.attempts]
assert store.once("KEY", work) == [1, 1]
assert store.once("KEY", never) == [1, 1]
""",
    "says its child": """
store.limit("l", "s", "r", max=9, per=60)
say(store.child.process.pid)
""",
    "refused": """
for _ in range(2):
    raises(idem.Invalid, "k")
say("refused")
wait()
""",
    "done": "store.once('done', effect)",
    "open": "store.begin('open')",
    "exit": "store.once('exit', sys.exit)",
    "unread": """
long, got = "x" * 10**6, []
store.once("long", lambda: long)
say(store.child.process.pid)
wait()
threads = [threading.Thread(target=lambda: got.append(store.once("long", never))) for _ in range(64)]
for thread in threads:
    thread.start()
while len(store.child.pending) < 64:
    threading.Event().wait(0.01)
say("asked")
for thread in threads:
    thread.join()
assert got == [long] * 64
""",
    "frozen": """
attempt = store.begin("KEY", on_expired_lease="rerun", lease=12)
say("begun")
wait()
attempt.check()
say("ours")
wait()
try:
    attempt.check()
    effect()
except idem.Lost:
    say("lost")
""",
    "told of it": "lost\n",
}, before_it=("done", "exit"))  # fmt: skip


@case
def a_child_is_killed_while_a_begin_waits(b):
    """The next child goes on waiting, for the same claimant."""
    with store_of(b) as store, store_of(b) as other:
        attempt, got = other.begin("waits"), []
        thread = threading.Thread(target=lambda: got.append(store.once("waits", never, wait=600)))
        thread.start()
        until(lambda: store.child and store.child.pending, "it waits")
        killed = store.child
        killed.process.kill()
        until(lambda: store.child is not killed, "there is another")
        attempt.complete("from the other")
        thread.join()
        equal(got, ["from the other"])


@case
def a_child_that_does_not_start_again(b):
    """It is tried once for each call; an end that was not recorded can be said again."""
    with store_of(b) as store:
        attempt, starts = store.begin("k"), b.file("starts")
        b.write("broken", f"#!/bin/sh\necho >>{starts}\n")
        os.chmod(b.file("broken"), 0o755)
        store.program = b.file("broken")
        store.child.process.kill()
        store.child.thread.join()
        for _ in range(2):
            contains(str(raised(idem.Unavailable, attempt.complete, "r")), "ended with status 0")
        equal(b.read("starts"), "\n" * 3)
        store.program = PROGRAM
        attempt.complete("r")
        equal(store.once("k", never), "r")


@case
def a_fork_has_a_child_of_its_own(b):
    """Forked before and after the first call: calls of each process at the same time, and
    no answer of another; an attempt of the parent is not ended by its child."""
    script = """
def calls(who):
    for n in range(CALLS):
        request = f"{who}-{n}"
        got = store.once("same", never) + store.limit("l", who, request, max=n + 1, per=YEAR).remaining
        assert got == 7, (who, n, got)
    mine = store.once(f"key-{who}", lambda: who)
    assert mine == who, mine
def fork(who, more=lambda: None):
    pid = os.fork()
    if pid == 0:
        try:
            more()
            calls(who)
            os._exit(0)
        finally:
            os._exit(1)
    return pid
def not_ours():
    try:
        attempt.complete()
    except idem.Lost:
        return
    raise AssertionError
wait()
pids = [fork("before")]
assert store.once("same", never) == 7
attempt = store.begin("parents")
pids.append(fork("after", not_ours))
calls("parent")
attempt.complete("still ours")
for pid in pids:
    assert os.waitpid(pid, 0)[1] == 0
"""
    with store_of(b) as store:
        store.once("same", lambda: 7)
        worker = started(b, script.replace("CALLS", str(deaths.CALLS)).replace("YEAR", str(deaths.YEAR)))
        worker.go()
        worker.ends()
        equal(store.once("parents", never), "still ours")
        equal([store.once(f"key-{w}", never) for w in ("before", "after", "parent")],
              ["before", "after", "parent"])


# ---- Other loops, and the package --------------------------------------------


@case
def cancellation_on_uvloop(b):
    """The case of asyncio once more."""
    python = "/usr/bin/python3"  # It has Debian's modules.
    script = """
import runpy, sys, uvloop
uvloop.install()
sys.argv[:] = [sys.argv[1], "--only", "asyncio_and_cancellation"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    if subprocess.run([python, "-c", "import uvloop"], capture_output=True).returncode:
        skip("uvloop is not installed: tools/deps test")
    here = os.path.join(TOP, "tests/clients")
    env = {**os.environ, "PYTHONPATH": f"{TOP}/tests/lib:{here}"}
    argv = [python, "-c", script, os.path.join(here, "python.py")]
    done = subprocess.run(argv, env=env, capture_output=True)
    contains(done.stdout.decode(), "\nok 1")


@case
def pytest_ends(b):
    """Tests that share a store, and leave an attempt open: pytest ends, and its child too."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-m", "pytest", "--version"], capture_output=True).returncode:
        skip("pytest is not installed: tools/deps test")
    b.write("test_it.py", """
import idem, os
store = idem.open(os.environ["STORE"])
def test_one():
    assert [store.once("k", lambda: 42) for _ in range(2)] == [42, 42]
def test_another():
    assert store.begin("open").attempts == 1
""")
    done = subprocess.run([python, "-m", "pytest", "-q"], env=environment_of(b), cwd=b.path, capture_output=True)
    contains(done.stdout.decode(), "2 passed")
    until(lambda: not marked(f"STORE={b.idem.store}".encode()), "its child has ended")
    equal(b.record("open")["status"], "unknown")


@case
def it_is_python_3_9(b):
    """Its syntax, no import but of the standard library and itself, and a list of names
    that type checkers can read."""
    names = re.search(r"^__all__ = (\[.*?^\])", read(PACKAGE, "idem", "__init__.py"), re.M | re.S)
    equal(ast.literal_eval(names[1]), idem.__all__)
    for path in glob.glob(os.path.join(PACKAGE, "idem", "*.py")):
        tree = ast.parse(read(path), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                known = name.partition(".")[0] in sys.stdlib_module_names
                assert known or name == "typing_extensions", (path, name)


@case
def what_the_pages_show_works(b):
    """Each block of Python of its README and docs/languages.md runs, in order."""
    argv = [sys.executable, "-W", "error", "-c"]
    play = lambda script: ([*argv, script], environment_of(b))
    deaths.play_pages(b, "python", "python", play, "taken over: True")


@case
def the_packed_file_is_all_it_takes(b):
    """From `pip install` of the packed file, without a network, to a replay by the page's
    first ten lines: as an ordinary user, with nothing to write to but the store."""
    found = importlib.util.find_spec("pip")
    if found is None:
        skip("this Python has no pip")
    pip = os.path.relpath(os.path.dirname(found.origin), sys.base_prefix)
    packed.pack(b.path)
    (first, *_) = re.findall(r"^```python\n(.*?)^```$", read(os.path.join(PACKAGE, "README.md")), re.M | re.S)
    assert first.count("\n") <= 10 and "1001" in first, first
    b.write("page.py", "import os\n" + first.replace("1001", "os.getpid()"))
    install = f"/mnt/bin/python3 /mnt/{pip} install --no-index --target=there idem_once-*.whl"
    printed = packed.try_out(b.path, install, "PYTHONPATH=there /mnt/bin/python3 -W error page.py")
    equal((len(printed), len(set(printed))), (4, 1))


if __name__ == "__main__":
    main()
