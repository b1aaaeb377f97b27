/* Races for one key, between threads, handles and processes; and, as a control,
 * the same races without idem, which show the effect done twice. */
#include "contract.h"

#include "threads.h"

#include <idem/operator.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CALLERS = 64,
    HANDLES = 4,
    PATIENCE_MS = 60000
};

/* What all threads of a race share. */
struct race {
    struct idem_store *handles[HANDLES];
    struct idem_request request;
    unsigned effects;
    unsigned verdicts[8];
    unsigned errors;
    unsigned wrong; /* Answers that must not be. */
    unsigned inside;
    uint64_t fence;
};

static void add(unsigned *counter)
{
    (void)__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
}

/* The effect of the work, which takes time and must happen once. */
static void do_effect(struct race *race)
{
    add(&race->effects);
    sleep_ms(1);
}

static void open_handles(struct fixture *f, struct race *race)
{
    size_t i;

    memset(race, 0, sizeof(*race));
    for (i = 0; i < HANDLES; i++) {
        race->handles[i] = handle_open(f, &f->options);
    }
}

static void close_handles(struct fixture *f, struct race *race)
{
    size_t i;

    for (i = 0; i < HANDLES; i++) {
        handle_close(f, race->handles[i]);
    }
}

/* Lets @callers do @work for @key through all handles, and fails if anything goes wrong. */
static void run_race(struct fixture *f, struct race *race, size_t callers,
                     void (*work)(void *ctx, size_t i),
                     struct idem_request request)
{
    open_handles(f, race);
    race->request = request;
    threads_run(callers, work, race);
    close_handles(f, race);
    assert_int_equal(race->errors, 0);
    assert_int_equal(race->wrong, 0);
}

/* ---- Claims ---- */

static void claim_and_work(void *ctx, size_t i)
{
    struct race *race = ctx;
    struct idem_attempt *attempt;

    if (idem_begin(race->handles[i % HANDLES], &race->request, &attempt,
                   NULL) != 0) {
        add(&race->errors);
        return;
    }
    add(&race->verdicts[attempt->verdict]);
    if (attempt->verdict == IDEM_STARTED) {
        do_effect(race);
        if (complete(attempt, "the one result") != 0) {
            add(&race->errors);
        }
    } else if (attempt->verdict == IDEM_REPLAY &&
               attempt->record->result.bytes.len != strlen("the one result")) {
        add(&race->wrong);
    }
    idem_attempt_destroy(attempt);
}

/* 64 threads claim one key at the same moment, through several handles: one of
 * them is started, and the others are told so. */
TEST_REAL(race, startsOneOfManyThreads)
{
    struct race race;
    int round;

    for (round = 0; round < 5; round++) {
        const char *key = numbered("k", (size_t)round);

        run_race(f, &race, CALLERS, claim_and_work, claim(key));
        assert_int_equal(race.effects, 1);
        assert_int_equal(race.verdicts[IDEM_STARTED], 1);
        assert_int_equal(race.verdicts[IDEM_BUSY] + race.verdicts[IDEM_REPLAY],
                         CALLERS - 1);
        assert_int_equal(status_of(f->store, key), IDEM_STATUS_COMPLETED);
    }
}

/* If all of them wait, each gets the result of the first. */
TEST_REAL(race, givesEveryWaiterTheResult)
{
    struct idem_request request = claim("k");
    struct race race;

    request.wait_ms = PATIENCE_MS;
    run_race(f, &race, CALLERS, claim_and_work, request);
    assert_int_equal(race.effects, 1);
    assert_int_equal(race.verdicts[IDEM_REPLAY], CALLERS - 1);
}

/* ---- A budget of failures ---- */

enum {
    BUDGET = 17
};

