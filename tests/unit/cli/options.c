/* The options of a command line: forms, kinds and limits. */
#include "options/command.h"
#include "options/parse.h"
#include "options/value.h"
#include "text/exit_status.h"

#include "test.h"
#include "threads.h"

static struct {
    bool flag;
    bool other;
    const char *text;
    const char *any;
    int64_t time_ms;
    int64_t limit_ms;
    uint64_t count;
    uint64_t size;
    int choice;
    bool count_given;
} got;

static const char *const choices[] = {"hold", "rerun", NULL};

static struct cli_option options[] = {
    {.name = "flag", .letter = 'f', .kind = CLI_FLAG, .target = &got.flag},
    {.name = "other", .letter = 'o', .kind = CLI_FLAG, .target = &got.other},
    {.name = "text",
     .letter = 't',
     .kind = CLI_TEXT,
     .target = &got.text,
     .arg = "TEXT",
     .max = 5},
    {.name = "any", .kind = CLI_ANY_TEXT, .target = &got.any, .arg = "TEXT"},
    {.name = "time",
     .kind = CLI_DURATION,
     .target = &got.time_ms,
     .arg = "TIME",
     .min = 2000,
     .or_never = true,
     .max = IDEM_DURATION_MAX_MS},
    {.name = "limit",
     .kind = CLI_DURATION,
     .target = &got.limit_ms,
     .arg = "TIME",
     .max = 10000},
    {.name = "count",
     .kind = CLI_COUNT,
     .target = &got.count,
     .arg = "N",
     .min = 1,
     .max = 100,
     .given = &got.count_given},
    {.name = "size",
     .kind = CLI_SIZE,
     .target = &got.size,
     .arg = "SIZE",
     .max = INT64_MAX},
    {.name = "choice",
     .kind = CLI_CHOICE,
     .target = &got.choice,
     .arg = "RULE",
     .choices = choices},
    {.name = NULL},
};

static struct cli_command command = {.name = "test", .options = options};

#define ARGS_MAX 16

static char *argv[ARGS_MAX + 1];
static int argc;
static int first;

/* Parses the words of @line; the test may change them. */
static int parse(const char *line)
{
    static char words[256];
    char *save = NULL;
    char *word;

    memset(&got, 0, sizeof(got));
    assert_true(strlen(line) < sizeof(words));
    strcpy(words, line);
    argc = 0;
    for (word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return cli_parse(&command, argc, argv, &first);
}

static int operands(void)
{
    return argc - first;
}

/* A value is joined or the next word; letters may stand together. */
TEST(parse, takesEveryForm)
{
    static const char *const lines[] = {
        "test -t abc -f -o",     "test -tabc -fo",
        "test --text abc -f -o", "test --text=abc --flag --other",
        "test -oftabc",          "test -oft abc",
        "test -f -t abc -o --",
    };

    EACH(line, lines) {
        assert_int_equal(parse(*line), 0);
        assert_true(got.flag && got.other);
        assert_string_equal(got.text, "abc");
        assert_int_equal(operands(), 0);
    }
}

/* Operands keep their order wherever they stand, and "--" ends the options. */
TEST(parse, gathersOperands)
{
    assert_int_equal(parse("test a -f b --text c d -- -o --"), 0);
    assert_int_equal(operands(), 5);
    assert_string_equal(argv[first], "a");
    assert_string_equal(argv[first + 1], "b");
    assert_string_equal(argv[first + 2], "d");
    assert_string_equal(argv[first + 3], "-o");
    assert_string_equal(argv[first + 4], "--");
    assert_false(got.other);
    assert_int_equal(parse("test - -f"), 0);
    assert_int_equal(operands(), 1);
    assert_string_equal(argv[first], "-");
}

/* A command line must stand behind "--", and is left as it is. */
TEST(parse, wantsDashesBeforeACommandLine)
{
    command.takes_command = true;
    assert_int_equal(parse("test -f cmd -o"), CLI_USAGE);
    assert_int_equal(parse("test -f -- cmd -o --"), 0);
    assert_int_equal(operands(), 3);
    assert_string_equal(argv[first], "cmd");
    assert_string_equal(argv[first + 2], "--");
    assert_false(got.other);
    command.takes_command = false;
}

/* But for an event, where the command line is what handles it. */
TEST(parse, takesAnEventBeforeACommandLine)
{
    command.takes_command = true;
    command.takes_event = true;
    assert_int_equal(parse("test @event.json -f -- cmd -o"), 0);
    assert_int_equal(operands(), 3);
    assert_string_equal(argv[first], "@event.json");
    assert_string_equal(argv[first + 1], "cmd");
    assert_true(got.flag);
    assert_int_equal(parse("test - -- cmd"), 0);
    assert_int_equal(operands(), 2);
    assert_string_equal(argv[first], "-");
    assert_int_equal(parse("test event.json -- cmd"), CLI_USAGE);
    command.takes_event = false;
    assert_int_equal(parse("test @event.json -- cmd"), CLI_USAGE);
    assert_int_equal(parse("test - -- cmd"), CLI_USAGE);
    command.takes_command = false;
}

static void check_refused(const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        if (parse(*lines) != CLI_USAGE) {
            fail_with("this was taken: %s", *lines);
        }
    }
}

