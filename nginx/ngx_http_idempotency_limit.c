
/*
 * Limits on new keys.  The record is read first, because a known key does not
 * count.  Then the limits are asked one after the other.  Each decides about
 * the identity of the key, so that a retry gets the same decision again.
 */


#include "ngx_http_idempotency.h"

#include <idem/limit.h>


/* One limit of this request, and what was decided. */
typedef struct {
    struct idem_limit_request  request;
    struct idem_limited        limited;
} ngx_http_idem_limited_t;


static ngx_int_t ngx_http_idem_limit_values(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_limit_done(ngx_http_idem_flight_t *flight);
static int64_t ngx_http_idem_limit_now(void);


ngx_int_t
ngx_http_idem_limit(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t                 rc;
    struct idem_op           *op;
    struct idem_error         error;
    ngx_http_request_t       *r = ctx->request;
    ngx_http_idem_limited_t  *limits;

    if (ctx->conf->limits == NULL) {
        return NGX_DECLINED;
    }

    if (ctx->limits == NULL) {
        rc = ngx_http_idem_limit_values(ctx);

        if (rc != NGX_OK) {
            return rc;
        }

        ctx->looks = (ctx->limits->nelts > 0);
    }

    if (ctx->looks || ctx->limit_n == ctx->limits->nelts) {
        return NGX_DECLINED;
    }

    limits = ctx->limits->elts;

    if (idem_op_limit(&limits[ctx->limit_n].request, &op, &error) != 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "idempotency: cannot check a limit: %s", error.text);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_idem_ask(ctx, op, ngx_http_idem_limit_done);
}


/* Evaluates the subject of each limit; one without a subject does not apply. */

static ngx_int_t
ngx_http_idem_limit_values(ngx_http_idem_ctx_t *ctx)
{
    int64_t                     now;
    ngx_str_t                   value;
    ngx_uint_t                  i, n;
    const uint8_t              *id;
    ngx_http_request_t         *r = ctx->request;
    ngx_http_idem_limit_t      *conf;
    ngx_http_idem_limited_t    *limit;
    struct idem_limit_request   request = IDEM_LIMIT_INIT;

    conf = ctx->conf->limits->elts;
    n = ctx->conf->limits->nelts;

    ctx->limits = ngx_array_create(r->pool, ngx_max(n, 1),
                                   sizeof(ngx_http_idem_limited_t));
    id = ngx_http_idem_id(ctx);

    if (ctx->limits == NULL || id == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    now = ngx_http_idem_limit_now();

    for (i = 0; i < n; i++) {
        if (ngx_http_complex_value(r, conf[i].value, &value) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (value.len == 0) {
            continue;
        }

        if (!ngx_http_idem_once(r, conf[i].value)) {
            return ngx_http_idem_reply_problem(r, IDEM_HTTP_SCOPE_AMBIGUOUS, 0);
        }

        if (value.len > IDEM_LIMIT_NAME_MAX) {
            return ngx_http_idem_reply_problem(r, IDEM_HTTP_SCOPE_MISSING, 0);
        }

        limit = ngx_array_push(ctx->limits);
        if (limit == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        limit->request = request;
        limit->request.name = ngx_http_idem_slice(&conf[i].name);
        limit->request.subject = ngx_http_idem_slice(&value);
        limit->request.request = idem_bytes(id, IDEM_ID_LEN);
        limit->request.at_ms = now;
        limit->request.max = conf[i].max;
        limit->request.per_ms = conf[i].per_ms;

        /* A request is about the present window, but clocks differ. */

        limit->request.late_ms = IDEM_LIMIT_AHEAD_MS;
    }

    return NGX_OK;
}


static void
ngx_http_idem_limit_done(ngx_http_idem_flight_t *flight)
{
    ngx_http_idem_ctx_t      *ctx = flight->ctx;
    ngx_http_idem_limited_t  *limits;

    if (ctx == NULL) {
        ngx_http_idem_flight_free(flight);
        return;
    }

    /* The same op again counts once. */

    if (ngx_http_idem_ask_again(flight)) {
        return;
    }

    ctx->flight = NULL;
    ctx->code = flight->code;
    ctx->state = NGX_HTTP_IDEM_BEGUN;

    if (flight->code == 0) {
        limits = ctx->limits->elts;
        limits[ctx->limit_n].limited = *idem_op_limited(flight->op);

        if (limits[ctx->limit_n].limited.admitted) {
            ctx->state = NGX_HTTP_IDEM_LIMITED;

        } else {
            ctx->limited = 1;
        }

        ctx->limit_n++;

    } else {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "idempotency: cannot check a limit: %s",
                      ngx_http_idem_flight_reason(flight));
    }

    ngx_http_idem_flight_free(flight);
    ngx_http_idem_resume(ctx);
}


ngx_int_t
ngx_http_idem_limit_headers(ngx_http_idem_ctx_t *ctx)
{
    int64_t                   now;
    ngx_uint_t                i;
    struct idem_error         error;
    ngx_http_request_t       *r = ctx->request;
    struct idem_limit_http    fields;
    ngx_http_idem_limited_t  *limits;

    if (ctx->limit_n == 0) {
        return NGX_OK;
    }

    now = ngx_http_idem_limit_now();
    limits = ctx->limits->elts;

    for (i = 0; i < ctx->limit_n; i++) {
        if (idem_limit_fields(&limits[i].request, &limits[i].limited, now,
                              &fields, &error) != 0
            || ngx_http_idem_add_header(r, "RateLimit-Policy", fields.policy,
                                        ngx_strlen(fields.policy))
               != NGX_OK
            || ngx_http_idem_add_header(r, "RateLimit", fields.limit,
                                        ngx_strlen(fields.limit))
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* The last limit that was asked is the one that refused. */

ngx_int_t
ngx_http_idem_limit_refuse(ngx_http_idem_ctx_t *ctx)
{
    int64_t                   left;
    ngx_http_idem_limited_t  *limits = ctx->limits->elts;

    if (ngx_http_idem_limit_headers(ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    left = limits[ctx->limit_n - 1].limited.end_ms - ngx_http_idem_limit_now();
    left = ngx_max(left, 1);

    ctx->verdict_name = "limited";
    return ngx_http_idem_reply_problem(ctx->request, IDEM_HTTP_RATE_LIMITED,
                                       (time_t) ((left + 999) / 1000));
}


static int64_t
ngx_http_idem_limit_now(void)
{
    ngx_time_t  *tp = ngx_timeofday();

    return (int64_t) tp->sec * 1000 + tp->msec;
}


/* ---- The directive ---- */


static ngx_int_t
ngx_http_idem_limit_rate(ngx_str_t *rate, ngx_http_idem_limit_t *limit)
{
    static const struct {
        u_char   letter;
        int64_t  ms;
    } units[] = {
        { 's', IDEM_LIMIT_SECOND },
        { 'm', IDEM_LIMIT_MINUTE },
        { 'h', IDEM_LIMIT_HOUR },
        { 'd', IDEM_LIMIT_DAY }
    };

    u_char      *p, *last;
    ngx_int_t    n;
    ngx_str_t    per;
    ngx_uint_t   i;

    last = rate->data + rate->len;
    p = ngx_strlchr(rate->data, last, 'r');

    if (p == NULL || last - p < 3 || p[1] != '/') {
        return NGX_ERROR;
    }

    n = ngx_atoi(rate->data, p - rate->data);

    if (n < 1 || n > IDEM_LIMIT_MAX) {
        return NGX_ERROR;
    }

    limit->max = n;
    per.data = p + 2;
    per.len = last - per.data;

    for (i = 0; per.len == 1 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (per.data[0] == units[i].letter) {
            limit->per_ms = units[i].ms;
            return NGX_OK;
        }
    }

    return idem_setting_read(IDEM_SETTING(IDEM_SETTING_TIME,
                                          .min = IDEM_LIMIT_SECOND,
                                          .max = IDEM_LIMIT_PER_MAX),
                             "rate", (char *) per.data, &limit->per_ms, NULL)
           == 0 ? NGX_OK : NGX_ERROR;
}


char *
ngx_http_idem_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value = cf->args->elts;
    ngx_uint_t                 i, off;
    ngx_http_idem_limit_t     *limit;
    ngx_http_idem_loc_conf_t  *ilcf = conf;

    off = (cf->args->nelts == 2);

    if (off && ngx_strcmp(value[1].data, "off") != 0) {
        return "needs a name, a value and a rate, or \"off\"";
    }

    if (ilcf->limits == NULL || (off && ilcf->limits != NGX_CONF_UNSET_PTR)) {
        return "cannot combine \"off\" with a limit";
    }

    if (off) {
        ilcf->limits = NULL;
        return NGX_CONF_OK;
    }

    if (ilcf->limits == NGX_CONF_UNSET_PTR) {
        ilcf->limits = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_idem_limit_t));
        if (ilcf->limits == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (ilcf->limits->nelts == NGX_HTTP_IDEM_LIMITS) {
        return "may be given at most 8 times";
    }

    if (value[1].len < 1 || value[1].len > IDEM_LIMIT_NAME_MAX) {
        return "has a name that is not 1 to 255 bytes long";
    }

    limit = ilcf->limits->elts;

    for (i = 0; i < ilcf->limits->nelts; i++) {
        if (limit[i].name.len == value[1].len
            && ngx_strcmp(limit[i].name.data, value[1].data) == 0)
        {
            return "is a duplicate: each limit needs its own name";
        }
    }

    limit = ngx_array_push(ilcf->limits);
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    limit->name = value[1];

    if (ngx_http_idem_complex(cf, &value[2], &limit->value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_idem_limit_rate(&value[3], limit) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%V\"",
                           &value[3]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
