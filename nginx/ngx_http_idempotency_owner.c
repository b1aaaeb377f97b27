
/*
 * An attempt that this worker owns: the work, its lease, and how it ends.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


#define NGX_HTTP_IDEM_RETRY_MS  100
#define NGX_HTTP_IDEM_END_MS    2000


static ngx_int_t ngx_http_idem_content_handler(ngx_http_request_t *r);
static void ngx_http_idem_renew_handler(ngx_event_t *ev);
static void ngx_http_idem_renew_done(ngx_http_idem_flight_t *flight);
static void ngx_http_idem_end_large(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_end_slice(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_unslice(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_submit(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_failed(ngx_event_t *ev);
static void ngx_http_idem_end_done(ngx_http_idem_flight_t *flight);
static void ngx_http_idem_end_finish(ngx_http_idem_ctx_t *ctx, int code);
static void ngx_http_idem_detached_done(ngx_http_idem_flight_t *flight);


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


/* The owner of the record that @ctx is about; it may be another request. */

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
        ngx_http_idem_now(inflight)--;
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

    ngx_http_idem_count(started);
    if (ctx->takeover) {
        ngx_http_idem_count(takeovers);
    }

    ngx_http_idem_now(inflight)++;
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

    /* The whole answer is recorded, and not a part or a 304. */

    r->disable_not_modified = 1;
    r->allow_ranges = 0;

    ngx_http_idem_wrap(ctx);

    return NGX_DECLINED;
}


/* Again in each location that the request is sent to before its work is done. */

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
 * The effect of proxy_ignore_client_abort, for this request and any upstream;
 * and no second server is tried once the first one may have done the work.
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

    /* It may end the request: after this only DONE is certain. */

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

    /* The answer is held here, and a full disk of nginx's own would cut it. */

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
        ngx_http_idem_count(renewals);
        ctx->lease_end = ctx->asked + ctx->conf->lease;
        ngx_add_timer(&ctx->renew, ctx->conf->lease / 3);

    } else if (code == IDEM_ELOST) {
        ctx->lost = 1;
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "the work goes on, but its idempotency key belongs to "
                      "somebody else now");

    } else {
        ngx_add_timer(&ctx->renew, ctx->conf->lease / 10);
    }

    ngx_http_idem_flight_free(flight);
}


/* ---- The end ---- */


void
ngx_http_idem_end(ngx_http_idem_ctx_t *ctx)
{
    struct timespec  now;

    ctx->state = NGX_HTTP_IDEM_COMMIT;
    ctx->ended = 1;

    /* However late the store hears of it. */

    if (clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
        ctx->outcome.ended_boot_ms = (int64_t) now.tv_sec * 1000
                                     + now.tv_nsec / 1000000;
    }

    ngx_http_idem_hold(ctx);

    if (ctx->store->writer == NULL || ngx_http_idem_end_slice(ctx) != NGX_OK) {
        ngx_http_idem_end_large(ctx);
        return;
    }

    ngx_http_idem_journal_put(ctx, ngx_http_idem_end_large);
}


/* Large results go one after the other, so that few are in memory. */

static void
ngx_http_idem_end_large(ngx_http_idem_ctx_t *ctx)
{
    size_t  bytes = 0;

    ngx_http_idem_end_unslice(ctx);

    if (ctx->outcome.status == IDEM_STATUS_COMPLETED
        && !ctx->outcome.result.not_kept
        && ctx->body.len > NGX_HTTP_IDEM_MEMORY)
    {
        bytes = ctx->body.len;
    }

    ngx_http_idem_large_acquire(ctx, bytes, ngx_http_idem_end_submit);
}


/* Makes the body that is held the result.  A body that cannot be read is not
 * kept. */

static ngx_int_t
ngx_http_idem_end_slice(ngx_http_idem_ctx_t *ctx)
{
    struct idem_result  *result = &ctx->outcome.result;

    ctx->map = NULL;

    if (ctx->outcome.status != IDEM_STATUS_COMPLETED || result->not_kept) {
        return NGX_OK;
    }

    if (ngx_http_idem_body_slice(&ctx->body, &result->bytes, &ctx->map,
                                 ctx->request->connection->log)
        == NGX_OK)
    {
        return NGX_OK;
    }

    ngx_memzero(result, sizeof(struct idem_result));
    result->not_kept = true;
    return NGX_ERROR;
}


