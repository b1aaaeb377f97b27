/* Both spellings of base64: one text for each byte string, and no other is read. */
#include "base/base64.h"

#include "test.h"

#define LETTERS "BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static void check_text(enum idem__base64 kind, const char *bytes,
                       const char *text)
{
    char written[80];
    uint8_t back[64];
    size_t len = idem__base64_len(kind, strlen(bytes));

    memset(written, '#', sizeof(written));
    idem__base64_write(kind, idem_str(bytes), written);
    assert_slice(idem_bytes(written, len), idem_str(text));
    assert_int_equal(written[len], '#');
    assert_ok(idem__base64_read(kind, idem_str(text), back, &len));
    assert_slice(idem_bytes(back, len), idem_str(bytes));
}

/* RFC 4648's vectors, each letter, and both signs that the alphabets differ in. */
TEST(base64, givesThePublishedText)
{
    static const struct {
        const char *bytes;
        const char *text;
        const char *url;
    } rows[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xff\xef\xbe", "/+++", "_---"},
        {"\xfb\xff", "+/8=", "-_8"},
        {"\004\040\304\024\141\310\044\242\314\064\343\320\105\044\324\125"
         "\145\330\145\246\334\165\347\340\206\050\344\226\151\350\246\252"
         "\354\266\353\360\307\054\364\327\155\370\347\256\374\367\357\300",
         LETTERS "+/A", LETTERS "-_A"},
    };

    EACH(row, rows) {
        check_text(IDEM__BASE64, row->bytes, row->text);
        check_text(IDEM__BASE64_URL, row->bytes, row->url);
    }
}

/* A length that cannot be counted is said to be so. */
TEST(base64, countsNoLengthWrong)
{
    static const enum idem__base64 kinds[] = {IDEM__BASE64, IDEM__BASE64_URL};

    EACH(kind, kinds) {
        assert_true(idem__base64_len(*kind, SIZE_MAX) == SIZE_MAX);
        assert_true(idem__base64_len(*kind, SIZE_MAX / 2 + 1) == SIZE_MAX);
    }
}
