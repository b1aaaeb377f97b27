/* The options of a command line, found by the table of its command. */
#include "options/parse.h"

#include "options/command.h"
#include "options/value.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <assert.h>
#include <stdlib.h>

#define OPTIONS_MAX 64

struct parser {
    const struct cli_command *command;
    int argc;
    char **argv;
    int next;     /* The argument to look at next. */
    int operands; /* Found so far; they are argv[1] and what follows. */
    bool seen[OPTIONS_MAX];
};

static struct cli_option *find_by_name(const struct cli_command *command,
                                       const char *name, size_t len)
{
    struct cli_option *o;

    for (o = command->options; o->name != NULL; o++) {
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0) {
            return o;
        }
    }
    return NULL;
}

/* The options that every command takes beside its own. */
static const char *const common_names[] = {"help", "version"};

#define COMMON_LEN (sizeof(common_names) / sizeof(common_names[0]))

/* The options that begin with what was typed. */
struct prefixed {
    const char *name;
    size_t len;
    size_t found;
    const char *first;
    char all[256]; /* ", --max-output, --max-time": all but the first. */
};

static void offer_prefixed(struct prefixed *p, const char *candidate)
{
    size_t used = strlen(p->all);

    if (strncmp(candidate, p->name, p->len) != 0) {
        return;
    }
    if (p->found++ == 0) {
        p->first = candidate;
        return;
    }
    (void)snprintf(p->all + used, sizeof(p->all) - used, ", --%s", candidate);
}

/* The one full name that @name, of @len bytes, is or begins. 0 with NULL if
 * there is none, or a usage error where there are several. */
static int full_name(const struct cli_command *command, const char *name,
                     size_t len, const char **ret_name)
{
    struct prefixed p = {.name = name, .len = len};
    const struct cli_option *o;
    size_t i;

    *ret_name = NULL;
    o = find_by_name(command, name, len);
    if (o != NULL || len == 0) {
        *ret_name = o != NULL ? o->name : NULL;
        return 0;
    }
    for (o = command->options; o->name != NULL; o++) {
        offer_prefixed(&p, o->name);
    }
    for (i = 0; i < COMMON_LEN; i++) {
        if (strlen(common_names[i]) == len &&
            memcmp(common_names[i], name, len) == 0) {
            *ret_name = common_names[i];
            return 0;
        }
        offer_prefixed(&p, common_names[i]);
    }
    if (p.found > 1) {
        return cli_usage(command, "ambiguous option --%.*s (--%s%s)", (int)len,
                         name, p.first, p.all);
    }
    *ret_name = p.first;
    return 0;
}

static struct cli_option *find_by_letter(const struct cli_command *command,
                                         char letter)
{
    struct cli_option *o;

    for (o = command->options; o->name != NULL; o++) {
        if (o->letter == letter) {
            return o;
        }
    }
    return NULL;
}

/* The option that other programs call @word; NULL: @command has none of the kind. */
static const char *by_meaning(const struct cli_command *command,
                              const char *word)
{
    static const char *const words[][2] = {
        {"retries", "max-failures"},    {"max-retries", "max-failures"},
        {"timeout", "max-time"},        {"backoff", "retry-after"},
        {"retry-delay", "retry-after"}, {"ttl", "retention"},
    };
    const struct cli_option *o;
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (o = command->options; o->name != NULL; o++) {
            if (strcmp(words[i][0], word) == 0 &&
                strcmp(words[i][1], o->name) == 0) {
                return o->name;
            }
        }
    }
    return NULL;
}

static int refuse_unknown(const struct cli_command *command, const char *name,
                          size_t len)
{
    char shown[128];
    struct cli_nearest nearest = {
        .word = cli_escape(idem_bytes(name, len), shown, sizeof(shown))};
    bool is_key = strcmp(shown, "key") == 0;
    bool hints = is_key && command->hint != NULL;
    const struct cli_option *o;

    for (o = command->options; o->name != NULL; o++) {
        cli_nearest_offer(&nearest, o->name);
    }
    if (by_meaning(command, shown) != NULL) {
        nearest.best = by_meaning(command, shown);
    }
    if (nearest.best == NULL || is_key) {
        return cli_usage(command, "unknown option --%s%s%s", shown,
                         hints ? "; " : "", hints ? command->hint : "");
    }
    return cli_usage(command, "unknown option --%s; did you mean --%s?", shown,
                     nearest.best);
}

/* Notes that @option was met. */
static int meet(struct parser *p, const struct cli_option *option)
{
    size_t i = (size_t)(option - p->command->options);

    assert(i < OPTIONS_MAX);
    if (p->seen[i]) {
        return cli_usage(p->command, "--%s is given twice", option->name);
    }
    p->seen[i] = true;
    if (option->given != NULL) {
        *option->given = true;
    }
    return 0;
}