static void fail_until_given_up(void *ctx, size_t i)
{
    const struct idem_outcome outcome = {
        .status = IDEM_STATUS_RETRY,
        .text = idem_str("the bank was away"),
        .failures_max = BUDGET,
    };
    struct race *race = ctx;
    enum idem_verdict verdict = IDEM_BUSY;

    /* After an error an attempt may have no end: do not wait for its lease. */
    while ((verdict == IDEM_BUSY || verdict == IDEM_STARTED) &&
           __atomic_load_n(&race->errors, __ATOMIC_ACQUIRE) == 0) {
        struct idem_attempt *attempt;
        int rc;

        if (idem_begin(race->handles[i % HANDLES], &race->request, &attempt,
                       NULL) != 0) {
            add(&race->errors);
            return;
        }
        verdict = attempt->verdict;
        if (verdict == IDEM_STARTED) {
            add(&race->effects);
            if (idem_end(attempt, &outcome, NULL) != 0) {
                add(&race->errors);
            }
            rc = idem_end(attempt, &outcome, NULL);
            if (rc != 0 && rc != IDEM_ELOST) { /* Another has followed. */
                add(&race->errors);
            }
        } else if (verdict == IDEM_BUSY) {
            sleep_ms(1);
        }
        idem_attempt_destroy(attempt);
    }
    add(&race->verdicts[verdict]);
}

/* 64 owners race, and each reports its failure twice: exactly as many attempts are made as
 * the budget allows, and the last one needs a person. */
TEST_REAL(race, failsJustAtTheBudget)
{
    struct race race;
    const struct idem_record *record;

    run_race(f, &race, CALLERS, fail_until_given_up, claim("k"));
    assert_int_equal(race.effects, BUDGET);
    assert_int_equal(race.verdicts[IDEM_FAILED], CALLERS);
    record = get(f->store, "k");
    assert_int_equal(record->failures, BUDGET);
    assert_int_equal(record->attempts, BUDGET);
}

/* The same holds for a store with a thread of its own. */
TEST_REAL(race, startsOneWithAThreadOfTheStore)
{
    struct race race;

    f->options.flags = IDEM_OPEN_THREAD;
    run_race(f, &race, CALLERS, claim_and_work, claim("k"));
    assert_int_equal(race.effects, 1);
    assert_int_equal(race.verdicts[IDEM_STARTED], 1);
}

/* Looks first, then acts, as a program without idem does. */
static void look_and_work(void *ctx, size_t i)
{
    struct race *race = ctx;

    (void)i;
    if (__atomic_load_n(&race->verdicts[IDEM_REPLAY], __ATOMIC_ACQUIRE) == 0) {
        do_effect(race);
        (void)usleep(20000); /* Work takes its time. */
        add(&race->verdicts[IDEM_REPLAY]);
    }
}

/* The control: without idem the same 64 threads do it more than once. */
TEST(control, doesItTwiceWithoutIdem)
{
    struct race race;

    memset(&race, 0, sizeof(race));
    threads_run(CALLERS, look_and_work, &race);
    assert_true(race.effects > 1);
}

/* ---- Takeovers ---- */

static void take_over(void *ctx, size_t i)
{
    struct race *race = ctx;
    struct idem_attempt *attempt;

    if (idem_begin(race->handles[i % HANDLES], &race->request, &attempt,
                   NULL) != 0) {
        add(&race->errors);
        return;
    }
    add(&race->verdicts[attempt->verdict]);
    if (attempt->verdict == IDEM_STARTED && !attempt->takeover) {
        add(&race->wrong);
    }
    idem_attempt_destroy(attempt);
}

/* If many callers find that a lease is over, one takes over. */
TEST_VIRTUAL(race, lets64TakeOverOnce)
{
    struct idem_request request = rerun("k");
    struct race race;

    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    run_race(f, &race, CALLERS, take_over, request);
    assert_int_equal(race.verdicts[IDEM_STARTED], 1);
    assert_int_equal(race.verdicts[IDEM_BUSY], CALLERS - 1);
}

/* The first owner completes, late, while the next one takes over. */
struct duel {
    struct idem_store *store;
    struct idem_request request;
    struct idem_attempt *first;
    struct idem_attempt *second;
    size_t completer; /* Which of the two threads. */
    int completed;
    int begun;
};

