/* Tokens: what was written is read, and nothing else is. */
#include "core/token.h"

#include "test.h"

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

/* What never was a token: nothing, another version, far too long, mistyped. */
TEST(token, refusesStrangers)
{
    static const char *const texts[] = {
        NULL,
        "",
        "idem1.",
        "idem1",
        "idem2.AAAA",
        "IDEM1.AAAA",
        "order-42",
        "idem1.BHNob3AIb3JkZXItNDJubm5ubm5ubm5ubm5ubm5uAAAAAAAAACmlubpgA",
        "idem1.BHNob3AIb3JkZXItNDJubm5ubm5ubm5ubm5ubm5uAAAAAAAAACmlubph",
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
