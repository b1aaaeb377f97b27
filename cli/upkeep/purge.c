/* idem purge: deletes records whose retention ended. */
#include "dynamodb/table.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/json.h"
#include "text/screen.h"

#include <errno.h>
#include <idem/operator.h>
#include <time.h>

#define SLICE 1000 /* Records between two reports of progress. */

static struct {
    uint64_t max;
    uint64_t rate;
    bool json;
    const char *store;
} args;

/* Deletes until nothing is left to delete or --max is reached. */
static int purge_slices(struct idem_store *store, uint64_t *ret_purged)
{
    struct idem_error error = {0};
    uint64_t slice;
    uint64_t got;

    *ret_purged = 0;
    do {
        slice = args.max != 0 && args.max - *ret_purged < SLICE
                    ? args.max - *ret_purged
                    : SLICE;
        got = 0;
        error.code = idem_purge(store, slice, &got, &error);
        *ret_purged += got;
        cli_progress("purging", *ret_purged, /* all= */ 0);
    } while (error.code == 0 && got == slice && *ret_purged != args.max);
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int tell(uint64_t purged)
{
    struct cli_json json;

    if (!args.json) {
        (void)printf("purged %llu record%s\n", (unsigned long long)purged,
                     purged == 1 ? "" : "s");
        return 0;
    }
    cli_json_init(&json);
    cli_json_count(&json, "purged", purged);
    cli_json_count(&json, "parts", 0); /* Only a table has them. */
    return cli_json_print(&json);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_store *store;
    uint64_t purged;
    int status;
    int printed;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "purge takes no key; see idem resolve");
    }
    status = cli_open_store(args.store,
                            IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON, &store);
    if (status != 0) {
        return status;
    }
    if (cli_is_table(store)) {
        status = cli_purge_table(store, args.max, args.rate, args.json);
        idem_close(store);
        return status;
    }
    if (args.rate != 0) {
        idem_close(store);
        return cli_usage(command, "--rate is for a DynamoDB table: other "
                                  "stores yield to their writers");
    }
    status = purge_slices(store, &purged);
    if (status == 0) {
        cli_journal_catch_up(store, cli_stderr_is_tty());
    }
    idem_close(store);
    printed = tell(purged);
    return status != 0 ? status : printed;
}

static struct cli_option options[] = {
    CLI_VALUE("max", "N", CLI_COUNT, &args.max,
              "delete at most N records (all)", .min = 1),
    CLI_VALUE("rate", "N", CLI_COUNT, &args.rate,
              "use at most N units a second of a DynamoDB table (1000)",
              .min = 1, .max = 1000000),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem purge                        # safe at any time, beside other work",
    "idem purge --max 100000           # at most 100,000 records, from cron",
    NULL,
};

const struct cli_command cli_purge = {
    .name = "purge",
    .summary = "delete records whose retention ended",
    .usage = "idem purge [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
