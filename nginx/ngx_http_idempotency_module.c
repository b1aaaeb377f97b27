
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


static ngx_conf_enum_t  ngx_http_idem_on_expired[] = {
    { ngx_string("hold"), IDEM_HOLD },
    { ngx_string("rerun"), IDEM_RERUN },
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


#define NGX_HTTP_IDEM_ANY                                                     \
    NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF


static ngx_command_t  ngx_http_idem_commands[] = {

    { ngx_string("idempotency"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, enable),
      &ngx_http_idem_enable },

    { ngx_string("idempotency_store"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1234,
      ngx_http_idem_conf_store,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_scope"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_http_idem_conf_scope,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_key"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_http_idem_conf_key,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_key_from"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_http_idem_conf_select,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, key_from),
      NULL },

    { ngx_string("idempotency_methods"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_1MORE,
      ngx_conf_set_bitmask_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, methods),
      &ngx_http_idem_methods },

    { ngx_string("idempotency_lease"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, lease),
      NULL },

    { ngx_string("idempotency_retention"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_http_idem_conf_retention,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_on_expired_lease"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, on_expired),
      &ngx_http_idem_on_expired },

    { ngx_string("idempotency_wait"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE12,
      ngx_http_idem_conf_wait,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_fingerprint"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_1MORE,
      ngx_http_idem_conf_fingerprint,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_fingerprint_from"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_http_idem_conf_select,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, fingerprint_from),
      NULL },

    { ngx_string("idempotency_outcome"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_1MORE,
      ngx_http_idem_conf_outcome,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_max_failures"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, max_failures),
      NULL },

    { ngx_string("idempotency_retry_after"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, retry_after),
      NULL },

    { ngx_string("idempotency_replay_headers"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_1MORE,
      ngx_http_idem_conf_headers,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_max_request"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, max_request),
      NULL },

    { ngx_string("idempotency_max_response"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, max_response),
      NULL },

    { ngx_string("idempotency_keep_request"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, keep_request),
      NULL },

    { ngx_string("idempotency_limit"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE13,
      ngx_http_idem_conf_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("idempotency_on_store_error"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, store_error),
      &ngx_http_idem_store_error },

    { ngx_string("idempotency_chain"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_idem_loc_conf_t, chain),
      NULL },

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


/* Two workers with a memory of their own would each do the work once. */

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
                          "\"idempotency_store memory:\" is of one worker: "
                          "\"worker_processes\" must be 1");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
