"""Outcomes that wait in a journal when a worker starts: nobody waits for those of
others, and no work begins whose outcome is there."""

import contextlib
import fcntl
import os
import signal
import time

from kept import kept
from nginx import ON, Nginx, Upstream, held, read_answer, request_bytes
from patience import until
from tap import equal, main, run, test

FILL = os.environ["IDEM_PUT_ENTRIES"]
LATE = os.environ["IDEM_LATE_THREADS"]
ENTRIES = 1000
RERUN = ON + "idempotency_on_expired_lease rerun;"
PASS = (
    "location /passed { idempotency_on_store_error pass; idempotency_fingerprint off;"
    " proxy_pass http://app; }"
)


def fill(nginx, entries):
    """Attempts under rerun whose leases are over, and their outcomes in the journal."""
    store = nginx.home + "/idem.db"
    done = run([FILL, f"sqlite:{store}", store + ".journal", str(entries), "2000"])
    equal((done.status, done.stderr), (0, b""))
    equal(len(kept(store + ".journal")), entries)


def start_anew(nginx):
    """A worker that knows nothing of the one before."""
    old = nginx.workers()
    os.kill(old[0], signal.SIGKILL)
    until(lambda: nginx.workers() and nginx.workers() != old)


@contextlib.contextmanager
def turn(journal):
    """Another process is at it, so that this one's workers tell nothing by themselves."""
    fd = os.open(journal, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def refused(answer):
    equal((answer.status, answer.problem), (503, "store-unavailable"))
    assert int(answer.headers["retry-after"]) >= 1


def told(nginx, path):
    """The first answer that is not a refusal."""
    return until(lambda: (a := nginx.post(path, "k", b"x")).status != 503 and a)


@test
def a_long_journal_keeps_nobody_waiting():
    """A worker answers before it has told one outcome; a key whose outcome is there is
    not begun; and all of them are told in the end."""
    asked = [f"key-{i}" for i in range(0, ENTRIES, 20)]
    with Upstream() as up, Nginx(up, http=RERUN, workers=1) as nginx:
        journal = nginx.home + "/idem.db.journal"
        equal(nginx.post("/pay", "warm", b"x").status, 201)
        with turn(journal):
            fill(nginx, ENTRIES)
            start_anew(nginx)
            equal(nginx.post("/pay", "new", b"x").status, 201)
            equal(len(kept(journal)), ENTRIES)
            time.sleep(2)  # The last lease is over.
            answers = [nginx.post("/pay", key, b"x") for key in asked]
            equal({a.problem for a in answers}, {"outcome-unknown"})
            equal(len(kept(journal)), ENTRIES - len(asked))
        until(lambda: not kept(journal))
        equal(up.executions(), 2)
        until(lambda: f"has recorded {ENTRIES} outcomes" in nginx.errors())


@test
def a_thread_tells_before_its_worker_knows_of_it():
    """A worker that starts beside a journal with outcomes: its thread tells them while
    the function that started the thread has not returned."""
    entries = 40
    with Upstream() as up, Nginx(up, http=RERUN, workers=1, preload=LATE) as nginx:
        journal = nginx.home + "/idem.db.journal"
        equal(nginx.post("/pay", "warm", b"x").status, 201)
        fill(nginx, entries)
        start_anew(nginx)
        until(lambda: not kept(journal))
        equal(nginx.post("/pay", "new", b"x").status, 201)
        assert "exited on signal 11" not in nginx.errors(), nginx.errors()


@test
def an_outcome_that_its_worker_holds_is_told_first():
    """After an outage and the end of the lease, the key of an outcome that the worker
    will submit again is not begun under rerun: its request waits for the outcome."""
    http = RERUN.replace("idem.db;", "idem.db timeout=1s;") + "idempotency_lease 2s;"
    with Upstream() as up, Nginx(up, http=http, workers=1) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            with held(nginx.home + "/idem.db"):
                up.let_go("h")
                equal(answer().headers["idempotency-recorded"], "false")
                time.sleep(2.2)  # The lease is over.
            again = told(nginx, "/pay?hold=h")
        equal((again.status, again.replayed), (201, True))
        equal(up.executions("k"), 1)


@test
def an_outcome_that_the_store_does_not_take_refuses_its_key():
    """A duplicate during the outage leaves the outcome to the teller in vain. It is not
    executed, nor is one right after the outage, for which the teller does not ask again."""
    http = RERUN.replace("idem.db;", "idem.db timeout=1s;") + "idempotency_lease 2s;"
    with Upstream() as up, Nginx(up, http=http, server=PASS, workers=1) as nginx:
        with nginx.working("/pay?hold=h") as answer, held(nginx.home + "/idem.db") as store:
            up.let_go("h")
            equal(answer().headers["idempotency-recorded"], "false")
            with turn(nginx.home + "/idem.db.journal"):
                time.sleep(2.2)  # The lease is over.
                refused(nginx.post("/passed", "k", b"x"))
                store.kill()
                store.wait()
                second = nginx.post("/pay?hold=h", "k", b"x")
                assert second.status == 503 or second.replayed, second
        again = told(nginx, "/pay?hold=h")
        equal((again.status, again.replayed), (201, True))
        equal(up.executions("k"), 1)


@test
def an_outcome_in_memory_alone_refuses_its_key():
    """Without a journal, or where it is full, a duplicate is not executed while the store
    is away, nor once it is back, before it has the outcome; then it is replayed."""
    http = RERUN.replace("idem.db;", "idem.db timeout=1s journal=off;") + "idempotency_lease 2s;"
    with Upstream() as up, Nginx(up, http=http, server=PASS, workers=1) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            with held(nginx.home + "/idem.db"):
                up.let_go("h")
                equal(answer().headers["idempotency-recorded"], "false")
                time.sleep(2.2)  # The lease is over.
                refused(nginx.post("/passed", "k", b"x"))
            second = nginx.post("/pay?hold=h", "k", b"x")
            assert second.status == 503 or second.replayed, second
        again = told(nginx, "/pay?hold=h")
        equal((again.status, again.replayed), (201, True))
        equal(up.executions("k"), 1)


@test
def a_large_outcome_in_memory_alone_is_not_executed_again():
    """Memory does not hold a large response, but that the work is done."""
    http = RERUN.replace("idem.db;", "idem.db timeout=1s journal=off;") + "idempotency_lease 2s;"
    with Upstream() as up, Nginx(up, http=http, server=PASS, workers=1) as nginx:
        with nginx.working("/pay?hold=h&size=100000") as answer:
            with held(nginx.home + "/idem.db"):
                up.let_go("h")
                equal(len(answer().body), 100000)
                time.sleep(2.2)  # The lease is over.
                refused(nginx.post("/passed", "k", b"x"))
        again = told(nginx, "/pay?hold=h&size=100000")
        equal((again.status, again.problem), (409, "response-not-kept"))
        equal(up.executions("k"), 1)


@test
def an_outcome_that_is_submitted_again_refuses_its_key():
    """A duplicate while the store has not answered that yet is not executed."""
    http = RERUN.replace("idem.db;", "idem.db timeout=9s end_timeout=1s;")
    http += "idempotency_lease 2s;"
    with Upstream() as up, Nginx(up, http=http, server=PASS, workers=1) as nginx:
        with nginx.working("/pay?hold=h") as answer:
            with held(nginx.home + "/idem.db"):
                up.let_go("h")
                equal(answer().headers["idempotency-recorded"], "false")
                time.sleep(5.5)  # Within 5 s it is submitted again, for 9 s.
                refused(nginx.post("/passed", "k", b"x"))
        again = told(nginx, "/pay?hold=h")
        equal((again.status, again.replayed), (201, True))
        equal(up.executions("k"), 1)


@test
def a_disk_that_does_not_answer_ends_no_worker():
    """An outcome that the store refused is told again, on a disk that takes longer for
    it than the store may: it is told in the end, by the same worker."""
    stalled = os.path.abspath("stalled")
    http = ON.replace("idem.db;", "idem.db timeout=1s;")
    with Upstream() as up, Nginx(
        up, http=http, workers=1, preload=LATE, env={"STALLED": stalled}
    ) as nginx:
        store = nginx.home + "/idem.db"
        equal(nginx.post("/warm", "warm").status, 201)
        with nginx.connect() as s, s.makefile("rb") as stream:
            s.sendall(request_bytes("/pay?hold=h", "k", b"x"))
            up.wait_for(1, "k")
            with held(store):
                up.let_go("h")
                equal(read_answer(stream).headers["idempotency-recorded"], "false")
                open(stalled, "w", encoding="ascii").close()
        workers = nginx.workers()
        time.sleep(10)  # Told again within 5 s, and given up after 3.
        os.remove(stalled)
        until(lambda: not kept(store + ".journal"))
        equal(nginx.workers(), workers)
        assert "exited on signal" not in nginx.errors(), nginx.errors()
        assert nginx.post("/pay?hold=h", "k", b"x").replayed


main()
