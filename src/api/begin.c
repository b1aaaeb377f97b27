/* Claiming a key, and waiting for another's attempt. */
#include "api/call.h"
#include "api/check.h"
#include "base/crash.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/attempt.h"
#include "queue/queue.h"
#include "queue/waiters.h"

enum {
    POLL_FIRST_MS = 2,
    POLL_MAX_MS = 250
};

/* A waiter polls, because the owner may live in another process; a change in
 * this process wakes it early. */
struct wait {
    struct idem_store *store;
    uint64_t fence;   /* Of the attempt that it saw first. */
    int64_t until_ms; /* Boot clock. */
    int64_t pause_ms;
    bool then_run;
};

/* Between half and all of @ms, so that many waiters do not come at once. */
static int64_t jitter(const struct idem_host *host, const struct idem_op *op,
                      int64_t ms)
{
    uint8_t bytes[2] = {op->nonce[0], op->nonce[1]};

    if (!op->has_nonce) {
        (void)host->random(host->ctx, bytes, sizeof(bytes));
    }
    return ms - ms * ((unsigned)bytes[0] << 8 | bytes[1]) / 131072;
}

static void pause_for(const struct wait *wait, const struct idem_op *op,
                      uint64_t mark, int64_t ms)
{
    const struct idem_host *host = &wait->store->options.host;

    if (wait->store->waiters != NULL) {
        idem__waiters_sleep(wait->store->waiters, op->id, mark, ms);
    } else {
        host->sleep(host->ctx, ms);
    }
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Asks again as a waiter: a fresh request, so that a late start counts its lease
 * from now. */
static void ask_anew(const struct wait *wait, struct idem_op *op)
{
    op->has_nonce = false;
    op->asked_boot_ms = 0;
    if (wait->then_run) {
        op->u.begin.flags = IDEM_WAIT_THEN_RUN;
    } else {
        op->u.begin.join_fence = wait->fence;
    }
}

static int wait_on(struct wait *wait, struct idem_op **op,
                   struct idem_error *error)
{
    struct idem_waiters *waiters = wait->store->waiters;
    uint64_t mark = 0;
    int rc = 0;

    while (rc == 0 && (*op)->verdict == IDEM_BUSY && (*op)->lease_left_ms > 0) {
        int64_t left_ms = wait->until_ms - idem__boot_ms(wait->store);

        if (left_ms <= 0) {
            break;
        }
        pause_for(wait, *op, mark,
                  shorter(left_ms, jitter(&wait->store->options.host, *op,
                                          wait->pause_ms) +
                                       1));
        IDEM__CRASH_POINT("api/begin/waited");
        wait->pause_ms = shorter(wait->pause_ms * 2, POLL_MAX_MS);
        if (waiters != NULL) {
            mark = idem__waiters_mark(waiters, (*op)->id);
        }
        ask_anew(wait, *op);
        rc = idem__call(wait->store, op, error);
    }
    return rc;
}

static int wait_for_other(struct idem_store *store,
                          const struct idem_request *request,
                          struct idem_op **op, struct idem_error *error)
{
    struct wait wait = {
        .store = store,
        .fence = (*op)->record->fence,
        .pause_ms = POLL_FIRST_MS,
        .then_run = (request->flags & IDEM_WAIT_THEN_RUN) != 0,
    };
    int64_t now_ms = idem__boot_ms(store);
    int rc;

    /* Without a clock nobody waits: no wait would come to its end. */
    if (now_ms != IDEM_NEVER) {
        wait.until_ms = idem__time_add(now_ms, request->wait_ms);
    }
    if (store->waiters != NULL && idem__waiters_enter(store->waiters) != 0) {
        idem_op_destroy(*op);
        *op = NULL;
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "too many callers of this process wait already");
    }
    rc = wait_on(&wait, op, error);
    if (store->waiters != NULL) {
        idem__waiters_leave(store->waiters);
    }
    return rc;
}

int idem__begin_op(const struct idem_request *request, struct idem_op **ret_op,
                   struct idem_error *error)
{
    struct idem_request now;
    int rc = idem__check_request(request, error);

    if (rc != 0) {
        return rc;
    }
    now = *request;
    if (request->wait_ms > 0) {
        now.wait_ms = 0;
        now.flags = 0; /* At its first look it does not wait yet. */
    }
    return idem_op_begin(&now, ret_op, error);
}

int idem__begin_answered(struct idem_store *store,
                         const struct idem_request *request, struct idem_op *op,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *error)
{
    struct idem_attempt *attempt;
    int rc = 0;

    if (op->verdict == IDEM_BUSY && request->wait_ms > 0) {
        rc = wait_for_other(store, request, &op, error);
    }
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/begin/answered");
    attempt = idem__attempt_create(op);
    idem_op_destroy(op);
    if (attempt == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    *ret_attempt = attempt;
    return 0;
}

int idem_begin(struct idem_store *store, const struct idem_request *request,
               struct idem_attempt **ret_attempt, struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem__begin_op(request, &op, ret_error);

    if (rc == 0) {
        IDEM__CRASH_POINT("api/begin/asks");
        rc = idem__call(store, &op, ret_error);
    }
    return rc != 0 ? rc
                   : idem__begin_answered(store, request, op, ret_attempt,
                                          ret_error);
}
