
/*
 * The configuration of a location, and the settings that it refuses.
 */


#include "ngx_http_idempotency.h"


static char *ngx_http_idem_check(ngx_conf_t *cf,
    ngx_http_idem_loc_conf_t *conf);


/* The settings of a location: kind, name, and the default. */

#define NGX_HTTP_IDEM_SETTINGS(X)                                             \
    X(uint, enable, NGX_HTTP_IDEM_OFF)                                        \
    X(ptr, store, NULL)                                                       \
    X(ptr, scope, NULL)                                                       \
    X(ptr, key_value, NULL)                                                   \
    X(ptr, key_from, NULL)                                                    \
    X(ptr, fingerprint_from, NULL)                                            \
    X(int, lease, 60000)                                                      \
    X(int, retention, 86400000)                                               \
    X(int, on_expired, IDEM_HOLD)                                             \
    X(int, wait, 0)                                                           \
    X(int, waiters, NGX_MAX_INT_T_VALUE)                                      \
    X(uint, fingerprint, NGX_HTTP_IDEM_FP_DEFAULT)                            \
    X(ptr, fingerprint_values, NULL)                                          \
    X(ptr, outcomes, NULL)                                                    \
    X(int, max_failures, 0)                                                   \
    X(int, retry_after, 0)                                                    \
    X(ptr, replay_headers, NULL)                                              \
    X(int, max_request, 16 * 1024 * 1024)                                     \
    X(int, max_response, 16 * 1024 * 1024)                                    \
    X(int, keep_input, 0)                                                     \
    X(ptr, limits, NULL)                                                      \
    X(uint, store_error, 0)                                                   \
    X(int, chain, 1)


#define ngx_http_idem_unset_int          NGX_CONF_UNSET
#define ngx_http_idem_unset_uint         NGX_CONF_UNSET_UINT
#define ngx_http_idem_unset_ptr          NGX_CONF_UNSET_PTR
#define ngx_conf_merge_int_value         ngx_conf_merge_value


void *
ngx_http_idem_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_idem_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_idem_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

#define X(kind, field, value)  conf->field = ngx_http_idem_unset_##kind;
    NGX_HTTP_IDEM_SETTINGS(X)
#undef X

    return conf;
}


char *
ngx_http_idem_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_idem_loc_conf_t   *prev = parent;
    ngx_http_idem_loc_conf_t   *conf = child;
    ngx_http_idem_main_conf_t  *imcf;

    ngx_http_idem_merge_select(conf);

    if (conf->scope == NGX_CONF_UNSET_PTR) {
        conf->scope_global = prev->scope_global;
    }

    if (conf->key_value == NGX_CONF_UNSET_PTR) {
        conf->key_name = prev->key_name;
    }

    if (conf->fingerprint == NGX_CONF_UNSET_UINT) {
        conf->fingerprint_secret = prev->fingerprint_secret;
    }

#define X(kind, field, value)                                                 \
    ngx_conf_merge_##kind##_value(conf->field, prev->field, value)
    NGX_HTTP_IDEM_SETTINGS(X)
#undef X

    ngx_conf_merge_bitmask_value(conf->methods, prev->methods,
                                 (NGX_CONF_BITMASK_SET
                                  |NGX_HTTP_POST|NGX_HTTP_PATCH));

    if (conf->key_name.len == 0) {
        ngx_str_set(&conf->key_name, "idempotency-key");
    }

    if (conf->outcomes == NULL) {
        conf->outcomes = ngx_palloc(cf->pool,
                                    sizeof(struct idem_outcome_table));
        if (conf->outcomes == NULL) {
            return NGX_CONF_ERROR;
        }

        (void) idem_outcome_table_read(conf->outcomes, IDEM_ENDINGS_HTTP,
                                       NULL, NULL);
    }

    conf->rules.outcomes = conf->outcomes;
    conf->rules.on_expired_lease = (enum idem_on_expired_lease) conf->on_expired;
    conf->rules.failures_max = (uint32_t) conf->max_failures;
    conf->rules.retry_after_ms = conf->retry_after;

    if (conf->enable == NGX_HTTP_IDEM_OFF) {
        return NGX_CONF_OK;
    }

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_idempotency_module);
    imcf->enabled = 1;

    return ngx_http_idem_check(cf, conf);
}


/* Stores that use the clock of a server: idem_store_lease_min_ms() is 4 s. */

