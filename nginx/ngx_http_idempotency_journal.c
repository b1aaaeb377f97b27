
/*
 * Outcomes that the store did not record.  They go into the journal, on a disk
 * of this host, and the worker submits them again and again for as long as it
 * lives.  Those that it leaves are replayed by the next worker, or by idem
 * reconcile.
 *
 * A thread of the worker, the teller, replays the journal in slices, so that a
 * request does not wait for the outcomes of other keys.  It does wait for
 * those of its own key while its worker knows of any outcome, in the journal or
 * in its own memory: a store that lacks them takes their work for one that
 * stopped, and under rerun lets it begin again.  If they stay in the journal,
 * the request is refused, and so it is while an outcome is in the memory alone.
 * Other workers and hosts learn of an outcome from the store.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


#define NGX_HTTP_IDEM_UNRECORDED_MAX  1000

/* The length of a slice, after which the teller rests as long; and its rest if
 * there is nothing to replay, or if the store does not answer. */
#define NGX_HTTP_IDEM_TELL_MS         100
#define NGX_HTTP_IDEM_TELL_AGAIN_MS   5000


typedef struct {
    ngx_http_idem_store_t   *store;
    ngx_http_idem_thread_t  *teller;    /* NULL: the slice has no end */
    int64_t                  began_ms;
    ngx_uint_t               told;
    unsigned                 vain:1;    /* the store does not answer */
} ngx_http_idem_slice_t;


static void ngx_http_idem_journal_done(ngx_http_idem_flight_t *flight);
static void ngx_http_idem_journal_forget(ngx_http_idem_flight_t *flight);
static ngx_msec_t ngx_http_idem_journal_idle(ngx_http_idem_thread_t *teller,
    ngx_http_idem_store_t *store);
static void ngx_http_idem_journal_tell_work(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_journal_tell_done(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_journal_put_work(ngx_http_idem_ctx_t *ctx);
static void ngx_http_idem_journal_put_done(ngx_http_idem_ctx_t *ctx);


void
ngx_http_idem_journal_open(ngx_http_idem_store_t *store)
{
    struct idem_error  error;

    if (store->journal_dir.len == 0 || idem_store_url(store->store) == NULL
        || store->journal != NULL)
    {
        return;
    }

    if (idem_journal_open((char *) store->journal_dir.data, /* create= */ true,
                          &store->journal, &error)
        != 0)
    {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "idempotency journal \"%V\" cannot be opened: %s",
                      &store->journal_dir, error.text);
        return;
    }

    store->telling = 1;
    store->teller = ngx_http_idem_thread_start(store,
                                               ngx_http_idem_journal_idle);
    if (store->teller == NULL) {
        ngx_log_error(NGX_LOG_ERR, store->log, 0,
                      "idempotency journal \"%V\" cannot be replayed: a thread "
                      "cannot be started", &store->journal_dir);
    }

    if (idem_store_is_remote(store->store)) {
        store->writer = ngx_http_idem_thread_start(store, NULL);

        if (store->writer == NULL) {
            ngx_log_error(NGX_LOG_ERR, store->log, 0,
                          "idempotency journal \"%V\" gets an outcome only if "
                          "the store does not record it: a thread cannot be "
                          "started", &store->journal_dir);
        }
    }
}


void
ngx_http_idem_journal_close(ngx_http_idem_store_t *store)
{
    ngx_http_idem_flight_t  *flight;

    ngx_http_idem_thread_stop(store->teller);
    store->teller = NULL;

    ngx_http_idem_thread_stop(store->writer);
    store->writer = NULL;

    while ((flight = ngx_http_idem_flight_pop(&store->unrecorded)) != NULL) {
        idem_journal_leave(flight->entry);
        ngx_http_idem_journal_forget(flight);
    }

    idem_journal_close(store->journal);
    store->journal = NULL;
}


void
ngx_http_idem_journal_keep(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, const struct idem_outcome *outcome,
    struct idem_journal_entry *entry)
{
    struct idem_op          *op;
    struct idem_error        error;
    struct idem_outcome      held = *outcome;
    ngx_http_idem_flight_t  *flight;

    if (entry == NULL && store->journal == NULL) {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "an outcome is not in the idempotency store, and no "
                      "journal is set");

    } else if (entry == NULL
               && idem_journal_put(store->journal, store->store, attempt,
                                   outcome, &entry, &error)
                  != 0)
    {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "an outcome is neither in the idempotency store nor "
                      "in the journal: %s", error.text);
    }

    /* A large outcome, or one over the limit, waits on disk alone.  If it is not there,
     * that the work is done waits in memory, without the large response. */

    flight = NULL;

    if (entry == NULL && held.result.bytes.len > NGX_HTTP_IDEM_MEMORY) {
        idem_http_tombstone(&held.result);
    }

    if (store->unrecorded_n < NGX_HTTP_IDEM_UNRECORDED_MAX
        && held.result.bytes.len <= NGX_HTTP_IDEM_MEMORY
        && idem_op_end(attempt, &held, &op, &error) == 0)
    {
        flight = ngx_http_idem_flight_create(store, op, NULL,
                                             ngx_http_idem_journal_done, NULL);
    }

    if (flight == NULL) {
        idem_journal_leave(entry);
        idem_attempt_destroy(attempt);
        (void) ngx_atomic_fetch_add(&store->telling, 1);
        return;
    }

    flight->attempt = attempt;
    flight->entry = entry;
    flight->guard.cancelable = 1;

    ngx_queue_insert_tail(&store->unrecorded, &flight->queue);
    store->unrecorded_n++;
}


