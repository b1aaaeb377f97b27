/* A disk that fails: what was answered stays true, what was not is settled. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "vfs_fail.h"

#include "queue/op.h"
#include <idem/limit.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

/* What one life of a key answered. */
struct life {
    int begin;
    int complete;
    uint64_t fence;
};

static struct life live(struct idem_store *store, const char *key)
{
    struct idem_request request = claim(key);
    struct idem_result result = {.bytes = idem_str("receipt 7")};
    struct life life = {.complete = 1};
    struct idem_attempt *attempt;

    life.begin = idem_begin(store, &request, &attempt, &why);
    if (life.begin == 0) {
        assert_int_equal(attempt->verdict, IDEM_STARTED);
        life.fence = attempt->fence;
        life.complete = idem_complete(attempt, &result, &why);
        idem_attempt_destroy(attempt);
    }
    return life;
}

/* What is on record agrees with what was answered, in a store opened anew. */
static void assert_true_to(const char *path, const char *key,
                           const struct life *life)
{
    struct idem_store *store = db_store(path, 100);
    struct idem_answer *answer = NULL;
    int rc = idem_get(store, idem_str(""), idem_str(key), &answer, &why);
    const struct idem_record *record =
        rc == 0 ? idem_answer_record(answer) : NULL;

    assert_true(rc == 0 || rc == IDEM_ENOTFOUND);
    if (life->begin == 0) {
        assert_non_null(record);
        assert_true(record->fence == life->fence);
    } else if (life->begin != IDEM_EUNKNOWN) {
        assert_null(record); /* "Nothing was done." */
    }
    if (life->begin == 0 && life->complete == 0) {
        assert_int_equal(record->status, IDEM_STATUS_COMPLETED);
        assert_text(record->result.bytes, "receipt 7");
    } else if (life->begin == 0 && life->complete != IDEM_EUNKNOWN) {
        assert_int_equal(record->status, IDEM_STATUS_IN_PROGRESS);
    }
    idem_answer_destroy(answer);
    idem_close(store);
}

/* Fails the n-th of @call, for every n that is reached. */
static long fail_each(enum vfs_call call, bool on, int sqlite_rc)
{
    bool hit = true;
    long n;

    for (n = 0; hit && n < 200; n++) {
        const char *path = temp_path("faults.db");
        struct idem_store *store;
        struct life life;

        store = db_store(path, 100);
        life = live(store, "before");
        assert_ok(life.begin);
        assert_ok(life.complete);

        vfs_fail(call, n, on, sqlite_rc);
        life = live(store, "k");
        hit = vfs_fail_never();
        if (!hit) {
            assert_ok(life.begin);
            assert_ok(life.complete);
        }
        idem_close(store);

        assert_true_to(path, "k", &life);
        life = live(store = db_store(path, 100), "after");
        assert_ok(life.begin);
        assert_ok(life.complete);
        idem_close(store);
    }
    assert_true(!hit);
    return n - 1;
}

/* ROW(37) A flush that fails once is settled: the store carries its log over and
 * runs the operations again, and nobody is told anything that is not so. */
TEST(faults, settleAfterAFlushThatFailedOnce)
{
    vfs_fail_install();
    assert_true(fail_each(VFS_SYNC, /* on= */ false, SQLITE_IOERR_FSYNC) >= 2);
}

/* What the kernel shows after a flush that failed may never reach the disk: no
 * answer is built on it before the whole log was carried over, and flushed. */
TEST(faults, carryTheLogOverAfterAFlushThatFailed)
{
    struct idem_store *store;
    struct life life;
    const char *path = temp_path("carried.db");

    vfs_fail_install();
    store = db_store(path, 100);
    life = live(store, "before");
    assert_ok(life.complete);
    vfs_fail(VFS_SYNC, 0, /* on= */ false, SQLITE_IOERR_FSYNC);
    life = live(store, "k");
    assert_true(vfs_fail_never());
    assert_ok(life.complete);
    assert_true(vfs_fail_flushes() >= 1);
    /* Once: what follows is written to the log as ever. */
    vfs_fail(VFS_SYNC, 1000000, /* on= */ false, SQLITE_OK);
    life = live(store, "after");
    assert_ok(life.complete);
    assert_int_equal(vfs_fail_cuts(), 0);
    assert_false(vfs_fail_never());
    idem_close(store);
}

