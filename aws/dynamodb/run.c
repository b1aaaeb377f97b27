/* The work of a store: ops are taken off its queue and become tasks, which send
 * requests, pause, and are answered.
 *
 *     pending ----> sending <----> paused ----> due
 *       op, queued     |  ^                      |
 *                      |  +----------------------+
 *                      v
 *                   answered
 *
 * Up to SENDING_MAX tasks send at once. Free places go alternately to pending ops and
 * to due tasks, each in their order: a hot key, whose tasks are throttled and pause
 * most of the time, takes no places from other keys, and a stream of new ops does not
 * starve paused tasks. These count as queued (idem__run_is_full()). */
#include "aws/dynamodb/run.h"

#include "base/heap.h"
#include "base/host.h"
#include "base/list.h"
#include "base/span.h"
#include "core/error.h"

#include <idem/store_parts.h>

enum {
    SENDING_MAX = 64,
    STARTED_MAX = 4096, /* Paused ones included; some 12 KB each. */
    SPARE_MAX = 16,
    TRY_MIN_MS = 1000,
    FIRST_ANSWER = 4096,
    LARGE_BODY = 256 * 1024,
};

/* ---- Tasks ---- */

/* The time that a decision may use now. */
static int read_now(struct idem__dynamodb_store *store,
                    struct idem_now *ret_now)
{
    enum {
        MARGIN_MS = 2000,
        /* Before the first answer: a clock that is kept right. */
        GUESS_ERR_MS = 2000,
        /* The service accepts no signature that is further off. */
        SIGNED_ERR_MS = 15 * 60 * 1000,
    };
    const struct idem_host *host = &store->base.options.host;
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
        !idem__aws_clock_now(idem__aws_client_clock(store->client),
                             reading.boot_ms, &ret_now->store_ms,
                             &ret_now->store_err_ms)) {
        ret_now->store_err_ms = store->answered ? SIGNED_ERR_MS : GUESS_ERR_MS;
    }
    return 0;
}

static struct idem__task *take_task(struct idem__dynamodb_store *store)
{
    struct idem__task *task = store->spare;

    if (task != NULL) {
        store->spare = task->link;
        return task;
    }
    task = idem__zalloc(sizeof(*task));
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
    return task;
}

static void spare_task(struct idem__dynamodb_store *store,
                       struct idem__task *task)
{
    struct idem__task *at;
    size_t n = 0;

    idem__task_reset(task);
    for (at = store->spare; at != NULL; at = at->link) {
        n++;
    }
    if (n >= SPARE_MAX || task->request.answer_cap == 0) {
        idem__task_free(task);
        idem__free(task);
    } else {
        task->link = store->spare;
        store->spare = task;
    }
}

static void give_back(struct idem__dynamodb_store *store, struct idem_op *op)
{
    bool changed = op->error.code == 0 && op->changed;

    (void)pthread_mutex_lock(&store->mutex);
    idem__tally_op(&store->tally, op);
    (void)pthread_mutex_unlock(&store->mutex);
    if (changed) {
        idem_store_changed(&store->base, op->id);
    }
    if (idem_verb_unwanted(op)) {
        (void)pthread_mutex_lock(&store->mutex);
        idem_pending_append(&store->pending, op);
        (void)pthread_mutex_unlock(&store->mutex);
    } else {
        idem_op_answer(op);
    }
}

/* When a task has to have an end: a little before whoever waits for its op stops
 * waiting, so that it is the task that says what is known. An op that nobody
 * waits for may take that long again. */
static int64_t end_of(const struct idem__task *task)
{
    const struct idem_op *op = task->op;
    int64_t timeout_ms = op->store->options.timeout_ms;
    int64_t early_ms = timeout_ms / 10 < 200 ? timeout_ms / 10 : 200;

    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_DETACHED) {
        return idem__time_add(op->deadline_ms, timeout_ms);
    }
    return op->deadline_ms - early_ms;
}

static int64_t end_of_try(const struct idem__task *task)
{
    int64_t end_ms = end_of(task);
    int64_t try_ms = task->op->store->options.timeout_ms / 3;

    if (task->request.body.len > LARGE_BODY) {
        return end_ms;
    }
    try_ms = try_ms < TRY_MIN_MS ? TRY_MIN_MS : try_ms;
    try_ms = idem__time_add(idem__mono_ms(), try_ms);
    return try_ms < end_ms ? try_ms : end_ms;
}

/* Its time is over; what the last request said of that is about a part of it. */
static void give_up(struct idem__dynamodb_store *store, struct idem__task *task)
{
    int64_t timeout_ms = store->base.options.timeout_ms;
    int64_t left_ms = task->op->deadline_ms - idem__mono_ms();
    int64_t ms = timeout_ms - left_ms;

    if (task->request.timed_out || task->op->error.code == 0) {
        (void)idem__error(&task->op->error, IDEM_EUNAVAILABLE,
                          "timed out after %lld.%lld s waiting for DynamoDB "
                          "(%.100s)",
                          (long long)ms / 1000, (long long)ms % 1000 / 100,
                          store->endpoint.url);
    }
    idem__task_give_up(task);
}

