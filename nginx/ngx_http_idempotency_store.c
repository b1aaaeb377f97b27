
/*
 * The stores of a worker, each with a queue whose descriptor is in the event
 * loop.  The worker opens them when it starts, tries again every 5 seconds if
 * that fails, and closes them when it exits.
 */


#include "ngx_http_idempotency.h"

#include <idem/metrics.h>
#include <idem/queue.h>
#include <idem/sqlite.h>


#define NGX_HTTP_IDEM_EXIT_MS    5000
#define NGX_HTTP_IDEM_REOPEN_MS  5000


static void ngx_http_idem_store_open(ngx_http_idem_store_t *store);
static void ngx_http_idem_store_close(ngx_http_idem_store_t *store);
static void ngx_http_idem_again_handler(ngx_event_t *ev);


/* NULL: this process serves no location with keys. */

static ngx_http_idem_main_conf_t *
ngx_http_idem_serves(ngx_cycle_t *cycle)
{
    ngx_http_idem_main_conf_t  *imcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE) {
        return NULL;
    }

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_idempotency_module);

    return imcf != NULL && imcf->enabled ? imcf : NULL;
}


ngx_int_t
ngx_http_idem_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_http_idem_store_t      **stores, *store;
    ngx_http_idem_main_conf_t   *imcf;

    imcf = ngx_http_idem_serves(cycle);
    if (imcf == NULL) {
        return NGX_OK;
    }

    (void) idem_sqlite_disable_memory_count();

    ngx_http_idem_wait_init();

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

        /* After an error from here the master would start workers for ever. */

        ngx_http_idem_store_open(store);
        ngx_add_timer(&store->again, NGX_HTTP_IDEM_REOPEN_MS);
    }

    return NGX_OK;
}


/* One meter counts for all stores of this process, and stays open. */

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
                      "IDEM_METER: %s; nothing is counted", error.text);
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

    options.flags = IDEM_OPEN_THREAD | (store->budgets ? IDEM_OPEN_BUDGETS : 0);
    options.timeout_ms = store->timeout;
    options.queue_max = 65536;
    options.result_max = IDEM_RESULT_MAX;
    options.observe_ctx = ngx_http_idem_meter(store->log);

    if (options.observe_ctx != NULL) {
        options.observe = idem_meter_observe;
    }

    rc = idem_open((char *) store->url.data, &options, &store->store, &error);

    if (rc != 0) {
        goto failed;
    }

    rc = idem_queue_create(store->store, &store->queue, &error);

    if (rc != 0) {
        goto failed;
    }

    store->connection = ngx_http_idem_watch(idem_queue_fd(store->queue),
                                            ngx_http_idem_queue_handler,
                                            store, store->log);
    if (store->connection == NULL) {
        ngx_memcpy(error.text, "no connection", sizeof("no connection"));
        goto failed;
    }

    ngx_http_idem_journal_open(store);

    return;

failed:

    ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                  "idempotency store \"%V\" cannot be opened: %s",
                  &store->url, error.text);
    ngx_http_idem_store_close(store);
}


static void
ngx_http_idem_store_close(ngx_http_idem_store_t *store)
{
    ngx_http_idem_unwatch(store->connection);
    store->connection = NULL;

    idem_queue_destroy(store->queue);
    store->queue = NULL;

    idem_close(store->store);
    store->store = NULL;
}


ngx_connection_t *
ngx_http_idem_watch(int fd, ngx_event_handler_pt handler, void *data,
    ngx_log_t *log)
{
    ngx_connection_t  *c;

    c = fd < 0 ? NULL : ngx_get_connection(fd, log);
    if (c == NULL) {
        return NULL;
    }

    c->data = data;
    c->read->handler = handler;
    c->read->log = log;
    c->write->log = log;

    if (ngx_add_event(c->read, NGX_READ_EVENT,
                      (ngx_event_flags & NGX_USE_CLEAR_EVENT)
                      ? NGX_CLEAR_EVENT : 0)
        != NGX_OK)
    {
        ngx_http_idem_unwatch(c);
        return NULL;
    }

    return c;
}


void
ngx_http_idem_unwatch(ngx_connection_t *c)
{
    if (c == NULL) {
        return;
    }

    if (c->read->active) {
        (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
    }

    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;
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

    imcf = ngx_http_idem_serves(cycle);
    if (imcf == NULL) {
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

        /* No request is left, but ends without one must still be recorded. */

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
