/* Purges leave space for what comes, look once at what is held, and rest beside
 * writers. */
#include "api/call.h"
#include "claims.h"
#include "contract/store.h"
#include "db.h"
#include "host.h"
#include "queue/op.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/queue.h>
#include <pthread.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    RECORDS = 1000,
    SHORT_OF_TEN = 6,
    SHORT_MS = 60000,
    RESULT_LEN = 300,
    BATCH = 250,
    PATIENCE_S = 60,
};

/* A store on a clock of its own, and the file beside it by SQLite alone. */
struct store {
    struct host host;
    struct idem_store *idem;
    const char *path;
};

static void open_on(struct store *s, bool sleeping)
{
    struct idem_open_options options = host_options(&s->host, sleeping);

    options.timeout_ms = PATIENCE_S * 1000;
    assert_ok(idem_sqlite_open(s->path, &options, &s->idem, &why));
}

static void open_new(struct store *s, bool sleeping)
{
    host_init(&s->host);
    s->path = temp_path("purge.db");
    open_on(s, sleeping);
}

static uint64_t purge(const struct store *s)
{
    uint64_t purged;

    assert_ok(idem_purge(s->idem, 0, &purged, &why));
    return purged;
}

/* ---- A slow disk ---- */

static int flush_us;

/* SQLite's flush, which takes as long as a test says. */
int fdatasync(int fd);
int fdatasync(int fd)
{
    int us = __atomic_load_n(&flush_us, __ATOMIC_SEQ_CST);

    if (us > 0) {
        (void)usleep((useconds_t)us);
    }
    return fsync(fd);
}

/* ---- Records ---- */

struct work {
    struct idem_attempt *attempt;
    uint8_t result[RESULT_LEN];
};

static bool is_short(int n)
{
    return n % 10 < SHORT_OF_TEN;
}

/* Different for each record, and the same whenever it is asked. */
static void result_of(int n, uint8_t result[RESULT_LEN])
{
    uint64_t seed = (uint64_t)n + 1;

    random_fill(&seed, result, RESULT_LEN);
}

static struct idem_request request_for(const char *key, int64_t retention_ms)
{
    struct idem_request request = claim(key);

    request.lease_ms = 30000;
    request.retention_ms = retention_ms;
    return request;
}

static void submit_begin(struct idem_queue *queue, struct work *work, int n,
                         int64_t long_ms)
{
    struct idem_request request;
    struct idem_op *op;

    request = request_for(numbered("record-", (size_t)n),
                          is_short(n) ? SHORT_MS : long_ms);
    assert_ok(idem_op_begin(&request, &op, &why));
    idem_op_set_user(op, work);
    assert_ok(idem_queue_submit(queue, op, &why));
}

static void submit_end(struct idem_queue *queue, struct work *work, int n)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_op *op;

    result_of(n, work->result);
    outcome.result.bytes = idem_bytes(work->result, RESULT_LEN);
    assert_ok(idem_op_end(work->attempt, &outcome, &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
}

static void reap(struct idem_queue *queue, bool begun)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        struct work *work = idem_op_user(op);

        assert_int_equal(idem_op_code(op), 0);
        if (begun) {
            assert_int_equal(idem_op_verdict(op), IDEM_STARTED);
            assert_ok(idem_op_take_attempt(op, &work->attempt));
        }
        idem_op_destroy(op);
    }
}

/* Records the operations from @from to @to, several hundred in a commit. */
static void record(const struct store *s, int from, int to, int64_t long_ms)
{
    static struct work works[BATCH];
    struct idem_queue *queue;
    int i;

    assert_ok(idem_queue_create(s->idem, &queue, &why));
    for (; from < to; from += BATCH) {
        for (i = 0; i < BATCH; i++) {
            submit_begin(queue, &works[i], from + i, long_ms);
        }
        reap(queue, /* begun= */ true);
        for (i = 0; i < BATCH; i++) {
            submit_end(queue, &works[i], from + i);
        }
        reap(queue, /* begun= */ false);
        for (i = 0; i < BATCH; i++) {
            idem_attempt_destroy(works[i].attempt);
        }
    }
    idem_queue_destroy(queue);
}

