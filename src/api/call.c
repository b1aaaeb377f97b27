/* One op, blocking: submit, wait, settle what is unknown. */
#include "api/call.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/queue.h"

enum {
    PAUSE_FIRST_MS = 5,
    PAUSE_MAX_MS = 500
};

/* Takes an op back that was not answered in time. */
static int give_up(struct idem_queue *queue, struct idem_op **op,
                   struct idem_error *error)
{
    struct idem_store *store = queue->store;
    bool reads = (*op)->verb == IDEM_OP_GET || (*op)->verb == IDEM_OP_LIST ||
                 (*op)->verb == IDEM_OP_COUNT;

    switch (idem__queue_cancel(queue, *op)) {
    case IDEM_CANCEL_TAKEN_BACK:
        (void)idem_op_fail(*op, IDEM_EUNAVAILABLE,
                           "%s: no answer within %lld ms; nothing was done",
                           store->ops->name,
                           (long long)store->options.timeout_ms);
        idem__queue_observe(store, *op);
        return IDEM_EUNAVAILABLE;
    case IDEM_CANCEL_DETACHED:
        *op = NULL;
        if (reads) {
            return idem__error(error, IDEM_EUNAVAILABLE,
                               "%s: no answer within %lld ms", store->ops->name,
                               (long long)store->options.timeout_ms);
        }
        return idem__error(error, IDEM_EUNKNOWN,
                           "%s: no answer within %lld ms; it is not known "
                           "whether the change was made",
                           store->ops->name,
                           (long long)store->options.timeout_ms);
    case IDEM_CANCEL_ANSWERED:
        break;
    }
    *op = idem_queue_reap(queue, -1);
    return (*op)->error.code;
}

static int call_once(struct idem_queue *queue, struct idem_op **op,
                     struct idem_error *error)
{
    int rc = idem_queue_submit(queue, *op, &(*op)->error);

    if (rc != 0) {
        return rc;
    }
    if (idem_queue_reap(queue, queue->store->options.timeout_ms) == NULL) {
        return give_up(queue, op, error);
    }
    return (*op)->error.code;
}

int64_t idem__boot_ms(const struct idem_store *store)
{
    const struct idem_host *host = &store->options.host;
    struct idem_clock_reading reading;

    return host->clock(host->ctx, &reading) == 0 ? reading.boot_ms : IDEM_NEVER;
}

/* A second try is worth it only when the first may have been applied. */
static bool settle_again(const struct idem_store *store, int64_t until_ms,
                         int64_t *pause_ms)
{
    const struct idem_host *host = &store->options.host;

    if (idem__time_add(idem__boot_ms(store), *pause_ms) >= until_ms) {
        return false;
    }
    host->sleep(host->ctx, *pause_ms);
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
    return true;
}

/* A claim that may have been made is nobody's: it is given back, if the store can
 * do that before its handle is closed. Else the key waits until the lease ends.
 * Nobody waits for the answer, which cannot be told from "it was never made". */
static void withdraw(struct idem_queue *queue, struct idem_op *op)
{
    struct idem_store *store = queue->store;

    op->verb = IDEM_OP_END;
    op->u.end = (struct idem_outcome){
        .status = IDEM_STATUS_RELEASED,
        .text = idem_str("its caller was not told that it had the key"),
    };
    if (idem_queue_submit(queue, op, NULL) != 0) {
        idem_op_destroy(op);
        return;
    }
    store->ops->drive(store, queue, /* deadline_ms= */ 0);
    idem__queue_abandon(queue, op);
}

/* Asks until it is known what came of @op, or the time is over. */
static int call_until_known(struct idem_queue *queue, struct idem_op **op,
                            struct idem_error *error)
{
    struct idem_store *store = queue->store;
    int64_t now_ms = idem__boot_ms(store);
    int64_t until_ms = 0; /* Without a clock: one try. */
    int64_t pause_ms = PAUSE_FIRST_MS;
    bool unknown = false;
    int rc;

    if (now_ms != IDEM_NEVER) {
        until_ms = idem__time_add(now_ms, store->options.timeout_ms);
    }
    do {
        rc = call_once(queue, op, error);
        unknown = unknown || rc == IDEM_EUNKNOWN;
    } while (*op != NULL && unknown && idem_error_kind(rc) == IDEM_KIND_RETRY &&
             settle_again(store, until_ms, &pause_ms));

    /* Once a copy may have been applied, "nothing was done" is not ours to say. */
    if (*op != NULL && unknown &&
        (rc == IDEM_EUNAVAILABLE || rc == IDEM_EFULL)) {
        rc = idem_op_fail(*op, IDEM_EUNKNOWN, "%s",
                          idem_error_text(IDEM_EUNKNOWN));
    }
    return rc;
}

int idem__call(struct idem_store *store, struct idem_op **op,
               struct idem_error *error)
{
    struct idem_queue queue;
    int rc = idem__queue_init(&queue, store);

    if (rc != 0) {
        idem_op_destroy(*op);
        *op = NULL;
        return idem__error_plain(error, rc);
    }
    rc = call_until_known(&queue, op, error);
    if (rc != 0 && *op != NULL) {
        if (error != NULL) {
            *error = (*op)->error;
        }
        if (rc == IDEM_EUNKNOWN && (*op)->verb == IDEM_OP_BEGIN &&
            (*op)->fence != 0) {
            withdraw(&queue, *op);
        } else {
            idem_op_destroy(*op);
        }
        *op = NULL;
    }
    idem__queue_finish(&queue);
    return rc;
}
