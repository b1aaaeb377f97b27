
/*
 * An attempt that this worker owns: the work, and its lease.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


static ngx_int_t ngx_http_idem_content_handler(ngx_http_request_t *r);
static void ngx_http_idem_renew_handler(ngx_event_t *ev);
static void ngx_http_idem_renew_done(ngx_http_idem_flight_t *flight);


#define NGX_HTTP_IDEM_BUCKETS  1024

static ngx_queue_t  ngx_http_idem_owners[NGX_HTTP_IDEM_BUCKETS];
static ngx_uint_t   ngx_http_idem_owners_n;


/* ---- The list of owners in this worker ---- */


static ngx_queue_t *
ngx_http_idem_owner_bucket(const uint8_t *id)
{
    ngx_queue_t  *bucket;

    bucket = &ngx_http_idem_owners[((id[0] << 8) | id[1])
                                   % NGX_HTTP_IDEM_BUCKETS];

    if (bucket->next == NULL) {
        ngx_queue_init(bucket);
    }

    return bucket;
}


/* The request of this worker that owns the record of @ctx; or NULL. */

ngx_http_idem_ctx_t *
ngx_http_idem_owner_find(ngx_http_idem_ctx_t *ctx)
{
    ngx_queue_t          *q, *bucket;
    const uint8_t        *id;
    ngx_http_idem_ctx_t  *owner;

    if (ngx_http_idem_owners_n == 0) {
        return NULL;
    }

    id = ngx_http_idem_id(ctx);
    if (id == NULL) {
        return NULL;
    }

    bucket = ngx_http_idem_owner_bucket(id);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        owner = ngx_queue_data(q, ngx_http_idem_ctx_t, owner);

        if (owner->store == ctx->store
            && ngx_memcmp(owner->id, id, IDEM_ID_LEN) == 0)
        {
            return owner;
        }
    }

    return NULL;
}


void
ngx_http_idem_disown(ngx_http_idem_ctx_t *ctx)
{
    if (ctx->owns) {
        ctx->owns = 0;
        ngx_queue_remove(&ctx->owner);
        ngx_http_idem_owners_n--;
    }

    if (ctx->renew.timer_set) {
        ngx_del_timer(&ctx->renew);
    }

    if (ctx->renewal != NULL) {
        ctx->renewal->ctx = NULL;
        ctx->renewal = NULL;
    }
}


/* ---- The work ---- */


