/* Runs one op on a table of records: load, decide, save.
 *
 * The caller of idem__table_run() holds the store's lock, so no other op runs between the
 * three. The simulator and all local stores run this function. */

#include "contract/parts.h"
#include "core/slice.h"

/* Loads the record of @op. 1: found; 0: no record; negative: op->error has the reason.
 * The table finds a record by its id, a hash of scope and key; comparing those proves
 * that it is the right record. */
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
    /* Point to the op's own bytes, which are equal and outlive the next call on the
     * table. */
    ret_record->scope = op->scope;
    ret_record->key = op->key;
    return 1;
}

/* Builds the record for the answer. Reads its bodies before anything is written: if they
 * turn out to be damaged, no attempt may have been started for them. */
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
    /* A decision needs no bodies, so most ops never load them. */
    rc = table->load(table->ctx, op->id, /* with_bodies= */ true, &bodies,
                     &op->error);
    if (rc < 0) {
        return rc;
    }
    idem__verb_take_bodies(decision, &bodies, ret_record);
    return 0;
}

/* Prepares the answer. False: op->error has the reason. */
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
    /* Set the answer before the write: if memory for it runs out, nothing is written. */
    if (idem__verb_answer(op, &decision, &given) != 0) {
        return false;
    }
    changes = decision.change != IDEM_CHANGE_NONE;
    /* The prepared answer does not hold; the caller of this function rolls back what was
     * written. */
    if (changes && table->save(table->ctx, &decision, &op->error) != 0) {
        op->has_record = false;
        return false;
    }
    op->changed = changes;
    if (op->verb == IDEM_OP_IMPORT) {
        /* A write that an earlier copy of this op made counts as its own. */
        op->u.import.added = op->u.import.added || changes;
    }
    return changes;
}

/* True if @op creates a record where there is none. */
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
    /* An error is an answer, too: a key whose record cannot be read must not be
     * claimed. */
    if (rc < 0) {
        return true;
    }
    /* Nothing is on record: the claim makes a record, which needs the lock. */
    if (rc == 0 && claims(op)) {
        return false;
    }
    found = rc == 0 ? NULL : &record;
    idem__verb_decide(found, op, now, &decision);
    /* A change needs the lock. So does STARTED without a change, which means that an
     * earlier copy of this op made the claim: only a run under the lock may hand out an
     * attempt. */
    if (decision.change != IDEM_CHANGE_NONE ||
        (op->verb == IDEM_OP_BEGIN && decision.verdict == IDEM_STARTED)) {
        return false;
    }
    if (settle(table, op, found, &decision, &given)) {
        (void)idem__verb_answer(op, &decision, &given);
    }
    return true;
}
