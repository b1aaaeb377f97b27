/* Creates the ops of the public verbs: checks the arguments and copies them. */
#include "api/call.h"
#include "base/heap.h"
#include "core/error.h"
#include "core/outcome.h"
#include "core/record.h"
#include "queue/op.h"

#include <idem/queue.h>

/* A new op for (@scope, @key) with room for @more bytes besides. @id is the hash of the two
 * where a record has it, or NULL. */
static int make(enum idem_verb verb, struct idem_slice scope,
                struct idem_slice key, const uint8_t *id, size_t more,
                struct idem_op **ret_op, struct idem_error *error)
{
    struct idem_op *op = idem__op_create(verb, scope.len + key.len + more);
    int rc = 0;

    if (op == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    if (id != NULL) {
        memcpy(op->id, id, sizeof(op->id));
    } else {
        rc = idem_id(scope, key, op->id);
    }
    if (rc != 0) {
        idem_op_destroy(op);
        return idem__error_plain(error, rc);
    }
    op->scope = scope;
    op->key = key;
    idem__op_keep(op, &op->scope);
    idem__op_keep(op, &op->key);
    *ret_op = op;
    return 0;
}

int idem_op_begin(const struct idem_request *request, struct idem_op **ret_op,
                  struct idem_error *ret_error)
{
    struct idem_request *copy;
    struct idem_slice traceparent;
    struct idem_op *op = NULL;
    int rc = idem__check_request(request, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (request->wait_ms != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "wait: an op does not wait; see join_fence");
    }
    traceparent = idem__traceparent(request->traceparent);
    rc = make(IDEM_OP_BEGIN, request->scope, request->key, /* id= */ NULL,
              request->owner.len + traceparent.len + request->fingerprint.len +
                  request->input.len,
              &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    op->attempt = idem__attempt_create(op->scope, op->key);
    if (op->attempt == NULL) {
        idem_op_destroy(op);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    copy = &op->u.begin;
    *copy = *request;
    copy->scope = op->scope;
    copy->key = op->key;
    copy->traceparent = traceparent;
    idem__op_keep(op, &copy->owner);
    idem__op_keep(op, &copy->traceparent);
    idem__op_keep(op, &copy->fingerprint);
    idem__op_keep(op, &copy->input);
    *ret_op = op;
    return 0;
}

static size_t result_max(const struct idem_store *store)
{
    static const struct idem_open_options standard = IDEM_OPEN_OPTIONS_INIT;

    return store != NULL ? store->options.result_max : standard.result_max;
}

static size_t outcome_len(const struct idem_outcome *outcome)
{
    return outcome->result.bytes.len + outcome->result.content_type.len +
           outcome->result.meta.len + outcome->text.len;
}

static void keep_outcome(struct idem_op *op, struct idem_outcome *outcome)
{
    idem__op_keep(op, &outcome->result.bytes);
    idem__op_keep(op, &outcome->result.content_type);
    idem__op_keep(op, &outcome->result.meta);
    idem__op_keep(op, &outcome->text);
}

/* Creates an op about @attempt, with its nonce and its fence. */
static int make_for(enum idem_verb verb, const struct idem_attempt *attempt,
                    size_t more, struct idem_op **ret_op,
                    struct idem_error *error)
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;
    int rc;

    if (attempt->verdict != IDEM_STARTED) {
        return idem__error(
            error, IDEM_EINVALID,
            "cannot end the attempt: its verdict is not STARTED");
    }
    rc = make(verb, a->scope, a->key, a->record->id, more, ret_op, error);
    if (rc == 0) {
        memcpy((*ret_op)->nonce, a->nonce, sizeof(a->nonce));
        (*ret_op)->has_nonce = true;
        (*ret_op)->fence = attempt->fence;
    }
    return rc;
}

int idem_op_end(const struct idem_attempt *attempt,
                const struct idem_outcome *outcome, struct idem_op **ret_op,
                struct idem_error *ret_error)
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;
    struct idem_outcome copy;
    struct idem_op *op = NULL;
    int rc = idem__outcome_check(outcome, ret_error);

    if (rc != 0) {
        return rc;
    }
    copy = idem__outcome_bounded(outcome, result_max(a->store));
    rc = make_for(IDEM_OP_END, attempt, outcome_len(&copy), &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    op->u.end = copy;
    keep_outcome(op, &op->u.end);
    *ret_op = op;
    return 0;
}

int idem_op_renew(const struct idem_attempt *attempt, int64_t lease_ms,
                  struct idem_op **ret_op, struct idem_error *ret_error)
{
    int rc = 0;

