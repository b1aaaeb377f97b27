/* One op over a table of records. */
#include "store/local/engine.h"

#include "store/shared/verbs.h"

/* What the caller is given. Bodies are read before anything is written: one that
 * cannot be trusted must not cost an attempt. */
static int prepare(const struct idem__table *table, struct idem_op *op,
                   const struct idem_record *found,
                   const struct idem_decision *decision,
                   struct idem_record *ret_record)
{
    struct idem_record bodies;
    int rc;

    if (!idem__verb_given(op, found, decision, ret_record)) {
        return 0;
    }
    rc = table->load(table->ctx, op->id, /* with_bodies= */ true, &bodies,
                     &op->error);
    if (rc < 0) {
        return rc;
    }
    idem__verb_take_bodies(decision, &bodies, ret_record);
    return 0;
}

/* Decides, and prepares the answer. False: op->error says why not. */
static bool settle(const struct idem__table *table, struct idem_op *op,
                   const struct idem_now *now, const struct idem_record *found,
                   struct idem_decision *decision,
                   struct idem_record *ret_record)
{
    idem__verb_decide(found, op, now, decision);
    if (decision->code != 0) {
        (void)idem_op_fail(op, decision->code, "%s", decision->text);
        return false;
    }
    return prepare(table, op, found, decision, ret_record) == 0;
}

bool idem__engine_run(const struct idem__table *table, struct idem_op *op,
                      const struct idem_now *now)
{
    struct idem_record record;
    struct idem_record given;
    struct idem_decision decision;
    bool changes;
    int rc;

    op->changed = false;
    rc = table->load(table->ctx, op->id, /* with_bodies= */ false, &record,
                     &op->error);
    if (rc < 0 ||
        !settle(table, op, now, rc == 0 ? NULL : &record, &decision, &given)) {
        return false;
    }
    changes = decision.change != IDEM_CHANGE_NONE;
    if (changes && table->save(table->ctx, &decision, &op->error) != 0) {
        return false;
    }
    op->changed = changes;
    if (op->verb == IDEM_OP_IMPORT) {
        /* What an earlier copy of this op added, it added. */
        op->u.import.added = op->u.import.added || changes;
    }
    idem__verb_answer(op, &decision, &given);
    return changes;
}

bool idem__engine_peek(const struct idem__table *table, struct idem_op *op,
                       const struct idem_now *now)
{
    struct idem_record record;
    struct idem_record given;
    struct idem_decision decision;
    const struct idem_record *found;
    int rc;

    if (op->verb != IDEM_OP_BEGIN && op->verb != IDEM_OP_GET) {
        return false;
    }
    op->changed = false;
    rc = table->load(table->ctx, op->id, /* with_bodies= */ false, &record,
                     &op->error);
    if (rc < 0) {
        return true;
    }
    found = rc == 0 ? NULL : &record;
    idem__verb_decide(found, op, now, &decision);
    if (decision.change != IDEM_CHANGE_NONE ||
        (op->verb == IDEM_OP_BEGIN && decision.verdict == IDEM_STARTED)) {
        return false;
    }
    if (settle(table, op, now, found, &decision, &given)) {
        idem__verb_answer(op, &decision, &given);
    }
    return true;
}
