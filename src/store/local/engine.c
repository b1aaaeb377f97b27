/* One op over a table of records. */
#include "store/local/engine.h"

#include "core/error.h"
#include "core/slice.h"

static void decide(const struct idem_record *found, const struct idem_op *op,
                   const struct idem_now *now, struct idem_decision *decision)
{
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        idem_decide_begin(found, op, now, decision);
        return;
    case IDEM_OP_END:
        idem_decide_end(found, op, now, decision);
        return;
    case IDEM_OP_RENEW:
        idem_decide_renew(found, op, now, decision);
        return;
    case IDEM_OP_EXPIRE:
        idem_decide_expire(found, op, now, decision);
        return;
    case IDEM_OP_IMPORT:
        idem_decide_import(found, op, now, decision);
        return;
    case IDEM_OP_RESOLVE:
        idem_decide_resolve(found, op, now, decision);
        return;
    case IDEM_OP_GET:
    case IDEM_OP_LIST:
    case IDEM_OP_PURGE:
    case IDEM_OP_COUNT:
        break;
    }
    memset(decision, 0, sizeof(*decision));
    if (found == NULL || idem_decide_expired(found, now)) {
        decision->code = IDEM_ENOTFOUND;
        (void)strcpy(decision->text, idem_error_text(IDEM_ENOTFOUND));
    }
}

/* Bodies are read only for those who are given them: a replay, what is stored
 * with a failure, an input that the next owner inherits. */
static bool needs_bodies(const struct idem_op *op,
                         const struct idem_record *record,
                         const struct idem_decision *decision)
{
    bool given =
        op->verb == IDEM_OP_GET ||
        (op->verb == IDEM_OP_BEGIN && (decision->verdict == IDEM_STARTED ||
                                       decision->verdict == IDEM_REPLAY ||
                                       decision->verdict == IDEM_FAILED));

    return given && ((record->result_len > 0 && !decision->set_result) ||
                     (record->input_len > 0 && !decision->set_input));
}

/* Another request is not told what this one was and what came of it. */
static void hide_content(struct idem_record *record)
{
    memset(&record->result, 0, sizeof(record->result));
    memset(&record->input, 0, sizeof(record->input));
    memset(&record->error, 0, sizeof(record->error));
    memset(&record->note, 0, sizeof(record->note));
    memset(record->result_digest, 0, sizeof(record->result_digest));
    memset(record->input_digest, 0, sizeof(record->input_digest));
    record->result_len = 0;
    record->input_len = 0;
}

/* What the caller is given. Bodies are read before anything is written: one that
 * cannot be trusted must not cost an attempt. */
static int prepare(const struct idem__table *table, struct idem_op *op,
                   const struct idem_record *found,
                   const struct idem_decision *decision,
                   struct idem_record *ret_record)
{
    struct idem_record bodies;
    int rc = 0;

    *ret_record =
        decision->change == IDEM_CHANGE_NONE ? *found : decision->next;
    if (needs_bodies(op, ret_record, decision)) {
        rc = table->load(table->ctx, op->id, /* with_bodies= */ true, &bodies,
                         &op->error);
        if (rc < 0) {
            return rc;
        }
        if (!decision->set_result) {
            ret_record->result.bytes = bodies.result.bytes;
        }
        if (!decision->set_input) {
            ret_record->input = bodies.input;
        }
    }
    if (op->verb == IDEM_OP_BEGIN && decision->verdict == IDEM_MISMATCH) {
        hide_content(ret_record);
    }
    if (op->verb == IDEM_OP_END) {
        /* Now or before, it is this outcome that is on record. */
        ret_record->result.bytes = op->u.end.result.bytes;
    }
    return 0;
}

/* A join of a key without record is answered about a record that is none. */
static void absent(const struct idem_op *op, struct idem_record *ret_record)
{
    memset(ret_record, 0, sizeof(*ret_record));
    ret_record->scope = op->scope;
    ret_record->key = op->key;
    memcpy(ret_record->id, op->id, sizeof(ret_record->id));
    ret_record->status = IDEM_STATUS_RELEASED;
}

static void answer(struct idem_op *op, const struct idem_decision *decision,
                   const struct idem_record *record)
{
    op->verdict = decision->verdict;
    op->takeover = decision->takeover;
    op->lease_left_ms = decision->lease_left_ms;
    if (op->verb != IDEM_OP_IMPORT) {
        (void)idem_op_set_record(op, record);
    }
}

/* Decides, and prepares the answer. False: op->error says why not. */
static bool settle(const struct idem__table *table, struct idem_op *op,
                   const struct idem_now *now, const struct idem_record *found,
                   struct idem_decision *decision,
                   struct idem_record *ret_record)
{
    decide(found, op, now, decision);
    if (decision->code != 0) {
        (void)idem_op_fail(op, decision->code, "%s", decision->text);
        return false;
    }
    if (found == NULL && decision->change == IDEM_CHANGE_NONE) {
        absent(op, ret_record);
        return true;
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
    answer(op, &decision, &given);
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
    decide(found, op, now, &decision);
    if (decision.change != IDEM_CHANGE_NONE ||
        (op->verb == IDEM_OP_BEGIN && decision.verdict == IDEM_STARTED)) {
        return false;
    }
    if (settle(table, op, now, found, &decision, &given)) {
        answer(op, &decision, &given);
    }
    return true;
}

int idem__engine_check_bodies(const struct idem_record *record,
                              struct idem_error *error)
{
    int rc = idem_record_check_body(record->result.bytes, record->result_len,
                                    record->result_digest);

    if (rc == 0) {
        rc = idem_record_check_body(record->input, record->input_len,
                                    record->input_digest);
    }
    if (rc == IDEM_ECORRUPT) {
        return idem__error(error, rc,
                           "the record cannot be trusted: its result or input "
                           "does not match its checksum");
    }
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

static bool passes(const struct idem_filter *filter, int code,
                   const struct idem_record *record, const struct idem_now *now)
{
    if (!filter->any_scope &&
        !idem__slice_equal(filter->scope, record->scope)) {
        return false;
    }
    if (code != 0) {
        return true; /* What cannot be read is always worth a look. */
    }
    if (idem_decide_expired(record, now)) {
        return false;
    }
    if (filter->statuses != 0 &&
        (filter->statuses & 1u << record->status) == 0) {
        return false;
    }
    return !filter->overdue || idem_decide_overdue(record, now);
}

bool idem__engine_list_row(struct idem_op *op, int code,
                           const struct idem_record *record,
                           const struct idem_now *now)
{
    const struct idem_filter *filter = &op->u.list.filter;

    if (passes(filter, code, record, now) &&
        op->u.list.each(op->u.list.ctx, code, record) != 0) {
        op->u.list.stopped = true;
        return false;
    }
    return true;
}
