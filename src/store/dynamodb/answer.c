/* What an answer of DynamoDB, or the lack of one, means. */
#include "store/dynamodb/answer.h"

#include "core/error.h"

static void say(struct idem__answer *answer, enum idem__said said, int code,
                const struct idem__aws_error *error)
{
    answer->said = said;
    (void)idem__error(&answer->error, code, "DynamoDB: %s%s%s",
                      error->type[0] == '\0' ? "no name for the error"
                                             : error->type,
                      error->message[0] == '\0' ? "" : ": ", error->message);
}

/* Names that are DynamoDB's own. */
static bool own_name(struct idem__answer *answer,
                     const struct idem__aws_error *error)
{
    if (idem__aws_error_is(error, "ConditionalCheckFailedException")) {
        answer->said = IDEM__SAID_REFUSED;
        (void)json_object_object_get_ex(answer->body, "Item", &answer->item);
        return true;
    }
    /* A plain write that met a transaction. */
    if (idem__aws_error_is(error, "TransactionConflictException") ||
        idem__aws_error_is(error, "ReplicatedWriteConflictException")) {
        say(answer, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, error);
        return true;
    }
    if (idem__aws_error_is(error, "ResourceNotFoundException")) {
        answer->said = IDEM__SAID_NEVER;
        (void)idem__error(&answer->error, IDEM_ECONFIG,
                          "DynamoDB: there is no such table or index here; "
                          "\"idem store create\" makes it (%s)",
                          error->message);
        return true;
    }
    return false;
}

static void read_refusal(const struct idem__aws_request *request,
                         struct idem__answer *answer)
{
    struct idem__aws_error error;

    idem__aws_error_read(request->status, request->error_type, answer->body,
                         &error);
    if (answer->body != NULL && request->status == 400 &&
        own_name(answer, &error)) {
        return;
    }
    switch (error.meaning) {
    case IDEM__AWS_SUCCESS: /* A 200 that is no object. */
    case IDEM__AWS_SERVER:
    case IDEM__AWS_UNCLEAR:
        say(answer, IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, &error);
        break;
    case IDEM__AWS_THROTTLED:
    case IDEM__AWS_EXPIRED:
        say(answer, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, &error);
        break;
    case IDEM__AWS_SKEWED:
    case IDEM__AWS_CONFIG:
        say(answer, IDEM__SAID_NEVER, IDEM_ECONFIG, &error);
        break;
    case IDEM__AWS_DENIED:
        say(answer, IDEM__SAID_NEVER, IDEM_EDENIED, &error);
        break;
    }
}

/* What comes of every write that was applied. */
static bool is_empty(struct idem_slice text)
{
    return text.len == 2 && memcmp(text.base, "{}", 2) == 0;
}

void idem__answer_read(const struct idem__aws_request *request,
                       struct idem__answer *ret_answer)
{
    struct idem__answer *answer = ret_answer;
    struct idem_slice text = {request->answer, request->answer_len};
    int rc;

    memset(answer, 0, sizeof(*answer));
    answer->error = request->error;
    answer->sent = request->outcome != IDEM__AWS_NOT_SENT;
    if (request->outcome == IDEM__AWS_NO_ANSWER) {
        answer->said = IDEM__SAID_UNKNOWN;
        return;
    }
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
    read_refusal(request, answer);
    if (answer->said != IDEM__SAID_REFUSED) {
        (void)json_object_put(answer->body);
        answer->body = NULL;
    }
    if (request->sends > 1 && answer->said == IDEM__SAID_NOT_APPLIED) {
        answer->said = IDEM__SAID_UNKNOWN; /* Another copy may have been. */
    }
}

void idem__answer_finish(struct idem__answer *answer)
{
    (void)json_object_put(answer->body);
    answer->body = NULL;
    answer->item = NULL;
}
