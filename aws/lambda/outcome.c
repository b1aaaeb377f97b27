/* The outcome of a run, for the record and for the log. */
#include "aws/lambda/ends.h"

#include "aws/lambda/http.h"
#include "aws/lambda/lambda.h"
#include "base/bytes.h"
#include "base/host.h"
#include "journal/journal.h"

#include <stdio.h>
#include <time.h>

/* CloudWatch cuts a line after 256 KiB, so a longer result is left out of it. base64 makes
 * this a third longer. */
#define LOGGED_MAX ((size_t)160 << 10)

/* ---- The outcome ------------------------------------------------------- */

static void set_error(const struct idem__lambda_run *run,
                      struct idem__buffer *scratch, struct idem_outcome *out)
{
    idem__lambda_error_body(scratch, run->type, run->text);
    out->result.bytes = idem__buffer_slice(scratch);
    out->result.content_type = idem_str(IDEM_FORM_ERROR_TYPE);
    out->text = idem_str(run->text);
}

/* Sets the status of a run that failed. The error is its result only if the status is
 * final. */
static void judge_status(const struct idem_lambda *lambda,
                         enum idem_status status, struct idem__buffer *scratch,
                         struct idem_outcome *out)
{
    const struct idem__lambda_run *run = &lambda->work;

    out->status = status;
    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        set_error(run, scratch, out);
    }
    out->text = idem_str(run->text);
}

/* Judges a run that ended without a status, which may have had its effect. So the default
 * is never that nothing happened. */
static void judge_none(const struct idem_lambda *lambda,
                       struct idem__buffer *scratch, struct idem_outcome *out)
{
    judge_status(lambda,
                 idem_outcome_of_none(&lambda->outcomes,
                                      lambda->options->on_expired_lease),
                 scratch, out);
}

static void judge_error(const struct idem_lambda *lambda,
                        struct idem__buffer *scratch, struct idem_outcome *out)
{
    const struct idem__lambda_run *run = &lambda->work;
    enum idem_status status =
        idem_outcome_of_error(&lambda->outcomes, run->type);

    if (status == 0 && run->nothing) {
        status = IDEM_STATUS_RELEASED;
    } else if (status == 0) {
        status = lambda->options->on_expired_lease == IDEM_HOLD
                     ? IDEM_STATUS_UNKNOWN
                     : IDEM_STATUS_RETRY;
    }
    judge_status(lambda, status, scratch, out);
}

/* Judges a run whose response cannot be sent: the work was done, and must not be done
 * again. If the response is not JSON, the record fails, which stays until a person looks.
 * That holds for a batch, too, where nobody reads the response: it may come from a file
 * that does no work, such as one that prints a line and defines a function. */
static void judge_useless(const struct idem_lambda *lambda,
                          struct idem__buffer *scratch,
                          struct idem_outcome *out)
{
    const struct idem__lambda_run *run = &lambda->work;

    if (run->too_long) {
        out->status = IDEM_STATUS_COMPLETED;
        out->result.not_kept = true;
        return;
    }
    out->status = IDEM_STATUS_FAILED;
    set_error(run, scratch, out);
}

/* True for a table that another library uses, too, which replays the JSON that it
 * finds. */
static bool has_layout(const struct idem_lambda *lambda)
{
    const char *url = idem_store_url(lambda->store);

    return url != NULL &&
           (strstr(url, "?layout=") != NULL || strstr(url, "&layout=") != NULL);
}

/* Sets the result. A response of HTTP is recorded in the form of every server, so that
 * each front end can replay it. Another one, or one that no head can hold, stays JSON. */
static void keep_answer(const struct idem_lambda *lambda,
                        enum idem__lambda_shape shape,
                        struct idem__buffer *scratch, struct idem_slice answer,
                        bool named, struct idem_result *result)
{
    const char *replay_headers = lambda->options->replay_headers;
    bool http = shape == IDEM__LAMBDA_HTTP;

    if (http && !has_layout(lambda) &&
        idem__lambda_form_record(scratch, answer, named, replay_headers,
                                 result)) {
        return;
    }
    result->bytes = answer;
    if (http && idem__lambda_keep_response(scratch, answer, replay_headers)) {
        result->bytes = idem__buffer_slice(scratch);
        result->not_kept = scratch->failed;
    }
    result->content_type = idem_str("application/json");
}

/* Judges a response. One of HTTP is judged by its status, as in front of any server; one
 * to an event has no status, and is the result. */
static void judge_answer(const struct idem_lambda *lambda,
                         enum idem__lambda_shape shape,
                         struct idem__buffer *scratch, struct idem_outcome *out)
{
    const struct idem_http_rules rules = {
        .outcomes = &lambda->outcomes,
        .on_expired_lease = lambda->options->on_expired_lease,
        .failures_max = lambda->options->failures_max,
        .retry_after_ms = lambda->options->retry_after_ms,
    };
    struct idem_slice answer = idem__buffer_slice(&lambda->work.answer);
    enum idem_http_keep keep = IDEM_HTTP_KEEP_RESPONSE;
    int64_t ended_boot_ms = out->ended_boot_ms;
    char text[IDEM_HTTP_TEXT_MAX];

