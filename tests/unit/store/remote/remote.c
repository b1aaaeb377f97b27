/* What the room does without a service that it knows. */
#include "service.h"

#include "test.h"

#include <sched.h>
#include <sys/eventfd.h>

enum {
    STARTED = 4096, /* That may be started, and pause. */
    MANY = 200,
};

static struct service *open_for(unsigned flags, int64_t timeout_ms)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.flags = flags;
    options.timeout_ms = timeout_ms;
    return open_service(/* cache= */ NULL, &options);
}

/* So many at once and no more; all of them are answered. */
TEST(remote, boundsWhatIsSent)
{
    struct service *service = open_for(0, 60000);
    struct idem_queue *queue;
    struct idem_op *op;
    size_t i;

    assert_ok(idem_queue_create(&service->remote.base, &queue, &why));
    for (i = 0; i < MANY; i++) {
        assert_ok(idem_op_get(idem_str(""), idem_str(i % 2 == 0 ? "1" : "3"),
                              &op, &why));
        assert_ok(idem_queue_submit(queue, op, &why));
    }
    for (i = 0; i < MANY; i++) {
        op = idem_queue_reap(queue, -1);
        assert_code(IDEM_ENOTFOUND, idem_op_code(op));
        idem_op_destroy(op);
    }
    assert_int_equal(service->sent_most, SERVICE_PLACES);
    idem_queue_destroy(queue);
    idem_close(&service->remote.base);
}

static struct idem_op *submit(struct idem_queue *queue, const char *key)
{
    struct idem_op *op;

    assert_ok(idem_op_get(idem_str(""), idem_str(key), &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    return op;
}

/* The thread that leads sleeps while an answer is to come. It is woken once there are as
 * many ops as are worth it, and for none if nothing can be sent: they go with the
 * answer. */
TEST(remote, isWokenForWhatCanBeSent)
{
    static const size_t wanted[] = {1, 3, SIZE_MAX};
    enum {
        MORE = 4
    };

    EACH(one, wanted) {
        struct service *service = open_for(IDEM_OPEN_THREAD, 60000);
        struct idem_queue *queue;
        int wakes;
        size_t n;

        service->blocks = true;
        service->silent = true;
        service->wanted = *one;
        assert_ok(idem_queue_create(&service->remote.base, &queue, &why));
        (void)submit(queue, "1");
        while (!__atomic_load_n(&service->waiting, __ATOMIC_SEQ_CST)) {
            (void)sched_yield();
        }
        wakes = __atomic_load_n(&service->wakes, __ATOMIC_SEQ_CST);
        for (n = 1; n < MORE && n < *one; n++) {
            (void)submit(queue, "1");
            assert_int_equal(__atomic_load_n(&service->wakes, __ATOMIC_SEQ_CST),
                             wakes);
        }
        service->silent = false;
        (void)submit(queue, "1");
        assert_int_equal(__atomic_load_n(&service->wakes, __ATOMIC_SEQ_CST),
                         wakes + (*one <= MORE));
        if (*one > MORE) {
            __atomic_store_n(&service->wanted, 1, __ATOMIC_SEQ_CST);
            (void)eventfd_write(service->fd, 1); /* The answer. */
        }
        for (n++; n > 0; n--) {
            struct idem_op *op = idem_queue_reap(queue, 10000);

            assert_non_null(op);
            assert_code(IDEM_ENOTFOUND, idem_op_code(op));
            idem_op_destroy(op);
        }
        idem_queue_destroy(queue);
        idem_close(&service->remote.base);
    }
}

/* The store is closed before the service answers: the service may still apply a write
 * that it was sent. */
TEST(remote, isUnsureOfWhatItSentBeforeItsEnd)
{
    int writes;

    for (writes = 0; writes < 2; writes++) {
        struct service *service = open_for(0, 60000);
        struct idem_queue *queue;
        struct idem_op *op;

        service->silent = true;
        service->writes = writes;
        assert_ok(idem_queue_create(&service->remote.base, &queue, &why));
        op = submit(queue, "1");
        assert_null(idem_queue_reap(queue, 0));
        idem_close(&service->remote.base);
        assert_ptr_equal(idem_queue_reap(queue, 0), op);
        assert_code(writes ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE,
                    idem_op_code(op));
        idem_op_destroy(op);
        idem_queue_destroy(queue);
    }
}

/* What an owner says of its attempt is asked for beside as many ops as may be started,
 * all of which pause; and it is taken where no other is. */
TEST(remote, hearsOwnersBesideAllThatPauses)
{
    struct service *service = open_for(0, 600000);
    struct idem_queue *queue;
    struct idem_op *op;
    bool full = false;

    service->pause_ms = 600000;
    assert_ok(idem_queue_create(&service->remote.base, &queue, &why));
    while (!full) {
        assert_ok(idem_op_get(idem_str(""), idem_str("2"), &op, &why));
        if (idem_queue_submit(queue, op, &why) != 0) {
            idem_op_destroy(op);
            assert_null(idem_queue_reap(queue, 0));
            full = service->remote.leader.running_len == STARTED;
        }
    }
    assert_non_null(service->remote.leader.pending.first);
    assert_ok(idem_op_get(idem_str(""), idem_str("1"), &op, &why));
    op->verb = IDEM_OP_END;
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_ptr_equal(idem_queue_reap(queue, 10000), op);
    assert_code(IDEM_ENOTFOUND, idem_op_code(op));
    idem_op_destroy(op);
    idem_queue_destroy(queue);
    idem_close(&service->remote.base);
}
