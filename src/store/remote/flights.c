/* Starts the ops of a remote store as flights, which send requests, pause and are
 * answered; remote.h draws it. Its leader calls these functions.
 *
 * Up to sending_max flights send at once. Free places go alternately to pending ops and
 * to flights whose pause is over, each in their order. So a hot key, whose flights are
 * throttled and pause most of the time, takes no places from other keys, and a stream of
 * new ops does not starve paused flights, which count as queued
 * (idem__flights_has_room()). The limits on queued and started ops do not hold for ends
 * and renewals: finished work has to be recorded before its lease ends. */
#include "store/remote/flights.h"

#include "base/host.h"
#include "base/list.h"
#include "base/bytes.h"
#include "contract/parts.h"
#include "core/error.h"
#include "store/shared/replays.h"

enum {
    STARTED_MAX = 4096, /* Paused ones included; some KB each. */
    SPARE_MAX = 16,
    TRY_MIN_MS = 1000,
};

/* ---- Flights ---- */

static struct idem__flight *take_flight(struct idem__remote *remote)
{
    struct idem__flight *flight = remote->spare;

    if (flight == NULL) {
        return remote->ops->create(remote);
    }
    remote->spare = flight->link;
    return flight;
}

static void spare_flight(struct idem__remote *remote,
                         struct idem__flight *flight)
{
    bool keep = remote->ops->reset(flight);
    struct idem__flight *at;
    size_t n = 0;

    for (at = remote->spare; at != NULL; at = at->link) {
        n++;
    }
    if (n >= SPARE_MAX || !keep) {
        remote->ops->destroy(flight);
    } else {
        flight->link = remote->spare;
        remote->spare = flight;
    }
}

/* Answers @op. A claim whose caller stopped waiting goes back to the queue as a release,
 * or the claim would block the key until its lease ends. */
static void give_back(struct idem__remote *remote, struct idem_op *op)
{
    bool changed = op->error.code == 0 && op->changed;

    /* Count the op first: once it is answered, its caller may free it. */
    (void)pthread_mutex_lock(&remote->leader.mutex);
    idem__tally_op(&remote->tally, op);
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    /* The change is durable by now, so a waiter that reads the record finds it. */
    if (changed) {
        idem__store_changed(&remote->base, op->id);
    }
    /* Test and mark in one step: the caller cannot leave in between. */
    if (idem__verb_unwanted(op)) {
        (void)pthread_mutex_lock(&remote->leader.mutex);
        idem__pending_append(&remote->leader.pending, op);
        (void)pthread_mutex_unlock(&remote->leader.mutex);
    } else {
        idem__op_answer(op);
    }
}

/* When a flight has to end: a little before its caller stops waiting, because the
 * flight knows whether a write may have been applied, and the caller does not. An op
 * whose caller has gone may take the same time once more. */
static int64_t end_of(const struct idem__flight *flight)
{
    const struct idem_op *op = flight->op;
    int64_t timeout_ms = op->store->options.timeout_ms;
    int64_t early_ms = timeout_ms / 10 < 200 ? timeout_ms / 10 : 200;

    /* The caller has gone, but the claim has to be found and released, or it blocks the
     * key for a whole lease. */
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_DETACHED) {
        return idem__time_add(op->deadline_ms, timeout_ms);
    }
    return op->deadline_ms - early_ms;
}

/* A request may take a third of the op's time, so that two more fit if it is lost. A
 * large request may take all of it. */
static int64_t end_of_try(const struct idem__flight *flight)
{
    int64_t end_ms = end_of(flight);
    int64_t try_ms = flight->op->store->options.timeout_ms / 3;

    if (flight->large) {
        return end_ms;
    }
    try_ms = try_ms < TRY_MIN_MS ? TRY_MIN_MS : try_ms;
    try_ms = idem__time_add(idem__mono_ms(), try_ms);
    return try_ms < end_ms ? try_ms : end_ms;
}

/* Ends a flight whose time is over. The last request reports only its own share of that
 * time, so report the whole. */
static void give_up(struct idem__remote *remote, struct idem__flight *flight)
{
    int64_t timeout_ms = remote->base.options.timeout_ms;
    int64_t left_ms = flight->op->deadline_ms - idem__mono_ms();
    int64_t ms = timeout_ms - left_ms;

    if (flight->timed_out || flight->op->error.code == 0) {
        (void)idem__error(&flight->op->error, IDEM_EUNAVAILABLE,
                          "timed out after %lld.%lld s waiting for %s "
                          "(%.100s)",
                          (long long)ms / 1000, (long long)ms % 1000 / 100,
                          remote->ops->service, remote->endpoint);
    }
    idem__flight_give_up(flight);
}

