
/*
 * Key and fingerprint that selectors select from the request.
 */


#include "ngx_http_idempotency.h"


/* Selectors take no larger body. */
#define NGX_HTTP_IDEM_SELECT_MAX   (16 * 1024 * 1024)


static ngx_int_t ngx_http_idem_select_from(ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_select_t *select, struct idem_selector_request *request);
static ngx_int_t ngx_http_idem_select_headers(ngx_http_request_t *r,
    ngx_array_t *headers);
static ngx_int_t ngx_http_idem_select_body(ngx_http_idem_ctx_t *ctx,
    ngx_str_t *body, u_char **memory);
static ngx_int_t ngx_http_idem_select_refuse(ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_select_t *select, int code, struct idem_error *error);


/* NGX_OK: key and fingerprint are in @ctx as far as the location selects them.
 * NGX_DONE: the request is answered.  Else the status to finalize it with. */

ngx_int_t
ngx_http_idem_select(ngx_http_idem_ctx_t *ctx)
{
    u_char                        *memory;
    ngx_int_t                      rc;
    ngx_str_t                      body;
    ngx_array_t                    headers;
    ngx_http_request_t            *r = ctx->request;
    ngx_http_idem_loc_conf_t      *conf = ctx->conf;
    struct idem_selector_request   request;

    if (conf->key_from == NULL && conf->fingerprint_from == NULL) {
        return NGX_OK;
    }

    if (ctx->body_len > NGX_HTTP_IDEM_SELECT_MAX) {
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_TOO_LARGE, 0);
    }

    if (ngx_array_init(&headers, r->pool, 16,
                       sizeof(struct idem_selector_header))
        != NGX_OK
        || ngx_http_idem_select_headers(r, &headers) != NGX_OK
        || ngx_http_idem_select_body(ctx, &body, &memory) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    request.method = ngx_http_idem_slice(&r->method_name);
    request.target = ngx_http_idem_slice(&r->unparsed_uri);
    request.headers = headers.elts;
    request.headers_len = headers.nelts;
    request.body = ngx_http_idem_slice(&body);

    rc = NGX_OK;

    if (conf->key_from != NULL) {
        rc = ngx_http_idem_select_from(ctx, conf->key_from, &request);
    }

    if (rc == NGX_OK && conf->fingerprint_from != NULL) {
        rc = ngx_http_idem_select_from(ctx, conf->fingerprint_from, &request);
    }

    if (memory != NULL) {
        ngx_free(memory);
    }

    return rc;
}


static ngx_int_t
ngx_http_idem_select_from(ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_select_t *select, struct idem_selector_request *request)
{
    int                    rc;
    ngx_str_t             *to;
    struct idem_error      error;
    struct idem_slice      output;
    struct idem_key_text   key;

    to = select->fingerprint ? &ctx->selected : &ctx->key;
    rc = idem_selector_run_request(select->selector, request, &error);

    if (rc != 0) {
        return ngx_http_idem_select_refuse(ctx, select, rc, &error);
    }

    if (select->fingerprint) {
        rc = idem_selector_values(select->selector, &output, &error);

    } else {
        rc = idem_key_of(select->selector, &key, &error);
        output = idem_bytes(key.text, key.len);
    }

    if (rc != 0) {
        return ngx_http_idem_select_refuse(ctx, select, rc, &error);
    }

    to->data = ngx_pnalloc(ctx->request->pool, output.len);

    if (to->data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    to->len = output.len;
    ngx_memcpy(to->data, output.base, output.len);

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_select_headers(ngx_http_request_t *r, ngx_array_t *headers)
{
    ngx_table_elt_t              *h;
    ngx_http_idem_place_t         place = { &r->headers_in.headers.part, 0 };
    struct idem_selector_header  *header;

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {
        header = ngx_array_push(headers);
        if (header == NULL) {
            return NGX_ERROR;
        }

        header->name = ngx_http_idem_slice(&h->key);
        header->value = ngx_http_idem_slice(&h->value);
    }

    return NGX_OK;
}


/* The body in one piece. The caller frees *@memory unless it is NULL. */

static ngx_int_t
ngx_http_idem_select_body(ngx_http_idem_ctx_t *ctx, ngx_str_t *body,
    u_char **memory)
{
    u_char       *p;
    ngx_chain_t  *cl = ctx->request->request_body->bufs;

    *memory = NULL;
    body->len = 0;
    body->data = (u_char *) "";

    if (cl == NULL) {
        return NGX_OK;
    }

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        body->data = cl->buf->pos;
        body->len = cl->buf->last - cl->buf->pos;
        return NGX_OK;
    }

    p = ngx_alloc(ngx_max(ctx->body_len, 1), ctx->request->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_idem_request_copy(ctx, p) == NULL) {
        ngx_free(p);
        return NGX_ERROR;
    }

    *memory = p;
    body->data = p;
    body->len = (size_t) ctx->body_len;

    return NGX_OK;
}


/* Without memory a later try may succeed; else the request itself is wrong. */

static ngx_int_t
ngx_http_idem_select_refuse(ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_select_t *select, int code, struct idem_error *error)
{
    ngx_uint_t  level = code == IDEM_ENOMEM ? NGX_LOG_ERR : NGX_LOG_INFO;

    ngx_log_error(level, ctx->request->connection->log, 0,
                  "idempotency_%s_from %V: %s",
                  select->fingerprint ? "fingerprint" : "key", &select->text,
                  error->text);

    if (code == IDEM_ENOMEM) {
        return ngx_http_idem_reply_problem(ctx->request, IDEM_HTTP_UNAVAILABLE,
                                           1);
    }

    return ngx_http_idem_reply_problem(ctx->request,
                                       select->fingerprint
                                       ? IDEM_HTTP_FINGERPRINT_UNSELECTED
                                       : IDEM_HTTP_KEY_UNSELECTED, 0);
}
