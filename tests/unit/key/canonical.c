/* Tests of src/key/canonical.c: what means the same has one text. */
#include "key/canonical.h"

#include "heap.h"
#include "test.h"

static int canonical(struct idem_slice json, struct idem__buffer *out)
{
    struct idem__tree tree = {0};
    int rc = idem__tree_read(&tree, json, &why);

    if (rc == 0) {
        rc = idem__canonical(&tree, 0, IDEM_FLAVOUR_NONE, out, &why);
    }
    idem__tree_free(&tree);
    return rc;
}

static void is_written(const char *json, const char *want)
{
    struct idem__buffer out = {0};

    assert_ok(canonical(idem_str(json), &out));
    assert_text(idem__buffer_slice(&out), want);
    idem__buffer_free(&out);
}

/* Members by code point, which is not the order of UTF-16; no blanks; the escapes
 * that JSON needs and no other. */
TEST(canonical, isOneText)
{
    is_written(" { \"b\" : [ 1 , true , null ] , \"a\" : { } } ",
               "{\"a\":{},\"b\":[1e0,true,null]}");
    is_written("{\"\\ud83d\\ude00\":1,\"\\uffff\":2,\"\":3,\"a\":4,\"A\":5}",
               "{\"\":3e0,\"A\":5e0,\"a\":4e0,\"\xef\xbf\xbf\":2e0,"
               "\"\xf0\x9f\x98\x80\":1e0}");
    is_written("{\"\\u0000b\":1,\"\\u0000a\":2}",
               "{\"\\u0000a\":2e0,\"\\u0000b\":1e0}");
    is_written("\"\\u0041\\/\\u00e9\\u007f\\u2028\"",
               "\"A/\xc3\xa9\x7f\xe2\x80\xa8\"");
    is_written("\"a\x7f\"", "\"a\x7f\"");
    is_written("\"\\u0000\\u0008\\u0009\\u000a\\u000c\\u000d\\u001F\\u0022"
               "\\u005C\"",
               "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\\"");
}

/* A number is its decimal value: no digit is lost or added, however it is spelled
 * and however large it is. */
TEST(canonical, hasNumbersByValue)
{
    static const char *const rows[][2] = {
        {"1", "1e0"},
        {"1.0", "1e0"},
        {"10e-1", "1e0"},
        {"0.00001E+5", "1e0"},
        {"1200", "12e2"},
        {"12.50", "125e-1"},
        {"-0.0150", "-15e-3"},
        {"10.05", "1005e-2"},
        {"0", "0"},
        {"-0", "0"},
        {"-0.00e99999999999999999999", "0"},
        {"9007199254740993", "9007199254740993e0"},
        {"9007199254740992", "9007199254740992e0"},
        {"108086391057176360", "10808639105717636e1"},
        {"0.1000000000000000055511151231257827",
         "1000000000000000055511151231257827e-34"},
        {"1e999999999", "1e999999999"},
        {"1000e999999999", "1e1000000002"},
        {"1e-0999999999", "1e-999999999"},
        {"1e00000000000000000000000000000007", "1e7"},
        {"1e99999999999999999", "1e99999999999999999"},
        {"0.1e100000000000000000", "1e99999999999999999"},
    };

    EACH(row, rows) {
        is_written((*row)[0], (*row)[1]);
    }
}

/* What has no one meaning has no canonical text. */
TEST(canonical, isRefused)
{
    static const char *const rows[] = {
        "{\"a\":1,\"\\u0061\":2}",
        "\"\\ud800\"",
        "[\"\\udc00\\ud800\"]",
        "\"\xc3\"",
        "01",
        "1e100000000000000000",
        "10e99999999999999999",
        "[1,]",
        "",
        "NaN",
        "\xef\xbb\xbf{}",
        "{} {}",
    };
    struct idem__buffer out = {0};

    EACH(row, rows) {
        assert_code(IDEM_EINVALID, canonical(idem_str(*row), &out));
    }
    idem__buffer_free(&out);
}

/* No memory is an error, whenever it happens. */
TEST(canonical, failsWithoutMemory)
{
    bool failed = true;
    long n;
    int rc;

    for (n = 0; failed; n++) {
        struct idem__buffer out = {0};

        heap_fail(n, /* on= */ false);
        rc = canonical(idem_str("{\"b\":[1,\"x\"],\"a\":{\"c\":null}}"), &out);
        failed = heap_fail_never();
        idem__buffer_free(&out);
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
    }
    assert_true(n > 3);
}
