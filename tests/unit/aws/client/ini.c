/* Tests of reading the format of AWS's shared files. */
#include "aws/client/settings.h"

#include "aws/client/credentials.h"
#include "heap.h"
#include "test.h"

#include <stdlib.h>

static struct idem_slice value;

static int find(const char *text, const char *kind, const char *section,
                const char *outer, const char *name)
{
    value = idem_str("untouched");
    return idem__aws_ini_find(idem_str(text), kind, idem_str(section), outer,
                              name, &value);
}

/* 0 if the whole text can be read, else the number of the line that cannot. */
static unsigned flaw_of(struct idem_slice text, const char **ret_flaw)
{
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    int rc;

    idem__aws_ini_begin(&ini, text);
    do {
        rc = idem__aws_ini_next(&ini, &line, ret_flaw);
    } while (rc == 1);
    return rc == 0 ? 0 : ini.number;
}

static const char usual[] = "\xef\xbb\xbf# mine\r\n"
                            "[default]\r\n"
                            "region = eu-west-1   ; ours\r\n"
                            "\r\n"
                            "[profile work] # later\n"
                            "REGION=us-east-1\n"
                            "empty =\n"
                            "url = http://x/#here;too\n"
                            "s3 =\n"
                            "  region = nested\n"
                            "  # a comment\n"
                            "long = some\n"
                            "   more\n"
                            "[ profile  \"two words\" ]\n"
                            "region\t=\teu-north-1\n"
                            "[services local]\n"
                            "sqs =\n"
                            "  endpoint_url = http://localhost:1\n"
                            "dynamodb =\n"
                            "  endpoint_url = http://localhost:2\n"
                            "[profile work]\n"
                            "again = 1\n"
                            "again = 2";

/* Sections, settings, nested ones, comments and both line ends are understood. */
TEST(ini, findsWhatIsSaid)
{
    static const struct {
        const char *kind, *section, *outer, *name, *value; /* NULL: none. */
    } rows[] = {
        {"", "default", NULL, "region", "eu-west-1"},
        {"profile", "default", NULL, "region", NULL},
        {"profile", "work", NULL, "region", "us-east-1"},
        {"profile", "work", NULL, "empty", NULL},
        {"profile", "work", NULL, "url", "http://x/#here;too"},
        {"profile", "work", "s3", "region", "nested"},
        {"profile", "work", "s3", "other", NULL},
        {"profile", "work", NULL, "again", "2"},
        {"profile", "Work", NULL, "region", NULL},
        {"profile", "two words", NULL, "region", "eu-north-1"},
        {"services", "local", "dynamodb", "endpoint_url", "http://localhost:2"},
        {"services", "local", "sts", "endpoint_url", NULL},
        {"services", "local", NULL, "endpoint_url", NULL},
    };
    const char *flaw = "";
    size_t i;

    assert_int_equal(flaw_of(idem_str(usual), &flaw), 0);
    for (i = 0; i < COUNT(rows); i++) {
        int rc = find(usual, rows[i].kind, rows[i].section, rows[i].outer,
                      rows[i].name);

        if (rc != (rows[i].value != NULL)) {
            fail_with("row %zu: %d", i, rc);
        }
        if (rc == 1) {
            assert_text(value, rows[i].value);
        }
    }
    assert_true(
        idem__aws_ini_has(idem_str(usual), "profile", idem_str("work")));
    assert_false(idem__aws_ini_has(idem_str(usual), "", idem_str("work")));
}

/* A value that goes on is not cut short in silence; one below it takes over. */
TEST(ini, doesNotCutAValue)
{
    assert_code(IDEM_ECONFIG, find(usual, "profile", "work", NULL, "long"));
    assert_text(value, "untouched");
    assert_int_equal(find("[a]\nx = 1\n 2\nx = 3\n", "", "a", NULL, "x"), 1);
    assert_text(value, "3");
}

/* What cannot be is refused with its line. */
TEST(ini, refusesWhatIsNoSuchFile)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *why;
    } rows[] = {
        {"x = 1\n", 1, "outside any section"},
        {"\n[a\n", 2, "without a closing ]"},
        {"[a] b\n", 1, "malformed section header"},
        {"[ ]\n", 1, "malformed section header"},
        {"[a]\nhello\n", 2, "expected NAME = VALUE"},
        {"[a]\n= 1\n", 2, "no name"},
        {"[a]\n x = 1\n", 2, "without a setting above it"},
        {"[a]\ns3 =\n  hello\n", 3, "expected NAME = VALUE"},
        {"[a]\nx = \x1b[1m\n", 2, "control"},
        {"[a]\rx = 1\n", 1, "control"},
    };
    const char *flaw = "";
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        unsigned line = flaw_of(idem_str(rows[i].text), &flaw);

        if (line != rows[i].line || strstr(flaw, rows[i].why) == NULL) {
            fail_with("row %zu: line %u: %s", i, line, flaw);
        }
    }
    assert_int_equal(flaw_of(idem_bytes("[a]\nx\0= 1", 9), &flaw), 2);
    assert_int_equal(flaw_of(idem_str(""), &flaw), 0);
}

/* ---- Credentials, and variables ---- */

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
