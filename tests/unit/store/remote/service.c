/* A service that is a few lines. */
#include "service.h"

#include "base/heap.h"
#include "base/host.h"
#include "test.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* The key of an op says how often it is asked for: "2" pauses once. */
static unsigned wanted(const struct idem_op *op)
{
    return (unsigned)(*(const char *)op->key.base - '0');
}

/* Runs the op on the records: its answer is that of now, whenever it arrives. */
static void run_op(struct idem_queue *records, struct idem_op *op)
{
    struct idem_op copy = *op;

    copy.state = IDEM_OP_IDLE;
    assert_ok(idem_queue_submit(records, &copy, &why));
    assert_ptr_equal(idem_queue_reap(records, 0), &copy);
    copy.store = op->store;
    copy.queue = op->queue;
    copy.queue_next = op->queue_next;
    copy.queue_prev = op->queue_prev;
    copy.state = op->state;
    *op = copy;
}

static idem__state ask(struct idem__flight *base)
{
    struct idem_queue *records = ((struct flight *)base)->service->records;

    if (records != NULL) {
        run_op(records, base->op);
    }
    return IDEM__STATE_SEND;
}

/* A begin may need no request. */
static idem__state start(struct idem__flight *base)
{
    return base->op->verb == IDEM_OP_BEGIN &&
                   idem__flight_first(base, false) == IDEM__STATE_DONE
               ? IDEM__STATE_DONE
               : IDEM__STATE_LOOK;
}

static idem__state answered(struct idem__flight *base)
{
    struct flight *flight = (struct flight *)base;

    if (base->heard && flight->service->records != NULL) {
        return IDEM__STATE_DONE;
    }
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
    .start = start,
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
    return idem__remote_now(&remote->base.options.host, /* clock= */ NULL, 0,
                            ret_now);
}

static void send(struct idem__flight *base, int64_t deadline_ms)
{
    struct flight *flight = (struct flight *)base;
    struct service *service = flight->service;

    flight->deadline_ms = deadline_ms;
    flight->aborted = false;
    flight->held = service->holds;
    service->requests++;
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

    while (*at != NULL && (service->silent || (*at)->held) && !(*at)->aborted &&
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

    if (place != NULL) {
        remote->cache_ms = strtoll(place, NULL, 10);
    }
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
    .sending_max = SERVICE_PLACES,
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

struct service *open_service(const char *cache,
                             const struct idem_open_options *options)
{
    struct idem_store *base;

    assert_ok(idem__remote_open(&service_ops, cache, options, &base, &why));
    return (struct service *)base;
}