static void
ngx_http_idem_end_unslice(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_idem_body_unmap(&ctx->body, ctx->map);
    ctx->map = NULL;
}


/*
 * A response that is ready does not wait for longer than this: a withheld one
 * is asked for again, by a client that does not know that the work is done.
 * 0: for as long as any question to the store, which is on this host.
 */

static ngx_msec_t
ngx_http_idem_end_limit(ngx_http_idem_ctx_t *ctx)
{
    ngx_msec_t              limit;
    ngx_http_idem_store_t  *store = ctx->store;

    limit = store->end_timeout;

    if (limit == 0) {
        if (store->store == NULL || !idem_store_is_remote(store->store)) {
            return 0;
        }

        limit = ngx_min(store->timeout, NGX_HTTP_IDEM_END_MS);
    }

    /* An answer that has to travel may take longer than one that is only
     * awaited. */

    return limit + (ctx->body.len >> 20) * 1000;
}


static void
ngx_http_idem_end_submit(ngx_http_idem_ctx_t *ctx)
{
    int                rc;
    ngx_msec_t         limit;
    struct idem_op    *op;
    struct idem_error  error;

    op = NULL;
    limit = ngx_http_idem_end_limit(ctx);
    ctx->end_until = ngx_current_msec
                     + (limit != 0 ? limit : ctx->store->timeout);

    (void) ngx_http_idem_end_slice(ctx);
    rc = idem_op_end(ctx->attempt, &ctx->outcome, &op, &error);
    ngx_http_idem_end_unslice(ctx);

    if (rc == 0) {
        ctx->flight = ngx_http_idem_submit(ctx->store, op, ctx,
                                           ngx_http_idem_end_done, NULL);
        if (ctx->flight != NULL) {
            ctx->flight->large_bytes = ctx->large_bytes;
            ctx->flight->limit = limit;
            return;
        }

        rc = IDEM_ENOMEM;
    }

    ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                  "cannot record an outcome in the idempotency store: %s",
                  rc == IDEM_ENOMEM ? "no memory" : error.text);

    /* Not from here: whoever called may not expect to see the request go on. */

    ctx->code = rc;
    ctx->turn.data = ctx;
    ctx->turn.handler = ngx_http_idem_end_failed;
    ctx->turn.log = ctx->request->connection->log;
    ngx_post_event(&ctx->turn, &ngx_posted_next_events);
}


static void
ngx_http_idem_end_failed(ngx_event_t *ev)
{
    ngx_http_idem_ctx_t    *ctx = ev->data;
    size_t                  bytes = ctx->large_bytes;
    ngx_http_idem_store_t  *store = ctx->store;

    ngx_http_idem_end_finish(ctx, ctx->code);
    ngx_http_idem_large_release(store, bytes);
}


static void
ngx_http_idem_end_done(ngx_http_idem_flight_t *flight)
{
    int                        code = flight->code;
    size_t                     bytes;
    ngx_http_idem_ctx_t       *ctx = flight->ctx;
    const struct idem_record  *record;
    ngx_http_idem_store_t     *store = flight->store;

    bytes = flight->large_bytes;

    if (ctx == NULL) {
        ngx_http_idem_flight_free(flight);
        ngx_http_idem_large_release(store, bytes);
        return;
    }

    if (code != 0 && !flight->late
        && idem_error_kind(code) == IDEM_KIND_RETRY
        && (ngx_msec_int_t) (ctx->end_until - ngx_current_msec)
           > NGX_HTTP_IDEM_RETRY_MS
        && store->queue != NULL)
    {
        if (flight->limit != 0) {
            flight->limit = ctx->end_until - ngx_current_msec
                            - NGX_HTTP_IDEM_RETRY_MS;
        }

        ngx_http_idem_resubmit_after(flight, NGX_HTTP_IDEM_RETRY_MS);
        return;
    }

    ctx->flight = NULL;

    if (code == 0) {
        record = idem_op_record(flight->op);
        if (record != NULL) {
            ctx->expires_ms = record->expires_ms;
        }
    }

    if (flight->late) {
        bytes = 0;
    }

    ngx_http_idem_flight_free(flight);
    ngx_http_idem_end_finish(ctx, code);
    ngx_http_idem_large_release(store, bytes);
}


