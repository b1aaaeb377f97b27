/* Manages attempts, which a begin gives to its caller: lease, token and record. */
#include "queue/op.h"

#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/token.h"

#include <idem/queue.h>

struct idem__attempt *idem__attempt_create(struct idem_slice scope,
                                           struct idem_slice key)
{
    struct idem__attempt *a = idem__zalloc(sizeof(*a) + scope.len + key.len);

    if (a == NULL) {
        return NULL;
    }
    if (scope.len > 0) {
        memcpy(a->names, scope.base, scope.len);
    }
    memcpy(a->names + scope.len, key.base, key.len);
    a->scope = idem_bytes(a->names, scope.len);
    a->key = idem_bytes(a->names + scope.len, key.len);
    return a;
}

static void free_record(struct idem__attempt *a)
{
    idem__free(a->record);
    idem__free(a->args);
}

/* Takes the record of @op, and all bytes that it points to. */
static void take_record(struct idem__attempt *a, struct idem_op *op)
{
    a->record = op->record;
    a->args = idem__op_take_args(op);
    a->pub.record = a->record;
    op->record = NULL;
    op->record_room = 0;
    op->has_record = false;
    op->key.len = 0; /* check_op() now refuses to submit it again. */
}

struct idem_attempt *idem__attempt_of_op(struct idem_op *op)
{
    struct idem__attempt *a = op->attempt;

    op->attempt = NULL;
    a->store = op->store;
    a->lease_ms = op->u.begin.lease_ms;
    /* The owner counts from before it asked, and the store from when it decided: the
     * owner stops first. */
    a->lease_end_boot_ms = idem__time_add(op->asked_boot_ms, a->lease_ms);
    memcpy(a->nonce, op->nonce, sizeof(a->nonce));
    a->pub.verdict = op->verdict;
    a->pub.takeover = op->takeover;
    a->pub.fence = op->record->fence;
    a->pub.attempts = op->record->attempts;
    a->pub.lease_left_ms = op->lease_left_ms;
    take_record(a, op);
    return &a->pub;
}

void idem__attempt_update(struct idem_attempt *attempt, struct idem_op *op)
{
    struct idem__attempt *a = idem__attempt_of(attempt);

    free_record(a);
    take_record(a, op);
    idem_op_destroy(op);
}

void idem__attempt_count_lease(struct idem__attempt *a,
                               const struct idem_op *op)
{
    int64_t lease_ms =
        op->u.renew.lease_ms != 0 ? op->u.renew.lease_ms : op->record->lease_ms;
    /* As with the claim, the lease counts from before the owner asked. */
    int64_t end_ms = idem__time_add(op->asked_boot_ms, lease_ms);

    if (end_ms > idem__attempt_lease_end(a) ||
        idem__attempt_lease_end(a) > op->record->lease_end_boot_ms) {
        idem__attempt_set_lease_end(a, end_ms);
    }
}

void idem_attempt_destroy(struct idem_attempt *attempt)
{
    if (attempt != NULL) {
        free_record(idem__attempt_of(attempt));
        idem_op_destroy(idem__attempt_of(attempt)->planned);
        idem__free(attempt);
    }
}

/* Returns how long before the end of its lease an owner stops. A claim without a store
 * was committed in a transaction of the caller, and another process can then take it
 * over like any other. */
static int64_t margin_ms(const struct idem__attempt *a)
{
    enum {
        IN_TRANSACTION_MS = 500
    };

    return a->store != NULL ? a->store->margin_ms : IN_TRANSACTION_MS;
}

int64_t idem_attempt_lease_left_ms(const struct idem_attempt *attempt)
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;
    struct idem_host host = {.ctx = NULL};
    struct idem_clock_reading reading;
    int64_t left;

    if (a->pub.verdict != IDEM_STARTED) {
        return 0;
    }
    if (idem__attempt_lease_end(a) == IDEM_NEVER) {
        return IDEM_NEVER;
    }
    if (a->store != NULL) {
        host = a->store->options.host;
    }
    idem__host_default(&host);
    /* Without a clock this process cannot know that the lease still runs, so the owner
     * starts nothing more. */
    if (host.clock(host.ctx, &reading) != 0) {
        return 0;
    }
    /* Others may start at the end of the lease, so an owner stops before it: the margin
     * is the time that stopping may take. */
    left = idem__attempt_lease_end(a) - margin_ms(a) - reading.boot_ms;
    return left > 0 ? left : 0;
}

int idem_attempt_token(const struct idem_attempt *attempt,
                       char buf[IDEM_TOKEN_MAX])
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;
    struct idem__token token;

    if (a->pub.verdict != IDEM_STARTED) {
        return IDEM_EINVALID;
    }
    token.scope = a->scope;
    token.key = a->key;
    memcpy(token.nonce, a->nonce, sizeof(token.nonce));
    token.fence = a->pub.fence;
    return idem__token_write(&token, buf);
}

int idem_attempt_from_token(struct idem_store *store, const char *token,
                            struct idem_attempt **ret_attempt,
                            struct idem_error *ret_error)
{
    struct idem__token read;
    struct idem__attempt *a;
    int rc = idem__token_read(token, &read, ret_error);

    if (rc != 0) {
        return rc;
    }
    a = idem__attempt_create(read.scope, read.key);
    if (a == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    /* This contacts no store, so the lease is unknown, and lease_left is 0 until a
     * renewal. The store decides whether the attempt still has the key when the holder
     * of the token renews or ends it. */
    a->record = idem__zalloc(sizeof(*a->record));
    rc = a->record == NULL ? IDEM_ENOMEM
                           : idem_id(a->scope, a->key, a->record->id);
    if (rc != 0) {
        idem_attempt_destroy(&a->pub);
        return idem__error_plain(ret_error, rc);
    }
    a->store = store;
    memcpy(a->nonce, read.nonce, sizeof(a->nonce));
    a->pub.verdict = IDEM_STARTED;
    a->pub.fence = read.fence;
    a->record->scope = a->scope;
    a->record->key = a->key;
    memcpy(a->record->nonce, read.nonce, sizeof(a->record->nonce));
    a->record->fence = read.fence;
    a->pub.record = a->record;
    *ret_attempt = &a->pub;
    return 0;
}

int idem_op_take_attempt(struct idem_op *op, struct idem_attempt **ret_attempt)
{
    if (op->verb != IDEM_OP_BEGIN || op->error.code != 0 || !op->has_record) {
        return IDEM_EINVALID;
    }
    /* The record leaves the op, so a second call fails. */
    *ret_attempt = idem__attempt_of_op(op);
    return 0;
}