TEST(parse, refusesWhatItDoesNotKnow)
{
    static const char *const lines[] = {"test -x",         "test -fx",
                                        "test --texx abc", "test ---flag",
                                        "test --flag=on",  "test --flag=",
                                        "test --=x",       NULL};

    check_refused(lines);
    assert_int_equal(parse("test --"), 0);
}

/* At a terminal, a name may be as short as it is unique. */
TEST(parse, takesUniqueBeginnings)
{
    assert_int_equal(parse("test --te abc --fl --si=4k"), 0);
    assert_string_equal(got.text, "abc");
    assert_true(got.flag);
    assert_int_equal(got.size, 4096);

    assert_int_equal(parse("test --c 5"), CLI_USAGE); /* choice, count */
    assert_int_equal(parse("test --t 5"), CLI_USAGE); /* text, time */
    assert_int_equal(parse("test --te a --text b"), CLI_USAGE);
    assert_int_equal(parse("test --f=1"), CLI_USAGE);
    assert_int_equal(parse("test --hel=1"), CLI_USAGE);
}

TEST(parse, refusesAnOptionTwice)
{
    static const char *const lines[] = {"test -f -f", "test -ff",
                                        "test -t a --text b", "test -t a -t a",
                                        NULL};

    check_refused(lines);
}

TEST(parse, refusesAMissingValue)
{
    static const char *const lines[] = {"test -t",    "test --text",
                                        "test -t --", "test --count",
                                        "test -ft",   NULL};

    check_refused(lines);
}

static int ask_for_help(void *ctx)
{
    if (freopen("/dev/null", "w", stdout) == NULL) {
        return 8;
    }
    (void)parse(ctx);
    return 9; /* It came back. */
}

/* Whoever asks for help gets it, wherever the question stands, and no more. */
TEST(parse, endsWithHelp)
{
    static const char *const lines[] = {"test --help",
                                        "test -h",
                                        "test -fh",
                                        "test --he",
                                        "test --version",
                                        "test -V",
                                        "test -f --help --no-such",
                                        NULL};
    static const char *const examples[] = {"test", NULL};
    struct cli_option *o;
    int i;

    command.examples = examples;
    command.summary = command.usage = "";
    for (o = options; o->name != NULL; o++) {
        o->help = "";
    }
    for (i = 0; lines[i] != NULL; i++) {
        assert_int_equal(child_run(ask_for_help, (void *)(uintptr_t)lines[i]),
                         0);
    }
}

