/* Tests of the bytes of a request. */
#include "aws/client/post.h"

#include "test.h"

#include <stdlib.h>

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

/* The head says what is sent, and is signed. */
TEST(head, isSigned)
{
    static const char want[] =
        "POST / HTTP/1.1\r\n"
        "Content-Type: application/x-amz-json-1.0\r\n"
        "Host: dynamodb.eu-west-1.amazonaws.com\r\n"
        "X-Amz-Date: 20260101T000000Z\r\n"
        "X-Amz-Target: DynamoDB_20120810.GetItem\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/"
        "eu-west-1/dynamodb/aws4_request, ";
    struct idem__aws_post post = {.len = 0};

    assert_ok(make(&post, "DynamoDB_20120810.GetItem", idem_str("{}")));
    assert_true(post.len > sizeof(want));
    assert_memory_equal(post.base, want, sizeof(want) - 1);
    assert_memory_equal(post.base + post.len - 23,
                        "Content-Length: 2\r\n\r\n{}", 23);
    assert_int_equal(post.len, post.head_len + 2);
    idem__aws_post_free(&post);
}

/* However little a connection takes at once, all of it is sent, and once. */
static void send_in_pieces(size_t body_len, size_t piece)
{
    uint8_t *body = malloc(body_len + 1);
    char *sent = malloc(body_len + 4096);
    struct idem__aws_post post = {.len = 0};
    struct idem_slice all = idem_bytes(body_len > 0 ? body : NULL, body_len);
    struct idem_slice rest;
    size_t len = 0;

    assert_non_null(body);
    assert_non_null(sent);
    memset(body, 'b', body_len);
    assert_ok(make(&post, NULL, all));
    for (;;) {
        rest = idem__aws_post_rest(&post, all, len);
        if (rest.len == 0) {
            break;
        }
        if (rest.len > piece) {
            rest.len = piece;
        }
        assert_true(len + rest.len <= body_len + 4096);
        memcpy(sent + len, rest.base, rest.len);
        len += rest.len;
    }
    assert_int_equal(len, post.head_len + body_len);
    assert_memory_equal(sent, post.base, post.head_len);
    if (body_len > 0) {
        assert_memory_equal(sent + post.head_len, body, body_len);
    }
    idem__aws_post_free(&post);
    free(body);
    free(sent);
}

TEST(post, isSentWhole)
{
    static const size_t lens[] = {0, 1, 16 * 1024, 16 * 1024 + 1, 100 * 1000};
    size_t i;

    for (i = 0; i < COUNT(lens); i++) {
        send_in_pieces(lens[i], 1 << 20);
        send_in_pieces(lens[i], 777);
        send_in_pieces(lens[i], 1);
    }
}

/* A short body lies behind its head, a long one stays where it is. */
TEST(post, copiesNoLongBody)
{
    static uint8_t body[16 * 1024 + 1];
    struct idem__aws_post post = {.len = 0};

    assert_ok(make(&post, NULL, idem_bytes(body, sizeof(body))));
    assert_int_equal(post.len, post.head_len);
    assert_ptr_equal(idem__aws_post_rest(&post, idem_bytes(body, sizeof(body)),
                                         post.len)
                         .base,
                     body);
    assert_ok(make(&post, NULL, idem_bytes(body, sizeof(body) - 1)));
    assert_int_equal(post.len, post.head_len + sizeof(body) - 1);
    idem__aws_post_free(&post);
    assert_null(post.base);
}

/* Nothing that ends a line gets into the head, nor what is too long for it. */
TEST(head, takesNoLineEnds)
{
    struct idem__aws_post post = {.len = 0};
    char longest[130];

    memset(longest, 'T', 129);
    longest[129] = '\0';
    assert_code(IDEM_EINVALID, make(&post, "a\r\nb: c", idem_str("{}")));
    assert_code(IDEM_EINVALID, make(&post, longest, idem_str("{}")));
    assert_ok(make(&post, longest + 1, idem_str("{}")));
    idem__aws_post_free(&post);
}
