
/*
 * Flights: ops on their way to a store.  The queue submits all ops of a turn
 * of the event loop together at its end, so that they can share a commit.  A
 * flight lands when the store has answered.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


/* The guard waits longer by this than the store, which normally reports its own
 * timeout. */
#define NGX_HTTP_IDEM_GRACE_MS  2000

#define NGX_HTTP_IDEM_TURN      256
#define NGX_HTTP_IDEM_SPARE     256


static void ngx_http_idem_turn_some(ngx_http_idem_store_t *store);
static void ngx_http_idem_reap(ngx_http_idem_store_t *store);
static void ngx_http_idem_guard_handler(ngx_event_t *ev);


/* ---- Flights ---- */


/* Freed flights, for reuse. */

static ngx_http_idem_flight_t  *ngx_http_idem_spare[NGX_HTTP_IDEM_SPARE];
static ngx_uint_t               ngx_http_idem_spare_n;


ngx_http_idem_flight_t *
ngx_http_idem_flight_create(ngx_http_idem_store_t *store, struct idem_op *op,
    ngx_http_idem_ctx_t *ctx, ngx_http_idem_done_pt done,
    struct idem_attempt *attempt)
{
    ngx_http_idem_flight_t  *flight;

    if (ngx_http_idem_spare_n > 0) {
        flight = ngx_http_idem_spare[--ngx_http_idem_spare_n];
        ngx_memzero(flight, sizeof(ngx_http_idem_flight_t));

    } else {
        flight = ngx_calloc(sizeof(ngx_http_idem_flight_t), ngx_cycle->log);
    }

    if (flight == NULL) {
        idem_op_destroy(op);
        idem_attempt_destroy(attempt);
        return NULL;
    }

    flight->store = store;
    flight->op = op;
    flight->ctx = ctx;
    flight->done = done;
    flight->attempt = attempt;
    flight->guard.data = flight;
    flight->guard.handler = ngx_http_idem_guard_handler;
    flight->guard.log = ngx_cycle->log;

    idem_op_set_user(op, flight);

    return flight;
}


ngx_http_idem_flight_t *
ngx_http_idem_submit(ngx_http_idem_store_t *store, struct idem_op *op,
    ngx_http_idem_ctx_t *ctx, ngx_http_idem_done_pt done,
    struct idem_attempt *attempt)
{
    ngx_http_idem_flight_t  *flight;

    flight = ngx_http_idem_flight_create(store, op, ctx, done, attempt);

    if (flight != NULL) {
        ngx_http_idem_resubmit(flight);
    }

    return flight;
}


const char *
ngx_http_idem_flight_reason(ngx_http_idem_flight_t *flight)
{
    const char  *text;

    if (flight->late) {
        return "the store does not answer";
    }

    /* An op that never reached the store has a code only. */

    text = idem_op_error(flight->op)->text;

    return *text != '\0' ? text : idem_error_text(flight->code);
}


void
ngx_http_idem_resubmit(ngx_http_idem_flight_t *flight)
{
    ngx_http_idem_store_t  *store = flight->store;

    flight->code = 0;
    ngx_queue_insert_tail(&store->turn, &flight->queue);

    if (!store->submit.posted) {
        ngx_post_event(&store->submit, &ngx_posted_events);
    }
}


void
ngx_http_idem_resubmit_after(ngx_http_idem_flight_t *flight, ngx_msec_t pause)
{
    flight->again = 1;
    ngx_add_timer(&flight->guard, pause);
}


void
ngx_http_idem_flight_free(ngx_http_idem_flight_t *flight)
{
    if (flight->late) {
        return;
    }

    if (flight->guard.timer_set) {
        ngx_del_timer(&flight->guard);
    }

    idem_op_destroy(flight->op);
    idem_attempt_destroy(flight->attempt);

    if (ngx_http_idem_spare_n == NGX_HTTP_IDEM_SPARE) {
        ngx_free(flight);
        return;
    }

    ngx_http_idem_spare[ngx_http_idem_spare_n++] = flight;
}


ngx_http_idem_flight_t *
ngx_http_idem_flight_pop(ngx_queue_t *queue)
{
    ngx_queue_t  *q;

    if (ngx_queue_empty(queue)) {
        return NULL;
    }

    q = ngx_queue_head(queue);
    ngx_queue_remove(q);

    return ngx_queue_data(q, ngx_http_idem_flight_t, queue);
}


/*
 * Submits the ops of this turn.  The store may answer some of them at once,
 * from memory: these need neither its descriptor nor a timer.
 */

