/* Padded base64: one spelling for each byte string, and no other is read. */
#include "base/base64_padded.h"

#include "host.h"
#include "test.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int read_text(const char *text, uint8_t *to, size_t *ret_len)
{
    return idem__base64_padded_read(idem_str(text), to, ret_len);
}

/* RFC 4648's vectors, and both signs of this alphabet. */
TEST(base64Padded, givesThePublishedText)
{
    static const struct {
        const char *bytes;
        const char *text;
    } rows[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xef\xbe", "/+++"},
        {"\xfb\xff", "+/8="},
    };
    struct idem__buffer text = {0};
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        uint8_t bytes[16];
        size_t len;

        text.len = 0;
        idem__base64_padded_add(&text, idem_str(rows[i].bytes));
        assert_slice(idem__buffer_slice(&text), idem_str(rows[i].text));
        assert_ok(read_text(rows[i].text, bytes, &len));
        assert_slice(idem_bytes(bytes, len), idem_str(rows[i].bytes));
    }
    idem__buffer_free(&text);
}

/* What was written comes back, at every length and for every byte. */
TEST(base64Padded, roundTrips)
{
    struct idem__buffer text = {0};
    uint8_t bytes[300];
    uint8_t back[302];
    size_t len;
    size_t i;

    for (i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 37);
    }
    for (i = 0; i <= sizeof(bytes); i++) {
        text.len = 0;
        idem__base64_padded_add(&text, idem_bytes(bytes, i));
        assert_int_equal(text.len, (i + 2) / 3 * 4);
        assert_ok(
            idem__base64_padded_read(idem__buffer_slice(&text), back, &len));
        assert_slice(idem_bytes(back, len), idem_bytes(bytes, i));
    }
    idem__buffer_free(&text);
}

/* Each character has its value, and every byte that is no character is refused,
 * wherever it stands. */
TEST(base64Padded, readsItsAlphabetAndNoMore)
{
    char text[] = "AAAAAAAA";
    uint8_t bytes[6];
    size_t refused = 0;
    size_t len;
    size_t at;
    unsigned c;

    for (at = 0; at < 8; at++) {
        for (c = 0; c < 256; c++) {
            const char *known =
                c == 0 ? NULL : strchr(alphabet, (int)(unsigned char)c);
            int rc;

            if (at == 7 && c == '=') {
                continue; /* Padding. */
            }
            memset(text, 'A', 8);
            text[at] = (char)c;
            rc = idem__base64_padded_read(idem_bytes(text, 8), bytes, &len);
            assert_int_equal(rc, known != NULL ? 0 : IDEM_EINVALID);
            refused += known == NULL;
            if (known != NULL) {
                size_t first = at / 4 * 3;
                uint32_t bits = (uint32_t)bytes[first] << 16 |
                                (uint32_t)bytes[first + 1] << 8 |
                                bytes[first + 2];

                assert_int_equal(bits >> (18 - 6 * (at % 4)), known - alphabet);
            }
        }
    }
    assert_int_equal(refused, 8 * 192 - 1);
}

/* No second spelling, no padding but at the end, no part of four. */
TEST(base64Padded, refusesOtherSpellings)
{
    static const char *const texts[] = {
        "A",    "AA",   "AAA",  "AAAAA",    "====",     "A===",
        "Zh==", "Zm9=", "Z=8=", "Zg==Zg==", "AA=AAAAA", "Zg=A",
    };
    uint8_t bytes[16];
    size_t len;
    size_t i;

    for (i = 0; i < COUNT(texts); i++) {
        if (read_text(texts[i], bytes, &len) != IDEM_EINVALID) {
            fail_with("\"%s\" was read", texts[i]);
        }
    }
}
