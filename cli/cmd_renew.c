/* idem renew: extends the lease of an attempt. */
#include "cli.h"
#include "held.h"

static struct {
    const char *token;
    int64_t lease_ms;
    bool json;
    const char *store;
} args;

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_error error = {0};
    struct cli_held held;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = cli_hold(command, args.token, args.store, args.json, &held);
    if (status != 0) {
        return status;
    }
    error.code = idem_renew(held.attempt, args.lease_ms, &error);
    return cli_held_finish(&held, &error);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&args.token),
    {.name = "lease",
     .kind = CLI_DURATION,
     .target = &args.lease_ms,
     .arg = "TIME",
     .min = CLI_OR_NEVER(IDEM_LEASE_MIN_MS),
     .max = IDEM_DURATION_MAX_MS,
     .help = "from now on (default: as long as at the start)"},
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem renew --token \"$token\"                # the lease begins anew",
    "idem renew --token \"$token\" --lease 10m || exit   # 80: it was lost",
    NULL,
};

const struct cli_command cli_renew = {
    .name = "renew",
    .summary = "extend the lease of work that takes longer",
    .usage = "idem renew [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = CLI_HELD_HINT,
};
