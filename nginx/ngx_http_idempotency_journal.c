
/*
 * Outcomes that the store did not take.  They are put into the journal, which is
 * on a disk of this host, and told again and again for as long as the worker
 * lives; after it, by the next worker that starts, or by idem reconcile.
 */


#include "ngx_http_idempotency.h"

#include <idem/queue.h>


#define NGX_HTTP_IDEM_UNRECORDED_MAX  1000


static void ngx_http_idem_journal_done(ngx_http_idem_flight_t *flight);


void
ngx_http_idem_journal_open(ngx_http_idem_store_t *store)
{
    struct idem_error            error;
    struct idem_journal_options  options = IDEM_JOURNAL_OPTIONS_INIT;

    if (store->journal_dir.len == 0 || idem_store_url(store->store) == NULL
        || store->journal != NULL)
    {
        return;
    }

    options.flags = IDEM_JOURNAL_CREATE;

    if (idem_journal_open((char *) store->journal_dir.data, &options,
                          &store->journal, &error)
        != 0)
    {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "idempotency journal \"%V\" cannot be opened: %s",
                      &store->journal_dir, error.text);
        return;
    }

    if (idem_journal_replay(store->journal, store->store, NULL, NULL, NULL,
                            &error)
        != 0)
    {
        ngx_log_error(NGX_LOG_ERR, store->log, 0,
                      "idempotency journal \"%V\" cannot be replayed: %s",
                      &store->journal_dir, error.text);
    }

    if (idem_store_is_remote(store->store)) {
        store->writer = ngx_http_idem_writer_start(store);
    }
}


void
ngx_http_idem_journal_close(ngx_http_idem_store_t *store)
{
    ngx_queue_t             *q;
    ngx_http_idem_flight_t  *flight;

    ngx_http_idem_writer_stop(store->writer);
    store->writer = NULL;

    while (!ngx_queue_empty(&store->unrecorded)) {
        q = ngx_queue_head(&store->unrecorded);
        ngx_queue_remove(q);

        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);
        idem_journal_leave(flight->entry);
        ngx_http_idem_flight_free(flight);
    }

    idem_journal_close(store->journal);
    store->journal = NULL;
}


void
ngx_http_idem_journal_keep(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, const struct idem_outcome *outcome,
    struct idem_journal_entry *entry)
{
    ngx_uint_t               n;
    ngx_queue_t             *q;
    struct idem_op          *op;
    struct idem_error        error;
    ngx_http_idem_flight_t  *flight;

    ngx_http_idem_count(unrecorded);

    if (entry != NULL) {
        ngx_http_idem_count(journaled);

    } else if (store->journal != NULL) {
        if (idem_journal_put(store->journal, store->store, attempt, outcome,
                             &entry, &error)
            == 0)
        {
            ngx_http_idem_count(journaled);

        } else {
            ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                          "an outcome is neither in the idempotency store nor "
                          "in the journal: %s", error.text);
        }

    } else {
        ngx_log_error(NGX_LOG_CRIT, store->log, 0,
                      "an outcome is not in the idempotency store, and there "
                      "is not a journal");
    }

    for (n = 0, q = ngx_queue_head(&store->unrecorded);
         q != ngx_queue_sentinel(&store->unrecorded);
         q = ngx_queue_next(q))
    {
        n++;
    }

    /* An outcome that is large, or one too many, waits on the disk only. */

    flight = NULL;
    op = NULL;

    if (n < NGX_HTTP_IDEM_UNRECORDED_MAX
        && outcome->result.bytes.len <= NGX_HTTP_IDEM_MEMORY
        && idem_op_end(attempt, outcome, &op, &error) == 0)
    {
        flight = ngx_calloc(sizeof(ngx_http_idem_flight_t), store->log);

        if (flight == NULL) {
            idem_op_destroy(op);
        }
    }

    if (flight == NULL) {
        idem_journal_leave(entry);
        idem_attempt_destroy(attempt);
        return;
    }

    flight->store = store;
    flight->op = op;
    flight->attempt = attempt;
    flight->entry = entry;
    flight->done = ngx_http_idem_journal_done;
    flight->guard.log = store->log;
    flight->guard.cancelable = 1;
    idem_op_set_user(op, flight);

    ngx_queue_insert_tail(&store->unrecorded, &flight->queue);
}


void
ngx_http_idem_journal_again(ngx_http_idem_store_t *store)
{
    ngx_queue_t             *q;
    ngx_http_idem_flight_t  *flight;

    while (!ngx_queue_empty(&store->unrecorded)) {
        q = ngx_queue_head(&store->unrecorded);
        ngx_queue_remove(q);

        flight = ngx_queue_data(q, ngx_http_idem_flight_t, queue);
        ngx_queue_insert_tail(&store->turn, &flight->queue);
    }

    if (!ngx_queue_empty(&store->turn) && !store->submit.posted) {
        ngx_post_event(&store->submit, &ngx_posted_events);
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
                  "an outcome that waited %s the idempotency store \"%V\"",
                  flight->code == 0 ? "is now in" : "came too late for",
                  &flight->store->url);

    idem_journal_remove(flight->entry);
    ngx_http_idem_flight_free(flight);
}
