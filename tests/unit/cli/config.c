/* Configuration files: which lines are taken, and which are refused. */
#include "commands.h"
#include "options/command.h"
#include "options/config.h"
#include "text/exit_status.h"

#include "test.h"

#include <stdlib.h>

/* What idem purge has, in places of ours. */
static struct {
    const char *store;
    int64_t time_ms;
    bool flag;
    uint64_t count;
    bool given;
    const char *key;
} got;

static struct cli_option options[] = {
    {.name = "store", .kind = CLI_TEXT, .target = &got.store, .arg = "URL"},
    {.name = "lease",
     .kind = CLI_DURATION,
     .target = &got.time_ms,
     .arg = "TIME",
     .max = IDEM_DURATION_MAX_MS},
    {.name = "quiet", .kind = CLI_FLAG, .target = &got.flag},
    {.name = "max-attempts",
     .kind = CLI_COUNT,
     .target = &got.count,
     .arg = "N",
     .max = 9,
     .given = &got.given},
    {.name = "key", .kind = CLI_TEXT, .target = &got.key, .arg = "KEY"},
    {.name = NULL},
};

static const struct cli_command command = {.name = "run", .options = options};

static int apply(const char *text, const bool *seen)
{
    static char copy[512];
    static const bool nothing[8];

    cli_commands = cli_all_commands;
    memset(&got, 0, sizeof(got));
    (void)snprintf(copy, sizeof(copy), "%s", text);
    return cli_config_apply_text(&command, seen != NULL ? seen : nothing,
                                 "/etc/idem.conf", copy);
}

TEST(config, setsWhatWasNotGiven)
{
    static const char text[] = "# comment\n"
                               " ; another\n\n"
                               "store = sqlite:/var/lib/a b/idem.db \r\n"
                               "[ run ]\n"
                               "lease=5m\n"
                               "quiet = yes\n"
                               "max-attempts = 3\n"
                               "[begin]\n"
                               "lease = 1h";
    const bool seen[8] = {false, true};

    (void)unsetenv("IDEM_STORE");
    assert_int_equal(apply(text, NULL), 0);
    assert_string_equal(got.store, "sqlite:/var/lib/a b/idem.db");
    assert_int_equal(got.time_ms, 300000);
    assert_true(got.flag);
    assert_int_equal(got.count, 3);
    assert_true(got.given);

    assert_int_equal(apply(text, seen), 0);
    assert_int_equal(got.time_ms, 0); /* It was on the command line. */
    assert_int_equal(got.count, 3);
}

/* The environment is nearer to who calls than a file is. */
TEST(config, yieldsToTheEnvironment)
{
    (void)setenv("IDEM_STORE", "sqlite:x", 1);
    assert_int_equal(apply("store = sqlite:y", NULL), 0);
    assert_null(got.store);
    (void)unsetenv("IDEM_STORE");
}

/* A later line counts more, as a later file does. */
TEST(config, lastLineCounts)
{
    assert_int_equal(apply("[run]\nlease = 1m\nquiet = on\nlease = 2m\n"
                           "quiet = off",
                           NULL),
                     0);
    assert_int_equal(got.time_ms, 120000);
    assert_false(got.flag);
}

/* One operation must not get two identities, nor a wrong line pass. */
TEST(config, refusesWhatItMust)
{
    static const char *const bad[] = {
        "key = a",
        "[run]\nkey = a",
        "[run]\nscope = a",
        "[run]\nfingerprint = none",
        "[run]\nkey-from-args = yes",
        "[run]\ninput = x",
        "[complete]\ntoken = x",
        "[resolve]\nreason = x",
        "nothing = 1",
        "[run]\nlist = 1",
        "[nothing]",
        "[run",
        "[]",
        "lease",
        "= 5",
        "[run]\nlease = 5",
        "[run]\nlease =",
        "[run]\nquiet = maybe",
        "[run]\nmax-attempts = 10",
    };
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        if (apply(bad[i], NULL) != CLI_CONFIG) {
            fail_with("this was taken: %s", bad[i]);
        }
        assert_null(got.key);
    }
    assert_int_equal(apply("[list]\nlimit = 5\n", NULL), 0); /* Another's. */
}
