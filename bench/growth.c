/* Places and measurements of bench/growth that neither bench-idem nor a command of
 * idem has: many open attempts, many subjects of a limit, many entries of a journal,
 * many waiters of one key.
 *
 *     bench-growth open STORE N         N attempts in progress are left behind
 *     bench-growth claims STORE N MS    claims with a lease of MS milliseconds;
 *                                       renewals; takeovers when all are over
 *     bench-growth subjects STORE N     a request of each of N subjects; checks
 *     bench-growth journal STORE N DIR  N entries; one more; a look for one key
 *     bench-growth waiters STORE N      N threads that wait for one key
 *     bench-growth run COMMAND...       what a command costs, and its status
 *
 * Prints one line of JSON: each name that ends with _us is a time of one of them,
 * of a sample where there are many; cpu_ is CPU time. */
#include "load.h"

#include <err.h>
#include <idem.h>
#include <idem/journal.h>
#include <idem/limit.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DEPTH = 128, /* Operations at a time. */
    SAMPLE = 10000,
    LONG_LEASE_MS = 3600 * 1000
};

static struct idem_store *store;
static struct idem_queue *queue;

static void check(int rc, const struct idem_error *error)
{
    if (rc != 0) {
        errx(1, "%s: %s", idem_error_name(rc), error->text);
    }
}

static void open_store(const char *path)
{
    struct idem_error error;
    char url[4096];

    (void)idem_sqlite_disable_memory_count(); /* As the idem program does. */
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    check(idem_open(url, NULL, &store, &error), &error);
    check(idem_queue_create(store, &queue, &error), &error);
}

static void close_store(void)
{
    idem_queue_destroy(queue);
    idem_close(store);
}

/* All that was written without flushes is flushed when the store is closed. */
static void settle(const char *path)
{
    flushes = true;
    close_store();
    open_store(path);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Measured spans ---- */

struct span {
    int64_t ns;
    int64_t cpu_us;
};

static struct span span_start(void)
{
    return (struct span){now_ns(), own_cpu_us()};
}

/* ", "NAME_us": ..., "cpu_NAME_us": ..." */
static void span_print(struct span span, const char *name, uint64_t n)
{
    double each = (double)(n > 0 ? n : 1);

    printf("\"%s_us\": %.2f, \"cpu_%s_us\": %.2f, ", name,
           (double)(now_ns() - span.ns) / 1e3 / each, name,
           (double)(own_cpu_us() - span.cpu_us) / each);
}

/* ---- Many ops, DEPTH at a time ---- */

typedef struct idem_op *make_fn(void *ctx, uint64_t n);
typedef void take_fn(void *ctx, uint64_t n, struct idem_op *op);

static void run_many(uint64_t count, make_fn *make, take_fn *take, void *ctx)
{
    struct idem_error error;
    struct idem_op *op;
    uint64_t asked = 0;
    uint64_t heard = 0;

    while (heard < count) {
        while (asked < count && asked - heard < DEPTH) {
            op = make(ctx, asked);
            idem_op_set_user(op, (void *)(uintptr_t)asked++);
            check(idem_queue_submit(queue, op, &error), &error);
        }
        op = idem_queue_reap(queue, -1);
        check(idem_op_code(op), idem_op_error(op));
        take(ctx, (uint64_t)(uintptr_t)idem_op_user(op), op);
        idem_op_destroy(op);
        heard++;
    }
}

/* ---- Attempts ---- */

struct claims {
    uint64_t stream;
    uint64_t step; /* Between the keys that are asked for. */
    int64_t lease_ms;
    enum idem_on_expired_lease policy;
    struct idem_attempt **attempts; /* NULL: they are left behind. */
    uint64_t takeovers;
};

static struct idem_request request_for(const char *key,
                                       const struct claims *claims)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_bytes(key, KEY_LEN);
    request.owner = idem_str("bench");
    request.on_expired_lease = claims->policy;
    request.lease_ms = claims->lease_ms;
    request.retention_ms = RETENTION_MS;
    return request;
}

static struct idem_op *make_claim(void *ctx, uint64_t n)
{
    struct claims *claims = ctx;
    struct idem_request request;
    struct idem_error error;
    struct idem_op *op;
    char key[KEY_LEN + 1];

    key_of(claims->stream, n * claims->step, key);
    request = request_for(key, claims);
    check(idem_op_begin(&request, &op, &error), &error);
    return op;
}

static void take_claim(void *ctx, uint64_t n, struct idem_op *op)
{
    struct claims *claims = ctx;
    struct idem_attempt *attempt;

    if (idem_op_verdict(op) != IDEM_STARTED ||
        idem_op_take_attempt(op, &attempt) != 0) {
        errx(1, "a key was not claimed");
    }
    claims->takeovers += attempt->takeover;
    if (claims->attempts != NULL) {
        claims->attempts[n] = attempt;
    } else {
        idem_attempt_destroy(attempt);
    }
}

static struct idem_op *make_renewal(void *ctx, uint64_t n)
{
    struct claims *claims = ctx;
    struct idem_error error;
    struct idem_op *op;

