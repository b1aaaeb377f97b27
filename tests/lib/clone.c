/* Copies of ops. */
#include "clone.h"

#include "queue/op.h"

#include <idem/queue.h>

enum {
    SLICES_MAX = 16
};

/* Every slice among the arguments of @op. */
static size_t arg_slices(struct idem_op *op, struct idem_slice **ret)
{
    struct idem_outcome *outcome = NULL;
    size_t n = 0;

    ret[n++] = &op->scope;
    ret[n++] = &op->key;
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        ret[n++] = &op->u.begin.owner;
        ret[n++] = &op->u.begin.traceparent;
        ret[n++] = &op->u.begin.fingerprint;
        ret[n++] = &op->u.begin.input;
        break;
    case IDEM_OP_END:
        outcome = &op->u.end;
        break;
    case IDEM_OP_RESOLVE:
        outcome = &op->u.resolve.outcome;
        ret[n++] = &op->u.resolve.who;
        break;
    case IDEM_OP_LIST:
        ret[n++] = &op->u.list.filter.scope;
        break;
    case IDEM_OP_LIMIT:
        ret[n++] = &op->u.limit.limit.name;
        ret[n++] = &op->u.limit.limit.subject;
        ret[n++] = &op->u.limit.limit.request;
        break;
    case IDEM_OP_MOVE:
        ret[n++] = &op->u.move.was;
        ret[n++] = &op->u.move.mark;
        break;
    case IDEM_OP_IMPORT: /* See clone_op(). */
    case IDEM_OP_EXPIRE:
    case IDEM_OP_RENEW:
    case IDEM_OP_GET:
    case IDEM_OP_PURGE:
    case IDEM_OP_COUNT:
        break;
    }
    if (outcome != NULL) {
        ret[n++] = &outcome->result.bytes;
        ret[n++] = &outcome->result.content_type;
        ret[n++] = &outcome->result.meta;
        ret[n++] = &outcome->text;
    }
    return n;
}

struct idem_op *clone_op(const struct idem_op *op)
{
    struct idem_slice *slices[SLICES_MAX];
    struct idem_op shallow = *op;
    size_t n = arg_slices(&shallow, slices);
    size_t len =
        op->verb == IDEM_OP_IMPORT ? idem__op_record_len(op->record) : 0;
    struct idem_op *copy;
    size_t i;

    for (i = 0; i < n; i++) {
        len += slices[i]->len;
    }
    copy = idem__op_create(op->verb, len);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy->id, op->id, sizeof(copy->id));
    memcpy(copy->nonce, op->nonce, sizeof(copy->nonce));
    copy->has_nonce = op->has_nonce;
    copy->scope = op->scope;
    copy->key = op->key;
    copy->fence = op->fence;
    copy->pending = op->pending;
    memcpy(copy->pending_head, op->pending_head, sizeof(copy->pending_head));
    copy->u = op->u;
    if (op->verb == IDEM_OP_IMPORT) {
        if (idem__op_import(copy, op->u.import.record) != 0) {
            idem_op_destroy(copy);
            return NULL;
        }
        idem__op_keep_record(copy, copy->record);
    }
    n = arg_slices(copy, slices);
    for (i = 0; i < n; i++) {
        idem__op_keep(copy, slices[i]);
    }
    return copy;
}