static void
ngx_http_idem_journal_forget(ngx_http_idem_flight_t *flight)
{
    flight->store->unrecorded_n--;
    ngx_http_idem_flight_free(flight);
}


void
ngx_http_idem_journal_again(ngx_http_idem_store_t *store)
{
    ngx_http_idem_flight_t  *flight;

    while ((flight = ngx_http_idem_flight_pop(&store->unrecorded)) != NULL) {
        ngx_http_idem_resubmit(flight);
    }
}


static void
ngx_http_idem_journal_done(ngx_http_idem_flight_t *flight)
{
    if (flight->code != 0 && flight->code != IDEM_ELOST) {
        ngx_queue_insert_tail(&flight->store->unrecorded, &flight->queue);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, flight->store->log, 0,
                  "idempotency store \"%V\" %s", &flight->store->url,
                  flight->code == 0
                  ? "has recorded an outcome that had waited"
                  : "refused an outcome that came too late");

    idem_journal_remove(flight->entry);
    ngx_http_idem_journal_forget(flight);
}


/* ---- Telling ---- */


static int64_t
ngx_http_idem_mono_ms(void)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


/* Called for each entry that was replayed; not 0 ends the slice. */

static int
ngx_http_idem_journal_told(void *data, const struct idem_journal_info *info,
    const struct idem_error *error)
{
    ngx_http_idem_slice_t  *slice = data;

    switch (info->state) {

    case IDEM_JOURNAL_RECORDED:
    case IDEM_JOURNAL_LOST:
    case IDEM_JOURNAL_DAMAGED:
        slice->told++;
        slice->store->told++;
        break;

    default:
        break;
    }

    if (idem_error_kind(error->code) == IDEM_KIND_RETRY) {
        slice->vain = 1;
        slice->store->vain_ms = ngx_http_idem_mono_ms();
        return 1;
    }

    if (slice->teller == NULL) {
        return 0;
    }

    return ngx_http_idem_mono_ms() - slice->began_ms >= NGX_HTTP_IDEM_TELL_MS
           || ngx_http_idem_thread_wanted(slice->teller);
}


static int
ngx_http_idem_journal_found(void *data, const struct idem_journal_info *info,
    const struct idem_error *error)
{
    ngx_uint_t  *waits = data;

    *waits = (info->state == IDEM_JOURNAL_WAITING);
    return (int) *waits;
}


/*
 * Clears store->telling if no outcome waits.  Other workers replay entries and
 * leave some too, so only the journal itself has the answer.
 */