void
ngx_http_idem_turn_handler(ngx_event_t *ev)
{
    ngx_http_idem_store_t   *store;
    ngx_http_idem_flight_t  *flight;

    store = ev->data;
    ngx_http_idem_turn(store);

    if (store->queue != NULL) {
        ngx_http_idem_reap(store);
    }

    /*
     * A worker that shuts down exits when no timer is left, so each op in flight
     * has one.
     */

    while ((flight = ngx_http_idem_flight_pop(&store->fresh)) != NULL) {
        ngx_queue_insert_tail(&store->flights, &flight->queue);
        ngx_add_timer(&flight->guard,
                      flight->limit != 0
                      ? flight->limit
                      : (ngx_msec_t) store->timeout
                        + NGX_HTTP_IDEM_GRACE_MS);
    }
}


void
ngx_http_idem_turn(ngx_http_idem_store_t *store)
{
    while (!ngx_queue_empty(&store->turn)) {
        ngx_http_idem_turn_some(store);
    }
}


static void
ngx_http_idem_turn_some(ngx_http_idem_store_t *store)
{
    size_t                   i, n, refused;
    struct idem_op          *ops[NGX_HTTP_IDEM_TURN];
    struct idem_error        error;
    ngx_http_idem_flight_t  *flight;

    for (n = 0; n < NGX_HTTP_IDEM_TURN && !ngx_queue_empty(&store->turn); n++) {
        flight = ngx_http_idem_flight_pop(&store->turn);
        ngx_queue_insert_tail(&store->fresh, &flight->queue);
        ops[n] = flight->op;
    }

    refused = n;
    error.code = IDEM_EUNAVAILABLE;

    if (store->queue != NULL) {
        refused = idem_queue_submit_all(store->queue, ops, n, &error);

        if (refused > 0) {
            ngx_log_error(NGX_LOG_ERR, store->log, 0,
                          "idempotency store \"%V\" rejected %uz "
                          "operations: %s",
                          &store->url, refused, error.text);
        }
    }

    for (i = 0; i < refused; i++) {
        flight = idem_op_user(ops[i]);
        ngx_queue_remove(&flight->queue);
        ngx_http_idem_land(flight, error.code);
    }
}


void
ngx_http_idem_queue_handler(ngx_event_t *ev)
{
    ngx_connection_t  *c = ev->data;

    ngx_http_idem_reap(c->data);
}


static void
ngx_http_idem_reap(ngx_http_idem_store_t *store)
{
    ngx_queue_t              landed;
    struct idem_op          *op;
    ngx_http_idem_flight_t  *flight;

    ngx_queue_init(&landed);

    while ((op = idem_queue_reap(store->queue, 0)) != NULL) {
        flight = idem_op_user(op);
        flight->code = idem_op_code(op);

        ngx_queue_remove(&flight->queue);
        ngx_queue_insert_tail(&landed, &flight->queue);
    }

    while ((flight = ngx_http_idem_flight_pop(&landed)) != NULL) {
        ngx_http_idem_land(flight, flight->code);
    }
}


void
ngx_http_idem_land(ngx_http_idem_flight_t *flight, int code)
{
    if (flight->guard.timer_set) {
        ngx_del_timer(&flight->guard);
    }

    flight->code = code;
    flight->done(flight);
}


/*
 * The store has exceeded its timeout.  Tell the waiting request; the flight goes
 * on without it.
 */

static void
ngx_http_idem_guard_handler(ngx_event_t *ev)
{
    ngx_http_idem_flight_t  *flight = ev->data;

    if (flight->again) {
        flight->again = 0;
        ngx_http_idem_resubmit(flight);
        return;
    }

    if (flight->ctx == NULL) {
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "idempotency store \"%V\" does not answer",
                  &flight->store->url);

    flight->code = IDEM_EUNKNOWN;
    flight->late = 1;
    flight->done(flight);
    flight->late = 0;
    flight->ctx = NULL;
}


/* ---- Room for large bodies ---- */


void
ngx_http_idem_large_acquire(ngx_http_idem_ctx_t *ctx, size_t bytes,
    ngx_http_idem_large_pt start)
{
    ngx_http_idem_store_t  *store = ctx->store;

    ctx->large_bytes = bytes;
    ctx->large_start = start;

    if (bytes > 0 && store->large_bytes > 0
        && store->large_bytes + bytes > NGX_HTTP_IDEM_LARGE)
    {
        ctx->in_large = 1;
        ngx_queue_insert_tail(&store->large, &ctx->large);
        return;
    }

    store->large_bytes += bytes;
    start(ctx);
}


void
ngx_http_idem_large_release(ngx_http_idem_store_t *store, size_t bytes)
{
    ngx_queue_t          *q;
    ngx_http_idem_ctx_t  *ctx;

    store->large_bytes -= bytes;

    while (bytes > 0 && !ngx_queue_empty(&store->large)) {
        q = ngx_queue_head(&store->large);
        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, large);

        if (store->large_bytes > 0
            && store->large_bytes + ctx->large_bytes > NGX_HTTP_IDEM_LARGE)
        {
            return;
        }

        ngx_queue_remove(q);
        ctx->in_large = 0;
        store->large_bytes += ctx->large_bytes;
        ctx->large_start(ctx);
    }
}
