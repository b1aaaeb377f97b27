
/*
 * One queue for each store and worker, its descriptor in the event loop.  What
 * is asked in one turn of the loop is submitted together at its end.
 */


#include "ngx_http_idempotency.h"

#include <idem/metrics.h>
#include <idem/sqlite.h>


#define NGX_HTTP_IDEM_EXIT_MS    5000
#define NGX_HTTP_IDEM_REOPEN_MS  5000
#define NGX_HTTP_IDEM_GRACE_MS   2000
#define NGX_HTTP_IDEM_TURN       256
#define NGX_HTTP_IDEM_SPARE      256


static void ngx_http_idem_store_open(ngx_http_idem_store_t *store);
static ngx_int_t ngx_http_idem_store_watch(ngx_http_idem_store_t *store);
static void ngx_http_idem_store_close(ngx_http_idem_store_t *store);
static void ngx_http_idem_turn_handler(ngx_event_t *ev);
static void ngx_http_idem_turn(ngx_http_idem_store_t *store);
static void ngx_http_idem_turn_some(ngx_http_idem_store_t *store);
static void ngx_http_idem_reap(ngx_http_idem_store_t *store);
static void ngx_http_idem_queue_handler(ngx_event_t *ev);
static void ngx_http_idem_guard_handler(ngx_event_t *ev);
static void ngx_http_idem_again_handler(ngx_event_t *ev);
static void ngx_http_idem_land(ngx_http_idem_flight_t *flight, int code);


/* ---- Flights ---- */


/* Some that are free, for the next ones. */

static ngx_http_idem_flight_t  *ngx_http_idem_spare[NGX_HTTP_IDEM_SPARE];
static ngx_uint_t               ngx_http_idem_spare_n;


static ngx_http_idem_flight_t *
ngx_http_idem_flight_create(void)
{
    ngx_http_idem_flight_t  *flight;

    if (ngx_http_idem_spare_n == 0) {
        return ngx_calloc(sizeof(ngx_http_idem_flight_t), ngx_cycle->log);
    }

    flight = ngx_http_idem_spare[--ngx_http_idem_spare_n];
    ngx_memzero(flight, sizeof(ngx_http_idem_flight_t));

    return flight;
}


ngx_http_idem_flight_t *
ngx_http_idem_submit(ngx_http_idem_store_t *store, struct idem_op *op,
    ngx_http_idem_ctx_t *ctx, ngx_http_idem_done_pt done,
    struct idem_attempt *attempt)
{
    ngx_http_idem_flight_t  *flight;

    flight = ngx_http_idem_flight_create();
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
    ngx_http_idem_resubmit(flight);

    return flight;
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


/*
 * What the store knows already comes back at once: neither its descriptor nor
 * a timer is needed for that.
 */

static void
ngx_http_idem_turn_handler(ngx_event_t *ev)
{
    ngx_queue_t             *q;
    ngx_http_idem_store_t   *store;
    ngx_http_idem_flight_t  *flight;

    store = ev->data;
    ngx_http_idem_turn(store);

    if (store->queue != NULL) {
        ngx_http_idem_reap(store);
    }

    /*
     * A worker that is told to leave does so when no timer is left: every op
     * under way has one.
     */

    while (!ngx_queue_empty(&store->fresh)) {
        q = ngx_queue_head(&store->fresh);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(&store->flights, q);

        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);
        ngx_add_timer(&flight->guard, store->timeout + NGX_HTTP_IDEM_GRACE_MS);
    }
}


