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

#define SLICE 1000            /* Records between two reports of progress. */
#define SLICES_EACH_SECOND 10 /* With --rate: pauses are short. */

static struct {
    uint64_t max;
    uint64_t rate;
    bool json;
    const char *store;
} args;

/* Waits until @purged records since @from_ms are no more than --rate. */
static void hold_back(uint64_t purged, int64_t from_ms)
{
    int64_t left_ms;
    struct timespec left;

    if (args.rate == 0) {
        return;
    }
    left_ms = from_ms + (int64_t)(purged * 1000 / args.rate) - cli_mono_ms();
    if (left_ms > 0) {
        left = (struct timespec){(time_t)(left_ms / 1000),
                                 (long)(left_ms % 1000) * 1000000L};
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
    }
}

static uint64_t slice_max(void)
{
    uint64_t slice = args.rate / SLICES_EACH_SECOND;

    if (args.rate == 0 || slice > SLICE) {
        return SLICE;
    }
    return slice == 0 ? 1 : slice;
}

/* Deletes until nothing is left to delete or --max is reached. */
static int purge_slices(struct idem_store *store, uint64_t *ret_purged)
{
    struct idem_error error = {0};
    int64_t from_ms = cli_mono_ms();
    uint64_t purged = 0;
    uint64_t slice;
    uint64_t got;

    do {
        slice = slice_max();
        if (args.max != 0 && args.max - purged < slice) {
            slice = args.max - purged;
        }
        got = 0;
        error.code = idem_purge(store, slice, &got, &error);
        purged += got;
        if (got > 0) {
            cli_progress("purging", purged, /* all= */ 0);
            hold_back(purged, from_ms);
        }
    } while (error.code == 0 && got == slice && purged != args.max);
    cli_progress_end();
    *ret_purged = purged;
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
    const struct cli_purge_options table = {.max = args.max,
                                            .units_per_second = args.rate,
                                            .json = args.json};
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
        status = cli_purge_table(store, &table);
        idem_close(store);
        return status;
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
              "at most N records a second; for a DynamoDB table, units (1000)",
              .min = 1, .max = 1000000),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem purge                        # safe at any time, beside other work",
    "idem purge --max 100000           # at most so many, from cron",
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
