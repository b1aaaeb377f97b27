/* idem complete, fail, release, retry, unknown and renew: the verbs of an attempt
 * that another process began, which its token names. */
#include "contract/kind.h"
#include "options/command.h"
#include "options/common.h"
#include "request/request.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"
#include "verbs/held.h"

#include <idem/statement.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- --as-sql ---- */

static void add_bytes(struct cli_json *json, struct idem_slice bytes)
{
    char *text = malloc(2 * bytes.len + 3);

    if (text == NULL) {
        json->failed = true;
        return;
    }
    text[0] = '\\';
    text[1] = 'x';
    cli_hex(bytes, text + 2);
    cli_json_append_text(json, "values", text);
    free(text);
}

/* Texts, which a driver passes on as they are: the statement says what type each has,
 * and many languages read a number of JSON less exactly than an integer of 64 bits. */
static void add_value(struct cli_json *json, const struct idem_value *value)
{
    char number[24];

    if (value->type == IDEM_VALUE_BYTES) {
        add_bytes(json, value->bytes);
    } else if (value->type == IDEM_VALUE_INTEGER) {
        (void)snprintf(number, sizeof(number), "%" PRId64, value->integer);
        cli_json_append_text(json, "values", number);
    } else {
        cli_json_append_text(json, "values", NULL);
    }
}

static int print(const struct idem_statement *statement)
{
    struct cli_json json;
    size_t i;

    cli_json_init(&json);
    cli_json_text(&json, "text", statement->text);
    for (i = 0; i < statement->values_len; i++) {
        add_value(&json, &statement->values[i]);
    }
    cli_json_count(&json, "rows", (uint64_t)statement->rows);
    return cli_json_print(&json);
}

/* A kind of an earlier version has no such member. */
static bool takes_statements(const struct idem_store_kind *kind)
{
    return kind->size >= offsetof(struct idem_store_kind, completion) +
                             sizeof(kind->completion) &&
           kind->completion != NULL;
}

static int make(struct cli_held *held, const struct idem_result *result,
                struct idem_statement *ret_statement, struct idem_error *error)
{
    const struct idem_store_kind *kind;
    const char *place;
    int rc = idem__kind_find(idem_store_url(held->store), &kind, &place, error);

    if (rc != 0) {
        return rc;
    }
    if (takes_statements(kind)) {
        return kind->completion(held->attempt, result, ret_statement, error);
    }
    (void)snprintf(error->text, sizeof(error->text),
                   "a store of kind %s takes no statement of its callers: "
                   "--as-sql is for PostgreSQL; leave it out, or see "
                   "docs/transactions.md",
                   kind->scheme);
    return IDEM_EINVALID;
}

int cli_held_print_statement(struct cli_held *held,
                             const struct idem_result *result)
{
    struct idem_statement statement;
    struct idem_error error = {0};
    int status = 0;

    error.code = make(held, result, &statement, &error);
    if (error.code == 0) {
        status = print(&statement);
    }
    return status != 0 ? (void)cli_held_finish(held, &error),
           status      : cli_held_finish(held, &error);
}

/* One command runs in a process, and each has some of these as its options. */
static struct {
    struct cli_token_choice attempt;
    const char *text; /* The note or the error. */
    const char *result;
    struct cli_result_spec spec;
    int64_t lease_ms;
    uint64_t failures_max;
    int64_t retry_after_ms;
    struct cli_journal_choice journal;
    bool json;
    bool as_sql;
    const char *store;
} args;

static int end_with(const struct cli_command *command, enum idem_status how,
                    const struct idem_result *result)
{
    struct idem_outcome outcome = {
        .status = how,
        .result = *result,
        .text = idem_str(args.text),
        .failures_max = (uint32_t)args.failures_max,
        .retry_after_ms = args.retry_after_ms,
    };
    struct cli_held held;
    int status;

    status = cli_hold(command, &args.attempt, args.store, args.json, &held);
    return status != 0 ? status : cli_held_end(&held, &outcome, &args.journal);
}

/* The caller ends the attempt itself: nothing is written, nor kept. */
static int print_statement(const struct cli_command *command,
                           const struct idem_result *result)
{
    struct cli_held held;
    int status =
        cli_hold(command, &args.attempt, args.store, /* json= */ false, &held);

    return status != 0 ? status : cli_held_print_statement(&held, result);
}

/* The end of @command: with a result where it takes one, else with an empty one. */
static int end(const struct cli_command *command, enum idem_status how,
               int argc, char **argv)
{
    struct cli_result result;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = cli_journal_choose(command, &args.journal);
    if (status == 0) {
        status = cli_result_check(command, &args.spec);
    }
    if (status == 0) {
        status = cli_result_init(&result, "result", args.result, &args.spec);
    }
    if (status != 0) {
        return status;
    }

    status = args.as_sql ? print_statement(command, &result.result)
                         : end_with(command, how, &result.result);

    cli_result_finish(&result);
    return status;
}

static int renew(const struct cli_command *command, int argc, char **argv)
{
    struct idem_error error = {0};
    struct cli_held held;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = cli_hold(command, &args.attempt, args.store, args.json, &held);
    if (status != 0) {
        return status;
    }
    error.code = idem_renew(held.attempt, args.lease_ms, &error);
    return cli_held_finish(&held, &error);
}

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
    CLI_TOKEN_OPTIONS(&args.attempt),
    OPTION_RESULT("TEXT, @FILE or - for stdin (default: empty)"),
    CLI_RESULT_OPTIONS(&args.spec),
    CLI_SWITCH("as-sql", &args.as_sql,
               "print the statement that completes it, as JSON"),
    OPTIONS_OF_ENDS,
};

static struct cli_option fail_options[] = {
    CLI_TOKEN_OPTIONS(&args.attempt),
    OPTION_REASON("what went wrong, for the person who looks"),
    OPTION_RESULT("what is replayed: TEXT, @FILE or - for stdin"),
    CLI_RESULT_OPTIONS(&args.spec),
    OPTIONS_OF_ENDS,
};

static struct cli_option release_options[] = {
    CLI_TOKEN_OPTIONS(&args.attempt),
    OPTION_REASON("why, for people"),
    OPTIONS_OF_ENDS,
};

static struct cli_option retry_options[] = {
    CLI_TOKEN_OPTIONS(&args.attempt),
    OPTION_REASON("why, for the person who looks"),
    CLI_OPTION_MAX_FAILURES(&args.failures_max),
    CLI_OPTION_RETRY_AFTER(&args.retry_after_ms),
    OPTIONS_OF_ENDS,
};

static struct cli_option unknown_options[] = {
    CLI_TOKEN_OPTIONS(&args.attempt),
    OPTION_REASON("what is known, for the person who looks"),
    OPTIONS_OF_ENDS,
};

static struct cli_option renew_options[] = {
    CLI_TOKEN_OPTIONS(&args.attempt),
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
    "idem list --status failed                  # who looks, finds it here",
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
    "idem list --status unknown         # who looks, finds it here",
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
        .hint = CLI_HELD_HINT,                                                 \
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
