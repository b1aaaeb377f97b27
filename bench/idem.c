/* idem under load, through its public functions. */
#include "load.h"

#include <err.h>
#include <idem.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct target target;

static void check(int rc, const struct idem_error *error)
{
    if (rc != 0) {
        errx(1, "idem: %s: %s", idem_error_name(rc), error->text);
    }
}

/* @where is the URL of a store, or the path of a SQLite store. */
static struct idem_store *open_store(const char *where,
                                     const struct idem_open_options *options)
{
    bool is_url = where[strcspn(where, ":/")] == ':';
    struct idem_store *store;
    struct idem_error error;
    char url[4096];

    (void)idem_sqlite_disable_memory_count(); /* As the idem program does. */
    (void)snprintf(url, sizeof(url), "%s%s", is_url ? "" : "sqlite:", where);
    check(idem_open(url, options, &store, &error), &error);
    return store;
}

static void *open_shared(const char *where)
{
    return open_store(where, NULL);
}

static void close_shared(void *shared)
{
    idem_close(shared);
}

static void *connect_caller(void *shared)
{
    return shared;
}

static void disconnect(void *caller)
{
    (void)caller;
}

static struct idem_request request_for(const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_bytes(key, KEY_LEN);
    request.owner = idem_str("bench");
    request.on_expired_lease = IDEM_HOLD;
    request.lease_ms = LEASE_MS;
    request.retention_ms = retention_ms;
    return request;
}

static struct idem_attempt *begin(struct idem_store *store, const char *key,
                                  enum idem_verdict want)
{
    struct idem_request request = request_for(key);
    struct idem_attempt *attempt;
    struct idem_error error;

    check(idem_begin(store, &request, &attempt, &error), &error);
    if (attempt->verdict != want) {
        errx(1, "idem: %s: %s, not %s", key,
             idem_verdict_name(attempt->verdict), idem_verdict_name(want));
    }
    return attempt;
}

static void run_new(void *caller, const char *key)
{
    struct idem_attempt *attempt = begin(caller, key, IDEM_STARTED);
    struct idem_result done = {.bytes = idem_bytes(result, RESULT_LEN)};
    struct idem_error error;

    check(idem_complete(attempt, &done, &error), &error);
    idem_attempt_destroy(attempt);
}

/* ---- One after the other ---- */

struct worker {
    struct idem_store *store;
    struct idem_attempt *attempt; /* Of the last key; NULL before the first. */
};

static void *connect_next(void *shared)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    if (worker == NULL) {
        err(1, "idem");
    }
    worker->store = shared;
    return worker;
}

static void run_next(void *caller, const char *key)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result.bytes = idem_bytes(result, RESULT_LEN),
    };
    struct idem_request request = request_for(key);
    struct worker *worker = caller;
    struct idem_attempt *next;
    struct idem_error error;

    if (worker->attempt == NULL) {
        worker->attempt = begin(worker->store, key, IDEM_STARTED);
        return;
    }
    check(idem_next(worker->attempt, &outcome, &request, &next, &error),
          &error);
    if (next->verdict != IDEM_STARTED) {
        errx(1, "idem: a new key was not claimed");
    }
    idem_attempt_destroy(worker->attempt);
    worker->attempt = next;
}

static void disconnect_next(void *caller)
{
    struct idem_result done = {.bytes = idem_bytes(result, RESULT_LEN)};
    struct worker *worker = caller;
    struct idem_error error;

    if (worker->attempt != NULL) {
        check(idem_complete(worker->attempt, &done, &error), &error);
    }
    idem_attempt_destroy(worker->attempt);
    free(worker);
}

/* ---- Duplicates ---- */

static void run_replay(void *caller, const char *key)
{
    struct idem_attempt *attempt = begin(caller, key, IDEM_REPLAY);
    struct idem_slice bytes = attempt->record->result.bytes;

    if (bytes.len != recorded_len ||
        memcmp(bytes.base, result, bytes.len < 64 ? bytes.len : 64) != 0) {
        errx(1, "idem: %s: another result", key);
    }
    idem_attempt_destroy(attempt);
}

