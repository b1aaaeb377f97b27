/* A full disk: what was begun can be ended, and nothing new is begun. */
#include "claims.h"
#include "disk.h"
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <fcntl.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DISK_LEN = 64 << 20,
    RESERVE_LEN = 4 << 20, /* A sixteenth. */
    MANY = 600,
};

static struct {
    const char *disk;
    char path[640];
    struct idem_store *store;
    struct idem_attempt *attempts[MANY];
} t;

static void open_store(void)
{

    (void)snprintf(t.path, sizeof(t.path), "%s/idem.db", t.disk);
    assert_ok(idem_sqlite_open(t.path, NULL, &t.store, &why));
}

/* False: no disk can be made here. */
static bool begin_test_on(size_t disk_len)
{
    memset(&t, 0, sizeof(t));
    t.disk = disk_make(disk_len);
    if (t.disk == NULL) {
        return false;
    }
    open_store();
    return true;
}

static bool begin_test(void)
{
    return begin_test_on(DISK_LEN);
}

static void end_test(void)
{
    size_t i;

    for (i = 0; i < MANY; i++) {
        idem_attempt_destroy(t.attempts[i]);
    }
    idem_close(t.store);
    disk_end(t.disk);
}

static int begin_key(const char *key, struct idem_attempt **ret_attempt)
{
    struct idem_request request = claim(key);

    return idem_begin(t.store, &request, ret_attempt, &why);
}

static void begin_some(size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        assert_ok(begin_key(numbered("k", i), &t.attempts[i]));
        assert_int_equal(t.attempts[i]->verdict, IDEM_STARTED);
    }
}

static void begin_many(void)
{
    begin_some(MANY);
}

/* Fills the disk, and begins until that is refused: blocks that the log has are
 * used again as long as there are any. */
static void fill(void)
{
    struct idem_attempt *attempt;
    unsigned n = 0;
    int rc;

    disk_fill(t.disk);
    do {
        rc = begin_key(numbered("x", n++), &attempt);
        if (rc == 0) {
            idem_attempt_destroy(attempt);
        }
    } while (rc == 0 && n < 20000);
    assert_code(IDEM_EFULL, rc);
    assert_why("full");
    assert_int_equal(disk_room(t.disk), 0);
}

/* Of the reserve, in bytes that are really there. */
static long reserved(void)
{
    char name[700];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s-reserve", t.path);
    return stat(name, &st) == 0 ? (long)st.st_blocks * 512 : -1;
}

static int complete_by(struct idem_attempt *attempt, size_t len)
{
    static char bytes[14 << 20];
    struct idem_result result = {.bytes = idem_bytes(bytes, len)};

    return idem_complete(attempt, &result, &why);
}

/* How many of them are on record as completed, in a store opened anew. */
static size_t count_completed(void)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;

    assert_ok(idem_sqlite_inspect(t.store, &info, &why));
    return (size_t)info.records[IDEM_STATUS_COMPLETED];
}

/* The first claim keeps room, and so do all after it. */
TEST(reserve, isKept)
{
    struct idem_attempt *attempt;

    if (!begin_test()) {
        test_skip("no file system can be mounted here");
    }
    assert_int_equal(reserved(), -1);
    assert_ok(begin_key("k", &attempt));
    assert_int_equal(reserved(), RESERVE_LEN);
    assert_ok(complete_by(attempt, 10));
    idem_attempt_destroy(attempt);
    assert_int_equal(reserved(), RESERVE_LEN);
    end_test();
}

/* The control: with nothing in reserve the same attempts cannot be ended. */
TEST(full, losesWithoutAReserve)
{
    char name[700];
    size_t failed = 0;
    size_t i;
    int fd;

    if (!begin_test()) {
        test_skip("no file system can be mounted here");
    }
    begin_many();
    (void)snprintf(name, sizeof(name), "%s-reserve", t.path);
    fd = open(name, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    (void)close(fd);
    disk_fill(t.disk);
    for (i = 0; i < MANY; i++) {
        int rc = complete_by(t.attempts[i], 400);

        assert_true(rc == 0 || rc == IDEM_EFULL);
        failed += rc != 0;
    }
    assert_true(failed > MANY / 10);

    /* They can be once there is room. */
    disk_free(t.disk);
    for (i = 0; i < MANY; i++) {
        assert_ok(complete_by(t.attempts[i], 400));
    }
    end_test();
}

/* All that ends or goes on with what was begun may use it, in one batch too. */
TEST(full, servesAllThatEnds)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_FAILED};
    struct idem_attempt *attempt;
    struct idem_queue *queue;
    struct idem_op *op;
    size_t i;

    if (!begin_test()) {
        test_skip("no file system can be mounted here");
    }
    begin_many();
    fill();
    assert_ok(idem_renew(t.attempts[0], 120000, &why));
    assert_ok(idem_release(t.attempts[0], idem_str("x"), &why));
    assert_ok(idem_unknown(t.attempts[1], idem_str("x"), &why));
    assert_ok(idem_expire(t.attempts[2], &why));
    outcome.text = idem_str("looked");
    assert_ok(idem_resolve(t.store, idem_str(""), idem_str("k1"),
                           t.attempts[1]->fence, idem_str("me"), &outcome,
                           /* flags= */ 0, &why));

    assert_ok(idem_queue_create(t.store, &queue, &why));
    for (i = 100; i < 200; i++) {
        struct idem_request request = claim("another");

        if (i % 2 == 0) {
            assert_ok(idem_op_end(t.attempts[i], &outcome, &op, &why));
        } else {
            assert_ok(idem_op_begin(&request, &op, &why));
        }
        idem_op_set_user(op, i % 2 == 0 ? t.attempts[i] : NULL);
        assert_ok(idem_queue_submit(queue, op, &why));
    }
    for (i = 100; i < 200; i++) {
        op = idem_queue_reap(queue, 5000);
        assert_non_null(op);
        assert_code(idem_op_user(op) != NULL ? 0 : IDEM_EFULL,
                    idem_op_code(op));
        idem_op_destroy(op);
    }
    idem_queue_destroy(queue);
    assert_code(IDEM_EFULL, begin_key("k0", &attempt)); /* It was released. */
    end_test();
}

static bool stop;

/* A log that grows and grows: it takes whatever anybody gives back. */
static void grab(void *disk)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        disk_fill(disk);
    }
}

/* While somebody takes every byte that comes free, an end is recorded or it is
 * not, and the answer says which. */
TEST(full, tellsTheTruthInARace)
{
    struct thread *thread;
    size_t done = 0;
    size_t i;

    if (!begin_test()) {
        test_skip("no file system can be mounted here");
    }
    begin_many();
    fill();
    stop = false;
    thread = thread_start(grab, (void *)(uintptr_t)t.disk);
    for (i = 0; i < MANY; i++) {
        int rc = complete_by(t.attempts[i], 400);

        if (rc != 0) {
            assert_code(IDEM_EFULL, rc);
        }
        done += rc == 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    thread_join(thread);
    assert_int_equal(count_completed(), done);
    disk_free(t.disk);
    for (i = 0; i < MANY; i++) {
        assert_ok(complete_by(t.attempts[i], 400));
    }
    end_test();
    temp_remove();
}
