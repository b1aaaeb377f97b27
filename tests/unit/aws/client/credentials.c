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

/* The three variables give credentials that do not end. */
TEST(credentials, comeFromTheEnvironment)
{
    static const char *const with_token[] = {"AWS_ACCESS_KEY_ID",
                                             "AKID",
                                             "AWS_SECRET_ACCESS_KEY",
                                             "secret/+",
                                             "AWS_SESSION_TOKEN",
                                             "to/ken==",
                                             NULL};
    static const char *const without[] = {"AWS_ACCESS_KEY_ID",
                                          "AKID",
                                          "AWS_SECRET_ACCESS_KEY",
                                          "secret/+",
                                          "AWS_SESSION_TOKEN",
                                          "",
                                          NULL};
    const struct idem__aws_credentials *credentials = NULL;
    struct idem__aws_provider *provider = NULL;

    assert_ok(provide(with_token, &provider));
    assert_int_equal(provider->get(provider, 0, &credentials, &why), 0);
    assert_string_equal(credentials->access_key, "AKID");
    assert_string_equal(credentials->secret_key, "secret/+");
    assert_string_equal(credentials->token, "to/ken==");
    assert_int_equal(credentials->expires_ms, IDEM_NEVER);
    assert_string_equal(provider->name, "the environment");
    assert_null(provider->expired);
    idem__aws_provider_close(provider);

    assert_ok(provide(without, &provider));
    assert_int_equal(provider->get(provider, 0, &credentials, &why), 0);
    assert_string_equal(credentials->token, "");
    idem__aws_provider_close(provider);
    idem__aws_provider_close(NULL);
}

/* What is missing is named. */
TEST(credentials, areMissedByName)
{
    static const char *const no_key[] = {"AWS_SECRET_ACCESS_KEY", "s", NULL};
    static const char *const no_secret[] = {"AWS_ACCESS_KEY_ID", "a",
                                            "AWS_SECRET_ACCESS_KEY", "", NULL};
    struct idem__aws_provider *provider = NULL;

    assert_code(IDEM_ECONFIG, provide(no_key, &provider));
    assert_why("AWS_ACCESS_KEY_ID is not set");
    assert_code(IDEM_ECONFIG, provide(no_secret, &provider));
    assert_why("AWS_SECRET_ACCESS_KEY is not set");
    assert_null(provider);
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

/* Without keys in the environment others are asked, which may take its time; what
 * they lack is said then. */
TEST(credentials, areAskedForElsewhere)
{
    static const char *const nothing[] = {"AWS_EC2_METADATA_DISABLED", "true",
                                          NULL};
    const struct idem__aws_credentials *credentials = NULL;
    struct idem__aws_provider *provider = NULL;
    int rc;

    assert_ok(provide(nothing, &provider));
    assert_non_null(provider->expired);
    do {
        rc = provider->get(provider, 0, &credentials, &why);
    } while (rc == 1);
    assert_code(IDEM_ECONFIG, rc);
    assert_why("there are no AWS credentials in the environment, the profile");
    assert_null(credentials);
    idem__aws_provider_close(provider);
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
