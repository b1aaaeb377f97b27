
/*
 * Answers that are not the upstream's: replays of the record, and problems.
 */


#include "ngx_http_idempotency.h"


/* 9999-12-31 23:59:59 */
#define NGX_HTTP_IDEM_DATE_MAX  253402300799


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


/* ---- Problems ---- */


ngx_int_t
ngx_http_idem_problem_header(ngx_http_request_t *r,
    enum idem_http_problem_kind kind, ngx_str_t *body)
{
    body->data = ngx_pnalloc(r->pool, IDEM_HTTP_PROBLEM_MAX);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    body->len = idem_http_problem_body(kind, (char *) body->data);

    r->headers_out.status = idem_http_problem_of(kind)->status;
    r->headers_out.status_line.len = 0;

    if (kind == IDEM_HTTP_MISMATCH) {

        /* nginx knows no words for it. */

        ngx_str_set(&r->headers_out.status_line, "422 Unprocessable Content");
    }

    r->headers_out.content_length_n = body->len;
    ngx_str_set(&r->headers_out.content_type, IDEM_HTTP_PROBLEM_CONTENT);
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    ngx_str_null(&r->headers_out.charset);

    r->disable_not_modified = 1;
    r->allow_ranges = 0;

    if (ngx_http_idem_add_header(r, "Cache-Control", "no-store",
                                 sizeof("no-store") - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_idem_add_header(r, "X-Content-Type-Options", "nosniff",
                                    sizeof("nosniff") - 1);
}


/* Sends it and ends the request.  @retry_after: -1, none. */

ngx_int_t
ngx_http_idem_reply_problem(ngx_http_request_t *r,
    enum idem_http_problem_kind kind, time_t retry_after)
{
    u_char                number[NGX_TIME_T_LEN];
    ngx_int_t             rc;
    ngx_str_t             body;
    ngx_buf_t            *b;
    ngx_chain_t           out;
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_idem_ctx(r);
    if (ctx != NULL) {
        ctx->state = NGX_HTTP_IDEM_REPLY;
    }

    if (ngx_http_idem_problem_header(r, kind, &body) != NGX_OK) {
        return NGX_ERROR;
    }

    if (retry_after >= 0
        && ngx_http_idem_add_header(r, "Retry-After", (char *) number,
                              ngx_sprintf(number, "%T", retry_after) - number)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    b->pos = body.data;
    b->last = body.data + body.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    ngx_http_finalize_request(r, ngx_http_output_filter(r, &out));
    return NGX_DONE;
}


/* @value is copied. */

ngx_int_t
ngx_http_idem_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 0;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value.len = len;

    h->value.data = ngx_pnalloc(r->pool, len);
    if (h->value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(h->value.data, value, len);
    h->hash = 1;
    h->lowcase_key = NULL;

    return NGX_OK;
}


static void
ngx_http_idem_digits(u_char *p, ngx_uint_t n)
{
    p[0] = (u_char) ('0' + n / 10 % 10);
    p[1] = (u_char) ('0' + n % 10);
}


/*
 * ngx_http_time(), for the years from 1970 to 9999: its ngx_sprintf() is one
 * instruction in thirty of a replay.
 */

static void
ngx_http_idem_date(u_char *p, time_t t)
{
    ngx_tm_t            tm;
    static const char   form[] = "ddd, 00 mmm 0000 00:00:00 GMT";
    static const char   days[] = "SunMonTueWedThuFriSat";
    static const char   months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    ngx_gmtime(t, &tm);

    ngx_memcpy(p, form, sizeof(form) - 1);
    ngx_memcpy(p, &days[3 * tm.ngx_tm_wday], 3);
    ngx_http_idem_digits(p + 5, tm.ngx_tm_mday);
    ngx_memcpy(p + 8, &months[3 * (tm.ngx_tm_mon - 1)], 3);
    ngx_http_idem_digits(p + 12, tm.ngx_tm_year / 100);
    ngx_http_idem_digits(p + 14, tm.ngx_tm_year);
    ngx_http_idem_digits(p + 17, tm.ngx_tm_hour);
    ngx_http_idem_digits(p + 20, tm.ngx_tm_min);
    ngx_http_idem_digits(p + 23, tm.ngx_tm_sec);
}


ngx_int_t
ngx_http_idem_add_expires(ngx_http_request_t *r, int64_t expires_ms)
{
    u_char  date[sizeof("Mon, 28 Sep 1970 06:00:00 GMT") - 1];

    if (expires_ms <= 0 || expires_ms / 1000 > NGX_HTTP_IDEM_DATE_MAX) {
        return NGX_OK;
    }

    ngx_http_idem_date(date, expires_ms / 1000);

    return ngx_http_idem_add_header(r, "Idempotency-Expires", (char *) date,
                                    sizeof(date));
}