/* ---- Many in flight from one thread ---- */

struct flight {
    struct idem_queue *queue;
    struct idem_attempt *attempt; /* It is to be ended; NULL: begun. */
    int64_t start_ns;
};

static void submit(struct flight *flight, struct idem_op *op)
{
    struct idem_error error;

    idem_op_set_user(op, flight);
    check(idem_queue_submit(flight->queue, op, &error), &error);
}

static void submit_begin(struct flight *flight, uint64_t n)
{
    struct idem_request request;
    struct idem_error error;
    struct idem_op *op;
    char key[KEY_LEN + 1];

    flight->start_ns = now_ns();
    key_of((uint64_t)getpid() << 40 ^ (uint64_t)flight->start_ns, n, key);
    request = request_for(key);
    check(idem_op_begin(&request, &op, &error), &error);
    submit(flight, op);
}

static void submit_end(struct flight *flight, struct idem_op *begun)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result.bytes = idem_bytes(result, RESULT_LEN),
    };
    struct idem_error error;
    struct idem_op *op;

    if (idem_op_verdict(begun) != IDEM_STARTED ||
        idem_op_take_attempt(begun, &flight->attempt) != 0) {
        errx(1, "idem: a new key was not claimed");
    }
    check(idem_op_end(flight->attempt, &outcome, &op, &error), &error);
    submit(flight, op);
}

static void fly(void *shared, unsigned in_flight, int64_t from_ns,
                int64_t until_ns, struct times *times)
{
    struct flight *flights = calloc(in_flight, sizeof(*flights));
    struct idem_queue *queue;
    struct idem_error error;
    struct idem_op *op;
    uint64_t n = 0;

    if (flights == NULL) {
        err(1, "idem");
    }
    check(idem_queue_create(shared, &queue, &error), &error);
    for (; n < in_flight; n++) {
        flights[n].queue = queue;
        submit_begin(&flights[n], n);
    }
    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        struct flight *flight = idem_op_user(op);
        int64_t end_ns = now_ns();

        check(idem_op_code(op), idem_op_error(op));
        if (flight->attempt == NULL) {
            submit_end(flight, op);
        } else {
            idem_attempt_destroy(flight->attempt);
            flight->attempt = NULL;
            if (flight->start_ns >= from_ns && end_ns <= until_ns) {
                times_add(times, end_ns - flight->start_ns);
            }
            if (end_ns < until_ns) {
                submit_begin(flight, n++);
            }
        }
        idem_op_destroy(op);
    }
    idem_queue_destroy(queue);
    free(flights);
}

/* ---- Filling ---- */

/* A completed record, to be imported under many keys. */
static struct idem_answer *template_of(struct idem_store *store, size_t len)
{
    struct idem_result done = {.bytes = idem_bytes(result, len)};
    struct idem_answer *answer;
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[KEY_LEN + 1];

    key_of((uint64_t)now_ns(), 0, key);
    attempt = begin(store, key, IDEM_STARTED);
    check(idem_complete(attempt, &done, &error), &error);
    idem_attempt_destroy(attempt);
    check(idem_get(store, idem_str(""), idem_bytes(key, KEY_LEN), &answer,
                   &error),
          &error);
    return answer;
}

static void reap(struct idem_queue *queue)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        check(idem_op_code(op), idem_op_error(op));
        idem_op_destroy(op);
    }
}

/* When the record with @id is past its retention: by chance, and always alike. */
static int64_t expires_of(const uint8_t *id)
{
    struct timespec ts;
    int64_t now_ms;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    now_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    return now_ms + (id[0] * 10u / 256 < short_of_ten ? short_ms
                                                      : 1000LL * RETENTION_MS);
}

