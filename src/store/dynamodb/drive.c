/* Running the tasks of a store: whoever drives and finds no leader becomes it,
 * sends what is queued, waits for answers on behalf of all, and hands leadership
 * on when its own answer is there. Everything that is queued is in flight
 * together, up to the number of connections. */
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/queue.h"
#include "store/dynamodb/store.h"
#include "store/shared/verbs.h"

#include <assert.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    RUNNING_MAX = 64,
    SPARE_MAX = 16,
    TRY_MIN_MS = 1000,
    FIRST_ANSWER = 4096,
    LARGE_BODY = 256 * 1024,
    CLOSE_MS = 1000,
};

/* ---- The queue ---- */

static void append(struct idem__dynamodb_store *store, struct idem_op *op)
{
    op->next = NULL;
    op->prev = store->pending_last;
    if (op->prev == NULL) {
        store->pending = op;
    } else {
        op->prev->next = op;
    }
    store->pending_last = op;
    store->pending_len++;
}

static void unlink_op(struct idem__dynamodb_store *store, struct idem_op *op)
{
    if (op->prev == NULL) {
        store->pending = op->next;
    } else {
        op->prev->next = op->next;
    }
    if (op->next == NULL) {
        store->pending_last = op->prev;
    } else {
        op->next->prev = op->prev;
    }
    op->next = NULL;
    op->prev = NULL;
    store->pending_len--;
}

int idem__drive_submit(struct idem_store *base, struct idem_op *op)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    struct idem_queue *queue = op->queue;
    bool led;

    (void)pthread_mutex_lock(&store->mutex);
    if (store->pending_len == base->options.queue_max) {
        (void)pthread_mutex_unlock(&store->mutex);
        return IDEM_EUNAVAILABLE;
    }
    append(store, op);
    led = store->led;
    if (store->threaded) {
        (void)pthread_cond_signal(&store->wake);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    if (led) {
        idem__aws_wake(store->client);
    } else if (!store->threaded) {
        idem_queue_poke(queue);
    }
    return 0;
}

enum idem_cancel idem__drive_cancel(struct idem_store *base, struct idem_op *op)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    enum idem_cancel how;

    (void)pthread_mutex_lock(&store->mutex);
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_PENDING) {
        unlink_op(store, op);
        how = IDEM_CANCEL_TAKEN_BACK;
    } else {
        how = idem_op_detach(op);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return how;
}

/* ---- Tasks ---- */

int idem__dynamodb_now(struct idem__dynamodb_store *store,
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
    if (idem__verb_unwanted(op)) {
        (void)pthread_mutex_lock(&store->mutex);
        append(store, op);
        (void)pthread_mutex_unlock(&store->mutex);
    } else {
        idem_op_answer(op);
    }
}

/* When a task has to have an end: a little before whoever waits for its op stops
 * waiting, so that it is the task that says what is known. What nobody waits for
 * may take that long again. */
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