static int set_flag(struct parser *p, const struct cli_option *option)
{
    *(bool *)option->target = true;
    return meet(p, option);
}

/* @value is the text joined to the option; NULL: the next argument is the value. "--" is
 * never the value: it follows an option whose value the user forgot. */
static int set_valued(struct parser *p, const struct cli_option *option,
                      const char *value)
{
    int status = meet(p, option);

    if (status != 0) {
        return status;
    }
    if (value == NULL) {
        if (p->next >= p->argc || strcmp(p->argv[p->next], "--") == 0) {
            return cli_usage(p->command, "--%s: %s is missing", option->name,
                             option->arg);
        }
        value = p->argv[p->next++];
    }
    return cli_set_value(p->command, option, value);
}

static _Noreturn void help_and_exit(const struct cli_command *command)
{
    cli_print_help(command);
    exit(cli_finish_output(CLI_OK));
}

static _Noreturn void version_and_exit(void)
{
    cli_print_version();
    exit(cli_finish_output(CLI_OK));
}

/* --name, --name=VALUE or --name VALUE; the name as short as it is unique. */
static int parse_long(struct parser *p, const char *arg)
{
    const char *name = arg + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *option;
    const char *full;
    int status = full_name(p->command, name, len, &full);

    if (status != 0) {
        return status;
    }
    if (full == NULL) {
        return refuse_unknown(p->command, name, len);
    }
    option = find_by_name(p->command, full, strlen(full));
    if (option == NULL && equals != NULL) {
        return cli_usage(p->command, "--%s takes no value", full);
    }
    if (option == NULL && strcmp(full, "help") == 0) {
        help_and_exit(p->command);
    }
    if (option == NULL) {
        version_and_exit();
    }
    if (option->kind != CLI_FLAG) {
        return set_valued(p, option, equals != NULL ? equals + 1 : NULL);
    }
    if (equals != NULL) {
        return cli_usage(p->command, "--%s takes no value", option->name);
    }
    return set_flag(p, option);
}

/* -a, -ab, -kVALUE or -k VALUE. */
static int parse_letters(struct parser *p, const char *arg)
{
    const char *letter;
    char shown[16];

    for (letter = arg + 1; *letter != '\0'; letter++) {
        const struct cli_option *option = find_by_letter(p->command, *letter);
        int status;

        if (option == NULL && *letter == 'h') {
            help_and_exit(p->command);
        }
        if (option == NULL && *letter == 'V') {
            version_and_exit();
        }
        if (option == NULL) {
            bool hints = *letter == 'k' && p->command->hint != NULL;

            return cli_usage(p->command, "unknown option -%s%s%s",
                             cli_escape(idem_bytes(letter, 1), shown,
                                        sizeof(shown)),
                             hints ? "; " : "", hints ? p->command->hint : "");
        }
        if (option->kind != CLI_FLAG) {
            return set_valued(p, option, letter[1] != '\0' ? letter + 1 : NULL);
        }
        status = set_flag(p, option);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static bool is_event(const char *arg)
{
    return arg[0] == '@' || strcmp(arg, "-") == 0;
}

/* True if a "--" is yet to come. */
static bool has_command(const struct parser *p)
{
    int i;

    for (i = p->next; i < p->argc; i++) {
        if (strcmp(p->argv[i], "--") == 0) {
            return true;
        }
    }
    return false;
}

static int keep_operand(struct parser *p, char *arg)
{
    char shown[128];

    if (p->command->takes_command &&
        !(p->command->takes_event && is_event(arg))) {
        return has_command(p)
                   ? cli_unexpected(p->command, arg)
                   : cli_usage(p->command, "put -- before the command: -- %s",
                               cli_escape(idem_str(arg), shown, sizeof(shown)));
    }
    p->argv[++p->operands] = arg;
    return 0;
}

static int parse_one(struct parser *p, char *arg)
{
    if (arg[0] != '-' || arg[1] == '\0') {
        return keep_operand(p, arg);
    }
    return arg[1] == '-' ? parse_long(p, arg) : parse_letters(p, arg);
}

/* Operands are gathered at the front, in places that were read already, and
 * moved to the end once it is known how many there are. */
int cli_parse(const struct cli_command *command, int argc, char **argv,
              int *ret_first)
{
    struct parser p = {.command = command,
                       .argc = argc,
                       .argv = argv,
                       .next = 1};
    int first;

    while (p.next < argc) {
        char *arg = argv[p.next++];
        int status;

        if (strcmp(arg, "--") == 0) {
            break;
        }
        status = parse_one(&p, arg);
        if (status != 0) {
            return status;
        }
    }
    first = p.next - p.operands;
    memmove(&argv[first], &argv[1], (size_t)p.operands * sizeof(*argv));
    *ret_first = first;
    return 0;
}
