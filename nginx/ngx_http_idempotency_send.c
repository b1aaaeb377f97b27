
/*
 * Sends an answer after its outcome was recorded, or could not be.
 */


#include "ngx_http_idempotency.h"


static ngx_int_t ngx_http_idem_send_header(ngx_http_idem_ctx_t *ctx);


ngx_int_t
ngx_http_idem_send(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_chain_t         *held;
    ngx_http_request_t  *r = ctx->request;

    if (!ctx->header_done) {
        ctx->header_done = 1;
        rc = ngx_http_idem_send_header(ctx);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            r->buffered &= ~NGX_HTTP_IDEM_BUFFERED;
            ctx->state = NGX_HTTP_IDEM_REPLY;
            return rc > NGX_OK ? NGX_ERROR : rc;
        }
    }

    if (ctx->body.piece != NULL && ctx->body.piece->pos < ctx->body.piece->last)
    {
        rc = ngx_http_idem_next_body_filter(r, NULL);

        if (rc == NGX_ERROR) {
            return rc;
        }
    }

    if (!ctx->overflow || ctx->body.len > 0) {
        rc = ngx_http_idem_body_send(r, &ctx->body, !ctx->overflow);

        if (rc == NGX_ERROR || !ctx->body.done) {
            return rc;
        }

    } else {
        rc = NGX_OK;
    }

    r->buffered &= ~NGX_HTTP_IDEM_BUFFERED;
    ctx->state = NGX_HTTP_IDEM_REPLY;

    if (ctx->held != NULL) {
        held = ctx->held;
        ctx->held = NULL;
        rc = ngx_http_idem_next_body_filter(r, held);
    }

    return rc;
}


static ngx_int_t
ngx_http_idem_send_header(ngx_http_idem_ctx_t *ctx)
{
    ngx_str_t            body;
    ngx_http_request_t  *r = ctx->request;

    if (ctx->problem >= 0) {
        ngx_http_clean_header(r);
        r->err_status = 0;

        ngx_memzero(&ctx->body, sizeof(ctx->body));

        if (ngx_http_idem_problem_header(r, ctx->problem, &body) != NGX_OK
            || ngx_http_idem_body_add(r, &ctx->body, body.data, body.len,
                                      body.len)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else if (!ctx->overflow) {

        if (r->headers_out.content_length != NULL) {
            r->headers_out.content_length->hash = 0;
            r->headers_out.content_length = NULL;
        }

        r->headers_out.content_length_n =
            r->headers_out.status == NGX_HTTP_NO_CONTENT
            || r->headers_out.status == NGX_HTTP_NOT_MODIFIED
            ? -1 : ctx->body.len;
    }

    if (ngx_http_idem_limit_headers(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!ctx->recorded) {
        if (ngx_http_idem_add_header(r, "Idempotency-Recorded", "false", 5)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else if (ctx->outcome.status == IDEM_STATUS_COMPLETED
               && ngx_http_idem_add_expires(r, ctx->expires_ms) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_idem_next_header_filter(r);
}