static void fight(void *ctx, size_t i)
{
    struct duel *duel = ctx;

    if (i == duel->completer) {
        duel->completed = complete(duel->first, "by the first");
    } else {
        duel->begun =
            idem_begin(duel->store, &duel->request, &duel->second, NULL);
    }
}

/* Either the completion comes first and is replayed, or the takeover does and
 * the completion is lost: never both, never neither. */
TEST_VIRTUAL(race, decidesBetweenCompletionAndTakeover)
{
    int round;

    for (round = 0; round < 150; round++) {
        struct duel duel = {.store = f->store, .completer = round % 2};
        const char *key = numbered("k", (size_t)round);

        duel.request = rerun(key);
        duel.first = begin(f->store, &duel.request, IDEM_STARTED);
        host_pass(&f->host, 60000);
        threads_run(2, fight, &duel);
        assert_ok(duel.begun);
        if (duel.second->verdict == IDEM_STARTED) {
            assert_code(IDEM_ELOST, duel.completed);
            assert_int_equal(status_of(f->store, key), IDEM_STATUS_IN_PROGRESS);
        } else {
            assert_ok(duel.completed);
            assert_int_equal(duel.second->verdict, IDEM_REPLAY);
            assert_text(duel.second->record->result.bytes, "by the first");
        }
        idem_attempt_destroy(duel.second);
    }
}

/* ---- Purges ---- */

enum {
    CLAIMANTS = 8,
    SWEEPERS = 2,
    SWEEPS = 24
};

/* One round, of which each thread has its own part. */
struct sweep {
    struct race *race;
    struct idem_attempt *attempts[CLAIMANTS];
    uint64_t purged[SWEEPERS];
};

static void claim_or_purge(void *ctx, size_t i)
{
    struct sweep *sweep = ctx;
    struct race *race = sweep->race;
    struct idem_store *store = race->handles[i % HANDLES];
    int rc = i < CLAIMANTS
                 ? idem_begin(store, &race->request, &sweep->attempts[i], NULL)
                 : idem_purge(store, 0, &sweep->purged[i - CLAIMANTS], NULL);

    if (rc != 0) {
        add(&race->errors);
    }
}

/* Returns the attempt that started in this round. Fails unless all the others got BUSY for
 * it, and no fence went back. */
static struct idem_attempt *winner(struct sweep *sweep)
{
    struct race *race = sweep->race;
    struct idem_attempt *started = NULL;

    EACH(attempt, sweep->attempts) {
        freed_later(*attempt);
        if ((*attempt)->verdict == IDEM_STARTED) {
            assert_null(started);
            started = *attempt;
        } else {
            assert_int_equal((*attempt)->verdict, IDEM_BUSY);
        }
    }
    assert_non_null(started);
    assert_true(started->fence > race->fence);
    race->fence = started->fence;
    EACH(attempt, sweep->attempts) {
        assert_true((*attempt)->fence == race->fence);
    }
    return started;
}

/* ROW(70) Each round claimants and sweepers race for a record that is past its retention:
 * completed, released or abandoned. One claimant is started, whether a sweeper deleted the
 * old record first or found it taken; and what is not past its retention stays. */
TEST_VIRTUAL(race, ofClaimsAndPurges)
{
    struct idem_request kept = claim("kept");
    struct idem_request held = claim("held");
    struct race race;
    int round;

    kept.retention_ms = IDEM_NEVER;
    run(f->store, &kept, "kept");
    held.lease_ms = IDEM_NEVER;
    expect(f->store, &held, IDEM_STARTED);
    open_handles(f, &race);
    race.request = rerun("k");
    for (round = 0; round < SWEEPS; round++) {
        struct sweep sweep = {.race = &race};
        struct idem_attempt *attempt;

        threads_run(CLAIMANTS + SWEEPERS, claim_or_purge, &sweep);
        assert_int_equal(race.errors, 0);
        assert_true(sweep.purged[0] + sweep.purged[1] <= 1);
        attempt = winner(&sweep);
        if (round % 3 == 0) {
            assert_ok(complete(attempt, "done"));
        } else if (round % 3 == 1) {
            assert_ok(idem_release(attempt, idem_str(""), &why));
        }
        host_pass(&f->host, 3 * 86400000LL);
    }
    close_handles(f, &race);
    expect(f->store, &kept, IDEM_REPLAY);
    expect(f->store, &held, IDEM_BUSY);
}

