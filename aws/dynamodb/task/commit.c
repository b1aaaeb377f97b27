/* A caller's own writes, in one transaction with a record. */
#include "aws/dynamodb/task/task.h"

#include "core/decide.h"
#include "core/error.h"

/* True for {"Put":{...}}, {"Update":{...}} and so on. */
static bool is_write(json_object *object)
{
    static const char *const verbs[] = {"Put", "Update", "Delete",
                                        "ConditionCheck"};
    json_object *what;
    size_t i;

    if (!json_object_is_type(object, json_type_object) ||
        json_object_object_length(object) != 1) {
        return false;
    }
    for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (json_object_object_get_ex(object, verbs[i], &what)) {
            return json_object_is_type(what, json_type_object);
        }
    }
    return false;
}

/* The first element of @list that is not a write, from 1 on; 0: all are writes. */
static size_t first_bad(json_object *list)
{
    size_t n = json_object_array_length(list);
    size_t i;

    for (i = 0; i < n; i++) {
        if (!is_write(json_object_array_get_idx(list, i))) {
            return i + 1;
        }
    }
    return 0;
}

/* The caller's texts, joined by commas, must be a list of as many elements: one text could
 * hold two entries, or only a part of one. */
static int check_list(const struct idem_commit *commit, json_object *list,
                      struct idem_error *error)
{
    size_t bad;

    if (list == NULL || json_object_array_length(list) != commit->writes_len) {
        return idem__error(error, IDEM_EINVALID,
                           "each write must be JSON, one entry of "
                           "TransactItems");
    }
    bad = first_bad(list);
    if (bad != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "write %zu is not one of {\"Put\":{...}}, "
                           "{\"Update\":...}, {\"Delete\":...} and "
                           "{\"ConditionCheck\":...}",
                           bad);
    }
    return 0;
}

int idem__commit_check(struct idem_commit *commit, struct idem_error *ret_error)
{
    struct idem__buffer text = {.base = NULL};
    json_object *list = NULL;
    int rc = IDEM_ENOMEM;

    commit->committed = false;
    commit->refused = 0;
    commit->text[0] = '\0';
    idem__buffer_str(&text, "[");
    idem__buffer_add(&text, commit->writes.base, commit->writes.len);
    idem__buffer_str(&text, "]");
    if (!text.failed) {
        list = idem__json_parse_list(idem__buffer_slice(&text), &rc);
    }
    if (list != NULL || rc != IDEM_ENOMEM) {
        rc = check_list(commit, list, ret_error);
    } else {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)json_object_put(list);
    idem__buffer_free(&text);
    return rc;
}

/* ---- Deciding ---- */

/* True if @found was committed by an earlier copy of @op: it has the nonce of the op, and
 * the digest of these very writes. */
static bool has_these(const struct idem_op *op, const struct idem__item *found)
{
    return found != NULL && found->has_writes &&
           found->record.status == IDEM_STATUS_COMPLETED &&
           memcmp(found->writes, op->commit->digest, IDEM__TAG_LEN) == 0 &&
           memcmp(found->record.nonce, op->nonce, sizeof(op->nonce)) == 0;
}

/* Turns the claim of @decision into a record that is completed already, so that nobody
 * ever sees it in progress. */
static void complete_claim(const struct idem_op *op, const struct idem_now *now,
                           struct idem_decision *decision)
{
    struct idem_op end = *op;
    struct idem_decision ended;

    end.verb = IDEM_OP_END;
    end.fence = decision->next.fence;
    end.u.end = op->commit->outcome;
    idem__decide_end(&decision->next, &end, now, &ended);
    ended.verdict = decision->verdict;
    ended.takeover = decision->takeover;
    ended.change = decision->change;
    ended.set_input = decision->set_input;
    *decision = ended;
}

void idem__commit_decide(struct idem_op *op, const struct idem__item *found,
                         const struct idem_now *now,
                         struct idem_decision *decision)
{
    bool begins = op->verb == IDEM_OP_BEGIN;

    /* An earlier copy of the transaction was applied, and its answer was lost. */
    if (decision->change == IDEM_CHANGE_NONE && has_these(op, found)) {
        op->commit->committed = true;
        decision->verdict = begins ? IDEM_STARTED : decision->verdict;
    } else if (decision->change == IDEM_CHANGE_NONE && !begins) {
        /* The same end is on record, but these writes were not made with it: the caller
         * must not take it for theirs. */
        idem__refuse(decision, IDEM_EINVALID,
                     "the attempt was already completed, without these "
                     "writes");
    } else if (begins && decision->change != IDEM_CHANGE_NONE &&
               decision->verdict == IDEM_STARTED) {
        complete_claim(op, now, decision);
    }
}

bool idem__commit_transacts(const struct idem_op *op,
                            const struct idem_decision *decision)
{
    return op->commit != NULL && decision->change != IDEM_CHANGE_NONE &&
           decision->next.status == IDEM_STATUS_COMPLETED;
}