static ngx_uint_t
ngx_http_idem_is_remote(const ngx_http_idem_store_t *store)
{
    return ngx_strncmp(store->url.data, "dynamodb:", 9) == 0
           || ngx_strncmp(store->url.data, "postgres:", 9) == 0
           || ngx_strncmp(store->url.data, "postgresql:", 11) == 0;
}


static char *
ngx_http_idem_check_values(ngx_conf_t *cf, ngx_http_idem_loc_conf_t *conf)
{
    const char  *wrong = NULL;

    if (conf->store == NULL) {
        wrong = "\"idempotency_store\" must be set to the URL of a store";

    } else if (conf->scope == NULL && !conf->scope_global) {
        wrong = "\"idempotency_scope\" must be set to a variable of your "
                "authentication, or to \"global\"";

    } else if (ngx_http_idem_is_remote(conf->store)
               && conf->lease < IDEM_DYNAMODB_LEASE_MIN_MS)
    {
        wrong = "\"idempotency_lease\" must be 4s or more with a store in "
                "DynamoDB or PostgreSQL, whose owners stop 2s before its end";

    } else if (conf->retention < conf->lease) {
        wrong = "\"idempotency_retention\" must not be shorter than "
                "\"idempotency_lease\"";
    }

    if (wrong == NULL) {
        if (conf->max_failures != 0 || conf->retry_after != 0) {
            conf->store->budgets = 1;
        }

        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", wrong);
    return NGX_CONF_ERROR;
}


/*
 * The upstream settings that the module @name has in this location, or NULL.
 * Its structure of the location begins with them, as in all modules below.
 */

static ngx_http_upstream_conf_t *
ngx_http_idem_upstream_conf(ngx_conf_t *cf, const char *name)
{
    ngx_uint_t            i;
    ngx_http_conf_ctx_t  *ctx = cf->ctx;

    for (i = 0; cf->cycle->modules[i]; i++) {
        if (cf->cycle->modules[i]->type == NGX_HTTP_MODULE
            && ngx_strcmp(cf->cycle->modules[i]->name, name) == 0)
        {
            return ctx->loc_conf[cf->cycle->modules[i]->ctx_index];
        }
    }

    return NULL;
}


/* Refuses settings under which nginx could do the work of a key twice. */

static char *
ngx_http_idem_check(ngx_conf_t *cf, ngx_http_idem_loc_conf_t *conf)
{
    static const struct {
        const char  *module;
        const char  *directive;
    } upstreams[] = {
        { "ngx_http_proxy_module", "proxy_next_upstream" },
        { "ngx_http_fastcgi_module", "fastcgi_next_upstream" },
        { "ngx_http_uwsgi_module", "uwsgi_next_upstream" },
        { "ngx_http_scgi_module", "scgi_next_upstream" },
        { "ngx_http_grpc_module", "grpc_next_upstream" }
    };

    ngx_uint_t                 i;
    ngx_http_err_page_t       *page;
    ngx_http_upstream_conf_t  *ucf;
    ngx_http_core_loc_conf_t  *clcf;

    if (ngx_http_idem_check_values(cf, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < sizeof(upstreams) / sizeof(upstreams[0]); i++) {
        ucf = ngx_http_idem_upstream_conf(cf, upstreams[i].module);

        if (ucf != NULL
            && ucf->next_upstream != NGX_CONF_UNSET_UINT
            && (ucf->next_upstream & NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%s non_idempotent\" may do the work of one "
                               "idempotency key twice", upstreams[i].directive);
            return NGX_CONF_ERROR;
        }
    }

    ucf = ngx_http_idem_upstream_conf(cf, "ngx_http_grpc_module");

    if (ucf != NULL && ucf->upstream != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"grpc_pass\" with \"idempotency\": a replay "
                           "would lack the status of the call, which is a "
                           "trailer; set \"idempotency off\" in this "
                           "location");
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->error_pages != NULL) {
        page = clcf->error_pages->elts;

        for (i = 0; i < clcf->error_pages->nelts; i++) {
            if (page[i].value.value.len > 0
                && page[i].value.value.data[0] == '@')
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "\"error_page %i ... %V\" may do the work "
                                   "of one idempotency key twice",
                                   page[i].status, &page[i].value.value);
                return NGX_CONF_ERROR;
            }
        }
    }

    if (clcf->post_action.len > 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"post_action\" may do the work of one "
                           "idempotency key twice");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
