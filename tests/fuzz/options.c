/* Command lines. A second reader of them, which knows no more than the table of
 * options, sorts every argument into options, values and operands: the parser must
 * come to the same, set what was given and nothing else, and lose no argument.
 * The tables of the real commands are read too.
 */
#include "commands.h"
#include "fuzz.h"
#include "options/command.h"
#include "options/parse.h"
#include "text/exit_status.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARGS_MAX = 24
};

/* What --help would do. */
void __real_exit(int status);
void __wrap_exit(int status);

static jmp_buf at_exit;
static bool may_exit;

void __wrap_exit(int status)
{
    if (!may_exit) {
        __real_exit(status);
    }
    longjmp(at_exit, 1);
}

static struct values {
    bool all;
    bool quiet;
    const char *key;
    const char *note;
    bool note_given;
    uint64_t keep;
} got;

#define OF(member) .help = "", .target = &got.member

static struct cli_option table[] = {
    {.name = "all", .letter = 'a', .kind = CLI_FLAG, OF(all)},
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, OF(quiet)},
    {.name = "key", .letter = 'k', .kind = CLI_TEXT, .arg = "KEY", OF(key)},
    {.name = "note",
     .letter = 'n',
     .kind = CLI_ANY_TEXT,
     .arg = "TEXT",
     OF(note),
     .given = &got.note_given},
    {.name = "keep", .kind = CLI_COUNT, .arg = "N", OF(keep), .max = 99},
    {.name = NULL},
};

enum {
    ALL,
    QUIET,
    KEY,
    NOTE,
    KEEP,
    OPTIONS
};

/* ---- The second reader ---- */

struct reading {
    bool bad;
    bool help;
    bool seen[OPTIONS];
    const char *values[OPTIONS];
    const char *operands[ARGS_MAX];
    int operands_len;
};

static void meet(struct reading *r, int option, const char *value)
{
    r->bad = r->bad || r->seen[option];
    r->seen[option] = true;
    r->values[option] = value;
    if (option == KEY) {
        r->bad = r->bad || *value == '\0';
    }
    if (option == KEEP) {
        r->bad = r->bad || value[strspn(value, "0123456789")] != '\0' ||
                 *value == '\0' || strtod(value, NULL) > 99;
    }
}

static bool is_flag(int option)
{
    return option == ALL || option == QUIET;
}

/* The next argument as a value, or NULL. */
static const char *next_value(char **argv, int argc, int *at)
{
    if (*at >= argc || strcmp(argv[*at], "--") == 0) {
        return NULL;
    }
    return argv[(*at)++];
}

/* The option that @name of @len bytes means: its whole name, or the start of one
 * only. OPTIONS: help or version. -1: none, or more than one. */
static int option_of(const char *name, size_t len)
{
    static const char *const common[] = {"help", "version"};
    int found = -1;
    int fits = 0;
    int i;

    for (i = 0; i < OPTIONS + 2; i++) {
        const char *whole = i < OPTIONS ? table[i].name : common[i - OPTIONS];

        if (strncmp(whole, name, len) != 0) {
            continue;
        }
        if (strlen(whole) == len) {
            return i < OPTIONS ? i : OPTIONS;
        }
        found = i < OPTIONS ? i : OPTIONS;
        fits++;
    }
    return fits == 1 ? found : -1;
}

static void read_long(struct reading *r, char **argv, int argc, int *at)
{
    const char *name = argv[*at - 1] + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    int i;

    i = option_of(name, len);
    if (i < 0 || i == OPTIONS) {
        r->help = i == OPTIONS && value == NULL;
        r->bad = r->bad || !r->help;
        return;
    }
    if (is_flag(i)) {
        r->bad = r->bad || value != NULL;
        meet(r, i, "");
        return;
    }
    value = value != NULL ? value : next_value(argv, argc, at);
    if (value == NULL) {
        r->bad = true;
    } else {
        meet(r, i, value);
    }
}