static void
ngx_http_idem_end_finish(ngx_http_idem_ctx_t *ctx, int code)
{
    ngx_connection_t     *c = ctx->request->connection;
    struct idem_attempt  *attempt = ctx->attempt;
    struct idem_outcome  *outcome = &ctx->outcome;

    ctx->recorded = (code == 0);
    ctx->attempt = NULL;

    if (code == 0) {
        switch (outcome->status) {
        case IDEM_STATUS_COMPLETED:
            ngx_http_idem_count(completed);
            ctx->outcome_name = outcome->result.not_kept ? "not-kept"
                                                         : "completed";
            break;
        case IDEM_STATUS_RELEASED:
            ngx_http_idem_count(released);
            ctx->outcome_name = "released";
            break;
        case IDEM_STATUS_FAILED:
            ngx_http_idem_count(failed);
            ctx->outcome_name = "failed";
            break;
        case IDEM_STATUS_RETRY:
            ngx_http_idem_count(retried);
            ctx->outcome_name = "retry";
            break;
        default:
            ngx_http_idem_count(unknown);
            ctx->outcome_name = "unknown";
        }

        idem_attempt_destroy(attempt);

    } else if (code == IDEM_ELOST) {
        ngx_http_idem_count(lost);
        ctx->outcome_name = "lost";
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "the outcome came too late: its idempotency key belongs "
                      "to somebody else now");
        idem_attempt_destroy(attempt);

    } else {
        ctx->outcome_name = "unrecorded";
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "the idempotency store did not take an outcome: %s",
                      idem_error_text(code));

        (void) ngx_http_idem_end_slice(ctx);
        ngx_http_idem_journal_keep(ctx->store, attempt, outcome, ctx->entry);
        ctx->entry = NULL;
        ngx_http_idem_end_unslice(ctx);
    }

    idem_journal_remove(ctx->entry);
    ctx->entry = NULL;

    ngx_http_idem_disown(ctx);
    ngx_http_idem_wake(ctx->store, ctx->id);

    ctx->state = NGX_HTTP_IDEM_SEND;
    ngx_http_idem_resume(ctx);
}


void
ngx_http_idem_end_detached(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, enum idem_status status, const char *why)
{
    struct idem_op          *op;
    struct idem_error        error;
    struct idem_outcome      outcome;
    ngx_http_idem_flight_t  *flight;

    ngx_memzero(&outcome, sizeof(outcome));
    outcome.status = status;
    outcome.text = idem_str(why);

    if (idem_op_end(attempt, &outcome, &op, &error) != 0) {
        ngx_log_error(NGX_LOG_ERR, store->log, 0,
                      "cannot record an outcome in the idempotency store: %s",
                      error.text);
        idem_attempt_destroy(attempt);
        return;
    }

    flight = ngx_http_idem_submit(store, op, NULL, ngx_http_idem_detached_done,
                                  attempt);
    if (flight != NULL) {
        flight->status = status;
    }
}


static void
ngx_http_idem_detached_done(ngx_http_idem_flight_t *flight)
{
    uint8_t                 id[IDEM_ID_LEN];
    struct idem_outcome     outcome;
    ngx_http_idem_store_t  *store = flight->store;

    ngx_memcpy(id, flight->attempt->record->id, IDEM_ID_LEN);

    if (flight->code == IDEM_ELOST) {
        ngx_http_idem_count(lost);

    } else if (flight->code != 0) {
        ngx_memzero(&outcome, sizeof(outcome));
        outcome.status = flight->status;
        ngx_http_idem_journal_keep(store, flight->attempt, &outcome, NULL);
        flight->attempt = NULL;

    } else if (flight->status == IDEM_STATUS_RELEASED) {
        ngx_http_idem_count(released);

    } else {
        ngx_http_idem_count(unknown);
    }

    ngx_http_idem_flight_free(flight);
    ngx_http_idem_wake(store, id);
}
