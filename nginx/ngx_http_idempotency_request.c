
/*
 * The key and the scope of a request, the headers that inform the upstream of
 * the attempt, and the copy of the request that its record keeps.
 */


#include "ngx_http_idempotency.h"


/* The longest body of a request that its record keeps. */
#define NGX_HTTP_IDEM_INPUT_MAX  (1024 * 1024)


static ngx_int_t ngx_http_idem_remove_header(ngx_http_request_t *r,
    ngx_list_part_t *part, ngx_uint_t i);


/* Headers that only we may send to an upstream. */

static const char  *ngx_http_idem_ours[] = {
    "idempotency-fence",
    "idempotency-attempts",
    "idempotency-takeover",
    "idempotency-recorded",
    "idempotency-expires",
    "idempotent-replayed",
    NULL
};


/* ---- Key and scope ---- */


/* NGX_OK and the key; or NGX_DECLINED and the problem, or -1: let it pass. */

ngx_int_t
ngx_http_idem_request_key(ngx_http_request_t *r,
    ngx_http_idem_loc_conf_t *conf, ngx_str_t *key, ngx_int_t *problem)
{
    size_t                  len;
    ngx_str_t               value;
    ngx_uint_t              n;
    ngx_table_elt_t        *h;
    struct idem_error       error;
    ngx_http_idem_place_t   place = { &r->headers_in.headers.part, 0 };

    n = 0;
    ngx_str_null(&value);

    if (conf->key_value != NULL) {
        if (ngx_http_complex_value(r, conf->key_value, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        n = value.len > 0;

        if (!ngx_http_idem_once(r, conf->key_value)) {
            n = 2;
        }

    } else {

        /* A variable would show the first of two lines and hide the other. */

        while ((h = ngx_http_idem_next_header(&place)) != NULL) {
            if (h->key.len == conf->key_name.len
                && ngx_strncasecmp(h->key.data, conf->key_name.data, h->key.len)
                   == 0)
            {
                value = h->value;
                n++;
            }
        }
    }

    if (n == 0) {
        *problem = conf->enable == NGX_HTTP_IDEM_REQUIRED
                   ? IDEM_HTTP_KEY_MISSING : -1;
        return NGX_DECLINED;
    }

    if (ngx_http_idem_request_upgrades(r)) {
        *problem = IDEM_HTTP_UPGRADE;
        return NGX_DECLINED;
    }

    key->data = ngx_pnalloc(r->pool, IDEM_KEY_MAX);
    if (key->data == NULL) {
        return NGX_ERROR;
    }

    if (n > 1
        || idem_http_key(ngx_http_idem_slice(&value), (char *) key->data, &len,
                         &error)
           != 0)
    {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent an invalid idempotency key: %s",
                      n > 1 ? "it came more than once" : error.text);
        *problem = IDEM_HTTP_KEY_INVALID;
        return NGX_DECLINED;
    }

    key->len = len;
    return NGX_OK;
}


/* Whether the request asks for a protocol whose answers no record can hold. */

ngx_uint_t
ngx_http_idem_request_upgrades(ngx_http_request_t *r)
{
    return r->headers_in.upgrade != NULL
           && ngx_strncasecmp(r->headers_in.upgrade->value.data,
                              (u_char *) "h2c", sizeof("h2c"))
              != 0;
}


/* An empty scope must never become the global one. */

ngx_int_t
ngx_http_idem_request_scope(ngx_http_request_t *r,
    ngx_http_idem_loc_conf_t *conf, ngx_str_t *scope, ngx_int_t *problem)
{
    ngx_str_null(scope);

    if (conf->scope_global) {
        return NGX_OK;
    }

    if (!ngx_http_idem_once(r, conf->scope)) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent several values for the scope of an "
                      "idempotency key");
        *problem = IDEM_HTTP_SCOPE_AMBIGUOUS;
        return NGX_DECLINED;
    }

    if (ngx_http_complex_value(r, conf->scope, scope) != NGX_OK
        || scope->len == 0 || scope->len > IDEM_SCOPE_MAX)
    {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "the scope of an idempotency key is empty or longer "
                      "than %d bytes", IDEM_SCOPE_MAX);
        *problem = IDEM_HTTP_SCOPE_MISSING;
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* ---- Headers for the upstream ---- */


