/* Decides whether to run or answer an HTTP request, and how much of its response to
 * record. */
#include <idem/exchange.h>

#include "http/multipart.h"

#include <stdio.h>

/* ---- The request -------------------------------------------------------- */

static void refuse(struct idem_http_answer *answer, const char *name,
                   enum idem_http_problem_kind problem, int retry_after_s)
{
    answer->action = IDEM_HTTP_REFUSE;
    answer->name = name;
    answer->problem = problem;
    answer->retry_after_s = retry_after_s;
}

/* Returns Retry-After for a busy key. The rest of a pause after a retry is known
 * exactly; the end of work in progress is estimated from its age. */
static int busy_for_s(const struct idem_attempt *busy)
{
    if (busy->record == NULL) {
        return 1;
    }
    if (busy->record->retry && busy->lease_left_ms > 0) {
        return (int)((busy->lease_left_ms + 999) / 1000);
    }
    return idem_http_retry_after(idem_http_attempt_age(busy));
}

static void replay(const struct idem_record *record, struct idem_slice accept,
                   struct idem_http_answer *answer)
{
    const struct idem_result *result = &record->result;
    struct idem_form *form = &answer->form;

    if (!result->not_kept && result->bytes.len < record->result_len) {
        answer->action = IDEM_HTTP_FETCH;
        return;
    }
    idem_form_read(result, form);
    switch (idem_form_way(form->kind, IDEM_FRONT_GATEWAY)) {
    case IDEM_WAY_ANSWER:
        break;
    case IDEM_WAY_NOT_KEPT:
        refuse(answer, "not-kept", IDEM_HTTP_NOT_KEPT, 0);
        return;
    case IDEM_WAY_FAILED:
        refuse(answer, "failed", IDEM_HTTP_FAILED, 0);
        return;
    default:
        refuse(answer, "corrupt", IDEM_HTTP_CORRUPT, 0);
        return;
    }
    if (!idem_http_accepts(accept, form->coding)) {
        refuse(answer, "not-acceptable", IDEM_HTTP_NOT_ACCEPTABLE, 0);
        return;
    }
    answer->action = IDEM_HTTP_REPLAY;
    answer->name = "replayed";
}

void idem_http_answer_of(int code, const struct idem_attempt *attempt,
                         struct idem_slice accept,
                         struct idem_http_answer *ret_answer)
{
    memset(ret_answer, 0, sizeof(*ret_answer));
    if (code == IDEM_ECORRUPT) {
        refuse(ret_answer, "corrupt", IDEM_HTTP_CORRUPT, 0);
        return;
    }
    if (code != 0) {
        refuse(ret_answer, "unavailable", IDEM_HTTP_UNAVAILABLE, 1);
        return;
    }
    switch (attempt->verdict) {
    case IDEM_STARTED:
        ret_answer->action = IDEM_HTTP_RUN;
        ret_answer->name = "started";
        break;
    case IDEM_REPLAY:
        replay(attempt->record, accept, ret_answer);
        break;
    case IDEM_BUSY:
        refuse(ret_answer, "busy", IDEM_HTTP_IN_PROGRESS, busy_for_s(attempt));
        break;
    case IDEM_MISMATCH:
        refuse(ret_answer, "mismatch", IDEM_HTTP_MISMATCH, 0);
        break;
    case IDEM_FAILED:
        refuse(ret_answer, "failed", IDEM_HTTP_FAILED, 0);
        ret_answer->error = attempt->record->error;
        break;
    case IDEM_UNKNOWN:
        refuse(ret_answer, "unknown", IDEM_HTTP_OUTCOME_UNKNOWN, 0);
        break;
    case IDEM_RELEASED: /* For a waiter: the owner gave the attempt up. */
        refuse(ret_answer, "released", IDEM_HTTP_IN_PROGRESS, 1);
        break;
    }
}

/* Headers that each replay has besides those on record. */
#define TEXT(literal)                                                          \
    {                                                                          \
        (literal), sizeof(literal) - 1                                         \
    }