static void remove_running(struct idem__remote *remote,
                           struct idem__flight *flight)
{
    /* Callers that look for the next leader walk this list under the mutex
     * (call_running()). */
    (void)pthread_mutex_lock(&remote->leader.mutex);
    if (flight->link_back == NULL) {
        remote->running = flight->link;
    } else {
        flight->link_back->link = flight->link;
    }
    if (flight->link != NULL) {
        flight->link->link_back = flight->link_back;
    }
    remote->leader.running_len--;
    (void)pthread_mutex_unlock(&remote->leader.mutex);
}

/* Takes @flight off the list of due flights, if it is there. */
static void leave_turns(struct idem__remote *remote,
                        struct idem__flight *flight)
{
    if (flight->turn.flight != NULL) {
        IDEM__LIST_REMOVE(&remote->turns, &flight->turn);
        flight->turn.flight = NULL;
    }
}

/* Makes check_clock() visit @flight at @due_ms. */
static void set_due(struct idem__remote *remote, struct idem__flight *flight,
                    int64_t due_ms)
{
    flight->due_ms = due_ms;
    remote->due_ms = due_ms < remote->due_ms ? due_ms : remote->due_ms;
}

static bool is_of_operator(const struct idem_op *op)
{
    return op->verb == IDEM_OP_RESOLVE || op->verb == IDEM_OP_IMPORT ||
           op->verb == IDEM_OP_PURGE || op->verb == IDEM_OP_MOVE;
}

/* The generation of the record that @flight has read; 0 if another answer about its key
 * came since the flight started: the service may have read the record before that. */
static uint64_t generation_read(const struct idem__remote *remote,
                                const struct idem__flight *flight)
{
    uint32_t told = idem__replays_told(remote->replays, flight->op->id);

    return told == flight->told ? flight->generation : 0;
}

/* Keeps the record of a replay; its time counts from before the request. Any other answer
 * about a key drops the record of that key, and an operator's op drops all records; also
 * those that other flights have read but not kept yet. */
static void note_answer(struct idem__remote *remote,
                        const struct idem__flight *flight)
{
    const struct idem_op *op = flight->op;

    if (flight->replays == NULL) {
        return;
    }
    if (op->verb == IDEM_OP_BEGIN && op->error.code == 0 &&
        op->verdict == IDEM_REPLAY) {
        idem__replays_keep(remote->replays, op, generation_read(remote, flight),
                           remote->generation,
                           idem__time_add(op->asked_boot_ms, remote->cache_ms));
    } else if (is_of_operator(op)) {
        remote->generation += 2;
    } else {
        idem__replays_forget(remote->replays, op->id);
    }
}

/* Sends, pauses or answers, as flight->next says. */
static void go_on(struct idem__remote *remote, struct idem__flight *flight)
{
    struct idem_op *op = flight->op;
    int64_t due_ms;

    flight->due_ms = IDEM_NEVER;
    switch (flight->next) {
    case IDEM__FLIGHT_SEND:
        remote->sending_len++;
        remote->ops->send(flight, end_of_try(flight));
        return;
    case IDEM__FLIGHT_PAUSE:
        due_ms = idem__time_add(idem__mono_ms(), flight->pause_ms);
        set_due(remote, flight,
                due_ms < end_of(flight) ? due_ms : end_of(flight));
        return;
    case IDEM__FLIGHT_DONE:
        /* The op goes last: once it is answered, its caller may free it. */
        remove_running(remote, flight);
        note_answer(remote, flight);
        spare_flight(remote, flight);
        give_back(remote, op);
        return;
    }
}

static void start(struct idem__remote *remote, struct idem_op *op)
{
    struct idem__flight *flight = take_flight(remote);
    struct idem_now now;

    if (flight == NULL) {
        (void)idem__op_fail(op, IDEM_ENOMEM, "%s",
                            idem_error_text(IDEM_ENOMEM));
        give_back(remote, op);
        return;
    }
    flight->op = op;
    flight->replays = remote->replays;
    flight->generation = remote->generation;
    if (remote->replays != NULL) {
        flight->told = idem__replays_told(remote->replays, op->id);
    }
    (void)pthread_mutex_lock(&remote->leader.mutex);
    flight->link = remote->running;
    flight->link_back = NULL;
    if (flight->link != NULL) {
        flight->link->link_back = flight;
    }
    remote->running = flight;
    remote->leader.running_len++;
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    /* No decision can be made without a time. */
    if (remote->ops->now(remote, &now) != 0) {
        idem__flight_no_clock(flight);
    } else {
        idem__flight_start(flight, &now);
    }
    go_on(remote, flight);
}

static uint64_t draw(const struct idem__remote *remote)
{
    const struct idem_host *host = &remote->base.options.host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    return random;
}

