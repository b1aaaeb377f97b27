/* Tests of writing JSON text. */
#include "aws/lambda/event.h"

#include "test.h"

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