/* ROW(37) While every flush fails nothing is claimed to be recorded. */
TEST(faults, answerUnknownWhileEveryFlushFails)
{
    vfs_fail_install();
    assert_true(fail_each(VFS_SYNC, /* on= */ true, SQLITE_IOERR_FSYNC) >= 2);
}

/* ROW(37) After a second flush that failed the store serves nobody who wants to
 * change it, and says that nothing was done; what it has recorded it replays. It
 * serves again once a flush succeeds. */
TEST(faults, stopServingWhileFlushesFail)
{
    struct idem_store *store;
    struct life life;
    const char *path = temp_path("stopped.db");
    int i;

    vfs_fail_install();
    store = db_store(path, 100);
    life = live(store, "before");
    assert_ok(life.complete);

    vfs_fail(VFS_SYNC, 0, /* on= */ true, SQLITE_IOERR_FSYNC);
    life = live(store, "k");
    assert_code(IDEM_EUNKNOWN, life.begin);
    for (i = 0; i < 3; i++) {
        struct life refused = live(store, numbered("refused", i));
        struct idem_request request = claim("before");
        struct idem_attempt *attempt;

        assert_code(IDEM_EUNAVAILABLE, refused.begin);
        assert_ok(idem_begin(store, &request, &attempt, &why));
        assert_int_equal(attempt->verdict, IDEM_REPLAY);
        idem_attempt_destroy(attempt);
    }
    assert_true(vfs_fail_never());

    for (i = 0; i < 3; i++) {
        struct life served = live(store, numbered("refused", i));

        /* STARTED: nothing had been done. */
        assert_ok(served.begin);
        assert_ok(served.complete);
    }
    idem_close(store);
    assert_true_to(path, "k", &life);
}

