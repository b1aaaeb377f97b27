/* Sweepers and claimants race for a key whose record is past its retention. */
#include "claims.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CLAIMANTS = 4,
    SWEEPERS = 2,
    PROCESSES = CLAIMANTS + SWEEPERS,
    ROUNDS = 150,
    ROUNDS_LONG = 10000,
    LEASE_MS = 600000, /* Longer than a machine stands still. */
    PATIENCE_S = 60,
};

/* How the record of a round came to be past its retention. */
enum left {
    COMPLETED,
    RELEASED,
    ABANDONED,
    LEFTS,
};

/* What the processes have in common. */
struct race {
    pthread_barrier_t barrier;
    int64_t shift_ms; /* All clocks are ahead by this. */
    int rounds;
    int codes[PROCESSES];
    enum idem_verdict verdicts[CLAIMANTS];
    uint64_t fences[CLAIMANTS];
    uint64_t purged[SWEEPERS];
};

static struct race *race;
static char url[400];

static int shifted_clock(void *ctx, struct idem_clock_reading *ret)
{
    struct timespec wall;
    struct timespec boot;
    int64_t shift_ms = __atomic_load_n(&race->shift_ms, __ATOMIC_SEQ_CST);

    (void)ctx;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    ret->wall_ms = (int64_t)wall.tv_sec * 1000 + shift_ms;
    ret->boot_ms =
        (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 + shift_ms;
    memset(ret->boot_id, 's', sizeof(ret->boot_id));
    return 0;
}

static struct idem_store *open_shifted(void)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;

    options.host.clock = shifted_clock;
    options.timeout_ms = PATIENCE_S * 1000;
    assert_ok(idem_open(url, &options, &store, &why));
    return store;
}

static struct idem_request request_for(const char *key, int64_t retention_ms)
{
    struct idem_request request = rerun(key);

    request.lease_ms = LEASE_MS;
    request.retention_ms = retention_ms;
    return request;
}

/* ---- The processes ----------------------------------------------------- */

/* Once all have had their try, the winner leaves the record in one of three ways;
 * by the next round it is past its retention. */
static void leave(struct idem_attempt *attempt, int round, int *code)
{
    switch (round % LEFTS) {
    case COMPLETED:
        *code = idem_complete(attempt, NULL, NULL);
        break;
    case RELEASED:
        *code = idem_release(attempt, idem_str(""), NULL);
        break;
    default:
        break;
    }
}

static void ask_for(struct idem_store *store, int i, int round)
{
    struct idem_request request = request_for("k", LEASE_MS);
    struct idem_attempt *attempt = NULL;

    race->codes[i] = idem_begin(store, &request, &attempt, NULL);
    if (race->codes[i] == 0) {
        race->verdicts[i] = attempt->verdict;
        race->fences[i] = attempt->fence;
    }
    (void)pthread_barrier_wait(&race->barrier);
    if (race->codes[i] == 0 && attempt->verdict == IDEM_STARTED) {
        leave(attempt, round, &race->codes[i]);
    }
    idem_attempt_destroy(attempt);
}

static void sweep(struct idem_store *store, int i)
{
    race->codes[i] = idem_purge(store, 0, &race->purged[i - CLAIMANTS], NULL);
    (void)pthread_barrier_wait(&race->barrier);
}

static void take_part(int i)
{
    struct idem_store *store = open_shifted();
    int round;

    for (round = 0; round < race->rounds; round++) {
        (void)pthread_barrier_wait(&race->barrier);
        if (i < CLAIMANTS) {
            ask_for(store, i, round);
        } else {
            sweep(store, i);
        }
        (void)pthread_barrier_wait(&race->barrier);
    }
    idem_close(store);
}

static void start(pid_t pids[PROCESSES])
{
    pthread_barrierattr_t attr;
    int i;

    assert_int_equal(pthread_barrierattr_init(&attr), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&attr,
                                                    PTHREAD_PROCESS_SHARED),
                     0);
    assert_int_equal(pthread_barrier_init(&race->barrier, &attr, PROCESSES + 1),
                     0);
    (void)fflush(NULL);
    for (i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)alarm(PATIENCE_S * 20);
            take_part(i);
            _exit(0);
        }
    }
}

/* ---- The judge --------------------------------------------------------- */