    check(idem_op_renew(claims->attempts[n * claims->step], claims->lease_ms,
                        &op, &error),
          &error);
    return op;
}

static void take_nothing(void *ctx, uint64_t n, struct idem_op *op)
{
    (void)ctx;
    (void)n;
    (void)op;
}

static void leave_open(uint64_t n)
{
    struct claims claims = {.stream = 1,
                            .step = 1,
                            .lease_ms = LONG_LEASE_MS,
                            .policy = IDEM_HOLD};

    flushes = false;
    run_many(n, make_claim, take_claim, &claims);
    flushes = true; /* All is flushed when the store is closed. */
}

static void claim(uint64_t n, int64_t lease_ms)
{
    struct claims claims = {.stream = (uint64_t)now_ns(),
                            .step = 1,
                            .lease_ms = lease_ms,
                            .policy = IDEM_RERUN};
    uint64_t sample = least(n, SAMPLE);
    int64_t over_ns;
    struct span span;
    uint64_t i;

    claims.attempts = calloc(n, sizeof(struct idem_attempt *));
    if (claims.attempts == NULL) {
        err(1, "claims");
    }
    span = span_start();
    run_many(n, make_claim, take_claim, &claims);
    span_print(span, "claim", n);
    claims.step = n / sample;
    span = span_start();
    run_many(sample, make_renewal, take_nothing, &claims);
    span_print(span, "renew", sample);
    over_ns = now_ns() + lease_ms * 1000000;
    for (i = 0; i < n; i++) {
        idem_attempt_destroy(claims.attempts[i]);
    }
    free(claims.attempts);
    claims.attempts = NULL;
    while (now_ns() < over_ns) {
        (void)usleep(10000);
    }
    span = span_start();
    run_many(sample, make_claim, take_claim, &claims);
    span_print(span, "takeover", sample);
    if (claims.takeovers < sample) {
        errx(1, "%llu of %llu were taken over",
             (unsigned long long)claims.takeovers, (unsigned long long)sample);
    }
}

/* ---- Limits ---- */

struct subjects {
    uint64_t step;
    unsigned round;
    int64_t at_ms;
};

static struct idem_op *make_limit(void *ctx, uint64_t n)
{
    const struct subjects *subjects = ctx;
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    struct idem_error error;
    struct idem_op *op;
    char subject[64];
    char request[64];

    (void)snprintf(subject, sizeof(subject), "user-%llu",
                   (unsigned long long)(n * subjects->step));
    (void)snprintf(request, sizeof(request), "request-%u-%llu", subjects->round,
                   (unsigned long long)n);
    limit.name = idem_str("growth");
    limit.subject = idem_str(subject);
    limit.request = idem_str(request);
    limit.at_ms = subjects->at_ms;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = 100;
    check(idem_op_limit(&limit, &op, &error), &error);
    return op;
}

static void count_subjects(const char *path, uint64_t n)
{
    struct subjects subjects = {.step = 1};
    uint64_t sample = least(n, SAMPLE);
    struct timespec now;
    struct span span;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    subjects.at_ms = (int64_t)now.tv_sec * 1000;
    flushes = false;
    run_many(n, make_limit, take_nothing, &subjects);
    settle(path);
    subjects.step = n / sample;
    subjects.round = (unsigned)getpid();
    span = span_start();
    run_many(sample, make_limit, take_nothing, &subjects);
    span_print(span, "check", sample);
    span = span_start();
    run_many(sample, make_limit, take_nothing, &subjects);
    span_print(span, "retry", sample);
}

/* ---- The journal ---- */

enum {
    PUTS = 100
};

static void put(struct idem_journal *journal, struct idem_attempt *attempt)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result.bytes = idem_bytes(result, 128)};
    struct idem_journal_entry *entry;
    struct idem_error error;

    check(idem_journal_put(journal, store, attempt, &outcome, &entry, &error),
          &error);
    idem_journal_leave(entry);
}

static void fill_journal(const char *directory, uint64_t n)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct claims claims = {.stream = (uint64_t)now_ns(),
                            .step = 1,
                            .lease_ms = LONG_LEASE_MS,
                            .policy = IDEM_HOLD};
    struct idem_journal *journal;
    struct idem_error error;
    struct span span;
    uint64_t i;

    check(idem_journal_open(directory, /* create= */ true, &journal, &error),
          &error);
    claims.attempts = calloc(n + 2 * PUTS, sizeof(struct idem_attempt *));
    if (claims.attempts == NULL) {
        err(1, "claims");
    }
    flushes = false;
    run_many(n + 2 * PUTS, make_claim, take_claim, &claims);
    for (i = 0; i < n; i++) {
        put(journal, claims.attempts[i]);
    }
    flushes = true;
    span = span_start();
    for (; i < n + PUTS; i++) {
        put(journal, claims.attempts[i]);
    }
    span_print(span, "put", PUTS);
    span = span_start();
    for (; i < n + 2 * PUTS; i++) {
        filter.id = claims.attempts[i]->record->id;
        check(idem_journal_replay(journal, store, &filter, NULL, NULL, &error),
              &error);
    }
    span_print(span, "look", PUTS);
    for (i = 0; i < n + 2 * PUTS; i++) {
        idem_attempt_destroy(claims.attempts[i]);
    }
    free(claims.attempts);
    idem_journal_close(journal);
}