/* ---- One at a time ---- */

static void work_in_turns(void *ctx, size_t i)
{
    struct race *race = ctx;
    int n;

    for (n = 0; n < 20; n++) {
        struct idem_attempt *attempt;

        if (idem_begin(race->handles[i % HANDLES], &race->request, &attempt,
                       NULL) != 0) {
            add(&race->errors);
            return;
        }
        if (attempt->verdict == IDEM_STARTED) {
            if (__atomic_add_fetch(&race->inside, 1, __ATOMIC_ACQ_REL) != 1 ||
                attempt->fence <= race->fence) {
                add(&race->wrong);
            }
            race->fence = attempt->fence;
            add(&race->effects);
            (void)sched_yield();
            (void)__atomic_sub_fetch(&race->inside, 1, __ATOMIC_ACQ_REL);
            if (idem_release(attempt, idem_str(""), NULL) != 0) {
                add(&race->errors);
            }
        } else if (attempt->verdict != IDEM_BUSY) {
            add(&race->wrong);
        }
        idem_attempt_destroy(attempt);
    }
}

/* Claimed and released by many threads in turn, a key has one owner at a time,
 * and each a higher fence than the one before. */
TEST_REAL(race, hasOneOwnerAtATime)
{
    struct idem_request request = claim("k");
    struct race race;

    run_race(f, &race, 8, work_in_turns, request);
    assert_true(race.effects >= 1);
    assert_int_equal(begin(f->store, &request, IDEM_STARTED)->attempts,
                     race.effects + 1);
}

/* ---- Renewals from another thread ---- */

struct watch {
    struct idem_attempt *attempt;
    unsigned renewals;
    unsigned failures;
};

static void renew_often(void *ctx)
{
    struct watch *watch = ctx;

    while (__atomic_load_n(&watch->renewals, __ATOMIC_ACQUIRE) < 50) {
        if (idem_renew(watch->attempt, 0, NULL) != 0) {
            add(&watch->failures);
        }
        add(&watch->renewals);
    }
}

/* A second thread may renew while the owner looks at its attempt. */
TEST_REAL(race, letsAnotherThreadRenew)
{
    struct idem_request request = claim("k");
    struct watch watch = {.renewals = 0};
    struct thread *thread;

    request.owner = idem_str("owner");
    watch.attempt = begin(f->store, &request, IDEM_STARTED);
    thread = thread_start(renew_often, &watch);
    while (__atomic_load_n(&watch.renewals, __ATOMIC_ACQUIRE) < 50) {
        assert_true(idem_attempt_lease_left_ms(watch.attempt) > 30000);
        assert_text(watch.attempt->record->owner, "owner");
        (void)sched_yield();
    }
    thread_join(thread);
    assert_int_equal(watch.failures, 0);
    assert_ok(complete(watch.attempt, "x"));
}

/* ---- Waiting ---- */

enum {
    WAITERS = 16
};

struct sleepers {
    struct fixture *f;
    struct idem_attempt *owners[WAITERS];
    long long ended_ms[WAITERS];
    long long woken_ms[WAITERS];
    int verdicts[WAITERS];
    int codes[WAITERS];
};

