/* Tests of credentials and their sources. */
#include "aws/client/credentials.h"

#include "heap.h"
#include "test.h"

#include <stdlib.h>

static const char *env_get(void *ctx, const char *name)
{
    const char *const *pairs = ctx;

    for (; *pairs != NULL; pairs += 2) {
        if (strcmp(pairs[0], name) == 0) {
            return pairs[1];
        }
    }
    return NULL;
}

static int provide(const char *const *pairs,
                   struct idem__aws_provider **ret_provider)
{
    struct idem__aws_env env = {.ctx = (void *)(uintptr_t)pairs,
                                .get = env_get};

    return idem__aws_provider_default(&env, "", ret_provider, &why);
}

/* What could break a header line or is too long is refused, and not repeated. */
TEST(credentials, areRefusedWithoutBeingShown)
{
    static const char *const bad[] = {"hunter2\n", "hunter2\r\nX: y",
                                      "hunter 2", "hunter2\x7f",
                                      "hunter2\xc3\xa4"};
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};
    struct idem__aws_provider *provider = NULL;
    char *longest = malloc(IDEM__AWS_TOKEN_MAX + 2);
    size_t i, n;

    assert_non_null(longest);
    memset(longest, 'h', IDEM__AWS_TOKEN_MAX + 1);
    longest[IDEM__AWS_TOKEN_MAX + 1] = '\0';
    for (n = 0; n < COUNT(names); n++) {
        const char *pairs[] = {names[0], "a", names[1], "b",
                               names[2], "c", NULL};

        for (i = 0; i < COUNT(bad); i++) {
            pairs[2 * n + 1] = bad[i];
            assert_code(IDEM_ECONFIG, provide(pairs, &provider));
            assert_why(names[n]);
            assert_null(strstr(why.text, "hunter"));
        }
        pairs[2 * n + 1] = longest;
        assert_code(IDEM_ECONFIG, provide(pairs, &provider));
        assert_why(names[n]);
        assert_null(strstr(why.text, "hhh"));
    }
    longest[IDEM__AWS_TOKEN_MAX] = '\0';
    {
        const char *pairs[] = {names[0], "a",     names[1], "b",
                               names[2], longest, NULL};

        assert_ok(provide(pairs, &provider));
        idem__aws_provider_close(provider);
    }
    free(longest);
}

/* Wiping leaves nothing. */
TEST(credentials, areWiped)
{
    static struct idem__aws_credentials credentials = {.access_key = "a",
                                                       .secret_key = "b",
                                                       .token = "c",
                                                       .expires_ms = 4};
    static const struct idem__aws_credentials zero;

    idem__aws_credentials_wipe(&credentials);
    assert_memory_equal(&credentials, &zero, sizeof(zero));
}

/* Without memory the call fails and nothing is held. */
TEST(credentials, failWithoutMemory)
{
    static const char *const pairs[] = {"AWS_ACCESS_KEY_ID", "a",
                                        "AWS_SECRET_ACCESS_KEY", "b", NULL};
    struct idem__aws_provider *provider = NULL;

    heap_fail(0, /* on= */ false);
    assert_code(IDEM_ENOMEM, provide(pairs, &provider));
    assert_true(heap_fail_never());
    assert_ok(provide(pairs, &provider));
    idem__aws_provider_close(provider);
}

/* The first variable that is set and not empty wins; the process's own are read
 * where none are brought. */
TEST(env, givesTheFirstThatIsSet)
{
    static const char *const pairs[] = {"A", "", "B", "b", "C", "c", NULL};
    static const char *const names[] = {"X", "A", "B", "C", NULL};
    static const char *const none[] = {"X", "A", NULL};
    static const char *const own[] = {"IDEM_TEST_ENV", NULL};
    struct idem__aws_env env = {.ctx = (void *)(uintptr_t)pairs,
                                .get = env_get};

    assert_string_equal(idem__aws_env_first(&env, names), "b");
    assert_null(idem__aws_env_first(&env, none));
    assert_int_equal(setenv("IDEM_TEST_ENV", "here", 1), 0);
    assert_string_equal(idem__aws_env_first(&idem__aws_env_process, own),
                        "here");
    assert_int_equal(unsetenv("IDEM_TEST_ENV"), 0);
    assert_null(idem__aws_env_first(&idem__aws_env_process, own));
}
