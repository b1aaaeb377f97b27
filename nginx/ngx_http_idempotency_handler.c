
/*
 * The phase handler: from a request with a key to the verdict of the store.  It
 * runs after authentication, and before mirror and try_files.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


/* Pauses, in milliseconds, between attempts to give a claim back. */
#define NGX_HTTP_IDEM_UNCLAIM      100
#define NGX_HTTP_IDEM_UNCLAIM_MAX  5000


static void ngx_http_idem_body_handler(ngx_http_request_t *r);
static void ngx_http_idem_hash_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_idem_hashed(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_begin_local(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_begin_done(ngx_http_idem_flight_t *flight);
static void ngx_http_idem_unclaim(ngx_http_idem_flight_t *flight);
static ngx_uint_t ngx_http_idem_looked(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_refuse(ngx_http_request_t *r,
    enum idem_http_problem_kind kind);


ngx_int_t
ngx_http_idem_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc, problem;
    ngx_str_t                  key, scope;
    ngx_http_idem_ctx_t       *ctx;
    ngx_http_idem_loc_conf_t  *conf;

    if (r != r->main) {
        return ngx_http_idem_guard_subrequest(r);
    }

    ctx = ngx_http_idem_ctx(r);

    if (ctx != NULL) {
        switch (ctx->state) {

        case NGX_HTTP_IDEM_HASH:
        case NGX_HTTP_IDEM_BEGIN:
        case NGX_HTTP_IDEM_WAIT:
        case NGX_HTTP_IDEM_FETCH:
            return NGX_DONE;

        case NGX_HTTP_IDEM_LIMITED:
            return ngx_http_idem_begin(ctx);

        case NGX_HTTP_IDEM_BEGUN:
            return ngx_http_idem_reply_verdict(ctx);

        case NGX_HTTP_IDEM_BODY:

            /* The body could not be read, and this is the error page. */

            return NGX_DECLINED;

        default:

            /* try_files or another redirect */

            return ngx_http_idem_guard(ctx);
        }
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_idempotency_module);

    if (conf->enable == NGX_HTTP_IDEM_OFF) {
        return NGX_DECLINED;
    }

    if (ngx_http_idem_request_strip(r) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!(r->method & conf->methods) || r->error_page) {
        return NGX_DECLINED;
    }

    if (conf->key_from != NULL) {

        /* The selector needs the body: ngx_http_idem_body_handler(). */

        ngx_str_null(&key);
        problem = IDEM_HTTP_UPGRADE;
        rc = ngx_http_idem_request_upgrades(r) ? NGX_DECLINED : NGX_OK;

    } else {
        rc = ngx_http_idem_request_key(r, conf, &key, &problem);
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        if (problem < 0) {
            return NGX_DECLINED;
        }

        return ngx_http_idem_refuse(r, problem);
    }

    if (ngx_http_idem_request_scope(r, conf, &scope, &problem) != NGX_OK) {
        return ngx_http_idem_refuse(r, problem);
    }

    if (r->headers_in.content_length_n > (off_t) conf->max_request) {
        return ngx_http_idem_refuse(r, IDEM_HTTP_TOO_LARGE);
    }

    ctx = ngx_http_idem_ctx_create(r, conf);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->key = key;
    ctx->scope = scope;

    /* A large body in a file is expected, so nginx need not warn of it. */

    r->request_body_file_log_level = NGX_LOG_INFO;

    rc = ngx_http_read_client_request_body(r, ngx_http_idem_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);
    return NGX_DONE;
}


/* Answers with a problem.  nginx would parse an unread body as a request. */

static ngx_int_t
ngx_http_idem_refuse(ngx_http_request_t *r, enum idem_http_problem_kind kind)
{
    ngx_int_t  rc;

    /*
     * Suppress 100 Continue.  A client that waited for it may skip the body, so
     * the next bytes may be either the body or a request: close the connection.
     */

    r->expect_tested = 1;

    if (r->headers_in.expect != NULL) {
        r->keepalive = 0;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_idem_reply_problem(r, kind, 0);
}


/* ---- The body ---- */


static void
ngx_http_idem_body_handler(ngx_http_request_t *r)
{
    ngx_int_t             rc;
    ngx_chain_t          *cl;
    ngx_http_idem_ctx_t  *ctx;

    ctx = ngx_http_idem_ctx(r);

    r->preserve_body = 1;
    r->write_event_handler = ngx_http_core_run_phases;

    for (cl = r->request_body->bufs; cl != NULL; cl = cl->next) {
        ctx->body_len += ngx_buf_size(cl->buf);
    }

    if (ctx->body_len > (off_t) ctx->conf->max_request) {
        (void) ngx_http_idem_reply_problem(r, IDEM_HTTP_TOO_LARGE, 0);
        return;
    }

    rc = ngx_http_idem_select(ctx);

    if (rc == NGX_OK) {
        ctx->state = NGX_HTTP_IDEM_HASH;
        ctx->print_chain = r->request_body->bufs;
        rc = ngx_http_idem_hashed(ctx);
    }

    if (rc != NGX_DONE) {
        ngx_http_finalize_request(r, rc);
    }
}


/* Hashes as much as one turn of the loop may take, and begins at the end. */

static ngx_int_t
ngx_http_idem_hashed(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_idem_request_hash(ctx);

    if (rc == NGX_AGAIN) {
        ngx_http_idem_later(ctx, ngx_http_idem_hash_handler);
        return NGX_DONE;
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_idem_begin(ctx);
}


static void
ngx_http_idem_hash_handler(ngx_event_t *ev)
{
    ngx_int_t             rc;
    ngx_connection_t     *c;
    ngx_http_idem_ctx_t  *ctx = ev->data;
    ngx_http_request_t   *r = ctx->request;

    c = r->connection;
    rc = ngx_http_idem_hashed(ctx);
    ngx_http_idem_go_on(c, r, rc);
}


/* ---- Begin ---- */


/* The traceparent of the request, unless there are several. */

static struct idem_slice
ngx_http_idem_traceparent(ngx_http_request_t *r)
{
    struct idem_slice       value = idem_str(NULL);
    ngx_table_elt_t        *h;
    ngx_http_idem_place_t   place = { &r->headers_in.headers.part, 0 };

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {
        if (h->key.len == sizeof("traceparent") - 1
            && ngx_strncasecmp(h->key.data, (u_char *) "traceparent",
                               h->key.len) == 0)
        {
            if (value.base != NULL) {
                return idem_str(NULL);
            }

            value = ngx_http_idem_slice(&h->value);
        }
    }

    return value;
}


ngx_int_t
ngx_http_idem_begin(ngx_http_idem_ctx_t *ctx)
{
    int                         rc;
    ngx_str_t                   input;
    struct idem_op             *op;
    struct idem_error           error;
    struct idem_request         request = IDEM_REQUEST_INIT;
    ngx_http_request_t         *r = ctx->request;
    ngx_http_idem_loc_conf_t   *conf = ctx->conf;
    ngx_http_idem_main_conf_t  *imcf;

    /* A waiter starts no attempt: it needs neither the journal nor a limit. */

    if (!ctx->waits) {
        rc = ngx_http_idem_begin_local(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        rc = ngx_http_idem_journal_tell(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        rc = ngx_http_idem_limit(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    imcf = ngx_http_get_module_main_conf(r, ngx_http_idempotency_module);

    request.scope = ngx_http_idem_slice(&ctx->scope);
    request.key = ngx_http_idem_slice(&ctx->key);
    request.on_expired_lease = (enum idem_on_expired_lease) conf->on_expired;
    request.owner = ngx_http_idem_slice(&imcf->owner);
    request.traceparent = ngx_http_idem_traceparent(r);
    request.lease_ms = conf->lease;
    request.retention_ms = conf->retention;

    /* A look joins every attempt, so it never starts one. */

    request.join_fence = ctx->looks ? UINT64_MAX : ctx->join_fence;
    request.bodies_max = NGX_HTTP_IDEM_MEMORY;

    if (ctx->has_fingerprint) {
        request.fingerprint = idem_bytes(ctx->fingerprint,
                                         IDEM_FINGERPRINT_LEN);
    }

    if (conf->keep_input && !ctx->waits && !ctx->looks) {
        if (ngx_http_idem_request_input(ctx, &input) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        request.input = ngx_http_idem_slice(&input);
    }

    rc = idem_op_begin(&request, &op, &error);

    if (rc != 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "idempotency: cannot look up a key: %s", error.text);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(ctx->id, idem_op_id(op), IDEM_ID_LEN);
    ctx->has_id = 1;

    ctx->asked = ngx_current_msec;

    rc = ngx_http_idem_ask(ctx, op, ngx_http_idem_begin_done);

    if (rc == NGX_DONE) {
        ctx->flight->until = ngx_current_msec + conf->lease;
    }

    return rc;
}


/*
 * Answers a duplicate without the store if this worker owns the key, but only
 * until the lease ends that the worker knows of: after that another attempt may
 * own the key, so the store decides.
 */

static ngx_int_t
ngx_http_idem_begin_local(ngx_http_idem_ctx_t *ctx)
{
    ngx_msec_int_t        left;
    ngx_http_idem_ctx_t  *owner;

    owner = ngx_http_idem_owner_find(ctx);

    if (owner == NULL || owner->lost) {
        return NGX_DECLINED;
    }

    left = (ngx_msec_int_t) (owner->lease_end - ngx_current_msec);
    if (left <= 0) {
        return NGX_DECLINED;
    }

    ctx->verdict = IDEM_BUSY;

    if (ctx->has_fingerprint && owner->has_fingerprint
        && ngx_memcmp(ctx->fingerprint, owner->fingerprint,
                      IDEM_FINGERPRINT_LEN)
           != 0)
    {
        ctx->verdict = IDEM_MISMATCH;
    }

    ctx->code = 0;
    ctx->lease_left = left;
    ctx->retry_after = idem_http_retry_after(
                             (ngx_msec_int_t) (ngx_current_msec
                                               - owner->started));
    ctx->fence = owner->fence;
    ctx->state = NGX_HTTP_IDEM_BEGUN;

    ctx->request->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(ctx->request);

    return NGX_DONE;
}


static void
ngx_http_idem_begin_done(ngx_http_idem_flight_t *flight)
{
    struct idem_op            *op;
    struct idem_attempt       *attempt;
    ngx_http_idem_ctx_t       *ctx = flight->ctx;
    struct idem_http_answer    answer;
    const struct idem_record  *record;

    if (flight->code == IDEM_EUNKNOWN) {
        flight->ambiguous = 1;
    }

    if (ctx == NULL) {
        ngx_http_idem_unclaim(flight);
        return;
    }

    /* The same op again finds its own earlier claim. */

    if (ngx_http_idem_ask_again(flight)) {
        return;
    }

    ctx->flight = NULL;
    ctx->code = flight->code;

    if (flight->code == 0) {
        op = flight->op;
        flight->op = NULL;

        ctx->verdict = idem_op_verdict(op);
        ctx->begun = op;

        record = idem_op_record(op);
        if (record != NULL) {
            ctx->fence = record->fence;
            ctx->attempts = record->attempts;
            ctx->expires_ms = record->expires_ms;
        }

        if (ctx->verdict == IDEM_BUSY
            && idem_op_take_attempt(op, &attempt) == 0)
        {
            ctx->lease_left = attempt->lease_left_ms;
            idem_http_answer_of(0, attempt, idem_bytes(NULL, 0), &answer);
            ctx->retry_after = answer.retry_after_s;
            idem_attempt_destroy(attempt);
            idem_op_destroy(op);
            ctx->begun = NULL;
        }

    } else {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "idempotency: cannot look up a key: %s",
                      ngx_http_idem_flight_reason(flight));
    }

    if (flight->late) {

        /* The flight goes on; no request waits for it. */

    } else if (flight->ambiguous && flight->code != 0) {

        /* The store may hold a claim, for which this request does no work. */

        flight->ctx = NULL;
        ngx_http_idem_unclaim(flight);

    } else {
        ngx_http_idem_flight_free(flight);
    }

    ctx->state = ngx_http_idem_looked(ctx) ? NGX_HTTP_IDEM_LIMITED
                                           : NGX_HTTP_IDEM_BEGUN;
    ngx_http_idem_resume(ctx);
}


/*
 * The request has ended, and its work will not start: give the claim back.  If
 * the store's answer was lost, ask until it comes; otherwise the claim would
 * look like work that stopped without a report, and under hold a person would
 * have to decide about it.
 */

static void
ngx_http_idem_unclaim(ngx_http_idem_flight_t *flight)
{
    struct idem_attempt  *attempt;

    if (flight->ambiguous && flight->code != 0) {

        if (idem_error_kind(flight->code) == IDEM_KIND_RETRY
            && (ngx_msec_int_t) (flight->until - ngx_current_msec) > 0)
        {
            ngx_http_idem_resubmit_after(flight,
                             ngx_min(NGX_HTTP_IDEM_UNCLAIM_MAX,
                                     NGX_HTTP_IDEM_UNCLAIM << flight->tries));
            flight->tries = ngx_min(flight->tries + 1, 10);
            return;
        }

        ngx_log_error(NGX_LOG_ERR, flight->store->log, 0,
                      "idempotency store \"%V\" may hold a claim for a request "
                      "that was not executed; it ends with its lease",
                      &flight->store->url);
    }

    if (flight->code == 0
        && idem_op_verdict(flight->op) == IDEM_STARTED
        && idem_op_take_attempt(flight->op, &attempt) == 0)
    {
        (void) ngx_http_idem_end_detached(flight->store, attempt, NULL,
                                          IDEM_HTTP_NOT_SENT,
                                          "nobody waited for the claim");
    }

    ngx_http_idem_flight_free(flight);
}


/*
 * Whether this was a look, and the key may still be claimed.  A look finds
 * RELEASED where a claim would start an attempt.
 */

static ngx_uint_t
ngx_http_idem_looked(ngx_http_idem_ctx_t *ctx)
{
    if (!ctx->looks) {
        return 0;
    }

    ctx->looks = 0;

    if (ctx->code != 0) {
        return 0;
    }

    if (ctx->verdict == IDEM_BUSY && ctx->lease_left <= 0) {

        /* The limits counted the key when its first attempt began. */

        ctx->limits->nelts = 0;

    } else if (ctx->verdict != IDEM_RELEASED) {
        return 0;
    }

    idem_op_destroy(ctx->begun);
    ctx->begun = NULL;
    return 1;
}