static void read_letters(struct reading *r, char **argv, int argc, int *at)
{
    const char *letters = argv[*at - 1] + 1;

    for (; *letters != '\0' && !r->bad && !r->help; letters++) {
        const char *which = strchr("aqkn", *letters);

        if (which == NULL) {
            r->help = *letters == 'h' || *letters == 'V';
            r->bad = !r->help;
        } else if (*which == 'a' || *which == 'q') {
            meet(r, *which == 'a' ? ALL : QUIET, "");
        } else {
            const char *value =
                letters[1] != '\0' ? letters + 1 : next_value(argv, argc, at);

            if (value == NULL) {
                r->bad = true;
            } else {
                meet(r, *which == 'k' ? KEY : NOTE, value);
            }
            return;
        }
    }
}

static void read_all(struct reading *r, bool takes_command, char **argv,
                     int argc)
{
    int at = 1;

    memset(r, 0, sizeof(*r));
    while (at < argc && !r->bad && !r->help) {
        const char *arg = argv[at++];

        if (strcmp(arg, "--") == 0) {
            break;
        }
        if (arg[0] != '-' || arg[1] == '\0') {
            r->bad = r->bad || takes_command;
            r->operands[r->operands_len++] = arg;
        } else if (arg[1] == '-') {
            read_long(r, argv, argc, &at);
        } else {
            read_letters(r, argv, argc, &at);
        }
    }
    while (at < argc) {
        r->operands[r->operands_len++] = argv[at++];
    }
}

/* ---- Comparing ---- */

/* 0, CLI_USAGE, or -1: it would have shown its help. */
static int parse(const struct cli_command *command, int argc, char **argv,
                 int *ret_first)
{
    int rc = -1;

    may_exit = true;
    if (setjmp(at_exit) == 0) {
        rc = cli_parse(command, argc, argv, ret_first);
    }
    may_exit = false;
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void compare(bool takes_command, int argc, char **argv)
{
    static const char *const examples[] = {NULL};
    struct cli_command command = {.name = "fuzz",
                                  .usage = "idem fuzz",
                                  .summary = "",
                                  .examples = examples,
                                  .options = table};
    struct reading r;
    int first = 0;
    int rc;
    int i;

    memset(&got, 0, sizeof(got));
    command.takes_command = takes_command;
    read_all(&r, takes_command, argv, argc);
    rc = parse(&command, argc, argv, &first);
    must(rc == (r.bad ? CLI_USAGE : r.help ? -1 : 0));
    if (rc != 0) {
        return;
    }
    must(got.all == r.seen[ALL] && got.quiet == r.seen[QUIET]);
    must(same_text(got.key, r.values[KEY]));
    must(same_text(got.note, r.values[NOTE]));
    must(got.note_given == r.seen[NOTE]);
    must(got.keep == (r.seen[KEEP] ? strtoull(r.values[KEEP], NULL, 10) : 0));
    must(argc - first == r.operands_len);
    for (i = 0; i < r.operands_len; i++) {
        must(strcmp(argv[first + i], r.operands[i]) == 0);
    }
}

static void real_command(struct tape *tape, int argc, char **argv)
{
    unsigned len = 0;
    int first = 0;
    int rc;

    while (cli_all_commands[len] != NULL) {
        len++;
    }
    rc = parse(cli_all_commands[take_up_to(tape, len - 1)], argc, argv, &first);
    must(rc == 0 || rc == CLI_USAGE || rc == -1);
    must(rc != 0 || (first >= 1 && first <= argc));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_hush();
    stdout = fopen("/dev/null", "we");
    return 0;
}

/* Arguments are the lines of what is left. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct tape which = tape;
    unsigned how = take_up_to(&tape, 2);
    char name[] = "fuzz";
    char *argv[ARGS_MAX + 1] = {name};
    char *text = text_of(take_rest(&tape));
    char *rest = text;
    int argc = 1;

    while (argc < ARGS_MAX && (argv[argc] = strsep(&rest, "\n")) != NULL) {
        argc++;
    }
    argv[argc] = NULL;
    if (how == 2) {
        real_command(&which, argc, argv);
    } else {
        compare(how == 1, argc, argv);
    }
    free(text);
    return 0;
}
