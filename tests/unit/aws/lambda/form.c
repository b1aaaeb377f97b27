/* Tests of aws/lambda/form.c. */
#include "aws/lambda/http.h"

#include "aws/lambda/runtime_api.h"
#include "aws/lambda/event.h"
#include "test.h"

static struct idem_form form_of(const char *type, const char *meta,
                                struct idem_slice bytes)
{
    struct idem_result result = {.bytes = bytes,
                                 .content_type = idem_str(type),
                                 .meta = idem_str(meta)};
    struct idem_form form;

    idem_form_read(&result, &form);
    return form;
}

/* A response of HTTP becomes status, headers and body; what no head can hold stays
 * what it is: NULL. */
TEST(form, takesAResponseApart)
{
    static const struct {
        const char *response;
        const char *meta; /* NULL: it stays JSON. */
        const char *type;
        const char *body;
    } rows[] = {
        {"{\"statusCode\":201,\"headers\":{\"location\":\"/1\",\"content-type\":"
         "\"text/plain\",\"Set-Cookie\":\"a\",\"X-Order\":\"7\",\"X-No\":\"b\"},"
         "\"cookies\":[\"c\"],\"body\":\"12.50\"}",
         "HTTP 201\nlocation: /1\nX-Order: 7\n", "text/plain", "12.50"},
        {"{\"statusCode\":\"204\",\"body\":null,\"statusDescription\":\"204 No\"}",
         "HTTP 204\n", "", ""},
        {"{\"statusCode\":200,\"isBase64Encoded\":true,\"body\":\"YWI=\"}",
         "HTTP 200\n", "", "ab"},
        {"{\"statusCode\":200,\"headers\":{\"ETag\":\"a\",\"X-Order\":7},"
         "\"multiValueHeaders\":{\"etag\":[\"b\",\"c\"],\"Content-Type\":[\"d\"]}}",
         "HTTP 200\netag: b\netag: c\nX-Order: 7\n", "d", ""},
        {"{\"statusCode\":200,\"headers\":{\"X-Order\":\"a\\nSet-Cookie: b\","
         "\"ETag\":null}}",
         "HTTP 200\n", "", ""},
        {"{\"statusCode\":100}", NULL, NULL, NULL},
        {"{\"statusCode\":\"many\"}", NULL, NULL, NULL},
        {"{\"statusCode\":200,\"body\":{}}", NULL, NULL, NULL},
        {"{\"statusCode\":200,\"isBase64Encoded\":true,\"body\":\"?\"}", NULL,
         NULL, NULL},
        {"{\"statusCode\":200,\"receipt\":7}", NULL, NULL, NULL},
        {"{\"statusCode\":200,\"multiValueHeaders\":{\"Content-Type\":[\"a\","
         "\"b\"]}}",
         NULL, NULL, NULL},
        {"{\"body\":\"no status\"}", NULL, NULL, NULL},
        {"[201]", NULL, NULL, NULL},
        {"null", NULL, NULL, NULL},
    };
    struct idem__buffer to = {0};
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_result result = {.not_kept = false};
        bool done = idem__lambda_form_record(&to, idem_str(rows[i].response),
                                             /* named= */ false, "Link,X-Order",
                                             &result);

        if (done != (rows[i].meta != NULL)) {
            fail_with("row %zu: %d", i, done);
        }
        if (done) {
            assert_text(result.meta, rows[i].meta);
            assert_text(result.content_type, rows[i].type);
            assert_text(result.bytes, rows[i].body);
        }
    }
    idem__buffer_free(&to);
}

/* A status that the table names complete is marked as that. */
TEST(record, isNamedComplete)
{
    struct idem__buffer to = {0};
    struct idem_result result = {.not_kept = false};

    assert_true(idem__lambda_form_record(
        &to, idem_str("{\"statusCode\":404,\"headers\":{\"Link\":\"x\"}}"),
        /* named= */ true, "Link", &result));
    assert_text(result.meta, "HTTP 404 complete\nLink: x\n");
    idem__buffer_free(&to);
}

/* An answer is what Lambda takes, in the shape that its source wants; a replay is
 * marked, and kept by no cache unless the answer asked for it. */
