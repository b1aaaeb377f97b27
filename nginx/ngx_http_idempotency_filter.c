
/*
 * The answer of the work: held from its first byte until its outcome is on
 * record, or the time of the store is up.
 */


#include "ngx_http_idempotency.h"


ngx_http_output_header_filter_pt  ngx_http_idem_next_header_filter;
ngx_http_output_body_filter_pt    ngx_http_idem_next_body_filter;


static ngx_int_t ngx_http_idem_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_idem_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_idem_decide(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_overflow(ngx_http_idem_ctx_t *ctx,
    ngx_chain_t *rest);
static ngx_int_t ngx_http_idem_capture(ngx_http_idem_ctx_t *ctx,
    ngx_chain_t *in);
static const char *ngx_http_idem_distrust(ngx_http_request_t *r);
static ngx_uint_t ngx_http_idem_replayable(ngx_http_request_t *r);
static void ngx_http_idem_broken(ngx_http_idem_ctx_t *ctx, const char *why);


void
ngx_http_idem_filter_init(void)
{
    ngx_http_idem_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_idem_header_filter;

    ngx_http_idem_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_idem_body_filter;
}


/* ---- The header ---- */


static ngx_int_t
ngx_http_idem_header_filter(ngx_http_request_t *r)
{
    const char           *why;
    ngx_http_idem_ctx_t  *ctx;

    if (r != r->main) {
        return ngx_http_idem_next_header_filter(r);
    }

    ctx = ngx_http_idem_ctx(r);

    if (ctx == NULL
        || (ctx->state != NGX_HTTP_IDEM_OWNER
            && ctx->state != NGX_HTTP_IDEM_CAPTURE))
    {
        return ngx_http_idem_next_header_filter(r);
    }

    if (ctx->state == NGX_HTTP_IDEM_CAPTURE) {

        /* Another answer takes the place of the one that was coming in. */

        ngx_memzero(&ctx->body, sizeof(ctx->body));
    }

    if (ctx->unguarded) {

        /* Without an attempt nothing can be recorded. */

        ctx->state = NGX_HTTP_IDEM_REPLY;

        if (ngx_http_idem_add_header(r, "Idempotency-Recorded", "false", 5)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        return ngx_http_idem_next_header_filter(r);
    }

    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS
        && r->upstream != NULL && r->upstream->upgrade)
    {
        /* From here on the connection is not HTTP, and its outcome is unknown. */

        ctx->state = NGX_HTTP_IDEM_REPLY;
        ngx_http_idem_disown(ctx);
        ctx->outcome_name = idem_status_name(
                     ngx_http_idem_end_detached(ctx->store, ctx->attempt,
                                        &ctx->conf->rules, IDEM_HTTP_NO_ANSWER,
                                        "the service changed the protocol"));
        ctx->attempt = NULL;
        return ngx_http_idem_next_header_filter(r);
    }

    r->allow_ranges = 0;
    ctx->state = NGX_HTTP_IDEM_CAPTURE;

    if (ctx->problem < 0) {
        ngx_http_idem_decide(ctx);
        why = ngx_http_idem_distrust(r);

        if (why != NULL) {
            ngx_http_idem_broken(ctx, why);

            /* nginx closes the upstream, and its error page comes through here,
             * where the problem replaces it. */

            return NGX_HTTP_BAD_GATEWAY;
        }
    }

    if (r->http_version < NGX_HTTP_VERSION_10) {

        /*
         * The bytes were not HTTP.  nginx takes them for HTTP/0.9 and would
         * pass them on without a header, on a connection that stays open.  The
         * request has a key, so its own version is a later one.
         */

        r->http_version = r->http_protocol.len == sizeof("HTTP/1.0") - 1
                          && r->http_protocol.data[7] == '0'
                          ? NGX_HTTP_VERSION_10 : NGX_HTTP_VERSION_11;
        ngx_http_idem_broken(ctx, "is not HTTP");
    }

    if (ctx->kept && ngx_http_idem_record_head(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (r->header_only) {
        return ngx_http_idem_commit(ctx) == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    return NGX_OK;
}


/* Decides the outcome of the work from the header. */

static void
ngx_http_idem_decide(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t   *r = ctx->request;
    enum idem_http_end    end;
    enum idem_http_keep   keep;
    ngx_http_upstream_t  *u = r->upstream;

    end = IDEM_HTTP_ANSWERED;

    if (u != NULL
        && (u->headers_in.status_n == 0
            || (r->err_status != 0
                && r->err_status != u->headers_in.status_n)))
    {
        /* The status is nginx's own, not the upstream's. */

        end = ngx_http_idem_sent(r) ? IDEM_HTTP_NO_ANSWER : IDEM_HTTP_NOT_SENT;
    }

    keep = idem_http_outcome(&ctx->conf->rules, end,
                             (int) r->headers_out.status, ctx->text,
                             &ctx->outcome);

    ctx->kept = (keep != IDEM_HTTP_KEEP_NOTHING);
    ctx->named = (keep == IDEM_HTTP_KEEP_NAMED);
}


/*
 * Returns NULL, or what is wrong with the head of an answer.  Of two lengths
 * one may be too short, and the truncated body would be replayed.  An interim
 * response in the place of the last one does not show how the work ended.
 */

static const char *
ngx_http_idem_distrust(ngx_http_request_t *r)
{
    ngx_uint_t              lengths;
    ngx_table_elt_t        *h;
    ngx_http_upstream_t    *u = r->upstream;
    ngx_http_idem_place_t   place;

    if (u == NULL || u->headers_in.status_n == 0 || r->err_status != 0) {
        return NULL;
    }

    if (u->headers_in.status_n < NGX_HTTP_OK) {
        return "is an interim response";
    }

    lengths = 0;
    place.part = &u->headers_in.headers.part;
    place.i = 0;

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {

        if (!ngx_http_idem_is(&h->key, "Content-Length")) {
            continue;
        }

        if (++lengths > 1) {
            return "has several lengths";
        }

        if (ngx_atoof(h->value.data, h->value.len) == NGX_ERROR) {
            return "has a length that is not a number";
        }
    }

    return NULL;
}


/* ---- The body ---- */


static ngx_int_t
ngx_http_idem_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_idem_ctx_t  *ctx;

    ctx = r == r->main ? ngx_http_idem_ctx(r) : NULL;

    if (ctx == NULL) {
        return ngx_http_idem_next_body_filter(r, in);
    }

    switch (ctx->state) {

    case NGX_HTTP_IDEM_CAPTURE:
        return ngx_http_idem_capture(ctx, in);

    case NGX_HTTP_IDEM_COMMIT:
    case NGX_HTTP_IDEM_SEND:
        if (ctx->overflow && in != NULL
            && ngx_chain_add_copy(r->pool, &ctx->held, in) != NGX_OK)
        {
            return NGX_ERROR;
        }

        return ctx->state == NGX_HTTP_IDEM_COMMIT ? NGX_AGAIN
                                                  : ngx_http_idem_send(ctx);

    default:
        return ngx_http_idem_next_body_filter(r, in);
    }
}


static ngx_int_t
ngx_http_idem_capture(ngx_http_idem_ctx_t *ctx, ngx_chain_t *in)
{
    size_t                size;
    ngx_buf_t            *b;
    ngx_uint_t            last;
    ngx_chain_t          *cl;
    ngx_http_request_t   *r = ctx->request;
    ngx_http_upstream_t  *u = r->upstream;

    last = 0;

    for (cl = in; cl != NULL; cl = cl->next) {
        b = cl->buf;

        if (b->last_buf) {
            last = 1;
        }

        /* nginx gives no other sign that the upstream broke off. */

        if (b->flush && !b->last_buf && ngx_buf_special(b) && u != NULL
            && u->cleanup == NULL && !r->cached)
        {
            ngx_http_idem_broken(ctx, "broke off");
            return ngx_http_idem_commit(ctx);
        }

        if (ngx_buf_special(b)) {
            continue;
        }

        if (!ngx_buf_in_memory(b)) {
            ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                          "a part of an answer is not in memory");
            return NGX_ERROR;
        }

        size = b->last - b->pos;

        if (ctx->problem >= 0) {

            /* A problem replaces this body. */

            size = 0;
        }

        if (ngx_http_idem_body_add(r, &ctx->body, b->pos, size,
                                   r->headers_out.content_length_n)
            != NGX_OK)
        {
            /* The disk is full: pass on what could not be held. */

            return ngx_http_idem_overflow(ctx, cl);
        }

        b->pos = b->last;
        b->file_pos = b->file_last;
    }

    if (ctx->body.len > (off_t) ctx->conf->max_response && !last) {
        return ngx_http_idem_overflow(ctx, NULL);
    }

    if (!last) {
        return NGX_OK;
    }

    if (r->headers_out.content_length_n >= 0
        && r->headers_out.content_length_n != ctx->body.len
        && r->headers_out.status != NGX_HTTP_NO_CONTENT
        && r->headers_out.status != NGX_HTTP_NOT_MODIFIED)
    {
        ngx_http_idem_broken(ctx, "broke off");
    }

    return ngx_http_idem_commit(ctx);
}


/*
 * The answer cannot be kept whole, but the work is done: record that now, and
 * then send the part that is held, @rest, and everything that still comes.
 */

static ngx_int_t
ngx_http_idem_overflow(ngx_http_idem_ctx_t *ctx, ngx_chain_t *rest)
{
    ctx->overflow = 1;
    ngx_http_idem_not_kept(ctx);

    if (rest != NULL
        && ngx_chain_add_copy(ctx->request->pool, &ctx->held, rest) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_idem_commit(ctx);
}


void
ngx_http_idem_not_kept(ngx_http_idem_ctx_t *ctx)
{
    if (ctx->kept) {
        ctx->kept = 0;
        idem_http_tombstone(&ctx->outcome.result);
    }
}


/* A partial response proves only that the work began. */

void
ngx_http_idem_may_have_happened(ngx_http_idem_ctx_t *ctx, const char *text)
{
    (void) idem_http_outcome(&ctx->conf->rules, IDEM_HTTP_NO_ANSWER, 0,
                             ctx->text, &ctx->outcome);
    ctx->outcome.text = idem_str(text);
    ctx->kept = 0;
    ctx->problem = IDEM_HTTP_UPSTREAM;
}


static void
ngx_http_idem_broken(ngx_http_idem_ctx_t *ctx, const char *why)
{
    ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                  "the response to a request with an idempotency key %s", why);

    ngx_http_idem_may_have_happened(ctx, "the service sent an incomplete "
                                         "response");
}


/*
 * Whether a record has room for all of the answer.  It has none for trailers,
 * nor for the status that gRPC puts into them or into the headers.  gRPC-Web
 * has its status in the body.
 */

static ngx_uint_t
ngx_http_idem_replayable(ngx_http_request_t *r)
{
    ngx_str_t  *type = &r->headers_out.content_type;
    size_t      len = sizeof("application/grpc") - 1;

    if (r->headers_out.trailers.part.nelts > 0) {
        return 0;
    }

    return type->len < len
           || ngx_strncasecmp(type->data, (u_char *) "application/grpc", len)
              != 0
           || (type->len > len && type->data[len] == '-');
}


ngx_int_t
ngx_http_idem_commit(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_request_t  *r = ctx->request;

    if (ctx->body.len > (off_t) ctx->conf->max_response
        || !ngx_http_idem_replayable(r))
    {
        ngx_http_idem_not_kept(ctx);
    }

    r->buffered |= NGX_HTTP_IDEM_BUFFERED;
    ngx_http_idem_end(ctx);

    return NGX_AGAIN;
}