static void
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
    ngx_queue_t             *q;
    struct idem_op          *ops[NGX_HTTP_IDEM_TURN];
    struct idem_error        error;
    ngx_http_idem_flight_t  *flight;

    for (n = 0; n < NGX_HTTP_IDEM_TURN && !ngx_queue_empty(&store->turn); n++) {
        q = ngx_queue_head(&store->turn);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(&store->fresh, q);

        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);
        ops[n] = flight->op;
    }

    refused = n;
    error.code = IDEM_EUNAVAILABLE;

    if (store->queue != NULL) {
        refused = idem_queue_submit_all(store->queue, ops, n, &error);

        if (refused > 0) {
            ngx_log_error(NGX_LOG_ERR, store->log, 0,
                          "idempotency store \"%V\" does not take %uz "
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


static void
ngx_http_idem_queue_handler(ngx_event_t *ev)
{
    ngx_connection_t  *c = ev->data;

    ngx_http_idem_reap(c->data);
}


static void
ngx_http_idem_reap(ngx_http_idem_store_t *store)
{
    ngx_queue_t             *q, landed;
    struct idem_op          *op;
    ngx_http_idem_flight_t  *flight;

    ngx_queue_init(&landed);

    while ((op = idem_queue_reap(store->queue, 0)) != NULL) {
        flight = idem_op_user(op);
        flight->code = idem_op_code(op);

        ngx_queue_remove(&flight->queue);
        ngx_queue_insert_tail(&landed, &flight->queue);
    }

    while (!ngx_queue_empty(&landed)) {
        q = ngx_queue_head(&landed);
        ngx_queue_remove(q);

        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);
        ngx_http_idem_land(flight, flight->code);
    }
}


static void
ngx_http_idem_land(ngx_http_idem_flight_t *flight, int code)
{
    if (flight->guard.timer_set) {
        ngx_del_timer(&flight->guard);
    }

    flight->code = code;
    flight->done(flight);
}


/*
 * The store has not answered for longer than it may take.  Whoever waits hears
 * so; the flight goes on, and lands for nobody.
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


/* ---- Room for what is large ---- */


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


/* ---- Stores ---- */


ngx_int_t
ngx_http_idem_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_http_idem_store_t      **stores, *store;
    ngx_http_idem_main_conf_t   *imcf;

    if (ngx_process != NGX_PROCESS_WORKER
        && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_idempotency_module);
    if (imcf == NULL || !imcf->enabled) {
        return NGX_OK;
    }

    (void) idem_sqlite_disable_memory_count();

    ngx_http_idem_wait_init();
    ngx_http_idem_now(inflight) = 0;
    ngx_http_idem_now(waiting) = 0;

    stores = imcf->stores.elts;

    for (i = 0; i < imcf->stores.nelts; i++) {
        store = stores[i];
        store->log = cycle->log;

        ngx_queue_init(&store->turn);
        ngx_queue_init(&store->fresh);
        ngx_queue_init(&store->flights);
        ngx_queue_init(&store->large);
        ngx_queue_init(&store->unrecorded);

        store->submit.data = store;
        store->submit.handler = ngx_http_idem_turn_handler;
        store->submit.log = cycle->log;

        store->again.data = store;
        store->again.handler = ngx_http_idem_again_handler;
        store->again.log = cycle->log;
        store->again.cancelable = 1;

        /* An error here would make the master start workers for ever. */

        ngx_http_idem_store_open(store);
        ngx_add_timer(&store->again, NGX_HTTP_IDEM_REOPEN_MS);
    }

    return NGX_OK;
}


/* One for all stores of this process, until it ends. */

static struct idem_meter *
ngx_http_idem_meter(ngx_log_t *log)
{
    static ngx_uint_t          tried;
    static struct idem_meter  *meter;

    const char                *path = getenv("IDEM_METER");
    struct idem_error          error;

    if (tried || path == NULL || *path == '\0') {
        return meter;
    }

    tried = 1;

    if (idem_meter_open(path, IDEM_METER_CREATE, &meter, &error) != 0) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "IDEM_METER: %s; nothing is counted there", error.text);
        meter = NULL;
    }

    return meter;
}


