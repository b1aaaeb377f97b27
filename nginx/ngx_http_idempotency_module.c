
/*
 * The module: its directives, and what nginx calls.
 */


#include "ngx_http_idempotency.h"


static void *ngx_http_idem_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_idem_init_main_conf(ngx_conf_t *cf, void *conf);
static ngx_int_t ngx_http_idem_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_idem_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_idem_postconfiguration(ngx_conf_t *cf);


static ngx_conf_enum_t  ngx_http_idem_enable[] = {
    { ngx_string("off"), NGX_HTTP_IDEM_OFF },
    { ngx_string("on"), NGX_HTTP_IDEM_ON },
    { ngx_string("required"), NGX_HTTP_IDEM_REQUIRED },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_idem_store_error[] = {
    { ngx_string("reject"), 0 },
    { ngx_string("pass"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_bitmask_t  ngx_http_idem_methods[] = {
    { ngx_string("POST"), NGX_HTTP_POST },
    { ngx_string("PATCH"), NGX_HTTP_PATCH },
    { ngx_string("PUT"), NGX_HTTP_PUT },
    { ngx_string("DELETE"), NGX_HTTP_DELETE },
    { ngx_null_string, 0 }
};


/*
 * The rows of directives.  _place(): its setter gets the place of a field of
 * the location's configuration.  _value(): the same, and <idem/setting.h>
 * defines what the value may be.  _own(): the setter knows its fields.
 */

#define ngx_http_idem_directive(name, takes, set, offset, post)               \
    { ngx_string(name),                                                       \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|takes,           \
      set, NGX_HTTP_LOC_CONF_OFFSET, offset, post }

#define ngx_http_idem_place(name, takes, set, field, post)                    \
    ngx_http_idem_directive(name, takes, set,                                 \
                            offsetof(ngx_http_idem_loc_conf_t, field), post)

#define ngx_http_idem_value(name, field, setting)                             \
    ngx_http_idem_place(name, NGX_CONF_TAKE1, ngx_http_idem_conf_value,       \
                        field, (void *) setting)

#define ngx_http_idem_own(name, takes, set)                                   \
    ngx_http_idem_directive(name, takes, set, 0, NULL)


static ngx_command_t  ngx_http_idem_commands[] = {

    ngx_http_idem_place("idempotency", NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
                        enable, &ngx_http_idem_enable),
    ngx_http_idem_own("idempotency_store", NGX_CONF_TAKE1234,
                      ngx_http_idem_conf_store),
    ngx_http_idem_own("idempotency_scope", NGX_CONF_TAKE1,
                      ngx_http_idem_conf_scope),
    ngx_http_idem_own("idempotency_key", NGX_CONF_TAKE1,
                      ngx_http_idem_conf_key),
    ngx_http_idem_place("idempotency_key_from", NGX_CONF_TAKE1,
                        ngx_http_idem_conf_select, key_from, NULL),
    ngx_http_idem_place("idempotency_methods", NGX_CONF_1MORE,
                        ngx_conf_set_bitmask_slot, methods,
                        &ngx_http_idem_methods),
    ngx_http_idem_value("idempotency_lease", lease, IDEM_SETTING_LEASE),
    ngx_http_idem_value("idempotency_retention", retention,
                        IDEM_SETTING_RETENTION),
    ngx_http_idem_value("idempotency_on_expired_lease", on_expired,
                        IDEM_SETTING_POLICY),
    ngx_http_idem_place("idempotency_wait", NGX_CONF_TAKE12,
                        ngx_http_idem_conf_wait, wait,
                        (void *) IDEM_SETTING_WAIT),
    ngx_http_idem_own("idempotency_fingerprint", NGX_CONF_1MORE,
                      ngx_http_idem_conf_fingerprint),
    ngx_http_idem_place("idempotency_fingerprint_from", NGX_CONF_TAKE1,
                        ngx_http_idem_conf_select, fingerprint_from, NULL),
    ngx_http_idem_own("idempotency_outcome", NGX_CONF_1MORE,
                      ngx_http_idem_conf_outcome),
    ngx_http_idem_value("idempotency_max_failures", max_failures,
                        IDEM_SETTING_MAX_FAILURES),
    ngx_http_idem_value("idempotency_retry_after", retry_after,
                        IDEM_SETTING_RETRY_AFTER),
    ngx_http_idem_own("idempotency_replay_headers", NGX_CONF_1MORE,
                      ngx_http_idem_conf_headers),
    ngx_http_idem_value("idempotency_max_request", max_request,
                        IDEM_SETTING_MAX_REQUEST),
    ngx_http_idem_value("idempotency_max_response", max_response,
                        IDEM_SETTING_MAX_RESULT),
    ngx_http_idem_place("idempotency_keep_input", NGX_CONF_FLAG,
                        ngx_conf_set_flag_slot, keep_input, NULL),
    ngx_http_idem_own("idempotency_limit", NGX_CONF_TAKE13,
                      ngx_http_idem_conf_limit),
    ngx_http_idem_place("idempotency_on_store_error", NGX_CONF_TAKE1,
                        ngx_conf_set_enum_slot, store_error,
                        &ngx_http_idem_store_error),
    ngx_http_idem_place("idempotency_chain", NGX_CONF_FLAG,
                        ngx_conf_set_flag_slot, chain, NULL),

    ngx_null_command
};


static ngx_http_module_t  ngx_http_idem_module_ctx = {
    ngx_http_idem_preconfiguration,        /* preconfiguration */
    ngx_http_idem_postconfiguration,       /* postconfiguration */

    ngx_http_idem_create_main_conf,        /* create main configuration */
    ngx_http_idem_init_main_conf,          /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_idem_create_loc_conf,         /* create location configuration */
    ngx_http_idem_merge_loc_conf           /* merge location configuration */
};


ngx_module_t  ngx_http_idempotency_module = {
    NGX_MODULE_V1,
    &ngx_http_idem_module_ctx,             /* module context */
    ngx_http_idem_commands,                /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_idem_init_module,             /* init module */
    ngx_http_idem_init_process,            /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_idem_exit_process,            /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_idem_preconfiguration(ngx_conf_t *cf)
{
    return ngx_http_idem_add_variables(cf);
}


static ngx_int_t
ngx_http_idem_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_idem_handler;
    ngx_http_idem_filter_init();

    return NGX_OK;
}


static void *
ngx_http_idem_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_idem_main_conf_t  *imcf;

    imcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_idem_main_conf_t));
    if (imcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&imcf->stores, cf->pool, 2,
                       sizeof(ngx_http_idem_store_t *))
        != NGX_OK)
    {
        return NULL;
    }

    return imcf;
}