static void fill(void *shared, uint64_t from, uint64_t count, size_t len)
{
    struct idem_answer *answer = template_of(shared, len);
    struct idem_record record = *idem_answer_record(answer);
    struct idem_queue *queue;
    struct idem_error error;
    struct idem_op *op;
    char key[KEY_LEN + 1];
    uint64_t i;

    check(idem_queue_create(shared, &queue, &error), &error);
    record.key = idem_bytes(key, KEY_LEN);
    flushes = false;
    for (i = 0; i < count; i++) {
        key_of(0, from + i, key);
        (void)idem_id(record.scope, record.key, record.id);
        if (short_of_ten > 0) {
            record.expires_ms = expires_of(record.id);
        }
        check(idem_op_import(&record, &op, &error), &error);
        check(idem_queue_submit(queue, op, &error), &error);
        if (i % 2048 == 2047) {
            reap(queue);
        }
    }
    reap(queue);
    idem_queue_destroy(queue);
    idem_answer_destroy(answer);
    flushes = true; /* When the store is closed, all of it is flushed. */
}

/* ---- Purging ---- */

/* The system's clocks, two days ahead: every retention is over. */
static int late_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    const int64_t late_ms = 2LL * RETENTION_MS;
    struct timespec ts;

    *ret_reading = *(const struct idem_clock_reading *)ctx;
    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    ret_reading->boot_ms =
        (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + late_ms;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    ret_reading->wall_ms =
        (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + late_ms;
    return 0;
}

static void read_boot_id(struct idem_clock_reading *reading)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    unsigned byte;
    size_t i;

    if (f == NULL) {
        err(1, "boot_id");
    }
    for (i = 0; i < sizeof(reading->boot_id); i++) {
        if (fscanf(f, "%2x%*[-]", &byte) < 1) {
            errx(1, "boot_id: not understood");
        }
        reading->boot_id[i] = (uint8_t)byte;
    }
    (void)fclose(f);
}

static void purge(const char *where, uint64_t most, double seconds,
                  uint64_t each)
{
    struct idem_clock_reading reading = {.wall_ms = 0};
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct times calls = {NULL, 0, 0, 0};
    struct idem_store *store;
    struct idem_error error;
    uint64_t total = 0;
    uint64_t purged;
    int64_t start_ns;
    int64_t cpu_us;

    read_boot_id(&reading);
    options.host.ctx = &reading;
    options.host.clock = late_clock;
    store = open_store(where, &options);
    start_ns = now_ns();
    cpu_us = own_cpu_us();
    do {
        int64_t call_ns = now_ns();

        check(idem_purge(store, each, &purged, &error), &error);
        times_add(&calls, now_ns() - call_ns);
        total += purged;
    } while (purged > 0 && total < most &&
             (double)(now_ns() - start_ns) / 1e9 < seconds);
    cpu_us = own_cpu_us() - cpu_us;
    times_sort(&calls);
    printf("{\"per_s\": %.1f, \"purged\": %llu, \"p50_us\": %u, \"p99_us\": "
           "%u, \"max_us\": %u, \"cpu_us\": %.2f, \"peak_kib\": %ld}\n",
           (double)total / ((double)(now_ns() - start_ns) / 1e9),
           (unsigned long long)total, times_at(&calls, 0.5),
           times_at(&calls, 0.99), times_at(&calls, 1),
           (double)cpu_us / (double)(total > 0 ? total : 1), own_peak_kib());
    times_free(&calls);
    idem_close(store);
}

const struct target target = {
    .name = "idem",
    .open = open_shared,
    .close = close_shared,
    .connect = connect_caller,
    .disconnect = disconnect,
    .run_new = run_new,
    .connect_next = connect_next,
    .run_next = run_next,
    .disconnect_next = disconnect_next,
    .run_replay = run_replay,
    .fill = fill,
    .fly = fly,
    .purge = purge,
};
