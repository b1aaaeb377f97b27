
/*
 * Key and fingerprint that a jq program selects from the request.
 *
 * A program runs in a process of its own, which is waited for like a client: its
 * descriptor is in the event loop, with a timer.  So many run at once in each
 * worker; the next ones wait for their turn.
 */


#include "ngx_http_idempotency.h"


/* No body is larger that fits the text for a program. */
#define NGX_HTTP_IDEM_SELECT_MAX   (16 * 1024 * 1024)


static ngx_int_t ngx_http_idem_select_start(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_select_watch(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_select_body(ngx_http_idem_ctx_t *ctx,
    ngx_str_t *body, u_char **memory);
static ngx_int_t ngx_http_idem_select_take(ngx_http_idem_ctx_t *ctx);
static ngx_int_t ngx_http_idem_select_failed(ngx_http_idem_ctx_t *ctx,
    struct idem_error *error, ngx_uint_t cut_off);
static ngx_int_t ngx_http_idem_select_refuse(ngx_http_idem_ctx_t *ctx,
    const char *why);
static void ngx_http_idem_select_end(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_select_read_handler(ngx_event_t *ev);
static void ngx_http_idem_select_timer_handler(ngx_event_t *ev);
static void ngx_http_idem_select_next_handler(ngx_event_t *ev);


/* Of this worker. */

static ngx_uint_t   ngx_http_idem_select_running;
static ngx_uint_t   ngx_http_idem_select_waiting;
static ngx_queue_t  ngx_http_idem_select_queue;
static ngx_event_t  ngx_http_idem_select_next;


/* ---- A request ---- */


void
ngx_http_idem_select_init(ngx_log_t *log)
{
    ngx_queue_init(&ngx_http_idem_select_queue);
    ngx_http_idem_select_running = 0;
    ngx_http_idem_select_waiting = 0;

    ngx_http_idem_select_next.handler = ngx_http_idem_select_next_handler;
    ngx_http_idem_select_next.log = log;
}


/* NGX_OK: there is nothing (more) to select.  NGX_DONE: it is waited for, or the
 * request is answered.  Else what it is finalized with. */

ngx_int_t
ngx_http_idem_select(ngx_http_idem_ctx_t *ctx)
{
    ngx_connection_t           *c;
    ngx_http_request_t         *r = ctx->request;
    ngx_http_idem_main_conf_t  *imcf;

    if (ctx->conf->key_from != NULL && ctx->key.len == 0) {
        ctx->select = ctx->conf->key_from;

    } else if (ctx->conf->fingerprint_from != NULL
               && ctx->selected.data == NULL)
    {
        ctx->select = ctx->conf->fingerprint_from;

    } else {
        return NGX_OK;
    }

    imcf = ngx_http_get_module_main_conf(r, ngx_http_idempotency_module);
    c = r->connection;

    ctx->state = NGX_HTTP_IDEM_SELECT;

    /* A client that leaves takes its selection with it. */

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ctx->select_timer.data = ctx;
    ctx->select_timer.handler = ngx_http_idem_select_timer_handler;
    ctx->select_timer.log = c->log;

    if (ngx_http_idem_select_running < imcf->select_processes
        && ngx_queue_empty(&ngx_http_idem_select_queue))
    {
        return ngx_http_idem_select_start(ctx);
    }

    if (ngx_http_idem_select_waiting >= imcf->select_waiting) {
        return ngx_http_idem_select_refuse(ctx, "too many selections wait");
    }

    ngx_queue_insert_tail(&ngx_http_idem_select_queue, &ctx->selecting);
    ngx_http_idem_select_waiting++;
    ctx->select_waits = 1;
    ngx_add_timer(&ctx->select_timer, ctx->select->timeout);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_idem_select_headers(ngx_http_request_t *r, ngx_array_t *headers)
{
    ngx_uint_t                  i;
    ngx_list_part_t            *part;
    ngx_table_elt_t            *h;
    struct idem_select_header  *header;

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            header = ngx_array_push(headers);
            if (header == NULL) {
                return NGX_ERROR;
            }

            header->name = ngx_http_idem_slice(&h[i].key);
            header->value = ngx_http_idem_slice(&h[i].value);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_select_start(ngx_http_idem_ctx_t *ctx)
{
    int                          rc;
    u_char                      *memory;
    ngx_str_t                    body;
    ngx_array_t                  headers;
    struct idem_error            error;
    ngx_http_request_t          *r = ctx->request;
    struct idem_select_request   request;

    if (ngx_array_init(&headers, r->pool, 16,
                       sizeof(struct idem_select_header))
        != NGX_OK
        || ngx_http_idem_select_headers(r, &headers) != NGX_OK
        || ngx_http_idem_select_body(ctx, &body, &memory) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    request.method = ngx_http_idem_slice(&r->method_name);
    request.target = ngx_http_idem_slice(&r->unparsed_uri);
    request.headers = headers.elts;
    request.headers_len = headers.nelts;
    request.body = ngx_http_idem_slice(&body);

    rc = idem_select_start_request(ctx->select->select, &request,
                                   &ctx->selection, &error);

    /* The process has a copy. */

    if (memory != NULL) {
        ngx_free(memory);
    }

    if (rc == IDEM_EINVALID) {
        return ngx_http_idem_reply_problem(r, IDEM_HTTP_TOO_LARGE, -1);
    }

    if (rc != 0) {
        return ngx_http_idem_select_failed(ctx, &error, 1);
    }

    ngx_http_idem_select_running++;

    if (ngx_http_idem_select_watch(ctx) != NGX_OK) {
        ngx_http_idem_select_stop(ctx);
        return ngx_http_idem_select_refuse(ctx, "no connection is free");
    }

    return NGX_DONE;
}


/* In one piece, as it is in memory; *@memory is to be freed, if it is not NULL. */

static ngx_int_t
ngx_http_idem_select_body(ngx_http_idem_ctx_t *ctx, ngx_str_t *body,
    u_char **memory)
{
    u_char       *p;
    ngx_chain_t  *cl = ctx->request->request_body->bufs;

    *memory = NULL;
    body->len = 0;
    body->data = (u_char *) "";

    if (cl == NULL || ctx->body_len > NGX_HTTP_IDEM_SELECT_MAX) {

        /* One that is too long is refused by its length. */

        body->len = cl == NULL ? 0 : (size_t) ctx->body_len;
        return NGX_OK;
    }

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        body->data = cl->buf->pos;
        body->len = cl->buf->last - cl->buf->pos;
        return NGX_OK;
    }

    p = ngx_alloc(ngx_max(ctx->body_len, 1), ctx->request->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_idem_request_copy(ctx, p) == NULL) {
        ngx_free(p);
        return NGX_ERROR;
    }

    *memory = p;
    body->data = p;
    body->len = (size_t) ctx->body_len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_select_watch(ngx_http_idem_ctx_t *ctx)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(idem_selection_fd(ctx->selection), ngx_cycle->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = ctx;
    c->read->handler = ngx_http_idem_select_read_handler;
    c->read->log = ngx_cycle->log;
    c->write->log = ngx_cycle->log;
    ctx->select_connection = c;

    ngx_add_timer(&ctx->select_timer,
                  (ngx_msec_t) idem_selection_left_ms(ctx->selection));

    return ngx_add_event(c->read, NGX_READ_EVENT,
                         (ngx_event_flags & NGX_USE_CLEAR_EVENT)
                         ? NGX_CLEAR_EVENT : 0);
}


/* At any time: what runs is ended, what waits is forgotten. */

void
ngx_http_idem_select_stop(ngx_http_idem_ctx_t *ctx)
{
    ngx_connection_t  *c = ctx->select_connection;

    if (ctx->select_timer.timer_set) {
        ngx_del_timer(&ctx->select_timer);
    }

    if (ctx->select_waits) {
        ctx->select_waits = 0;
        ngx_queue_remove(&ctx->selecting);
        ngx_http_idem_select_waiting--;
    }

    if (c != NULL) {
        ctx->select_connection = NULL;

        if (c->read->posted) {
            ngx_delete_posted_event(c->read);
        }

        if (c->read->active) {
            (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
        }

        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
    }

    if (ctx->selection != NULL) {
        idem_selection_destroy(ctx->selection);
        ctx->selection = NULL;
        ngx_http_idem_select_running--;

        if (!ngx_queue_empty(&ngx_http_idem_select_queue)
            && !ngx_http_idem_select_next.posted)
        {
            ngx_post_event(&ngx_http_idem_select_next, &ngx_posted_events);
        }
    }
}


/* ---- The answer ---- */


static void
ngx_http_idem_select_read_handler(ngx_event_t *ev)
{
    ngx_connection_t     *c = ev->data;
    ngx_http_idem_ctx_t  *ctx = c->data;

    if (idem_selection_ready(ctx->selection)) {
        ngx_http_idem_select_end(ctx);
    }
}


static void
ngx_http_idem_select_timer_handler(ngx_event_t *ev)
{
    ngx_http_idem_ctx_t  *ctx = ev->data;

    if (ctx->selection != NULL && !idem_selection_ready(ctx->selection)) {
        ngx_add_timer(ev, (ngx_msec_t)
                          idem_selection_left_ms(ctx->selection) + 1);
        return;
    }

    ngx_http_idem_select_end(ctx);
}


/* Takes the answer, and goes on with what is to be done next. */

static void
ngx_http_idem_select_end(ngx_http_idem_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r = ctx->request;
    ngx_connection_t    *c = r->connection;

    if (ctx->selection == NULL) {
        ngx_http_idem_select_stop(ctx);
        rc = ngx_http_idem_select_refuse(ctx, "others took all of its time");

    } else {
        rc = ngx_http_idem_select_take(ctx);
    }

    /* NGX_DONE: the request and its context may be gone. */

    if (rc == NGX_OK) {
        r->read_event_handler = ngx_http_block_reading;
        rc = ngx_http_idem_prepare(ctx);
    }

    ngx_http_idem_go_on(c, r, rc);
}


/* NGX_OK: the key or fingerprint is there.  NGX_DONE: the request is answered. */

static ngx_int_t
ngx_http_idem_select_take(ngx_http_idem_ctx_t *ctx)
{
    int                 rc;
    u_char             *p;
    ngx_uint_t          cut_off;
    struct idem_error   error;
    struct idem_slice   output;

    rc = idem_selection_output(ctx->selection, &output, &error);
    cut_off = idem_selection_cut_off(ctx->selection) || rc == IDEM_ENOMEM;

    if (rc == 0 && !ctx->select->several) {
        output = idem_selection_text(ctx->selection);

        if (output.len == 0 || output.len > IDEM_KEY_MAX) {
            rc = IDEM_EINVALID;
            (void) ngx_snprintf((u_char *) error.text, sizeof(error.text),
                                "a key has 1 to %d bytes, and what the "
                                "program selects has %uz%Z", IDEM_KEY_MAX,
                                output.len);
        }
    }

    p = NULL;

    if (rc == 0) {
        p = ngx_pnalloc(ctx->request->pool, output.len);

        if (p != NULL) {
            ngx_memcpy(p, output.base, output.len);
        }
    }

    ngx_http_idem_select_stop(ctx);

    if (rc != 0) {
        return ngx_http_idem_select_failed(ctx, &error, cut_off);
    }

    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->select->several) {
        ctx->selected.data = p;
        ctx->selected.len = output.len;

    } else {
        ctx->key.data = p;
        ctx->key.len = output.len;
    }

    return NGX_OK;
}


/* Either the request lacks something, or this was not the time. */

static ngx_int_t
ngx_http_idem_select_failed(ngx_http_idem_ctx_t *ctx, struct idem_error *error,
    ngx_uint_t cut_off)
{
    if (cut_off) {
        return ngx_http_idem_select_refuse(ctx, error->text);
    }

    ngx_log_error(NGX_LOG_INFO, ctx->request->connection->log, 0,
                  "%s: %s", ctx->select->name, error->text);

    return ngx_http_idem_reply_problem(ctx->request,
                                       ctx->select->several
                                       ? IDEM_HTTP_FINGERPRINT_UNSELECTED
                                       : IDEM_HTTP_KEY_UNSELECTED, -1);
}


static ngx_int_t
ngx_http_idem_select_refuse(ngx_http_idem_ctx_t *ctx, const char *why)
{
    ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                  "%s: %s; the request was not executed", ctx->select->name,
                  why);

    return ngx_http_idem_reply_problem(ctx->request, IDEM_HTTP_UNSELECTED, 1);
}


static void
ngx_http_idem_select_next_handler(ngx_event_t *ev)
{
    ngx_int_t                   rc;
    ngx_queue_t                *q;
    ngx_connection_t           *c;
    ngx_http_idem_ctx_t        *ctx;
    ngx_http_request_t         *r;
    ngx_http_idem_main_conf_t  *imcf;

    while (!ngx_queue_empty(&ngx_http_idem_select_queue)) {
        q = ngx_queue_head(&ngx_http_idem_select_queue);
        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, selecting);
        r = ctx->request;
        c = r->connection;

        imcf = ngx_http_get_module_main_conf(r, ngx_http_idempotency_module);

        if (ngx_http_idem_select_running >= imcf->select_processes) {
            return;
        }

        /* Out of the queue, without its timer. */

        ngx_http_idem_select_stop(ctx);
        rc = ngx_http_idem_select_start(ctx);

        ngx_http_idem_go_on(c, r, rc);
    }
}
