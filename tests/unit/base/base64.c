/* URL-safe base64: one spelling for each byte string, and no other is read. */
#include "base/base64.h"

#include "host.h"
#include "test.h"

static int decode(const char *text, uint8_t *buf, size_t cap, size_t *ret_len)
{
    return idem__base64_decode(idem_str(text), buf, cap, ret_len);
}

/* RFC 4648's vectors, without their padding, and both signs of this alphabet. */
TEST(base64, givesThePublishedText)
{
    static const struct {
        const char *bytes;
        const char *text;
    } rows[] = {
        {"", ""},
        {"f", "Zg"},
        {"fo", "Zm8"},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg"},
        {"fooba", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xef\xbe", "_---"},
        {"\xfb\xff", "-_8"},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        char text[16];
        uint8_t bytes[16];
        size_t len;

        assert_ok(
            idem__base64_encode(idem_str(rows[i].bytes), text, sizeof(text)));
        assert_string_equal(text, rows[i].text);
        assert_ok(decode(rows[i].text, bytes, sizeof(bytes), &len));
        assert_slice(idem_bytes(bytes, len), idem_str(rows[i].bytes));
    }
}

/* A length that cannot be counted with is too long. */
TEST(base64, refusesLengthsBeyondCounting)
{
    char text[16] = "";

    assert_code(IDEM_EINVALID,
                idem__base64_encode(idem_bytes(text, SIZE_MAX / 2 + 1), text,
                                    sizeof(text)));
    assert_code(IDEM_EINVALID, idem__base64_encode(idem_bytes(text, SIZE_MAX),
                                                   text, sizeof(text)));
}

/* What was encoded comes back, at every length and for every byte. */
TEST(base64, roundTrips)
{
    uint64_t seed = 64;
    size_t len;

    for (len = 0; len <= 300; len++) {
        uint8_t bytes[300];
        uint8_t back[300];
        char text[401];
        size_t back_len;

        random_fill(&seed, bytes, len);
        assert_ok(
            idem__base64_encode(idem_bytes(bytes, len), text, sizeof(text)));
        assert_int_equal(strlen(text), (len * 4 + 2) / 3);
        assert_ok(decode(text, back, len, &back_len));
        assert_slice(idem_bytes(back, back_len), idem_bytes(bytes, len));
    }
}

/* Neither side writes past its buffer: one byte less is refused. */
TEST(base64, refusesWhatDoesNotFit)
{
    size_t len;

    for (len = 1; len <= 30; len++) {
        uint8_t bytes[30] = {0};
        char text[64];
        size_t text_len = (len * 4 + 2) / 3;
        uint8_t back[31];
        size_t back_len = 77;

        text[text_len] = '#';
        assert_code(IDEM_EINVALID, idem__base64_encode(idem_bytes(bytes, len),
                                                       text, text_len));
        assert_int_equal(text[text_len], '#');
        assert_ok(
            idem__base64_encode(idem_bytes(bytes, len), text, text_len + 1));

        back[len - 1] = '#';
        assert_code(IDEM_EINVALID, decode(text, back, len - 1, &back_len));
        assert_int_equal(back[len - 1], '#');
        assert_int_equal(back_len, 77);
    }
}

/* Only the 64 signs of the alphabet are read: no padding, space or NUL. */
TEST(base64, refusesEveryOtherSign)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-_";
    int c;

    for (c = 0; c < 256; c++) {
        char text[4] = {'A', 'A', (char)c, 'A'};
        bool known = memchr(signs, c, sizeof(signs) - 1) != NULL;
        uint8_t bytes[3];
        size_t len;

        assert_code(known ? IDEM_OK : IDEM_EINVALID,
                    idem__base64_decode(idem_bytes(text, 4), bytes, 3, &len));
    }
}

/* A last sign with bits that no byte takes would be a second spelling. */
TEST(base64, refusesStrayBits)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned of_two = 0;
    unsigned of_three = 0;
    size_t i;

    for (i = 0; i < 64; i++) {
        char two[3] = {'A', signs[i], '\0'};
        char three[4] = {'A', 'A', signs[i], '\0'};
        uint8_t bytes[3];
        size_t len;

        of_two += decode(two, bytes, 3, &len) == 0;
        of_three += decode(three, bytes, 3, &len) == 0;
    }
    assert_int_equal(of_two, 4);
    assert_int_equal(of_three, 16);
}

/* No text is one sign longer than a multiple of four. */
TEST(base64, refusesALoneSign)
{
    uint8_t bytes[8];
    size_t len;

    assert_code(IDEM_EINVALID, decode("A", bytes, 8, &len));
    assert_code(IDEM_EINVALID, decode("AAAAA", bytes, 8, &len));
    assert_code(IDEM_EINVALID, decode("Zg==", bytes, 8, &len));
}