TEST(form, isAResponseAgain)
{
    static const char meta[] = "HTTP 201\nLink: a\nETag: e\nlink: b\n";
    static const char cached[] = "HTTP 200\ncache-control: private\n";
    struct idem_form form = form_of("text/plain", meta, idem_str("\"1\"\n"));
    struct idem__buffer to = {0};

    idem__lambda_form_answer(&to, false, &form, /* replay= */ false);
    assert_text(
        idem__buffer_slice(&to),
        "{\"statusCode\":201,\"headers\":{\"Content-Type\":\"text/plain\","
        "\"Link\":\"a, b\",\"ETag\":\"e\"},\"body\":\"\\\"1\\\"\\u000a\","
        "\"isBase64Encoded\":false}");
    idem__lambda_form_answer(&to, true, &form, /* replay= */ true);
    assert_text(idem__buffer_slice(&to),
                "{\"statusCode\":201,\"multiValueHeaders\":{\"Content-Type\":["
                "\"text/plain\"],\"Link\":[\"a\",\"b\"],\"ETag\":[\"e\"],"
                "\"Idempotent-Replayed\":[\"true\"],\"Cache-Control\":["
                "\"no-store\"]},\"body\":\"\\\"1\\\"\\u000a\","
                "\"isBase64Encoded\":false}");
    form = form_of("", cached, idem_bytes("\xff", 1));
    idem__lambda_form_answer(&to, false, &form, /* replay= */ true);
    assert_text(
        idem__buffer_slice(&to),
        "{\"statusCode\":200,\"headers\":{\"cache-control\":\"private\","
        "\"Idempotent-Replayed\":\"true\"},\"body\":\"/w==\","
        "\"isBase64Encoded\":true}");
    form = form_of("", "", idem_str("receipt 7"));
    idem__lambda_form_answer(&to, false, &form, /* replay= */ false);
    assert_text(
        idem__buffer_slice(&to),
        "{\"statusCode\":200,\"headers\":{\"Content-Type\":\"text/plain; "
        "charset=utf-8\",\"X-Content-Type-Options\":\"nosniff\"},"
        "\"body\":\"receipt 7\",\"isBase64Encoded\":false}");
    idem__buffer_free(&to);
}

/* Each row: content type, metadata, bytes; the JSON that an event is answered with. */
TEST(form, isAValue)
{
    static const struct {
        const char *type;
        const char *meta;
        struct idem_slice bytes;
        const char *want;
    } rows[] = {
        {"", "", {" {\"a\": 1}\n", 10}, " {\"a\": 1}\n"},
        {"application/json", "", {"7", 1}, "7"},
        {"application/json", "", {"seven", 5}, "\"seven\""},
        {"text/plain", "", {"7", 1}, "\"7\""},
        {"application/octet-stream", "exit 0\n", {"7", 1}, "7"},
        {"application/octet-stream", "", {"7", 1}, "\"7\""},
        {"", "", {"\xc3\xa9\"", 3}, "\"\xc3\xa9\\\"\""},
        {"", "", {"\xc3", 1}, "{\"body\":\"ww==\",\"isBase64Encoded\":true}"},
        {"", "", {"", 0}, "null"},
        /* Two streams of which one cuts a letter of the other in two. */
        {IDEM_FORM_FRAMES_TYPE,
         "exit 0\n",
         {"\1\0\0\0\1\xc3\2\0\0\0\1!\1\0\0\0\1\xa9", 18},
         "\"\xc3\xa9\""},
        {IDEM_FORM_FRAMES_TYPE, "exit 0\n", {"\2\0\0\0\1!", 6}, "null"},
    };
    struct idem__buffer to = {0};

    EACH(row, rows) {
        struct idem_form form = form_of(row->type, row->meta, row->bytes);

        idem__lambda_form_value(&to, &form);
        assert_text(idem__buffer_slice(&to), row->want);
    }
    idem__buffer_free(&to);
}

/* ---- JSON text ---- */

static void check(const char *bytes, size_t len, const char *want)
{
    struct idem__buffer to = {0};

    idem__json_string(&to, idem_bytes(bytes, len));
    assert_text(idem__buffer_slice(&to), want);
    idem__buffer_free(&to);
}

/* What JSON wants escaped is; what is no UTF-8 becomes the sign for that. */
TEST(string, isAlwaysJson)
{
    check("", 0, "\"\"");
    check("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    check("\n\0\x7f", 3, "\"\\u000a\\u0000\\u007f\"");
    check("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
          "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check("\xff"
          "a\xc3",
          3, "\"\\ufffda\\ufffd\"");
    check("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");            /* Too long. */
    check("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\""); /* A half. */
    check("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

/* Members have commas between them, and none before the first. */
TEST(member, hasItsComma)
{
    struct idem__buffer to = {0};

    idem__buffer_str(&to, "{");
    idem__json_pair(&to, "a", idem_str("1"));
    idem__json_pair(&to, "b", idem_str("2"));
    idem__buffer_str(&to, "}");
    assert_text(idem__buffer_slice(&to), "{\"a\":\"1\",\"b\":\"2\"}");
    idem__buffer_free(&to);
}

/* ---- Where the Runtime API may be ---- */

/* HOST:PORT of this machine, or of its link, and nothing else. */
TEST(address, isOfThisMachine)
{
    static const char *const good[] = {
        "127.0.0.1:9001", "127.1.2.3:1", "169.254.100.1:9001",
        "localhost:8080", "[::1]:65535",
    };
    static const char *const bad[] = {
        "",
        ":",
        "127.0.0.1",
        "127.0.0.1:",
        "localhost",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:9001/x",
        "127.0.0.1:9 ",
        "127.0.0.1:+9",
        "u@127.0.0.1:9",
        "10.0.0.1:9",
        "169.253.0.1:9",
        "127.0.0.1.evil:9",
        "127.0.1:9",
        "[::2]:9",
        "localhosts:9",
        "127.0.0.1:9001\r\nX: y",
    };

    EACH(one, good) {
        assert_true(idem__lambda_api_is_local(*one));
    }
    EACH(one, bad) {
        assert_false(idem__lambda_api_is_local(*one));
    }
}
