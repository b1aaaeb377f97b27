/* Makes the responses for Lambda. */
#include "aws/lambda/answer.h"

#include <stdio.h>

/* ---- Refusals ---------------------------------------------------------- */

const struct idem__lambda_refusal idem__lambda_invalid = {
    "Idem.Invalid", "The event has no usable idempotency key",
    IDEM_HTTP_KEY_INVALID, false};
const struct idem__lambda_refusal idem__lambda_keyless = {
    "Idem.Invalid", "The event has no idempotency key", IDEM_HTTP_KEY_MISSING,
    false};
const struct idem__lambda_refusal idem__lambda_unauthenticated = {
    "Idem.Invalid", "The event does not name the caller",
    IDEM_HTTP_UNAUTHENTICATED, false};
const struct idem__lambda_refusal idem__lambda_scope_unset = {
    "Idem.Invalid", "IDEM_LAMBDA_SCOPE is not set", IDEM_HTTP_SCOPE_UNSET,
    false};
const char idem__lambda_scope_mending[] =
    "IDEM_LAMBDA_SCOPE is not set, so HTTP requests are refused: a caller "
    "could get the response of another caller with the same key; set it to a "
    "selector that names the caller, such as "
    ".requestContext.authorizer.jwt.claims.sub, or to global";
const struct idem__lambda_refusal idem__lambda_corrupt = {
    "Idem.Corrupt", "The record cannot be trusted", IDEM_HTTP_CORRUPT, false};
const struct idem__lambda_refusal idem__lambda_no_store = {
    "Idem.StoreUnavailable", "The store is away", IDEM_HTTP_UNAVAILABLE, true};
const struct idem__lambda_refusal idem__lambda_no_memory = {
    "Idem.NoMemory", "Out of memory", IDEM_HTTP_UNAVAILABLE, true};
const struct idem__lambda_refusal idem__lambda_too_late = {
    "Idem.TooLate", "There is too little time left to start",
    IDEM_HTTP_UNAVAILABLE, true};
const struct idem__lambda_refusal idem__lambda_not_kept = {
    "Idem.ResultNotKept",
    "The work was done; its response was too long to keep", IDEM_HTTP_NOT_KEPT,
    false};

static const struct idem__lambda_refusal busy = {"Idem.InProgress",
                                                 "Another delivery is at work",
                                                 IDEM_HTTP_IN_PROGRESS, true};
static const struct idem__lambda_refusal mismatch = {
    "Idem.Mismatch", "The key was used for another event", IDEM_HTTP_MISMATCH,
    false};
static const struct idem__lambda_refusal failed = {
    "Idem.Failed", "The work failed, and a person must look at it",
    IDEM_HTTP_FAILED, false};
static const struct idem__lambda_refusal unknown = {
    "Idem.Unknown", "The work may have happened, and a person must look at it",
    IDEM_HTTP_OUTCOME_UNKNOWN, false};

const struct idem__lambda_refusal *idem__lambda_refusal_of(
    enum idem_verdict verdict)
{
    switch (verdict) {
    case IDEM_MISMATCH:
        return &mismatch;
    case IDEM_FAILED:
        return &failed;
    case IDEM_UNKNOWN:
        return &unknown;
    case IDEM_BUSY:
    case IDEM_RELEASED:
    case IDEM_STARTED:
    case IDEM_REPLAY:
        break;
    }
    return &busy;
}

/* ---- Responses --------------------------------------------------------- */

void idem__lambda_answer_error(struct idem_lambda *lambda, const char *type,
                               const char *text)
{
    (void)snprintf(lambda->error_type, sizeof(lambda->error_type), "%s", type);
    idem__lambda_error_body(&lambda->response, type, text);
}

void idem__lambda_answer_json(struct idem_lambda *lambda,
                              struct idem_slice json)
{
    lambda->error_type[0] = '\0';
    idem__buffer_reset(&lambda->response, lambda->response.cap);
    idem__buffer_add(&lambda->response, json.base, json.len);
}

void idem__lambda_answer_work(struct idem_lambda *lambda)
{
    const struct idem__lambda_run *run = &lambda->work;

    if (run->end == IDEM__LAMBDA_DONE) {
        idem__lambda_answer_json(lambda, idem__buffer_slice(&run->answer));
    } else {
        idem__lambda_answer_error(lambda, run->type, run->text);
    }
}

void idem__lambda_answer_unrecorded(struct idem_lambda *lambda)
{
    struct idem__buffer marked = {0};
    struct idem__buffer plain = lambda->response;

    if (lambda->error_type[0] != '\0') {
        return;
    }
    idem__lambda_unrecorded_response(&marked, idem__buffer_slice(&plain));
    lambda->response = marked;
    idem__buffer_free(&plain);
}

static void refuse(struct idem_lambda *lambda,
                   const struct idem__lambda_rule *rule,
                   const struct idem__lambda_refusal *refusal,
                   const char *detail, struct idem_slice error)
{
    if (rule->shape == IDEM__LAMBDA_HTTP) {
        lambda->error_type[0] = '\0';
        idem__lambda_problem(&lambda->response, lambda->many, refusal->problem,
                             refusal->retry ? lambda->retry_after_s : 0, error);
    } else {
        idem__lambda_answer_error(lambda, refusal->type, detail);
    }
}