TEST(text, hasLimits)
{
    static const char *const bad[] = {"test --text=", "test --text=123456",
                                      NULL};

    check_refused(bad);
    assert_int_equal(parse("test --text=12345"), 0);
    assert_int_equal(parse("test --any="), 0);
    assert_string_equal(got.any, "");
    assert_int_equal(parse("test --any --flag"), 0);
    assert_string_equal(got.any, "--flag");
}

/* A number and a unit, both of which must be there. */
TEST(duration, isANumberAndAUnit)
{
    static const struct {
        const char *line;
        int64_t want_ms;
    } rows[] = {{"test --time 2000ms", 2000},
                {"test --time 2s", 2000},
                {"test --time 5m", 300000},
                {"test --time 2h", 7200000},
                {"test --time 7d", 604800000},
                {"test --time never", IDEM_NEVER},
                {"test --time 0002s", 2000},
                {"test --time 36525d", IDEM_DURATION_MAX_MS}};

    EACH(row, rows) {
        assert_int_equal(parse(row->line), 0);
        assert_true(got.time_ms == row->want_ms);
    }
}

/* A time that must end is no "never". */
TEST(duration, mayHaveToEnd)
{
    static const char *const bad[] = {"test --limit never", "test --limit 11s",
                                      NULL};

    check_refused(bad);
    assert_int_equal(parse("test --limit 0s"), 0);
    assert_int_equal(got.limit_ms, 0);
}

TEST(duration, refusesAllElse)
{
    static const char *const bad[] = {"test --time 1999ms",
                                      "test --time 0s",
                                      "test --time -5s",
                                      "test --time 5",
                                      "test --time s",
                                      "test --time 1e9",
                                      "test --time 1.5h",
                                      "test --time +5s",
                                      "test --time 5S",
                                      "test --time 36526d",
                                      "test --time 99999999999999999999s",
                                      "test --time 9223372036854775807d",
                                      "test --time=",
                                      "test --time Never",
                                      "test --time 5sec",
                                      NULL};

    check_refused(bad);
}

TEST(count, isInRange)
{
    static const char *const bad[] = {"test --count 0",
                                      "test --count 101",
                                      "test --count -1",
                                      "test --count 1k",
                                      "test --count 0x1",
                                      "test --count 18446744073709551617",
                                      "test --count 1.0",
                                      "test --count=",
                                      NULL};

    check_refused(bad);
    assert_int_equal(parse("test --count 100"), 0);
    assert_int_equal(got.count, 100);
    assert_true(got.count_given);
    assert_int_equal(parse("test -f"), 0);
    assert_false(got.count_given);
}

TEST(size, hasUnitsOf1024)
{
    static const char *const bad[] = {"test --size 1t", "test --size 1kB",
                                      "test --size 17179869184G", NULL};

    check_refused(bad);
    assert_int_equal(parse("test --size 512"), 0);
    assert_int_equal(got.size, 512);
    assert_int_equal(parse("test --size 64k"), 0);
    assert_int_equal(got.size, 65536);
    assert_int_equal(parse("test --size 8M"), 0);
    assert_int_equal(got.size, 8 << 20);
    assert_int_equal(parse("test --size 1G"), 0);
    assert_int_equal(got.size, 1 << 30);
}

TEST(choice, isOneOfItsWords)
{
    static const char *const bad[] = {"test --choice re", "test --choice Hold",
                                      "test --choice=", NULL};

    check_refused(bad);
    assert_int_equal(parse("test --choice rerun"), 0);
    assert_int_equal(got.choice, 1);
}

/* Of --status: names with commas between, each one of a record. */
TEST(statuses, areNamesWithCommasBetween)
{
    unsigned bits = 1;

    assert_int_equal(cli_statuses(&command, NULL, &bits), 0);
    assert_int_equal(bits, 0);
    assert_int_equal(cli_statuses(&command, "failed,in_progress", &bits), 0);
    assert_int_equal(bits,
                     1 << IDEM_STATUS_FAILED | 1 << IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(cli_statuses(&command, "failed,", &bits), CLI_USAGE);
    assert_int_equal(cli_statuses(&command, "failee", &bits), CLI_USAGE);
}