/* True if memory probably answers @op, so that no request is sent. */
static bool is_in_memory(const struct idem__remote *remote,
                         const struct idem_op *op)
{
    return remote->replays != NULL && op->verb == IDEM_OP_BEGIN &&
           idem__replays_has(remote->replays, op->id);
}

/* False: @op was refused because the service has not answered for a while. Ends and
 * renewals are always tried: no other caller can do them. A replay from memory must not
 * be the breaker's try, which has to send a request. */
static bool may_ask(struct idem__remote *remote, struct idem_op *op)
{
    char span[IDEM__SPAN_MAX];
    struct idem__breaker *breaker = &remote->breaker;

    if (!breaker->open || idem__op_is_of_owner(op) ||
        is_in_memory(remote, op) ||
        idem__breaker_admits(breaker, idem__mono_ms(), draw(remote))) {
        return true;
    }
    idem__span(idem__mono_ms() - breaker->first_ms, span);
    (void)idem__op_fail(
        op, IDEM_EUNAVAILABLE,
        "%s (%.100s) has not answered for %s; idem retries every second or two",
        remote->ops->service, remote->endpoint, span);
    return false;
}

/* Answers an op that needs no request, or may not make one. True: @op was answered. */
static bool answer_at_once(struct idem__remote *remote, struct idem_op *op)
{
    /* These are the counts of this handle: the service keeps none. */
    if (op->verb == IDEM_OP_COUNT) {
        (void)pthread_mutex_lock(&remote->leader.mutex);
        idem__tally_answer(&remote->tally, op);
        (void)pthread_mutex_unlock(&remote->leader.mutex);
    } else if ((remote->base.options.flags & IDEM_OPEN_READONLY) != 0 &&
               !remote->ops->reads(op)) {
        (void)idem__op_fail(op, IDEM_EDENIED, "the store was opened read-only");
    } else if (may_ask(remote, op)) {
        return false;
    }
    idem__op_answer(op);
    return true;
}

static void tell_breaker(struct idem__remote *remote, bool heard)
{
    if (heard) {
        idem__breaker_heard(&remote->breaker);
    } else {
        idem__breaker_unheard(&remote->breaker, idem__mono_ms(), draw(remote));
    }
}

/* With the mutex held: the op that has been pending longest of those that may start, or
 * NULL. While too many flights have started, only ends and renewals may: they do not wait
 * for claims that pause. */
static struct idem_op *next_pending(const struct idem__remote *remote)
{
    struct idem_op *op = remote->leader.pending.first;

    while (op != NULL && remote->leader.running_len >= STARTED_MAX &&
           !idem__op_is_of_owner(op)) {
        op = op->next;
    }
    return op;
}

/* Starts the next op that is pending. False: none can be started. */
static bool admit_pending(struct idem__remote *remote)
{
    struct idem_op *op;

    (void)pthread_mutex_lock(&remote->leader.mutex);
    /* The leader is awake and looks for pending ops itself, so no caller has to wake
     * it. */
    remote->leader.asleep = false;
    op = next_pending(remote);
    if (op != NULL) {
        idem__pending_run(&remote->leader.pending, op);
    }
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    if (op != NULL && !answer_at_once(remote, op)) {
        start(remote, op);
    }
    return op != NULL;
}

/* Continues the flight that has been due longest. False: none is due. */
static bool admit_due(struct idem__remote *remote)
{
    struct idem__flight *flight;
    struct idem_now now;

    if (remote->turns.first == NULL) {
        return false;
    }
    flight = remote->turns.first->flight;
    leave_turns(remote, flight);
    if (remote->ops->now(remote, &now) != 0) {
        idem__flight_no_clock(flight);
    } else {
        idem__flight_resume(flight, &now);
    }
    go_on(remote, flight);
    return true;
}

/* Fills the free places. An op that memory answers takes none, so their number is bounded:
 * callers of a hot key must not keep the leader from the answers of the service. */
static void admit(struct idem__remote *remote)
{
    bool more = true;
    size_t n;

    for (n = 0; more && n < STARTED_MAX &&
                remote->sending_len < remote->ops->sending_max;
         n++) {
        /* Paused flights and new ops take turns, so that neither starve. */
        remote->due_next = !remote->due_next;
        more = remote->due_next ? admit_due(remote) || admit_pending(remote)
                                : admit_pending(remote) || admit_due(remote);
    }
}

static void take_answers(struct idem__remote *remote)
{
    struct idem__flight *flight;

    remote->ops->work(remote);
    while ((flight = remote->ops->reap(remote)) != NULL) {
        struct idem_now now;

        remote->sending_len--;
        tell_breaker(remote, flight->heard);
        if (remote->ops->now(remote, &now) != 0) {
            idem__flight_no_clock(flight);
        } else {
            idem__flight_answered(flight, &now);
        }
        /* Check the time only after the answer was read: it may have ended the op, or
         * shown what became of its write. */
        if (flight->next != IDEM__FLIGHT_DONE &&
            idem__mono_ms() >= end_of(flight)) {
            give_up(remote, flight);
        }
        go_on(remote, flight);
    }
}

