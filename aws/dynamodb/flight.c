/* Tasks as flights of a remote store: one request of the client's for each. */
#include "aws/dynamodb/store.h"
#include "base/heap.h"

enum {
    FIRST_ANSWER = 4096,
};

static struct idem__dynamodb_store *store_of(struct idem__remote *remote)
{
    return (struct idem__dynamodb_store *)remote;
}

static struct idem__task *task_of(struct idem__flight *flight)
{
    return (struct idem__task *)flight;
}

static struct idem__aws_client *client_of(const struct idem__flight *flight)
{
    return ((struct idem__dynamodb_store *)flight->op->store)->client;
}

/* ---- From one op to the next ---- */

static struct idem__flight *create(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem__task *task = idem__zalloc(sizeof(*task));

    if (task == NULL) {
        return NULL;
    }
    /* Most answers fit: no memory is asked for while one comes in. */
    task->request.answer = idem__alloc(FIRST_ANSWER);
    if (task->request.answer == NULL) {
        idem__free(task);
        return NULL;
    }
    task->request.answer_cap = FIRST_ANSWER;
    idem__task_init(task, &store->env);
    task->request.endpoint = &store->endpoint;
    task->request.user = task;
    return &task->base;
}

static bool reset(struct idem__flight *flight)
{
    idem__task_reset(task_of(flight));
    return task_of(flight)->request.answer_cap != 0;
}

static void destroy(struct idem__flight *flight)
{
    idem__task_free(task_of(flight));
    idem__free(task_of(flight));
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

static void send(struct idem__flight *flight, int64_t deadline_ms)
{
    task_of(flight)->request.deadline_ms = deadline_ms;
    idem__aws_submit(client_of(flight), &task_of(flight)->request);
}

static void abort_request(struct idem__flight *flight)
{
    idem__aws_abort(client_of(flight), &task_of(flight)->request);
}

static void work(struct idem__remote *remote)
{
    idem__aws_work(store_of(remote)->client);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem__aws_request *request = idem__aws_reap(store->client);
    struct idem__flight *flight;

    if (request == NULL) {
        return NULL;
    }
    flight = request->user;
    store->answered = store->answered || request->outcome == IDEM__AWS_ANSWERED;
    flight->heard =
        request->outcome == IDEM__AWS_ANSWERED && request->status < 500;
    flight->timed_out = request->timed_out;
    return flight;
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
    .start = idem__flight_start,
    .resume = idem__flight_resume,
    .answered = idem__flight_answered,
    .no_clock = idem__flight_no_clock,
    .give_up = idem__flight_give_up,
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
