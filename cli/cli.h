/* cli.h: what all commands share: their table, their options, their exits. */
#ifndef IDEM_CLI_CLI_H
#define IDEM_CLI_CLI_H

#include <idem.h>
#include <idem/form.h>
#include <stdio.h>

/* Exit statuses; docs/man: "EXIT STATUS" of idem(1). */
enum cli_exit {
    CLI_OK = 0,
    CLI_NO_RECORD = 1,     /* The key has no record. */
    CLI_OUTPUT_FAILED = 2, /* The answer could not be written to stdout. */
    CLI_REPLAY = 10,       /* idem begin only. */
    CLI_USAGE = 64,
    CLI_MISMATCH = 65,
    CLI_UNAVAILABLE = 69,
    CLI_INTERNAL = 70,
    CLI_FULL = 73,
    CLI_CORRUPT = 74,
    CLI_BUSY = 75,
    CLI_UNKNOWN = 76,
    CLI_DENIED = 77,
    CLI_CONFIG = 78,
    CLI_FAILED = 79,
    CLI_NOT_RECORDED = 80,
    CLI_OUTPUT_LOST = 81, /* idem run: on record, but not passed on. */
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127,
};

/* A minimum for a duration that may also be "never". */
#define CLI_OR_NEVER(min) (-(int64_t)(min))

/* The kind of value that an option takes, and the type that its target points
 * to. */
enum cli_kind {
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char *; must not be empty */
    CLI_ANY_TEXT, /* const char *; may be empty. Both: at most @max bytes
                     where @max is not 0 */
    CLI_DURATION, /* int64_t, ms: 500ms, 30s, 5m, 2h, 7d; where @min is
                     CLI_OR_NEVER(n), from n, or "never": IDEM_NEVER */
    CLI_COUNT,    /* uint64_t, decimal */
    CLI_SIZE,     /* uint64_t, bytes: 512, 64k, 8M, 1G (powers of 1024) */
    CLI_CHOICE,   /* int: index into @choices */
    CLI_CODES,    /* struct cli_codes: exit statuses "75,111-113" */
};

struct cli_codes {
    bool has[256];
};

/* One option of a command. Giving it twice, an empty or bad value, or one out
 * of range is a usage error (64) that names the option and its range. */
struct cli_option {
    const char *name; /* Without the dashes. */
    char letter;      /* 0: none. */
    enum cli_kind kind;
    void *target;
    const char *arg;  /* "KEY"; NULL for a flag. */
    const char *help; /* One line. */
    int64_t min;      /* For durations, counts and sizes. */
    int64_t max;
    const char *const *choices; /* NULL-terminated. */
    bool *given; /* May be NULL: set to true when it was given. */
};

/* A command: one row of the table in commands.c. */
struct cli_command {
    const char *name;
    const char *summary; /* One line for `idem help`. */
    const char *usage;   /* "idem run [OPTION...] -k KEY -- CMD [ARG...]" */
    const char *const *examples; /* NULL-terminated lines for --help. */
    struct cli_option *options;  /* Ends with a name of NULL. */
    /* @argc and @argv: what follows the options ("--" removed). */
    int (*run)(const struct cli_command *command, int argc, char **argv);
    bool takes_command; /* A command line follows "--". */
    bool takes_event;   /* And @FILE or - may precede it. */
    bool takes_key;     /* An operand names a record. */
    const char *hint;   /* How an attempt is named, for an argument or a -k that
                         is not taken; NULL: nothing to say. */
    const char *const *operands; /* NULL-terminated words that may follow the
                                    options; NULL: anything. */
};

extern const struct cli_command *const cli_commands[]; /* Ends with NULL. */

/* One const struct cli_command per cmd_*.c (cli_run in run/). */
extern const struct cli_command cli_run, cli_begin, cli_complete, cli_fail,
    cli_release, cli_retry, cli_unknown, cli_renew, cli_show, cli_list,
    cli_resolve, cli_reopen, cli_stats, cli_watch, cli_doctor, cli_top, cli_ui,
    cli_reconcile, cli_store, cli_export, cli_import, cli_purge, cli_limit,
    cli_key, cli_gateway, cli_lambda, cli_consume, cli_stepfunctions,
    cli_completion;

