
/*
 * The head of an answer: which of it is recorded, and how the record becomes
 * the head of a replay.
 */


#include "ngx_http_idempotency.h"


static ngx_int_t ngx_http_idem_copy_header(ngx_http_request_t *r,
    struct idem_slice name, struct idem_slice value);


/* ---- Recorded ---- */


static ngx_uint_t
ngx_http_idem_is_ours(ngx_str_t *name)
{
    return (name->len > sizeof("Idempotency-") - 1
            && ngx_strncasecmp(name->data, (u_char *) "Idempotency-",
                               sizeof("Idempotency-") - 1)
               == 0)
           || ngx_http_idem_is(name, "Idempotent-Replayed");
}


ngx_int_t
ngx_http_idem_record_head(ngx_http_idem_ctx_t *ctx)
{
    int                     rc;
    size_t                  size;
    u_char                 *p;
    ngx_uint_t              pass;
    ngx_table_elt_t        *h;
    ngx_http_request_t     *r = ctx->request;
    struct idem_result     *result = &ctx->outcome.result;
    ngx_http_idem_place_t   place;

    size = sizeof("HTTP 200\n" IDEM_META_COMPLETE);
    rc = 0;

    for (pass = 0; pass < 2; pass++) {

        if (pass == 1) {
            p = ngx_pnalloc(r->pool, size);
            if (p == NULL) {
                return NGX_ERROR;
            }

            rc = idem_http_head_open(&ctx->head, (char *) p, size,
                                     r->headers_out.status);

            if (rc == 0 && ctx->named) {
                rc = idem_http_head_complete(&ctx->head);
            }
        }

        place.part = &r->headers_out.headers.part;
        place.i = 0;

        while (rc == 0 && (h = ngx_http_idem_next_header(&place)) != NULL) {

            if (h->hash != 0 && ngx_http_idem_is_ours(&h->key)) {

                /* Only the gateway may report to the client about the key. */

                h->hash = 0;
            }

            if (h->hash == 0
                || !idem_http_header_kept(ngx_http_idem_slice(&h->key),
                                          ctx->conf->replay_headers))
            {
                continue;
            }

            if (pass == 0) {
                size += h->key.len + h->value.len + 3;
                continue;
            }

            rc = idem_http_head_add(&ctx->head, ngx_http_idem_slice(&h->key),
                                    ngx_http_idem_slice(&h->value));

            if (rc == IDEM_EINVALID) {
                ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                              "a header of the response is not valid, and not "
                              "recorded: \"%V\"", &h->key);
                rc = 0;
            }
        }
    }

    size = r->headers_out.content_type.len;
    p = r->headers_out.content_type.data;

    if (r->headers_out.content_type_len == size
        && r->headers_out.charset.len > 0)
    {
        p = ngx_pnalloc(r->pool, size + sizeof("; charset=") - 1
                                 + r->headers_out.charset.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        size = ngx_sprintf(p, "%V; charset=%V", &r->headers_out.content_type,
                           &r->headers_out.charset)
               - p;
    }

    if (rc != 0 || size > 255) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "the headers of a response are too large to keep");
        ngx_http_idem_not_kept(ctx);
        return NGX_OK;
    }

    result->content_type = idem_bytes(p, size);
    result->meta = idem_bytes(ctx->head.base, ctx->head.len);

    return NGX_OK;
}


/* ---- Replayed ---- */


ngx_int_t
ngx_http_idem_replay_head(ngx_http_request_t *r, const struct idem_form *form)
{
    u_char                   *p;
    struct idem_slice         name, value, type;
    struct idem_http_replay   replay;

    r->headers_out.status = form->http_status;
    type = idem_form_content_type(form);

    if (type.len > 0) {
        p = ngx_pnalloc(r->pool, type.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, type.base, type.len);

        r->headers_out.content_type.data = p;
        r->headers_out.content_type.len = type.len;
        r->headers_out.content_type_len = type.len;
        r->headers_out.content_type_lowcase = NULL;

        p = ngx_strlchr(p, p + type.len, ';');

        if (p != NULL) {
            while (p > r->headers_out.content_type.data && p[-1] == ' ') {
                p--;
            }

            r->headers_out.content_type_len =
                                      p - r->headers_out.content_type.data;
        }
    }

    ngx_memzero(&replay, sizeof(struct idem_http_replay));
    replay.form = form;
    replay.rest = form->headers;

    while (idem_http_replay_next(&replay, &name, &value)) {
        if (ngx_http_idem_copy_header(r, name, value) != NGX_OK) {
            return NGX_ERROR;
        }
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

    p = ngx_pnalloc(r->pool, name.len + value.len + 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    h->key.data = p;
    h->key.len = name.len;
    p = ngx_cpymem(p, name.base, name.len);
    *p++ = '\0';

    h->lowcase_key = NULL;
    h->value.data = p;
    h->value.len = value.len;
    p = ngx_cpymem(p, value.base, value.len);
    *p = '\0';

    h->hash = 1;

    /* Other filters find these by pointer.  Location gets none, because nginx
     * would make it absolute. */

    if (ngx_http_idem_is(&h->key, "ETag")) {
        r->headers_out.etag = h;

    } else if (ngx_http_idem_is(&h->key, "Last-Modified")) {
        r->headers_out.last_modified = h;

    } else if (ngx_http_idem_is(&h->key, "Content-Encoding")) {
        r->headers_out.content_encoding = h;
    }

    return NGX_OK;
}
