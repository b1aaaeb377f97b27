
/*
 * What a verdict of the store comes to: a replay of the record, or a problem.
 */


#include "ngx_http_idempotency.h"


static ngx_int_t ngx_http_idem_refused(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_busy(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_replay(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_fetch(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_fetch_failed(ngx_event_t *ev);
static void ngx_http_idem_fetch_done(ngx_http_idem_flight_t *flight);
static ngx_int_t ngx_http_idem_replay_headers(ngx_http_request_t *r,
    const struct idem_result *result);
static ngx_uint_t ngx_http_idem_acceptable(ngx_http_request_t *r);
static ngx_int_t ngx_http_idem_copy_header(ngx_http_request_t *r,
    struct idem_slice name, struct idem_slice value);


/* ---- Verdicts ---- */


ngx_int_t
ngx_http_idem_reply_verdict(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t  *r = ctx->request;

    if (ctx->code != 0) {
        return ngx_http_idem_refused(ctx);
    }

    if (ctx->limited) {
        return ngx_http_idem_limit_refuse(ctx);
    }

    switch (ctx->verdict) {

    case IDEM_STARTED:
        ctx->verdict_name = "started";
        return ngx_http_idem_own(ctx);

    case IDEM_REPLAY:
        return ngx_http_idem_replay(ctx);

    case IDEM_BUSY:
        return ngx_http_idem_busy(ctx);

    case IDEM_MISMATCH:
        ngx_http_idem_count(mismatch);
        ctx->verdict_name = "mismatch";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_MISMATCH, -1);

    case IDEM_FAILED:
        ngx_http_idem_count(found_failed);
        ctx->verdict_name = "failed";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_FAILED, -1);

    case IDEM_UNKNOWN:
        ngx_http_idem_count(found_unknown);
        ctx->verdict_name = "unknown";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_OUTCOME_UNKNOWN, -1);

    default: /* IDEM_RELEASED */

        /* A waiter whose attempt was given up may come again at once. */

        ngx_http_idem_count(busy);
        ctx->verdict_name = "released";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_IN_PROGRESS, 1);
    }
}


static ngx_int_t
ngx_http_idem_refused(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t  *r = ctx->request;

    if (ctx->code == IDEM_ECORRUPT) {
        ngx_http_idem_count(corrupt);
        ctx->verdict_name = "corrupt";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_CORRUPT, -1);
    }

    if (ctx->conf->store_error && !ctx->waits) {
        ngx_http_idem_count(passed);
        ctx->verdict_name = "passed";
        ctx->unguarded = 1;
        ctx->state = NGX_HTTP_IDEM_OWNER;
        return NGX_DECLINED;
    }

    ngx_http_idem_count(unavailable);
    ctx->verdict_name = "unavailable";
    return ngx_http_idem_reply_problem(r, IDEM_HTTP_UNAVAILABLE, 1);
}


