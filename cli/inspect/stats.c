/* idem stats: how often things happened, and what is on record now. */
#include "inspect/metrics.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "record/open_records.h"
#include "record/record.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/operator.h>
#include <stdlib.h>

#define PROMETHEUS 1
#define EMF 2

static const char *const formats[] = {"prometheus", "emf", NULL};

static struct {
    bool json;
    int format; /* PROMETHEUS, EMF; 0: for people, or JSON. */
    const char *output;
    const char *missing;
    const char *store;
} args;

static struct cli_jobs jobs;

/* The source of the counters: the store, or if it keeps none, the commands of this
 * host. */
struct counted {
    const struct idem_counters *counters; /* NULL: nobody has counted. */
    const char *meter;                    /* Its path; NULL: the store. */
    bool of_table;
};

static void add_gauges(struct cli_json *json,
                       const struct cli_snapshot *snapshot)
{
    int64_t retry_s =
        snapshot->oldest_retry_ms == 0
            ? 0
            : (snapshot->now_ms - snapshot->oldest_retry_ms) / 1000;

    cli_json_count(json, "in_progress", snapshot->in_progress);
    cli_json_count(json, "retry", snapshot->retry);
    cli_json_count(json, "retry_attempts", snapshot->retry_attempts);
    cli_json_count(json, "retry_oldest_s", retry_s > 0 ? (uint64_t)retry_s : 0);
    cli_json_count(json, "overdue", snapshot->overdue);
    cli_json_count(json, "failed", snapshot->failed_len);
    cli_json_count(json, "unknown", snapshot->unknown);
    cli_json_count(json, "corrupt", snapshot->unreadable);
    cli_json_count(json, "failed_outcomes", snapshot->failed_outcomes);
}

/* Prints each member on a line of its own. */
static void print_members(struct cli_json *json)
{
    struct json_object *object = cli_json_parse(json);

    if (object != NULL) {
        json_object_object_foreach(object, name, value)
        {
            (void)printf("  %-15s %s\n", name, json_object_get_string(value));
        }
    }
    (void)json_object_put(object);
    cli_json_finish(json);
}

static int print_json(const struct counted *counted,
                      const struct cli_snapshot *snapshot)
{
    struct cli_json json;

    cli_json_init(&json);
    if (counted->counters != NULL) {
        cli_json_open(&json, "counters");
        cli_json_counters(&json, counted->counters);
        cli_json_close(&json);
    } else {
        cli_json_null(&json, "counters");
    }
    if (counted->meter != NULL) {
        cli_json_bytes(&json, "meter", idem_str(counted->meter));
    }
    cli_json_open(&json, "records");
    add_gauges(&json, snapshot);
    cli_json_close(&json);
    return cli_json_print(&json);
}

/* A number that nobody counted is not 0. */
static void print_counters(const struct counted *counted)
{
    struct cli_json json;

    if (counted->counters == NULL) {
        (void)puts(
            counted->of_table
                ? "No counters: this store keeps none. To count the commands "
                  "of this host\nfrom now on, set IDEM_METER=FILE; see "
                  "idem-stats(1), Metrics."
                : "No counters: an application's database keeps none.");
        return;
    }
    if (counted->meter != NULL) {
        (void)fputs("By the commands of this host, since ", stdout);
        cli_print_escaped(stdout, idem_str(counted->meter));
        (void)puts(" (IDEM_METER) was made:");
    } else {
        (void)puts("Since the store was made:");
    }
    cli_json_init(&json);
    cli_json_counters(&json, counted->counters);
    print_members(&json);
}

static int print(const struct counted *counted,
                 const struct cli_snapshot *snapshot)
{
    struct cli_json json;

    if (args.json) {
        return print_json(counted, snapshot);
    }
    print_counters(counted);
    (void)puts("On record now:");
    cli_json_init(&json);
    add_gauges(&json, snapshot);
    print_members(&json);
    return 0;
}

static int print_stats(struct idem_store *store, struct idem_metrics *metrics,
                       const struct cli_snapshot *snapshot)
{
    struct counted counted = {.of_table = idem_store_is_remote(store)};
    struct idem_counters own = IDEM_COUNTERS_INIT;

    if (metrics->has_counters) {
        counted.counters = &metrics->counters;
    }
    if (metrics->has_counters &&
        (counted.of_table || idem_count(store, &own, NULL) != 0)) {
        counted.meter = secure_getenv("IDEM_METER");
    }
    return print(&counted, snapshot);
}

/* @store and @snapshot are NULL if the store is unavailable. */
static int print_all(struct idem_store *store,
                     const struct cli_snapshot *snapshot)
{
    struct idem_error error = {0};
    struct idem_metrics metrics;

    error.code = cli_metrics(store, snapshot, &jobs, &metrics, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    return args.format != 0
               ? cli_metrics_write(&metrics, args.format == EMF, args.output)
               : print_stats(store, &metrics, snapshot);
}

static int stats(struct idem_store *store)
{
    struct idem_error error = {0};
    struct cli_snapshot snapshot;
    int status;

    error.code =
        cli_snapshot_outcomes(store, /* scope= */ NULL, CLI_OUTCOMES_SINCE_MS,
                              /* keep= */ NULL, &snapshot, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = print_all(store, &snapshot);
    if (status == 0 && snapshot.unreadable > 0) {
        status = CLI_CORRUPT;
    }
    cli_snapshot_finish(&snapshot);
    return status;
}

/* A collector of metrics must learn that the store is unavailable, so it gets metrics
 * even then. */
static int away(int status)
{
    if (args.format != 0) {
        (void)print_all(/* store= */ NULL, /* snapshot= */ NULL);
    }
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_store *store;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "stats takes no key; see idem show");
    }
    if (args.json && args.format != 0) {
        return cli_usage(command, "choose one: --json or --format");
    }
    if (args.format != PROMETHEUS &&
        (args.output != NULL || args.missing != NULL)) {
        return cli_usage(command, "--%s needs --format prometheus",
                         args.output != NULL ? "output" : "missing");
    }
    status = cli_jobs_read(command, args.missing, &jobs);
    if (status != 0) {
        return status;
    }
    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return away(status);
    }
    status = stats(store);
    cli_journal_note(store);
    idem_close(store);
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_JSON(&args.json),
    CLI_VALUE("format", "FORMAT", CLI_CHOICE, &args.format,
              "metrics: prometheus, or emf (CloudWatch's embedded format)",
              .as = IDEM_SETTING(IDEM_SETTING_WORD, .min = PROMETHEUS,
                                 .words = formats)),
    CLI_VALUE("output", "FILE", CLI_TEXT, &args.output,
              "replace FILE in one step (default: stdout)", .letter = 'o'),
    CLI_OPTION_MISSING(&args.missing,
                       "also print when such keys last succeeded: 'backup@*'"),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem stats",
    "idem stats --json | jq .counters.replayed",
    "idem stats --format prometheus -o /var/lib/prometheus/node-exporter/idem.prom",
    "idem stats --format prometheus --missing 'backup@*,report@*'",
    NULL,
};

const struct cli_command cli_stats = {
    .name = "stats",
    .summary = "count attempts, replays and refusals",
    .usage = "idem stats [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