/* Parses the options of @command. @argv[0] is the command's name; on success
 * its operands are @argv[*@ret_first] to the end, moved after the options ("--"
 * removed). Where a command line is taken, it must follow "--". 0, or CLI_USAGE
 * after saying why on stderr; -h/--help prints the page to stdout and exits
 * 0. */
int cli_parse(const struct cli_command *command, int argc, char **argv,
              int *ret_first);

/* Messages go to syslog too from here on, a line at a time, as @tag, which must
 * stay. */
void cli_say_to_syslog(const char *tag);

/* "idem: " + the sentence + newline on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A usage error: the sentence, then where to read on. Returns CLI_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A usage error for the first argument of a command that takes none, with its
 * hint. */
int cli_unexpected(const struct cli_command *command, const char *argument);

/* The exit status of an error: one switch for all commands. */
int cli_exit_of(int code);

/* Says the sentence of @error and returns its exit status. */
int cli_fail_with(const struct idem_error *error);

/* The same; of a store that is away it adds @undone, for example "nothing was
 * run". */
int cli_fail_before(const char *undone, const struct idem_error *error);

/* --no-create was given. */
extern bool cli_no_create;

/* Opens the store of --store, else $IDEM_STORE, else the default path
 * ($XDG_STATE_HOME/idem/idem.db, ~/.local/state/idem/idem.db, root:
 * /var/lib/idem/idem.db), whose directory it makes (0700). @flags as in
 * idem_open_options. Returns 0 or an exit status, after saying why. */
int cli_open_store(const char *store_url, unsigned flags,
                   struct idem_store **ret_store);

/* Of @flags, for verbs of operators that write: they wait for a store far away for
 * three seconds, as those do that only read. */
#define CLI_OPEN_FOR_PERSON (1U << 30)

/* The same for a caller that has its own @host (may be NULL). */
int cli_open_store_as(const char *store_url, unsigned flags,
                      const struct idem_host *host,
                      struct idem_store **ret_store);

/* The same for a caller that waits up to *@wait_ms for another's attempt: it waits as
 * long where others keep the store busy, in place of the usual time, if that is
 * shorter. *@wait_ms is what is left of it then; 0 stays 0. */
int cli_open_store_to_wait(const char *store_url, unsigned flags,
                           const struct idem_host *host, int64_t *wait_ms,
                           struct idem_store **ret_store);

/* Whether @store, which is to be written in bulk, is there: asked for as long as a
 * person waits, where each record may then take its time. 0 or an exit status,
 * after saying why. */
int cli_store_ask(struct idem_store *store);

/* The URL that cli_open_store() opens; the caller frees it. The directory of
 * the default store is made only if @make. 0 or an exit status, after saying
 * why. */
int cli_store_url(const char *store_url, bool make, char **ret_url);

/* The statuses of "failed,unknown" as in idem_filter; all (0) of NULL. 0 or a
 * usage error. */
int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses);

/* "HOST/PID" with the process @pid, or what --owner or $IDEM_OWNER says. */
void cli_owner(const char *given, long pid, char buf[IDEM_OWNER_MAX + 1]);

/* The person who decides: "USER@HOST", or what --who or $IDEM_OWNER says. */
void cli_who(const char *given, char buf[IDEM_OWNER_MAX + 1]);

/* Reads @spec: "-" is stdin, "@FILE" a file, else (where @text_ok) the text
 * itself. At most @max bytes. The caller frees *@ret_data. 0 or an exit status,
 * after saying why. */
int cli_read_arg(const char *option, const char *spec, bool text_ok, size_t max,
                 char **ret_data, size_t *ret_len);

/* The same, but more than @max bytes are not an error: *@ret_len is more than
 * @max then, and the rest was not read. */
int cli_read_some(const char *option, const char *spec, bool text_ok,
                  size_t max, char **ret_data, size_t *ret_len);

/* ---- Options that several commands have -------------------------------- */