/* Ends paused flights whose time is over, and lists those as due whose pause is over. It
 * visits them once a millisecond at most, because there may be thousands. */
static void check_clock(struct idem__remote *remote)
{
    int64_t now_ms = idem__mono_ms();
    struct idem__flight *flight = remote->running;

    if (now_ms < remote->due_ms) {
        return;
    }
    remote->due_ms = IDEM_NEVER;
    while (flight != NULL) {
        struct idem__flight *next = flight->link;

        if (flight->next == IDEM__FLIGHT_PAUSE && now_ms < flight->due_ms) {
            set_due(remote, flight, flight->due_ms);
        } else if (flight->next == IDEM__FLIGHT_PAUSE &&
                   now_ms >= end_of(flight)) {
            /* The op's time is over. No request of it is in flight, so nothing new can be
             * learned. */
            leave_turns(remote, flight);
            give_up(remote, flight);
            go_on(remote, flight);
        } else if (flight->next == IDEM__FLIGHT_PAUSE) {
            /* The pause is over: the flight waits for a free place, until its own end at
             * most. */
            if (flight->turn.flight == NULL) {
                flight->turn.flight = flight;
                IDEM__LIST_APPEND(&remote->turns, &flight->turn);
            }
            set_due(remote, flight, end_of(flight));
        }
        flight = next;
    }
}

int64_t idem__flights_round(struct idem__remote *remote)
{
    /* Start what is pending, take the answers, which free places, and fill those places. */
    admit(remote);
    take_answers(remote);
    check_clock(remote);
    admit(remote);
    /* The leader may leave after this: send now, so that the service works while the next
     * leader wakes up. */
    if (remote->ops->push != NULL) {
        remote->ops->push(remote);
    }
    return remote->due_ms;
}

bool idem__flights_may_start(const struct idem__remote *remote)
{
    return remote->sending_len < remote->ops->sending_max &&
           next_pending(remote) != NULL;
}

bool idem__flights_has_room(const struct idem__remote *remote,
                            const struct idem_op *op)
{
    size_t started = remote->leader.running_len;
    size_t most = remote->ops->sending_max;
    size_t paused = started > most ? started - most : 0;

    return idem__op_is_of_owner(op) ||
           remote->leader.pending.len + paused < remote->base.options.queue_max;
}

/* ---- Time ---- */

int idem__remote_now(const struct idem_host *host,
                     const struct idem__learned_clock *clock,
                     int64_t unheard_err_ms, struct idem_now *ret_now)
{
    enum {
        MARGIN_MS = 2000,
    };
    struct idem_clock_reading reading;

    memset(ret_now, 0, sizeof(*ret_now));
    if (host->clock(host->ctx, &reading) != 0) {
        return IDEM_EUNAVAILABLE;
    }
    ret_now->boot_ms = reading.boot_ms;
    memcpy(ret_now->boot_id, reading.boot_id, sizeof(reading.boot_id));
    ret_now->margin_ms = MARGIN_MS;
    ret_now->store_ms = reading.wall_ms;
    if (clock == NULL ||
        idem__learned_clock_now(clock, reading.boot_ms, &ret_now->store_ms,
                                &ret_now->store_err_ms)) {
        return 0;
    }
    ret_now->store_err_ms = unheard_err_ms;
    /* Until the service's first answer the host's wall clock is used, if the caller bounds
     * its error. */
    return unheard_err_ms > 0 ? 0 : IDEM_EUNAVAILABLE;
}

/* ---- The end ---- */

void idem__flights_drop(struct idem__remote *remote)
{
    (void)pthread_mutex_lock(&remote->leader.mutex);
    idem__pending_drop(&remote->leader.pending);
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    while (remote->running != NULL) {
        struct idem__flight *flight = remote->running;

        if (flight->next == IDEM__FLIGHT_SEND) {
            remote->ops->abort(flight);
            /* The service may still apply the request, and its answer is not read. */
            if (flight->ops->may_have_written(flight)) {
                flight->ambiguous = true;
            }
        }
        idem__flight_give_up(flight);
        remote->running = flight->link;
        idem__op_answer(flight->op);
        /* Take the aborted request back from the service: it must not outlive its
         * flight. */
        while (remote->ops->reap(remote) != NULL) {
        }
        remote->ops->destroy(flight);
    }
    while (remote->spare != NULL) {
        struct idem__flight *flight = remote->spare;

        remote->spare = flight->link;
        remote->ops->destroy(flight);
    }
}
