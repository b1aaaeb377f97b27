/* A store that is moved: reading its mark, and setting it. */
#include "contract/move.h"

#include "api/call.h"
#include "core/error.h"
#include "core/move.h"
#include "queue/op.h"

#define FENCE_MAX (UINT64_C(1) << 61)

int idem__move_get(struct idem_store *store, struct idem_move *ret_move,
                   struct idem_error *ret_error)
{
    struct idem_op *op = idem__op_create(IDEM_OP_MOVE, 0);
    int rc;

    if (op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__move_read(idem_str(op->u.move.found), ret_move);
    ret_move->fence_floor = op->u.move.found_floor;
    ret_move->store_ms = op->u.move.found_ms;
    ret_move->settles_ms = op->u.move.settles_ms;
    idem_op_destroy(op);
    return rc == 0 ? 0
                   : idem__error(ret_error, rc,
                                 "the store's mark of a move is damaged");
}

static int make_op(const char *was, const char *mark,
                   const struct idem_move *move, struct idem_op **ret_op)
{
    struct idem_op *op =
        idem__op_create(IDEM_OP_MOVE, strlen(was) + strlen(mark));

    if (op == NULL) {
        return IDEM_ENOMEM;
    }
    op->u.move.set = true;
    op->u.move.was = idem_str(was);
    op->u.move.mark = idem_str(mark);
    idem__op_keep(op, &op->u.move.was);
    idem__op_keep(op, &op->u.move.mark);
    if (move->state == IDEM_MOVE_HERE) {
        op->u.move.fence_floor = move->fence_floor;
        op->u.move.store_ms = move->store_ms;
    }
    *ret_op = op;
    return 0;
}

int idem__move_set(struct idem_store *store, const struct idem_move *was,
                   const struct idem_move *move, struct idem_error *ret_error)
{
    char marks[2][IDEM_MARK_MAX];
    struct idem_op *op;
    int rc;

    if (idem__move_write(was, marks[0]) != 0 ||
        idem__move_write(move, marks[1]) != 0 ||
        move->fence_floor >= FENCE_MAX || move->store_ms < 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "move: no store can have such a state");
    }
    rc = make_op(marks[0], marks[1], move, &op);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    rc = idem__call(store, &op, ret_error);
    if (rc == 0) {
        idem_op_destroy(op);
    }
    return rc;
}