void idem__lambda_answer_refusal(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem__lambda_refusal *refusal,
                                 const char *detail)
{
    refuse(lambda, rule, refusal, detail, idem_bytes(NULL, 0));
}

void idem__lambda_answer_verdict(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem_attempt *attempt)
{
    const struct idem__lambda_refusal *refusal =
        idem__lambda_refusal_of(attempt->verdict);
    struct idem_slice error = idem_bytes(NULL, 0);
    char detail[IDEM__LAMBDA_TEXT_MAX];

    if (attempt->verdict == IDEM_FAILED) {
        error = attempt->record->error;
    }
    (void)snprintf(detail, sizeof(detail), "%s%s%.*s", refusal->title,
                   error.len > 0 ? ": " : "", (int)error.len,
                   error.len > 0 ? (const char *)error.base : "");
    refuse(lambda, rule, refusal, detail, error);
}

/* ---- Replays ----------------------------------------------------------- */

/* Answers with the error on record, as its handler returned it. False: it is not an
 * error. */
static bool answer_kept_error(struct idem_lambda *lambda,
                              struct idem_slice bytes)
{
    struct json_object *body = idem__lambda_parse(bytes);
    bool is_error = json_object_is_type(body, json_type_object);
    struct idem_slice type = idem__json_text_of(body, "errorType");

    if (is_error) {
        idem__lambda_answer_json(lambda, bytes);
        (void)snprintf(lambda->error_type, sizeof(lambda->error_type), "%.*s",
                       (int)type.len,
                       type.len == 0 ? "" : (const char *)type.base);
    }
    if (is_error && lambda->error_type[0] == '\0') {
        (void)snprintf(lambda->error_type, sizeof(lambda->error_type),
                       "Handler.Error");
    }
    (void)json_object_put(body);
    return is_error;
}

/* Answers with the error on record. A command that failed answers like a handler that ends
 * with the same exit status. */
static bool answer_error(struct idem_lambda *lambda,
                         const struct idem_form *form)
{
    char type[32];
    char text[64];

    if (form->kind == IDEM_FORM_ERROR) {
        return answer_kept_error(lambda, form->bytes);
    }
    (void)snprintf(type, sizeof(type), "Exit.%d", form->exit_status);
    (void)snprintf(text, sizeof(text), "the command ended with exit status %d",
                   form->exit_status);
    idem__lambda_answer_error(lambda, type, text);
    return true;
}

/* True if the result is a response of HTTP: JSON with a status, without another content
 * type. The output of a command only looks like one. */
static bool is_response(const struct idem_form *form)
{
    struct json_object *value;
    bool is;

    if (form->has_exit ||
        (form->kind != IDEM_FORM_JSON && form->content_type.len > 0)) {
        return false;
    }
    value = idem__lambda_parse(form->bytes);
    is = idem__lambda_is_response(value);
    (void)json_object_put(value);
    return is;
}

static const struct idem__lambda_refusal *replay(struct idem_lambda *lambda,
                                                 const struct idem_form *form,
                                                 enum idem_front front)
{
    bool is_http = front == IDEM_FRONT_LAMBDA_HTTP;
    struct idem__buffer *to = &lambda->response;

    lambda->error_type[0] = '\0';
    switch (idem_form_way(form->kind, front)) {
    case IDEM_WAY_VALUE:
        idem__lambda_form_value(to, form);
        return NULL;
    case IDEM_WAY_RESPONSE:
        if (is_http && is_response(form)) {
            idem__lambda_replay_response(to, form->bytes);
            return NULL;
        }
        idem__lambda_form_answer(to, lambda->many, form, is_http);
        return NULL;
    case IDEM_WAY_ANSWER:
        idem__lambda_form_answer(to, lambda->many, form, is_http);
        return NULL;
    case IDEM_WAY_ERROR:
        return answer_error(lambda, form) ? NULL : &idem__lambda_corrupt;
    case IDEM_WAY_FAILED:
        return &failed;
    case IDEM_WAY_NOT_KEPT:
        return &idem__lambda_not_kept;
    case IDEM_WAY_CORRUPT:
    case IDEM_WAY_PRINT:
    case IDEM_WAY_COMPLAIN:
        break;
    }
    return &idem__lambda_corrupt;
}

void idem__lambda_answer_replay(struct idem_lambda *lambda,
                                const struct idem__lambda_rule *rule,
                                const struct idem_record *record)
{
    const struct idem__lambda_refusal *refusal;
    struct idem_form form;

    idem_form_read(&record->result, &form);
    refusal = replay(lambda, &form,
                     rule->shape == IDEM__LAMBDA_HTTP ? IDEM_FRONT_LAMBDA_HTTP
                                                      : IDEM_FRONT_EVENT);
    /* Another front end may have kept more than Lambda accepts. */
    if (refusal == NULL && lambda->response.len > IDEM_LAMBDA_RESPONSE_MAX) {
        refusal = &idem__lambda_not_kept;
    }
    if (refusal != NULL) {
        idem__lambda_answer_refusal(lambda, rule, refusal, refusal->title);
    }
}