/* ---- Waiters ---- */

struct waiter {
    pthread_t thread;
    int64_t answered_ns;
    int code;
};

static void *wait_for_it(void *arg)
{
    struct claims claims = {.lease_ms = LONG_LEASE_MS, .policy = IDEM_HOLD};
    struct waiter *waiter = arg;
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[KEY_LEN + 1];

    key_of(2, 0, key);
    request = request_for(key, &claims);
    request.wait_ms = 300 * 1000;
    waiter->code = idem_begin(store, &request, &attempt, &error);
    if (waiter->code == 0) {
        waiter->code = attempt->verdict == IDEM_REPLAY ? 0 : 1;
        idem_attempt_destroy(attempt);
    }
    waiter->answered_ns = now_ns();
    return NULL;
}

static void keep_waiting(uint64_t n)
{
    struct claims claims = {.lease_ms = LONG_LEASE_MS, .policy = IDEM_HOLD};
    struct waiter *waiters = calloc(n, sizeof(*waiters));
    struct idem_result done = {.bytes = idem_str("done")};
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[KEY_LEN + 1];
    uint64_t refused = 0;
    pthread_attr_t small;
    int64_t last_ns = 0;
    int64_t ended_ns;
    int64_t cpu_us;
    uint64_t i;

    key_of(2, 0, key);
    request = request_for(key, &claims);
    check(idem_begin(store, &request, &attempt, &error), &error);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 256 * 1024);
    for (i = 0; i < n; i++) {
        if (waiters == NULL || pthread_create(&waiters[i].thread, &small,
                                              wait_for_it, &waiters[i]) != 0) {
            errx(1, "cannot start a thread");
        }
    }
    (void)sleep(1); /* All have come. */
    cpu_us = own_cpu_us();
    (void)sleep(2);
    cpu_us = own_cpu_us() - cpu_us;
    printf("\"a_second_us\": %.2f, ", (double)cpu_us / 2 / (double)n);
    ended_ns = now_ns();
    check(idem_complete(attempt, &done, &error), &error);
    printf("\"end_us\": %.2f, ", (double)(now_ns() - ended_ns) / 1e3);
    idem_attempt_destroy(attempt);
    for (i = 0; i < n; i++) {
        (void)pthread_join(waiters[i].thread, NULL);
        last_ns =
            waiters[i].answered_ns > last_ns ? waiters[i].answered_ns : last_ns;
        refused += waiters[i].code != 0;
    }
    printf("\"last_us\": %.2f, \"refused\": %llu, ",
           (double)(last_ns - ended_ns) / 1e3, (unsigned long long)refused);
    (void)pthread_attr_destroy(&small);
    free(waiters);
}

/* ---- Commands ---- */

/* Memory that a process has had before it calls exec() counts for what it runs: so
 * a small process has to start it. */
static void run_command(char **argv)
{
    struct rusage used;
    int64_t start_ns = now_ns();
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execvp(argv[0], argv);
        err(127, "%s", argv[0]);
    }
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid) {
        err(1, "%s", argv[0]);
    }
    printf("{\"us\": %.1f, \"cpu_us\": %lld, \"peak_kib\": %ld, "
           "\"status\": %d}\n",
           (double)(now_ns() - start_ns) / 1e3,
           (long long)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
               used.ru_utime.tv_usec + used.ru_stime.tv_usec,
           used.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void usage(void)
{
    errx(64, "usage: bench-growth open|subjects|waiters STORE N\n"
             "       bench-growth claims STORE N MS\n"
             "       bench-growth journal STORE N DIR\n"
             "       bench-growth run COMMAND...");
}

int main(int argc, char **argv)
{
    uint64_t n;

    if (argc > 2 && strcmp(argv[1], "run") == 0) {
        run_command(argv + 2);
        return 0;
    }
    if (argc < 4 || (n = strtoull(argv[3], NULL, 10)) < 1) {
        usage();
    }
    open_store(argv[2]);
    (void)printf("{");
    if (argc == 4 && strcmp(argv[1], "open") == 0) {
        leave_open(n);
    } else if (argc == 5 && strcmp(argv[1], "claims") == 0) {
        claim(n, strtoll(argv[4], NULL, 10));
    } else if (argc == 4 && strcmp(argv[1], "subjects") == 0) {
        count_subjects(argv[2], n);
    } else if (argc == 5 && strcmp(argv[1], "journal") == 0) {
        fill_journal(argv[4], n);
    } else if (argc == 4 && strcmp(argv[1], "waiters") == 0) {
        keep_waiting(n);
    } else {
        usage();
    }
    printf("\"peak_kib\": %ld}\n", own_peak_kib());
    close_store();
    return 0;
}
