
/*
 * Problem bodies (RFC 9457), and headers that the module adds to answers.
 */


#include "ngx_http_idempotency.h"


/* 9999-12-31 23:59:59 */
#define NGX_HTTP_IDEM_DATE_MAX  253402300799


ngx_int_t
ngx_http_idem_problem_header(ngx_http_request_t *r,
    enum idem_http_problem_kind kind, ngx_str_t *body)
{
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_idem_ctx(r);

    body->data = ngx_pnalloc(r->pool, IDEM_HTTP_PROBLEM_MAX);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    body->len = idem_http_problem_body(kind,
                                  ctx != NULL ? ctx->error : idem_bytes(NULL, 0),
                                       (char *) body->data);

    r->headers_out.status = idem_http_problem_of(kind)->status;
    r->headers_out.status_line.len = 0;

    if (kind == IDEM_HTTP_MISMATCH) {

        /* nginx has no reason phrase for it. */

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


/* Sends the problem and ends the request.  @retry_after: seconds; 0: none. */

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

    if (retry_after > 0
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


/* ---- Headers ---- */


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
 * Does the work of ngx_http_time() for the years from 1970 to 9999.  The
 * ngx_sprintf() in there would be one instruction in thirty of a replay.
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
