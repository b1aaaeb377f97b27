/* A crowd on one key: callers that wait for an attempt, that wait for the end of its
 * lease, or that come when it is done. Says what became of them and what it cost, as
 * one line of JSON. */
#include <err.h>
#include <fcntl.h>
#include <idem.h>
#include <idem/sqlite.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    CALLERS_MAX = 100000,
    STACK = 256 * 1024,
    LEASE_MS = 2000, /* Of an owner that says nothing more. */
    WAIT_MS = 3600 * 1000,
    NEXT_AT = 512 /* Where the lock file counts its turns. */
};

static const char outcome[] = "the one outcome";

struct crowd {
    struct idem_store *store;
    unsigned callers;
    long ms;
    bool takes_over; /* Waiters of an owner that says nothing more. */
    int lock;        /* The lock file; -1: there is none. */
    /* Atomic: */
    unsigned waiting;
    unsigned replayed;
    unsigned refused;
    unsigned started;
    unsigned other;
    int stop;
};

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t cpu_us(void)
{
    struct rusage used;

    (void)getrusage(RUSAGE_SELF, &used);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}

/* How often the lock of a SQLite store was taken. */
static uint32_t turns(const struct crowd *crowd)
{
    uint32_t next = 0;

    if (crowd->lock >= 0) {
        (void)!pread(crowd->lock, &next, sizeof(next), NEXT_AT);
    }
    return next;
}

static void add(unsigned *n)
{
    (void)__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
}

static struct idem_request request_for(const struct crowd *crowd)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str("hot");
    request.owner = idem_str("bench");
    request.on_expired_lease = crowd->takes_over ? IDEM_RERUN : IDEM_HOLD;
    return request;
}

static void complete(struct idem_attempt *attempt)
{
    struct idem_result result = {.bytes = idem_str(outcome)};
    struct idem_error error;

    if (idem_complete(attempt, &result, &error) != 0) {
        errx(1, "complete: %s", error.text);
    }
}

/* Counts what @attempt is, and ends it. */
static void note(struct crowd *crowd, struct idem_attempt *attempt)
{
    struct idem_slice bytes = attempt->record->result.bytes;

    if (attempt->verdict == IDEM_STARTED) {
        add(&crowd->started);
        sleep_ms(crowd->ms);
        complete(attempt);
    } else if (attempt->verdict == IDEM_REPLAY &&
               bytes.len == sizeof(outcome) - 1 &&
               memcmp(bytes.base, outcome, bytes.len) == 0) {
        add(&crowd->replayed);
    } else {
        add(&crowd->other);
    }
    idem_attempt_destroy(attempt);
}

static void *wait_for_it(void *ctx)
{
    struct crowd *crowd = ctx;
    struct idem_request request = request_for(crowd);
    struct idem_attempt *attempt;

    request.wait_ms = WAIT_MS;
    request.flags = crowd->takes_over ? IDEM_WAIT_THEN_RUN : 0;
    add(&crowd->waiting);
    if (idem_begin(crowd->store, &request, &attempt, NULL) != 0) {
        add(&crowd->refused);
    } else {
        note(crowd, attempt);
    }
    return NULL;
}

static void *come_again(void *ctx)
{
    struct crowd *crowd = ctx;
    struct idem_request request = request_for(crowd);
    struct idem_attempt *attempt;

    while (!__atomic_load_n(&crowd->stop, __ATOMIC_RELAXED)) {
        if (idem_begin(crowd->store, &request, &attempt, NULL) != 0) {
            add(&crowd->refused);
        } else {
            note(crowd, attempt);
        }
    }
    return NULL;
}

static pthread_t *start_all(struct crowd *crowd, void *(*run)(void *))
{
    pthread_t *threads = calloc(crowd->callers, sizeof(*threads));
    pthread_attr_t attr;
    unsigned i;

    if (threads == NULL || pthread_attr_init(&attr) != 0 ||
        pthread_attr_setstacksize(&attr, STACK) != 0) {
        err(1, "threads");
    }
    for (i = 0; i < crowd->callers; i++) {
        if (pthread_create(&threads[i], &attr, run, crowd) != 0) {
            err(1, "thread %u", i);
        }
    }
    (void)pthread_attr_destroy(&attr);
    return threads;
}

