
/*
 * The answer for a verdict of the store: a replay of the record, or a problem.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


static ngx_int_t ngx_http_idem_refuse(ngx_http_idem_ctx_t *ctx,
    const struct idem_http_answer *answer);
static ngx_int_t ngx_http_idem_replay(ngx_http_idem_ctx_t *ctx,
    const struct idem_form *form);
static ngx_int_t ngx_http_idem_replay_body(ngx_http_request_t *r,
    const struct idem_form *form, struct idem_slice *body);
static void ngx_http_idem_fetch(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_fetch_failed(ngx_event_t *ev);
static void ngx_http_idem_fetch_done(ngx_http_idem_flight_t *flight);


/* ---- Verdicts ---- */


ngx_int_t
ngx_http_idem_reply_verdict(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r = ctx->request;
    struct idem_attempt        found;
    struct idem_http_answer    answer;

    if (ctx->code == 0 && ctx->limited) {
        return ngx_http_idem_limit_refuse(ctx);
    }

    /* A waiter goes on if one of its looks failed: the attempt still runs. */

    if (ctx->code == 0 ? ctx->verdict == IDEM_BUSY
        : ctx->waits && (ctx->code == IDEM_EUNAVAILABLE
                         || ctx->code == IDEM_EUNKNOWN))
    {
        rc = ngx_http_idem_wait(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    ngx_memzero(&found, sizeof(struct idem_attempt));
    found.verdict = ctx->verdict;
    found.record = ctx->begun != NULL ? idem_op_record(ctx->begun) : NULL;
    idem_http_answer_of(ctx->code, &found,
                        ngx_http_idem_value(r->headers_in.accept_encoding),
                        &answer);
    ctx->verdict_name = answer.name;

    switch (answer.action) {

    case IDEM_HTTP_RUN:
        return ngx_http_idem_own(ctx);

    case IDEM_HTTP_REPLAY:
        return ngx_http_idem_replay(ctx, &answer.form);

    case IDEM_HTTP_FETCH:
        ctx->state = NGX_HTTP_IDEM_FETCH;
        ngx_http_idem_hold(ctx);
        ngx_http_idem_large_acquire(ctx,
                     (size_t) (found.record->result_len
                               + found.record->input_len), ngx_http_idem_fetch);
        return NGX_DONE;

    default: /* IDEM_HTTP_REFUSE */
        return ngx_http_idem_refuse(ctx, &answer);
    }
}


static ngx_int_t
ngx_http_idem_refuse(ngx_http_idem_ctx_t *ctx,
    const struct idem_http_answer *answer)
{
    ngx_http_request_t  *r = ctx->request;

    if (answer->problem == IDEM_HTTP_UNAVAILABLE && ctx->conf->store_error
        && !ctx->waits && ctx->job_code == 0)
    {
        /* idempotency_on_store_error pass.  It would let a waiter, whose work
         * another request is doing, do it a second time; and a request whose
         * outcome this worker has. */

        ctx->verdict_name = "passed";
        ctx->unguarded = 1;
        ctx->state = NGX_HTTP_IDEM_OWNER;
        return NGX_DECLINED;
    }

    if (answer->problem == IDEM_HTTP_CORRUPT && ctx->code == 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the result of an idempotency key does not have the "
                      "form that it states");
    }

    ctx->error = answer->error;

    return ngx_http_idem_reply_problem(r, answer->problem,
                                       ctx->verdict == IDEM_BUSY
                                       && ctx->code == 0
                                       ? ctx->retry_after
                                       : answer->retry_after_s);
}


/* ---- Replays ---- */


static ngx_int_t
ngx_http_idem_replay(ngx_http_idem_ctx_t *ctx, const struct idem_form *form)
{
    ngx_int_t            rc;
    struct idem_slice    body;
    ngx_http_request_t  *r = ctx->request;

    if (ngx_http_idem_replay_head(r, form) != NGX_OK
        || ngx_http_idem_add_expires(r,
                                     idem_op_record(ctx->begun)->expires_ms)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_idem_replay_body(r, form, &body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (body.len <= NGX_HTTP_IDEM_MEMORY) {

        /* The op has the bytes, and lives as long as the request. */

        rc = ngx_http_idem_body_borrow(r, &ctx->body, body);

    } else {

        /* A large one goes into a file, so that many do not fill the memory. */

        rc = ngx_http_idem_body_add(r, &ctx->body,
                                    (u_char *) body.base, body.len, body.len);

        if (rc == NGX_OK) {
            idem_op_destroy(ctx->begun);
            ctx->begun = NULL;

        } else {

            /* The disk is full: it stays in memory. */

            ngx_memzero(&ctx->body, sizeof(ctx->body));
            rc = ngx_http_idem_body_borrow(r, &ctx->body, body);
        }
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* The header is complete, so the filters only send it and the body. */

    ctx->header_done = 1;
    ctx->state = NGX_HTTP_IDEM_SEND;

    r->headers_out.content_length_n = ctx->body.len;
    r->disable_not_modified = 1;
    r->allow_ranges = 0;

    if (r->headers_out.status == NGX_HTTP_NO_CONTENT) {
        r->headers_out.content_length_n = -1;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        ctx->state = NGX_HTTP_IDEM_REPLY;
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    r->buffered |= NGX_HTTP_IDEM_BUFFERED;
    ngx_http_finalize_request(r, ngx_http_output_filter(r, NULL));
    return NGX_DONE;
}


/* The bytes of standard output in one piece: a copy, if they have frames. */

static ngx_int_t
ngx_http_idem_replay_body(ngx_http_request_t *r, const struct idem_form *form,
    struct idem_slice *body)
{
    size_t             pieces = 0, size = 0;
    u_char            *p, *copy;
    enum idem_stream   stream;
    struct idem_slice  rest, piece;

    *body = idem_bytes(NULL, 0);
    rest = form->bytes;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == IDEM_STREAM_STDOUT) {
            *body = piece;
            size += piece.len;
            pieces++;
        }
    }

    if (pieces <= 1) {
        return NGX_OK;
    }

    copy = ngx_pnalloc(r->pool, size);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    p = copy;
    rest = form->bytes;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == IDEM_STREAM_STDOUT) {
            p = ngx_cpymem(p, piece.base, piece.len);
        }
    }

    *body = idem_bytes(copy, size);
    return NGX_OK;
}


/* Reads the bytes of a result that the claim left out for their length. */

static void
ngx_http_idem_fetch(ngx_http_idem_ctx_t *ctx)
{
    size_t                  bytes = ctx->large_bytes;
    struct idem_op         *op;
    struct idem_error       error;
    ngx_http_idem_store_t  *store = ctx->store;

    if (idem_op_get(ngx_http_idem_slice(&ctx->scope),
                    ngx_http_idem_slice(&ctx->key), &op, &error)
        == 0)
    {
        ctx->flight = ngx_http_idem_submit(store, op, ctx,
                                           ngx_http_idem_fetch_done, NULL);
        if (ctx->flight != NULL) {
            ctx->flight->large_bytes = bytes;
            return;
        }
    }

    ctx->code = IDEM_ENOMEM;
    ngx_http_idem_later(ctx, ngx_http_idem_fetch_failed);
}


static void
ngx_http_idem_fetch_failed(ngx_event_t *ev)
{
    ngx_http_idem_ctx_t    *ctx = ev->data;
    size_t                  bytes = ctx->large_bytes;
    ngx_http_idem_store_t  *store = ctx->store;

    ctx->state = NGX_HTTP_IDEM_BEGUN;
    ngx_http_idem_resume(ctx);
    ngx_http_idem_large_release(store, bytes);
}


static void
ngx_http_idem_fetch_done(ngx_http_idem_flight_t *flight)
{
    size_t                     bytes = flight->large_bytes;
    struct idem_op            *op;
    ngx_http_idem_ctx_t       *ctx = flight->ctx;
    const struct idem_record  *record;
    ngx_http_idem_store_t     *store = flight->store;

    if (flight->late) {
        bytes = 0;
    }

    if (ctx != NULL) {
        ctx->flight = NULL;
        ctx->code = flight->code;

        if (flight->code == 0) {
            op = flight->op;
            flight->op = NULL;

            /* A completed record does not change, but it may have expired, and
             * its key may have a new record. */

            record = idem_op_record(op);

            if (record->status == IDEM_STATUS_COMPLETED
                && record->fence == ctx->fence
                && record->result.bytes.len == record->result_len)
            {
                idem_op_destroy(ctx->begun);
                ctx->begun = op;

            } else {
                idem_op_destroy(op);
                ctx->code = IDEM_EUNAVAILABLE;
            }
        }

        ctx->state = NGX_HTTP_IDEM_BEGUN;
        ngx_http_idem_resume(ctx);
    }

    ngx_http_idem_flight_free(flight);
    ngx_http_idem_large_release(store, bytes);
}
