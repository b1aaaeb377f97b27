/* Classifies an answer of DynamoDB, or the lack of one. */
#include "aws/dynamodb/task/answer.h"

#include "core/error.h"

static const char *url_of(const struct idem__aws_request *request)
{
    return request->endpoint != NULL ? request->endpoint->url : "the endpoint";
}

/* An answer, and what its messages name. */
struct reading {
    const struct idem__aws_request *request;
    const char *table;
    struct idem__answer *answer;
};

static void say(const struct reading *reading, enum idem__said said, int code,
                const struct idem__aws_error *error)
{
    struct idem__answer *answer = reading->answer;

    answer->said = said;
    if (error->type[0] == '\0') {
        (void)idem__error(
            &answer->error, code,
            "%.100s is not DynamoDB: HTTP status %d without an error name; "
            "check the endpoint and https_proxy",
            url_of(reading->request), reading->request->status);
        return;
    }
    (void)idem__error(&answer->error, code, "DynamoDB: table \"%.60s\": %s%s%s",
                      reading->table, error->type,
                      error->message[0] == '\0' ? "" : ": ", error->message);
}

/* ---- Transactions ---- */

static const char *text_at(json_object *object, const char *name)
{
    json_object *text = idem__json_member(object, name, json_type_string);

    return text == NULL ? "" : json_object_get_string(text);
}

/* Why the service cancelled a transaction, as it reports that for one write. */
enum reason {
    REASON_NONE, /* Not because of this write. */
    REASON_CONDITION,
    REASON_BUSY,    /* Another transaction, or a throttle: try again later. */
    REASON_NEVER,   /* The write is invalid: another try would fail as well. */
    REASON_STRANGE, /* The answer gives no code. */
};

static enum reason reason_of(json_object *object)
{
    const char *code = text_at(object, "Code");

    if (strcmp(code, "None") == 0) {
        return REASON_NONE;
    }
    if (strcmp(code, "ConditionalCheckFailed") == 0) {
        return REASON_CONDITION;
    }
    if (strcmp(code, "TransactionConflict") == 0 ||
        strcmp(code, "ThrottlingError") == 0 ||
        strcmp(code, "ProvisionedThroughputExceeded") == 0) {
        return REASON_BUSY;
    }
    return code[0] == '\0' ? REASON_STRANGE : REASON_NEVER;
}

/* The first write with @reason; the number of writes: none has it. */
static size_t first_with(json_object *reasons, enum reason reason)
{
    size_t n = json_object_array_length(reasons);
    size_t i;

    for (i = 0; i < n; i++) {
        if (reason_of(json_object_array_get_idx(reasons, i)) == reason) {
            return i;
        }
    }
    return n;
}

/* Makes the reason of write @i the error of the answer. */
static void say_reason(struct idem__answer *answer, enum idem__said said,
                       int code, json_object *reasons, size_t i)
{
    json_object *reason = json_object_array_get_idx(reasons, i);

    answer->said = said;
    answer->caller_write = i;
    (void)idem__error(&answer->error, code,
                      "DynamoDB: write %zu of the transaction: %.60s: %.120s",
                      i, text_at(reason, "Code"), text_at(reason, "Message"));
}

/* The service cancelled a transaction: it applied none of the writes. The first write is
 * that of the record, and its condition counts first: a refused write of the caller's
 * means something only if the record was as it was found. */
static void read_cancellation(const struct reading *reading,
                              const struct idem__aws_error *error)
{
    struct idem__answer *answer = reading->answer;
    json_object *reasons = NULL;
    json_object *first;
    size_t n;

    (void)json_object_object_get_ex(answer->body, "CancellationReasons",
                                    &reasons);
    n = json_object_is_type(reasons, json_type_array)
            ? json_object_array_length(reasons)
            : 0;
    first = n > 0 ? json_object_array_get_idx(reasons, 0) : NULL;
    if (reason_of(first) == REASON_CONDITION) {
        answer->said = IDEM__SAID_REFUSED;
        (void)json_object_object_get_ex(first, "Item", &answer->item);
    } else if (n == 0 || first_with(reasons, REASON_STRANGE) < n) {
        say(reading, IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, error);
    } else if (reason_of(first) == REASON_NONE &&
               first_with(reasons, REASON_CONDITION) < n) {
        say_reason(answer, IDEM__SAID_CALLER_WRITE, IDEM_EINVALID, reasons,
                   first_with(reasons, REASON_CONDITION));
    } else if (first_with(reasons, REASON_NEVER) < n) {
        say_reason(answer, IDEM__SAID_NEVER, IDEM_ECONFIG, reasons,
                   first_with(reasons, REASON_NEVER));
    } else if (first_with(reasons, REASON_BUSY) < n) {
        say_reason(answer, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, reasons,
                   first_with(reasons, REASON_BUSY));
    } else {
        say(reading, IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, error);
    }
}

