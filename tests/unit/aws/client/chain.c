/* Tests of fetching credentials anew in time. The source is a program that counts
 * how often it is run, and whose keys always end at the same time. */
#include "aws/client/credentials.h"
#include "base/host.h"

#include "heap.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MINUTE_MS INT64_C(60000)
#define END_MS INT64_C(1893459600000) /* 2030-01-01T01:00:00Z */
#define BEGIN_MS (END_MS - 60 * MINUTE_MS)

/* ---- The source -------------------------------------------------------- */

static char folder[32];
static const char *home_get(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "HOME") == 0 ? folder : NULL;
}

static const struct idem__aws_env env = {.get = home_get};
static struct idem__aws_provider *provider;
static const struct idem__aws_credentials *credentials;

static const char *path_of(const char *name)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void begin_source(void)
{
    char config[128];

    strcpy(folder, "/tmp/idem-chain-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(mkdir(path_of(".aws"), 0700), 0);
    (void)snprintf(config, sizeof(config),
                   "[default]\ncredential_process = sh %s/give\n", folder);
    write_file(".aws/config", config);
    write_file("give", "cd \"$(dirname \"$0\")\"; echo x >> runs\n"
                       "test ! -e fail || exit 1\n"
                       "printf '{\"AccessKeyId\":\"A%d\",\"SecretAccessKey\":"
                       "\"s\",\"Expiration\":\"2030-01-01T01:00:00Z\"}' "
                       "\"$(wc -l < runs)\"\n");
    assert_ok(idem__aws_provider_chain(&env, "", &provider, &why));
}

static void end_source(void)
{
    static const char *const names[] = {".aws/config", "give", "runs", "fail"};

    idem__aws_provider_close(provider);
    EACH(name, names) {
        (void)unlink(path_of(*name));
    }
    assert_int_equal(rmdir(path_of(".aws")), 0);
    assert_int_equal(rmdir(folder), 0);
}

static int64_t runs(void)
{
    struct stat st;

    return stat(path_of("runs"), &st) == 0 ? st.st_size / 2 : 0;
}

static int ask(int64_t now_ms)
{
    return provider->get(provider, now_ms, &credentials, &why);
}

/* Asks until there is an answer; waits no longer than half a minute. */
static int await(int64_t now_ms)
{
    int64_t end_ms = idem__mono_ms() + 30000;
    int rc;

    while ((rc = ask(now_ms)) == 1) {
        assert_true(idem__mono_ms() < end_ms);
        (void)usleep(1000);
    }
    return rc;
}

/* Asks until the credentials are those with @key; there are some all the time. */
static void await_key(int64_t now_ms, const char *key)
{
    int64_t end_ms = idem__mono_ms() + 30000;

    do {
        assert_int_equal(ask(now_ms), 0);
        assert_true(idem__mono_ms() < end_ms);
        (void)usleep(1000);
    } while (strcmp(credentials->access_key, key) != 0);
}

/* ---- Tests ------------------------------------------------------------- */

/* Many ask, one fetch answers them all, and until shortly before the end there is
 * no other. Then one is made, and nobody waits for it. */
TEST(chain, renewsBeforeTheEnd)
{
    begin_source();
    assert_int_equal(ask(BEGIN_MS), 1);
    assert_int_equal(ask(BEGIN_MS), 1);
    assert_int_equal(await(BEGIN_MS), 0);
    assert_string_equal(credentials->access_key, "A1");
    assert_int_equal(credentials->expires_ms, END_MS);
    (void)usleep(1100000); /* Fetches are a second apart. */
    assert_int_equal(ask(END_MS - 6 * MINUTE_MS - 1), 0);
    assert_int_equal(ask(END_MS - 6 * MINUTE_MS - 1), 0);
    await_key(END_MS - 5 * MINUTE_MS, "A2");
    assert_int_equal(runs(), 2);
    end_source();
}

/* When a renewal fails, the old ones are used to their end; then the source is
 * asked, and what it says is the error. It may give keys again later. */
TEST(chain, keepsWhatItHas)
{
    int64_t end_ms = idem__mono_ms() + 30000;
    char key[16];
    int rc;
    int i;

    begin_source();
    assert_int_equal(await(BEGIN_MS), 0);
    write_file("fail", "");
    while (runs() < 2) {
        assert_int_equal(ask(END_MS - 5 * MINUTE_MS), 0);
        assert_true(idem__mono_ms() < end_ms);
        (void)usleep(1000);
    }
    (void)usleep(1100000);
    assert_int_equal(ask(END_MS - 1), 0);
    assert_string_equal(credentials->access_key, "A1");
    assert_code(IDEM_EUNAVAILABLE, await(END_MS));
    assert_why("credential_process: sh exited with status 1");
    /* Asked soon it is not run again; a machine that stood still asks too late. */
    rc = ask(END_MS);
    for (i = 0; i < 5 && rc == 1; i++) {
        assert_code(IDEM_EUNAVAILABLE, await(END_MS));
        rc = ask(END_MS);
    }
    assert_code(IDEM_EUNAVAILABLE, rc);
    assert_int_equal(unlink(path_of("fail")), 0);
    (void)usleep(1100000);
    /* What has ended by our clock is used a while: the service decides. */
    assert_int_equal(await(END_MS), 0);
    (void)snprintf(key, sizeof(key), "A%d", (int)runs());
    assert_string_equal(credentials->access_key, key);
    assert_int_equal(ask(END_MS + MINUTE_MS - 1), 0);
    end_source();
}

/* What the service calls expired is fetched anew; not if that was done since. */
TEST(chain, fetchesAnewWhatHasExpired)
{
    begin_source();
    assert_int_equal(await(BEGIN_MS), 0);
    assert_true(provider->expired(provider, credentials->serial));
    assert_int_equal(ask(BEGIN_MS), 1);
    assert_int_equal(await(BEGIN_MS), 0);
    assert_string_equal(credentials->access_key, "A2");
    assert_true(provider->expired(provider, credentials->serial - 1));
    assert_int_equal(ask(BEGIN_MS), 0);
    assert_string_equal(credentials->access_key, "A2");
    assert_int_equal(runs(), 2);
    end_source();
}

/* Without memory it is not opened, and a fetch fails with a code of its own. */
TEST(chain, failsWithoutMemory)
{
    unsigned n;
    int rc = -1;

    begin_source();
    idem__aws_provider_close(provider);
    for (n = 0; rc != 0; n++) {
        provider = NULL;
        heap_fail(n, /* on= */ false);
        rc = idem__aws_provider_chain(&env, "", &provider, &why);
        assert_int_equal(rc, heap_fail_never() ? IDEM_ENOMEM : 0);
        assert_true((rc == 0) == (provider != NULL));
    }
    assert_true(n > 3);
    heap_fail(0, /* on= */ false);
    assert_code(IDEM_ENOMEM, await(BEGIN_MS));
    (void)heap_fail_never();
    (void)usleep(1100000);
    assert_int_equal(await(BEGIN_MS), 0);
    end_source();
}

/* Closing ends a fetch that is under way. */
TEST(chain, closesAtOnce)
{
    int64_t begin_ms = idem__mono_ms();

    begin_source();
    write_file("give", "exec sleep 60\n");
    assert_int_equal(ask(BEGIN_MS), 1);
    (void)usleep(50000);
    end_source();
    assert_true(idem__mono_ms() - begin_ms < 20000);
}
