
/*
 * The directives idempotency_key_from and idempotency_fingerprint_from.
 */


#include "ngx_http_idempotency.h"


static ngx_http_idem_select_t *ngx_http_idem_select_create(ngx_conf_t *cf,
    ngx_str_t *name, ngx_str_t *text, ngx_uint_t fingerprint);
static void ngx_http_idem_select_destroy(void *data);


char *
ngx_http_idem_conf_select(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char                   *p = conf;
    ngx_str_t                *value = cf->args->elts;
    ngx_uint_t                fingerprint;
    ngx_http_idem_select_t  **slot;

    slot = (ngx_http_idem_select_t **) (void *) (p + cmd->offset);
    fingerprint = cmd->offset != offsetof(ngx_http_idem_loc_conf_t, key_from);

    if (*slot != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        *slot = NULL;
        return NGX_CONF_OK;
    }

    *slot = ngx_http_idem_select_create(cf, &value[0], &value[1], fingerprint);

    if (*slot == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_idem_select_contradicts(conf)
           ? (fingerprint ? "cannot be combined with \"idempotency_fingerprint off\""
                          : "cannot be combined with \"idempotency_key\"")
           : NGX_CONF_OK;
}


static ngx_http_idem_select_t *
ngx_http_idem_select_create(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *text,
    ngx_uint_t fingerprint)
{
    struct idem_error        error;
    ngx_pool_cleanup_t      *cln;
    ngx_http_idem_select_t  *select;

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_idem_select_t));
    if (cln == NULL) {
        return NULL;
    }

    select = cln->data;
    select->text = *text;
    select->fingerprint = fingerprint;

    /* nginx puts a NUL after each argument. */

    if (idem_selector_create((char *) text->data, &select->selector, &error)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": %s: \"%V\"", name,
                           error.text, text);
        return NULL;
    }

    cln->handler = ngx_http_idem_select_destroy;
    return select;
}


static void
ngx_http_idem_select_destroy(void *data)
{
    ngx_http_idem_select_t  *select = data;

    idem_selector_destroy(select->selector);
}


/* Whether two directives that exclude each other are set, in either order. */

ngx_uint_t
ngx_http_idem_select_contradicts(ngx_http_idem_loc_conf_t *conf)
{
    if (conf->key_value != NGX_CONF_UNSET_PTR
        && conf->key_from != NGX_CONF_UNSET_PTR && conf->key_from != NULL)
    {
        return 1;
    }

    return conf->fingerprint != NGX_CONF_UNSET_UINT
           && (conf->fingerprint & NGX_HTTP_IDEM_FP_OFF)
           && conf->fingerprint_from != NGX_CONF_UNSET_PTR
           && conf->fingerprint_from != NULL;
}


/* A directive of an inner level also replaces the other one of its pair that an
 * outer level has. */

void
ngx_http_idem_merge_select(ngx_http_idem_loc_conf_t *conf)
{
    if (conf->key_value != NGX_CONF_UNSET_PTR) {
        conf->key_from = NULL;
    }

    if (conf->fingerprint != NGX_CONF_UNSET_UINT
        && (conf->fingerprint & NGX_HTTP_IDEM_FP_OFF))
    {
        conf->fingerprint_from = NULL;
    }
}
