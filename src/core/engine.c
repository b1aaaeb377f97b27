/* One op over a table of records. */

#include "contract/parts.h"
#include "core/slice.h"

/* 1 found, 0 none, negative: op->error says why not. The id is that of the names
 * in @op, so to compare the names is enough. */
static int load(const struct idem_table *table, struct idem_op *op,
                struct idem_record *ret_record)
{
    int rc = table->load(table->ctx, op->id, /* with_bodies= */ false,
                         ret_record, &op->error);

    if (rc != 1) {
        return rc;
    }
    if (!idem__slice_equal(ret_record->scope, op->scope) ||
        !idem__slice_equal(ret_record->key, op->key)) {
        return idem__op_fail(op, IDEM_ECORRUPT,
                             "the record cannot be trusted: its scope and key "
                             "do not match it");
    }
    ret_record->scope = op->scope;
    ret_record->key = op->key;
    return 1;
}

/* The record for the caller. Bodies are read before anything is written: one
 * that cannot be trusted must not cost an attempt. */
static int prepare(const struct idem_table *table, struct idem_op *op,
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

/* Prepares the answer. False: op->error says why not. */
static bool settle(const struct idem_table *table, struct idem_op *op,
                   const struct idem_record *found,
                   const struct idem_decision *decision,
                   struct idem_record *ret_record)
{
    if (decision->code != 0) {
        (void)idem__op_fail(op, decision->code, "%s", decision->text);
        return false;
    }
    return prepare(table, op, found, decision, ret_record) == 0;
}

bool idem__table_run(const struct idem_table *table, struct idem_op *op,
                     const struct idem_now *now)
{
    struct idem_record record;
    struct idem_record given;
    const struct idem_record *found;
    struct idem_decision decision;
    bool changes;
    int rc;

    op->changed = false;
    rc = load(table, op, &record);
    if (rc < 0) {
        return false;
    }
    found = rc == 0 ? NULL : &record;
    idem__verb_decide(found, op, now, &decision);
    if (!settle(table, op, found, &decision, &given)) {
        return false;
    }
    if (idem__verb_answer(op, &decision, &given) != 0) {
        return false;
    }
    changes = decision.change != IDEM_CHANGE_NONE;
    if (changes && table->save(table->ctx, &decision, &op->error) != 0) {
        op->has_record = false;
        return false;
    }
    op->changed = changes;
    if (op->verb == IDEM_OP_IMPORT) {
        /* A write that an earlier copy of this op made is its own. */
        op->u.import.added = op->u.import.added || changes;
    }
    return changes;
}

/* It makes a record where none exists. */
static bool claims(const struct idem_op *op)
{
    return op->verb == IDEM_OP_BEGIN && op->u.begin.join_fence == 0;
}

bool idem__table_peek(const struct idem_table *table, struct idem_op *op,
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
    rc = load(table, op, &record);
    if (rc < 0) {
        return true;
    }
    if (rc == 0 && claims(op)) {
        return false;
    }
    found = rc == 0 ? NULL : &record;
    idem__verb_decide(found, op, now, &decision);
    if (decision.change != IDEM_CHANGE_NONE ||
        (op->verb == IDEM_OP_BEGIN && decision.verdict == IDEM_STARTED)) {
        return false;
    }
    if (settle(table, op, found, &decision, &given)) {
        (void)idem__verb_answer(op, &decision, &given);
    }
    return true;
}
