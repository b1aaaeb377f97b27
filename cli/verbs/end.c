/* idem complete, fail, release, retry, unknown and renew: the verbs of an attempt
 * that another process began, which its token names. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/read.h"
#include "record/record.h"
#include "record/verdict.h"
#include "request/request.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>

/* The process runs one of these commands, and each has some of these options. */
static struct {
    const char *token;
    bool self;
    const char *text; /* The note or the error. */
    const char *result;
    struct cli_result_spec spec;
    int64_t lease_ms;
    uint64_t failures_max;
    int64_t retry_after_ms;
    int journal; /* An enum cli_journal_rule. */
    bool json;
    bool as_sql;
    const char *store;
} args;

/* ---- The attempt, and what became of it ---- */

struct held {
    struct idem_store *store;
    struct idem_attempt *attempt;
    struct cli_patience patience;
};

/* Cuts the newline that `echo "$token"` adds. */
static void cut_newline(char *text, size_t *len)
{
    if (*len > 0 && text[*len - 1] == '\n') {
        --*len;
    }
    text[*len] = '\0';
}

/* The token of the environment is used only with --self: a script that has just begun
 * an attempt of its own, and forgot to name it, must not end the one around it. */
static int read_token(const struct cli_command *command,
                      char buf[IDEM_TOKEN_MAX + 1])
{
    const char *spec = args.self ? secure_getenv("IDEM_TOKEN") : args.token;
    char *text;
    size_t len;
    int status;

    if (args.self && args.token != NULL) {
        return cli_usage(command, "give the attempt once: --token or --self");
    }
    if (args.self && (spec == NULL || *spec == '\0')) {
        return cli_usage(command, "--self: IDEM_TOKEN is not set; this is not "
                                  "part of an attempt");
    }
    if (spec == NULL) {
        return cli_usage(
            command,
            "no attempt given: --token TOKEN, or --self inside idem run");
    }
    status = cli_read_arg("token", spec, /* text_ok= */ true,
                          IDEM_TOKEN_MAX - 1, &text, &len);
    if (status != 0) {
        return status;
    }
    memcpy(buf, text, len);
    cut_newline(buf, &len);
    free(text);
    if (strlen(buf) != len) {
        return cli_usage(command, "not an idem token: it contains a NUL byte");
    }
    return 0;
}

/* Tells a caller that lost the key how to see who has it. */
static int say_lost(const struct held *held, const struct idem_error *error)
{
    char *command = NULL;
    size_t len;
    FILE *f = open_memstream(&command, &len);

    if (f != NULL) {
        cli_print_remedy(f, "show", "", held->attempt->record, args.store);
        (void)fclose(f);
    }
    cli_say("%s; see: %s", error->text,
            command != NULL ? command : "idem show");
    free(command);
    return cli_exit_of(error->code);
}

/* Prints the record as it is now, without its result, which the caller has. A renewal is
 * answered without the record: this process knows only the token and the lease. */
static int print_json(const struct idem_attempt *attempt)
{
    struct cli_json json;

    cli_json_init(&json);
    if (attempt->record->status != 0) {
        cli_json_record(&json, attempt->record, /* with_bytes= */ false);
    } else {
        cli_json_bytes(&json, "scope", attempt->record->scope);
        cli_json_bytes(&json, "key", attempt->record->key);
        cli_json_text(&json, "status",
                      idem_status_name(IDEM_STATUS_IN_PROGRESS));
        cli_json_count(&json, "fence", attempt->record->fence);
        cli_json_ms(&json, "lease_left_ms",
                    idem_attempt_lease_left_ms(attempt));
    }
    return cli_json_print(&json);
}

/* The exit status, after a message if @error has a code. */
static int answer(const struct held *held, const struct idem_error *error)
{
    if (error->code == IDEM_ELOST) {
        return say_lost(held, error);
    }
    if (error->code != 0) {
        return cli_fail_with(error);
    }
    return args.json ? print_json(held->attempt) : CLI_OK;
}

static int let_go(struct held *held, int status)
{
    idem_attempt_destroy(held->attempt);
    idem_close(held->store);
    return status;
}

/* Opens the store and the attempt. 0 with what let_go() closes, or an exit status
 * after an error message. */
