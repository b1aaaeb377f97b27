/* Implements rate limits: the op, and the blocking verb. */
#include "api/call.h"
#include "core/error.h"
#include "limit/limit.h"
#include "queue/op.h"

#include <idem/queue.h>

int idem_op_limit(const struct idem_limit_request *limit,
                  struct idem_op **ret_op, struct idem_error *ret_error)
{
    struct idem_limit_request *copy;
    struct idem_op *op;
    int rc = idem__limit_check(limit, ret_error);

    if (rc != 0) {
        return rc;
    }
    op = idem__op_create(IDEM_OP_LIMIT, limit->name.len + limit->subject.len +
                                            limit->request.len);
    if (op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__limit_ids(limit, op->u.limit.window, op->u.limit.request);
    if (rc != 0) {
        idem_op_destroy(op);
        return idem__error_plain(ret_error, rc);
    }
    copy = &op->u.limit.limit;
    *copy = *limit;
    idem__op_keep(op, &copy->name);
    idem__op_keep(op, &copy->subject);
    idem__op_keep(op, &copy->request);
    *ret_op = op;
    return 0;
}

const struct idem_limited *idem_op_limited(const struct idem_op *op)
{
    const struct idem_limited *answer = &op->u.limit.answer;

    return op->verb == IDEM_OP_LIMIT && op->error.code == 0 &&
                   answer->end_ms != 0
               ? answer
               : NULL;
}

int idem_limit(struct idem_store *store, const struct idem_limit_request *limit,
               struct idem_limited *ret_limited, struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem_op_limit(limit, &op, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    *ret_limited = op->u.limit.answer;
    idem_op_destroy(op);
    return 0;
}
