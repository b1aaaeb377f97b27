/* idem reopen: a person lets work be run again, by any request. */
#include "decide/decided.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "record/record.h"
#include "request/identity.h"
#include "request/request.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"

static struct {
    const char *key_file;
    const char *scope;
    const char *reason;
    uint64_t fence;
    bool fence_given;
    const char *who;
    bool dry_run;
    bool json;
    const char *store;
} args;

/* The answer of the store, as far as it can be told without asking. */
static int check_record(const struct idem_record *r, uint64_t fence)
{
    char live[CLI_LIVE_MAX];

    if (r->fence != fence) {
        cli_say("its fence is now %llu, not %llu: run idem show again",
                (unsigned long long)r->fence, (unsigned long long)fence);
        return CLI_NOT_RECORDED;
    }
    if (r->live) {
        cli_live_text(r, cli_now_ms(), live);
        cli_say("it is at work (%s): it cannot be reopened before that ends",
                live);
        return CLI_NOT_RECORDED;
    }
    if (cli_is_reopened(r) || r->status == IDEM_STATUS_RELEASED) {
        cli_say("it is %s already: the next caller runs it",
                r->retry ? "reopened" : "released");
        return CLI_NOT_RECORDED;
    }
    return 0;
}

static int change(struct idem_store *store, const struct idem_record *r,
                  uint64_t fence)
{
    struct idem_error error = {0};
    char who[IDEM_OWNER_MAX + 1];
    struct cli_audit audit;
    int status = cli_audit_open(&audit);

    if (status == 0) {
        cli_who(args.who, who);
        error.code = cli_reopen_record(store, &audit, r, fence, who,
                                       args.reason, &error);
        cli_audit_close(&audit);
        status = error.code == 0 ? 0 : cli_decide_refused(&error);
    }
    return status;
}

static int print_json(const struct idem_record *r)
{
    struct cli_json json;
    struct cli_json was;

    cli_json_init(&json);
    cli_json_bytes(&json, "scope", r->scope);
    cli_json_bytes(&json, "key", r->key);
    cli_json_count(&json, "fence", r->fence);
    cli_json_text(&json, "before", idem_status_name(idem_record_status(r)));
    cli_json_text(&json, "after", idem_status_name(IDEM_STATUS_RETRY));
    cli_json_bool(&json, "changed", !args.dry_run);
    cli_json_init(&was);
    cli_json_record(&was, r, /* with_bytes= */ true);
    cli_json_object(&json, "record", &was);
    return cli_json_print(&json);
}

static int print_change(const struct idem_record *r)
{
    if (args.json) {
        return print_json(r);
    }
    cli_print_decided(r, IDEM_STATUS_RETRY,
                      args.dry_run ? CLI_WOULD_DECIDE : CLI_DECIDED);
    if (!args.dry_run && cli_stderr_is_tty()) {
        (void)fflush(stdout);
        cli_say("nothing starts it by itself: run it with this key");
    }
    return 0;
}

static int decide(struct idem_store *store, const struct idem_record *r)
{
    uint64_t fence = args.fence_given ? args.fence : r->fence;
    int status = check_record(r, fence);

    if (status == 0 && !args.dry_run) {
        status = change(store, r, fence);
    }
    return status == 0 ? print_change(r) : status;
}

static int reopen(struct idem_slice scope, struct idem_slice key)
{
    struct idem_answer *answer;
    struct idem_store *store;
    int status = cli_decide_look_up(args.store, args.dry_run, scope, key,
                                    &store, &answer);

    if (status != 0) {
        return status;
    }
    status = decide(store, idem_answer_record(answer));
    idem_answer_destroy(answer);
    idem_close(store);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_slice scope;
    struct cli_key_text key;
    int status;

    if (args.reason == NULL) {
        return cli_usage(
            command,
            "no reason given: --reason TEXT, which is kept for those who ask "
            "later");
    }
    status = cli_operand_key(command, argc, argv, args.key_file, &key);
    if (status == 0) {
        status = cli_scope(args.scope, &scope);
    }
    return status != 0 ? status : reopen(scope, idem_bytes(key.bytes, key.len));
}

static struct cli_option options[] = {
    CLI_VALUE("reason", "TEXT", CLI_TEXT, &args.reason,
              "why it is to be run again; it is recorded",
              .max = IDEM_TEXT_MAX),
    CLI_OPTION_FENCE(&args.fence, &args.fence_given),
    CLI_OPTION_WHO(&args.who),
    CLI_OPTION_DRY_RUN(&args.dry_run,
                       "print what would change, change nothing"),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_KEY_FILE(&args.key_file),
    CLI_OPTION_SCOPE(&args.scope),
    CLI_OPTION_STORE(&args.store),
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
