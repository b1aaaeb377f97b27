
/*
 * Variables for the log.
 */


#include "ngx_http_idempotency.h"


static ngx_int_t ngx_http_idem_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


typedef enum {
    NGX_HTTP_IDEM_VAR_VERDICT = 0,
    NGX_HTTP_IDEM_VAR_OUTCOME,
    NGX_HTTP_IDEM_VAR_KEY,
    NGX_HTTP_IDEM_VAR_FENCE,
    NGX_HTTP_IDEM_VAR_ATTEMPTS
} ngx_http_idem_var_e;


static ngx_http_variable_t  ngx_http_idem_vars[] = {

    { ngx_string("idempotency_verdict"), NULL, ngx_http_idem_variable,
      NGX_HTTP_IDEM_VAR_VERDICT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("idempotency_outcome"), NULL, ngx_http_idem_variable,
      NGX_HTTP_IDEM_VAR_OUTCOME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("idempotency_id"), NULL, ngx_http_idem_variable,
      NGX_HTTP_IDEM_VAR_KEY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("idempotency_fence"), NULL, ngx_http_idem_variable,
      NGX_HTTP_IDEM_VAR_FENCE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("idempotency_attempts"), NULL, ngx_http_idem_variable,
      NGX_HTTP_IDEM_VAR_ATTEMPTS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_idem_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_idem_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char               *p;
    const char           *text;
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_idem_ctx(r->main);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;
    text = NULL;

    switch (data) {

    case NGX_HTTP_IDEM_VAR_VERDICT:
        text = ctx->verdict_name;
        break;

    case NGX_HTTP_IDEM_VAR_OUTCOME:
        text = ctx->outcome_name;
        break;

    case NGX_HTTP_IDEM_VAR_KEY:

        /* A log shows part of the identity, because the key may be a secret. */

        if (ngx_http_idem_id(ctx) != NULL) {
            p = ngx_hex_dump(p, ctx->id, 8);
        }

        break;

    case NGX_HTTP_IDEM_VAR_FENCE:
        if (ctx->fence != 0) {
            p = ngx_sprintf(p, "%uL", ctx->fence);
        }
        break;

    default:
        if (ctx->attempts != 0) {
            p = ngx_sprintf(p, "%ui", ctx->attempts);
        }
    }

    if (text != NULL) {
        v->data = (u_char *) text;
        v->len = ngx_strlen(text);

    } else {
        v->len = p - v->data;
    }

    v->not_found = (v->len == 0);
    v->valid = 1;
    v->no_cacheable = 0;

    return NGX_OK;
}
