/* Commits a record and a caller's own writes in one transaction of the store. */
#include "api/call.h"
#include "base/crash.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/error.h"
#include "core/outcome.h"
#include "queue/op.h"

#include <idem/dynamodb.h>
#include <idem/queue.h>

static int check_writes(const struct idem_store *store,
                        const struct idem_slice *writes, size_t writes_len,
                        const struct idem_dynamodb_committed *commit,
                        struct idem_error *error)
{
    size_t total = 0;
    size_t i;

    if (store == NULL || !store->commits) {
        return idem__error(error, IDEM_EINVALID,
                           "a transaction with writes needs a record in a "
                           "DynamoDB store");
    }
    if (commit->size != sizeof(*commit)) {
        return idem__error(error, IDEM_EINVALID,
                           "commit: begin with IDEM_DYNAMODB_COMMITTED_INIT");
    }
    if (writes_len < 1 || writes_len > IDEM_DYNAMODB_WRITES_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "%zu writes: a transaction takes 1 to %d",
                           writes_len, (int)IDEM_DYNAMODB_WRITES_MAX);
    }
    for (i = 0; i < writes_len; i++) {
        if (writes[i].len > IDEM_DYNAMODB_WRITES_BYTES_MAX - total) {
            return idem__error(error, IDEM_EINVALID,
                               "the writes together exceed %d bytes",
                               (int)IDEM_DYNAMODB_WRITES_BYTES_MAX);
        }
        total += writes[i].len;
    }
    return 0;
}

static struct idem_slice keep(uint8_t **at, struct idem_slice bytes)
{
    struct idem_slice kept = idem_bytes(*at, bytes.len);

    if (bytes.len > 0) {
        memcpy(*at, bytes.base, bytes.len);
        *at += bytes.len;
    }
    return kept;
}

/* Copies all writes, with commas between them. */
static struct idem_slice keep_writes(uint8_t **at,
                                     const struct idem_slice *writes,
                                     size_t writes_len)
{
    uint8_t *from = *at;
    size_t i;

    for (i = 0; i < writes_len; i++) {
        if (i > 0) {
            *(*at)++ = ',';
        }
        (void)keep(at, writes[i]);
    }
    return idem_bytes(from, (size_t)(*at - from));
}

static size_t total_len(const struct idem_slice *writes, size_t writes_len,
                        const struct idem_result *result)
{
    size_t total = writes_len + result->bytes.len + result->content_type.len +
                   result->meta.len;
    size_t i;

    for (i = 0; i < writes_len; i++) {
        total += writes[i].len;
    }
    return total;
}

/* Gives @op a copy of the writes and the result. Destroys @op if that fails. */
static int add_commit(struct idem_op *op, const struct idem_result *result,
                      const struct idem_slice *writes, size_t writes_len,
                      struct idem_error *error)
{
    struct idem_commit *commit =
        idem__zalloc(sizeof(*commit) + total_len(writes, writes_len, result));
    uint8_t digest[IDEM__SHA256_LEN];
    uint8_t *at;

    op->commit = commit;
    if (commit == NULL) {
        goto err;
    }
    at = (uint8_t *)(commit + 1);
    commit->writes = keep_writes(&at, writes, writes_len);
    commit->writes_len = writes_len;
    commit->outcome.status = IDEM_STATUS_COMPLETED;
    commit->outcome.result = *result;
    commit->outcome.result.bytes = keep(&at, result->bytes);
    commit->outcome.result.content_type = keep(&at, result->content_type);
    commit->outcome.result.meta = keep(&at, result->meta);
    if (idem__sha256(&commit->writes, 1, digest) != 0) {
        goto err;
    }
    memcpy(commit->digest, digest, sizeof(commit->digest));
    return 0;

err:
    idem_op_destroy(op);
    return idem__error_plain(error, IDEM_ENOMEM);
}

static void tell(const struct idem_op *op,
                 struct idem_dynamodb_committed *commit)
{
    commit->committed = op->commit->committed;
    commit->refused = op->commit->refused;
    memcpy(commit->text, op->commit->text, sizeof(commit->text));
}

int idem_dynamodb_complete_with(struct idem_attempt *attempt,
                                const struct idem_result *result,
                                const struct idem_slice *writes,
                                size_t writes_len,
                                struct idem_dynamodb_committed *ret_commit,
                                struct idem_error *ret_error)
{
    static const struct idem_result nothing;
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_op *op = NULL;
    int rc = check_writes(a->store, writes, writes_len, ret_commit, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (result != NULL) {
        outcome.result = *result;
    }
    rc = idem_op_end(attempt, &outcome, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = add_commit(op, &nothing, writes, writes_len, ret_error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/commit/asks");
    rc = idem__call(a->store, &op, ret_error);
    /* The attempt is over, or another one owns the key: the caller has no lease left. */
    if (rc == IDEM_ELOST || (rc == 0 && op->commit->committed)) {
        idem__attempt_set_lease_end(a, 0);
    }
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/commit/answered");
    tell(op, ret_commit);
    if (op->commit->committed) {
        idem__attempt_update(attempt, op);
    } else {
        /* A condition of the writes did not hold: the attempt goes on as it was. */
        idem_op_destroy(op);
    }
    return 0;
}

int idem_dynamodb_commit(struct idem_store *store,
                         const struct idem_request *request,
                         const struct idem_result *result,
                         const struct idem_slice *writes, size_t writes_len,
                         struct idem_attempt **ret_attempt,
                         struct idem_dynamodb_committed *ret_commit,
                         struct idem_error *ret_error)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt;
    struct idem_op *op = NULL;
    int rc = check_writes(store, writes, writes_len, ret_commit, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (result != NULL) {
        outcome.result = *result;
    }
    outcome = idem__outcome_bounded(&outcome, store->options.result_max);
    rc = idem__outcome_check(&outcome, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem_op_begin(request, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = add_commit(op, &outcome.result, writes, writes_len, ret_error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/commit/asks");
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/commit/answered");
    attempt = idem__attempt_of_op(op);
    tell(op, ret_commit);
    idem_op_destroy(op);
    idem__attempt_set_lease_end(idem__attempt_of(attempt), 0);
    *ret_attempt = attempt;
    return 0;
}
