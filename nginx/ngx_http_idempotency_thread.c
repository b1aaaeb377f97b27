
/*
 * A thread for blocking calls: to the disk of a journal, or to a store while
 * the journal is replayed.  It runs the jobs of requests one by one, and its
 * idle function in between.
 */


#include "ngx_http_idempotency.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>


#define NGX_HTTP_IDEM_THREAD_GUARD  10000


struct ngx_http_idem_thread_s {
    ngx_http_idem_store_t         *store;
    ngx_http_idem_thread_idle_pt   idle;   /* NULL: it only does jobs */
    ngx_connection_t              *connection;
    int                            fd;
    pthread_t                      thread;
    pthread_mutex_t                mutex;
    pthread_cond_t                 wake;
    ngx_queue_t                    asked;  /* ngx_http_idem_ctx_t, by job */
    ngx_queue_t                    done;
    unsigned                       stop:1;
};


static void *ngx_http_idem_thread_run(void *data);
static void ngx_http_idem_thread_handler(ngx_event_t *ev);
static void ngx_http_idem_thread_guard(ngx_event_t *ev);


ngx_http_idem_thread_t *
ngx_http_idem_thread_start(ngx_http_idem_store_t *store,
    ngx_http_idem_thread_idle_pt idle)
{
    int                      rc;
    sigset_t                 all, before;
    pthread_condattr_t       attr;
    ngx_http_idem_thread_t  *t;

    t = ngx_calloc(sizeof(ngx_http_idem_thread_t), store->log);
    if (t == NULL) {
        return NULL;
    }

    t->store = store;
    t->idle = idle;
    ngx_queue_init(&t->asked);
    ngx_queue_init(&t->done);

    t->fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    if (t->fd == -1) {
        goto free_thread;
    }

    t->connection = ngx_http_idem_watch(t->fd, ngx_http_idem_thread_handler, t,
                                        store->log);
    if (t->connection == NULL) {
        goto close_fd;
    }

    (void) pthread_mutex_init(&t->mutex, NULL);
    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&t->wake, &attr);
    (void) pthread_condattr_destroy(&attr);

    /* Signals are for the event loop. */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&t->thread, NULL, ngx_http_idem_thread_run, t);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (rc == 0) {
        return t;
    }

    ngx_http_idem_unwatch(t->connection);

close_fd:

    (void) close(t->fd);

free_thread:

    ngx_free(t);

    return NULL;
}


void
ngx_http_idem_thread_stop(ngx_http_idem_thread_t *t)
{
    if (t == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&t->mutex);
    t->stop = 1;
    (void) pthread_cond_signal(&t->wake);
    (void) pthread_mutex_unlock(&t->mutex);

    (void) pthread_join(t->thread, NULL);

    ngx_http_idem_unwatch(t->connection);

    (void) pthread_cond_destroy(&t->wake);
    (void) pthread_mutex_destroy(&t->mutex);
    (void) close(t->fd);
    ngx_free(t);
}


void
ngx_http_idem_thread_ask(ngx_http_idem_thread_t *t, ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_job_pt work, ngx_http_idem_job_pt done)
{
    ctx->job_work = work;
    ctx->job_done = done;
    ctx->job_guard.data = ctx;
    ctx->job_guard.handler = ngx_http_idem_thread_guard;
    ctx->job_guard.log = ctx->request->connection->log;
    ngx_add_timer(&ctx->job_guard, NGX_HTTP_IDEM_THREAD_GUARD);

    (void) pthread_mutex_lock(&t->mutex);
    ngx_queue_insert_tail(&t->asked, &ctx->job);
    (void) pthread_cond_signal(&t->wake);
    (void) pthread_mutex_unlock(&t->mutex);
}


ngx_uint_t
ngx_http_idem_thread_wanted(ngx_http_idem_thread_t *t)
{
    ngx_uint_t  wanted;

    (void) pthread_mutex_lock(&t->mutex);
    wanted = (t->stop || !ngx_queue_empty(&t->asked));
    (void) pthread_mutex_unlock(&t->mutex);

    return wanted;
}


/* A worker that shuts down exits when no timer is left, so each job has one. */

static void
ngx_http_idem_thread_guard(ngx_event_t *ev)
{
    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "the idempotency journal or store has not answered for "
                  "10 seconds or more");
    ngx_add_timer(ev, NGX_HTTP_IDEM_THREAD_GUARD);
}


static void
ngx_http_idem_thread_do(ngx_http_idem_thread_t *t)
{
    uint64_t              one = 1;
    ngx_queue_t          *q;
    ngx_http_idem_ctx_t  *ctx;

    q = ngx_queue_head(&t->asked);
    ngx_queue_remove(q);
    (void) pthread_mutex_unlock(&t->mutex);

    ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, job);
    ctx->job_work(ctx);

    (void) pthread_mutex_lock(&t->mutex);
    ngx_queue_insert_tail(&t->done, q);

    if (write(t->fd, &one, sizeof(one)) < 0) {
        return; /* It can be read already, since nobody has read it yet. */
    }
}


/* Calls the idle function, and sets *@until, when it is to be called again. */

static void
ngx_http_idem_thread_idle(ngx_http_idem_thread_t *t, struct timespec *until)
{
    ngx_msec_t  pause;

    (void) pthread_mutex_unlock(&t->mutex);

    pause = t->idle(t, t->store);
    (void) clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_sec += pause / 1000;
    until->tv_nsec += (pause % 1000) * 1000000;

    if (until->tv_nsec >= 1000000000) {
        until->tv_sec++;
        until->tv_nsec -= 1000000000;
    }

    (void) pthread_mutex_lock(&t->mutex);
}


static void *
ngx_http_idem_thread_run(void *data)
{
    ngx_http_idem_thread_t  *t = data;
    struct timespec          until = { 0, 0 };

    (void) pthread_mutex_lock(&t->mutex);

    while (!t->stop) {

        if (!ngx_queue_empty(&t->asked)) {
            ngx_http_idem_thread_do(t);

        } else if (t->idle == NULL) {
            (void) pthread_cond_wait(&t->wake, &t->mutex);

        } else if (pthread_cond_timedwait(&t->wake, &t->mutex, &until) != 0) {
            ngx_http_idem_thread_idle(t, &until);
        }
    }

    (void) pthread_mutex_unlock(&t->mutex);
    return NULL;
}


static void
ngx_http_idem_thread_handler(ngx_event_t *ev)
{
    uint64_t                 count;
    ngx_queue_t             *q;
    ngx_connection_t        *c = ev->data;
    ngx_http_idem_ctx_t     *ctx;
    ngx_http_idem_thread_t  *t = c->data;

    if (read(t->fd, &count, sizeof(count)) < 0) {
        count = 0; /* An earlier call has read it. */
    }

    for ( ;; ) {
        (void) pthread_mutex_lock(&t->mutex);

        q = NULL;

        if (!ngx_queue_empty(&t->done)) {
            q = ngx_queue_head(&t->done);
            ngx_queue_remove(q);
        }

        (void) pthread_mutex_unlock(&t->mutex);

        if (q == NULL) {
            return;
        }

        ctx = ngx_queue_data(q, ngx_http_idem_ctx_t, job);
        ngx_del_timer(&ctx->job_guard);
        ctx->job_done(ctx);
    }
}
