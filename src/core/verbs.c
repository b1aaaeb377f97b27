/* Calls the decision of each verb and prepares its answer, for every store. */

#include "contract/parts.h"
#include "core/decide.h"
#include "core/error.h"
#include "core/move.h"
#include "core/slice.h"

#include <idem/operator.h>

/* A copy of @record with the members that depend on the time @now. */
static struct idem_record shown_at(const struct idem_record *record,
                                   const struct idem_now *now)
{
    struct idem_record shown = *record;

    shown.overdue = idem__decide_overdue(record, now);
    shown.live = idem__is_live(record, now);
    return shown;
}

void idem__verb_decide(const struct idem_record *found,
                       const struct idem_op *op, const struct idem_now *now,
                       struct idem_decision *decision)
{
    char text[sizeof(decision->text)];

    /* The mark comes before the rules: a store that was left answers no begin, not even a
     * replay (specification 10). Each rule clears the decision itself, because it is large
     * and every replay comes here. */
    if (idem__move_refuses(now->mark, op, text, sizeof(text))) {
        memset(decision, 0, sizeof(*decision));
        decision->code = IDEM_ECONFIG;
        (void)strcpy(decision->text, text);
        return;
    }
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        idem__decide_begin(found, op, now, decision);
        return;
    case IDEM_OP_END:
        idem__decide_end(found, op, now, decision);
        return;
    case IDEM_OP_RENEW:
        idem__decide_renew(found, op, now, decision);
        return;
    case IDEM_OP_EXPIRE:
        idem__decide_expire(found, op, now, decision);
        return;
    case IDEM_OP_IMPORT:
        idem__decide_import(found, op, now, decision);
        return;
    case IDEM_OP_RESOLVE:
        idem__decide_resolve(found, op, now, decision);
        return;
    case IDEM_OP_GET:
    case IDEM_OP_LIST:
    case IDEM_OP_PURGE:
    case IDEM_OP_COUNT:
    case IDEM_OP_LIMIT:
    case IDEM_OP_MOVE:
        break;
    }
    memset(decision, 0, sizeof(*decision));
    /* A record past its expiry counts as absent, even before a purge has deleted it. */
    if (found == NULL || idem__decide_expired(found, now)) {
        decision->code = IDEM_ENOTFOUND;
        (void)strcpy(decision->text, idem_error_text(IDEM_ENOTFOUND));
    } else {
        decision->next = shown_at(found, now);
    }
}

/* True if the caller wants to fetch bodies of this size itself, when it has room. */
static bool leaves_out(const struct idem_op *op,
                       const struct idem_record *record,
                       const struct idem_decision *decision)
{
    uint64_t max = op->u.begin.bodies_max;

    /* A new owner always gets the input, because it cannot do the work without it. */
    return op->verb == IDEM_OP_BEGIN && decision->verdict != IDEM_STARTED &&
           max > 0 && record->result_len + record->input_len > max;
}

/* True if the answer carries a result. A begin that was ended in the same write
 * (op->commit) may find its own record: it is STARTED, too, and gets the result that it
 * recorded. */
bool idem__verb_gives_result(const struct idem_decision *decision)
{
    return !decision->set_result &&
           (decision->verdict != IDEM_STARTED ||
            decision->next.status != IDEM_STATUS_IN_PROGRESS);
}

/* True if the answer needs bodies: the result of a replay or of a failure, or an input
 * that the next owner inherits. */
static bool needs_bodies(const struct idem_op *op,
                         const struct idem_record *record,
                         const struct idem_decision *decision)
{
    bool given =
        op->verb == IDEM_OP_GET ||
        (op->verb == IDEM_OP_BEGIN && (decision->verdict == IDEM_STARTED ||
                                       decision->verdict == IDEM_REPLAY ||
                                       decision->verdict == IDEM_FAILED));

    return given && !leaves_out(op, record, decision) &&
           ((record->result_len > 0 && idem__verb_gives_result(decision)) ||
            (record->input_len > 0 && !decision->set_input));
}

/* A caller that used the key for another request must not learn the input or the
 * outcome of this one. */
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

/* A waiter whose key has no record gets an empty one, which reads as released. */
static void absent(const struct idem_op *op, struct idem_record *ret_record)
{
    memset(ret_record, 0, sizeof(*ret_record));
    ret_record->scope = op->scope;
    ret_record->key = op->key;
    memcpy(ret_record->id, op->id, sizeof(ret_record->id));
    ret_record->status = IDEM_STATUS_RELEASED;
}

