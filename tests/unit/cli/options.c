/* The options of a command line: what the fuzzer does not look at. */
#include "options/command.h"
#include "options/parse.h"
#include "options/value.h"
#include "text/exit_status.h"

#include "test.h"
#include "threads.h"

static bool flag;

static struct cli_option options[] = {
    {.name = "flag",
     .letter = 'f',
     .kind = CLI_FLAG,
     .target = &flag,
     .help = ""},
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

    flag = false;
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

/* But for an event, where the command line is what handles it. */
TEST(parse, takesAnEventBeforeACommandLine)
{
    command.takes_command = true;
    command.takes_event = true;
    assert_int_equal(parse("test @event.json -f -- cmd -o"), 0);
    assert_int_equal(operands(), 3);
    assert_string_equal(argv[first], "@event.json");
    assert_string_equal(argv[first + 1], "cmd");
    assert_true(flag);
    assert_int_equal(parse("test - -- cmd"), 0);
    assert_int_equal(operands(), 2);
    assert_string_equal(argv[first], "-");
    assert_int_equal(parse("test event.json -- cmd"), CLI_USAGE);
    command.takes_event = false;
    assert_int_equal(parse("test @event.json -- cmd"), CLI_USAGE);
    assert_int_equal(parse("test - -- cmd"), CLI_USAGE);
    command.takes_command = false;
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
                                        "test -f --help --no-such"};
    static const char *const examples[] = {"test", NULL};

    command.examples = examples;
    command.summary = command.usage = "";
    EACH(line, lines) {
        assert_int_equal(child_run(ask_for_help, (void *)(uintptr_t)*line), 0);
    }
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
