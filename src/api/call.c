/* Runs ops for blocking calls: submits them, waits, and asks again while an outcome is
 * unknown. */
#include "api/call.h"
#include "base/host.h"
#include "base/bytes.h"
#include "core/error.h"
#include "queue/queue.h"

#include <idem/queue.h>

enum {
    PAUSE_FIRST_MS = 5,
    PAUSE_MAX_MS = 500
};

/* Notes the answer of @asked, whose op came back or was not submitted. */
static void note(struct idem__asked *asked, const struct idem_error *error)
{
    asked->error = *error;
    asked->under_way = false;
    asked->unknown = asked->unknown || error->code == IDEM_EUNKNOWN;
}

static void note_reaped(struct idem__asked *asked, size_t n,
                        const struct idem_op *op)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (asked[i].op == op) {
            note(&asked[i], &op->error);
        }
    }
}

static bool only_reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST ||
           op->verb == IDEM_OP_COUNT ||
           (op->verb == IDEM_OP_MOVE && !op->u.move.set);
}

/* Takes back the op of @mine, one of @asked, which was not answered in time. */
static void give_up(struct idem_queue *queue, struct idem__asked *asked,
                    size_t n, struct idem__asked *mine)
{
    struct idem_store *store = queue->store;
    bool reads = only_reads(mine->op);
    char span[IDEM__SPAN_MAX];
    struct idem_error error;

    idem__span(store->options.timeout_ms, span);

    switch (idem__queue_cancel(queue, mine->op)) {
    case IDEM_CANCEL_TAKEN_BACK:
        (void)idem__op_fail(mine->op, IDEM_EUNAVAILABLE,
                            "%s: no answer within %s; nothing was done",
                            store->ops->name, span);
        idem__queue_observe(store, mine->op);
        note(mine, &mine->op->error);
        return;
    case IDEM_CANCEL_DETACHED:
        mine->op = NULL;
        if (mine->unknown && mine->error.code == IDEM_EUNKNOWN) {
            /* Keep the error of the earlier try: this one had less time, and learned
             * less about the cause. */
            mine->under_way = false;
            return;
        }
        (void)idem__error(&error, reads ? IDEM_EUNAVAILABLE : IDEM_EUNKNOWN,
                          reads ? "%s: no answer within %s"
                                : "%s: no answer within %s; it is not known "
                                  "whether the change was made",
                          store->ops->name, span);
        note(mine, &error);
        return;
    case IDEM_CANCEL_ANSWERED:
        break;
    }
    /* The store answered first, and is pushing the answer: take it. */
    while (mine->under_way) {
        note_reaped(asked, n, idem_queue_reap(queue, -1));
    }
}

/* Submits the ops that are marked @again in one go, so that a store can serve them with
 * one flush. Returns how many the store took. */
static size_t submit(struct idem_queue *queue, struct idem__asked *asked,
                     size_t n)
{
    struct idem_op *ops[IDEM__ASKED_MAX];
    struct idem_error error = {0};
    size_t refused;
    size_t len = 0;
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        if (asked[i].again) {
            asked[i].under_way = true;
            ops[len++] = asked[i].op;
        }
    }
    refused = len == 1 ? idem_queue_submit(queue, ops[0], &error) != 0
                       : idem_queue_submit_all(queue, ops, len, &error);
    for (j = 0; j < refused; j++) {
        for (i = 0; i < n; i++) {
            if (asked[i].again && asked[i].op == ops[j]) {
                note(&asked[i], &error);
            }
        }
    }
    return len - refused;
}

/* Tries once. Afterwards each op is back, or was left to the store. */
static void ask_once(struct idem_queue *queue, struct idem__asked *asked,
                     size_t n, int64_t timeout_ms)
{
    int64_t until_ms = idem__time_add(idem__mono_ms(), timeout_ms);
    size_t taken = submit(queue, asked, n);
    struct idem_op *op;
    size_t i;

    while (taken > 0 && (op = idem_queue_reap(queue, timeout_ms)) != NULL) {
        note_reaped(asked, n, op);
        taken--;
        if (taken > 0) {
            timeout_ms = until_ms - idem__mono_ms();
            timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
        }
    }
    for (i = 0; i < n; i++) {
        if (asked[i].under_way) {
            give_up(queue, asked, n, &asked[i]);
        }
    }
}

int64_t idem__boot_ms(const struct idem_store *store)
{
    const struct idem_host *host = &store->options.host;
    struct idem_clock_reading reading;

    return host->clock(host->ctx, &reading) == 0 ? reading.boot_ms : IDEM_NEVER;
}