    if (lease_ms != 0) {
        rc = idem__check_duration("lease", lease_ms, IDEM_LEASE_MIN_MS, true,
                                  ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    rc = make_for(IDEM_OP_RENEW, attempt, 0, ret_op, ret_error);
    if (rc != 0) {
        return rc;
    }
    (*ret_op)->u.renew.lease_ms = lease_ms;
    return 0;
}

int idem_op_expire(const struct idem_attempt *attempt, struct idem_op **ret_op,
                   struct idem_error *ret_error)
{
    return make_for(IDEM_OP_EXPIRE, attempt, 0, ret_op, ret_error);
}

/* Checks a record for an import. A store can hold only records that the codec accepts,
 * so the codec has the last word. */
static int check_record(const struct idem_record *record,
                        struct idem_error *error)
{
    static const uint8_t no_nonce[sizeof(record->nonce)];
    struct idem_record decoded;
    uint8_t id[IDEM_ID_LEN];
    uint8_t *head;
    size_t len;
    int rc = idem__check_names(record->scope, record->key, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_id(record->scope, record->key, id);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    if (idem__record_fault(record) != NULL) {
        return idem__error(error, IDEM_EINVALID, "record: %s",
                           idem__record_fault(record));
    }
    if (record->fence > IDEM__FENCE_IMPORT_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "record: its fence leaves no room for greater ones");
    }
    /* A store may compare a record with a begin that has no nonce yet, only zeros
     * (prepare() in queue/submit.c). It would take a record with a nonce of zeros for
     * the begin's own. */
    if (memcmp(record->nonce, no_nonce, sizeof(no_nonce)) == 0) {
        return idem__error(error, IDEM_EINVALID, "record: it has no nonce");
    }
    if (memcmp(id, record->id, sizeof(id)) != 0 ||
        record->result.bytes.len != record->result_len ||
        record->input.len != record->input_len ||
        idem__record_check_body(record->result.bytes, record->result_len,
                                record->result_digest) != 0 ||
        idem__record_check_body(record->input, record->input_len,
                                record->input_digest) != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "record: its fields contradict one another");
    }
    head = idem__alloc(IDEM_HEAD_MAX);
    if (head == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    rc = idem__record_encode(record, head, IDEM_HEAD_MAX, &len);
    if (rc == 0) {
        rc = idem__record_decode(id, idem_bytes(head, len), &decoded, NULL);
    }
    idem__free(head);
    return rc == 0 ? 0
                   : idem__error(error, IDEM_EINVALID,
                                 "record: no store can hold it");
}

int idem_op_import(const struct idem_record *record, struct idem_op **ret_op,
                   struct idem_error *ret_error)
{
    struct idem_op *op = NULL;
    int rc = check_record(record, ret_error);

    if (rc == 0) {
        rc = make(IDEM_OP_IMPORT, record->scope, record->key, record->id,
                  idem__op_record_len(record), &op, ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    if (idem__op_import(op, record) != 0) {
        idem_op_destroy(op);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    idem__op_keep_record(op, op->record);
    *ret_op = op;
    return 0;
}

int idem_op_get(struct idem_slice scope, struct idem_slice key,
                struct idem_op **ret_op, struct idem_error *ret_error)
{
    int rc = idem__check_names(scope, key, ret_error);

    return rc != 0 ? rc
                   : make(IDEM_OP_GET, scope, key, /* id= */ NULL, 0, ret_op,
                          ret_error);
}

int idem__op_resolve(const struct idem_store *store, struct idem_slice scope,
                     struct idem_slice key, uint64_t fence,
                     struct idem_slice who, const struct idem_outcome *outcome,
                     unsigned flags, struct idem_op **ret_op,
                     struct idem_error *error)
{
    struct idem_outcome copy;
    struct idem_op *op = NULL;
    int rc = idem__check_names(scope, key, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__outcome_check(outcome, error);
    if (rc != 0) {
        return rc;
    }
    if (who.len > IDEM_OWNER_MAX) {
        return idem__error(error, IDEM_EINVALID, "who: at most %d bytes",
                           IDEM_OWNER_MAX);
    }
    copy = idem__outcome_bounded(outcome, result_max(store));
    rc = make(IDEM_OP_RESOLVE, scope, key, /* id= */ NULL,
              outcome_len(&copy) + who.len, &op, error);
    if (rc != 0) {
        return rc;
    }
    op->fence = fence;
    op->u.resolve.outcome = copy;
    op->u.resolve.who = who;
    op->u.resolve.flags = flags;
    keep_outcome(op, &op->u.resolve.outcome);
    idem__op_keep(op, &op->u.resolve.who);
    *ret_op = op;
    return 0;
}
