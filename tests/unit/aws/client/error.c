/* Tests of what refusals mean. */
#include "aws/client/error.h"

#include "test.h"

#include <json-c/json_tokener.h>
#include <stdlib.h>

#define V "com.amazonaws.dynamodb.v20120810#"
#define CORAL "com.amazon.coral.service#"

static struct idem__aws_error parse(int status, const char *header,
                                    const char *body)
{
    struct idem__aws_error error;

    memset(&error, 0x55, sizeof(error));
    idem__aws_error_parse(status, header, idem_str(body), &error);
    return error;
}

/* Each common name has its meaning, wherever it stands, and whatever is around
 * it. ROW(16) ROW(19) */
TEST(error, tellsTheRefusalsApart)
{
    static const struct {
        int status;
        const char *header, *body;
        enum idem__aws_meaning meaning;
        const char *type, *message;
    } rows[] = {
        {200, NULL, "{}", IDEM__AWS_SUCCESS, "", ""},
        {400, NULL,
         "{\"__type\":\"" V "ProvisionedThroughputExceededException\","
         "\"message\":\"slow\"}",
         IDEM__AWS_THROTTLED, "ProvisionedThroughputExceededException", "slow"},
        {400, NULL, "{\"__type\":\"" CORAL "ThrottlingException\"}",
         IDEM__AWS_THROTTLED, "ThrottlingException", ""},
        {400, NULL, "{\"__type\":\"ThrottlingException\",\"Message\":\"M\"}",
         IDEM__AWS_THROTTLED, "ThrottlingException", "M"},
        {429, "TooManyRequestsException:http://x/y", "<html>",
         IDEM__AWS_THROTTLED, "TooManyRequestsException", ""},
        {400, "a#b#RequestLimitExceeded", "", IDEM__AWS_THROTTLED,
         "RequestLimitExceeded", ""},
        {400, "ThrottlingException", "{\"__type\":\"#ValidationException\"}",
         IDEM__AWS_CONFIG, "ValidationException", ""},
        {400, "ThrottlingException", "{\"__type\":7,\"message\":[]}",
         IDEM__AWS_THROTTLED, "ThrottlingException", ""},
        {400, NULL, "{\"code\":\"SlowDown\"}", IDEM__AWS_THROTTLED, "SlowDown",
         ""},
        {400, NULL,
         "{\"__type\":\"" CORAL "InvalidSignatureException\",\"message\":"
         "\"Signature expired: 20150830T123600Z is now earlier than ...\"}",
         IDEM__AWS_SKEWED, "InvalidSignatureException",
         "Signature expired: 20150830T123600Z is now earlier than ..."},
        {403, NULL,
         "{\"__type\":\"SignatureDoesNotMatch\",\"message\":"
         "\"Signature not yet current: 20250830T123600Z ...\"}",
         IDEM__AWS_SKEWED, "SignatureDoesNotMatch",
         "Signature not yet current: 20250830T123600Z ..."},
        {400, NULL,
         "{\"__type\":\"" CORAL "InvalidSignatureException\",\"message\":"
         "\"The request signature we calculated does not match\"}",
         IDEM__AWS_DENIED, "InvalidSignatureException",
         "The request signature we calculated does not match"},
        {400, NULL, "{\"__type\":\"RequestTimeTooSkewed\"}", IDEM__AWS_SKEWED,
         "RequestTimeTooSkewed", ""},
        {400, NULL, "{\"__type\":\"" CORAL "ExpiredTokenException\"}",
         IDEM__AWS_EXPIRED, "ExpiredTokenException", ""},
        {400, NULL, "{\"__type\":\"" CORAL "UnrecognizedClientException\"}",
         IDEM__AWS_DENIED, "UnrecognizedClientException", ""},
        {400, NULL, "{\"__type\":\"" CORAL "AccessDeniedException\"}",
         IDEM__AWS_DENIED, "AccessDeniedException", ""},
        {400, NULL, "{\"__type\":\"" V "ResourceNotFoundException\"}",
         IDEM__AWS_CONFIG, "ResourceNotFoundException", ""},
        {500, NULL, "{\"__type\":\"" V "InternalServerError\"}",
         IDEM__AWS_SERVER, "InternalServerError", ""},
        /* Not a word about whether it was applied. */
        {503, NULL, "{\"__type\":\"ThrottlingException\"}", IDEM__AWS_SERVER,
         "ThrottlingException", ""},
        {503, NULL, "<html>Service Unavailable</html>", IDEM__AWS_SERVER, "",
         ""},
        {400, NULL, "{\"__type\":\"" V "ConditionalCheckFailedException\"}",
         IDEM__AWS_UNCLEAR, "ConditionalCheckFailedException", ""},
        {400, NULL, "{\"__type\":\"" V "SomethingNewException\"}",
         IDEM__AWS_UNCLEAR, "SomethingNewException", ""},
        {200, "ThrottlingException", "{\"__type\":\"ValidationException\"}",
         IDEM__AWS_SUCCESS, "ThrottlingException", ""},
        {204, NULL, "", IDEM__AWS_UNCLEAR, "", ""},
        {302, NULL, "{\"__type\":\"ThrottlingException\"}", IDEM__AWS_UNCLEAR,
         "ThrottlingException", ""},
        {403, NULL, "<html>Forbidden by your proxy</html>", IDEM__AWS_UNCLEAR,
         "", ""},
        {407, NULL, "", IDEM__AWS_UNCLEAR, "", ""},
        {418, NULL, "teapot", IDEM__AWS_UNCLEAR, "", ""},
        {600, NULL, "", IDEM__AWS_UNCLEAR, "", ""},
        {0, NULL, "", IDEM__AWS_UNCLEAR, "", ""},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem__aws_error error =
            parse(rows[i].status, rows[i].header, rows[i].body);

        if (error.meaning != rows[i].meaning ||
            strcmp(error.type, rows[i].type) != 0 ||
            strcmp(error.message, rows[i].message) != 0) {
            fail_with("row %zu: %d, \"%s\", \"%s\"", i, error.meaning,
                      error.type, error.message);
        }
        if (error.meaning == IDEM__AWS_SKEWED ||
            error.meaning == IDEM__AWS_EXPIRED) {
            assert_true(idem__aws_error_may_be_stale(rows[i].header,
                                                     idem_str(rows[i].body)));
        }
    }
}