static void remove_running(struct idem__dynamodb_store *store,
                           struct idem__task *task)
{
    (void)pthread_mutex_lock(&store->mutex);
    if (task->link_back == NULL) {
        store->running = task->link;
    } else {
        task->link_back->link = task->link;
    }
    if (task->link != NULL) {
        task->link->link_back = task->link_back;
    }
    store->running_len--;
    (void)pthread_mutex_unlock(&store->mutex);
}

/* Takes @task off the list of due tasks, if it is there. */
static void leave_turns(struct idem__dynamodb_store *store,
                        struct idem__task *task)
{
    if (task->turn.task != NULL) {
        IDEM__LIST_REMOVE(&store->turns, &task->turn);
        task->turn.task = NULL;
    }
}

/* Has check_clock() visit @task at @due_ms. */
static void set_due(struct idem__dynamodb_store *store, struct idem__task *task,
                    int64_t due_ms)
{
    task->due_ms = due_ms;
    store->due_ms = due_ms < store->due_ms ? due_ms : store->due_ms;
}

/* Does what the task asks for. */
static void go_on(struct idem__dynamodb_store *store, struct idem__task *task)
{
    struct idem_op *op = task->op;
    int64_t due_ms;

    task->due_ms = IDEM_NEVER;
    switch (task->next) {
    case IDEM__TASK_SEND:
        store->sending_len++;
        task->request.deadline_ms = end_of_try(task);
        idem__aws_submit(store->client, &task->request);
        return;
    case IDEM__TASK_PAUSE:
        due_ms = idem__time_add(idem__mono_ms(), task->pause_ms);
        set_due(store, task, due_ms < end_of(task) ? due_ms : end_of(task));
        return;
    case IDEM__TASK_DONE:
        remove_running(store, task);
        spare_task(store, task);
        give_back(store, op);
        return;
    }
}

static void start(struct idem__dynamodb_store *store, struct idem_op *op)
{
    struct idem__task *task = take_task(store);
    struct idem_now now;

    if (task == NULL) {
        (void)idem_op_fail(op, IDEM_ENOMEM, "%s", idem_error_text(IDEM_ENOMEM));
        give_back(store, op);
        return;
    }
    task->op = op;
    (void)pthread_mutex_lock(&store->mutex);
    task->link = store->running;
    task->link_back = NULL;
    if (task->link != NULL) {
        task->link->link_back = task;
    }
    store->running = task;
    store->running_len++;
    (void)pthread_mutex_unlock(&store->mutex);
    if (read_now(store, &now) != 0) {
        idem__task_no_clock(task);
    } else {
        idem__task_start(task, op, &now);
    }
    go_on(store, task);
}

static uint64_t draw(const struct idem__dynamodb_store *store)
{
    const struct idem_host *host = &store->base.options.host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    return random;
}

/* True for what an owner has to say of its attempt. */
static bool is_of_owner(const struct idem_op *op)
{
    return op->verb == IDEM_OP_END || op->verb == IDEM_OP_RENEW ||
           op->verb == IDEM_OP_EXPIRE;
}

/* False: @op was refused, because the service has been away for a while. */
static bool may_ask(struct idem__dynamodb_store *store, struct idem_op *op)
{
    char span[IDEM__SPAN_MAX];
    struct idem__breaker *breaker = &store->breaker;

    if (!breaker->open || is_of_owner(op) ||
        idem__breaker_admits(breaker, idem__mono_ms(), draw(store))) {
        return true;
    }
    idem__span(idem__mono_ms() - breaker->first_ms, span);
    (void)idem_op_fail(op, IDEM_EUNAVAILABLE,
                       "DynamoDB (%.100s) has not answered for %s; it is asked "
                       "again every second or two",
                       store->endpoint.url, span);
    return false;
}

/* An op that needs no request. True: @op was answered. */
static bool answer_at_once(struct idem__dynamodb_store *store,
                           struct idem_op *op)
{
    bool reads =
        op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST ||
        (op->verb == IDEM_OP_PURGE && op->u.purge.from[IDEM__PURGE_LOOKS] != 0);

    if (op->verb == IDEM_OP_COUNT) {
        (void)pthread_mutex_lock(&store->mutex);
        idem__tally_answer(&store->tally, op);
        (void)pthread_mutex_unlock(&store->mutex);
    } else if ((store->base.options.flags & IDEM_OPEN_READONLY) != 0 &&
               !reads) {
        (void)idem_op_fail(op, IDEM_EDENIED, "the store was opened read-only");
    } else if (may_ask(store, op)) {
        return false;
    }
    idem_op_answer(op);
    return true;
}