static void
ngx_http_idem_journal_settle(ngx_http_idem_store_t *store)
{
    ngx_uint_t                  waits;
    struct idem_error           error;
    ngx_atomic_uint_t           telling;
    struct idem_journal_filter  filter = IDEM_JOURNAL_FILTER_INIT;

    waits = 0;
    telling = store->telling;
    filter.store_url = idem_store_url(store->store);

    if (idem_journal_list(store->journal, &filter, ngx_http_idem_journal_found,
                          &waits, &error)
        != 0 || waits)
    {
        return;
    }

    if (store->told > 0) {
        ngx_log_error(NGX_LOG_NOTICE, store->log, 0,
                      "idempotency store \"%V\" has recorded %ui outcomes "
                      "from the journal", &store->url, store->told);
    }

    store->told = 0;

    /* The worker may have left another entry since the list was read. */

    (void) ngx_atomic_cmp_set(&store->telling, telling, 0);
}


/* One slice, on the teller.  The first may run before store->teller is set. */

static ngx_msec_t
ngx_http_idem_journal_idle(ngx_http_idem_thread_t *teller,
    ngx_http_idem_store_t *store)
{
    int                    rc;
    struct idem_error      error;
    ngx_http_idem_slice_t  slice = { store, teller, 0, 0, 0 };

    slice.began_ms = ngx_http_idem_mono_ms();

    rc = idem_journal_catch_up(store->journal, store->store,
                               ngx_http_idem_journal_told, &slice, &error);

    if (rc != 0 && !store->unreadable) {
        ngx_log_error(NGX_LOG_ERR, store->log, 0,
                      "idempotency journal \"%V\" cannot be replayed: %s",
                      &store->journal_dir, error.text);
    }

    store->unreadable = (rc != 0);

    if (slice.told > 0 && !slice.vain) {
        return ngx_http_idem_mono_ms() - slice.began_ms + 1;
    }

    if (rc == 0 && !slice.vain && store->telling) {
        ngx_http_idem_journal_settle(store);
    }

    return NGX_HTTP_IDEM_TELL_AGAIN_MS;
}


/* Leaves the outcome of @ctx's key to the teller if this worker has it, unless
 * it is being submitted again. */

static void
ngx_http_idem_journal_hand_over(ngx_http_idem_ctx_t *ctx)
{
    ngx_queue_t             *q;
    ngx_http_idem_store_t   *store = ctx->store;
    ngx_http_idem_flight_t  *flight;

    for (q = ngx_queue_head(&store->unrecorded);
         q != ngx_queue_sentinel(&store->unrecorded);
         q = ngx_queue_next(q))
    {
        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);

        if (flight->entry != NULL
            && ngx_memcmp(idem_op_id(flight->op), ctx->id, IDEM_ID_LEN) == 0)
        {
            ngx_queue_remove(q);
            idem_journal_leave(flight->entry);
            ngx_http_idem_journal_forget(flight);
            (void) ngx_atomic_fetch_add(&store->telling, 1);
            return;
        }
    }
}


/* Whether this worker alone has the outcome of @ctx's key: it has no journal, or
 * that is full or not replayed.  Flights beyond the first list are being
 * submitted again. */

