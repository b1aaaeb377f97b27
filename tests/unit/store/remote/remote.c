/* A store on a service that is a few lines here: what the room does without one
 * that it knows. A flight asks until the service has said "done". */
#include "store/remote/remote.h"

#include "base/heap.h"
#include "base/host.h"
#include "test.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    PLACES = 64,    /* That send at once. */
    STARTED = 4096, /* That may be started, and pause. */
    MANY = 200,
};

struct service {
    struct idem__remote remote;
    struct flight *sent; /* Newest first. */
    size_t sent_len;
    size_t sent_most;
    size_t made;    /* Flights. */
    size_t no_time; /* now() fails so many times more. */
    int64_t pause_ms;
    bool silent;   /* It answers nothing. */
    bool writes;   /* What it was sent changes something. */
    bool blocks;   /* It waits until it is woken, as a real one does. */
    size_t wanted; /* Ops for which it is woken while it waits. */
    int waiting;
    int wakes;
    int fd;
};

struct flight {
    struct idem__flight base;
    struct service *service;
    struct flight *next_sent;
    int64_t deadline_ms;
    bool aborted;
    unsigned asked; /* Requests for this op. */
};

/* The key of an op says how often it is asked for: "2" pauses once. */
static unsigned wanted(const struct idem_op *op)
{
    return (unsigned)(*(const char *)op->key.base - '0');
}

static idem__state ask(struct idem__flight *base)
{
    (void)base;
    return IDEM__STATE_SEND;
}

static idem__state answered(struct idem__flight *base)
{
    struct flight *flight = (struct flight *)base;

    if (base->heard && ++flight->asked == wanted(base->op)) {
        return idem__flight_fail_with(base, IDEM_ENOTFOUND, "done");
    }
    base->pause_ms = flight->service->pause_ms;
    base->after_pause = IDEM__STATE_LOOK;
    return IDEM__STATE_PAUSE;
}

static bool may_have_written(const struct idem__flight *base)
{
    return ((const struct flight *)base)->service->writes;
}

static const struct idem__machine_ops machine_ops = {
    .service = "The service",
    .start = ask,
    .enter = ask,
    .answered = answered,
    .may_have_written = may_have_written,
};

static struct idem__flight *create(struct idem__remote *remote)
{
    struct flight *flight = idem__zalloc(sizeof(*flight));

    if (flight != NULL) {
        flight->base.ops = &machine_ops;
        flight->service = (struct service *)remote;
        flight->service->made++;
    }
    return &flight->base;
}

static bool reset(struct idem__flight *base)
{
    ((struct flight *)base)->asked = 0;
    return true;
}

static void destroy(struct idem__flight *base)
{
    ((struct flight *)base)->service->made--;
    idem__free(base);
}

static int now(struct idem__remote *remote, struct idem_now *ret_now)
{
    struct service *service = (struct service *)remote;

    memset(ret_now, 0, sizeof(*ret_now));
    if (service->no_time > 0) {
        service->no_time--;
        return IDEM_EUNAVAILABLE;
    }
    return 0;
}

static void send(struct idem__flight *base, int64_t deadline_ms)
{
    struct flight *flight = (struct flight *)base;
    struct service *service = flight->service;

    flight->deadline_ms = deadline_ms;
    flight->aborted = false;
    flight->next_sent = service->sent;
    service->sent = flight;
    service->sent_len++;
    if (service->sent_len > service->sent_most) {
        service->sent_most = service->sent_len;
    }
}

static void abort_request(struct idem__flight *base)
{
    ((struct flight *)base)->aborted = true;
}

static void work(struct idem__remote *remote)
{
    eventfd_t woken;

    (void)eventfd_read(((struct service *)remote)->fd, &woken);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct service *service = (struct service *)remote;
    struct flight **at = &service->sent;
    struct flight *flight;

    while (*at != NULL && service->silent && !(*at)->aborted &&
           idem__mono_ms() < (*at)->deadline_ms) {
        at = &(*at)->next_sent;
    }
    flight = *at;
    if (flight == NULL) {
        return NULL;
    }
    *at = flight->next_sent;
    service->sent_len--;
    flight->base.heard = !service->silent && !flight->aborted;
    flight->base.timed_out = !flight->base.heard && !flight->aborted;
    return &flight->base;
}

/* A moment is long enough to wait for something that happens elsewhere. */
static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    static const struct timespec moment = {0, 1000000};
    struct service *service = (struct service *)remote;
    struct pollfd woken = {.fd = service->fd, .events = POLLIN};

    if (service->blocks) {
        __atomic_store_n(&service->waiting, 1, __ATOMIC_SEQ_CST);
        (void)poll(&woken, 1, (int)(deadline_ms - idem__mono_ms()));
        __atomic_store_n(&service->waiting, 0, __ATOMIC_SEQ_CST);
        return;
    }
    if ((((struct service *)remote)->sent == NULL ||
         ((struct service *)remote)->silent) &&
        idem__mono_ms() < deadline_ms) {
        (void)nanosleep(&moment, NULL);
    }
}

static void wake(struct idem__remote *remote)
{
    struct service *service = (struct service *)remote;

    (void)__atomic_add_fetch(&service->wakes, 1, __ATOMIC_SEQ_CST);
    (void)eventfd_write(service->fd, 1);
}

static size_t count_wanted(struct idem__remote *remote)
{
    return __atomic_load_n(&((struct service *)remote)->wanted,
                           __ATOMIC_SEQ_CST);
}

static int fd(struct idem__remote *remote)
{
    return ((struct service *)remote)->fd;
}

static int64_t due_ms(struct idem__remote *remote)
{
    return ((struct service *)remote)->sent == NULL ? IDEM_NEVER : 0;
}

static bool reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET;
}

static const struct idem_store_ops store_ops =
    IDEM__REMOTE_STORE_OPS("service");

static int set_up(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    struct service *service = (struct service *)remote;

    (void)place;
    remote->endpoint = "service.example";
    service->pause_ms = 2;
    service->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(service->fd >= 0);
    return idem__store_init(&remote->base, &store_ops, options, error);
}

static void finish(struct idem__remote *remote)
{
    struct service *service = (struct service *)remote;

    assert_int_equal(service->made, 0);
    (void)close(service->fd);
}

static const struct idem__remote_ops service_ops = {
    .service = "The service",
    .size = sizeof(struct service),
    .sending_max = PLACES,
    .set_up = set_up,
    .finish = finish,
    .create = create,
    .reset = reset,
    .destroy = destroy,
    .now = now,
    .send = send,
    .abort = abort_request,
    .work = work,
    .reap = reap,
    .wait = wait_for_work,
    .wanted = count_wanted,
    .wake = wake,
    .fd = fd,
    .due_ms = due_ms,
    .reads = reads,
};

static struct service *open_service(unsigned flags, int64_t timeout_ms)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *base;

    options.flags = flags;
    options.timeout_ms = timeout_ms;
    assert_ok(idem__remote_open(&service_ops, NULL, &options, &base, &why));
    return (struct service *)base;
}

/* So many at once and no more; all of them are answered. */
TEST(remote, boundsWhatIsSent)
{
    struct service *service = open_service(0, 60000);
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
    assert_int_equal(service->sent_most, PLACES);
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
        struct service *service = open_service(IDEM_OPEN_THREAD, 60000);
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
        struct service *service = open_service(0, 60000);
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
    struct service *service = open_service(0, 600000);
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