static char *
ngx_http_idem_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_idem_main_conf_t  *imcf = conf;

    imcf->owner.data = ngx_pnalloc(cf->pool, cf->cycle->hostname.len
                                             + sizeof("/nginx"));
    if (imcf->owner.data == NULL) {
        return NGX_CONF_ERROR;
    }

    imcf->owner.len = ngx_sprintf(imcf->owner.data, "%V/nginx",
                                  &cf->cycle->hostname)
                      - imcf->owner.data;
    imcf->owner.len = ngx_min(imcf->owner.len, IDEM_OWNER_MAX);

    return NGX_CONF_OK;
}


/* Each worker would have a memory store of its own, and do the work once. */

static ngx_int_t
ngx_http_idem_init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_core_conf_t             *ccf;
    ngx_http_idem_store_t      **stores;
    ngx_http_idem_main_conf_t   *imcf;

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_idempotency_module);
    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (imcf == NULL || ccf->worker_processes < 2) {
        return NGX_OK;
    }

    stores = imcf->stores.elts;

    for (i = 0; i < imcf->stores.nelts; i++) {
        if (ngx_strncmp(stores[i]->url.data, "memory:", 7) == 0) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "\"idempotency_store memory:\" works in one worker "
                          "only: set \"worker_processes 1\"");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
