/* Queues: many operations in flight from one thread, with and without a thread of
 * the store's own. */
#include "contract.h"

#include "threads.h"

#include <idem/operator.h>
#include <idem/queue.h>
#include <poll.h>
#include <stdlib.h>

/* The queue does not know the layout of a table, so a layout that is not ours is tried
 * with fewer. */
static size_t many(void)
{
    bool fewer = traits()->layout != NULL && getenv("IDEM_TEST_LONG") == NULL;

    return fewer ? 250 : 1000;
}

/* With and without IDEM_OPEN_THREAD. */
static const unsigned flag_sets[] = {0, IDEM_OPEN_THREAD};

static struct idem_queue *open_bounded(struct fixture *f, size_t queue_max,
                                       unsigned flags)
{
    struct idem_queue *queue;

    open_real(f);
    finish(f);
    f->options.flags = flags;
    if (queue_max != 0) {
        f->options.queue_max = queue_max;
    }
    open_again(f);
    assert_ok(idem_queue_create(f->store, &queue, &why));
    return queue;
}

static struct idem_queue *open_queue(struct fixture *f, unsigned flags)
{
    return open_bounded(f, /* queue_max= */ 0, flags);
}

static void close_queue(struct fixture *f, struct idem_queue *queue)
{
    idem_queue_destroy(queue);
    finish(f);
}

static void submit_begin(struct idem_queue *queue, size_t n)
{
    struct idem_request request;
    struct idem_op *op;

    request = claim(numbered("k", n));
    assert_ok(idem_op_begin(&request, &op, &why));
    idem_op_set_user(op, queue);
    assert_ok(idem_queue_submit(queue, op, &why));
}

/* Turns a reaped begin into the end of its attempt, and submits that. */
static void submit_end(struct idem_queue *queue, struct idem_op *op)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt;
    struct idem_op *end;

    assert_ok(idem_op_take_attempt(op, &attempt));
    outcome.result.bytes = attempt->record->key;
    assert_ok(idem_op_end(attempt, &outcome, &end, &why));
    idem_op_set_user(end, idem_op_user(op));
    idem_attempt_destroy(attempt);
    idem_op_destroy(op);
    assert_ok(idem_queue_submit(queue, end, &why));
}

/* A thousand begins in flight, each followed by its end as it is answered. */
static void run_all(struct idem_queue *queue, size_t ops, bool by_poll)
{
    struct pollfd p = {.fd = idem_queue_fd(queue), .events = POLLIN};
    size_t started = 0;
    size_t ended = 0;
    size_t i;

    for (i = 0; i < ops; i++) {
        submit_begin(queue, i);
    }
    assert_int_equal(idem_queue_len(queue), ops);
    while (ended < ops) {
        struct idem_op *op;

        if (by_poll && poll(&p, 1, 20000) != 1) {
            fail_with("nothing to do after %zu and %zu", started, ended);
        }
        op = idem_queue_reap(queue, by_poll ? 0 : -1);
        if (op == NULL) {
            assert_true(by_poll);
            continue;
        }
        assert_ok(idem_op_code(op));
        assert_ptr_equal(idem_op_user(op), queue);
        if (idem_op_verdict(op) == IDEM_STARTED) {
            started++;
            submit_end(queue, op);
        } else {
            assert_int_equal(idem_op_record(op)->status, IDEM_STATUS_COMPLETED);
            ended++;
            idem_op_destroy(op);
        }
    }
    assert_int_equal(started, ops);
    assert_int_equal(idem_queue_len(queue), 0);
    assert_null(idem_queue_reap(queue, -1));
    if (traits()->file || !is_durable()) { /* A service may wake us unasked. */
        assert_int_equal(poll(&p, 1, 0), 0);
    }
}

static void assert_all_replayed(struct fixture *f, size_t ops)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    size_t i;

    filter.statuses = 1u << IDEM_STATUS_COMPLETED;
    assert_int_equal(count(f->store, &filter), ops);
    for (i = 0; i < ops; i += 37) {
        const char *key = numbered("k", i);
        struct idem_request request = claim(key);

        assert_text(
            begin(f->store, &request, IDEM_REPLAY)->record->result.bytes, key);
    }
}

static void carry(size_t ops, unsigned flags, bool by_poll)
{
    struct fixture f;
    struct idem_queue *queue = open_queue(&f, flags);

    run_all(queue, ops, by_poll);
    assert_all_replayed(&f, ops);
    close_queue(&f, queue);
}

/* One thread has up to a thousand operations in flight and reaps them, also in a loop that
 * polls and reaps once each time, with a thread of the store and without; each of them is
 * answered once. */
