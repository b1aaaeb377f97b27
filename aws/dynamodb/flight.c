/* Tasks as flights of a remote store: one request of the client's for each. */
#include "aws/dynamodb/store.h"
#include "base/heap.h"

enum {
    FIRST_ANSWER = 4096,
    LARGE_BODY = 256 * 1024,
};

struct flight {
    struct idem__flight base;
    struct idem__dynamodb_store *store;
    struct idem__task task;
};

static struct idem__dynamodb_store *store_of(struct idem__remote *remote)
{
    return (struct idem__dynamodb_store *)remote;
}

static struct flight *from_base(struct idem__flight *base)
{
    return (struct flight *)base;
}

/* ---- From one op to the next ---- */

static struct idem__flight *create(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct flight *flight = idem__zalloc(sizeof(*flight));

    if (flight == NULL) {
        return NULL;
    }
    /* Most answers fit: no memory is asked for while one comes in. */
    flight->task.request.answer = idem__alloc(FIRST_ANSWER);
    if (flight->task.request.answer == NULL) {
        idem__free(flight);
        return NULL;
    }
    flight->task.request.answer_cap = FIRST_ANSWER;
    idem__task_init(&flight->task, &store->env);
    flight->task.request.endpoint = &store->endpoint;
    flight->task.request.user = flight;
    flight->store = store;
    return &flight->base;
}

static bool reset(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__task_reset(&flight->task);
    return flight->task.request.answer_cap != 0;
}

static void destroy(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__task_free(&flight->task);
    idem__free(flight);
}

/* ---- Steps ---- */

/* Says what the task does next. */
static void follow(struct flight *flight)
{
    const struct idem__task *task = &flight->task;

    switch (task->next) {
    case IDEM__TASK_SEND:
        flight->base.next = IDEM__FLIGHT_SEND;
        flight->base.large = task->request.body.len > LARGE_BODY;
        return;
    case IDEM__TASK_PAUSE:
        flight->base.next = IDEM__FLIGHT_PAUSE;
        flight->base.pause_ms = task->pause_ms;
        return;
    case IDEM__TASK_DONE:
        flight->base.next = IDEM__FLIGHT_DONE;
        return;
    }
}

static void start(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__task_start(&flight->task, base->op, now);
    follow(flight);
}

static void resume(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__task_resume(&flight->task, now);
    follow(flight);
}

static void answered(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__task_answered(&flight->task, now);
    follow(flight);
}

static void no_clock(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    flight->task.op = base->op; /* It may not have been started. */
    idem__task_no_clock(&flight->task);
    follow(flight);
}

static void give_up(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__task_give_up(&flight->task);
    follow(flight);
}

/* ---- Time ---- */

static int read_now(struct idem__remote *remote, struct idem_now *ret_now)
{
    enum {
        MARGIN_MS = 2000,
        /* Before the first answer: a clock that is kept right. */
        GUESS_ERR_MS = 2000,
        /* The service accepts no signature that is further off. */
        SIGNED_ERR_MS = 15 * 60 * 1000,
    };
    struct idem__dynamodb_store *store = store_of(remote);
    const struct idem_host *host = &remote->base.options.host;
    struct idem_clock_reading reading;

    memset(ret_now, 0, sizeof(*ret_now));
    if (host->clock(host->ctx, &reading) != 0) {
        return IDEM_EUNAVAILABLE;
    }
    ret_now->boot_ms = reading.boot_ms;
    memcpy(ret_now->boot_id, reading.boot_id, sizeof(reading.boot_id));
    ret_now->margin_ms = MARGIN_MS;
    ret_now->store_ms = reading.wall_ms;
    if (!store->place.host_clock &&
        !idem__learned_clock_now(idem__aws_client_clock(store->client),
                                 reading.boot_ms, &ret_now->store_ms,
                                 &ret_now->store_err_ms)) {
        ret_now->store_err_ms = store->answered ? SIGNED_ERR_MS : GUESS_ERR_MS;
    }
    return 0;
}

/* ---- Requests ---- */

static void send(struct idem__flight *base, int64_t deadline_ms)
{
    struct flight *flight = from_base(base);

    flight->task.request.deadline_ms = deadline_ms;
    idem__aws_submit(flight->store->client, &flight->task.request);
}

static void abort_request(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__aws_abort(flight->store->client, &flight->task.request);
}

static void work(struct idem__remote *remote)
{
    idem__aws_work(store_of(remote)->client);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem__aws_request *request = idem__aws_reap(store->client);
    struct flight *flight;

    if (request == NULL) {
        return NULL;
    }
    flight = request->user;
    store->answered = store->answered || request->outcome == IDEM__AWS_ANSWERED;
    flight->base.heard =
        request->outcome == IDEM__AWS_ANSWERED && request->status < 500;
    flight->base.timed_out = request->timed_out;
    return &flight->base;
}

static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    idem__aws_wait(store_of(remote)->client, deadline_ms);
}

static void wake(struct idem__remote *remote)
{
    idem__aws_wake(store_of(remote)->client);
}

static int fd(struct idem__remote *remote)
{
    return idem__aws_fd(store_of(remote)->client);
}

static int64_t due_ms(struct idem__remote *remote)
{
    return idem__aws_due_ms(store_of(remote)->client);
}

static bool reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST ||
           (op->verb == IDEM_OP_PURGE &&
            op->u.purge.from[IDEM__PURGE_LOOKS] != 0);
}

const struct idem__remote_ops idem__dynamodb_flights = {
    .service = "DynamoDB",
    .sending_max = 64,
    .create = create,
    .reset = reset,
    .destroy = destroy,
    .now = read_now,
    .start = start,
    .resume = resume,
    .answered = answered,
    .no_clock = no_clock,
    .give_up = give_up,
    .send = send,
    .abort = abort_request,
    .work = work,
    .reap = reap,
    .wait = wait_for_work,
    .wake = wake,
    .fd = fd,
    .due_ms = due_ms,
    .reads = reads,
};
