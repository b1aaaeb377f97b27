/* Owns one key after the other, and writes down what it does and what it is told:
 * owner STORE LEDGER WINDOW SEED [careless|hasty]. WINDOW is how many keys are
 * fought for at a time.
 *
 * Each line of the ledger is one write: what, key, fence, boot clock before and
 * after, and a code. "careless" is a control that never looks at its lease, and
 * "hasty" one whose clock is ahead. */
#include <idem.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    LEASE_MS = 2000,
    AHEAD_MS = 1500,
    STEP_MS = 20,
    STEPS_MAX = 150,
    BUSY_MS = 150,
};

static volatile sig_atomic_t stop;
static int ledger;
static unsigned seed;
static bool careless;
static bool hasty;

static void on_term(int signo)
{
    (void)signo;
    stop = 1;
}

static int64_t boot_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}

static void note(char what, int key, uint64_t fence, int64_t asked_ms, int code)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%c %d %llu %lld %lld %d\n", what,
                       key, (unsigned long long)fence, (long long)asked_ms,
                       (long long)boot_ms(), code);

    if (write(ledger, line, (size_t)len) != len) {
        abort();
    }
}

/* The clock of one who is hasty: a lease seems to end early. */
static int hasty_clock(void *ctx, struct idem_clock_reading *ret)
{
    struct timespec wall;

    (void)ctx;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    ret->wall_ms = (int64_t)wall.tv_sec * 1000;
    ret->boot_ms = boot_ms() + (hasty ? AHEAD_MS : 0);
    memset(ret->boot_id, 'h', sizeof(ret->boot_id));
    return 0;
}

/* False: the lease is over, or lost. */
static bool renew(struct idem_attempt *attempt, int key, int64_t *renewed_ms)
{
    int64_t asked_ms = boot_ms();
    int rc;

    if (asked_ms < *renewed_ms + LEASE_MS / 3) {
        return true;
    }
    rc = idem_renew(attempt, 0, NULL);
    if (rc == 0) {
        note('R', key, attempt->fence, asked_ms, rc);
        *renewed_ms = asked_ms;
    }
    return rc != IDEM_ELOST;
}

/* Effects, until the work is done. False: it may not go on. */
static bool work(struct idem_attempt *attempt, int key, int64_t renewed_ms)
{
    int steps = rand_r(&seed) % STEPS_MAX;

    while (steps-- > 0 && !stop) {
        bool may = idem_attempt_lease_left_ms(attempt) > 0;

        if (!may && !careless) {
            note('L', key, attempt->fence, boot_ms(), 0);
            return false;
        }
        note('E', key, attempt->fence, boot_ms(), may);
        if (!renew(attempt, key, &renewed_ms) && !careless) {
            note('L', key, attempt->fence, boot_ms(), 1);
            return false;
        }
        pause_ms(STEP_MS);
    }
    return true;
}

static void own(struct idem_attempt *attempt, int key, int64_t asked_ms)
{
    char bytes[32];
    struct idem_result result;
    int rc;

    note('S', key, attempt->fence, asked_ms, attempt->takeover);
    if (!work(attempt, key, asked_ms)) {
        return;
    }
    (void)snprintf(bytes, sizeof(bytes), "%llu",
                   (unsigned long long)attempt->fence);
    result = (struct idem_result){.bytes = idem_str(bytes)};
    asked_ms = boot_ms();
    rc = idem_complete(attempt, &result, NULL);
    note('C', key, attempt->fence, asked_ms, rc);
}

/* True if the key is done. */
static bool try_key(struct idem_store *store, int key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    int64_t asked_ms = boot_ms();
    enum idem_verdict verdict;
    char name[16];

    (void)snprintf(name, sizeof(name), "k%d", key);
    request.key = idem_str(name);
    request.on_expired_lease = IDEM_RERUN;
    request.lease_ms = LEASE_MS;
    request.attempts_max = 0;
    if (idem_begin(store, &request, &attempt, NULL) != 0) {
        return false;
    }
    verdict = attempt->verdict;
    if (verdict == IDEM_STARTED) {
        own(attempt, key, asked_ms);
    } else if (verdict == IDEM_BUSY) {
        pause_ms(rand_r(&seed) % BUSY_MS);
    }
    idem_attempt_destroy(attempt);
    return verdict == IDEM_REPLAY;
}

/* Whoever is stopped with the store's lock keeps the others out for as long. */
static struct idem_store *open_patiently(const char *url,
                                         const struct idem_open_options *o)
{
    struct idem_store *store = NULL;
    int rc;

    do {
        rc = idem_open(url, o, &store, NULL);
    } while (rc == IDEM_EUNAVAILABLE && !stop);
    return store;
}

int main(int argc, char **argv)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    int first = 0;
    int window;

    if (argc < 5) {
        return 64;
    }
    window = atoi(argv[3]);
    seed = (unsigned)atoi(argv[4]);
    careless = argc > 5 && strcmp(argv[5], "careless") == 0;
    hasty = argc > 5 && strcmp(argv[5], "hasty") == 0;
    /* All of a hasty run name the same boot; every other one is ahead. */
    if (hasty) {
        options.host.clock = hasty_clock;
        hasty = seed % 2 == 1;
    }
    (void)signal(SIGTERM, on_term);
    ledger = open(argv[2], O_WRONLY | O_APPEND | O_CLOEXEC);
    store = open_patiently(argv[1], &options);
    if (ledger < 0 || (store == NULL && !stop)) {
        return 1;
    }
    while (!stop) {
        int key = first + rand_r(&seed) % window;

        if (try_key(store, key) && key == first) {
            first++;
        }
    }
    idem_close(store);
    return 0;
}