/* A refusal that a new signature could mend is known without parsing, wherever
 * its name stands and however it is written; a refused write is none. */
TEST(error, knowsWhatMayBeStale)
{
    static const struct {
        const char *header, *body;
        bool stale;
    } rows[] = {
        {NULL, "{\"__type\":\"RequestExpired\"}", true},
        {NULL, "{\"__type\":\"RequestInTheFuture\"}", true},
        {NULL, "{\"code\":\"ExpiredToken\"}", true},
        {NULL, "{\"__type\":\"TokenRefreshRequired\"}", true},
        {"TokenRefreshRequired", "", true},
        {"RequestTimeTooSkewed", "{}", true},
        {NULL, "{\"__type\":\"Request\\u0045xpired\"}", true},
        {NULL, "{\"__type\":\"Reques\\u0074E\\u0078pired\"}", true},
        {NULL, "", false},
        {"", "", false},
        {NULL,
         "{\"__type\":\"" V "ConditionalCheckFailedException\",\"message\":"
         "\"The conditional request failed\",\"Item\":{\"id\":{\"S\":"
         "\"0123\"},\"rec\":{\"B\":\"AAECAwQFBgc=\"}}}",
         false},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        if (idem__aws_error_may_be_stale(rows[i].header,
                                         idem_str(rows[i].body)) !=
            rows[i].stale) {
            fail_with("row %zu", i);
        }
    }
}

/* What is not one whole JSON object of bounded depth says nothing. */
TEST(error, readsOnlyWholeObjects)
{
    static const char *const bodies[] = {
        "",
        "null",
        "[]",
        "\"__type\"",
        "[{\"__type\":\"ThrottlingException\"}]",
        "{\"__type\":\"ThrottlingException\"",
        "{\"__type\":\"ThrottlingException\"}}",
        "{\"__type\":\"ThrottlingException\"} x",
        "\xef\xbb\xbf{\"__type\":\"ThrottlingException\"}",
        "{\"__type\":\"Throttling\377Exception\"}",
        "{'__type':'ThrottlingException'}",
        "{\"a\":{\"__type\":\"ThrottlingException\"}}",
        "{\"__type\":\"Throttling\\u0000Exception\"}",
        "{\"__type\":\"Throttling Exception\"}",
        "{\"__type\":\"x#\"}",
        "{\"__type\":\"\"}",
        "{\"__type\":null}",
    };
    size_t i;

    for (i = 0; i < COUNT(bodies); i++) {
        struct idem__aws_error error = parse(400, NULL, bodies[i]);

        if (error.meaning != IDEM__AWS_UNCLEAR || error.type[0] != '\0') {
            fail_with("body %zu: \"%s\"", i, error.type);
        }
    }
}

/* A body of more than 16 MiB is not read. */
TEST(error, boundsTheLength)
{
    static const char object[] = "{\"__type\":\"ThrottlingException\"}";
    size_t len = ((size_t)16 << 20) + 1;
    char *body = malloc(len);
    struct idem__aws_error error;

    assert_non_null(body);
    memset(body, ' ', len);
    memcpy(body + len - sizeof(object) + 1, object, sizeof(object) - 1);
    idem__aws_error_parse(400, NULL, idem_bytes(body, len), &error);
    assert_string_equal(error.type, "");
    idem__aws_error_parse(400, NULL, idem_bytes(body + 1, len - 1), &error);
    assert_string_equal(error.type, "ThrottlingException");
    free(body);
}

/* A long message is cut between characters, and nothing in it can move a
 * terminal's cursor. */
TEST(error, cutsAndCleansTheMessage)
{
    char body[1024] = "{\"message\":\"";
    struct idem__aws_error error;
    size_t len = strlen(body);
    size_t i;

    for (i = 0; i < 100; i++) {
        memcpy(body + len + 3 * i, "\xe2\x82\xac", 3); /* A Euro sign. */
    }
    strcpy(body + len + 300, "\"}");
    error = parse(400, NULL, body);
    assert_int_equal(strlen(error.message), 189);

    error =
        parse(400, NULL, "{\"message\":\"a\\n\\u001b[2Jb\\u007f\\u0000c\"}");
    assert_string_equal(error.message, "a  [2Jb  c");
}

/* A name as long as there is room for is kept, a longer one is left out. */
TEST(error, boundsTheName)
{
    char header[200];
    struct idem__aws_error error;

    memset(header, 'E', sizeof(header));
    header[95] = '\0';
    error = parse(400, header, "");
    assert_int_equal(strlen(error.type), 95);
    header[95] = 'E';
    header[96] = '\0';
    error = parse(400, header, "");
    assert_string_equal(error.type, "");
}