static ngx_int_t
ngx_http_idem_busy(ngx_http_idem_ctx_t *ctx)
{
    time_t     left;
    ngx_int_t  rc;

    rc = ngx_http_idem_wait(ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    left = (time_t) ((ctx->lease_left + 999) / 1000);

    ngx_http_idem_count(busy);
    ctx->verdict_name = "busy";
    return ngx_http_idem_reply_problem(ctx->request, IDEM_HTTP_IN_PROGRESS,
                                       ngx_max(left, 1));
}


/* ---- Replays ---- */


static ngx_int_t
ngx_http_idem_replay(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r = ctx->request;
    const struct idem_record  *record;
    const struct idem_result  *result;

    record = idem_op_record(ctx->begun);
    result = &record->result;

    if (result->not_kept) {
        ngx_http_idem_count(not_kept);
        ctx->verdict_name = "not-kept";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_NOT_KEPT, -1);
    }

    if (result->bytes.len < record->result_len) {
        ctx->state = NGX_HTTP_IDEM_FETCH;
        ngx_http_idem_hold(ctx);
        ngx_http_idem_large_acquire(ctx,
                             (size_t) (record->result_len + record->input_len),
                             ngx_http_idem_fetch);
        return NGX_DONE;
    }

    rc = ngx_http_idem_replay_headers(r, result);

    if (rc == NGX_DECLINED) {
        ngx_http_clean_header(r);
        ngx_http_idem_count(corrupt);
        ctx->verdict_name = "corrupt";
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the record of an idempotency key is no HTTP response");
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_CORRUPT, -1);
    }

    if (rc != NGX_OK
        || ngx_http_idem_add_header(r, "Idempotent-Replayed", "true", 4)
           != NGX_OK
        || ngx_http_idem_add_expires(r, record->expires_ms) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ngx_http_idem_acceptable(r)) {
        ngx_http_clean_header(r);
        ctx->verdict_name = "not-acceptable";
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_NOT_ACCEPTABLE, -1);
    }

    ngx_http_idem_count(replayed);
    ctx->verdict_name = "replayed";

    if (result->bytes.len <= NGX_HTTP_IDEM_MEMORY) {

        /* It is sent from the op, which lives as long as the request. */

        rc = ngx_http_idem_body_borrow(r, &ctx->body, result->bytes);

    } else {

        /* A large one goes into a file, so that many of them fit. */

        rc = ngx_http_idem_body_add(r, &ctx->body,
                                    (u_char *) result->bytes.base,
                                    result->bytes.len, result->bytes.len);
        idem_op_destroy(ctx->begun);
        ctx->begun = NULL;
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* The filters find it in SEND with a header that is there already. */

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


/* Reads a record that is too large to come unasked. */

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
    ctx->turn.data = ctx;
    ctx->turn.handler = ngx_http_idem_fetch_failed;
    ctx->turn.log = ctx->request->connection->log;
    ngx_post_event(&ctx->turn, &ngx_posted_next_events);
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

            /* A completed record does not change; but it may have expired. */

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


static ngx_int_t
ngx_http_idem_replay_headers(ngx_http_request_t *r,
    const struct idem_result *result)
{
    int                rc, status;
    u_char            *p;
    ngx_uint_t         cache_control;
    struct idem_slice  rest, name, value;

    if (idem_http_head_read(result->meta, &status, &rest) != 0) {
        return NGX_DECLINED;
    }

    r->headers_out.status = status;
    cache_control = 0;

    if (result->content_type.len > 0) {
        if (!idem_http_header_valid(idem_str("Content-Type"),
                                    result->content_type))
        {
            return NGX_DECLINED;
        }

        p = ngx_pnalloc(r->pool, result->content_type.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, result->content_type.base, result->content_type.len);

        r->headers_out.content_type.data = p;
        r->headers_out.content_type.len = result->content_type.len;
        r->headers_out.content_type_len = result->content_type.len;
        r->headers_out.content_type_lowcase = NULL;

        p = ngx_strlchr(p, p + result->content_type.len, ';');

        if (p != NULL) {
            while (p > r->headers_out.content_type.data && p[-1] == ' ') {
                p--;
            }

            r->headers_out.content_type_len =
                                      p - r->headers_out.content_type.data;
        }
    }

    while (idem_http_head_next(&rest, &name, &value, &rc)) {
        if (ngx_http_idem_copy_header(r, name, value) != NGX_OK) {
            return NGX_ERROR;
        }

        cache_control |= (name.len == sizeof("Cache-Control") - 1
                          && ngx_strncasecmp((u_char *) name.base,
                                             (u_char *) "Cache-Control",
                                             name.len)
                             == 0);
    }

    if (rc != 0) {
        return NGX_DECLINED;
    }

    if (!cache_control) {
        return ngx_http_idem_add_header(r, "Cache-Control", "no-store",
                                        sizeof("no-store") - 1);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_copy_header(ngx_http_request_t *r, struct idem_slice name,
    struct idem_slice value)
{
    u_char           *p;
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 0;

    p = ngx_pnalloc(r->pool, 2 * name.len + value.len + 3);
    if (p == NULL) {
        return NGX_ERROR;
    }

    h->key.data = p;
    h->key.len = name.len;
    p = ngx_cpymem(p, name.base, name.len);
    *p++ = '\0';

    h->lowcase_key = p;
    ngx_strlow(p, h->key.data, name.len);
    p += name.len;
    *p++ = '\0';

    h->value.data = p;
    h->value.len = value.len;
    p = ngx_cpymem(p, value.base, value.len);
    *p = '\0';

    h->hash = 1;

    /* What other filters ask for.  Not Location: nginx would make it absolute. */

    switch (name.len) {

    case sizeof("etag") - 1:
        if (ngx_strcmp(h->lowcase_key, "etag") == 0) {
            r->headers_out.etag = h;
        }
        break;

    case sizeof("last-modified") - 1:
        if (ngx_strcmp(h->lowcase_key, "last-modified") == 0) {
            r->headers_out.last_modified = h;
        }
        break;

    case sizeof("content-encoding") - 1:
        if (ngx_strcmp(h->lowcase_key, "content-encoding") == 0) {
            r->headers_out.content_encoding = h;
        }
        break;
    }

    return NGX_OK;
}


/* The record has one encoding, and a retry may come from another client. */

static ngx_uint_t
ngx_http_idem_acceptable(ngx_http_request_t *r)
{
    ngx_str_t         accepted;
    ngx_table_elt_t  *h = r->headers_out.content_encoding;

    if (h == NULL || h->value.len == 0
        || ngx_strcasecmp(h->value.data, (u_char *) "identity") == 0)
    {
        return 1;
    }

    if (r->headers_in.accept_encoding == NULL) {
        return 0;
    }

    accepted = r->headers_in.accept_encoding->value;

    return ngx_strlcasestrn(accepted.data, accepted.data + accepted.len,
                            h->value.data, h->value.len - 1)
           != NULL
           || ngx_strlchr(accepted.data, accepted.data + accepted.len, '*')
              != NULL;
}