static void tell_breaker(struct idem__dynamodb_store *store,
                         const struct idem__aws_request *request)
{
    if (request->outcome == IDEM__AWS_ANSWERED && request->status < 500) {
        idem__breaker_heard(&store->breaker);
    } else {
        idem__breaker_unheard(&store->breaker, idem__mono_ms(), draw(store));
    }
}

/* Starts the op that has been pending longest. False: none can be started. */
static bool admit_pending(struct idem__dynamodb_store *store)
{
    struct idem_op *op;

    (void)pthread_mutex_lock(&store->mutex);
    op = store->running_len < STARTED_MAX ? store->pending.first : NULL;
    if (op != NULL) {
        idem_pending_run(&store->pending, op);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    if (op != NULL && !answer_at_once(store, op)) {
        start(store, op);
    }
    return op != NULL;
}

/* Goes on with the task that has been due longest. False: none is. */
static bool admit_due(struct idem__dynamodb_store *store)
{
    struct idem__task *task;
    struct idem_now now;

    if (store->turns.first == NULL) {
        return false;
    }
    task = store->turns.first->task;
    leave_turns(store, task);
    if (read_now(store, &now) != 0) {
        idem__task_no_clock(task);
    } else {
        idem__task_resume(task, &now);
    }
    go_on(store, task);
    return true;
}

/* Fills the free places. */
static void admit(struct idem__dynamodb_store *store)
{
    bool more = true;

    while (more && store->sending_len < SENDING_MAX) {
        store->due_next = !store->due_next;
        more = store->due_next ? admit_due(store) || admit_pending(store)
                               : admit_pending(store) || admit_due(store);
    }
}

static void take_answers(struct idem__dynamodb_store *store)
{
    struct idem__aws_request *request;

    idem__aws_work(store->client);
    while ((request = idem__aws_reap(store->client)) != NULL) {
        struct idem__task *task = request->user;
        struct idem_now now;

        store->sending_len--;
        store->answered =
            store->answered || request->outcome == IDEM__AWS_ANSWERED;
        tell_breaker(store, request);
        if (read_now(store, &now) != 0) {
            idem__task_no_clock(task);
        } else {
            idem__task_answered(task, &now);
        }
        if (task->next != IDEM__TASK_DONE && idem__mono_ms() >= end_of(task)) {
            give_up(store, task);
        }
        go_on(store, task);
    }
}

/* Ends paused tasks whose time is over, and lists those as due whose pause is. Tasks
 * are visited once a millisecond at most: there may be thousands of them. */
static void check_clock(struct idem__dynamodb_store *store)
{
    int64_t now_ms = idem__mono_ms();
    struct idem__task *task = store->running;

    if (now_ms < store->due_ms) {
        return;
    }
    store->due_ms = IDEM_NEVER;
    while (task != NULL) {
        struct idem__task *next = task->link;

        if (task->next == IDEM__TASK_PAUSE && now_ms < task->due_ms) {
            set_due(store, task, task->due_ms);
        } else if (task->next == IDEM__TASK_PAUSE && now_ms >= end_of(task)) {
            leave_turns(store, task);
            give_up(store, task);
            go_on(store, task);
        } else if (task->next == IDEM__TASK_PAUSE) {
            if (task->turn.task == NULL) {
                task->turn.task = task;
                IDEM__LIST_APPEND(&store->turns, &task->turn);
            }
            set_due(store, task, end_of(task));
        }
        task = next;
    }
}

int64_t idem__run_round(struct idem__dynamodb_store *store)
{
    admit(store);
    take_answers(store);
    check_clock(store);
    admit(store);
    return store->due_ms;
}

bool idem__run_is_full(const struct idem__dynamodb_store *store)
{
    size_t started = store->running_len;
    size_t paused = started > SENDING_MAX ? started - SENDING_MAX : 0;

    return store->pending.len + paused >= store->base.options.queue_max;
}

/* ---- The end ---- */

void idem__run_drop(struct idem__dynamodb_store *store)
{
    (void)pthread_mutex_lock(&store->mutex);
    idem_pending_drop(&store->pending);
    (void)pthread_mutex_unlock(&store->mutex);
    while (store->running != NULL) {
        struct idem__task *task = store->running;

        if (task->next == IDEM__TASK_SEND) {
            idem__aws_abort(store->client, &task->request);
        }
        idem__task_give_up(task);
        store->running = task->link;
        idem_op_answer(task->op);
        while (idem__aws_reap(store->client) != NULL) {
        }
        idem__task_free(task);
        idem__free(task);
    }
    while (store->spare != NULL) {
        struct idem__task *task = store->spare;

        store->spare = task->link;
        idem__task_free(task);
        idem__free(task);
    }
}