ngx_int_t
ngx_http_idem_own(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t        *r = ctx->request;
    ngx_http_idem_loc_conf_t  *conf = ctx->conf;

    if (idem_op_take_attempt(ctx->begun, &ctx->attempt) != 0) {
        return NGX_ERROR;
    }

    idem_op_destroy(ctx->begun);
    ctx->begun = NULL;

    ctx->state = NGX_HTTP_IDEM_OWNER;
    ctx->fence = ctx->attempt->fence;
    ctx->attempts = ctx->attempt->attempts;
    ctx->takeover = ctx->attempt->takeover;
    ctx->started = ngx_current_msec;
    ctx->lease_end = ctx->asked + conf->lease;

    ngx_queue_insert_tail(ngx_http_idem_owner_bucket(ctx->id), &ctx->owner);
    ngx_http_idem_owners_n++;
    ctx->owns = 1;

    ctx->renew.data = ctx;
    ctx->renew.handler = ngx_http_idem_renew_handler;
    ctx->renew.log = r->connection->log;
    ngx_add_timer(&ctx->renew, conf->lease / 3);

    if (conf->chain && ngx_http_idem_request_chain(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    /* The record must have the whole answer, and not a part or a 304. */

    r->disable_not_modified = 1;
    r->allow_ranges = 0;

    ngx_http_idem_wrap(ctx);

    return NGX_DECLINED;
}


/* Called again in each location that the request is redirected to. */

void
ngx_http_idem_wrap(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t  *r = ctx->request;

    if (r->content_handler != NULL
        && r->content_handler != ngx_http_idem_content_handler)
    {
        ctx->content_handler = r->content_handler;
        r->content_handler = ngx_http_idem_content_handler;
    }

    r->main_filter_need_in_memory = 1;
}


/*
 * Has the effect of proxy_ignore_client_abort on this request, with any kind of
 * upstream, and keeps nginx from trying a second server once the first one may
 * have done the work.
 */

static ngx_int_t
ngx_http_idem_content_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_http_idem_ctx_t       *ctx;
    ngx_http_upstream_t       *u;
    ngx_http_upstream_conf_t  *conf;

    ctx = ngx_http_idem_ctx(r);
    r->content_handler = ctx->content_handler;

    /* It may end the request: only NGX_DONE proves that @ctx still exists. */

    rc = r->content_handler(r);

    if (rc != NGX_DONE || ctx->state != NGX_HTTP_IDEM_OWNER) {
        return rc;
    }

    u = r->upstream;

    if (u == NULL || u->cleanup == NULL || u->header_sent || u->conf == NULL) {
        return rc;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    conf = ngx_palloc(r->pool, sizeof(ngx_http_upstream_conf_t));
    if (conf == NULL) {
        return rc;
    }

    *conf = *u->conf;
    conf->ignore_client_abort = 1;

    /* This module holds the answer.  If nginx wrote it to a file too, a full
     * disk would cut it off. */

    conf->max_temp_file_size = 0;

    if (r->method & (NGX_HTTP_POST|NGX_HTTP_PATCH|NGX_HTTP_LOCK)) {
        conf->next_upstream &= ~NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT;

    } else {
        conf->next_upstream = NGX_HTTP_UPSTREAM_FT_OFF;
    }

    u->conf = conf;

    return rc;
}


ngx_uint_t
ngx_http_idem_sent(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_upstream_t        *u = r->upstream;
    ngx_http_upstream_state_t  *state;

    if (u == NULL || r->upstream_states == NULL) {
        return 0;
    }

    if (u->peer.connection != NULL && u->peer.connection->sent > 0) {
        return 1;
    }

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        if (state[i].bytes_sent > 0) {
            return 1;
        }
    }

    return 0;
}


/* ---- The lease ---- */


/*
 *     owned --- lease / 3 ---> asked --- 0 -----> owned; the lease is counted
 *       ^                      |   |              from when it was asked
 *       '----- lease / 10 -----'   '--- LOST ---> lost: asked no more, and the
 *           no answer, no memory                  work goes on
 */

static void
ngx_http_idem_renew_handler(ngx_event_t *ev)
{
    struct idem_op       *op;
    struct idem_error     error;
    ngx_http_idem_ctx_t  *ctx = ev->data;

    if (ctx->attempt == NULL || ctx->renewal != NULL) {
        return;
    }

    ctx->asked = ngx_current_msec;

    if (idem_op_renew(ctx->attempt, 0, &op, &error) == 0) {
        ctx->renewal = ngx_http_idem_submit(ctx->store, op, ctx,
                                            ngx_http_idem_renew_done, NULL);
    }

    if (ctx->renewal == NULL) {
        ngx_add_timer(ev, ctx->conf->lease / 10);
    }
}


static void
ngx_http_idem_renew_done(ngx_http_idem_flight_t *flight)
{
    int                   code = flight->code;
    ngx_http_idem_ctx_t  *ctx = flight->ctx;

    if (ctx == NULL) {
        ngx_http_idem_flight_free(flight);
        return;
    }

    ctx->renewal = NULL;

    if (code == 0) {
        ctx->lease_end = ctx->asked + ctx->conf->lease;
        ngx_add_timer(&ctx->renew, ctx->conf->lease / 3);

    } else if (code == IDEM_ELOST) {
        ctx->lost = 1;
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "the work goes on, but another attempt owns its "
                      "idempotency key now");

    } else {
        ngx_add_timer(&ctx->renew, ctx->conf->lease / 10);
    }

    ngx_http_idem_flight_free(flight);
}