/* Two options: the second is that of cli_open_store(), whoever calls it. */
#define CLI_OPTION_STORE(to)                                                   \
    {.name = "store",                                                          \
     .kind = CLI_TEXT,                                                         \
     .target = (to),                                                           \
     .arg = "URL",                                                             \
     .help = "where the records are (default: $IDEM_STORE)"},                  \
    {                                                                          \
        .name = "no-create", .kind = CLI_FLAG, .target = &cli_no_create,       \
        .help = "fail if the store does not exist, and make none"              \
    }

#define CLI_OPTION_SCOPE(to)                                                   \
    {                                                                          \
        .name = "scope", .letter = 's', .kind = CLI_ANY_TEXT, .target = (to),  \
        .arg = "SCOPE", .max = IDEM_SCOPE_MAX,                                 \
        .help = "the tenant of the key (default: $IDEM_SCOPE)"                 \
    }

#define CLI_OPTION_KEY_FILE(to)                                                \
    {                                                                          \
        .name = "key-file", .kind = CLI_TEXT, .target = (to), .arg = "FILE",   \
        .help = "read the key from FILE (one newline is cut)"                  \
    }

#define CLI_OPTION_KEY_FROM(to)                                                \
    {                                                                          \
        .name = "key-from", .kind = CLI_TEXT, .target = (to), .arg = "JQ",     \
        .help = "select the key from the input, as a jq program"               \
    }

#define CLI_OPTION_FINGERPRINT_FROM(to)                                        \
    {                                                                          \
        .name = "fingerprint-from", .kind = CLI_TEXT, .target = (to),          \
        .arg = "JQ", .help = "compare only what this jq program selects of it" \
    }

#define CLI_OPTION_JSON(to)                                                    \
    {                                                                          \
        .name = "json", .letter = 'j', .kind = CLI_FLAG, .target = (to),       \
        .help = "answer in JSON"                                               \
    }

/* Messages that idem run and idem consume share. */
#define CLI_OPTION_MAX_TIME(to)                                                \
    {                                                                          \
        .name = "max-time", .kind = CLI_DURATION, .target = (to),              \
        .arg = "TIME", .min = 1, .max = IDEM_DURATION_MAX_MS,                  \
        .help = "stop the command after this long"                             \
    }

#define CLI_OPTION_KILL_AFTER(to)                                              \
    {                                                                          \
        .name = "kill-after", .kind = CLI_DURATION, .target = (to),            \
        .arg = "TIME", .max = IDEM_DURATION_MAX_MS,                            \
        .help = "from SIGTERM to SIGKILL for what must stop (5s)"              \
    }

#define CLI_OPTION_VERBOSE(to)                                                 \
    {                                                                          \
        .name = "verbose", .letter = 'v', .kind = CLI_FLAG, .target = (to),    \
        .help = "say more on stderr"                                           \
    }

#define CLI_OPTION_QUIET(to)                                                   \
    {                                                                          \
        .name = "quiet", .letter = 'q', .kind = CLI_FLAG, .target = (to),      \
        .help = "say nothing but errors"                                       \
    }

/* ---- Output ------------------------------------------------------------ */

/* True if stderr is a terminal. */
bool cli_stderr_is_tty(void);

/* Flushes stdout. @status; where that says that all is well and not everything
 * could be written, CLI_OUTPUT_FAILED after saying so. main() ends every
 * command with it. */
int cli_finish_output(int status);

/* Makes sure that descriptors 0 to 2 are open, so that no file of ours becomes
 * one of them: a closed one fails as if it still were. */
void cli_open_std_fds(void);

/* ---- What `idem run` records (cli/run/frames.c) ------------------------ */

/* Writes each stream of @form to its own: @out and @err (descriptors; negative: left
 * out). Stops writing to one that fails. *@ret_out_error: errno of the write to @out that
 * failed; 0: none did. */
void cli_form_write(const struct idem_form *form, int out, int err,
                    int *ret_out_error);

/* The exit status for @meta ("exit 3\n" or "signal 9\n"), as a shell would give
 * it; -1 if it says none. */
int cli_meta_status(struct idem_slice meta);

/* Options that most commands take beside it. */
#include "request/request.h"
#include "request/identity.h"
#include "record/remedy.h"
#include "record/record.h"
#include "text/text.h"
#include "record/verdict.h"

#endif
