/* Keys as clients send them: two forms of one key, and everything that is none. */
#include <idem/http.h>

#include "test.h"

static void assert_key(const char *value, const char *key)
{
    char buf[IDEM_KEY_MAX];
    size_t len = 0;

    if (idem_http_key(idem_str(value), buf, &len, &why) != 0) {
        fail_with("%s was refused: %s", value, why.text);
    }
    assert_text(idem_bytes(buf, len), key);
}

static void assert_none(struct idem_slice value, const char *word)
{
    char buf[IDEM_KEY_MAX];
    size_t len = 77;

    if (idem_http_key(value, buf, &len, &why) != IDEM_EINVALID || len != 77) {
        fail_with("\"%.*s\" was taken for a key", (int)value.len,
                  (const char *)value.base);
    }
    assert_why(word);
}

/* A key in quotes and the same key raw are one key. */
TEST(http_key, quotedAndRawAreOne)
{
    static const char *const rows[][2] = {
        {"order-42", "order-42"},
        {"\"order-42\"", "order-42"},
        {" \t\"order-42\" \t", "order-42"},
        {"  order-42\t", "order-42"},
        {"\"8e03978e-40d5-43e8-bc93-6894a57f9324\"",
         "8e03978e-40d5-43e8-bc93-6894a57f9324"},
        {"1", "1"},
        {"\"a b\"", "a b"},
        {"\" a\"", " a"},
        {"\"a\\\"b\\\\c\"", "a\"b\\c"},
        {"\"{\\\"a\\\":1,\\\"b\\\":2}\"", "{\"a\":1,\"b\":2}"},
        {"'or'1'='1'--", "'or'1'='1'--"},
        {"../../etc/passwd", "../../etc/passwd"},
        {"%n%s%00", "%n%s%00"},
        {"$(reboot)&|`id`", "$(reboot)&|`id`"},
        {"\"a;b=1, c\"", "a;b=1, c"},
    };

    EACH(row, rows) {
        assert_key((*row)[0], (*row)[1]);
    }
}

/* What is empty, a list, has parameters, or is not well quoted is no key. */
TEST(http_key, refusesOtherShapes)
{
    static const char *const rows[][2] = {
        {"", "empty"},
        {"   ", "empty"},
        {"\t", "empty"},
        {"\"\"", "empty"},
        {"\"  \"", "empty"},
        {"a, b", "list"},
        {"a,a", "list"},
        {"\"a\", \"a\"", "closing quote"},
        {"\"a\";p=1", "closing quote"},
        {"\"a\"b", "closing quote"},
        {"a;p=1", "quoted"},
        {"a\"b", "quoted"},
        {"a\\b", "quoted"},
        {"a b", "visible"},
        {"\"", "closing quote"},
        {"\"a", "closing quote"},
        {"\"a\\\"", "closing quote"},
        {"\"a\\", "backslash"},
        {"\"a\\n\"", "backslash"},
        {":YWJj:", NULL},
    };

    EACH(row, rows) {
        if ((*row)[1] != NULL) {
            assert_none(idem_str((*row)[0]), (*row)[1]);
        }
    }
    assert_key(":YWJj:", ":YWJj:");
}

/* Of all bytes only visible ASCII may stand in a key, raw or in quotes; a space
 * only in quotes. */
TEST(http_key, refusesEveryOtherByte)
{
    int c;

    for (c = 0; c < 256; c++) {
        char raw[3] = {'a', (char)c, 'b'};
        char quoted[5] = {'"', 'a', (char)c, 'b', '"'};
        bool visible = c > 0x20 && c < 0x7f;
        bool special = c == '"' || c == '\\';
        char buf[IDEM_KEY_MAX];
        size_t len;
        int rc = idem_http_key(idem_bytes(raw, 3), buf, &len, &why);

        assert_int_equal(rc == 0, visible && !special && c != ',' && c != ';');
        rc = idem_http_key(idem_bytes(quoted, 5), buf, &len, &why);
        assert_int_equal(rc == 0, (visible || c == ' ') && !special);
    }
}

/* The longest key has 255 bytes, as a client means it and not as it writes it. */
TEST(http_key, takesUpTo255Bytes)
{
    char text[2 * 8192 + 2];
    char buf[IDEM_KEY_MAX];
    size_t len;
    size_t i;

    memset(text, 'k', sizeof(text));
    assert_ok(idem_http_key(idem_bytes(text, 255), buf, &len, &why));
    assert_int_equal(len, 255);
    assert_none(idem_bytes(text, 256), "255");
    assert_none(idem_bytes(text, 2048), "255");
    assert_none(idem_bytes(text, 8192), "255");

    text[0] = '"';
    for (i = 0; i < 256; i++) {
        text[1 + 2 * i] = '\\';
        text[2 + 2 * i] = '"';
    }
    text[1 + 2 * 255] = '"';
    assert_ok(idem_http_key(idem_bytes(text, 512), buf, &len, &why));
    assert_int_equal(len, 255);
    text[1 + 2 * 255] = '\\';
    text[1 + 2 * 256] = '"';
    assert_none(idem_bytes(text, 514), "255");
}