TEST(queue, carriesAThousandInFlight)
{
    carry(many(), 0, /* by_poll= */ false);
    carry(many() / 4, 0, /* by_poll= */ true);
    carry(many() / 4, IDEM_OPEN_THREAD, /* by_poll= */ false);
    carry(many(), IDEM_OPEN_THREAD, /* by_poll= */ true);
}

/* In one queue, a thousand claims of one key: one is started. */
TEST(queue, startsOneOfAThousand)
{
    const size_t ops = many();

    EACH(flag_set, flag_sets) {
        struct fixture f;
        struct idem_queue *queue = open_queue(&f, *flag_set);
        unsigned started = 0;
        unsigned busy = 0;
        struct idem_op *op;
        size_t n;

        for (n = 0; n < ops; n++) {
            submit_begin(queue, 7);
        }
        while ((op = idem_queue_reap(queue, -1)) != NULL) {
            assert_ok(idem_op_code(op));
            started += idem_op_verdict(op) == IDEM_STARTED;
            busy += idem_op_verdict(op) == IDEM_BUSY;
            idem_op_destroy(op);
        }
        assert_int_equal(started, 1);
        assert_int_equal(busy, ops - 1);
        close_queue(&f, queue);
    }
}

/* Passes @op alone through the queue, which must answer @code. */
static void pass(struct idem_queue *queue, struct idem_op *op, int code)
{
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_ptr_equal(idem_queue_reap(queue, -1), op);
    assert_code(code, idem_op_code(op));
}

/* A get and a renewal are ops like any other. */
TEST(queue, carriesEveryVerb)
{
    struct fixture f;
    struct idem_queue *queue = open_queue(&f, 0);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f.store, &request, IDEM_STARTED);
    struct idem_op *op;

    assert_ok(idem_op_renew(attempt, 120000, &op, &why));
    pass(queue, op, IDEM_OK);
    assert_int_equal(idem_op_record(op)->lease_ms, 120000);
    idem_op_destroy(op);

    assert_ok(idem_op_expire(attempt, &op, &why));
    pass(queue, op, IDEM_OK);
    assert_false(idem_op_record(op)->live);
    idem_op_destroy(op);

    assert_ok(idem_op_get(idem_str(""), idem_str("k"), &op, &why));
    pass(queue, op, IDEM_OK);
    assert_true(idem_op_record(op)->fence == attempt->fence);
    idem_op_destroy(op);

    assert_ok(idem_op_get(idem_str(""), idem_str("none"), &op, &why));
    pass(queue, op, IDEM_ENOTFOUND);
    assert_string_equal(idem_op_error(op)->text,
                        idem_error_text(IDEM_ENOTFOUND));
    assert_null(idem_op_record(op));
    idem_op_destroy(op);
    close_queue(&f, queue);
}

/* A waiter on a queue asks about the attempt that it saw, and starts nothing. */
TEST(queue, joins)
{
    struct fixture f;
    struct idem_queue *queue = open_queue(&f, 0);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f.store, &request, IDEM_STARTED);
    static const enum idem_verdict wants[] = {IDEM_BUSY, IDEM_BUSY,
                                              IDEM_RELEASED, IDEM_RELEASED};
    struct idem_op *op;
    size_t i;

    request.join_fence = attempt->fence;
    assert_ok(idem_op_begin(&request, &op, &why));
    for (i = 0; i < COUNT(wants); i++) {
        if (i == 2) {
            assert_ok(idem_release(attempt, idem_str(""), &why));
        }
        pass(queue, op, IDEM_OK);
        assert_int_equal(idem_op_verdict(op), wants[i]);
    }
    assert_int_equal(status_of(f.store, "k"), IDEM_STATUS_RELEASED);
    idem_op_destroy(op);
    close_queue(&f, queue);
}

/* A queue that is destroyed with operations in it leaves a working store. Operations that
 * had not begun were not done. */
TEST(queue, mayBeDestroyedWhileInUse)
{
    EACH(flag_set, flag_sets) {
        struct fixture f;
        struct idem_queue *queue = open_queue(&f, *flag_set);
        struct idem_request request = claim("after");
        size_t n;

        for (n = 0; n < 100; n++) {
            submit_begin(queue, n);
        }
        idem_queue_destroy(queue);
        run(f.store, &request, "x");
        if (!traits()->at_once && *flag_set == 0) {
            assert_int_equal(count(f.store, NULL), 1);
        }
        finish(&f);
    }
}

/* The store's bound is the queue's: a queue that is full refuses at once, and loses no
 * operation that it took. */
