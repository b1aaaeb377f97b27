
/*
 * Counters, the location that shows them, and variables for the log.
 */


#include "ngx_http_idempotency.h"


ngx_http_idem_counters_t  *ngx_http_idem_counters;


static ngx_int_t ngx_http_idem_init_zone(ngx_shm_zone_t *zone, void *data);
static ngx_int_t ngx_http_idem_status_handler(ngx_http_request_t *r);
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


/* ---- Counters ---- */


ngx_int_t
ngx_http_idem_add_zone(ngx_conf_t *cf, ngx_http_idem_main_conf_t *imcf)
{
    ngx_str_t  name = ngx_string("idempotency_counters");

    imcf->zone = ngx_shared_memory_add(cf, &name, 16 * ngx_pagesize,
                                       &ngx_http_idempotency_module);
    if (imcf->zone == NULL) {
        return NGX_ERROR;
    }

    imcf->zone->init = ngx_http_idem_init_zone;
    imcf->zone->data = imcf;

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_slab_pool_t  *pool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data != NULL || zone->shm.exists) {
        ngx_http_idem_counters = pool->data;
        return NGX_OK;
    }

    ngx_http_idem_counters = ngx_slab_calloc(pool,
                                             sizeof(ngx_http_idem_counters_t));
    if (ngx_http_idem_counters == NULL) {
        return NGX_ERROR;
    }

    pool->data = ngx_http_idem_counters;
    return NGX_OK;
}


/* ---- The location ---- */


char *
ngx_http_idem_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (cf->args->nelts == 2) {
        if (ngx_strcmp(value[1].data, "any") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"", &value[1]);
            return NGX_CONF_ERROR;
        }

        ilcf->status_any = 1;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_idem_status_handler;

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_idem_is_loopback(struct sockaddr *sa)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    switch (sa->sa_family) {

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sa;

        if (IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr)) {
            return sin6->sin6_addr.s6_addr[12] == 127;
        }

        return IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr);
#endif

#if (NGX_HAVE_UNIX_DOMAIN)
    case AF_UNIX:
        return 1;
#endif

    case AF_INET:
        sin = (struct sockaddr_in *) sa;
        return (ntohl(sin->sin_addr.s_addr) >> 24) == 127;
    }

    return 0;
}


static ngx_int_t
ngx_http_idem_status_handler(ngx_http_request_t *r)
{
    u_char                    *p;
    ngx_int_t                  rc;
    ngx_buf_t                 *b;
    ngx_uint_t                 i;
    ngx_chain_t                out;
    ngx_atomic_uint_t          inflight, waiting;
    ngx_http_idem_counters_t  *n = ngx_http_idem_counters;
    ngx_http_idem_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_idempotency_module);

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    if (!conf->status_any
        && !ngx_http_idem_is_loopback(r->connection->sockaddr))
    {
        return NGX_HTTP_FORBIDDEN;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    b = ngx_create_temp_buf(r->pool, 8192);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = b->last;

#define X(name, help)                                                         \
    p = ngx_slprintf(p, b->end, "# HELP idem_http_" #name "_total " help "\n"  \
                     "# TYPE idem_http_" #name "_total counter\n"              \
                     "idem_http_" #name "_total %uA\n", n->name);
    NGX_HTTP_IDEM_COUNTERS(X)
#undef X

    inflight = 0;
    waiting = 0;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        inflight += n->now[i].inflight;
        waiting += n->now[i].waiting;
    }

    p = ngx_slprintf(p, b->end,
                     "# HELP idem_http_inflight requests being executed\n"
                     "# TYPE idem_http_inflight gauge\n"
                     "idem_http_inflight %uA\n"
                     "# HELP idem_http_waiting requests waiting for others\n"
                     "# TYPE idem_http_waiting gauge\n"
                     "idem_http_waiting %uA\n",
                     inflight, waiting);

    b->last = p;
    b->last_buf = 1;
    b->last_in_chain = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->last - b->pos;
    ngx_str_set(&r->headers_out.content_type, "text/plain; version=0.0.4");
    r->headers_out.content_type_len = sizeof("text/plain") - 1;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


/* ---- Variables ---- */


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

        /* Of its identity: the key itself may be a secret. */

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
