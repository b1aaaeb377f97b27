
/*
 * Requests that wait for the end of another attempt with their key.  An end in
 * this worker wakes them; for one elsewhere they ask the store from time to
 * time.
 */


#include "ngx_http_idempotency.h"


#define NGX_HTTP_IDEM_STEP_MIN  20
#define NGX_HTTP_IDEM_STEP_MAX  1000


static void ngx_http_idem_wait_handler(ngx_event_t *ev);


static ngx_queue_t  ngx_http_idem_waiters;
static ngx_uint_t   ngx_http_idem_waiters_n;


void
ngx_http_idem_wait_init(void)
{
    ngx_queue_init(&ngx_http_idem_waiters);
    ngx_http_idem_waiters_n = 0;
}


/* NGX_DONE: the request waits.  NGX_DECLINED: it must not, or no longer. */

ngx_int_t
ngx_http_idem_wait(ngx_http_idem_ctx_t *ctx)
{
    ngx_msec_t           step;
    ngx_msec_int_t       left;
    ngx_connection_t    *c;
    ngx_http_request_t  *r = ctx->request;

    if (ctx->conf->wait == 0 || ngx_exiting) {
        return NGX_DECLINED;
    }

    if (!ctx->waits) {
        if ((int64_t) ngx_http_idem_waiters_n >= ctx->conf->waiters) {
            return NGX_DECLINED;
        }

        ctx->waits = 1;
        ctx->join_fence = ctx->fence;
        ctx->wait_until = ngx_current_msec + ctx->conf->wait;
        ctx->wait_step = NGX_HTTP_IDEM_STEP_MIN;
        ctx->wait.data = ctx;
        ctx->wait.handler = ngx_http_idem_wait_handler;
        ctx->wait.log = r->connection->log;

    } else if (ctx->lease_left <= 0) {

        /* The lease is over, so the end may never come.  A waiter starts no
         * work itself; the client's next request may. */

        return NGX_DECLINED;
    }

    left = (ngx_msec_int_t) (ctx->wait_until - ngx_current_msec);
    if (left <= 0) {
        return NGX_DECLINED;
    }

    c = r->connection;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ctx->state = NGX_HTTP_IDEM_WAIT;
    ctx->waiting = 1;
    ngx_queue_insert_tail(&ngx_http_idem_waiters, &ctx->waiter);
    ngx_http_idem_waiters_n++;

    /* Randomize half of the step, so that many waiters do not ask at once. */

    step = ctx->wait_step / 2 + ngx_random() % (ctx->wait_step / 2 + 1);
    ctx->wait_step = ngx_min(ctx->wait_step * 2, NGX_HTTP_IDEM_STEP_MAX);

    if (ngx_http_idem_owner_find(ctx) != NULL) {

        /* ngx_http_idem_wake() will be called in this worker. */

        step = NGX_HTTP_IDEM_STEP_MAX;
    }

    ngx_add_timer(&ctx->wait, ngx_min(step, (ngx_msec_t) left));

    return NGX_DONE;
}


void
ngx_http_idem_wait_stop(ngx_http_idem_ctx_t *ctx)
{
    if (ctx->wait.timer_set) {
        ngx_del_timer(&ctx->wait);
    }

    if (ctx->wait.posted) {
        ngx_delete_posted_event(&ctx->wait);
    }

    if (ctx->waiting) {
        ctx->waiting = 0;
        ngx_queue_remove(&ctx->waiter);
        ngx_http_idem_waiters_n--;
    }
}


void
ngx_http_idem_wake(ngx_http_idem_store_t *store, const uint8_t *id)
{
    ngx_queue_t          *q;
    ngx_http_idem_ctx_t  *ctx;

    for (q = ngx_queue_head(&ngx_http_idem_waiters);
         q != ngx_queue_sentinel(&ngx_http_idem_waiters);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, waiter);

        if (ctx->store == store && !ctx->wait.posted
            && ngx_memcmp(ctx->id, id, IDEM_ID_LEN) == 0)
        {
            ngx_post_event(&ctx->wait, &ngx_posted_events);
        }
    }
}


static void
ngx_http_idem_wait_handler(ngx_event_t *ev)
{
    ngx_int_t             rc;
    ngx_connection_t     *c;
    ngx_http_idem_ctx_t  *ctx = ev->data;
    ngx_http_request_t   *r = ctx->request;

    c = r->connection;
    ngx_http_idem_wait_stop(ctx);

    r->read_event_handler = ngx_http_block_reading;

    rc = ngx_http_idem_begin(ctx);
    ngx_http_idem_go_on(c, r, rc);
}
