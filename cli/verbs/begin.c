/* idem begin: claims a key for work that is done elsewhere. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "record/record.h"
#include "record/verdict.h"
#include "request/request.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"

#include <signal.h>

static struct {
    struct cli_claim claim;
    bool json;
    const char *store;
} args = {.claim = CLI_CLAIM_INIT};

static void print_json(const struct idem_attempt *attempt, const char *token,
                       struct cli_json *json)
{
    cli_json_text(json, "verdict", idem_verdict_name(attempt->verdict));
    if (attempt->verdict == IDEM_STARTED) {
        cli_json_text(json, "token", token);
        cli_json_bool(json, "takeover", attempt->takeover);
        cli_json_ms(json, "lease_left_ms", idem_attempt_lease_left_ms(attempt));
    }
    if (attempt->verdict == IDEM_BUSY) {
        cli_json_ms(json, "lease_left_ms", attempt->lease_left_ms);
    }
    /* This caller must not see the result of another request. */
    cli_json_record(json, attempt->record,
                    /* with_bytes= */ attempt->verdict == IDEM_REPLAY);
}

static int answer_json(const struct idem_attempt *attempt, const char *token)
{
    struct cli_json json;

    cli_json_init(&json);
    print_json(attempt, token, &json);
    return cli_json_print(&json);
}

static int hand_over(const struct idem_attempt *attempt)
{
    char token[IDEM_TOKEN_MAX];
    int code = idem_attempt_token(attempt, token);
    int status = 0;

    if (code != 0) {
        cli_say("cannot create the token: %s", idem_error_text(code));
        return cli_exit_of(code);
    }
    if (args.json) {
        status = answer_json(attempt, token);
    } else {
        (void)puts(token);
    }
    return cli_finish_output(status);
}

/* Nobody can end an attempt whose token could not be written. So it is released, and the
 * next caller need not wait for the end of its lease. */
static int started(struct idem_attempt *attempt)
{
    struct idem_error error = {0};
    int status;

    if (attempt->takeover) {
        cli_say(
            "takeover: an earlier attempt did not end; it may have done some or all of its work");
    }
    status = hand_over(attempt);
    if (status == 0) {
        return 0;
    }
    error.code =
        idem_release(attempt, idem_str("cannot write the token"), &error);
    if (error.code == 0) {
        cli_say("claim released");
    } else {
        (void)cli_fail_with(&error);
    }
    return status;
}

static int answer(struct idem_attempt *attempt)
{
    int status = 0;

    if (attempt->verdict == IDEM_STARTED) {
        return started(attempt);
    }
    if (args.json) {
        status = answer_json(attempt, /* token= */ NULL);
    } else if (attempt->verdict == IDEM_REPLAY) {
        status = cli_write_result(attempt->record);
    }
    if (status != 0) {
        return status;
    }
    if (attempt->verdict == IDEM_REPLAY) {
        if (!attempt->record->result.not_kept) {
            return CLI_REPLAY;
        }
        cli_say(
            "its result was not kept: it was too long, or the store was full");
        return CLI_NOT_KEPT;
    }
    return cli_refuse(attempt, args.store);
}

static int begin(struct idem_request *request)
{
    struct idem_attempt *attempt;
    struct idem_error error = {0};
    struct idem_store *store;
    int status;

    status =
        cli_open_store_to_wait(args.store, /* flags= */ 0,
                               /* host= */ NULL, &request->wait_ms, &store);
    if (status != 0) {
        return status;
    }
    if (cli_journal_settle(store, request->scope, request->key,
                           cli_stderr_is_tty(), &error) == CLI_JOURNAL_WAITS) {
        status = cli_journal_refuse(&error);
        goto err_after_open;
    }
    error.code = idem_begin(store, request, &attempt, &error);
    if (error.code != 0) {
        status = cli_fail_with(&error);
        goto err_after_open;
    }

    status = answer(attempt);

    idem_attempt_destroy(attempt);
    cli_journal_catch_up(store, cli_stderr_is_tty());
err_after_open:
    idem_close(store);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_request request;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    args.claim.by_caller = true; /* This process ends before the work begins. */
    status = cli_request_init(&request, command, &args.claim, argc, argv);
    if (status != 0) {
        return status;
    }

    /* The reader of the token may be gone. SIGPIPE must not end this process before it
     * has released the claim. */
    (void)signal(SIGPIPE, SIG_IGN);
    status = begin(&request.request);

    cli_request_finish(&request);
    return status;
}

static struct cli_option options[] = {
    CLI_CLAIM_OPTIONS(&args.claim),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "token=$(idem begin -k order-42) || exit   # 0 yours, 10 done, 75 busy",
    "charge_the_card && idem complete --token \"$token\" --result paid",
    "",
    "idem begin -k order-42 --wait 30s         # wait for another's outcome",
    "idem begin -k order-42 --input @body.json # same key, other body: 65",
    NULL,
};

const struct cli_command cli_begin = {
    .name = "begin",
    .summary = "claim a key for work done elsewhere",
    .usage = "idem begin [OPTION...] -k KEY",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = "name the key with --key KEY; a command is run by: idem run -k "
            "KEY -- COMMAND",
};
