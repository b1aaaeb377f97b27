
/*
 * Directives, and the configurations that are refused.
 */


#include "ngx_http_idempotency.h"


#define NGX_HTTP_IDEM_FOREVER  -2


static char *ngx_http_idem_conf_store(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_scope(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_retention(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_wait(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_fingerprint(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_idem_conf_outcome(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_idem_conf_headers(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

static void *ngx_http_idem_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_idem_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_idem_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_idem_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_idem_check(ngx_conf_t *cf,
    ngx_http_idem_loc_conf_t *conf);
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
      NGX_HTTP_IDEM_ANY|NGX_CONF_TAKE123,
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

    { ngx_string("idempotency_outcome"),
      NGX_HTTP_IDEM_ANY|NGX_CONF_2MORE,
      ngx_http_idem_conf_outcome,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
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

    { ngx_string("idempotency_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_idem_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
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


/* ---- Directives ---- */


static char *
ngx_http_idem_invalid(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                       value);
    return NGX_CONF_ERROR;
}


static char *
ngx_http_idem_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                   text, *value = cf->args->elts;
    ngx_uint_t                  i;
    ngx_http_idem_store_t     **stores, *store, **slot;
    ngx_http_idem_loc_conf_t   *ilcf = conf;
    ngx_http_idem_main_conf_t  *imcf;

    if (ilcf->store != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_idempotency_module);
    stores = imcf->stores.elts;

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

    if (ngx_strncmp(value[1].data, "sqlite:", 7) == 0) {
        u_char  *end = ngx_strlchr(value[1].data, value[1].data + value[1].len,
                                   '?');

        /* A relative path is one to the prefix, as everywhere in nginx. */

        text.data = value[1].data + 7;
        text.len = (end ? end : value[1].data + value[1].len) - text.data;

        if (text.len == 0 || ngx_conf_full_name(cf->cycle, &text, 0) != NGX_OK)
        {
            return ngx_http_idem_invalid(cf, &value[1]);
        }

        store->url.len = 7 + text.len
                         + (end ? value[1].data + value[1].len - end : 0);
        store->url.data = ngx_pnalloc(cf->pool, store->url.len + 1);
        store->journal_dir.data = ngx_pnalloc(cf->pool,
                                              text.len + sizeof(".journal"));

        if (store->url.data == NULL || store->journal_dir.data == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_sprintf(store->url.data, "sqlite:%V%s%Z", &text, end ? end
                                                   : (u_char *) "");
        store->journal_dir.len = ngx_sprintf(store->journal_dir.data,
                                             "%V.journal%Z", &text)
                                 - store->journal_dir.data - 1;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "timeout=", 8) == 0) {
            text.data = value[i].data + 8;
            text.len = value[i].len - 8;
            store->timeout = ngx_parse_time(&text, 0);

            if (store->timeout == (ngx_msec_t) NGX_ERROR || store->timeout == 0)
            {
                return ngx_http_idem_invalid(cf, &value[i]);
            }

        } else if (ngx_strcmp(value[i].data, "journal=off") == 0) {
            ngx_str_null(&store->journal_dir);

        } else if (ngx_strncmp(value[i].data, "journal=", 8) == 0
                   && value[i].len > 8)
        {
            store->journal_dir.data = value[i].data + 8;
            store->journal_dir.len = value[i].len - 8;

            if (ngx_conf_full_name(cf->cycle, &store->journal_dir, 0)
                != NGX_OK)
            {
                return NGX_CONF_ERROR;
            }

        } else {
            return ngx_http_idem_invalid(cf, &value[i]);
        }
    }

    for (i = 0; i < imcf->stores.nelts; i++) {
        if (stores[i]->url.len == store->url.len
            && ngx_strncmp(stores[i]->url.data, store->url.data,
                           store->url.len)
               == 0)
        {
            if (stores[i]->timeout != store->timeout
                || stores[i]->journal_dir.len != store->journal_dir.len
                || ngx_memcmp(stores[i]->journal_dir.data,
                              store->journal_dir.data, store->journal_dir.len)
                   != 0)
            {
                return "has other parameters than before";
            }

            ilcf->store = stores[i];
            return NGX_CONF_OK;
        }
    }

    slot = ngx_array_push(&imcf->stores);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = store;
    ilcf->store = store;

    return NGX_CONF_OK;
}


static char *
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


static char *
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


static char *
ngx_http_idem_conf_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->key_value != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    ilcf->key_value = NULL;

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


static char *
ngx_http_idem_conf_retention(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->retention != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    if (ngx_strcmp(value[1].data, "forever") == 0) {
        ilcf->retention = NGX_HTTP_IDEM_FOREVER;
        return NGX_CONF_OK;
    }

    ilcf->retention = ngx_parse_time(&value[1], 1);

    if (ilcf->retention == (time_t) NGX_ERROR) {
        return "invalid value";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_idem_conf_wait(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                  n;
    ngx_str_t                 *value = cf->args->elts;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->wait != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        ilcf->wait = 0;

    } else {
        ilcf->wait = ngx_parse_time(&value[1], 0);

        if (ilcf->wait == (ngx_msec_t) NGX_ERROR) {
            return ngx_http_idem_invalid(cf, &value[1]);
        }
    }

    if (cf->args->nelts == 3) {
        if (ngx_strncmp(value[2].data, "waiters=", 8) != 0) {
            return ngx_http_idem_invalid(cf, &value[2]);
        }

        n = ngx_atoi(value[2].data + 8, value[2].len - 8);

        if (n == NGX_ERROR) {
            return ngx_http_idem_invalid(cf, &value[2]);
        }

        ilcf->waiters = n;
    }

    return NGX_CONF_OK;
}


/* A secret of at most 64 KiB. */

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
                           "a secret has 16 to 65536 bytes: \"%V\"", name);
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


static char *
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
        return "is either \"off\" or says what counts";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_idem_conf_outcome(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value = cf->args->elts, *word;
    ngx_uint_t                  i, n = cf->args->nelts;
    enum idem_http_outcome      outcome;
    struct idem_http_outcomes   scratch;
    ngx_http_idem_loc_conf_t   *ilcf = conf;

    outcome = idem_http_outcome_of(ngx_http_idem_slice(&value[n - 1]));
    if (outcome == 0) {
        return ngx_http_idem_invalid(cf, &value[n - 1]);
    }

    if (ilcf->outcome_words == NGX_CONF_UNSET_PTR) {
        ilcf->outcome_words = ngx_array_create(cf->pool, 8,
                                               2 * sizeof(ngx_str_t));
        if (ilcf->outcome_words == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    for (i = 1; i < n - 1; i++) {
        if (idem_http_outcomes_set(&scratch, ngx_http_idem_slice(&value[i]),
                                   outcome)
            != 0)
        {
            return ngx_http_idem_invalid(cf, &value[i]);
        }

        word = ngx_array_push(ilcf->outcome_words);
        if (word == NULL) {
            return NGX_CONF_ERROR;
        }

        word[0] = value[i];
        word[1] = value[n - 1];
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_idem_conf_headers(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts, *name;
    ngx_uint_t                 i;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    if (ilcf->replay_headers == NGX_CONF_UNSET_PTR) {
        ilcf->replay_headers = ngx_array_create(cf->pool, 4,
                                                sizeof(ngx_str_t));
        if (ilcf->replay_headers == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (!idem_http_header_valid(ngx_http_idem_slice(&value[i]),
                                    idem_bytes(NULL, 0)))
        {
            return ngx_http_idem_invalid(cf, &value[i]);
        }

        if (idem_http_header_never(ngx_http_idem_slice(&value[i]))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is never replayed: it belongs to one "
                               "caller, connection or moment", &value[i]);
            return NGX_CONF_ERROR;
        }

        name = ngx_array_push(ilcf->replay_headers);
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        *name = value[i];
    }

    return NGX_CONF_OK;
}


/* ---- The configuration as a whole ---- */


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

    imcf->owner.data = ngx_pnalloc(cf->pool, sizeof("nginx on ")
                                             + cf->cycle->hostname.len);
    if (imcf->owner.data == NULL) {
        return NGX_CONF_ERROR;
    }

    imcf->owner.len = ngx_sprintf(imcf->owner.data, "nginx on %V",
                                  &cf->cycle->hostname)
                      - imcf->owner.data;
    imcf->owner.len = ngx_min(imcf->owner.len, IDEM_OWNER_MAX);

    return ngx_http_idem_add_zone(cf, imcf) == NGX_OK ? NGX_CONF_OK
                                                      : NGX_CONF_ERROR;
}


static void *
ngx_http_idem_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_idem_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_idem_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->enable = NGX_CONF_UNSET_UINT;
    conf->store = NGX_CONF_UNSET_PTR;
    conf->scope = NGX_CONF_UNSET_PTR;
    conf->key_value = NGX_CONF_UNSET_PTR;
    conf->lease = NGX_CONF_UNSET_MSEC;
    conf->retention = NGX_CONF_UNSET;
    conf->on_expired = NGX_CONF_UNSET_UINT;
    conf->wait = NGX_CONF_UNSET_MSEC;
    conf->waiters = NGX_CONF_UNSET_UINT;
    conf->fingerprint = NGX_CONF_UNSET_UINT;
    conf->fingerprint_values = NGX_CONF_UNSET_PTR;
    conf->outcome_words = NGX_CONF_UNSET_PTR;
    conf->replay_headers = NGX_CONF_UNSET_PTR;
    conf->max_request = NGX_CONF_UNSET_SIZE;
    conf->max_response = NGX_CONF_UNSET_SIZE;
    conf->keep_request = NGX_CONF_UNSET;
    conf->limits = NGX_CONF_UNSET_PTR;
    conf->store_error = NGX_CONF_UNSET_UINT;
    conf->chain = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_idem_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_str_t                  *words;
    ngx_uint_t                  i;
    ngx_http_idem_loc_conf_t   *prev = parent;
    ngx_http_idem_loc_conf_t   *conf = child;
    ngx_http_idem_main_conf_t  *imcf;

    if (conf->scope == NGX_CONF_UNSET_PTR) {
        conf->scope_global = prev->scope_global;
    }

    if (conf->key_value == NGX_CONF_UNSET_PTR) {
        conf->key_name = prev->key_name;
    }

    if (conf->fingerprint == NGX_CONF_UNSET_UINT) {
        conf->fingerprint_secret = prev->fingerprint_secret;
    }

    ngx_conf_merge_uint_value(conf->enable, prev->enable, NGX_HTTP_IDEM_OFF);
    ngx_conf_merge_ptr_value(conf->store, prev->store, NULL);
    ngx_conf_merge_ptr_value(conf->scope, prev->scope, NULL);
    ngx_conf_merge_ptr_value(conf->key_value, prev->key_value, NULL);
    ngx_conf_merge_bitmask_value(conf->methods, prev->methods,
                                 (NGX_CONF_BITMASK_SET
                                  |NGX_HTTP_POST|NGX_HTTP_PATCH));
    ngx_conf_merge_msec_value(conf->lease, prev->lease, 60000);
    ngx_conf_merge_value(conf->retention, prev->retention, 86400);
    ngx_conf_merge_uint_value(conf->on_expired, prev->on_expired, IDEM_HOLD);
    ngx_conf_merge_msec_value(conf->wait, prev->wait, 0);
    ngx_conf_merge_uint_value(conf->waiters, prev->waiters, 1024);
    ngx_conf_merge_uint_value(conf->fingerprint, prev->fingerprint,
                              NGX_HTTP_IDEM_FP_DEFAULT);
    ngx_conf_merge_ptr_value(conf->fingerprint_values,
                             prev->fingerprint_values, NULL);
    ngx_conf_merge_ptr_value(conf->outcome_words, prev->outcome_words, NULL);
    ngx_conf_merge_ptr_value(conf->replay_headers, prev->replay_headers, NULL);
    ngx_conf_merge_size_value(conf->max_request, prev->max_request,
                              16 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->max_response, prev->max_response,
                              16 * 1024 * 1024);
    ngx_conf_merge_value(conf->keep_request, prev->keep_request, 0);
    ngx_conf_merge_ptr_value(conf->limits, prev->limits, NULL);
    ngx_conf_merge_uint_value(conf->store_error, prev->store_error, 0);
    ngx_conf_merge_value(conf->chain, prev->chain, 1);

    if (conf->key_name.len == 0) {
        ngx_str_set(&conf->key_name, "idempotency-key");
    }

    idem_http_outcomes_init(&conf->outcomes);

    if (conf->outcome_words != NULL) {
        words = conf->outcome_words->elts;

        for (i = 0; i < conf->outcome_words->nelts; i++) {
            (void) idem_http_outcomes_set(&conf->outcomes,
                      ngx_http_idem_slice(&words[2 * i]),
                      idem_http_outcome_of(ngx_http_idem_slice(&words[2 * i + 1])));
        }
    }

    if (conf->enable == NGX_HTTP_IDEM_OFF) {
        return NGX_CONF_OK;
    }

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_idempotency_module);
    imcf->enabled = 1;

    return ngx_http_idem_check(cf, conf);
}


static char *
ngx_http_idem_check_values(ngx_conf_t *cf, ngx_http_idem_loc_conf_t *conf)
{
    const char  *wrong = NULL;

    if (conf->store == NULL) {
        wrong = "\"idempotency_store\" says where outcomes are recorded, and "
                "must be set";

    } else if (conf->scope == NULL && !conf->scope_global) {
        wrong = "\"idempotency_scope\" says whose keys these are, and must be "
                "set: to a variable of your authentication, or to \"global\"";

    } else if (conf->lease < IDEM_LEASE_MIN_MS) {
        wrong = "\"idempotency_lease\" must be 2s or more";

    } else if (conf->retention != NGX_HTTP_IDEM_FOREVER
               && (conf->retention < 1
                   || (uint64_t) conf->retention * 1000 < conf->lease))
    {
        wrong = "\"idempotency_retention\" must not be shorter than "
                "\"idempotency_lease\"";

    } else if (conf->retention != NGX_HTTP_IDEM_FOREVER
               && conf->retention > IDEM_DURATION_MAX_MS / 1000)
    {
        wrong = "\"idempotency_retention\" is too long; say \"forever\"";

    } else if (conf->max_response > IDEM_RESULT_MAX) {
        wrong = "\"idempotency_max_response\" must be 64m or less";
    }

    if (wrong == NULL) {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", wrong);
    return NGX_CONF_ERROR;
}


/* In all of these modules it is the first member of what belongs to a location. */

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


/* What would do the work twice is refused. */

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
