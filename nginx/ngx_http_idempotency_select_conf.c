
/*
 * Directives that name the jq programs which select key and fingerprint.
 */


#include "ngx_http_idempotency.h"


/* A key of IDEM_KEY_MAX bytes as JSON, in which a byte may take six. */
#define NGX_HTTP_IDEM_SELECT_KEY   4096

#define NGX_HTTP_IDEM_SELECT_KEEP  64


static void ngx_http_idem_select_destroy(void *data);


/* One for each program, wherever it is used: so many processes fewer. */

static ngx_http_idem_select_t *
ngx_http_idem_select_find(ngx_http_idem_main_conf_t *imcf, ngx_str_t *program,
    ngx_msec_t timeout, ngx_uint_t several)
{
    ngx_uint_t                i;
    ngx_http_idem_select_t  **known = imcf->selects.elts;

    for (i = 0; i < imcf->selects.nelts; i++) {
        if (known[i]->several == several && known[i]->timeout == timeout
            && known[i]->program.len == program->len
            && ngx_memcmp(known[i]->program.data, program->data, program->len)
               == 0)
        {
            return known[i];
        }
    }

    return NULL;
}


static ngx_http_idem_select_t *
ngx_http_idem_select_create(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *program, ngx_msec_t timeout, ngx_uint_t several)
{
    struct idem_error             error;
    ngx_pool_cleanup_t           *cln;
    ngx_http_idem_select_t       *select, **slot;
    ngx_http_idem_main_conf_t    *imcf;
    struct idem_select_options    options = IDEM_SELECT_OPTIONS_INIT;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_idempotency_module);
    select = ngx_http_idem_select_find(imcf, program, timeout, several);

    if (select != NULL) {
        return select;
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_idem_select_t));
    slot = ngx_array_push(&imcf->selects);

    if (cln == NULL || slot == NULL) {
        return NULL;
    }

    select = cln->data;
    ngx_memzero(select, sizeof(ngx_http_idem_select_t));

    select->program = *program;
    select->timeout = timeout;
    select->several = several;
    select->name = several ? "idempotency_fingerprint_from"
                           : "idempotency_key_from";
    *slot = select;

    options.timeout_ms = timeout;
    options.several = several;
    options.keep = NGX_HTTP_IDEM_SELECT_KEEP;

    if (!several) {
        options.output_max = NGX_HTTP_IDEM_SELECT_KEY;
    }

    /* Its last byte is followed by a NUL, as of all arguments. */

    if (idem_select_create((char *) program->data, &options, &select->select,
                           &error)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": %s: \"%V\"", name,
                           error.text, program);
        return NULL;
    }

    cln->handler = ngx_http_idem_select_destroy;
    return select;
}


static void
ngx_http_idem_select_destroy(void *data)
{
    ngx_http_idem_select_t  *select = data;

    idem_select_destroy(select->select);
}


char *
ngx_http_idem_conf_select(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char                   *p = conf;
    ngx_str_t                 text, *value = cf->args->elts;
    ngx_msec_t                timeout;
    ngx_uint_t                several;
    ngx_http_idem_select_t  **slot;

    slot = (ngx_http_idem_select_t **) (void *) (p + cmd->offset);
    several = cmd->offset != offsetof(ngx_http_idem_loc_conf_t, key_from);
    timeout = 2000;

    if (*slot != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    if (cf->args->nelts == 3) {
        if (ngx_strncmp(value[2].data, "timeout=", 8) != 0) {
            return "takes a program and timeout=TIME";
        }

        text.data = value[2].data + 8;
        text.len = value[2].len - 8;
        timeout = ngx_parse_time(&text, 0);

        if (timeout == (ngx_msec_t) NGX_ERROR || timeout == 0
            || timeout > 60000)
        {
            return "takes a timeout from 1ms to 60s";
        }
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        *slot = NULL;
        return NGX_CONF_OK;
    }

    *slot = ngx_http_idem_select_create(cf, &value[0], &value[1], timeout,
                                        several);

    if (*slot == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_idem_select_contradicts(conf)
           ? (several ? "contradicts \"idempotency_fingerprint off\""
                      : "and \"idempotency_key\" both say where the key is")
           : NGX_CONF_OK;
}


char *
ngx_http_idem_conf_processes(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                   n, waiting;
    ngx_str_t                  *value = cf->args->elts;
    ngx_http_idem_main_conf_t  *imcf = conf;

    if (imcf->select_processes != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    n = ngx_atoi(value[1].data, value[1].len);
    waiting = NGX_HTTP_IDEM_SELECT_WAITING;

    if (cf->args->nelts == 3) {
        waiting = ngx_strncmp(value[2].data, "waiting=", 8) == 0
                  ? ngx_atoi(value[2].data + 8, value[2].len - 8) : NGX_ERROR;
    }

    if (n < 1 || n > NGX_HTTP_IDEM_SELECT_KEEP || waiting == NGX_ERROR) {
        return "takes a number from 1 to 64, and waiting=NUMBER";
    }

    imcf->select_processes = n;
    imcf->select_waiting = waiting;

    return NGX_CONF_OK;
}


/* For both directives of a pair; their order does not matter. */

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


/* A setting of an inner level takes the place of the other of its pair outside. */

void
ngx_http_idem_merge_select(ngx_http_idem_loc_conf_t *prev,
    ngx_http_idem_loc_conf_t *conf)
{
    if (conf->key_value != NGX_CONF_UNSET_PTR) {
        conf->key_from = NULL;
    }

    if (conf->fingerprint != NGX_CONF_UNSET_UINT
        && (conf->fingerprint & NGX_HTTP_IDEM_FP_OFF))
    {
        conf->fingerprint_from = NULL;
    }

    if (conf->key_from == NGX_CONF_UNSET_PTR) {
        conf->key_from = prev->key_from == NGX_CONF_UNSET_PTR ? NULL
                                                              : prev->key_from;
    }

    if (conf->fingerprint_from == NGX_CONF_UNSET_PTR) {
        conf->fingerprint_from = prev->fingerprint_from == NGX_CONF_UNSET_PTR
                                 ? NULL : prev->fingerprint_from;
    }
}