/* Sleeps before another try, and sets *@ret_wait_ms to the time that this try has.
 * Returns false if the time is over. */
static bool settle_again(const struct idem_store *store, int64_t until_ms,
                         int64_t *pause_ms, int64_t *ret_wait_ms)
{
    const struct idem_host *host = &store->options.host;
    int64_t next_ms = idem__time_add(idem__boot_ms(store), *pause_ms);

    if (next_ms >= until_ms) {
        return false;
    }
    *ret_wait_ms = until_ms - next_ms;
    host->sleep(host->ctx, *pause_ms);
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
    return true;
}

/* Marks the ops to submit again: those that may have been applied, as long as no op
 * before them has failed for good. Returns true if there is one. */
static bool choose_again(struct idem__asked *asked, size_t n)
{
    bool failed = false;
    bool any = false;
    size_t i;

    for (i = 0; i < n; i++) {
        asked[i].again =
            asked[i].op != NULL && asked[i].unknown && !failed &&
            idem_error_kind(asked[i].error.code) == IDEM_KIND_RETRY;
        failed = failed || (asked[i].error.code != 0 && !asked[i].again);
        any = any || asked[i].again;
    }
    return any;
}

/* Turns an error that means "nothing was done" into IDEM_EUNKNOWN if an earlier copy of
 * the op may have been applied. */
static void say_unknown(struct idem__asked *asked)
{
    if (asked->op == NULL || !asked->unknown) {
        return;
    }
    switch (asked->error.code) {
    case IDEM_EUNAVAILABLE:
    case IDEM_EFULL:
        (void)idem__op_fail(asked->op, IDEM_EUNKNOWN, "%s",
                            idem_error_text(IDEM_EUNKNOWN));
        break;
    case IDEM_ECONFIG:
    case IDEM_EDENIED:
    case IDEM_ENOMEM:
        /* Keep the text: it names the fault to repair before the outcome can be
         * known. */
        asked->op->error = asked->error;
        asked->op->error.code = IDEM_EUNKNOWN;
        break;
    default:
        return;
    }
    asked->error = asked->op->error;
}

void idem__ask(struct idem_queue *queue, struct idem__asked *asked, size_t n)
{
    struct idem_store *store = queue->store;
    int64_t now_ms = idem__boot_ms(store);
    int64_t until_ms = 0; /* Without a clock there is one try. */
    int64_t wait_ms = store->options.timeout_ms;
    int64_t pause_ms = PAUSE_FIRST_MS;
    size_t i;

    if (now_ms != IDEM_NEVER) {
        until_ms = idem__time_add(now_ms, store->options.timeout_ms);
    }
    for (i = 0; i < n; i++) {
        asked[i].again = true;
    }
    do {
        ask_once(queue, asked, n, wait_ms);
    } while (choose_again(asked, n) &&
             settle_again(store, until_ms, &pause_ms, &wait_ms));
    for (i = 0; i < n; i++) {
        say_unknown(&asked[i]);
    }
}

/* Releases a claim that the store may have made for a caller that was not told so, if
 * the store can do that before its handle is closed; else the key is blocked until the
 * lease ends. It does not wait for the answer, which could not tell a release from a
 * claim that was never made. */
void idem__withdraw(struct idem_queue *queue, struct idem_op *op)
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

void idem__asked_drop(struct idem_queue *queue, struct idem__asked *asked)
{
    struct idem_op *op = asked->op;

    asked->op = NULL;
    if (op != NULL && asked->error.code == IDEM_EUNKNOWN &&
        op->verb == IDEM_OP_BEGIN && op->fence != 0) {
        idem__withdraw(queue, op);
    } else {
        idem_op_destroy(op);
    }
}

int idem__call(struct idem_store *store, struct idem_op **op,
               struct idem_error *error)
{
    struct idem__asked asked = {.op = *op};
    struct idem_queue queue;
    int rc = idem__queue_init(&queue, store);

    if (rc != 0) {
        idem_op_destroy(*op);
        *op = NULL;
        return idem__error_plain(error, rc);
    }
    idem__ask(&queue, &asked, 1);
    *op = asked.op;
    rc = asked.error.code;
    if (rc != 0) {
        if (error != NULL) {
            *error = asked.error;
        }
        idem__asked_drop(&queue, &asked);
        *op = NULL;
    }
    idem__queue_finish(&queue);
    return rc;
}