ngx_int_t
ngx_http_idem_request_strip(ngx_http_request_t *r)
{
    const char             **name;
    ngx_table_elt_t         *h;
    ngx_http_idem_place_t    place = { &r->headers_in.headers.part, 0 };

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {

        if (h->key.len < sizeof("idempot") - 1
            || (h->key.data[0] | 0x20) != 'i'
            || (h->key.data[6] | 0x20) != 't')
        {
            continue;
        }

        for (name = ngx_http_idem_ours; *name != NULL; name++) {
            if (!ngx_http_idem_is(&h->key, *name)) {
                continue;
            }

            if (ngx_http_idem_remove_header(r, place.part, place.i - 1)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            place.part = &r->headers_in.headers.part;
            place.i = 0;
            break;
        }
    }

    return NGX_OK;
}


/* Others point to the elements of the list, so none of them may move. */

static ngx_int_t
ngx_http_idem_remove_header(ngx_http_request_t *r, ngx_list_part_t *part,
    ngx_uint_t i)
{
    ngx_list_t       *list = &r->headers_in.headers;
    ngx_list_part_t  *rest, *prev;
    ngx_table_elt_t  *h;

    h = part->elts;

    if (part->nelts == 1 && part != &list->part) {

        /* nginx's readers of a list expect no empty part after the first. */

        for (prev = &list->part; prev->next != part; prev = prev->next) {
            /* void */
        }

        prev->next = part->next;

        if (list->last == part) {
            list->last = prev;
            list->nalloc = ngx_max(prev->nelts, 1);
        }

        return NGX_OK;
    }

    if (i == part->nelts - 1) {
        part->nelts--;
        return NGX_OK;
    }

    if (i == 0) {
        part->elts = &h[1];
        part->nelts--;

        if (list->last == part) {
            list->nalloc = part->nelts;
        }

        return NGX_OK;
    }

    rest = ngx_palloc(r->pool, sizeof(ngx_list_part_t));
    if (rest == NULL) {
        return NGX_ERROR;
    }

    rest->elts = &h[i + 1];
    rest->nelts = part->nelts - i - 1;
    rest->next = part->next;

    part->nelts = i;
    part->next = rest;

    if (list->last == part) {

        /* The part begins in the middle of its memory: it must not grow. */

        list->last = rest;
        list->nalloc = rest->nelts;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_push_header(ngx_http_request_t *r, const char *name,
    u_char *value, size_t len)
{
    size_t            name_len;
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_in.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    name_len = ngx_strlen(name);

    h->key.len = name_len;
    h->key.data = (u_char *) name;
    h->value.len = len;
    h->value.data = value;

    h->lowcase_key = ngx_pnalloc(r->pool, name_len);
    if (h->lowcase_key == NULL) {
        return NGX_ERROR;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, h->key.data, name_len);

    return NGX_OK;
}


ngx_int_t
ngx_http_idem_request_chain(ngx_http_idem_ctx_t *ctx)
{
    u_char              *p, *last;
    ngx_http_request_t  *r = ctx->request;

    p = ngx_pnalloc(r->pool, 2 * NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_sprintf(p, "%uL", ctx->fence);

    if (ngx_http_idem_push_header(r, "Idempotency-Fence", p, last - p)
        != NGX_OK
        || ngx_http_idem_push_header(r, "Idempotency-Attempts", last,
                              ngx_sprintf(last, "%ui", ctx->attempts) - last)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!ctx->takeover) {
        return NGX_OK;
    }

    return ngx_http_idem_push_header(r, "Idempotency-Takeover",
                                     (u_char *) "true", sizeof("true") - 1);
}


/* ---- The request in its record ---- */


/* Copies ctx->body_len bytes of the body and returns where they end; or NULL. */

u_char *
ngx_http_idem_request_copy(ngx_http_idem_ctx_t *ctx, u_char *p)
{
    off_t         size;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    for (cl = ctx->request->request_body->bufs; cl != NULL; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        /* An empty body is a buffer without a file. */

        size = ngx_buf_size(b);

        if (size > 0) {
            if (ngx_read_file(b->file, p, (size_t) size, b->file_pos) != size) {
                return NULL;
            }

            p += size;
        }
    }

    return p;
}


ngx_int_t
ngx_http_idem_request_input(ngx_http_idem_ctx_t *ctx, ngx_str_t *input)
{
    size_t               len;
    u_char              *p;
    ngx_str_t            type;
    ngx_http_request_t  *r = ctx->request;

    ngx_str_null(input);
    ngx_str_set(&type, "-");

    if (r->headers_in.content_type != NULL) {
        type = r->headers_in.content_type->value;
    }

    len = r->method_name.len + r->unparsed_uri.len + r->headers_in.server.len
          + type.len + sizeof("  HTTP/1.1\r\nHost: \r\nContent-Type: \r\n\r\n");

    if (ctx->body_len > NGX_HTTP_IDEM_INPUT_MAX) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "a request is too large to be kept with its record");
        return NGX_OK;
    }

    input->data = ngx_pnalloc(r->pool, len + ctx->body_len);
    if (input->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(input->data,
                    "%V %V HTTP/1.1\r\nHost: %V\r\nContent-Type: %V\r\n\r\n",
                    &r->method_name, &r->unparsed_uri, &r->headers_in.server,
                    &type);

    p = ngx_http_idem_request_copy(ctx, p);
    if (p == NULL) {
        return NGX_ERROR;
    }

    input->len = p - input->data;
    return NGX_OK;
}