TEST(queue, isBounded)
{
    struct fixture f;
    struct idem_queue *queue = open_bounded(&f, 10, 0);
    struct idem_op *op;
    size_t taken = 0;
    size_t i;

    for (i = 0; i < 30; i++) {
        struct idem_request request = claim(numbered("k", i));
        int rc;

        assert_ok(idem_op_begin(&request, &op, &why));
        rc = idem_queue_submit(queue, op, &why);
        if (rc != 0) {
            assert_code(IDEM_EUNAVAILABLE, rc);
            idem_op_destroy(op);
        } else {
            taken++;
        }
    }
    if (!traits()->at_once) {
        assert_int_equal(taken, 10);
    }
    for (i = 0; i < taken; i++) {
        op = idem_queue_reap(queue, -1);
        assert_ok(idem_op_code(op));
        assert_int_equal(idem_op_verdict(op), IDEM_STARTED);
        idem_op_destroy(op);
    }
    assert_null(idem_queue_reap(queue, -1));
    assert_int_equal(count(f.store, NULL), taken);
    close_queue(&f, queue);
}

static struct idem_op *begin_op(const struct idem_request *request)
{
    struct idem_op *op;

    assert_ok(idem_op_begin(request, &op, &why));
    return op;
}

/* The ends of an attempt, and 0 for a renewal. */
static const enum idem_status ends[] = {
    IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,  IDEM_STATUS_RELEASED,
    IDEM_STATUS_RETRY,     IDEM_STATUS_UNKNOWN, (enum idem_status)0};

static struct idem_op *owner_op(const struct idem_attempt *attempt,
                                enum idem_status status)
{
    struct idem_outcome outcome = {.status = status};
    struct idem_op *op;

    if (status == (enum idem_status)0) {
        assert_ok(idem_op_renew(attempt, 120000, &op, &why));
    } else {
        assert_ok(idem_op_end(attempt, &outcome, &op, &why));
    }
    return op;
}

/* Fills a queue whose bound is @room. In a store in which operations wait it then refuses one
 * more claim. */
static void fill(struct idem_queue *queue, size_t *key, size_t room)
{
    struct idem_request request = claim("refused");
    struct idem_op *op;
    size_t i;

    for (i = 0; i < room; i++) {
        submit_begin(queue, (*key)++);
    }
    if (!traits()->at_once) {
        op = begin_op(&request);
        assert_code(IDEM_EUNAVAILABLE, idem_queue_submit(queue, op, &why));
        assert_why("queue_max is 10");
        assert_why("reap");
        idem_op_destroy(op);
    }
}

static void reap_started(struct idem_queue *queue, size_t want)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        assert_ok(idem_op_code(op));
        want -= idem_op_verdict(op) == IDEM_STARTED;
        idem_op_destroy(op);
    }
    assert_int_equal(want, 0);
}

/* Fails unless the key of one letter has @status; 0: it is in progress. */
static void assert_ended(const struct fixture *f, char key,
                         enum idem_status status)
{
    char name[] = {key, '\0'};
    struct idem_answer *answer;
    const struct idem_record *record;

    assert_ok(idem_get(f->store, idem_str(""), idem_str(name), &answer, &why));
    record = idem_answer_record(answer);
    if (status == IDEM_STATUS_RETRY) {
        assert_true(record->retry);
    } else {
        assert_int_equal(record->status, status == (enum idem_status)0
                                             ? IDEM_STATUS_IN_PROGRESS
                                             : status);
    }
    idem_answer_destroy(answer);
}

/* A full queue refuses claims, but takes the ends and renewals of owners, whose work is done
 * or whose lease runs. */
TEST(queue, takesEndsWhenItIsFull)
{
    enum {
        ROOM = 10
    };
    struct fixture f;
    struct idem_queue *queue = open_bounded(&f, ROOM, 0);
    struct idem_request request;
    struct idem_attempt *attempts[COUNT(ends) + 3];
    struct idem_op *ops[3];
    char name[] = "a";
    size_t key = 0;
    size_t i;

    for (i = 0; i < COUNT(attempts); i++) {
        request = claim(name);
        attempts[i] = begin(f.store, &request, IDEM_STARTED);
        name[0]++;
    }
    fill(queue, &key, ROOM);
    for (i = 0; i < COUNT(ends); i++) {
        assert_ok(
            idem_queue_submit(queue, owner_op(attempts[i], ends[i]), &why));
    }
    request = claim("refused");
    ops[0] = begin_op(&request);
    request = claim("refused too");
    ops[1] = begin_op(&request);
    /* On another attempt, because two ops in flight may be done in either order. */
    ops[2] = owner_op(attempts[COUNT(ends) + 2], IDEM_STATUS_COMPLETED);
    if (traits()->at_once) {
        assert_int_equal(idem_queue_submit_all(queue, ops, 3, &why), 0);
        reap_started(queue, ROOM + 2);
    } else {
        assert_int_equal(idem_queue_submit_all(queue, ops, 3, &why), 2);
        idem_op_destroy(ops[0]);
        idem_op_destroy(ops[1]);
        reap_started(queue, ROOM);
    }
    for (i = 0; i < COUNT(ends); i++) {
        assert_ended(&f, 'a' + (char)i, ends[i]);
    }
    assert_ended(&f, 'a' + (char)COUNT(ends) + 2, IDEM_STATUS_COMPLETED);

    /* The same holds for the blocking calls. */
    fill(queue, &key, ROOM);
    assert_ok(idem_complete(attempts[COUNT(ends)], NULL, &why));
    reap_started(queue, ROOM);
    fill(queue, &key, ROOM);
    assert_ok(idem_expire(attempts[COUNT(ends) + 1], &why));
    reap_started(queue, ROOM);
    close_queue(&f, queue);
}