static ngx_uint_t
ngx_http_idem_journal_lacks(ngx_http_idem_ctx_t *ctx)
{
    ngx_uint_t               i;
    ngx_queue_t             *q;
    ngx_http_idem_store_t   *store = ctx->store;
    ngx_queue_t             *lists[] = { &store->unrecorded, &store->turn,
                                         &store->fresh, &store->flights };
    ngx_http_idem_flight_t  *flight;

    for (i = 0; i < 4; i++) {
        for (q = ngx_queue_head(lists[i]);
             q != ngx_queue_sentinel(lists[i]);
             q = ngx_queue_next(q))
        {
            flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);

            if (flight->done == ngx_http_idem_journal_done
                && (flight->entry == NULL || store->teller == NULL)
                && ngx_memcmp(idem_op_id(flight->op), ctx->id, IDEM_ID_LEN)
                   == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


ngx_int_t
ngx_http_idem_journal_tell(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_idem_store_t  *store = ctx->store;

    if ((!store->telling && store->unrecorded_n == 0)
        || ctx->told || ngx_http_idem_id(ctx) == NULL)
    {
        return NGX_DECLINED;
    }

    ctx->request->write_event_handler = ngx_http_core_run_phases;

    if (store->unrecorded_n > 0 && ngx_http_idem_journal_lacks(ctx)) {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "idempotency: the outcome of a key is in the memory of "
                      "this worker, and not in the store");

        ctx->code = ctx->job_code = IDEM_EUNAVAILABLE;
        ctx->state = NGX_HTTP_IDEM_BEGUN;
        ngx_http_core_run_phases(ctx->request);
        return NGX_DONE;
    }

    if (store->teller == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_idem_journal_hand_over(ctx);

    ctx->told = 1;
    ctx->state = NGX_HTTP_IDEM_BEGIN;
    ngx_http_idem_hold(ctx);

    ngx_http_idem_thread_ask(store->teller, ctx,
                             ngx_http_idem_journal_tell_work,
                             ngx_http_idem_journal_tell_done);
    return NGX_DONE;
}


/* An outcome in use is known too: this or another process submits it. */

static int
ngx_http_idem_journal_stayed(void *data, const struct idem_journal_info *info,
    const struct idem_error *error)
{
    ngx_http_idem_ctx_t  *ctx = data;

    if (info->state >= IDEM_JOURNAL_RECORDED) {
        return 0;
    }

    ctx->job_code = IDEM_EUNAVAILABLE;
    return 1;
}


/*
 * On the teller.  If the store did not answer a moment ago, do not wait for it
 * again.  But it may answer the claim, so look at what is left.
 */

static void
ngx_http_idem_journal_tell_work(ngx_http_idem_ctx_t *ctx)
{
    struct idem_error           error;
    ngx_http_idem_store_t      *store = ctx->store;
    ngx_http_idem_slice_t       slice = { store, NULL, 0, 0, 0 };
    struct idem_journal_filter  filter = IDEM_JOURNAL_FILTER_INIT;

    slice.began_ms = ngx_http_idem_mono_ms();
    filter.id = ctx->id;

    if (store->vain_ms == 0
        || slice.began_ms - store->vain_ms >= NGX_HTTP_IDEM_TELL_AGAIN_MS)
    {
        (void) idem_journal_replay(store->journal, store->store, &filter,
                                   ngx_http_idem_journal_told, &slice,
                                   &error);
    }

    ctx->job_code = 0;
    filter.store_url = idem_store_url(store->store);

    if (idem_journal_list(store->journal, &filter,
                          ngx_http_idem_journal_stayed, ctx, &error)
        != 0)
    {
        ctx->job_code = IDEM_EUNAVAILABLE;
    }
}


static void
ngx_http_idem_journal_tell_done(ngx_http_idem_ctx_t *ctx)
{
    ctx->code = ctx->job_code;
    ctx->state = NGX_HTTP_IDEM_LIMITED;

    if (ctx->code != 0) {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "idempotency: the outcome of a key is in the journal, "
                      "and not in the store");
        ctx->state = NGX_HTTP_IDEM_BEGUN;
    }

    ngx_http_idem_resume(ctx);
}


/* ---- Putting, before a remote store gets the outcome ---- */


void
ngx_http_idem_journal_put(ngx_http_idem_ctx_t *ctx, ngx_http_idem_job_pt done)
{
    ctx->put_done = done;
    ngx_http_idem_thread_ask(ctx->store->writer, ctx,
                             ngx_http_idem_journal_put_work,
                             ngx_http_idem_journal_put_done);
}


static void
ngx_http_idem_journal_put_work(ngx_http_idem_ctx_t *ctx)
{
    ngx_http_idem_store_t  *store = ctx->store;

    ctx->job_code = idem_journal_put(store->journal, store->store,
                                     ctx->attempt, &ctx->outcome, &ctx->entry,
                                     &ctx->job_error);
}


static void
ngx_http_idem_journal_put_done(ngx_http_idem_ctx_t *ctx)
{
    if (ctx->job_code != 0) {
        ctx->entry = NULL;
        ngx_log_error(NGX_LOG_CRIT, ctx->store->log, 0,
                      "an outcome cannot be put into the journal: %s",
                      ctx->job_error.text);
    }

    ctx->put_done(ctx);
}
