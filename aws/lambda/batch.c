/* Handles an event that is a batch: its records, one after the other.
 *
 *     claim 1 -> run 1 -> [end 1, claim 2] -> run 2 -> [end 2, claim 3] -> ...
 *
 * A record is claimed only when its turn comes: the process may die during any record,
 * and every claim counts as an attempt, so a record that never ran must not be claimed.
 * A record starts only when the end of the one before it is settled, so that a death does
 * not make finished records run again. The end of one record and the claim of the next
 * are in flight together, which takes one round trip, or one flush, for each record. */
#include "aws/lambda/batch.h"

#include "aws/lambda/answer.h"
#include "aws/lambda/ends.h"

#include <stdio.h>

/* ---- The ends ---------------------------------------------------------- */

/* Sends the ends again while there is time, because no caller waits for the answer to a
 * batch. A record whose outcome is only in the log is acknowledged all the same: delivered
 * again, it would run again. */
static void take_ends(struct batch *b)
{
    size_t i;

    idem__lambda_ends_work(b->lambda, idem__lambda_left_ms(b->lambda->now) -
                                          IDEM__LAMBDA_STOP_MS);
    for (i = 0; i < b->len; i++) {
        struct item *item = &b->items[i];

        if (item->ended) {
            (void)idem__lambda_ends_take(b->lambda, item->ending);
        }
        if (item->first != NULL && item->first->state == ITEM_FAILED &&
            item->state == ITEM_DONE) {
            item->state = ITEM_FAILED;
        }
    }
}

static void submit_end(struct batch *b, struct item *item,
                       const struct idem_outcome *outcome)
{
    item->ending = idem__lambda_ends_send(b->lambda, item->attempt, outcome);
    item->ended = true;
}

/* Releases the claim of @item, which was not begun, so that another delivery can run
 * it. */
static void give_back(struct batch *b, struct item *item, const char *why)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_RELEASED,
                                   .text = idem_str(why)};

    if (item->attempt != NULL && item->attempt->verdict == IDEM_STARTED) {
        submit_end(b, item, &outcome);
    }
}

/* ---- One record -------------------------------------------------------- */

static void record(struct batch *b, struct item *item)
{
    struct idem__buffer scratch = {0};
    struct idem_outcome outcome;

    if (!idem__lambda_outcome(b->lambda, b->rule->shape, &scratch, &outcome)) {
        idem__lambda_stopped(b->lambda, item->attempt);
        item->state = ITEM_FAILED;
    } else {
        idem__lambda_outcome_log(b->lambda, item->attempt, &outcome);
        submit_end(b, item, &outcome);
        item->state =
            outcome.status == IDEM_STATUS_COMPLETED ? ITEM_DONE : ITEM_FAILED;
        if (outcome.status == IDEM_STATUS_RETRY) {
            idem__batch_hide_pause(b, item, outcome.retry_after_ms);
        }
    }
    idem__buffer_free(&scratch);
}

static void run(struct batch *b, struct item *item)
{
    struct idem_lambda *lambda = b->lambda;

    idem__lambda_log_start(lambda, item->attempt);
    idem__lambda_unit_event(lambda, &item->unit, &lambda->event);
    idem__buffer_add(&lambda->event, "", 1);
    if (lambda->event.failed) {
        give_back(b, item, "out of memory for the event");
        item->state = ITEM_FAILED;
        return;
    }
    lambda->event.len--; /* The NUL follows it. */
    lambda->event_ms = item->unit.event_ms;
    idem__lambda_handler_run(lambda, idem__buffer_slice(&lambda->event),
                             item->attempt);
    record(b, item);
    if (lambda->work.end != IDEM__LAMBDA_DONE) {
        idem__batch_log(b, item, "ERROR", lambda->work.text);
    }
    if (batch_answers(b, item)) {
        idem__lambda_answer_work(lambda);
    }
}

static void refuse(struct batch *b, struct item *item,
                   const struct idem__lambda_refusal *refusal)
{
    item->state = ITEM_FAILED;
    idem__batch_log(b, item, "WARN", refusal->title);
    if (batch_answers(b, item)) {
        idem__lambda_answer_refusal(b->lambda, b->rule, refusal,
                                    refusal->title);
    }
}