/* ---- What is held ---- */

static void leave_open(const struct store *s, const char *key,
                       enum idem_on_expired_lease how)
{
    struct idem_request request = request_for(key, SHORT_MS);

    request.on_expired_lease = how;
    expect(s->idem, &request, IDEM_STARTED);
}

static int64_t held_ms(const struct store *s)
{
    return db_number_at(s->path,
                        "SELECT ifnull(max(held_ms), 0) FROM idem_purge");
}

/* The mark goes past what is held, and stops at what only has not expired yet. */
TEST(held, isNotLookedAtAgain)
{
    struct store s;
    int64_t first_ms;
    int i;

    open_new(&s, /* sleeping= */ false);
    for (i = 0; i < 20; i++) {
        leave_open(&s, numbered("held-", (size_t)i), IDEM_HOLD);
        host_pass(&s.host, 10);
    }
    leave_open(&s, "again", IDEM_RERUN);
    host_pass(&s.host, 31000); /* Past the leases. */
    assert_int_equal(purge(&s), 0);
    first_ms = db_number_at(s.path, "SELECT max(deadline) FROM idem_record");
    assert_int_equal(held_ms(&s), first_ms - 1);

    host_pass(&s.host, SHORT_MS);
    assert_int_equal(purge(&s), 1);
    assert_int_equal(db_number_at(s.path, "SELECT count(*) FROM idem_record"),
                     20);
    assert_true(held_ms(&s) >= db_number_at(s.path, "SELECT max(deadline) FROM "
                                                    "idem_record"));
    idem_close(s.idem);
}

/* What came to lie before the mark, by an import for example, is found a week
 * later. */
TEST(held, isLookedAtOnceAWeek)
{
    struct store s;

    open_new(&s, /* sleeping= */ false);
    leave_open(&s, "held", IDEM_HOLD);
    host_pass(&s.host, 31000);
    assert_int_equal(purge(&s), 0);
    assert_true(held_ms(&s) > 0);
    leave_open(&s, "again", IDEM_RERUN);
    host_pass(&s.host, 31000 + SHORT_MS);
    db_run_at(s.path, "UPDATE idem_purge SET held_ms = 1 + "
                      "(SELECT max(deadline) FROM idem_record)");
    assert_int_equal(purge(&s), 0);
    host_pass(&s.host, 7 * 86400000LL);
    assert_int_equal(purge(&s), 1);
    idem_close(s.idem);
}

static void purge_slice(const struct store *s, struct idem_op **op)
{
    (*op)->u.purge.max = 100;
    assert_ok(idem__call(s->idem, op, &why));
}

/* A purge goes through more than one window of what is open; between two of its
 * slices another begins. What the first has seen to expire later stays before the
 * mark. */
TEST(held, isKeptApartByTwoPurges)
{
    struct idem_op *first = idem__op_create(IDEM_OP_PURGE, 0);
    struct idem_op *second = idem__op_create(IDEM_OP_PURGE, 0);
    struct idem_request request = request_for("again", SHORT_MS);
    struct store s;
    int i;

    open_new(&s, /* sleeping= */ false);
    for (i = 0; i < 17; i++) {
        start_many(s.idem, i * BATCH, (i + 1) * BATCH, request);
    }
    request.on_expired_lease = IDEM_RERUN;
    request.lease_ms = 2000; /* Last in the table, and the first that is due. */
    expect(s.idem, &request, IDEM_STARTED);
    host_pass(&s.host, 31000);
    do {
        purge_slice(&s, &first);
    } while (first->u.purge.cursor[1] == 0);
    assert_false(first->u.purge.done);
    for (i = 0; i < 4; i++) {
        purge_slice(&s, &second);
    }
    assert_false(second->u.purge.done);
    while (!first->u.purge.done) {
        purge_slice(&s, &first);
    }
    idem_op_destroy(first);
    idem_op_destroy(second);

    host_pass(&s.host, SHORT_MS);
    assert_int_equal(purge(&s), 1);
    idem_close(s.idem);
}

/* ---- Beside writers ---- */