static int hold(const struct cli_command *command, struct held *ret_held)
{
    struct held held = {.store = NULL};
    struct idem_error error = {0};
    char token[IDEM_TOKEN_MAX + 1];
    int status;

    status = read_token(command, token);
    if (status != 0) {
        return status;
    }
    status = cli_patience_choose(command, &held.patience);
    if (status != 0) {
        return status;
    }
    status = cli_open_store(args.store, IDEM_OPEN_NO_CREATE, &held.store);
    if (status != 0) {
        return status;
    }
    cli_patience_set(held.store,
                     cli_patience_ms(&held.patience, held.store, 0));
    error.code =
        idem_attempt_from_token(held.store, token, &held.attempt, &error);
    if (error.code != 0) {
        return let_go(&held, answer(&held, &error));
    }
    /* Record an outcome that waits in the journal first. If it must wait on, the
     * store refuses what follows. */
    (void)cli_journal_settle(held.store, held.attempt->record->scope,
                             held.attempt->record->key, cli_stderr_is_tty(),
                             &error);
    *ret_held = held;
    return 0;
}

/* The outcome is not lost, but not on record either. */
static int say_kept(const struct cli_net *net, const struct idem_error *error)
{
    cli_say(
        "%s; the outcome is kept in %s; the next command for this key records it, or: idem reconcile",
        error->text, net->path != NULL ? net->path : "the journal");
    return CLI_NOT_RECORDED;
}

static int end_attempt(const struct held *held,
                       const struct idem_outcome *outcome)
{
    struct idem_error error = {0};
    struct cli_net net;
    int status;

    cli_net_init(&net, (enum cli_journal_rule)args.journal, held->store,
                 held->attempt, outcome);
    cli_patience_set(held->store, cli_patience_ms(&held->patience, held->store,
                                                  outcome->result.bytes.len));
    error.code = idem_end(held->attempt, outcome, &error);
    cli_net_answered(&net, error.code);
    if (cli_net_settle(&net, error.code)) {
        status = say_kept(&net, &error);
        goto done;
    }
    if (error.code != 0) {
        cli_net_explain(&net, &error);
    } else {
        cli_journal_catch_up(held->store, cli_stderr_is_tty());
    }
    status = answer(held, &error);
done:
    cli_net_finish(&net);
    return status;
}

/* ---- --as-sql ---- */

/* The caller ends the attempt itself: nothing is written or journaled. */
static int print_statement(const struct held *held,
                           const struct idem_result *result)
{
    struct idem_error error = {0};
    struct cli_json json;

    cli_json_init(&json);
    error.code =
        cli_statement_json(&json, held->store, held->attempt, result, &error);
    if (error.code != 0) {
        cli_json_finish(&json);
        return answer(held, &error);
    }
    return cli_json_print(&json);
}

/* ---- The verbs ---- */

/* Ends an attempt: with a result where @command takes one, else with an empty one. */
static int end(const struct cli_command *command, enum idem_status how,
               int argc, char **argv)
{
    struct idem_outcome outcome = {
        .status = how,
        .text = idem_str(args.text),
        .failures_max = (uint32_t)args.failures_max,
        .retry_after_ms = args.retry_after_ms,
    };
    struct cli_result result;
    struct held held;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = cli_result_check(command, &args.spec);
    if (status != 0) {
        return status;
    }
    status = cli_result_init(&result, "result", args.result, &args.spec);
    if (status != 0) {
        return status;
    }

    outcome.result = result.result;
    status = hold(command, &held);
    if (status == 0) {
        status =
            let_go(&held, args.as_sql ? print_statement(&held, &outcome.result)
                                      : end_attempt(&held, &outcome));
    }

    cli_result_finish(&result);
    return status;
}

static int renew(const struct cli_command *command, int argc, char **argv)
{
    struct idem_error error = {0};
    struct held held;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = hold(command, &held);
    if (status != 0) {
        return status;
    }
    error.code = idem_renew(held.attempt, args.lease_ms, &error);
    return let_go(&held, answer(&held, &error));
}

#define TOKEN_OPTIONS                                                          \
    CLI_VALUE("token", "TOKEN", CLI_TEXT, &args.token,                         \
              "the attempt: the token of idem begin; -: from stdin"),          \
        CLI_SWITCH("self", &args.self,                                         \
                   "the attempt that this is part of ($IDEM_TOKEN)")

#define HINT                                                                    \
    "an attempt is named by the token that idem begin printed: --token TOKEN; " \
    "inside idem run: --self; a person decides about a key with: idem resolve KEY"

#define OPTION_REASON(what)                                                    \
    CLI_VALUE("reason", "TEXT", CLI_ANY_TEXT, &args.text, (what),              \
              .max = IDEM_TEXT_MAX)

#define OPTION_RESULT(what)                                                    \
    CLI_VALUE("result", "WHAT", CLI_ANY_TEXT, &args.result, (what),            \
              .letter = 'r')