static void
ngx_http_idem_store_open(ngx_http_idem_store_t *store)
{
    int                       rc;
    struct idem_error         error;
    struct idem_open_options  options = IDEM_OPEN_OPTIONS_INIT;

    options.flags = IDEM_OPEN_THREAD;
    options.timeout_ms = store->timeout;
    options.queue_max = 65536;
    options.result_max = IDEM_RESULT_MAX;
    options.observe_ctx = ngx_http_idem_meter(store->log);

    if (options.observe_ctx != NULL) {
        options.observe = idem_meter_observe;
    }

    rc = idem_open((char *) store->url.data, &options, &store->store, &error);

    if (rc == 0) {
        rc = idem_queue_create(store->store, &store->queue, &error);
    }

    if (rc == 0 && ngx_http_idem_store_watch(store) != NGX_OK) {
        rc = IDEM_EUNAVAILABLE;
        ngx_memcpy(error.text, "no connection", sizeof("no connection"));
    }

    if (rc != 0) {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "idempotency store \"%V\" cannot be opened: %s",
                      &store->url, error.text);
        ngx_http_idem_store_close(store);
        return;
    }

    ngx_http_idem_journal_open(store);
}


static ngx_int_t
ngx_http_idem_store_watch(ngx_http_idem_store_t *store)
{
    int                fd;
    ngx_connection_t  *c;

    fd = idem_queue_fd(store->queue);
    if (fd < 0) {
        return NGX_ERROR;
    }

    c = ngx_get_connection(fd, store->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = store;
    c->read->handler = ngx_http_idem_queue_handler;
    c->read->log = store->log;
    c->write->log = store->log;
    store->connection = c;

    return ngx_add_event(c->read, NGX_READ_EVENT,
                         (ngx_event_flags & NGX_USE_CLEAR_EVENT)
                         ? NGX_CLEAR_EVENT : 0);
}


static void
ngx_http_idem_store_close(ngx_http_idem_store_t *store)
{
    ngx_connection_t  *c = store->connection;

    if (c != NULL) {
        if (c->read->active) {
            (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
        }

        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        store->connection = NULL;
    }

    idem_queue_destroy(store->queue);
    store->queue = NULL;

    idem_close(store->store);
    store->store = NULL;
}


static void
ngx_http_idem_again_handler(ngx_event_t *ev)
{
    ngx_http_idem_store_t  *store = ev->data;

    if (store->store == NULL) {
        ngx_http_idem_store_open(store);

    } else {
        ngx_http_idem_journal_again(store);
    }

    if (!ngx_exiting) {
        ngx_add_timer(ev, NGX_HTTP_IDEM_REOPEN_MS);
    }
}


void
ngx_http_idem_exit_process(ngx_cycle_t *cycle)
{
    ngx_msec_t                   until;
    ngx_uint_t                   i;
    struct idem_op              *op;
    ngx_http_idem_store_t      **stores, *store;
    ngx_http_idem_flight_t      *flight;
    ngx_http_idem_main_conf_t   *imcf;

    if (ngx_process != NGX_PROCESS_WORKER
        && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_idempotency_module);
    if (imcf == NULL || !imcf->enabled) {
        return;
    }

    ngx_time_update();
    until = ngx_current_msec + NGX_HTTP_IDEM_EXIT_MS;
    stores = imcf->stores.elts;

    for (i = 0; i < imcf->stores.nelts; i++) {
        store = stores[i];

        if (store->queue != NULL) {
            ngx_http_idem_turn(store);
        }

        /* Nobody is served any more; only what is detached still counts. */

        while (store->queue != NULL && idem_queue_len(store->queue) > 0) {
            ngx_time_update();

            if ((ngx_msec_int_t) (until - ngx_current_msec) <= 0) {
                ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                              "idempotency store \"%V\" does not answer; %uz "
                              "operations are left", &store->url,
                              idem_queue_len(store->queue));
                break;
            }

            op = idem_queue_reap(store->queue, until - ngx_current_msec);
            if (op == NULL) {
                continue;
            }

            flight = idem_op_user(op);
            flight->code = idem_op_code(op);
            ngx_queue_remove(&flight->queue);

            if (flight->ctx == NULL) {
                ngx_http_idem_land(flight, flight->code);
                ngx_http_idem_turn(store);
            }
        }

        ngx_http_idem_journal_close(store);
        ngx_http_idem_store_close(store);
    }
}
