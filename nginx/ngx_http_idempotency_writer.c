
/*
 * Puts outcomes into the journal before a remote store is told: a worker that
 * dies in between has told the disk.  The disk is waited for in a thread of its
 * own, one for each such store.
 */


#include "ngx_http_idempotency.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>


#define NGX_HTTP_IDEM_WRITER_GUARD  10000


struct ngx_http_idem_writer_s {
    ngx_http_idem_store_t  *store;
    ngx_connection_t       *connection;
    int                     fd;
    pthread_t               thread;
    pthread_mutex_t         mutex;
    pthread_cond_t          wake;
    ngx_queue_t             asked;     /* ngx_http_idem_ctx_t, by job */
    ngx_queue_t             done;
    unsigned                stop:1;
};


static void *ngx_http_idem_writer_run(void *data);
static void ngx_http_idem_writer_handler(ngx_event_t *ev);
static void ngx_http_idem_writer_guard(ngx_event_t *ev);


ngx_http_idem_writer_t *
ngx_http_idem_writer_start(ngx_http_idem_store_t *store)
{
    int                      rc;
    sigset_t                 all, before;
    ngx_connection_t        *c;
    ngx_http_idem_writer_t  *w;

    w = ngx_calloc(sizeof(ngx_http_idem_writer_t), store->log);
    if (w == NULL) {
        return NULL;
    }

    w->store = store;
    ngx_queue_init(&w->asked);
    ngx_queue_init(&w->done);

    w->fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    if (w->fd == -1) {
        ngx_free(w);
        return NULL;
    }

    c = ngx_get_connection(w->fd, store->log);
    if (c == NULL) {
        (void) close(w->fd);
        ngx_free(w);
        return NULL;
    }

    c->data = w;
    c->read->handler = ngx_http_idem_writer_handler;
    c->read->log = store->log;
    c->write->log = store->log;
    w->connection = c;

    (void) pthread_mutex_init(&w->mutex, NULL);
    (void) pthread_cond_init(&w->wake, NULL);

    /* Signals are for the event loop. */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&w->thread, NULL, ngx_http_idem_writer_run, w);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (rc != 0
        || ngx_add_event(c->read, NGX_READ_EVENT,
                         (ngx_event_flags & NGX_USE_CLEAR_EVENT)
                         ? NGX_CLEAR_EVENT : 0)
           != NGX_OK)
    {
        if (rc == 0) {
            ngx_http_idem_writer_stop(w);
            return NULL;
        }

        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        (void) close(w->fd);
        ngx_free(w);
        return NULL;
    }

    return w;
}


void
ngx_http_idem_writer_stop(ngx_http_idem_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&w->mutex);
    w->stop = 1;
    (void) pthread_cond_signal(&w->wake);
    (void) pthread_mutex_unlock(&w->mutex);

    (void) pthread_join(w->thread, NULL);

    if (w->connection->read->active) {
        (void) ngx_del_event(w->connection->read, NGX_READ_EVENT, 0);
    }

    ngx_free_connection(w->connection);
    w->connection->fd = (ngx_socket_t) -1;

    (void) pthread_cond_destroy(&w->wake);
    (void) pthread_mutex_destroy(&w->mutex);
    (void) close(w->fd);
    ngx_free(w);
}


/* ctx->attempt and ctx->outcome stay as they are until @done is called. */

void
ngx_http_idem_writer_put(ngx_http_idem_writer_t *w, ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_large_pt done)
{
    ctx->job_done = done;
    ctx->job_guard.data = ctx;
    ctx->job_guard.handler = ngx_http_idem_writer_guard;
    ctx->job_guard.log = ctx->request->connection->log;
    ngx_add_timer(&ctx->job_guard, NGX_HTTP_IDEM_WRITER_GUARD);

    (void) pthread_mutex_lock(&w->mutex);
    ngx_queue_insert_tail(&w->asked, &ctx->job);
    (void) pthread_cond_signal(&w->wake);
    (void) pthread_mutex_unlock(&w->mutex);
}


/* It only keeps a worker that is to leave. */

static void
ngx_http_idem_writer_guard(ngx_event_t *ev)
{
    ngx_log_error(NGX_LOG_ERR, ev->log, 0, "the journal's disk is slow");
    ngx_add_timer(ev, NGX_HTTP_IDEM_WRITER_GUARD);
}


static void *
ngx_http_idem_writer_run(void *data)
{
    uint64_t                 one = 1;
    ngx_queue_t             *q;
    ngx_http_idem_ctx_t     *ctx;
    ngx_http_idem_writer_t  *w = data;

    (void) pthread_mutex_lock(&w->mutex);

    while (!w->stop) {

        if (ngx_queue_empty(&w->asked)) {
            (void) pthread_cond_wait(&w->wake, &w->mutex);
            continue;
        }

        q = ngx_queue_head(&w->asked);
        ngx_queue_remove(q);
        (void) pthread_mutex_unlock(&w->mutex);

        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, job);
        ctx->job_code = idem_journal_put(w->store->journal, w->store->store,
                                         ctx->attempt, &ctx->outcome,
                                         &ctx->entry, &ctx->job_error);

        (void) pthread_mutex_lock(&w->mutex);
        ngx_queue_insert_tail(&w->done, q);

        if (write(w->fd, &one, sizeof(one)) < 0) {
            continue; /* It is readable already. */
        }
    }

    (void) pthread_mutex_unlock(&w->mutex);
    return NULL;
}


static void
ngx_http_idem_writer_handler(ngx_event_t *ev)
{
    uint64_t                 count;
    ngx_queue_t             *q;
    ngx_connection_t        *c = ev->data;
    ngx_http_idem_ctx_t     *ctx;
    ngx_http_idem_writer_t  *w = c->data;

    if (read(w->fd, &count, sizeof(count)) < 0) {
        count = 0; /* Somebody was faster. */
    }

    for ( ;; ) {
        (void) pthread_mutex_lock(&w->mutex);

        q = NULL;

        if (!ngx_queue_empty(&w->done)) {
            q = ngx_queue_head(&w->done);
            ngx_queue_remove(q);
        }

        (void) pthread_mutex_unlock(&w->mutex);

        if (q == NULL) {
            return;
        }

        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, job);
        ngx_del_timer(&ctx->job_guard);

        if (ctx->job_code != 0) {
            ctx->entry = NULL;
            ngx_log_error(NGX_LOG_CRIT, c->log, 0,
                          "an outcome cannot be put into the journal: %s",
                          ctx->job_error.text);
        }

        ctx->job_done(ctx);
    }
}