/* Handles a verdict by which @item must not run. */
static void refused(struct batch *b, struct item *item)
{
    item->state = ITEM_FAILED;
    idem__batch_log(b, item, "WARN",
                    idem__lambda_refusal_of(item->attempt->verdict)->title);
    if (batch_answers(b, item)) {
        idem__lambda_answer_verdict(b->lambda, b->rule, item->attempt);
    }
}

/* Handles a second record of a key: it ends as the first one did, unless it differs. */
static void follow(struct batch *b, struct item *item)
{
    const struct idem__lambda_unit *first = &item->first->unit;

    if (first->has_fingerprint && item->unit.has_fingerprint &&
        memcmp(first->fingerprint, item->unit.fingerprint,
               sizeof(first->fingerprint)) != 0) {
        refuse(b, item, idem__lambda_refusal_of(IDEM_MISMATCH));
    } else {
        item->state = item->first->state;
    }
}

/* ---- The claim of a record --------------------------------------------- */

/* Returns for how long a record may still be started. */
static int64_t patience_ms(const struct batch *b)
{
    return idem__lambda_left_ms(b->lambda->now) -
           b->lambda->options->start_min_ms - IDEM__LAMBDA_STOP_MS;
}

static int make_claim(const struct batch *b, const struct item *item,
                      struct idem_op **ret_op, struct idem_error *error)
{
    char owner[IDEM__LAMBDA_OWNER_MAX];
    struct idem_request request;
    int rc = idem__lambda_unit_request(b->lambda, &item->unit, owner, &request);

    return rc != 0 ? rc : idem_op_begin(&request, ret_op, error);
}

/* Submits the claim once. It shares a batch or a trip with ends that were sent before,
 * above all that of the last record. If the claim is not answered in time, destroys the
 * queue with it, and sets *@op to NULL. */
static int ask_once(struct batch *b, struct idem_op **op,
                    struct idem_error *error)
{
    int64_t left_ms = patience_ms(b);
    int rc;

    idem__lambda_allow(b->lambda, left_ms);
    rc = idem_queue_submit(b->queue, *op, error);
    if (rc != 0) {
        return rc;
    }
    if (idem_queue_reap(b->queue, left_ms < 0 ? 0 : left_ms) != NULL) {
        *error = *idem_op_error(*op);
        return idem_op_code(*op);
    }
    *op = NULL;
    idem_queue_destroy(b->queue);
    b->queue = NULL;
    rc = idem_queue_create(b->lambda->store, &b->queue, error);
    if (rc == 0) {
        (void)snprintf(error->text, sizeof(error->text),
                       "the store has not answered");
    }
    return IDEM_EUNKNOWN;
}

/* Tries again while there is time to start, since the store may return. Submits the same
 * op, with its nonce, so that the store recognises a claim whose answer was lost. */
static int ask(struct batch *b, struct idem_op **op, struct idem_error *error)
{
    int64_t pause_ms = IDEM__LAMBDA_PAUSE_FIRST_MS;
    int rc = ask_once(b, op, error);

    while (*op != NULL && b->queue != NULL &&
           idem_error_kind(rc) == IDEM_KIND_RETRY &&
           patience_ms(b) > pause_ms) {
        idem__lambda_pause(pause_ms);
        pause_ms = idem__lambda_pause_after(pause_ms);
        idem__lambda_ends_work(b->lambda, /* for_ms= */ 0);
        rc = ask_once(b, op, error);
    }
    return rc;
}

/* Claims @item. False: there is no verdict, and the log has the reason. */
static bool claim(struct batch *b, struct item *item)
{
    struct idem_error error = {0};
    struct idem_op *op = NULL;
    int rc = b->queue == NULL ? IDEM_ENOMEM : make_claim(b, item, &op, &error);

    if (rc != 0) {
        goto done;
    }
    rc = ask(b, &op, &error);
    if (rc != 0) {
        goto done;
    }
    rc = idem_op_take_attempt(op, &item->attempt);

done:
    if (rc != 0) {
        idem__batch_log(b, item, "ERROR",
                        error.text[0] == '\0' ? idem_error_text(rc)
                                              : error.text);
    }
    idem_op_destroy(op);
    return rc == 0;
}

/* True if the end of the newest record that ran is on record, or refused for good. Until
 * then that record could run again if we died. */
static bool last_is_settled(const struct batch *b)
{
    return b->last == NULL || !b->last->ended ||
           idem__lambda_ends_settle(b->lambda, b->last->ending, patience_ms(b));
}