/* One half waits, the other half completes what it waits for. */
static void wait_or_complete(void *ctx, size_t i)
{
    struct sleepers *s = ctx;
    struct idem_request request = claim(numbered("k", i % WAITERS));
    struct idem_attempt *attempt;

    if (i < WAITERS) {
        request.wait_ms = PATIENCE_MS;
        if (idem_begin(s->f->store, &request, &attempt, NULL) == 0) {
            s->woken_ms[i] = now_ms();
            s->verdicts[i] = (int)attempt->verdict;
            idem_attempt_destroy(attempt);
        }
        return;
    }
    /* By then the waiters poll four times a second. */
    sleep_ms(900);
    s->codes[i - WAITERS] = idem_complete(s->owners[i - WAITERS], NULL, NULL);
    s->ended_ms[i - WAITERS] = now_ms();
}

/* Returns how late the waiters of one store return, on average. */
static long long lateness_ms(void)
{
    struct fixture f;
    struct sleepers s = {.f = &f};
    long long late_ms = 0;
    size_t i;

    open_real(&f);
    for (i = 0; i < WAITERS; i++) {
        struct idem_request request = claim(numbered("k", i));

        s.owners[i] = begin(f.store, &request, IDEM_STARTED);
    }
    threads_run(2 * WAITERS, wait_or_complete, &s);
    for (i = 0; i < WAITERS; i++) {
        assert_ok(s.codes[i]);
        assert_int_equal(s.verdicts[i], IDEM_REPLAY);
        late_ms += s.woken_ms[i] - s.ended_ms[i];
    }
    finish(&f);
    return late_ms / WAITERS;
}

/* The owner's process wakes its waiters: they do not sleep until their next poll, which
 * would be an eighth of a second away on average. On a busy machine the test tries again. */
TEST(race, wakesWaiters)
{
    long long late_ms = 0;
    int tries;

    for (tries = 0; tries < 5; tries++) {
        late_ms = lateness_ms();
        if (late_ms <= 40) {
            return;
        }
    }
    assert_in_time(late_ms, 41);
}

/* ---- Processes ---- */

enum {
    PROCESSES = 6,
    KEYS = 40
};

/* It lies in memory that the processes share. */
struct ledger {
    unsigned effects[KEYS];
    unsigned replays;
    unsigned errors;
};

static int work_through(struct fixture *f, struct ledger *ledger, unsigned from)
{
    struct idem_store *store;
    unsigned i;

    if (idem_open(url_of(f), &f->options, &store, NULL) != 0) {
        return 1;
    }
    for (i = 0; i < KEYS; i++) {
        unsigned n = (from + i) % KEYS;
        const char *key = numbered("k", n);
        struct idem_request request = claim(key);
        struct idem_attempt *attempt;

        request.wait_ms = PATIENCE_MS;
        if (idem_begin(store, &request, &attempt, NULL) != 0) {
            add(&ledger->errors);
            continue;
        }
        if (attempt->verdict == IDEM_STARTED) {
            add(&ledger->effects[n]);
            if (complete(attempt, key) != 0) {
                add(&ledger->errors);
            }
        } else if (attempt->verdict == IDEM_REPLAY &&
                   attempt->record->result.bytes.len == strlen(key)) {
            add(&ledger->replays);
        } else {
            add(&ledger->errors);
        }
        idem_attempt_destroy(attempt);
    }
    idem_close(store);
    return 0;
}

/* Processes that share a store do each piece of work once between them. */
TEST(race, startsOneOfManyProcesses)
{
    struct fixture f;
    struct ledger *ledger;
    pid_t pids[PROCESSES];
    unsigned i;

    if (!is_durable()) {
        test_skip("the store in memory is of one process");
    }
    ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(ledger != MAP_FAILED);
    open_real(&f);
    finish(&f);
    (void)fflush(NULL);
    for (i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            _exit(work_through(&f, ledger, i * 3));
        }
    }
    for (i = 0; i < PROCESSES; i++) {
        int status = 0;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(ledger->errors, 0);
    for (i = 0; i < KEYS; i++) {
        assert_int_equal(ledger->effects[i], 1);
    }
    assert_int_equal(ledger->replays, (PROCESSES - 1) * KEYS);
    (void)munmap(ledger, sizeof(*ledger));
}
