
/*
 * The end of an attempt that this worker owns.  If the store is remote, the
 * outcome first goes into the journal.  Then the store records it, and then the
 * answer goes out, whether or not the outcome was recorded.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


#define NGX_HTTP_IDEM_RETRY_MS  100
#define NGX_HTTP_IDEM_END_MS    2000


static void ngx_http_idem_end_large(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_end_slice(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_unslice(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_submit(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_end_failed(ngx_event_t *ev);
static void ngx_http_idem_end_done(ngx_http_idem_flight_t *flight);
static void ngx_http_idem_end_finish(ngx_http_idem_ctx_t *ctx, int code);
static void ngx_http_idem_detached_done(ngx_http_idem_flight_t *flight);


void
ngx_http_idem_end(ngx_http_idem_ctx_t *ctx)
{
    struct timespec  now;

    ctx->state = NGX_HTTP_IDEM_COMMIT;
    ctx->ended = 1;

    /* The work ended now, however late the store records it. */

    if (clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
        ctx->outcome.ended_boot_ms = (int64_t) now.tv_sec * 1000
                                     + now.tv_nsec / 1000000;
    }

    ngx_http_idem_hold(ctx);

    /* Until a remote store answers, only the journal would survive a crash. */

    if (ctx->store->writer == NULL || ngx_http_idem_end_slice(ctx) != NGX_OK) {
        ngx_http_idem_end_large(ctx);
        return;
    }

    ngx_http_idem_journal_put(ctx, ngx_http_idem_end_large);
}


/* Large results wait for room, so that few are in memory at once. */

static void
ngx_http_idem_end_large(ngx_http_idem_ctx_t *ctx)
{
    size_t  bytes = 0;

    ngx_http_idem_end_unslice(ctx);

    if (ctx->kept && ctx->body.len > NGX_HTTP_IDEM_MEMORY) {
        bytes = ctx->body.len;
    }

    ngx_http_idem_large_acquire(ctx, bytes, ngx_http_idem_end_submit);
}


/* Makes the held body the result.  A body that cannot be read is not kept. */

static ngx_int_t
ngx_http_idem_end_slice(ngx_http_idem_ctx_t *ctx)
{
    ctx->map = NULL;

    if (!ctx->kept) {
        return NGX_OK;
    }

    if (ngx_http_idem_body_slice(&ctx->body, &ctx->outcome.result.bytes,
                                 &ctx->map, ctx->request->connection->log)
        == NGX_OK)
    {
        return NGX_OK;
    }

    ngx_http_idem_not_kept(ctx);
    return NGX_ERROR;
}


static void
ngx_http_idem_end_unslice(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_idem_body_unmap(&ctx->body, ctx->map);
    ctx->map = NULL;
}


/*
 * How long a response that is ready waits for its record.  The client of a
 * withheld one would ask again, because it does not know that the work is done.
 * 0: as long as any op may take in a store on this host.
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

    /* A result that has to travel gets a second more for each MiB. */

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
                     + (limit != 0 ? limit
                                   : (ngx_msec_t) ctx->store->timeout);

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

    /* The caller still uses the request, so let it go on in the next turn. */

    ctx->code = rc;
    ngx_http_idem_later(ctx, ngx_http_idem_end_failed);
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

    /* The same end again is safe: the store answers 0 if it has recorded it. */

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

            if (record->status == IDEM_STATUS_FAILED) {

                /* This retry has used up idempotency_max_failures. */

                ctx->outcome.status = IDEM_STATUS_FAILED;
            }
        }
    }

    if (flight->late) {

        /* The flight still has them, and gives them back when it lands. */

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
        ctx->outcome_name = outcome->status == IDEM_STATUS_COMPLETED
                            && outcome->result.not_kept
                            ? "not-kept" : idem_status_name(outcome->status);

        idem_attempt_destroy(attempt);

    } else if (code == IDEM_ELOST) {
        ctx->outcome_name = "lost";
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "the outcome came too late: another attempt owns its "
                      "idempotency key now");
        idem_attempt_destroy(attempt);

    } else {
        ctx->outcome_name = "unrecorded";
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "the idempotency store did not record an outcome: %s",
                      idem_error_text(code));

        /* The work is done: the answer goes out, and its record comes later. */

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


enum idem_status
ngx_http_idem_end_detached(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, const struct idem_http_rules *rules,
    enum idem_http_end end, const char *why)
{
    char                     text[IDEM_HTTP_TEXT_MAX];
    struct idem_op          *op;
    struct idem_error        error;
    struct idem_outcome      outcome;
    ngx_http_idem_flight_t  *flight;

    (void) idem_http_outcome(rules, end, 0, text, &outcome);
    outcome.text = idem_str(why);

    if (idem_op_end(attempt, &outcome, &op, &error) != 0) {
        ngx_log_error(NGX_LOG_ERR, store->log, 0,
                      "cannot record an outcome in the idempotency store: %s",
                      error.text);
        idem_attempt_destroy(attempt);
        return outcome.status;
    }

    flight = ngx_http_idem_submit(store, op, NULL, ngx_http_idem_detached_done,
                                  attempt);
    if (flight != NULL) {
        flight->outcome = outcome;
    }

    return outcome.status;
}


static void
ngx_http_idem_detached_done(ngx_http_idem_flight_t *flight)
{
    uint8_t                 id[IDEM_ID_LEN];
    ngx_http_idem_store_t  *store = flight->store;

    ngx_memcpy(id, flight->attempt->record->id, IDEM_ID_LEN);

    if (flight->code != 0 && flight->code != IDEM_ELOST) {
        ngx_http_idem_journal_keep(store, flight->attempt, &flight->outcome,
                                   NULL);
        flight->attempt = NULL;
    }

    ngx_http_idem_flight_free(flight);
    ngx_http_idem_wake(store, id);
}
