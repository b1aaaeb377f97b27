
/*
 * The module's context of a request: created, found again after a redirect, and
 * destroyed with the request, which is held while the store is asked.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


static void ngx_http_idem_cleanup(void *data);


ngx_http_idem_ctx_t *
ngx_http_idem_ctx_create(ngx_http_request_t *r, ngx_http_idem_loc_conf_t *conf)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_idem_ctx_t  *ctx;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_idem_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_idem_ctx_t));

    cln->handler = ngx_http_idem_cleanup;

    ctx->request = r;
    ctx->conf = conf;
    ctx->store = conf->store;
    ctx->problem = -1;

    ngx_http_set_ctx(r, ctx, ngx_http_idempotency_module);

    return ctx;
}


/* An internal redirect clears the contexts of all modules, but not the cleanups
 * of the pool. */

ngx_http_idem_ctx_t *
ngx_http_idem_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_idempotency_module);

    if (ctx != NULL || !(r->internal || r->filter_finalize)) {
        return ctx;
    }

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_idem_cleanup) {
            ngx_http_set_ctx(r, cln->data, ngx_http_idempotency_module);
            return cln->data;
        }
    }

    return NULL;
}


/* The request is gone.  End its attempt, and let its op in flight go on. */

static void
ngx_http_idem_cleanup(void *data)
{
    ngx_uint_t            sent;
    ngx_http_idem_ctx_t  *ctx = data;

    if (ctx->turn.posted) {
        ngx_delete_posted_event(&ctx->turn);
    }

    ngx_http_idem_wait_stop(ctx);
    ngx_http_idem_disown(ctx);

    if (ctx->flight != NULL) {
        ctx->flight->ctx = NULL;
    }

    if (ctx->in_large) {
        ngx_queue_remove(&ctx->large);
    }

    if (ctx->begun != NULL && ctx->verdict == IDEM_STARTED) {

        /* The claim came back to a request that was about to end. */

        (void) idem_op_take_attempt(ctx->begun, &ctx->attempt);
    }

    if (ctx->attempt != NULL) {
        sent = ngx_http_idem_sent(ctx->request);

        (void) ngx_http_idem_end_detached(ctx->store, ctx->attempt,
                              &ctx->conf->rules,
                              sent ? IDEM_HTTP_NO_ANSWER : IDEM_HTTP_NOT_SENT,
                              sent ? "the request ended without an answer"
                                   : "the request ended before it was sent");
    }

    idem_http_fingerprint_destroy(ctx->print);
    idem_op_destroy(ctx->begun);
}


/* While this worker owns no attempt, nobody calls this before the claim, whose
 * op computes the identity anyway. */

const uint8_t *
ngx_http_idem_id(ngx_http_idem_ctx_t *ctx)
{
    if (!ctx->has_id) {
        if (idem_id(ngx_http_idem_slice(&ctx->scope),
                    ngx_http_idem_slice(&ctx->key), ctx->id)
            != 0)
        {
            return NULL;
        }

        ctx->has_id = 1;
    }

    return ctx->id;
}


/* ---- Holding a request ---- */


void
ngx_http_idem_hold(ngx_http_idem_ctx_t *ctx)
{
    ctx->request->main->blocked++;
    ctx->request->aio = 1;
}


ngx_int_t
ngx_http_idem_ask(ngx_http_idem_ctx_t *ctx, struct idem_op *op,
    ngx_http_idem_done_pt done)
{
    ctx->flight = ngx_http_idem_submit(ctx->store, op, ctx, done, NULL);
    if (ctx->flight == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->state = NGX_HTTP_IDEM_BEGIN;
    ctx->request->write_event_handler = ngx_http_core_run_phases;
    ngx_http_idem_hold(ctx);

    return NGX_DONE;
}


ngx_uint_t
ngx_http_idem_ask_again(ngx_http_idem_flight_t *flight)
{
    if (flight->code != IDEM_EUNKNOWN || flight->late
        || ++flight->ctx->tries >= NGX_HTTP_IDEM_TRIES)
    {
        return 0;
    }

    ngx_http_idem_resubmit_after(flight, 50);

    return 1;
}


void
ngx_http_idem_later(ngx_http_idem_ctx_t *ctx, ngx_event_handler_pt handler)
{
    if (!ctx->turn.posted) {
        ctx->turn.data = ctx;
        ctx->turn.handler = handler;
        ctx->turn.log = ctx->request->connection->log;
        ngx_post_event(&ctx->turn, &ngx_posted_next_events);
    }
}


void
ngx_http_idem_go_on(ngx_connection_t *c, ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_DONE) {
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_idem_resume(ngx_http_idem_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r = ctx->request;

    c = r->connection;

    r->main->blocked--;
    r->aio = 0;

    if (ctx->overflow && !c->error) {

        /* Send the held part now: the upstream may pause for long. */

        (void) ngx_http_output_filter(r, NULL);
    }

    /* If the client went away, nginx has put its own handler there. */

    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}