static bool is_transaction(const struct idem__aws_request *request)
{
    return request->target != NULL &&
           strstr(request->target, "TransactWriteItems") != NULL;
}

/* ---- Single answers ---- */

/* True if the error is one that DynamoDB has and other services do not. */
static bool own_name(const struct reading *reading,
                     const struct idem__aws_error *error)
{
    struct idem__answer *answer = reading->answer;

    if (idem__aws_error_is(error, "ConditionalCheckFailedException")) {
        answer->said = IDEM__SAID_REFUSED;
        (void)json_object_object_get_ex(answer->body, "Item", &answer->item);
        return true;
    }
    /* A write that met a transaction, or a write to another replica. */
    if (idem__aws_error_is(error, "TransactionConflictException") ||
        idem__aws_error_is(error, "ReplicatedWriteConflictException")) {
        say(reading, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, error);
        return true;
    }
    if (idem__aws_error_is(error, "ResourceNotFoundException")) {
        answer->said = IDEM__SAID_NEVER;
        (void)idem__error(
            &answer->error, IDEM_ECONFIG,
            "DynamoDB: no table \"%.80s\" at %.100s; name another, or create "
            "it: idem store create",
            reading->table, url_of(reading->request));
        return true;
    }
    return false;
}

static void read_refusal(const struct reading *reading)
{
    const struct idem__aws_request *request = reading->request;
    struct idem__answer *answer = reading->answer;
    struct idem__aws_error error;

    idem__aws_error_read(request->status, request->error_type, answer->body,
                         &error);
    if (answer->body != NULL && request->status == 400 &&
        is_transaction(request) &&
        idem__aws_error_is(&error, "TransactionCanceledException")) {
        read_cancellation(reading, &error);
        return;
    }
    if (answer->body != NULL && request->status == 400 &&
        own_name(reading, &error)) {
        return;
    }
    switch (error.meaning) {
    case IDEM__AWS_SUCCESS: /* A 200 whose body is not an object. */
    case IDEM__AWS_SERVER:
    case IDEM__AWS_UNCLEAR:
        say(reading, IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, &error);
        break;
    case IDEM__AWS_THROTTLED:
    case IDEM__AWS_EXPIRED:
        say(reading, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, &error);
        break;
    case IDEM__AWS_SKEWED:
    case IDEM__AWS_CONFIG:
        say(reading, IDEM__SAID_NEVER, IDEM_ECONFIG, &error);
        break;
    case IDEM__AWS_DENIED:
        say(reading, IDEM__SAID_NEVER, IDEM_EDENIED, &error);
        break;
    }
}

/* True for the answer to most writes that were applied. It needs no parsing. */
static bool is_empty(struct idem_slice text)
{
    return text.len == 2 && memcmp(text.base, "{}", 2) == 0;
}

void idem__answer_read(const struct idem__aws_request *request,
                       const char *table, struct idem__answer *ret_answer)
{
    struct idem__answer *answer = ret_answer;
    struct reading reading = {request, table, answer};
    struct idem_slice text = {request->answer, request->answer_len};
    int rc;

    memset(answer, 0, sizeof(*answer));
    answer->error = request->error;
    answer->sent = request->outcome != IDEM__AWS_NOT_SENT;
    /* Some or all of the request was sent: the service may have applied it, or may still
     * do so. */
    if (request->outcome == IDEM__AWS_NO_ANSWER) {
        answer->said = IDEM__SAID_UNKNOWN;
        return;
    }
    /* Not a byte of it was sent, so it was certainly not applied. */
    if (request->outcome == IDEM__AWS_NOT_SENT) {
        answer->said = request->error.code == IDEM_EUNAVAILABLE
                           ? IDEM__SAID_NOT_APPLIED
                           : IDEM__SAID_NEVER;
        return;
    }
    if (request->status == 200 && is_empty(text)) {
        answer->said = IDEM__SAID_OK;
        return;
    }
    answer->body = idem__json_parse(text, &rc);
    if (request->status == 200 && answer->body != NULL) {
        answer->said = IDEM__SAID_OK;
        return;
    }
    if (answer->body == NULL && rc == IDEM_ENOMEM) {
        answer->said = IDEM__SAID_UNKNOWN;
        (void)idem__error_plain(&answer->error, rc);
        return;
    }
    read_refusal(&reading);
    if (answer->said != IDEM__SAID_REFUSED) {
        (void)json_object_put(answer->body);
        answer->body = NULL;
    }
    if (request->sends > 1 && (answer->said == IDEM__SAID_NOT_APPLIED ||
                               answer->said == IDEM__SAID_NEVER)) {
        answer->said = IDEM__SAID_UNKNOWN; /* The other copy may have been. */
    }
}

void idem__answer_finish(struct idem__answer *answer)
{
    (void)json_object_put(answer->body);
    answer->body = NULL;
    answer->item = NULL;
}
