/* Tests of the header lines of a request. */
#include "aws/client/client.h"

#include "test.h"

static const struct idem__aws_credentials credentials = {
    .access_key = "AKIDEXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

static const struct idem__aws_endpoint endpoint = {
    .service = "dynamodb",
    .region = "eu-west-1",
    .host = "dynamodb.eu-west-1.amazonaws.com",
    .path = "/",
};

static int make(struct idem__aws_post *post, const char *target,
                struct idem_slice body)
{
    struct idem__aws_request request = {
        .endpoint = &endpoint,
        .target = target,
        .body = body,
    };
    struct idem__sigv4 signer = {.cached = false};

    return idem__aws_post_make(post, &request, &signer, &credentials,
                               INT64_C(1767225600000));
}

/* Each line is there once, in the order in which it is signed; libcurl is told to
 * add none that is not signed. */
TEST(lines, areSigned)
{
    static const char *const want[] = {
        "Content-Type: application/x-amz-json-1.0",
        "Host: dynamodb.eu-west-1.amazonaws.com",
        "X-Amz-Date: 20260101T000000Z",
        "X-Amz-Target: DynamoDB_20120810.GetItem",
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/"
        "eu-west-1/dynamodb/aws4_request, ",
        "Accept:",
        "Expect:",
    };
    struct idem__aws_post post = {.cap = 0};
    const struct curl_slist *line = post.lines;

    assert_ok(make(&post, "DynamoDB_20120810.GetItem", idem_str("{}")));
    EACH(one, want) {
        assert_non_null(line);
        if (strncmp(line->data, "Authorization", 13) == 0) {
            assert_memory_equal(line->data, *one, strlen(*one));
        } else {
            assert_string_equal(line->data, *one);
        }
        line = line->next;
    }
    assert_null(line);
    idem__aws_post_free(&post);
    assert_null(post.base);
}

/* A shorter request takes the place of a longer one, and the other way round. */
TEST(lines, takeTheirMemoryAgain)
{
    static char long_target[129];
    struct idem__aws_post post = {.cap = 0};
    size_t i;

    memset(long_target, 'T', sizeof(long_target) - 1);
    for (i = 0; i < 4; i++) {
        const char *target = i % 2 == 0 ? NULL : long_target;
        const struct curl_slist *line = post.lines;
        size_t lines = 0;

        assert_ok(make(&post, target, idem_str("{}")));
        for (; line != NULL; line = line->next) {
            assert_true(line->data[strcspn(line->data, "\r\n")] == '\0');
            lines++;
        }
        assert_int_equal(lines, target == NULL ? 6 : 7);
    }
    idem__aws_post_free(&post);
}

/* Nothing that ends a line gets into a line, nor what is too long for it. */
TEST(lines, takeNoLineEnds)
{
    struct idem__aws_post post = {.cap = 0};
    char longest[130];

    memset(longest, 'T', 129);
    longest[129] = '\0';
    assert_code(IDEM_EINVALID, make(&post, "a\r\nb: c", idem_str("{}")));
    assert_code(IDEM_EINVALID, make(&post, longest, idem_str("{}")));
    assert_ok(make(&post, longest + 1, idem_str("{}")));
    idem__aws_post_free(&post);
}