/* The one that was started; a fence may only grow. */
static uint64_t winner(int round, uint64_t last)
{
    uint64_t fence = 0;
    int started = 0;
    int i;

    for (i = 0; i < PROCESSES; i++) {
        if (race->codes[i] != 0) {
            fail_with("round %d: process %d: %s", round, i,
                      idem_error_name(race->codes[i]));
        }
    }
    for (i = 0; i < CLAIMANTS; i++) {
        if (race->verdicts[i] == IDEM_STARTED) {
            started++;
            fence = race->fences[i];
        } else {
            assert_int_equal(race->verdicts[i], IDEM_BUSY);
        }
    }
    if (started != 1 || fence <= last) {
        fail_with("round %d: %d were started, fence %llu after %llu", round,
                  started, (unsigned long long)fence, (unsigned long long)last);
    }
    for (i = 0; i < CLAIMANTS; i++) {
        assert_true(race->fences[i] == fence); /* Of who is busy, too. */
    }
    return fence;
}

/* ---- Those who are not meant --------------------------------------------- */

/* A record for good, one under a lease for good, and one whose lease is over but
 * not its retention. */
static const struct {
    const char *key;
    int64_t lease_ms;
    enum idem_verdict after;
} bystanders[] = {
    {"kept", LEASE_MS, IDEM_REPLAY},
    {"held", IDEM_NEVER, IDEM_BUSY},
    {"late", LEASE_MS, IDEM_STARTED},
};

static struct idem_attempt *ask(struct idem_store *store, size_t i)
{
    struct idem_request request =
        request_for(bystanders[i].key, /* retention_ms= */ IDEM_NEVER);
    struct idem_attempt *attempt;

    request.lease_ms = bystanders[i].lease_ms;
    assert_ok(idem_begin(store, &request, &attempt, &why));
    return attempt;
}

static void make_bystanders(struct idem_store *store)
{
    size_t i;

    for (i = 0; i < COUNT(bystanders); i++) {
        struct idem_attempt *attempt = ask(store, i);

        assert_int_equal(attempt->verdict, IDEM_STARTED);
        if (bystanders[i].after == IDEM_REPLAY) {
            assert_ok(idem_complete(attempt, NULL, &why));
        }
        idem_attempt_destroy(attempt);
    }
}

static void check_bystanders(struct idem_store *store)
{
    size_t i;

    for (i = 0; i < COUNT(bystanders); i++) {
        struct idem_attempt *attempt = ask(store, i);

        assert_int_equal(attempt->verdict, bystanders[i].after);
        assert_int_equal(attempt->takeover,
                         bystanders[i].after == IDEM_STARTED);
        idem_attempt_destroy(attempt);
    }
}

/* ---- All of it ---------------------------------------------------------- */

/* ROW(70) Each round one claimant is started, with a fence above all before,
 * whether a sweeper deleted the old record first or found it taken; and what is
 * not past its retention stays. */
TEST(sweep, racesWithClaims)
{
    unsigned long swept[2] = {0, 0}; /* The claim came first; a sweeper did. */
    struct idem_store *store;
    pid_t pids[PROCESSES];
    uint64_t last = 0;
    int round;
    int i;

    race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(race != MAP_FAILED);
    race->rounds = getenv("IDEM_TEST_LONG") != NULL ? ROUNDS_LONG : ROUNDS;
    (void)snprintf(url, sizeof(url), "sqlite:%s", temp_path("sweep.db"));
    store = open_shifted();
    make_bystanders(store);
    start(pids);
    (void)alarm(PATIENCE_S * 20);
    for (round = 0; round < race->rounds; round++) {
        uint64_t purged;

        memset(race->codes, 0, sizeof(race->codes));
        memset(race->purged, 0, sizeof(race->purged));
        (void)pthread_barrier_wait(&race->barrier); /* They set out. */
        (void)pthread_barrier_wait(&race->barrier); /* All have answers. */
        last = winner(round, last);
        purged = race->purged[0] + race->purged[1];
        assert_true(purged <= 1);
        swept[purged] += round > 0;
        (void)pthread_barrier_wait(&race->barrier); /* The record is left. */
        (void)__atomic_add_fetch(&race->shift_ms, 90000000, __ATOMIC_SEQ_CST);
    }
    (void)alarm(0);
    for (i = 0; i < PROCESSES; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    check_bystanders(store);
    idem_close(store);
    assert_true(swept[0] > 0 && swept[1] > 0);
    (void)munmap(race, sizeof(*race));
    temp_remove();
}