    out->status = IDEM_STATUS_COMPLETED;
    if (shape == IDEM__LAMBDA_HTTP) {
        keep = idem_http_outcome(&rules, IDEM_HTTP_ANSWERED,
                                 idem__lambda_status_of(answer), text, out);
        out->ended_boot_ms = ended_boot_ms;
    }
    if (out->status == IDEM_STATUS_COMPLETED &&
        keep != IDEM_HTTP_KEEP_NOTHING) {
        keep_answer(lambda, shape, scratch, answer,
                    keep == IDEM_HTTP_KEEP_NAMED, &out->result);
    } else if (out->text.len > 0) {
        idem__buffer_reset(scratch, scratch->cap);
        idem__buffer_str(scratch, text);
        out->text = idem__buffer_slice(scratch);
    }
}

/* Returns the time at which the work ended, for a store that gets the end later. 0: this
 * host has no such clock; the store then uses the time at which it gets the end. */
static int64_t boot_ms(void)
{
    uint8_t id[16];
    int64_t ms;

    return idem__boot_read(&ms, id) == 0 ? ms : 0;
}

bool idem__lambda_outcome(const struct idem_lambda *lambda,
                          enum idem__lambda_shape shape,
                          struct idem__buffer *scratch,
                          struct idem_outcome *ret_outcome)
{
    const struct idem__lambda_run *run = &lambda->work;

    memset(ret_outcome, 0, sizeof(*ret_outcome));
    ret_outcome->ended_boot_ms = boot_ms();
    ret_outcome->failures_max = lambda->options->failures_max;
    ret_outcome->retry_after_ms = lambda->options->retry_after_ms;
    switch (run->end) {
    case IDEM__LAMBDA_STOPPED:
        if (lambda->outcomes.none == 0) {
            return false;
        }
        judge_none(lambda, scratch, ret_outcome);
        return true;
    case IDEM__LAMBDA_SILENT:
        judge_none(lambda, scratch, ret_outcome);
        return true;
    case IDEM__LAMBDA_NOT_RUN:
        ret_outcome->status = IDEM_STATUS_RELEASED;
        ret_outcome->text = idem_str(lambda->work.text);
        return true;
    case IDEM__LAMBDA_ERROR:
        judge_error(lambda, scratch, ret_outcome);
        return true;
    case IDEM__LAMBDA_USELESS:
        judge_useless(lambda, scratch, ret_outcome);
        return true;
    case IDEM__LAMBDA_DONE:
        break;
    }
    judge_answer(lambda, shape, scratch, ret_outcome);
    return true;
}

/* ---- The log ----------------------------------------------------------- */

/* Writes the entry as a file of a journal, in base64. text->failed: it could not. */
static void encode(const struct idem_journal_info *entry,
                   struct idem__buffer *text)
{
    struct idem__buffer file = {0};

    if (idem__entry_encode(entry, &file) == 0) {
        idem__buffer_base64(text, idem__buffer_slice(&file));
    } else {
        text->failed = true;
    }
    if (file.len > 0) {
        explicit_bzero(file.base, file.len);
    }
    idem__buffer_free(&file);
}

void idem__lambda_outcome_log(const struct idem_lambda *lambda,
                              const struct idem_attempt *attempt,
                              const struct idem_outcome *outcome)
{
    struct idem_journal_info entry;
    struct idem__buffer text = {0};
    const char *status =
        outcome == NULL ? "stopped" : idem_status_name(outcome->status);
    struct idem__lambda_field fields[] = {
        {"scope", attempt->record->scope, 0},
        {"key", attempt->record->key, 0},
        {"fence", {NULL, 0}, attempt->fence},
        {"attempts", {NULL, 0}, attempt->attempts},
        {"status", idem_str(status), 0},
        {NULL, {NULL, 0}, 0},
        {NULL, {NULL, 0}, 0},
    };

    if (fields[0].text.base == NULL) {
        fields[0].text.base = "";
    }
    if (outcome != NULL) {
        const char *url = idem_store_url(lambda->store);

        idem__entry_fill(url == NULL ? "memory:" : url, attempt, outcome,
                         LOGGED_MAX, &entry);
        encode(&entry, &text);
    }
    if (outcome != NULL && !text.failed) {
        fields[5].name = "entry";
        fields[5].text = idem__buffer_slice(&text);
    }
    idem__lambda_log(lambda->now, "INFO", fields, "outcome");
    idem__buffer_free(&text);
}

void idem__lambda_not_recorded(const struct idem_lambda *lambda,
                               struct idem_slice key,
                               const struct idem_error *error)
{
    struct idem__lambda_field fields[] = {
        {"key", key, 0},
        {"code", idem_str(idem_error_name(error->code)), 0},
        {NULL, {NULL, 0}, 0},
    };

    idem__lambda_log(lambda->now, "ERROR", fields,
                     "the outcome is not on record: %s; the line \"outcome\" "
                     "has it, for idem reconcile FILE",
                     error->text);
}
