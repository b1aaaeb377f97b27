/* Claims a key, waits for another owner's attempt, and runs the whole pattern in one
 * call. */
#include "api/call.h"
#include "base/crash.h"
#include "base/host.h"
#include "base/pace.h"
#include "core/error.h"
#include "queue/op.h"
#include "queue/queue.h"

#include <idem.h>
#include <idem/queue.h>

enum {
    POLL_FIRST_MS = 2
};

/* A waiter polls, because the owner may be in another process; a change in this process
 * wakes it early. */
struct wait {
    struct idem_store *store;
    const struct idem_request *request;
    uint8_t id[IDEM_ID_LEN];
    uint64_t fence;   /* Of the first attempt that it saw; 0: none yet. */
    bool unsure;      /* A claim of an earlier look may still be made. */
    int64_t until_ms; /* By the boot clock, like pace. */
    struct idem__pace pace;
};

/* Returns random bits for the pace: from the nonce of @op, whose claim failed and so
 * did not use it, or new ones. */
static uint16_t random_of(const struct idem_host *host,
                          const struct idem_op *op)
{
    uint8_t bytes[2] = {0, 0};

    if (op != NULL && op->has_nonce) {
        memcpy(bytes, op->nonce, sizeof(bytes));
    } else {
        (void)host->random(host->ctx, bytes, sizeof(bytes));
    }
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void pause_for(const struct wait *wait, uint64_t mark, int64_t ms)
{
    const struct idem_host *host = &wait->store->options.host;

    if (wait->store->waiters != NULL) {
        idem__waiters_sleep(wait->store->waiters, wait->id, mark, ms);
    } else {
        host->sleep(host->ctx, ms);
    }
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Prepares the op of the next look. It gets a new nonce, and its lease counts from now,
 * because it is a new request: a late start must not begin with an old lease. An op
 * that failed is gone, and is created anew. */
static int ask_anew(const struct wait *wait, struct idem_op **op,
                    struct idem_error *error)
{
    int rc = 0;

    if (*op == NULL) {
        rc = idem__begin_op(wait->request, op, error);
    }
    if (rc != 0) {
        return rc;
    }
    (*op)->has_nonce = false;
    (*op)->asked_boot_ms = 0;
    if (wait->fence == 0) {
        return 0;
    }
    if ((wait->request->flags & IDEM_WAIT_THEN_RUN) != 0) {
        (*op)->u.begin.flags = IDEM_WAIT_THEN_RUN;
    } else {
        (*op)->u.begin.join_fence = wait->fence;
    }
    return 0;
}

/* True if the waiter waits on: for another owner's attempt, or for its turn if others
 * keep the store busy. A remote store that does not answer the first look may be away
 * for good, so the waiter does not wait for it. */
static bool goes_on(const struct wait *wait, const struct idem_op *op, int rc)
{
    if (rc != 0) {
        return rc == IDEM_EUNAVAILABLE &&
               (wait->fence != 0 || !wait->store->remote);
    }
    return op->verdict == IDEM_BUSY && op->lease_left_ms > 0;
}

/* Turns "nothing was done" into IDEM_EUNKNOWN: a claim of an earlier look may still
 * reach the store, and succeed if the record that the look found instead has been
 * purged by then. */
static int be_unsure(int rc, struct idem_error *error)
{
    if (rc != IDEM_EUNAVAILABLE && rc != IDEM_EFULL && rc != IDEM_EDENIED) {
        return rc;
    }
    error->code = IDEM_EUNKNOWN;
    return IDEM_EUNKNOWN;
}

static int wait_on(struct wait *wait, struct idem_op **op, int rc,
                   struct idem_error *error)
{
    const struct idem_host *host = &wait->store->options.host;
    struct idem_waiters *waiters = wait->store->waiters;
    /* Any change in this process since it opened the store ends the first sleep at
     * once, so a change after the first look is not missed. */
    uint64_t mark = 0;

    while (goes_on(wait, *op, rc)) {
        int64_t now_ms = idem__boot_ms(wait->store);
        int64_t left_ms = wait->until_ms - now_ms;
        int64_t pause_ms;

        if (left_ms <= 0) {
            break;
        }
        if (rc == 0 && wait->fence == 0) {
            wait->fence = (*op)->record->fence;
        }
        wait->unsure =
            wait->unsure || (rc == 0 && (*op)->changed && wait->store->remote);
        pause_ms = idem__pace_next(&wait->pace, now_ms, random_of(host, *op));
        pause_for(wait, mark, shorter(left_ms, pause_ms + 1));
        IDEM__CRASH_POINT("api/begin/waited");
        if (waiters != NULL) {
            /* Before the look: a change after it then ends the next sleep at once. */
            mark = idem__waiters_mark(waiters, wait->id);
        }
        rc = ask_anew(wait, op, error);
        if (rc == 0) {
            rc = idem__call(wait->store, op, error);
        }
    }
    return wait->unsure ? be_unsure(rc, error) : rc;
}

/* Waits after the first look, which returned @rc. Its op is gone if it failed. */
static int wait_for_other(struct idem_store *store,
                          const struct idem_request *request,
                          struct idem_op **op, int rc, struct idem_error *error)
{
    struct wait wait = {
        .store = store,
        .request = request,
        .pace = {.since_ms = idem__boot_ms(store), .pause_ms = POLL_FIRST_MS},
    };

    /* Without a clock until_ms stays 0 and there is no wait, because it could not
     * end. */
    if (wait.pace.since_ms != IDEM_NEVER) {
        wait.until_ms = idem__time_add(wait.pace.since_ms, request->wait_ms);
    }
    if (idem_id(request->scope, request->key, wait.id) != 0) {
        idem_op_destroy(*op);
        *op = NULL;
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    return wait_on(&wait, op, rc, error);
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
        now.flags = 0; /* The first look does not wait yet. */
    }
    return idem_op_begin(&now, ret_op, error);
}

/* Continues after the first look at the key of @request, which failed (@rc, without
 * @op) or was answered. */
static int go_on(struct idem_store *store, const struct idem_request *request,
                 struct idem_op *op, int rc, struct idem_attempt **ret_attempt,
                 struct idem_error *error)
{
    if (request->wait_ms > 0 && (rc != 0 || op->verdict == IDEM_BUSY)) {
        rc = wait_for_other(store, request, &op, rc, error);
    }
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/begin/answered");
    *ret_attempt = idem__attempt_of_op(op);
    idem_op_destroy(op);
    return 0;
}

int idem__begin_answered(struct idem_store *store,
                         const struct idem_request *request, struct idem_op *op,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *error)
{
    return go_on(store, request, op, /* rc= */ 0, ret_attempt, error);
}

int idem_begin(struct idem_store *store, const struct idem_request *request,
               struct idem_attempt **ret_attempt, struct idem_error *ret_error)
{
    struct idem_error
        error; /* Kept here, because another look may follow a failed one. */
    struct idem_op *op = NULL;
    int rc = idem__begin_op(request, &op, ret_error);

    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/begin/asks");
    rc = idem__call(store, &op, &error);
    rc = go_on(store, request, op, rc, ret_attempt, &error);
    if (rc != 0 && ret_error != NULL) {
        *ret_error = error;
    }
    return rc;
}

/* ---- The whole pattern in one call ---- */

static int record(struct idem_attempt *attempt,
                  const struct idem_outcome *outcome, struct idem_error *error)
{
    switch (outcome->status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &outcome->result, error);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, outcome->text, &outcome->result, error);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, outcome->text, error);
    case IDEM_STATUS_RETRY:
        return idem_retry(attempt, outcome->text, error);
    case IDEM_STATUS_UNKNOWN:
        return idem_unknown(attempt, outcome->text, error);
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return idem_unknown(attempt, idem_str("the work reported no outcome"),
                        error);
}

int idem_once(struct idem_store *store, const struct idem_request *request,
              idem_work_fn *work, void *ctx, struct idem_attempt **ret_attempt,
              struct idem_error *ret_error)
{
    struct idem_outcome outcome;
    struct idem_attempt *attempt;
    int rc = idem_begin(store, request, &attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (attempt->verdict == IDEM_STARTED) {
        memset(&outcome, 0, sizeof(outcome));
        work(ctx, attempt, &outcome);
        rc = record(attempt, &outcome, ret_error);
    }
    *ret_attempt = attempt;
    return rc;
}
