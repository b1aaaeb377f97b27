/* Tokens: what was written is read, and nothing else is. */
#include "core/token.h"

#include "base/base64.h"
#include "base/hash.h"
#include "host.h"
#include "test.h"

#include <stdio.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static struct idem__token sample_token(struct idem_slice scope,
                                       struct idem_slice key)
{
    struct idem__token token = {.scope = scope, .key = key, .fence = 41};

    memset(token.nonce, 'n', sizeof(token.nonce));
    return token;
}

/* The text is the same in every version: its golden vector. */
TEST(token, givesTheGoldenVector)
{
    struct idem__token token =
        sample_token(idem_str("shop"), idem_str("order-42"));
    char text[IDEM_TOKEN_MAX];

    assert_ok(idem__token_write(&token, text));
    assert_string_equal(text, "idem1.BHNob3AIb3JkZXItNDJubm5ubm5ubm5ubm5ubm5u"
                              "AAAAAAAAACmlubpg");
}

/* Every length of scope and key, with every kind of byte, comes back. */
TEST(token, roundTrips)
{
    static const size_t lengths[] = {0, 1, 2, 3, 127, 128, 254, 255};
    uint64_t seed = 7;
    size_t j;

    EACH(length, lengths) {
        for (j = 1; j < COUNT(lengths); j++) {
            uint8_t names[2][255];
            struct idem__token token =
                sample_token(idem_bytes(names[0], *length),
                             idem_bytes(names[1], lengths[j]));
            struct idem__token back;
            char text[IDEM_TOKEN_MAX];

            random_fill(&seed, names, sizeof(names));
            random_fill(&seed, token.nonce, sizeof(token.nonce));
            token.fence = random_next(&seed) | 1;
            assert_ok(idem__token_write(&token, text));
            assert_true(strlen(text) < IDEM_TOKEN_MAX);
            assert_ok(idem__token_read(text, &back, &why));
            assert_slice(back.scope, token.scope);
            assert_slice(back.key, token.key);
            assert_memory_equal(back.nonce, token.nonce, 16);
            assert_true(back.fence == token.fence);
        }
    }
}

/* The largest fence is a fence; zero is none. */
TEST(token, takesEveryFenceButZero)
{
    struct idem__token token = sample_token(idem_str(""), idem_str("k"));
    struct idem__token back;
    char text[IDEM_TOKEN_MAX];

    token.fence = UINT64_MAX;
    assert_ok(idem__token_write(&token, text));
    assert_ok(idem__token_read(text, &back, &why));
    assert_true(back.fence == UINT64_MAX);

    token.fence = 0;
    assert_ok(idem__token_write(&token, text));
    assert_code(IDEM_EINVALID, idem__token_read(text, &back, &why));
    assert_why("fence");
}

static void assert_refused(const char *text)
{
    struct idem__token back;

    if (idem__token_read(text, &back, &why) != IDEM_EINVALID) {
        fail_with("\"%s\" was taken for a token", text);
    }
    assert_why("not an idem token");
}

/* Any one sign exchanged for any other makes it no token. */
TEST(token, refusesEveryExchangedSign)
{
    struct idem__token token = sample_token(idem_str("s"), idem_str("key"));
    char text[IDEM_TOKEN_MAX];
    size_t i;
    int c;

    assert_ok(idem__token_write(&token, text));
    for (i = 0; text[i] != '\0'; i++) {
        char was = text[i];

        for (c = 1; c < 256; c++) {
            text[i] = (char)c;
            if (text[i] != was) {
                assert_refused(text);
            }
        }
        text[i] = was;
    }
}

/* Nor is it one when a sign is missing, doubled, added or out of its place. */
TEST(token, refusesEveryOtherShape)
{
    struct idem__token token =
        sample_token(idem_str("shop"), idem_str("order-42"));
    char text[IDEM_TOKEN_MAX];
    char other[2 * IDEM_TOKEN_MAX];
    size_t len;
    size_t i;

    assert_ok(idem__token_write(&token, text));
    len = strlen(text);
    for (i = 0; i < len; i++) {
        (void)snprintf(other, sizeof(other), "%.*s", (int)i, text);
        assert_refused(other);
        (void)snprintf(other, sizeof(other), "%.*s%s", (int)i, text,
                       text + i + 1);
        assert_refused(other);
        (void)snprintf(other, sizeof(other), "%.*s%c%s", (int)i, text, text[i],
                       text + i);
        assert_refused(other);
    }
    for (i = 0; i < 64; i++) {
        (void)snprintf(other, sizeof(other), "%s%c", text, alphabet[i]);
        assert_refused(other);
    }
    (void)snprintf(other, sizeof(other), "%s%s", text, text);
    assert_refused(other);
    (void)snprintf(other, sizeof(other), " %s", text);
    assert_refused(other);
    (void)snprintf(other, sizeof(other), "%s\n", text);
    assert_refused(other);
}

/* What never was a token: nothing, another version, far too long. */
TEST(token, refusesStrangers)
{
    static const char *const texts[] = {
        NULL, "", "idem1.", "idem1", "idem2.AAAA", "IDEM1.AAAA", "order-42",
    };
    char huge[100000];

    EACH(text, texts) {
        assert_refused(*text);
    }
    memset(huge, 'A', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    memcpy(huge, "idem1.", 6);
    assert_refused(huge);
}

/* Writes the token of @bytes with its right checksum. */
static void seal(const uint8_t *bytes, size_t len, char *text)
{
    struct idem_slice part = {bytes, len};
    uint8_t digest[IDEM__SHA256_LEN];
    uint8_t sealed[256];

    assert_ok(idem__sha256(&part, 1, digest));
    memcpy(sealed, bytes, len);
    memcpy(sealed + len, digest, 4);
    memcpy(text, "idem1.", 6);
    idem__base64_write(IDEM__BASE64_URL, idem_bytes(sealed, len + 4), text + 6);
    text[6 + idem__base64_len(IDEM__BASE64_URL, len + 4)] = '\0';
}

/* Lengths inside that lie are found, though the checksum is right: an empty key,
 * names that reach past the end, bytes too few or too many. */
TEST(token, refusesLengthsThatLie)
{
    static const struct {
        uint8_t scope_len;
        uint8_t key_len;
        size_t len;
        bool good;
    } rows[] = {
        {1, 1, 28, true},    {1, 1, 27, false},  {1, 1, 29, false},
        {1, 1, 60, false},   {0, 2, 28, true},   {2, 0, 28, false},
        {255, 1, 28, false}, {26, 1, 28, false}, {1, 255, 28, false},
        {1, 2, 28, false},   {27, 1, 28, false},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem__token token;
        uint8_t bytes[64];
        char text[IDEM_TOKEN_MAX];

        memset(bytes, 1, sizeof(bytes));
        bytes[0] = rows[i].scope_len;
        bytes[1 + (rows[i].scope_len < 30 ? rows[i].scope_len : 0)] =
            rows[i].key_len;
        seal(bytes, rows[i].len, text);
        if ((idem__token_read(text, &token, &why) == 0) != rows[i].good) {
            fail_with("row %zu was %s", i, rows[i].good ? "refused" : "taken");
        }
    }
}
