/* Tests of what the sources of credentials have in common, and of profiles. */
#include "aws/client/clock.h"
#include "aws/client/source.h"

#include "heap.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A home of our own ------------------------------------------------- */

static const char *const *variables;

static const char *get(void *ctx, const char *name)
{
    const char *const *pair;

    (void)ctx;
    for (pair = variables; *pair != NULL; pair += 2) {
        if (strcmp(pair[0], name) == 0) {
            return pair[1];
        }
    }
    return NULL;
}

static const struct idem__aws_env env = {.get = get};
static char folder[] = "/tmp/idem-source-XXXXXX";
static char config_path[64], credentials_path[64];
static struct idem__aws_ask ask;
static struct idem__aws_credentials credentials;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void begin_home(const char *config, const char *keys)
{
    strcpy(folder, "/tmp/idem-source-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(config_path, sizeof(config_path), "%s/.aws", folder);
    assert_int_equal(mkdir(config_path, 0700), 0);
    (void)snprintf(config_path, sizeof(config_path), "%s/.aws/config", folder);
    (void)snprintf(credentials_path, sizeof(credentials_path),
                   "%s/.aws/credentials", folder);
    if (config != NULL) {
        write_file(config_path, config);
    }
    if (keys != NULL) {
        write_file(credentials_path, keys);
    }
    memset(&ask, 0, sizeof(ask));
    memset(&credentials, 0, sizeof(credentials));
    ask.env = &env;
    ask.region = "";
    ask.stop = -1;
}

static void end_home(void)
{
    char dir[64];

    (void)unlink(config_path);
    (void)unlink(credentials_path);
    (void)snprintf(dir, sizeof(dir), "%s/.aws", folder);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* What the profile gives in that home. */
static int ask_profile(const char *config, const char *keys,
                       const char *profile)
{
    const char *pairs[] = {"HOME", NULL, "AWS_PROFILE", profile, NULL};
    int rc;

    begin_home(config, keys);
    pairs[1] = folder;
    variables = pairs;
    rc = idem__aws_source_profile(&ask, &credentials, &why);
    end_home();
    return rc;
}

/* ---- Profiles ---------------------------------------------------------- */

/* What cannot be used is named, with what to do, and without the secret. */
TEST(profile, saysWhatIsWrong)
{
    static const struct {
        const char *config, *keys, *profile, *says;
    } rows[] = {
        {NULL, NULL, "w", "AWS_PROFILE: no profile \"w\" in"},
        {NULL, "[w]\naws_access_key_id = A\n", "w", "but not the other"},
        {NULL, "[w]\naws_access_key_id = A\nhunter2\n", "w", "credentials:3: "},
        {NULL, "[w]\naws_access_key_id = A\naws_secret_access_key = hunter 2\n",
         "w", "aws_secret_access_key contains an invalid character"},
        {"[profile w]\nsso_session = s\n", NULL, "w",
         "aws configure export-credentials --profile w"},
        {"[profile w]\nsso_start_url = s\n", NULL, "w", "sso_start_url"},
        {"[profile w]\nrole_arn = r\nsource_profile = x\n",
         "[w]\naws_access_key_id = A\naws_secret_access_key = hunter2\n", "w",
         "credential_process = aws configure export-credentials --profile w"},
        {"[profile w]\ncredential_process = 'a\n", NULL, "w",
         "lacks a quotation mark"},
        {"[profile w]\ncredential_process = false\n", NULL, "w",
         "false exited with status 1; run it by hand"},
        {"[profile w]\ncredential_process = echo hunter2\n", NULL, "w",
         "credential_process gave no JSON object"},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        int rc = ask_profile(rows[i].config, rows[i].keys, rows[i].profile);

        if (rc != IDEM_ECONFIG && rc != IDEM_EUNAVAILABLE) {
            fail_with("row %zu: %d", i, rc);
        }
        assert_why(rows[i].says);
        assert_null(strstr(why.text, "hunter"));
    }
}

/* A file that is none, or far too long, is refused; one that may not be read, or
 * is not there, says nothing. */
TEST(profile, readsOnlyFiles)
{
    const char *pairs[] = {"HOME", "/nowhere", "AWS_CONFIG_FILE", "/tmp", NULL,
                           NULL,   NULL};
    struct idem__aws_profiles profiles;

    variables = pairs;
    assert_code(IDEM_ECONFIG, idem__aws_profiles_load(&env, &profiles, &why));
    assert_why("cannot read /tmp: Is a directory");
    pairs[3] = "/dev/zero";
    assert_code(IDEM_ECONFIG, idem__aws_profiles_load(&env, &profiles, &why));
    assert_why("File too large");
    pairs[3] = "~/config";
    pairs[4] = "AWS_SHARED_CREDENTIALS_FILE";
    pairs[5] = "/nowhere/c";
    assert_ok(idem__aws_profiles_load(&env, &profiles, &why));
    assert_string_equal(profiles.config.path, "/nowhere/config");
    assert_string_equal(profiles.credentials.path, "/nowhere/c");
    idem__aws_profiles_finish(&profiles);
}

/* A pipe without a writer is refused at once, and /dev/null is an empty file. */
TEST(profile, waitsForNoPipe)
{
    const char *pairs[] = {"HOME", "/nowhere", "AWS_CONFIG_FILE", NULL, NULL};
    struct idem__aws_profiles profiles;

    begin_home(NULL, NULL);
    assert_int_equal(mkfifo(config_path, 0600), 0);
    pairs[3] = config_path;
    variables = pairs;
    assert_code(IDEM_ECONFIG, idem__aws_profiles_load(&env, &profiles, &why));
    assert_why("it is a pipe, not a file");
    end_home();
    pairs[3] = "/dev/null";
    assert_ok(idem__aws_profiles_load(&env, &profiles, &why));
    idem__aws_profiles_finish(&profiles);
}

/* Without memory it fails cleanly. */
TEST(profile, failsWithoutMemory)
{
    const char *pairs[] = {"HOME", NULL, NULL};
    unsigned n;
    int rc = -1;

    begin_home("[default]\n", "[default]\naws_access_key_id = A\n"
                              "aws_secret_access_key = b\n");
    pairs[1] = folder;
    variables = pairs;
    for (n = 0; rc != 0; n++) {
        heap_fail(n, /* on= */ false);
        rc = idem__aws_source_profile(&ask, &credentials, &why);
        assert_true(rc == 0 || rc == IDEM_ENOMEM);
        (void)heap_fail_never();
    }
    assert_true(n == 3);
    end_home();
}

/* ---- Values ------------------------------------------------------------ */

/* Times are read as they are written, in any zone; others are refused. */
TEST(time, isRead)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused. */
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-21T15:04:05Z", 1795273445000},
        {"2026-11-21T15:04:05.123456Z", 1795273445123},
        {"2026-11-21T16:04:05+01:00", 1795273445000},
        {"2026-11-21T14:34:05-0030", 1795273445000},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2023-02-29T00:00:00Z", -1},
        {"2026-13-01T00:00:00Z", -1},
        {"2026-11-21T24:00:00Z", -1},
        {"2026-11-21T15:04:05", -1},
        {"2026-11-21T15:04:05Zz", -1},
        {"2026-11-21", -1},
        {"1795273445", -1},
        {"", -1},
    };

    EACH(row, rows) {
        int64_t ms = -1;

        if (idem__aws_time_parse(idem_str(row->text), &ms) != (row->ms >= 0) ||
            ms != row->ms) {
            fail_with("%s: %lld", row->text, (long long)ms);
        }
    }
}
