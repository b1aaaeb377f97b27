
/*
 * The fingerprint of a request: a hash of its parts and its body.  A body in a
 * file is hashed over several turns of the loop.
 */


#include "ngx_http_idempotency.h"


/* Bytes of a body in a file that one turn of the loop hashes. */
#define NGX_HTTP_IDEM_HASH_TURN  (256 * 1024)


static ngx_uint_t ngx_http_idem_body_whole(ngx_http_idem_ctx_t *ctx,
    struct idem_slice *body);
static ngx_int_t ngx_http_idem_request_hash_whole(ngx_http_idem_ctx_t *ctx,
    ngx_array_t *parts, struct idem_slice body);
static ngx_int_t ngx_http_idem_request_parts(ngx_http_idem_ctx_t *ctx,
    ngx_array_t *parts);


ngx_int_t
ngx_http_idem_request_hash(ngx_http_idem_ctx_t *ctx)
{
    int                        rc;
    off_t                      left;
    size_t                     size, turn;
    ssize_t                    n;
    u_char                    *piece;
    ngx_buf_t                 *b;
    ngx_array_t                parts;
    struct idem_slice          whole;
    ngx_http_request_t        *r = ctx->request;
    ngx_http_idem_loc_conf_t  *conf = ctx->conf;

    if (conf->fingerprint & NGX_HTTP_IDEM_FP_OFF) {
        return NGX_OK;
    }

    if (ctx->print == NULL) {
        if (ngx_array_init(&parts, r->pool, 16, sizeof(struct idem_slice))
            != NGX_OK
            || ngx_http_idem_request_parts(ctx, &parts) != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (ngx_http_idem_body_whole(ctx, &whole)) {
            return ngx_http_idem_request_hash_whole(ctx, &parts, whole);
        }

        rc = idem_http_fingerprint_create(parts.elts, parts.nelts,
                                 ngx_http_idem_value(r->headers_in.content_type),
                                          ctx->body_len,
                                   ngx_http_idem_slice(&conf->fingerprint_secret),
                                          &ctx->print);
        if (rc != 0) {
            return NGX_ERROR;
        }
    }

    turn = 0;
    piece = NULL;

    while (ctx->print_chain != NULL) {
        b = ctx->print_chain->buf;

        if (ngx_buf_in_memory(b)) {
            idem_http_fingerprint_add(ctx->print,
                                      idem_bytes(b->pos, b->last - b->pos));
            ctx->print_chain = ctx->print_chain->next;
            continue;
        }

        left = b->file_last - b->file_pos - ctx->print_pos;

        if (left <= 0) {
            ctx->print_chain = ctx->print_chain->next;
            ctx->print_pos = 0;
            continue;
        }

        if (turn >= NGX_HTTP_IDEM_HASH_TURN) {
            return NGX_AGAIN;
        }

        size = left < 65536 ? (size_t) left : 65536;

        if (piece == NULL) {
            piece = ngx_palloc(r->pool, 65536);
            if (piece == NULL) {
                return NGX_ERROR;
            }
        }

        n = ngx_read_file(b->file, piece, size, b->file_pos + ctx->print_pos);

        if (n != (ssize_t) size) {
            return NGX_ERROR;
        }

        idem_http_fingerprint_add(ctx->print, idem_bytes(piece, size));
        ctx->print_pos += n;
        turn += n;
    }

    if (piece != NULL) {
        (void) ngx_pfree(r->pool, piece);
    }

    rc = idem_http_fingerprint_end(ctx->print, ctx->fingerprint);
    ctx->print = NULL;

    if (rc != 0) {
        return NGX_ERROR;
    }

    ctx->has_fingerprint = 1;
    return NGX_OK;
}


/*
 * Whether one call can hash the whole body, which is the usual case: it is in
 * memory in one piece, or empty, or not a part of the fingerprint.
 */

static ngx_uint_t
ngx_http_idem_body_whole(ngx_http_idem_ctx_t *ctx, struct idem_slice *body)
{
    ngx_chain_t  *cl = ctx->print_chain;

    *body = idem_bytes(NULL, 0);

    /* A selected value takes the place of the body. */

    if (cl == NULL || ctx->selected.data != NULL
        || !(ctx->conf->fingerprint & NGX_HTTP_IDEM_FP_BODY))
    {
        return 1;
    }

    if (cl->next != NULL || !ngx_buf_in_memory(cl->buf)) {
        return 0;
    }

    *body = idem_bytes(cl->buf->pos, cl->buf->last - cl->buf->pos);
    return 1;
}


static ngx_int_t
ngx_http_idem_request_hash_whole(ngx_http_idem_ctx_t *ctx, ngx_array_t *parts,
    struct idem_slice body)
{
    int                rc;
    struct idem_slice  secret;

    secret = ngx_http_idem_slice(&ctx->conf->fingerprint_secret);

    if (ctx->selected.data != NULL) {
        rc = idem_http_fingerprint_selected(parts->elts, parts->nelts,
                                        ngx_http_idem_slice(&ctx->selected),
                                            secret, ctx->fingerprint);

    } else {
        rc = idem_http_fingerprint(parts->elts, parts->nelts,
                          ngx_http_idem_value(ctx->request->headers_in.content_type),
                                   body, secret, ctx->fingerprint);
    }

    if (rc != 0) {
        return NGX_ERROR;
    }

    ctx->has_fingerprint = 1;
    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_add_part(ngx_array_t *parts, const char *name,
    const ngx_str_t *value)
{
    struct idem_slice  *part;

    part = ngx_array_push_n(parts, 2);
    if (part == NULL) {
        return NGX_ERROR;
    }

    part[0] = idem_str(name);
    part[1] = ngx_http_idem_slice(value);

    return NGX_OK;
}


/* The name of each part is hashed too, so that other rules give another
 * fingerprint. */

static ngx_int_t
ngx_http_idem_request_parts(ngx_http_idem_ctx_t *ctx, ngx_array_t *parts)
{
    u_char                     *p, *last;
    ngx_str_t                   path, query, value;
    ngx_uint_t                  i;
    ngx_http_request_t         *r = ctx->request;
    ngx_http_idem_loc_conf_t   *conf = ctx->conf;
    ngx_http_complex_value_t  **values;

    struct {
        ngx_uint_t        bit;
        const char       *name;
        const ngx_str_t  *value;
    } named[] = {
        { NGX_HTTP_IDEM_FP_METHOD, "method", &r->method_name },
        { NGX_HTTP_IDEM_FP_HOST, "host", &r->headers_in.server },
        { NGX_HTTP_IDEM_FP_PATH, "path", &path },
        { NGX_HTTP_IDEM_FP_QUERY, "no query", &query }
    };

    static ngx_str_t  form = ngx_string("multipart/form-data");

    ngx_str_null(&value);
    ngx_str_null(&query);
    path = r->unparsed_uri;

    p = ngx_strlchr(path.data, path.data + path.len, '?');

    if (p != NULL) {
        query.data = p + 1;
        query.len = path.data + path.len - query.data;
        path.len = p - path.data;
        named[3].name = "query";
    }

    if (ngx_http_idem_add_part(parts, "idem-http1", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        if ((conf->fingerprint & named[i].bit)
            && ngx_http_idem_add_part(parts, named[i].name, named[i].value)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (conf->fingerprint & NGX_HTTP_IDEM_FP_CONTENT_TYPE) {
        if (r->headers_in.content_type != NULL) {
            value = r->headers_in.content_type->value;

            /* A client may choose a new boundary for each try. */

            if (value.len > form.len
                && ngx_strncasecmp(value.data, form.data, form.len) == 0)
            {
                p = value.data + form.len;
                last = value.data + value.len;

                while (p < last && (*p == ' ' || *p == '\t')) {
                    p++;
                }

                if (p == last || *p == ';') {
                    value = form;
                }
            }
        }

        if (ngx_http_idem_add_part(parts, "content-type", &value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (conf->fingerprint_values == NULL) {
        return NGX_OK;
    }

    values = conf->fingerprint_values->elts;

    for (i = 0; i < conf->fingerprint_values->nelts; i++) {
        if (ngx_http_complex_value(r, values[i], &value) != NGX_OK
            || ngx_http_idem_add_part(parts, "value", &value) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