/* Does what the task asks for. */
static void go_on(struct idem__dynamodb_store *store, struct idem__task *task)
{
    struct idem_op *op = task->op;

    task->due_ms = IDEM_NEVER;
    switch (task->next) {
    case IDEM__TASK_SEND:
        task->request.deadline_ms = end_of_try(task);
        idem__aws_submit(store->client, &task->request);
        return;
    case IDEM__TASK_PAUSE:
        task->due_ms = idem__time_add(idem__mono_ms(), task->pause_ms);
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
    if (idem__dynamodb_now(store, &now) != 0) {
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
    struct idem__breaker *breaker = &store->breaker;

    if (!breaker->open || is_of_owner(op) ||
        idem__breaker_admits(breaker, idem__mono_ms(), draw(store))) {
        return true;
    }
    (void)
        idem_op_fail(op, IDEM_EUNAVAILABLE,
                     "DynamoDB has not answered for %lld s; it is asked again "
                     "every second or two",
                     (long long)(idem__mono_ms() - breaker->first_ms) / 1000);
    return false;
}

/* What needs no request. True: @op was answered. */
static bool answer_at_once(struct idem__dynamodb_store *store,
                           struct idem_op *op)
{
    bool reads = op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST;

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

/* Takes ops off the queue as long as there is room. */
static void admit(struct idem__dynamodb_store *store)
{
    for (;;) {
        struct idem_op *op;

        (void)pthread_mutex_lock(&store->mutex);
        op = store->running_len < RUNNING_MAX ? store->pending : NULL;
        if (op != NULL) {
            unlink_op(store, op);
            if (op->queue != NULL) {
                idem_op_run(op);
            }
        }
        (void)pthread_mutex_unlock(&store->mutex);
        if (op == NULL) {
            return;
        }
        if (!answer_at_once(store, op)) {
            start(store, op);
        }
    }
}

static void take_answers(struct idem__dynamodb_store *store)
{
    struct idem__aws_request *request;

    idem__aws_work(store->client);
    while ((request = idem__aws_reap(store->client)) != NULL) {
        struct idem__task *task = request->user;
        struct idem_now now;

        store->answered =
            store->answered || request->outcome == IDEM__AWS_ANSWERED;
        tell_breaker(store, request);
        if (idem__dynamodb_now(store, &now) != 0) {
            idem__task_no_clock(task);
        } else {
            idem__task_answered(task, &now);
        }
        if (task->next != IDEM__TASK_DONE && idem__mono_ms() >= end_of(task)) {
            idem__task_give_up(task);
        }
        go_on(store, task);
    }
}

/* Goes on with those whose pause is over, ends those whose time is; says when the
 * next of them is due. */
static int64_t look_at_clock(struct idem__dynamodb_store *store)
{
    int64_t now_ms = idem__mono_ms();
    int64_t due_ms = IDEM_NEVER;
    struct idem__task *task = store->running;

    while (task != NULL) {
        struct idem__task *next = task->link;
        int64_t end_ms = end_of(task);
        struct idem_now now;

        if (task->next == IDEM__TASK_PAUSE &&
            (now_ms >= end_ms || now_ms >= task->due_ms)) {
            if (now_ms >= end_ms) {
                idem__task_give_up(task);
            } else if (idem__dynamodb_now(store, &now) != 0) {
                idem__task_no_clock(task);
            } else {
                idem__task_resume(task, &now);
            }
            go_on(store, task);
        } else if (task->next == IDEM__TASK_PAUSE) {
            due_ms = task->due_ms < due_ms ? task->due_ms : due_ms;
            due_ms = end_ms < due_ms ? end_ms : due_ms;
        }
        task = next;
    }
    return due_ms;
}

/* ---- In a foreign event loop ---- */

/* Lets the descriptor become readable when it is time. */
static void set_timer(struct idem__dynamodb_store *store, int64_t due_ms)
{
    int64_t aws_ms = idem__aws_due_ms(store->client);
    struct itimerspec at = {.it_value = {0, 0}};

    if (store->timer < 0) {
        return;
    }
    due_ms = aws_ms < due_ms ? aws_ms : due_ms;
    if (due_ms != IDEM_NEVER) {
        due_ms = due_ms < 1 ? 1 : due_ms;
        at.it_value.tv_sec = (time_t)(due_ms / 1000);
        at.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(store->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static int make_watch(struct idem__dynamodb_store *store)
{
    struct epoll_event event = {.events = EPOLLIN};

    store->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    store->watch = epoll_create1(EPOLL_CLOEXEC);
    if (store->timer >= 0 && store->watch >= 0 &&
        epoll_ctl(store->watch, EPOLL_CTL_ADD, store->timer, &event) == 0 &&
        epoll_ctl(store->watch, EPOLL_CTL_ADD, idem__aws_fd(store->client),
                  &event) == 0) {
        return 0;
    }
    if (store->timer >= 0) {
        (void)close(store->timer);
    }
    if (store->watch >= 0) {
        (void)close(store->watch);
    }
    store->timer = -1;
    store->watch = -1;
    return IDEM_EUNAVAILABLE;
}

int idem__drive_fd(struct idem_store *base)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    int rc = 0;

    (void)pthread_mutex_lock(&store->mutex);
    if (store->watch < 0) {
        rc = make_watch(store);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return rc == 0 ? store->watch : rc;
}

/* ---- Leading ---- */

/* Everything that can be done without waiting. Says when there is more. */
static int64_t round_of_work(struct idem__dynamodb_store *store)
{
    admit(store);
    take_answers(store);
    admit(store);
    return look_at_clock(store);
}

/* With the mutex held, which is let go meanwhile. Leads until @queue (NULL: none)
 * has an answer, or @deadline_ms. At least one round is done. */
static void lead(struct idem__dynamodb_store *store, struct idem_queue *queue,
                 int64_t deadline_ms)
{
    int64_t due_ms;

    store->led = true;
    (void)pthread_mutex_unlock(&store->mutex);
    for (;;) {
        bool idle;

        due_ms = round_of_work(store);

        if ((queue != NULL && idem_queue_ready(queue)) ||
            idem__mono_ms() >= deadline_ms) {
            break;
        }
        (void)pthread_mutex_lock(&store->mutex);
        idle = store->running == NULL && store->pending == NULL;
        (void)pthread_mutex_unlock(&store->mutex);
        if (idle) {
            break;
        }
        idem__aws_wait(store->client,
                       due_ms < deadline_ms ? due_ms : deadline_ms);
    }
    (void)pthread_mutex_lock(&store->mutex);
    set_timer(store, due_ms);
    store->led = false;
}

/* @op's queue, if somebody waits there for it. */
static struct idem_queue *queue_of(const struct idem_op *op)
{
    return op->queue == NULL || __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) ==
                                    IDEM_OP_DETACHED
               ? NULL
               : op->queue;
}

/* Wakes a caller that can lead; the descriptor of some queue becomes readable if
 * nobody sleeps. Called with the mutex held. */
static void call_next_leader(struct idem__dynamodb_store *store)
{
    struct idem_queue *first = NULL;
    struct idem_queue *queue;
    struct idem__task *task;
    struct idem_op *op;

    for (task = store->running; task != NULL; task = task->link) {
        queue = queue_of(task->op);
        first = first == NULL ? queue : first;
        if (queue != NULL && idem__queue_has_sleeper(queue)) {
            idem_queue_poke(queue);
            return;
        }
    }
    for (op = store->pending; op != NULL; op = op->next) {
        queue = queue_of(op);
        first = first == NULL ? queue : first;
        if (queue != NULL && idem__queue_has_sleeper(queue)) {
            idem_queue_poke(queue);
            return;
        }
    }
    if (first != NULL) {
        idem_queue_poke(first);
    }
}

void idem__drive(struct idem_store *base, struct idem_queue *queue,
                 int64_t deadline_ms)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    bool first = true;

    (void)pthread_mutex_lock(&store->mutex);
    while (!idem_queue_ready(queue)) {
        if (!first && idem__mono_ms() >= deadline_ms) {
            break;
        }
        first = false;
        if (!store->threaded && !store->led) {
            lead(store, queue, deadline_ms);
            continue;
        }
        (void)pthread_mutex_unlock(&store->mutex);
        idem_queue_sleep(queue, deadline_ms);
        (void)pthread_mutex_lock(&store->mutex);
    }
    if (!store->threaded && !store->led) {
        call_next_leader(store);
    }
    (void)pthread_mutex_unlock(&store->mutex);
}

/* ---- The thread, and the end ---- */

static void *lead_always(void *arg)
{
    struct idem__dynamodb_store *store = arg;

    (void)pthread_mutex_lock(&store->mutex);
    while (!store->stopping) {
        if (store->pending != NULL || store->running != NULL) {
            /* A moment at a time, so that it can be told to stop. */
            lead(store, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
        } else {
            (void)pthread_cond_wait(&store->wake, &store->mutex);
        }
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return NULL;
}

int idem__drive_start_thread(struct idem__dynamodb_store *store)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    store->threaded = true;
    rc = pthread_create(&store->thread, NULL, lead_always, store);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    store->threaded = rc == 0;
    return rc == 0 ? 0 : IDEM_ENOMEM;
}

static void stop_thread(struct idem__dynamodb_store *store)
{
    (void)pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    (void)pthread_cond_signal(&store->wake);
    (void)pthread_mutex_unlock(&store->mutex);
    idem__aws_wake(store->client);
    (void)pthread_join(store->thread, NULL);
    store->threaded = false;
}

void idem__drive_stop(struct idem__dynamodb_store *store)
{
    if (store->threaded) {
        stop_thread(store);
    }
    (void)pthread_mutex_lock(&store->mutex);
    if (store->running != NULL || store->pending != NULL) {
        lead(store, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
    }
    while (store->pending != NULL) {
        struct idem_op *op = store->pending;

        assert(op->queue == NULL); /* A claim that nobody gave back. */
        unlink_op(store, op);
        idem_op_destroy(op);
    }
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
