/* idem resolve: a person decides how work ended. */
#include "decide/decided.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/value.h"
#include "process/host.h"
#include "record/record.h"
#include "request/identity.h"
#include "request/request.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

static struct {
    struct cli_decided_key of;
    const char *complete;
    bool fail;
    bool release;
    struct cli_result_spec spec;
    const char *reason;
    const char *who;
    bool overdue;
    const char *statuses;
    uint64_t count;
    bool yes;
    bool force;
    bool json;
} args;

/* True if the decision is about all records that are alike, not about one key. */
static bool is_selection(void)
{
    return args.overdue || args.statuses != NULL;
}

static enum idem_status decision(void)
{
    if (args.complete != NULL) {
        return IDEM_STATUS_COMPLETED;
    }
    return args.fail ? IDEM_STATUS_FAILED : IDEM_STATUS_RELEASED;
}

static int check_args(const struct cli_command *command)
{
    if ((args.complete != NULL) + args.fail + args.release != 1) {
        return cli_usage(command, "give exactly one of "
                                  "--complete, --fail and --release");
    }
    if (args.reason == NULL) {
        return cli_usage(
            command,
            "no reason given: --reason TEXT, which is kept for those who ask "
            "later");
    }
    if (!is_selection() && (args.yes || args.count != 0)) {
        return cli_usage(command, "--yes and --count belong to "
                                  "--overdue and --status");
    }
    if (is_selection() && (args.of.fence_given || args.of.key_file != NULL)) {
        return cli_usage(command, "--overdue and --status choose the records: "
                                  "leave out the key and --fence");
    }
    if (args.yes && args.of.dry_run) {
        return cli_usage(command, "choose one: --yes or --dry-run");
    }
    if (args.force && is_selection()) {
        return cli_usage(command,
                         "--force takes one key: read its record first");
    }
    if (args.complete == NULL &&
        (args.spec.exit_given || args.spec.http_given ||
         args.spec.content_type != NULL)) {
        return cli_usage(command, "--exit, --http-status and --content-type "
                                  "belong to --complete");
    }
    return cli_result_check(command, &args.spec);
}

/* Predicts the answer of the store. */
static int check_record(const struct idem_record *r)
{
    if (r->status == IDEM_STATUS_FAILED || r->status == IDEM_STATUS_UNKNOWN ||
        (r->status != IDEM_STATUS_IN_PROGRESS && cli_is_decided(r)) ||
        (r->status == IDEM_STATUS_IN_PROGRESS && (args.force || !r->live))) {
        return 0;
    }
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        cli_say_live(r, CLI_LIVE_FORCE);
    } else {
        cli_say("nothing to resolve: the record is %s; %s",
                idem_status_name(idem_record_status(r)),
                r->status == IDEM_STATUS_COMPLETED
                    ? "to let the work run again: idem reopen"
                    : "the next caller runs the work");
    }
    return CLI_NOT_RECORDED;
}

static struct cli_decision decision_made(char who[IDEM_OWNER_MAX + 1],
                                         const struct idem_result *result)
{
    cli_who(args.who, who);
    return (struct cli_decision){
        .status = decision(),
        .result = args.complete != NULL ? result : NULL,
        .who = who,
        .why = args.reason,
        .force = args.force,
    };
}

static void say_overridden(const struct idem_record *r)
{
    char live[CLI_LIVE_MAX];

    if (args.force && r->live) {
        cli_live_text(r, cli_now_ms(), live);
        cli_say(
            "a running lease %s overridden (%s): its owner may go on until its next renewal",
            args.of.dry_run ? "would be" : "is", live);
    }
}

static int print_change(const struct idem_record *r)
{
    if (args.json) {
        return cli_print_decided_json(r, decision(), !args.of.dry_run);
    }
    cli_print_decided(r, decision(),
                      args.of.dry_run ? CLI_WOULD_DECIDE : CLI_DECIDED);
    return 0;
}

static int decide(void *ctx, struct idem_store *store,
                  const struct idem_record *r, uint64_t fence)
{
    struct cli_result *result = ctx;
    char who[IDEM_OWNER_MAX + 1];
    struct cli_decision made;
    int status;

    cli_result_adopt(result, &args.spec, &r->result);
    made = decision_made(who, &result->result);
    status = args.of.dry_run ? check_record(r)
                             : cli_decide_one(store, r, fence, &made);
    if (status != 0) {
        return status;
    }
    say_overridden(r);
    return print_change(r);
}

