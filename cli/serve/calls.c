/* Calls on their way to the store and back. */
#include "serve/calls.h"

#include "base/list.h"
#include "core/slice.h"

#include <stdlib.h>

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 1000
};

struct serve_call *serve_call_create(struct serve *serve,
                                     struct serve_conn *conn,
                                     struct idem_slice id)
{
    struct serve_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    if (id.len > 0) {
        memcpy(call->id, id.base, id.len);
        call->id_len = id.len;
    }
    call->serve = serve;
    call->conn = conn;
    call->pause_ms = PAUSE_FIRST_MS;
    call->settle_ms = serve_now_ms(serve) + SERVE_SETTLE_MS;
    IDEM__LIST_PREPEND(&serve->calls, call);
    conn->in_flight++;
    return call;
}

void serve_call_end(struct serve_call *call)
{
    struct serve *serve = call->serve;

    IDEM__LIST_REMOVE(&serve->calls, call);
    call->conn->in_flight--;
    call->conn->waiting -= call->begin.pace.since_ms != 0;
    idem_attempt_destroy(call->found);
    free(call->begin.accept);
    idem_op_destroy(call->op);
    free(call);
}

static void put(struct serve_call *call)
{
    struct idem__buffer *batch = &call->serve->batch;

    call->asked_ms = serve_now_ms(call->serve);
    batch->failed = false;
    idem__buffer_add(batch, &call->op, sizeof(call->op));
    if (batch->failed) {
        serve_call_park(call, call->asked_ms + PAUSE_MAX_MS);
    }
}

void serve_call_submit(struct serve_call *call, struct idem_op *op,
                       void (*answered)(struct serve_call *call))
{
    if (call->op != op) {
        idem_op_destroy(call->op);
        call->op = op;
    }
    call->answered = answered;
    idem_op_set_user(op, call);
    put(call);
}

/* ---- Later --------------------------------------------------------------- */

void serve_call_park(struct serve_call *call, int64_t due_ms)
{
    struct serve *serve = call->serve;

    call->parked = true;
    call->due_ms = due_ms;
    call->next_parked = serve->parked;
    serve->parked = call;
    serve_due(serve, due_ms);
}

void serve_call_retry(struct serve_call *call)
{
    serve_call_park(call, serve_now_ms(call->serve) + call->pause_ms);
    call->pause_ms =
        call->pause_ms * 2 < PAUSE_MAX_MS ? call->pause_ms * 2 : PAUSE_MAX_MS;
}

void serve_calls_wake(struct serve *serve, const uint8_t *id)
{
    struct serve_call *call;

    for (call = serve->parked; call != NULL; call = call->next_parked) {
        if (memcmp(idem_op_id(call->op), id, IDEM_ID_LEN) == 0) {
            call->due_ms = 0;
            serve_due(serve, 0);
        }
    }
}

void serve_calls_due(struct serve *serve, int64_t now_ms)
{
    struct serve_call **at = &serve->parked;
    struct serve_call *call;

    while ((call = *at) != NULL) {
        bool is_over = call->cancelled && !call->unknown;

        if (call->due_ms > now_ms && !is_over) {
            serve_due(serve, call->due_ms);
            at = &call->next_parked;
            continue;
        }
        *at = call->next_parked;
        call->parked = false;
        if (is_over) {
            call->answered(call);
        } else {
            put(call);
        }
    }
}

/* ---- There and back ------------------------------------------------------ */

/* Once a copy of the op may have been applied, the server must not say that nothing was
 * done. True: the op will be submitted again. */
static bool settle(struct serve_call *call)
{
    struct idem_op *op = call->op;
    int code = op->error.code;

    call->unknown = call->unknown || code == IDEM_EUNKNOWN;
    if (!call->unknown || idem_error_kind(code) != IDEM_KIND_RETRY) {
        return false;
    }
    if (serve_now_ms(call->serve) < call->settle_ms) {
        serve_call_retry(call);
        return true;
    }
    op->error.code = IDEM_EUNKNOWN;
    return false;
}

static void give_back(struct idem_op *op)
{
    struct serve_call *call = idem_op_user(op);

    if (!settle(call)) {
        call->answered(call);
    }
}

/* The queue puts the ops that it refuses first, and gives the error of only one of them.
 * Each is submitted again by itself to get its own error. */
static void hand_over(struct serve *serve)
{
    struct idem__buffer batch = serve->batch;
    struct idem_op **ops = (struct idem_op **)(void *)batch.base;
    struct idem_error error;
    size_t refused;
    size_t i;

    serve->batch =
        (struct idem__buffer){0}; /* An answer may submit the next. */
    refused = idem_queue_submit_all(serve->queue, ops, batch.len / sizeof(*ops),
                                    &error);
    for (i = 0; i < refused; i++) {
        if (idem_queue_submit(serve->queue, ops[i], &error) != 0) {
            ops[i]->error = error;
            give_back(ops[i]);
        }
    }
    idem__buffer_free(&batch);
}

void serve_calls_run(struct serve *serve)
{
    struct idem_op *op;

    do {
        if (serve->batch.len > 0) {
            hand_over(serve);
        }
        while ((op = idem_queue_reap(serve->queue, 0)) != NULL) {
            give_back(op);
        }
    } while (serve->batch.len > 0);
}

struct serve_call *serve_call_find(struct serve *serve,
                                   const struct serve_conn *conn,
                                   struct idem_slice id)
{
    struct serve_call *call;

    for (call = serve->calls.first; call != NULL; call = call->next) {
        if (call->conn == conn &&
            idem__slice_equal(idem_bytes(call->id, call->id_len), id)) {
            return call;
        }
    }
    return NULL;
}

void serve_calls_finish(struct serve *serve)
{
    while (serve->calls.first != NULL) {
        struct serve_call *call = serve->calls.first;

        if (!call->parked) {
            call->op = NULL; /* The queue destroys what it has. */
        }
        serve_call_end(call);
    }
    serve->parked = NULL;
    idem__buffer_free(&serve->batch);
}
