
/*
 * The run-time half of the configuration check: a request that was sent to an
 * upstream, or was answered from its record, never goes to an upstream again.
 *
 * The effect of a configuration can hide in variables (error_page 502 =
 * $fallback), and in answers (X-Accel-Redirect).  In each case the request
 * comes through the phases once more, and so through here, before mirror,
 * try_files and the content handler.  A location without a content handler of
 * its own serves a file, and is let through.
 */


#include "ngx_http_idempotency.h"


static const char *ngx_http_idem_guard_who(ngx_http_request_t *r);
static ngx_int_t ngx_http_idem_guard_refuse(ngx_http_idem_ctx_t *ctx);


ngx_int_t
ngx_http_idem_guard(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t        *r = ctx->request;
    ngx_http_core_loc_conf_t  *clcf;

    if ((ctx->state == NGX_HTTP_IDEM_OWNER
         || ctx->state == NGX_HTTP_IDEM_CAPTURE)
        && !ngx_http_idem_sent(r))
    {
        /* No upstream has a byte of it, so this location may do the work. */

        ngx_http_idem_wrap(ctx);
        return NGX_DECLINED;
    }

    ctx->again = 1;
    r->main_filter_need_in_memory = 1;

    if (r->content_handler == NULL) {
        return NGX_DECLINED;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "%s is refused: it would send a request with an idempotency "
                  "key to an upstream again, in location \"%V\"",
                  ngx_http_idem_guard_who(r), &clcf->name);

    return ngx_http_idem_guard_refuse(ctx);
}


/* The directive or header that sent the request through the phases again. */

static const char *
ngx_http_idem_guard_who(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u = r->upstream;

    if (r->post_action) {
        return "post_action";
    }

    if (u != NULL && u->headers_in.x_accel_redirect != NULL) {
        return "X-Accel-Redirect";
    }

    return "error_page";
}


static ngx_int_t
ngx_http_idem_guard_refuse(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t  *r = ctx->request;

    if (r->header_sent) {
        return NGX_ERROR;
    }

    if (ctx->attempt == NULL || ctx->ended) {

        /* The outcome is recorded already, or there is no record. */

        return ctx->state == NGX_HTTP_IDEM_OWNER
               ? ngx_http_idem_reply_problem(r, IDEM_HTTP_UPSTREAM, 0)
               : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_idem_may_have_happened(ctx, "the request was sent to a service, "
                                         "and was about to be sent again");

    ngx_http_finalize_request(r, ngx_http_idem_commit(ctx));
    return NGX_DONE;
}


/*
 * A mirror of a request that is on its way to an error page would send the
 * work again: it has the body of the request, and its method is GET by then.
 * Other subrequests that only read, such as those of auth_request and SSI, do
 * no work.
 */

ngx_int_t
ngx_http_idem_guard_subrequest(ngx_http_request_t *r)
{
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_idem_ctx(r->main);

    if (ctx == NULL || !ctx->again
        || (!r->background
            && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_OPTIONS))))
    {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "a subrequest to \"%V\" is refused: it would send a request "
                  "with an idempotency key to an upstream again", &r->uri);

    return NGX_HTTP_FORBIDDEN;
}