TEST(rest, isTakenBesideNobody)
{
    struct store s;

    open_new(&s, /* sleeping= */ true);
    record(&s, 0, RECORDS, IDEM_NEVER);
    host_pass(&s.host, SHORT_MS);
    s.host.sleeps = 0;
    assert_int_equal(purge(&s), RECORDS / 10 * SHORT_OF_TEN);
    assert_int_equal(s.host.sleeps, 0);
    idem_close(s.idem);
}

struct writer {
    struct store store;
    pthread_t thread;
    int stop;
    int n;
};

static void write_one(struct writer *writer)
{
    struct idem_attempt *attempt;
    struct idem_request request =
        request_for(numbered("writer-", (size_t)writer->n++), IDEM_NEVER);

    if (idem_begin(writer->store.idem, &request, &attempt, NULL) != 0) {
        abort();
    }
    idem_attempt_destroy(attempt);
}

static void *write_on(void *arg)
{
    struct writer *writer = arg;

    while (!__atomic_load_n(&writer->stop, __ATOMIC_SEQ_CST)) {
        write_one(writer);
    }
    return NULL;
}

/* Each slice that others wrote beside is followed by a rest. */
TEST(rest, isTakenBesideWriters)
{
    struct writer writer = {.stop = 0};
    time_t until = time(NULL) + PATIENCE_S / 2;
    struct store s;
    int n = 0;

    open_new(&s, /* sleeping= */ true);
    host_init(&writer.store.host);
    writer.store.path = s.path;
    open_on(&writer.store, /* sleeping= */ false);
    assert_int_equal(pthread_create(&writer.thread, NULL, write_on, &writer),
                     0);
    /* The writer may not get a turn between two slices; then once more. */
    do {
        record(&s, n, n + RECORDS, IDEM_NEVER);
        n += RECORDS;
        host_pass(&s.host, SHORT_MS);
        s.host.sleeps = 0;
        assert_int_equal(purge(&s), RECORDS / 10 * SHORT_OF_TEN);
    } while (s.host.sleeps == 0 && time(NULL) < until);
    __atomic_store_n(&writer.stop, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_join(writer.thread, NULL), 0);
    assert_true(s.host.sleeps > 0);
    idem_close(writer.store.idem);
    idem_close(s.idem);
}

/* The first rest stops the writer's thread; from then on it writes in each rest. */
static void write_in_rests(void *ctx, struct host *host)
{
    struct writer *writer = ctx;

    (void)host;
    if (!__atomic_load_n(&writer->stop, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&writer->stop, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(pthread_join(writer->thread, NULL), 0);
    }
    write_one(writer);
}

/* Where each flush takes longer than a slice may, a slice of few rows takes as long as
 * one of many: rows are not halved down to a handful. */
TEST(rest, isNotForFewRowsOnASlowDisk)
{
    enum {
        FLUSH_US = 10000,
        FEWEST = 20, /* Rows of a slice, on average: some are cut short. */
        SHORT = 2 * RECORDS / 10 * SHORT_OF_TEN
    };
    struct writer writer = {.stop = 0};
    struct store s;

    open_new(&s, /* sleeping= */ true);
    record(&s, 0, 2 * RECORDS, IDEM_NEVER);
    host_pass(&s.host, SHORT_MS);
    host_init(&writer.store.host);
    writer.store.path = s.path;
    open_on(&writer.store, /* sleeping= */ false);
    s.host.on_sleep = write_in_rests;
    s.host.ctx = &writer;
    s.host.sleeps = 0;
    __atomic_store_n(&flush_us, FLUSH_US, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&writer.thread, NULL, write_on, &writer),
                     0);
    assert_int_equal(purge(&s), SHORT);
    __atomic_store_n(&flush_us, 0, __ATOMIC_SEQ_CST);
    if (!writer.stop) {
        writer.stop = 1; /* It had no turn between two slices. */
        assert_int_equal(pthread_join(writer.thread, NULL), 0);
    }
    assert_true(s.host.sleeps <= SHORT / FEWEST);
    idem_close(writer.store.idem);
    idem_close(s.idem);
}