static void join_all(const struct crowd *crowd, pthread_t *threads)
{
    unsigned i;

    for (i = 0; i < crowd->callers; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
}

static struct idem_attempt *own(const struct crowd *crowd)
{
    struct idem_request request = request_for(crowd);
    struct idem_attempt *attempt;
    struct idem_error error;

    request.lease_ms = crowd->takes_over ? LEASE_MS : WAIT_MS;
    if (idem_begin(crowd->store, &request, &attempt, &error) != 0) {
        errx(1, "begin: %s", error.text);
    }
    if (attempt->verdict != IDEM_STARTED) {
        errx(1, "the key \"hot\" is on record: name a new store");
    }
    return attempt;
}

static void print(const struct crowd *crowd, const char *name, double value)
{
    printf(
        "{\"callers\": %u, \"replayed\": %u, \"refused\": %u, \"started\": %u, "
        "\"other\": %u, \"%s\": %.3f",
        crowd->callers, crowd->replayed, crowd->refused, crowd->started,
        crowd->other, name, value);
}

/* Waiters for an attempt that ends, or whose owner says nothing more. */
static void wait_all(struct crowd *crowd)
{
    struct idem_attempt *owner = own(crowd);
    pthread_t *threads = start_all(crowd, wait_for_it);
    int64_t before_us;
    int64_t before_cpu;
    int64_t ended_us;
    int64_t waited_us;
    int64_t waited_cpu;
    uint32_t before_turns;

    while (__atomic_load_n(&crowd->waiting, __ATOMIC_RELAXED) <
           crowd->callers) {
        sleep_ms(10);
    }
    sleep_ms(1000); /* Until the last one has had its first look. */
    before_turns = turns(crowd);
    before_us = now_us();
    before_cpu = cpu_us();
    sleep_ms(crowd->ms);
    waited_us = now_us() - before_us;
    waited_cpu = cpu_us() - before_cpu;
    before_us = now_us();
    if (!crowd->takes_over) {
        complete(owner);
    }
    ended_us = now_us() - before_us;
    join_all(crowd, threads);
    print(crowd, "end_ms", (double)ended_us / 1000);
    printf(", \"waiting_cpu_us_per_caller_s\": %.1f, \"turns\": %u, "
           "\"all_told_ms\": %.0f}\n",
           (double)waited_cpu * 1e6 / (double)waited_us / crowd->callers,
           turns(crowd) - before_turns, (double)(now_us() - before_us) / 1000);
    idem_attempt_destroy(owner);
}

/* Duplicates of a key that is done. */
static void replay_all(struct crowd *crowd)
{
    struct idem_attempt *owner = own(crowd);
    uint32_t before_turns;
    int64_t before_us;
    int64_t before_cpu;
    pthread_t *threads;
    double seconds;

    complete(owner);
    idem_attempt_destroy(owner);
    before_turns = turns(crowd);
    before_us = now_us();
    before_cpu = cpu_us();
    threads = start_all(crowd, come_again);
    sleep_ms(crowd->ms);
    __atomic_store_n(&crowd->stop, 1, __ATOMIC_RELAXED);
    join_all(crowd, threads);
    seconds = (double)(now_us() - before_us) / 1e6;
    print(crowd, "cpu_us_each",
          (double)(cpu_us() - before_cpu) / (crowd->replayed + 1.0));
    printf(", \"per_s\": %.0f, \"turns\": %u}\n", crowd->replayed / seconds,
           turns(crowd) - before_turns);
}

static int open_lock(const char *url)
{
    char path[4096];

    if (strncmp(url, "sqlite:", 7) != 0) {
        return -1;
    }
    (void)snprintf(path, sizeof(path), "%s-lock", url + 7);
    /* Never closed: that would let the store's own lock on it go. */
    return open(path, O_RDONLY | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    struct crowd crowd = {.lock = -1};
    struct idem_error error;

    if (argc != 5 ||
        (strcmp(argv[1], "wait") != 0 && strcmp(argv[1], "expire") != 0 &&
         strcmp(argv[1], "replay") != 0)) {
        errx(2, "usage: bench-crowd wait|expire|replay STORE CALLERS MS");
    }
    crowd.takes_over = strcmp(argv[1], "expire") == 0;
    crowd.callers = (unsigned)strtoul(argv[3], NULL, 10);
    crowd.ms = strtol(argv[4], NULL, 10);
    if (crowd.callers < 1 || crowd.callers > CALLERS_MAX || crowd.ms < 1) {
        errx(2, "CALLERS is 1 to %d, MS 1 or more", CALLERS_MAX);
    }
    (void)idem_sqlite_disable_memory_count(); /* As the idem program does. */
    if (idem_open(argv[2], NULL, &crowd.store, &error) != 0) {
        errx(1, "%s", error.text);
    }
    crowd.lock = open_lock(argv[2]);
    if (strcmp(argv[1], "replay") == 0) {
        replay_all(&crowd);
    } else {
        wait_all(&crowd);
    }
    idem_close(crowd.store);
    return 0;
}