static const struct {
    struct idem_slice name;
    struct idem_slice value;
} marks[] = {
    {TEXT("Idempotent-Replayed"), TEXT("true")},
    {TEXT("Cache-Control"), TEXT("no-store")}, /* Unless the service set it. */
    {TEXT("X-Content-Type-Options"), TEXT("nosniff")}, /* If no type is on
                                                          record. */
};

static bool has_mark(const struct idem_http_replay *replay, unsigned mark)
{
    switch (mark) {
    case 1:
        return !replay->cached;
    case 2:
        return idem_form_is_plain(replay->form) &&
               replay->form->kind != IDEM_FORM_NOTHING;
    default:
        return true;
    }
}

bool idem_http_replay_next(struct idem_http_replay *replay,
                           struct idem_slice *ret_name,
                           struct idem_slice *ret_value)
{
    int code;

    if (idem_http_head_next(&replay->rest, ret_name, ret_value, &code)) {
        replay->cached |= idem__http_is(*ret_name, "Cache-Control");
        return true;
    }
    while (replay->mark < sizeof(marks) / sizeof(marks[0])) {
        unsigned mark = replay->mark++;

        if (has_mark(replay, mark)) {
            *ret_name = marks[mark].name;
            *ret_value = marks[mark].value;
            return true;
        }
    }
    return false;
}

/* ---- The response ------------------------------------------------------- */

/* False for a partial response and for "not modified": they answer one client's
 * condition, and are not a result for others. */
static bool is_whole(int status)
{
    return status != 206 && status != 304;
}

/* Returns the outcome, and writes a sentence about it for people to @text. */
static enum idem_status outcome_of(const struct idem_http_rules *rules,
                                   enum idem_http_end end, int status,
                                   char text[IDEM_HTTP_TEXT_MAX],
                                   bool *ret_named)
{
    enum idem_status outcome = 0;

    switch (end) {
    case IDEM_HTTP_NOT_SENT:
        (void)strcpy(text, "the service was not reached");
        return IDEM_STATUS_RELEASED;
    case IDEM_HTTP_NO_ANSWER:
        (void)strcpy(text, "the service did not answer");
        break;
    case IDEM_HTTP_ANSWERED:
        outcome = idem_outcome_of_status(rules->outcomes, status, ret_named);
        if (outcome != IDEM_STATUS_COMPLETED) {
            (void)snprintf(text, IDEM_HTTP_TEXT_MAX, "the service answered %d",
                           status);
        }
        break;
    }
    return outcome != 0
               ? outcome
               : idem_outcome_of_none(rules->outcomes, rules->on_expired_lease);
}

enum idem_http_keep idem_http_outcome(const struct idem_http_rules *rules,
                                      enum idem_http_end end, int status,
                                      char text[IDEM_HTTP_TEXT_MAX],
                                      struct idem_outcome *ret_outcome)
{
    bool named = false;

    memset(ret_outcome, 0, sizeof(*ret_outcome));
    ret_outcome->status = outcome_of(rules, end, status, text, &named);
    switch (ret_outcome->status) {
    case IDEM_STATUS_COMPLETED:
        ret_outcome->result.not_kept = !is_whole(status);
        return !is_whole(status) ? IDEM_HTTP_KEEP_NOTHING
               : named           ? IDEM_HTTP_KEEP_NAMED
                                 : IDEM_HTTP_KEEP_RESPONSE;
    case IDEM_STATUS_RETRY:
        ret_outcome->failures_max = rules->failures_max;
        ret_outcome->retry_after_ms = rules->retry_after_ms;
        ret_outcome->text = idem_str(text);
        return end == IDEM_HTTP_ANSWERED ? IDEM_HTTP_KEEP_RESPONSE
                                         : IDEM_HTTP_KEEP_NOTHING;
    default:
        ret_outcome->text = idem_str(text);
        return IDEM_HTTP_KEEP_NOTHING;
    }
}

void idem_http_tombstone(struct idem_result *result)
{
    memset(result, 0, sizeof(*result));
    result->not_kept = true;
}
