
/*
 * The setters of the directives that have one of their own.
 */


#include "ngx_http_idempotency.h"


static char *
ngx_http_idem_invalid(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                       value);
    return NGX_CONF_ERROR;
}


/* @text is the end of an argument, after which nginx puts a NUL. */

char *
ngx_http_idem_read(ngx_conf_t *cf, const char *name,
    const struct idem_setting *setting, u_char *text, int64_t *ret)
{
    struct idem_error  error;

    if (idem_setting_read(setting, name, (char *) text, ret, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", error.text);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Reads the argument into one field, with cmd->post as its setting. */

char *
ngx_http_idem_conf_value(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char     *p = conf;
    int64_t    *slot;
    ngx_str_t  *value = cf->args->elts;

    slot = (int64_t *) (void *) (p + cmd->offset);

    if (*slot != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    return ngx_http_idem_read(cf, (char *) cmd->name.data, cmd->post,
                              value[1].data, slot);
}


/* A relative path starts at the prefix, as everywhere in nginx. */

static char *
ngx_http_idem_store_file(ngx_conf_t *cf, ngx_str_t *url,
    ngx_http_idem_store_t *store)
{
    u_char     *last = url->data + url->len;
    u_char     *end = ngx_strlchr(url->data, last, '?');
    ngx_str_t   path;

    path.data = url->data + 7;
    path.len = (end ? end : last) - path.data;

    if (path.len == 0 || ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return ngx_http_idem_invalid(cf, url);
    }

    store->url.len = 7 + path.len + (end ? last - end : 0);
    store->url.data = ngx_pnalloc(cf->pool, store->url.len + 1);
    store->journal_dir.data = ngx_pnalloc(cf->pool,
                                          path.len + sizeof(".journal"));

    if (store->url.data == NULL || store->journal_dir.data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_sprintf(store->url.data, "sqlite:%V%s%Z", &path,
                end ? end : (u_char *) "");
    store->journal_dir.len = ngx_sprintf(store->journal_dir.data,
                                         "%V.journal%Z", &path)
                             - store->journal_dir.data - 1;

    return NGX_CONF_OK;
}


static char *
ngx_http_idem_store_parameter(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_idem_store_t *store)
{
    if (ngx_strncmp(value->data, "timeout=", 8) == 0) {
        return ngx_http_idem_read(cf, "timeout", IDEM_SETTING_STORE_TIMEOUT,
                                  value->data + 8, &store->timeout);
    }

    if (ngx_strncmp(value->data, "end_timeout=", 12) == 0) {
        return ngx_http_idem_read(cf, "end_timeout",
                                  IDEM_SETTING_STORE_TIMEOUT,
                                  value->data + 12, &store->end_timeout);
    }

    if (ngx_strcmp(value->data, "journal=off") == 0) {
        ngx_str_null(&store->journal_dir);
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value->data, "journal=", 8) == 0 && value->len > 8) {
        store->journal_dir.data = value->data + 8;
        store->journal_dir.len = value->len - 8;

        return ngx_conf_full_name(cf->cycle, &store->journal_dir, 0) == NGX_OK
               ? NGX_CONF_OK : NGX_CONF_ERROR;
    }

    return ngx_http_idem_invalid(cf, value);
}


/* One store for each URL, wherever it is named. */

static char *
ngx_http_idem_store_share(ngx_http_idem_main_conf_t *imcf,
    ngx_http_idem_store_t *store, ngx_http_idem_store_t **ret)
{
    ngx_uint_t               i;
    ngx_http_idem_store_t  **known = imcf->stores.elts, **slot;

    for (i = 0; i < imcf->stores.nelts; i++) {

        if (known[i]->url.len != store->url.len
            || ngx_strncmp(known[i]->url.data, store->url.data, store->url.len)
               != 0)
        {
            continue;
        }

        if (known[i]->timeout != store->timeout
            || known[i]->end_timeout != store->end_timeout
            || known[i]->journal_dir.len != store->journal_dir.len
            || ngx_memcmp(known[i]->journal_dir.data, store->journal_dir.data,
                          store->journal_dir.len)
               != 0)
        {
            return "has other parameters than an earlier one for this store";
        }

        *ret = known[i];
        return NGX_CONF_OK;
    }

    slot = ngx_array_push(&imcf->stores);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = store;
    *ret = store;

    return NGX_CONF_OK;
}


char *
ngx_http_idem_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value = cf->args->elts;
    ngx_uint_t                  i;
    ngx_http_idem_store_t      *store;
    ngx_http_idem_loc_conf_t   *ilcf = conf;
    ngx_http_idem_main_conf_t  *imcf;

    if (ilcf->store != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_idempotency_module);

    store = ngx_pcalloc(cf->pool, sizeof(ngx_http_idem_store_t));
    if (store == NULL) {
        return NGX_CONF_ERROR;
    }

    store->url = value[1];
    store->timeout = 5000;

    if (value[1].len >= IDEM_STORE_URL_MAX
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, ':')
           == NULL)
    {
        return ngx_http_idem_invalid(cf, &value[1]);
    }

    if (ngx_strncmp(value[1].data, "sqlite:", 7) == 0
        && ngx_http_idem_store_file(cf, &value[1], store) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_idem_store_parameter(cf, &value[i], store)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_idem_store_share(imcf, store, &ilcf->store);
}


char *
ngx_http_idem_complex(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv)
{
    ngx_http_compile_complex_value_t  ccv;

    *cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (*cv == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = *cv;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK ? NGX_CONF_OK
                                                          : NGX_CONF_ERROR;
}


char *
ngx_http_idem_conf_scope(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->scope != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    ilcf->scope = NULL;

    if (ngx_strcmp(value[1].data, "global") == 0) {
        ilcf->scope_global = 1;
        return NGX_CONF_OK;
    }

    if (value[1].len == 0) {
        return "is empty";
    }

    ilcf->scope_global = 0;

    return ngx_http_idem_complex(cf, &value[1], &ilcf->scope);
}


char *
ngx_http_idem_conf_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->key_value != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    ilcf->key_value = NULL;

    if (ngx_http_idem_select_contradicts(ilcf)) {
        return "cannot be combined with \"idempotency_key_from\"";
    }

    if (ngx_http_script_variables_count(&value[1]) > 0) {
        return ngx_http_idem_complex(cf, &value[1], &ilcf->key_value);
    }

    if (!idem_http_header_valid(ngx_http_idem_slice(&value[1]),
                                idem_bytes(NULL, 0)))
    {
        return ngx_http_idem_invalid(cf, &value[1]);
    }

    ilcf->key_name = value[1];
    return NGX_CONF_OK;
}


char *
ngx_http_idem_conf_wait(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rv;
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    rv = ngx_http_idem_conf_value(cf, cmd, conf);

    if (rv != NGX_CONF_OK || cf->args->nelts == 2) {
        return rv;
    }

    if (ngx_strncmp(value[2].data, "waiters=", 8) != 0) {
        return ngx_http_idem_invalid(cf, &value[2]);
    }

    return ngx_http_idem_read(cf, "waiters", IDEM_SETTING(IDEM_SETTING_COUNT),
                              value[2].data + 8, &ilcf->waiters);
}


/* Reads a secret of 16 bytes to 64 KiB. */

static char *
ngx_http_idem_read_secret(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *secret)
{
    ssize_t          n;
    ngx_fd_t         fd;
    ngx_file_info_t  fi;

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", name);
        return NGX_CONF_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR || ngx_file_size(&fi) < 16
        || ngx_file_size(&fi) > 65536)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the secret in \"%V\" must have 16 to 65536 bytes", name);
        (void) ngx_close_file(fd);
        return NGX_CONF_ERROR;
    }

    secret->len = (size_t) ngx_file_size(&fi);
    secret->data = ngx_pnalloc(cf->pool, secret->len);
    n = -1;

    if (secret->data != NULL) {
        n = ngx_read_fd(fd, secret->data, secret->len);
    }

    (void) ngx_close_file(fd);

    if (n != (ssize_t) secret->len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "cannot read \"%V\"", name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_idem_conf_fingerprint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const struct {
        const char  *name;
        ngx_uint_t   bit;
    } words[] = {
        { "default", NGX_HTTP_IDEM_FP_DEFAULT },
        { "method", NGX_HTTP_IDEM_FP_METHOD },
        { "host", NGX_HTTP_IDEM_FP_HOST },
        { "path", NGX_HTTP_IDEM_FP_PATH },
        { "query", NGX_HTTP_IDEM_FP_QUERY },
        { "content_type", NGX_HTTP_IDEM_FP_CONTENT_TYPE },
        { "body", NGX_HTTP_IDEM_FP_BODY },
        { "off", NGX_HTTP_IDEM_FP_OFF }
    };

    ngx_str_t                   name, *value = cf->args->elts;
    ngx_uint_t                  i, j;
    ngx_http_complex_value_t  **slot;
    ngx_http_idem_loc_conf_t   *ilcf = conf;

    if (ilcf->fingerprint != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    ilcf->fingerprint = 0;
    ilcf->fingerprint_values = NULL;

    for (i = 1; i < cf->args->nelts; i++) {

        for (j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
            if (ngx_strcmp(value[i].data, words[j].name) == 0) {
                ilcf->fingerprint |= words[j].bit;
                break;
            }
        }

        if (j < sizeof(words) / sizeof(words[0])) {
            continue;
        }

        if (ngx_strncmp(value[i].data, "key_file=", 9) == 0) {
            name.data = value[i].data + 9;
            name.len = value[i].len - 9;

            if (ngx_http_idem_read_secret(cf, &name, &ilcf->fingerprint_secret)
                != NGX_CONF_OK)
            {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_http_script_variables_count(&value[i]) == 0) {
            return ngx_http_idem_invalid(cf, &value[i]);
        }

        if (ilcf->fingerprint_values == NULL) {
            ilcf->fingerprint_values = ngx_array_create(cf->pool, 4,
                                          sizeof(ngx_http_complex_value_t *));
            if (ilcf->fingerprint_values == NULL) {
                return NGX_CONF_ERROR;
            }
        }

        slot = ngx_array_push(ilcf->fingerprint_values);
        if (slot == NULL
            || ngx_http_idem_complex(cf, &value[i], slot) != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if ((ilcf->fingerprint & NGX_HTTP_IDEM_FP_OFF)
        && (ilcf->fingerprint != NGX_HTTP_IDEM_FP_OFF
            || ilcf->fingerprint_values != NULL))
    {
        return "takes either \"off\" or a list of parts";
    }

    if (ngx_http_idem_select_contradicts(ilcf)) {
        return "off cannot be combined with \"idempotency_fingerprint_from\"";
    }

    return NGX_CONF_OK;
}


/* Joins the arguments: @before, unless it is NULL, then each one and @after. */

static char *
ngx_http_idem_join(ngx_conf_t *cf, const char *before, char after)
{
    size_t       len;
    u_char      *p, *text;
    ngx_str_t   *value = cf->args->elts;
    ngx_uint_t   i;

    if (before == NULL) {
        before = "";
    }

    len = ngx_strlen(before) + 1;

    for (i = 1; i < cf->args->nelts; i++) {
        len += value[i].len + 1;
    }

    text = ngx_pnalloc(cf->pool, len);
    if (text == NULL) {
        return NULL;
    }

    p = ngx_cpymem(text, before, ngx_strlen(before));

    for (i = 1; i < cf->args->nelts; i++) {
        p = ngx_sprintf(p, "%V%c", &value[i], after);
    }

    *p = '\0';
    return (char *) text;
}


char *
ngx_http_idem_conf_outcome(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *text;
    struct idem_error           error;
    ngx_http_idem_loc_conf_t   *ilcf = conf;

    if (ilcf->outcomes != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    text = ngx_http_idem_join(cf, NULL, ' ');
    ilcf->outcomes = ngx_palloc(cf->pool, sizeof(struct idem_outcome_table));

    if (text == NULL || ilcf->outcomes == NULL) {
        return NGX_CONF_ERROR;
    }

    if (idem_outcome_table_read(ilcf->outcomes, IDEM_ENDINGS_HTTP, text, &error)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": %s", &cmd->name,
                           error.text);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_idem_conf_headers(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    struct idem_error          error;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->replay_headers == NGX_CONF_UNSET_PTR) {
        ilcf->replay_headers = NULL;
    }

    ilcf->replay_headers = ngx_http_idem_join(cf, ilcf->replay_headers, ',');

    if (ilcf->replay_headers == NULL) {
        return NGX_CONF_ERROR;
    }

    if (idem_http_headers_check(ilcf->replay_headers, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": %s", &cmd->name,
                           error.text);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