/* One submission, which nobody repeats. */
static int submit_once(struct idem_queue *queue, const char *key)
{
    struct idem_request request = claim(key);
    struct idem_op *op;
    int code;

    assert_ok(idem_op_begin(&request, &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_ptr_equal(idem_queue_reap(queue, 10000), op);
    code = idem_op_code(op);
    idem_op_destroy(op);
    return code;
}

/* A flush fails, and the @n-th after it too: of those that settle the store, or
 * last that of the second try. How often the next change cut off the log; -1:
 * nothing failed for good. */
static long fail_two(long n, bool *ret_hit)
{
    struct idem_queue *queue;
    struct idem_store *store;
    const char *path = temp_path("second.db");
    long cuts;
    int code;

    store = db_store(path, 100);
    assert_ok(idem_queue_create(store, &queue, &why));
    assert_ok(submit_once(queue, "before"));
    vfs_fail(VFS_SYNC, 0, /* on= */ false, SQLITE_IOERR_FSYNC);
    vfs_fail_again(n);
    code = submit_once(queue, "k");
    *ret_hit = !vfs_fail_pending();
    vfs_fail(VFS_SYNC, 1000000, /* on= */ false, SQLITE_OK);
    assert_ok(submit_once(queue, "next"));
    cuts = vfs_fail_cuts();
    (void)vfs_fail_never();
    idem_queue_destroy(queue);
    idem_close(store);
    assert_true(code == 0 || code == IDEM_EUNKNOWN);
    return code == 0 ? -1 : cuts;
}

/* The store settled, and the second try failed: the next change carries the log
 * over first, and begins a new one, like any after a flush that failed. */
TEST(faults, settleAgainAfterASecondTryThatFailed)
{
    long of_second_try = -1;
    bool hit = true;
    long n;

    vfs_fail_install();
    for (n = 0; hit && n < 20; n++) {
        long cuts = fail_two(n, &hit);

        of_second_try = cuts >= 0 ? cuts : of_second_try;
    }
    assert_true(!hit && of_second_try >= 1);
}

/* The window is forgotten by the next purge. */
static void count_a_request(struct idem_store *store)
{
    struct idem_limit_request request = IDEM_LIMIT_INIT;
    struct idem_limited limited;

    request.name = idem_str("orders");
    request.subject = idem_str("ann");
    request.request = idem_str("one");
    request.at_ms = (int64_t)time(NULL) * 1000;
    request.max = 10;
    request.per_ms = 60000;
    assert_ok(idem_limit(store, &request, &limited, &why));
}

/* A purge that is rolled back has not looked at anything: it is not done. */
TEST(faults, leaveAPurgeUndone)
{
    struct idem_queue *queue;
    struct idem_store *store;
    struct idem_op *op;
    const char *path = temp_path("purge.db");

    vfs_fail_install();
    store = db_store(path, 100);
    count_a_request(store);
    db_run_at(path, "UPDATE idem_limit_window SET expires = 1");
    assert_ok(idem_queue_create(store, &queue, &why));
    op = idem__op_create(IDEM_OP_PURGE, 0);
    assert_non_null(op);
    op->u.purge.max = 1000;
    op->u.purge.cursor[0] = 3; /* The limits, which come last. */
    vfs_fail(VFS_SYNC, 0, /* on= */ true, SQLITE_IOERR_FSYNC);
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_ptr_equal(idem_queue_reap(queue, 10000), op);
    assert_true(vfs_fail_never());
    assert_code(IDEM_EUNKNOWN, idem_op_code(op));
    assert_false(op->u.purge.done);
    idem_op_destroy(op);
    idem_queue_destroy(queue);
    idem_close(store);
}

/* A write that tears half-way is no commit. */
TEST(faults, settleAfterAWriteThatFailed)
{
    vfs_fail_install();
    assert_true(fail_each(VFS_WRITE, /* on= */ false, SQLITE_IOERR_WRITE) >= 2);
    assert_true(fail_each(VFS_WRITE, /* on= */ true, SQLITE_IOERR_WRITE) >= 2);
}

/* A full disk is FULL, and nothing was done: ROW(35). */
TEST(faults, answerFullWhereThereIsNoRoom)
{
    struct idem_store *store;
    struct life life;
    const char *path = temp_path("full.db");

    vfs_fail_install();
    assert_true(fail_each(VFS_WRITE, /* on= */ true, SQLITE_FULL) >= 2);

    store = db_store(path, 100);
    vfs_fail(VFS_WRITE, 0, /* on= */ true, SQLITE_FULL);
    life = live(store, "k");
    (void)vfs_fail_never();
    assert_code(IDEM_EFULL, life.begin);
    life = live(store, "k");
    assert_ok(life.begin);
    assert_ok(life.complete);
    idem_close(store);
}

/* A flush that fails under many operations fails none of them for good. */
TEST(faults, settleWholeBatches)
{
    enum {
        OPS = 64
    };
    struct idem_queue *queue;
    struct idem_store *store;
    const char *path = temp_path("batch.db");
    int n;

    vfs_fail_install();
    store = db_store(path, 100);
    assert_ok(idem_queue_create(store, &queue, &why));
    for (n = 0; n < OPS; n++) {
        struct idem_request request;
        struct idem_op *op;

        request = claim(numbered("k", n));
        assert_ok(idem_op_begin(&request, &op, &why));
        assert_ok(idem_queue_submit(queue, op, &why));
    }
    vfs_fail(VFS_SYNC, 0, /* on= */ false, SQLITE_IOERR_FSYNC);
    for (n = 0; n < OPS; n++) {
        struct idem_op *op = idem_queue_reap(queue, 1000);

        assert_non_null(op);
        assert_code(IDEM_OK, idem_op_code(op));
        assert_int_equal(idem_op_verdict(op), IDEM_STARTED);
        idem_op_destroy(op);
    }
    assert_true(vfs_fail_never());
    idem_queue_destroy(queue);
    idem_close(store);
}

/* Where a commit that finds no room may have left its frames behind, it is not
 * said that nothing was done. */
TEST(faults, answerUnknownWhereAFullDiskMayRemember)
{
    vfs_fail_install();
    vfs_plain(true);
    assert_true(fail_each(VFS_WRITE, /* on= */ true, SQLITE_FULL) >= 4);
    assert_true(fail_each(VFS_WRITE, /* on= */ false, SQLITE_FULL) >= 4);
    vfs_plain(false);
}

/* ROW(38) A disk that cannot be read says nothing about what is not there: no work
 * starts. */
TEST(faults, startNothingWhereReadingFails)
{
    struct idem_store *store;
    struct life life;
    const char *path = temp_path("read.db");

    vfs_fail_install();
    store = db_store(path, 100);
    life = live(store, "k");
    assert_ok(life.complete);
    idem_close(store);

    store = db_store(path, 100);
    vfs_fail(VFS_READ, 0, /* on= */ true, SQLITE_IOERR_READ);
    life = live(store, "other");
    if (vfs_fail_never()) {
        assert_code(IDEM_ECORRUPT, life.begin);
    } else {
        assert_ok(life.begin);
    }
    idem_close(store);
    temp_remove();
}