/* Reaps all answers that come at once, or within the time of a flush. */
static void reap_verdicts(struct idem_queue *queue, size_t verdicts[8])
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        assert_ok(idem_op_code(op));
        verdicts[idem_op_verdict(op)]++;
        if (idem_op_verdict(op) == IDEM_REPLAY) {
            assert_text(idem_op_record(op)->result.bytes, "paid");
        }
        idem_op_destroy(op);
    }
}

/* Old keys and new ones, handed over together, are answered as one by one; the
 * descriptor serves again afterwards. */
TEST(queue, takesManyAtOnce)
{
    uint8_t prints[2][IDEM_FINGERPRINT_LEN];
    struct idem_slice parts[2] = {idem_str("42"), idem_str("43")};

    assert_ok(idem_fingerprint(&parts[0], 1, idem_bytes(NULL, 0), prints[0]));
    assert_ok(idem_fingerprint(&parts[1], 1, idem_bytes(NULL, 0), prints[1]));
    EACH(flag_set, flag_sets) {
        struct fixture f;
        struct idem_queue *queue = open_queue(&f, *flag_set);
        struct pollfd p = {.fd = idem_queue_fd(queue), .events = POLLIN};
        struct idem_request done = claim("done");
        struct idem_request twice = claim("twice");
        struct idem_request other = claim("done");
        size_t verdicts[8] = {0};
        struct idem_op *ops[7];

        other.fingerprint = idem_bytes(prints[0], sizeof(prints[0]));
        run(f.store, &other, "paid");
        other.fingerprint = idem_bytes(prints[1], sizeof(prints[1]));
        ops[0] = begin_op(&done);
        ops[1] = begin_op(&twice);
        ops[2] = begin_op(&other);
        ops[3] = begin_op(&twice);
        assert_ok(idem_op_get(idem_str(""), idem_str("done"), &ops[4], &why));
        ops[5] = begin_op(&done);
        assert_int_equal(idem_queue_submit_all(queue, ops, 6, &why), 0);
        assert_int_equal(idem_queue_len(queue), 6);

        /* An op in flight is refused; the call puts refused ops first. */
        ops[6] = ops[1];
        ops[1] = begin_op(&done);
        ops[0] = ops[6];
        assert_int_equal(idem_queue_submit_all(queue, ops, 2, &why), 1);
        assert_ptr_equal(ops[0], ops[6]);
        assert_why("in flight");

        reap_verdicts(queue, verdicts);
        assert_int_equal(verdicts[IDEM_STARTED], 1);
        assert_int_equal(verdicts[IDEM_BUSY], 1);
        assert_int_equal(verdicts[IDEM_MISMATCH], 1);
        assert_int_equal(verdicts[0] + verdicts[IDEM_REPLAY], 4);

        ops[0] = begin_op(&done);
        assert_ok(idem_queue_submit(queue, ops[0], &why));
        assert_int_equal(poll(&p, 1, 20000), 1);
        reap_verdicts(queue, verdicts);
        close_queue(&f, queue);
    }
}

/* A store that is closed before its queue answers all operations: each was done, or had no
 * effect. The queue then refuses more. */
TEST(queue, mayOutliveItsStoreByMistake)
{
    EACH(flag_set, flag_sets) {
        struct fixture f;
        struct idem_queue *queue = open_queue(&f, *flag_set);
        struct idem_request request = claim("late");
        struct idem_op *op;
        size_t n;

        for (n = 0; n < 3; n++) {
            submit_begin(queue, n);
        }
        finish(&f);
        for (n = 0; n < 3; n++) {
            op = idem_queue_reap(queue, 0);
            assert_non_null(op);
            assert_true(idem_op_code(op) == 0 ||
                        idem_op_code(op) == IDEM_EUNAVAILABLE ||
                        idem_op_code(op) == IDEM_EUNKNOWN);
            idem_op_destroy(op);
        }
        assert_int_equal(idem_queue_len(queue), 0);
        assert_ok(idem_op_begin(&request, &op, &why));
        assert_code(IDEM_EINVALID, idem_queue_submit(queue, op, &why));
        assert_why("was closed");
        idem_op_destroy(op);
        idem_queue_destroy(queue);
    }
}