#define OPTIONS_OF_ENDS                                                        \
    CLI_OPTION_JOURNAL(&args.journal), CLI_OPTION_JSON(&args.json),            \
        CLI_OPTION_STORE(&args.store),                                         \
    {                                                                          \
        .name = NULL                                                           \
    }

static struct cli_option complete_options[] = {
    TOKEN_OPTIONS,
    OPTION_RESULT("TEXT, @FILE or - for stdin (default: empty)"),
    CLI_RESULT_OPTIONS(&args.spec),
    CLI_SWITCH("as-sql", &args.as_sql,
               "print the statement that completes it, as JSON"),
    OPTIONS_OF_ENDS,
};

static struct cli_option fail_options[] = {
    TOKEN_OPTIONS,
    OPTION_REASON("what went wrong, for the person who looks"),
    OPTION_RESULT("what is replayed: TEXT, @FILE or - for stdin"),
    CLI_RESULT_OPTIONS(&args.spec),
    OPTIONS_OF_ENDS,
};

static struct cli_option release_options[] = {
    TOKEN_OPTIONS,
    OPTION_REASON("why, for people"),
    OPTIONS_OF_ENDS,
};

static struct cli_option retry_options[] = {
    TOKEN_OPTIONS,
    OPTION_REASON("why, for the person who looks"),
    CLI_OPTION_MAX_FAILURES(&args.failures_max),
    CLI_OPTION_RETRY_AFTER(&args.retry_after_ms),
    OPTIONS_OF_ENDS,
};

static struct cli_option unknown_options[] = {
    TOKEN_OPTIONS,
    OPTION_REASON("what is known, for the person who looks"),
    OPTIONS_OF_ENDS,
};

static struct cli_option renew_options[] = {
    TOKEN_OPTIONS,
    CLI_VALUE("lease", "TIME", CLI_DURATION, &args.lease_ms,
              "from now on (default: as long as at the start)",
              .min = IDEM_LEASE_MIN_MS, .or_never = true),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const complete_examples[] = {
    "idem complete --token \"$token\" --result paid",
    "printf %s \"$token\" | idem complete --token - --result @receipt.json \\",
    "    --content-type application/json",
    "make_report | idem complete --self --result -    # inside idem run",
    "idem complete --token \"$token\" --result paid --as-sql   # to run yourself",
    NULL,
};

static const char *const fail_examples[] = {
    "idem fail --token \"$token\" --reason \"card 4711 was refused\"",
    "idem fail --token \"$token\" --result @answer.json --exit 3",
    "idem list --status failed                  # lists it for a person",
    NULL,
};

static const char *const release_examples[] = {
    "idem release --token \"$token\" --reason \"the bank was closed\"",
    "idem release --self                # inside idem run: try again later",
    NULL,
};

static const char *const retry_examples[] = {
    "idem retry --token \"$token\" --reason \"the host ran out of space\"",
    "idem retry --token \"$token\" --max-failures 5 --retry-after 10m",
    "idem list --status retry           # what waits for the next caller",
    NULL,
};

static const char *const unknown_examples[] = {
    "idem unknown --token \"$token\" --reason \"no answer from the bank\"",
    "idem list --status unknown         # lists it for a person",
    NULL,
};

static const char *const renew_examples[] = {
    "idem renew --token \"$token\"                # the lease begins anew",
    "idem renew --token \"$token\" --lease 10m || exit   # 80: it was lost",
    NULL,
};

/* A verb: its command, and the status that it gives the attempt. */
#define VERB(verb, how, words)                                                 \
    static int run_##verb(const struct cli_command *command, int argc,         \
                          char **argv)                                         \
    {                                                                          \
        return end(command, (how), argc, argv);                                \
    }                                                                          \
    COMMAND(verb, run_##verb, words)

#define COMMAND(verb, run_it, words)                                           \
    const struct cli_command cli_##verb = {                                    \
        .name = #verb,                                                         \
        .summary = (words),                                                    \
        .usage = "idem " #verb " [OPTION...] --token TOKEN|--self",            \
        .examples = verb##_examples,                                           \
        .options = verb##_options,                                             \
        .run = (run_it),                                                       \
        .hint = HINT,                                                          \
    }

VERB(complete, IDEM_STATUS_COMPLETED,
     "record that the work was done, and its result");
VERB(fail, IDEM_STATUS_FAILED,
     "record that the work failed and a person must look");
VERB(release, IDEM_STATUS_RELEASED,
     "give the key up: nothing happened, another may try");
VERB(retry, IDEM_STATUS_RETRY, "let the next caller run the work again");
VERB(unknown, IDEM_STATUS_UNKNOWN, "record that the work may have happened");
COMMAND(renew, renew, "extend the lease of work that takes longer");
