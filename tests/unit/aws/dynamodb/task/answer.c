/* What answers of DynamoDB mean: which were applied, which may have been. */
#include "aws/dynamodb/task/answer.h"

#include "test.h"

static struct idem__answer read_answer(int status, const char *header,
                                       const char *body)
{
    char copy[1024];
    struct idem__aws_request request = {
        .outcome = IDEM__AWS_ANSWERED,
        .status = status,
        .answer = (uint8_t *)copy,
        .answer_len = strlen(body),
        .sends = 1,
    };
    struct idem__answer answer;

    (void)snprintf(copy, sizeof(copy), "%s", body);
    (void)snprintf(request.error_type, sizeof(request.error_type), "%s",
                   header);
    idem__answer_read(&request, "orders", &answer);
    return answer;
}

#define TYPE(name) "{\"__type\":\"com.amazonaws.dynamodb.v20120810#" name "\"}"

/* ROW(15) ROW(16) ROW(17) ROW(18) ROW(19) ROW(26) Only an answer that is whole and known
 * says that a write was not applied. */
TEST(answer, isClassified)
{
    static const struct {
        int status;
        const char *header;
        const char *body;
        enum idem__said said;
        int code;
    } rows[] = {
        {200, "", "{}", IDEM__SAID_OK, 0},
        {200, "", "{\"a\":1}", IDEM__SAID_OK, 0},
        {200, "", "", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {200, "", "null", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {200, "", "[]", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {200, "", "{} \r\n", IDEM__SAID_OK, 0},
        {200, "", "{}x", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {200, "", "{", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {200, "", "\xef\xbb\xbf{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {201, "", "{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {204, "", "", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {302, "", "{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {407, "", "{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {418, "", "{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {503, "", "<html>", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {500, "", TYPE("InternalServerError"), IDEM__SAID_UNKNOWN,
         IDEM_EUNKNOWN},
        {500, "", TYPE("ConditionalCheckFailedException"), IDEM__SAID_UNKNOWN,
         IDEM_EUNKNOWN},
        {400, "", "{}", IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {400, "", TYPE("NeverHeardOfException"), IDEM__SAID_UNKNOWN,
         IDEM_EUNKNOWN},
        {400, "", TYPE("IdempotentParameterMismatchException"),
         IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN},
        {400, "", TYPE("ConditionalCheckFailedException"), IDEM__SAID_REFUSED,
         0},
        {400, "", "{\"__type\":\"ConditionalCheckFailedException\"}",
         IDEM__SAID_REFUSED, 0},
        {400, "", TYPE("ProvisionedThroughputExceededException"),
         IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
        {400, "", TYPE("ThrottlingException"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE},
        {400, "", TYPE("RequestLimitExceeded"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE},
        {400, "", TYPE("TransactionConflictException"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE},
        {400, "", TYPE("ResourceNotFoundException"), IDEM__SAID_NEVER,
         IDEM_ECONFIG},
        {400, "", TYPE("ValidationException"), IDEM__SAID_NEVER, IDEM_ECONFIG},
        {400, "", TYPE("AccessDeniedException"), IDEM__SAID_NEVER,
         IDEM_EDENIED},
        {400, "", TYPE("UnrecognizedClientException"), IDEM__SAID_NEVER,
         IDEM_EDENIED},
        {400, "ThrottlingException", "{}", IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE},
    };

    EACH(row, rows) {
        struct idem__answer answer =
            read_answer(row->status, row->header, row->body);

        if (answer.said != row->said || answer.error.code != row->code) {
            fail_with("%d %s: said %d, %s", row->status, row->body,
                      (int)answer.said, idem_error_name(answer.error.code));
        }
        assert_true(answer.sent);
        idem__answer_finish(&answer);
    }
}

/* A refusal brings the item that stands in the way, if the server shows it. */
TEST(answer, bringsTheItem)
{
    struct idem__answer answer = read_answer(
        400, "",
        "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":{\"id\":"
        "{\"S\":\"a\"}}}");

    assert_int_equal(answer.said, IDEM__SAID_REFUSED);
    assert_non_null(answer.item);
    idem__answer_finish(&answer);
    answer = read_answer(400, "", TYPE("ConditionalCheckFailedException"));
    assert_int_equal(answer.said, IDEM__SAID_REFUSED);
    assert_null(answer.item);
    idem__answer_finish(&answer);
}

/* ROW(25) What was not sent was not applied; what was sent and not answered may
 * have been, and so may the other copy of what was refused. */
TEST(answer, mayBeMissing)
{
    struct idem__aws_request request = {.outcome = IDEM__AWS_NOT_SENT,
                                        .error = {IDEM_EUNAVAILABLE, "away"}};
    char refusals[][100] = {TYPE("ThrottlingException"),
                            TYPE("AccessDeniedException"),
                            TYPE("ResourceNotFoundException"),
                            TYPE("RequestTimeTooSkewed"),
                            TYPE("ValidationException")};
    struct idem__answer answer;

    idem__answer_read(&request, "orders", &answer);
    assert_int_equal(answer.said, IDEM__SAID_NOT_APPLIED);
    assert_false(answer.sent);
    request.error.code = IDEM_ECONFIG;
    idem__answer_read(&request, "orders", &answer);
    assert_int_equal(answer.said, IDEM__SAID_NEVER);
    assert_int_equal(answer.error.code, IDEM_ECONFIG);
    request.outcome = IDEM__AWS_NO_ANSWER;
    request.error.code = IDEM_EUNKNOWN;
    idem__answer_read(&request, "orders", &answer);
    assert_int_equal(answer.said, IDEM__SAID_UNKNOWN);

    request.outcome = IDEM__AWS_ANSWERED;
    request.status = 400;
    request.sends = 2;
    EACH(refusal, refusals) {
        request.answer = (uint8_t *)*refusal;
        request.answer_len = strlen(*refusal);
        idem__answer_read(&request, "orders", &answer);
        assert_int_equal(answer.said, IDEM__SAID_UNKNOWN);
    }
}

/* A table that is missing is named, and an answer that DynamoDB cannot have given is
 * said to be one. */
TEST(answer, namesTheTableAndTheStatus)
{
    struct idem__answer answer =
        read_answer(400, "", TYPE("ResourceNotFoundException"));

    assert_int_equal(answer.said, IDEM__SAID_NEVER);
    assert_non_null(strstr(answer.error.text, "no table \"orders\" at"));
    assert_non_null(strstr(answer.error.text, "idem store create"));
    idem__answer_finish(&answer);
    answer = read_answer(502, "", "<html>Bad gateway</html>");
    assert_int_equal(answer.said, IDEM__SAID_UNKNOWN);
    assert_non_null(strstr(answer.error.text, "HTTP status 502"));
    assert_non_null(strstr(answer.error.text, "https_proxy"));
    idem__answer_finish(&answer);
    answer = read_answer(400, "", TYPE("ValidationException"));
    assert_non_null(strstr(answer.error.text, "table \"orders\": Validation"));
    idem__answer_finish(&answer);
}