bool idem__verb_given(const struct idem_op *op, const struct idem_record *found,
                      const struct idem_decision *decision,
                      struct idem_record *ret_record)
{
    if (found == NULL && decision->change == IDEM_CHANGE_NONE) {
        absent(op, ret_record);
        return false;
    }
    /* A get returns the record as shown_at() makes it: overdue or not, its lease running
     * or not. After a change all other verbs return the record as it will be. */
    *ret_record =
        op->verb != IDEM_OP_GET && decision->change == IDEM_CHANGE_NONE
            ? *found
            : decision->next;
    if (op->verb == IDEM_OP_BEGIN && decision->verdict == IDEM_MISMATCH) {
        hide_content(ret_record);
    }
    if (op->verb == IDEM_OP_END) {
        /* This outcome is on record, whether this op or an earlier copy wrote it. */
        ret_record->result.bytes = op->u.end.result.bytes;
    }
    return needs_bodies(op, ret_record, decision);
}

void idem__verb_take_bodies(const struct idem_decision *decision,
                            const struct idem_record *bodies,
                            struct idem_record *record)
{
    if (idem__verb_gives_result(decision)) {
        record->result.bytes = bodies->result.bytes;
    }
    if (!decision->set_input) {
        record->input = bodies->input;
    }
}

int idem__verb_answer(struct idem_op *op, const struct idem_decision *decision,
                      const struct idem_record *record)
{
    op->verdict = decision->verdict;
    op->takeover = decision->takeover;
    op->lease_left_ms = decision->lease_left_ms;
    /* op->record of an import is the record that it adds: keep it. */
    return op->verb != IDEM_OP_IMPORT ? idem__op_set_record(op, record) : 0;
}

int idem__verb_check_bodies(const struct idem_record *record,
                            struct idem_error *error)
{
    int rc = idem__record_check_body(record->result.bytes, record->result_len,
                                     record->result_digest);

    if (rc == 0) {
        rc = idem__record_check_body(record->input, record->input_len,
                                     record->input_digest);
    }
    if (rc == IDEM_ECORRUPT) {
        return idem__error(error, rc,
                           "the record cannot be trusted: its result or input "
                           "does not match its checksum");
    }
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

static bool has_status(const struct idem_filter *filter,
                       const struct idem_record *record)
{
    /* A filter for in_progress also finds the records that wait for a retry. */
    unsigned status = 1u << record->status | 1u << idem_record_status(record);

    if (filter->failed_outcomes) {
        return (filter->statuses & status) != 0 || idem_outcome_failed(record);
    }
    return filter->statuses == 0 || (filter->statuses & status) != 0;
}

static bool passes(const struct idem_filter *filter, int code,
                   const struct idem_record *record, const struct idem_now *now)
{
    if (!filter->any_scope &&
        !idem__slice_equal(filter->scope, record->scope)) {
        return false;
    }
    if (code != 0) {
        /* List a record that cannot be read: a person must see it. A purge lists expired
         * records, and must never take it. */
        return !filter->expired;
    }
    if (idem__decide_expired(record, now) != filter->expired) {
        return false;
    }
    if (!has_status(filter, record)) {
        return false;
    }
    return !filter->overdue || idem__decide_overdue(record, now);
}

bool idem__verb_list_down(const struct idem_op *op)
{
    const struct idem_filter *filter = &op->u.list.filter;

    return filter->newest_first && !filter->overdue &&
           (filter->statuses & 1u << IDEM_STATUS_COMPLETED ||
            (filter->statuses == 0 && !filter->failed_outcomes));
}

bool idem__verb_list_row(struct idem_op *op, int code,
                         const struct idem_record *record,
                         const struct idem_now *now)
{
    struct idem_record shown;

    op->u.list.looked++;
    if (!passes(&op->u.list.filter, code, record, now)) {
        return true;
    }
    shown = code == 0 ? shown_at(record, now) : *record;
    if (op->u.list.each(op->u.list.ctx, code, &shown) != 0) {
        op->u.list.stopped = true;
        return false;
    }
    return true;
}

bool idem__verb_unwanted(struct idem_op *op)
{
    int running = IDEM_OP_RUNNING;

    /* A claim that was ended in the same write (commit) blocks no other caller. */
    if (op->verb != IDEM_OP_BEGIN || op->error.code != 0 ||
        op->verdict != IDEM_STARTED || op->commit != NULL) {
        return false;
    }
    /* Test and mark in one step: cancel() must not detach the op in between. */
    if (__atomic_compare_exchange_n(&op->state, &running, IDEM_OP_ANSWERED,
                                    false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        running != IDEM_OP_DETACHED) {
        return false;
    }
    /* Turn the op into the release of its own claim. No work was run, because no caller
     * was told of the claim. */
    op->fence = op->record->fence;
    op->verb = IDEM_OP_END;
    op->u.end = (struct idem_outcome){
        .status = IDEM_STATUS_RELEASED,
        .text = idem_str("its caller had stopped waiting"),
    };
    /* The op has no queue any more, and stays detached (idem__pending_run()), so
     * answering it frees it. */
    op->queue = NULL;
    return true;
}
