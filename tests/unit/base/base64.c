/* Both spellings of base64: one text for each byte string, and no other is read. */
#include "base/base64.h"

#include "host.h"
#include "test.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const struct spelling {
    enum idem__base64 kind;
    const char *alphabet;
} spellings[] = {
    {IDEM__BASE64, LETTERS "+/"},
    {IDEM__BASE64_URL, LETTERS "-_"},
};

static void check_text(enum idem__base64 kind, const char *bytes,
                       const char *text)
{
    char written[16];
    uint8_t back[16];
    size_t len = idem__base64_len(kind, strlen(bytes));

    memset(written, '#', sizeof(written));
    idem__base64_write(kind, idem_str(bytes), written);
    assert_slice(idem_bytes(written, len), idem_str(text));
    assert_int_equal(written[len], '#');
    assert_ok(idem__base64_read(kind, idem_str(text), back, &len));
    assert_slice(idem_bytes(back, len), idem_str(bytes));
}

/* RFC 4648's vectors, and both signs that the alphabets differ in. */
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
    };

    EACH(row, rows) {
        check_text(IDEM__BASE64, row->bytes, row->text);
        check_text(IDEM__BASE64_URL, row->bytes, row->url);
    }
}

/* A length that cannot be counted is said to be so. */
TEST(base64, countsNoLengthWrong)
{
    EACH(row, spellings) {
        enum idem__base64 kind = row->kind;

        assert_true(idem__base64_len(kind, SIZE_MAX) == SIZE_MAX);
        assert_true(idem__base64_len(kind, SIZE_MAX / 2 + 1) == SIZE_MAX);
    }
}

static void check_round_trip(enum idem__base64 kind, size_t len, uint64_t *seed)
{
    uint8_t bytes[300];
    uint8_t back[301];
    char text[401];
    size_t text_len = idem__base64_len(kind, len);
    size_t back_len = 0;

    random_fill(seed, bytes, len);
    text[text_len] = '#';
    idem__base64_write(kind, idem_bytes(bytes, len), text);
    assert_int_equal(text[text_len], '#');

    back[len] = '#';
    assert_true(idem__base64_max(text_len) >= len);
    assert_ok(
        idem__base64_read(kind, idem_bytes(text, text_len), back, &back_len));
    assert_slice(idem_bytes(back, back_len), idem_bytes(bytes, len));
    assert_int_equal(back[len], '#');
}

/* Bytes that were written come back, at every length, and neither side touches a
 * byte more than it says. */
TEST(base64, roundTrips)
{
    uint64_t seed = 64;
    size_t len;

    for (len = 0; len <= 300; len++) {
        check_round_trip(IDEM__BASE64, len, &seed);
        check_round_trip(IDEM__BASE64_URL, len, &seed);
    }
}

/* Reads "AAAAAAAA" with @c at @at, and checks the value that came of it. */
static void check_sign(const struct spelling *spelling, size_t at, int c)
{
    const char *known = c == 0 ? NULL : strchr(spelling->alphabet, c);
    char text[] = "AAAAAAAA";
    uint8_t bytes[6];
    size_t first = at / 4 * 3;
    size_t len;

    text[at] = (char)c;
    assert_code(known != NULL ? IDEM_OK : IDEM_EINVALID,
                idem__base64_read(spelling->kind, idem_bytes(text, 8), bytes,
                                  &len));
    if (known != NULL) {
        uint32_t bits = (uint32_t)bytes[first] << 16 |
                        (uint32_t)bytes[first + 1] << 8 | bytes[first + 2];

        assert_int_equal(bits >> (18 - 6 * (at % 4)),
                         known - spelling->alphabet);
    }
}

/* Each letter has its value, and every other byte is refused, at any place: the
 * letters of the other spelling, spaces, NUL, padding but at the end. */
TEST(base64, readsItsAlphabetAndNoMore)
{
    size_t at;
    int c;

    EACH(row, spellings) {
        for (at = 0; at < 8; at++) {
            for (c = 0; c < 256; c++) {
                if (at < 7 || c != '=' || row->kind != IDEM__BASE64) {
                    check_sign(row, at, c);
                }
            }
        }
    }
}

static void check_refused(enum idem__base64 kind, const char *text)
{
    uint8_t bytes[16];
    size_t len;

    if (idem__base64_read(kind, idem_str(text), bytes, &len) != IDEM_EINVALID) {
        fail_with("\"%s\" was read", text);
    }
}

/* No stray bits, no padding but at the end, no length that no text has. */
TEST(base64, refusesOtherSpellings)
{
    static const char *const padded[] = {
        "A",    "AA",   "AAA",      "AAAAA", "=",        "====",
        "A===", "Zh==", "Zm9=",     "Z=8=",  "AA=AAAAA", "Zg=A",
        "Zg=",  "Zm 9", "Zg==Zg==", "Zm9\n", "Zm9vZg",   "=Zg=",
    };
    static const char *const of_urls[] = {
        "A", "AAAAA", "Zg==", "Zh", "Zm9", "Zm8=", "Zm9vYmF=", "Zg\n",
    };

    EACH(one, padded) {
        check_refused(IDEM__BASE64, *one);
    }
    EACH(of_url, of_urls) {
        check_refused(IDEM__BASE64_URL, *of_url);
    }
}

/* Of the 64 letters, 4 may end a text of two, and 16 one of three. */
TEST(base64, refusesStrayBits)
{
    unsigned of_two = 0;
    unsigned of_three = 0;
    size_t i;

    for (i = 0; i < 64; i++) {
        char c = spellings[1].alphabet[i];
        char two[] = {'A', c};
        char three[] = {'A', 'A', c};
        uint8_t bytes[3];
        size_t len;

        of_two += idem__base64_read(IDEM__BASE64_URL, idem_bytes(two, 2), bytes,
                                    &len) == 0;
        of_three += idem__base64_read(IDEM__BASE64_URL, idem_bytes(three, 3),
                                      bytes, &len) == 0;
    }
    assert_int_equal(of_two, 4);
    assert_int_equal(of_three, 16);
}