/* ---- The verdict -------------------------------------------------------- */

static void judge(struct batch *b, struct item *item)
{
    switch (item->attempt->verdict) {
    case IDEM_STARTED:
        if (last_is_settled(b)) {
            run(b, item);
            b->last = item;
        } else {
            b->held_up = true;
            give_back(b, item,
                      "the outcome of the previous record is not known");
            refuse(b, item, &idem__lambda_no_store);
        }
        break;
    case IDEM_REPLAY:
        item->state = ITEM_DONE;
        if (batch_answers(b, item)) {
            idem__lambda_answer_replay(b->lambda, b->rule,
                                       item->attempt->record);
        }
        break;
    case IDEM_BUSY:
        idem__batch_hide_busy(b, item);
        refused(b, item);
        break;
    case IDEM_MISMATCH:
    case IDEM_FAILED:
    case IDEM_UNKNOWN:
    case IDEM_RELEASED:
        refused(b, item);
        break;
    }
}

/* True if an earlier record of its group is not done: @item has to wait for that. */
static bool has_to_wait(const struct batch *b, const struct item *item)
{
    const struct item *other;

    for (other = b->items; b->rule->group[0] != NULL && other < item; other++) {
        if (other->state != ITEM_DONE && other->group.len == item->group.len &&
            (item->group.len == 0 || memcmp(other->group.base, item->group.base,
                                            item->group.len) == 0)) {
            return true;
        }
    }
    return false;
}

static void answer_refusal(struct batch *b, const struct item *item,
                           const struct idem__lambda_refusal *refusal)
{
    if (batch_answers(b, item)) {
        idem__lambda_answer_refusal(
            b->lambda, b->rule, refusal,
            "a record could not be claimed; see the log");
    }
}

static void work_on(struct batch *b, struct item *item)
{
    if (item->state != ITEM_OPEN) {
        answer_refusal(b, item,
                       item->state == ITEM_INVALID ? &idem__lambda_invalid
                                                   : &idem__lambda_no_memory);
    } else if (b->failures > 0 && has_to_wait(b, item)) {
        item->state = ITEM_WAITS;
    } else if (item->first != NULL) {
        follow(b, item);
    } else if (b->held_up) {
        refuse(b, item, &idem__lambda_no_store);
    } else if (patience_ms(b) < 0) {
        refuse(b, item, &idem__lambda_too_late);
        b->cut_off++;
    } else if (claim(b, item)) {
        judge(b, item);
    } else {
        item->state = ITEM_FAILED;
        answer_refusal(b, item, &idem__lambda_no_store);
    }
    b->failures += item->state != ITEM_DONE;
}

/* ---- The batch --------------------------------------------------------- */

static void work(struct batch *b)
{
    struct idem__lambda_field fields[] = {{"records", {NULL, 0}, 0},
                                          {NULL, {NULL, 0}, 0}};
    size_t i;

    for (i = 0; i < b->len; i++) {
        work_on(b, &b->items[i]);
    }
    take_ends(b);
    idem__batch_hide(b);
    if (b->cut_off > 0) {
        fields[0].number = b->cut_off;
        idem__lambda_log(b->lambda->now, "WARN", fields,
                         "deadline reached; some records not processed");
    }
    if (b->rule->shape != IDEM__LAMBDA_RECORDS) {
        idem__batch_report(b);
    }
}

void idem__lambda_batch(struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule)
{
    struct batch b = {.lambda = lambda, .rule = rule};
    struct idem_error error = {0};
    const char *why;

    idem__lambda_answer_json(lambda, idem_str("null"));
    if (idem_queue_create(lambda->store, &b.queue, &error) != 0) {
        idem__lambda_log(lambda->now, "ERROR", NULL, "nothing was started: %s",
                         error.text);
        idem__lambda_answer_error(lambda, idem__lambda_no_store.type,
                                  "nothing was started");
        return;
    }
    why = idem__batch_read(&b);
    if (why == NULL) {
        work(&b);
    } else {
        idem__lambda_log(lambda->now, "ERROR", NULL, "%s", why);
        idem__lambda_answer_error(lambda,
                                  why == idem__batch_no_memory
                                      ? idem__lambda_no_store.type
                                      : idem__lambda_invalid.type,
                                  why);
    }
    idem__batch_free(&b);
    idem_queue_destroy(b.queue);
}