/* 0, or an exit status after an error message. */
static int read_selection(const struct cli_command *command,
                          struct idem_slice *scope,
                          struct cli_selection *selection)
{
    const unsigned may = 1u << IDEM_STATUS_FAILED | 1u << IDEM_STATUS_UNKNOWN;
    int status;

    *selection = (struct cli_selection){
        .overdue = args.overdue,
        .count = args.count,
        .json = args.json,
    };
    if (args.of.scope != NULL) {
        *scope = idem_str(args.of.scope);
        selection->scope = scope;
    }
    if (args.statuses == NULL) {
        return 0;
    }
    status = cli_statuses(command, args.statuses, &selection->statuses);
    if (status == 0 && (selection->statuses & ~may) != 0) {
        return cli_usage(command, "--status: only what is failed or unknown "
                                  "can be resolved, and with --overdue what "
                                  "is late");
    }
    return status;
}

static int resolve_all(const struct cli_command *command,
                       const struct idem_result *result)
{
    unsigned flags = args.yes ? IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON
                              : IDEM_OPEN_READONLY;
    struct cli_audit audit = {.fd = -1};
    char who[IDEM_OWNER_MAX + 1];
    struct cli_decision made = decision_made(who, result);
    struct cli_selection selection;
    struct idem_store *store;
    struct idem_slice scope;
    int status = read_selection(command, &scope, &selection);

    if (status == 0 && args.yes) {
        status = cli_audit_open(&audit);
    }
    if (status == 0) {
        status = cli_open_store(args.of.store, flags, &store);
    }
    if (status == 0) {
        status =
            cli_resolve_selected(store, &audit, &selection, &made, args.yes);
        idem_close(store);
    }
    cli_audit_close(&audit);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_result result;
    int status;

    status = check_args(command);
    if (status == 0 && is_selection() && argc > 0) {
        return cli_usage(command, "--overdue and --status choose the records: "
                                  "leave out the key");
    }
    if (status == 0) {
        status =
            cli_result_init(&result, "complete", args.complete, &args.spec);
    }
    if (status != 0) {
        return status;
    }

    status = is_selection() ? resolve_all(command, &result.result)
                            : cli_decide_key(command, argc, argv, &args.of,
                                             decide, &result);

    cli_result_finish(&result);
    return status;
}

static struct cli_option options[] = {
    CLI_VALUE("complete", "RESULT", CLI_ANY_TEXT, &args.complete,
              "the work was done; the result: TEXT, @FILE or -"),
    CLI_SWITCH("fail", &args.fail, "it failed for good"),
    CLI_SWITCH("release", &args.release, "it did not happen: another may try"),
    CLI_VALUE("reason", "TEXT", CLI_TEXT, &args.reason,
              "how you know; kept on record", .max = IDEM_TEXT_MAX),
    CLI_OPTION_FENCE(&args.of.fence, &args.of.fence_given),
    CLI_OPTION_WHO(&args.who),
    CLI_OPTION_DRY_RUN(&args.of.dry_run,
                       "print what would change, change nothing"),
    CLI_SWITCH("overdue", &args.overdue, "instead of a key: all overdue work"),
    CLI_VALUE("status", "STATUS", CLI_TEXT, &args.statuses,
              "instead of a key: all that are failed, unknown"),
    CLI_VALUE("count", "N", CLI_COUNT, &args.count,
              "only if there are exactly N records", .min = 1),
    CLI_SWITCH("force", &args.force,
               "decide even while the owner's lease runs"),
    CLI_SWITCH("yes", &args.yes,
               "decide for all of these; without it, only list them",
               .letter = 'y'),
    CLI_RESULT_OPTIONS(&args.spec),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_KEY_FILE(&args.of.key_file),
    CLI_OPTION_SCOPE(&args.of.scope),
    CLI_OPTION_STORE(&args.of.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem show order-42                # look first",
    "idem resolve order-42 --complete @receipt --reason \"the bank has it\"",
    "idem resolve order-42 --release --reason \"the bank never saw it\"",
    "idem resolve --overdue --status unknown --scope eu --release --reason \"..\"",
    NULL,
};

const struct cli_command cli_resolve = {
    .name = "resolve",
    .summary = "decide how failed, unknown or overdue work ended",
    .usage =
        "idem resolve [OPTION...] KEY|--overdue|--status STATUS --reason TEXT",
    .examples = examples,
    .options = options,
    .run = run,
    .takes_key = true,
};
