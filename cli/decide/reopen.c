/* idem reopen: a person lets work be run again, by any request. */
#include "decide/decided.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "record/record.h"
#include "request/identity.h"
#include "request/request.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"

static struct {
    struct cli_decided_key of;
    const char *reason;
    const char *who;
    bool json;
} args = {.of.checks_fence = true};

/* Predicts the answer of the store. */
static int check_record(const struct idem_record *r)
{
    if (r->live) {
        cli_say_live(r, "it cannot be reopened before that ends");
        return CLI_NOT_RECORDED;
    }
    if (cli_is_reopened(r) || r->status == IDEM_STATUS_RELEASED) {
        cli_say("the record is %s already: the next caller runs it",
                r->retry ? "reopened" : "released");
        return CLI_NOT_RECORDED;
    }
    return 0;
}

static int print_change(const struct idem_record *r)
{
    bool dry_run = args.of.dry_run;

    if (args.json) {
        return cli_print_decided_json(r, IDEM_STATUS_RETRY, !dry_run);
    }
    cli_print_decided(r, IDEM_STATUS_RETRY,
                      dry_run ? CLI_WOULD_DECIDE : CLI_DECIDED);
    if (!dry_run && cli_stderr_is_tty()) {
        (void)fflush(stdout);
        cli_say("nothing starts it by itself: run it with this key");
    }
    return 0;
}

static int decide(void *ctx, struct idem_store *store,
                  const struct idem_record *r, uint64_t fence)
{
    char who[IDEM_OWNER_MAX + 1];
    const struct cli_decision decision = {.status = IDEM_STATUS_RETRY,
                                          .who = who,
                                          .why = args.reason};
    int status = check_record(r);

    (void)ctx;
    if (status == 0 && !args.of.dry_run) {
        cli_who(args.who, who);
        status = cli_decide_one(store, r, fence, &decision);
    }
    return status == 0 ? print_change(r) : status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    if (args.reason == NULL) {
        return cli_usage(
            command,
            "no reason given: --reason TEXT, which is kept for those who ask "
            "later");
    }
    return cli_decide_key(command, argc, argv, &args.of, decide,
                          /* ctx= */ NULL);
}

static struct cli_option options[] = {
    CLI_VALUE("reason", "TEXT", CLI_TEXT, &args.reason,
              "why the work must run again; kept on record",
              .max = IDEM_TEXT_MAX),
    CLI_OPTION_FENCE(&args.of.fence, &args.of.fence_given),
    CLI_OPTION_WHO(&args.who),
    CLI_OPTION_DRY_RUN(&args.of.dry_run,
                       "print what would change, change nothing"),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_KEY_FILE(&args.of.key_file),
    CLI_OPTION_SCOPE(&args.of.scope),
    CLI_OPTION_STORE(&args.of.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem show deploy-1.4              # look first",
    "idem reopen deploy-1.4 --reason \"the disk has room again\"",
    "idem reopen deploy-1.4 -n --json --reason x | jq .record",
    NULL,
};

const struct cli_command cli_reopen = {
    .name = "reopen",
    .summary = "let finished work be run again",
    .usage = "idem reopen [OPTION...] KEY --reason TEXT",
    .examples = examples,
    .options = options,
    .run = run,
    .takes_key = true,
};
