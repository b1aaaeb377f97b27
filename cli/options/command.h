/* command.h: a command and its options, as rows of tables; the page that --help prints,
 * and the errors of command lines. */
#ifndef IDEM_CLI_OPTIONS_COMMAND_H
#define IDEM_CLI_OPTIONS_COMMAND_H

#include <idem.h>
#include <idem/setting.h>

/* The kind of value that an option takes, and the type that its target points
 * to. */
enum cli_kind {
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char *; must not be empty */
    CLI_ANY_TEXT, /* const char *; may be empty. Both: at most @max bytes
                     where @max is not 0 */
    /* As <idem/setting.h> reads them: */
    CLI_DURATION, /* int64_t, in ms */
    CLI_COUNT,    /* uint64_t */
    CLI_SIZE,     /* uint64_t, in bytes */
    CLI_CHOICE,   /* int: index into @choices */
};

/* One option of a command. A command line that gives it twice, or with an empty or
 * invalid value, or one out of range, is a usage error (64) that names the option and
 * its range. */
struct cli_option {
    const char *name; /* Without the dashes. */
    char letter;      /* 0: none. */
    enum cli_kind kind;
    void *target;
    const char *arg;   /* "KEY"; NULL for a flag. */
    const char *help;  /* One line. */
    const char *group; /* Heads what follows in --help; NULL: nothing new. */
    const struct idem_setting *as; /* The values that every front end takes;
                                      NULL: the members below decide. */
    int64_t min;                   /* Of durations, counts and sizes. */
    int64_t max;                   /* Also of texts, in bytes; 0: no limit. */
    bool or_never;                 /* A duration may be "never". */
    const char *const *choices;    /* NULL-terminated. */
    bool *given; /* May be NULL: set to true when it was given. */
};

/* The row of an option: its name, its argument, what kind of value that is, where it
 * goes, and its help. Rarer members follow by name:
 *
 *     CLI_SWITCH("json", &args.json, "answer in JSON", .letter = 'j'),
 *     CLI_VALUE("exit", "N", CLI_COUNT, &args.exit, "the exit status", .max = 255),
 */
#define CLI_SWITCH(of_name, to, ...)                                           \
    {                                                                          \
        .name = of_name, .kind = CLI_FLAG, .target = (to), .help = __VA_ARGS__ \
    }
#define CLI_VALUE(of_name, of_value, of_kind, to, ...)                         \
    {                                                                          \
        .name = of_name, .arg = of_value, .kind = of_kind, .target = (to),     \
        .help = __VA_ARGS__                                                    \
    }

/* A command: one row of the table in commands.c. */
struct cli_command {
    const char *name;
    const char *summary; /* One line for `idem help`. */
    const char *usage;   /* "idem run [OPTION...] -k KEY -- CMD [ARG...]" */
    const char *const *examples; /* NULL-terminated lines for --help. */
    struct cli_option *options;  /* Ends with a name of NULL. */
    /* @argc and @argv hold the arguments after the options, without "--". */
    int (*run)(const struct cli_command *command, int argc, char **argv);
    bool takes_command; /* A command line follows "--". */
    bool takes_event;   /* And @FILE or - may precede it. */
    bool takes_key;     /* An operand names a record. */
    const char *hint;   /* How the command names an attempt, for the error about
                         an unexpected argument or -k; NULL: none. */
    const char *const *operands; /* NULL-terminated words that may follow the
                                    options; NULL: anything. */
};

/* The commands of the program, in the order of its overview; ends with NULL. */
extern const struct cli_command *const *cli_commands;

/* The command of this name, or NULL. */
const struct cli_command *cli_command_find(const char *name);

/* ---- Help ---------------------------------------------------------------- */

/* Prints the page of `idem CMD --help`. */
void cli_print_help(const struct cli_command *command);

/* Prints "idem 0.1.0". */
void cli_print_version(void);

/* ---- Usage errors -------------------------------------------------------- */

/* Prints the sentence of a usage error, and where to read on. Returns CLI_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for an argument of a command that takes none, with its hint. */
int cli_unexpected(const struct cli_command *command, const char *argument);

#endif
