/* idem stats: how often things happened, and what is on record now. */
#include "cli.h"
#include "journal.h"
#include "json.h"

static struct {
    bool json;
    const char *store;
} args;

/* What is on record and may need somebody. */
struct gauges {
    uint64_t in_progress;
    uint64_t overdue;
    uint64_t failed;
    uint64_t unknown;
    uint64_t corrupt;
};

static int gauge(void *ctx, int code, const struct idem_record *record)
{
    struct gauges *g = ctx;

    g->corrupt += code != 0;
    g->in_progress += code == 0 && record->status == IDEM_STATUS_IN_PROGRESS;
    g->failed += code == 0 && record->status == IDEM_STATUS_FAILED;
    g->unknown += code == 0 && record->status == IDEM_STATUS_UNKNOWN;
    return 0;
}

/* The store says what is overdue: by its own clock. */
static int gauge_overdue(void *ctx, int code, const struct idem_record *record)
{
    struct gauges *g = ctx;

    (void)record;
    g->overdue += code == 0;
    return 0;
}

static int read_gauges(struct idem_store *store, struct gauges *g,
                       struct idem_error *error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    int rc;

    filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS | 1u << IDEM_STATUS_FAILED |
                      1u << IDEM_STATUS_UNKNOWN;
    rc = idem_list(store, &filter, gauge, g, /* ret_now_ms= */ NULL, error);
    if (rc == 0) {
        filter.statuses = 0;
        filter.overdue = true;
        rc = idem_list(store, &filter, gauge_overdue, g, /* ret_now_ms= */ NULL,
                       error);
    }
    return rc;
}

/* One member on a line of its own, or in an object. */
struct printer {
    struct cli_json *json;
};

static void put(struct printer *p, const char *name, uint64_t value)
{
    if (p->json != NULL) {
        cli_json_count(p->json, name, value);
    } else {
        (void)printf("  %-12s %llu\n", name, (unsigned long long)value);
    }
}

static void put_counters(struct printer *p, const struct idem_counters *c)
{
    put(p, "started", c->started);
    put(p, "takeovers", c->takeovers);
    put(p, "completed", c->completed);
    put(p, "failed", c->failed);
    put(p, "unknown", c->unknown);
    put(p, "released", c->released);
    put(p, "replayed", c->replayed);
    put(p, "busy", c->busy);
    put(p, "mismatch", c->mismatch);
    put(p, "lost", c->lost);
    put(p, "resolved", c->resolved);
    put(p, "purged", c->purged);
}

static void put_gauges(struct printer *p, const struct gauges *g)
{
    put(p, "in_progress", g->in_progress);
    put(p, "overdue", g->overdue);
    put(p, "failed", g->failed);
    put(p, "unknown", g->unknown);
    put(p, "corrupt", g->corrupt);
}

static int print_json(const struct idem_counters *c, const struct gauges *g)
{
    struct printer p;
    struct cli_json json;
    struct cli_json child;
    int status;

    cli_json_init(&json);
    p.json = &child;
    cli_json_init(&child);
    put_counters(&p, c);
    cli_json_object(&json, "counters", &child);
    cli_json_init(&child);
    put_gauges(&p, g);
    cli_json_object(&json, "records", &child);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static int print(const struct idem_counters *c, const struct gauges *g)
{
    struct printer p = {.json = NULL};

    if (args.json) {
        return print_json(c, g);
    }
    (void)puts("Since the store was made:");
    put_counters(&p, c);
    (void)puts("On record now:");
    put_gauges(&p, g);
    return 0;
}

static int stats(struct idem_store *store)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_error error = {0};
    struct gauges gauges = {0};
    int status;

    error.code = idem_count(store, &counters, &error);
    if (error.code == 0) {
        error.code = read_gauges(store, &gauges, &error);
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = print(&counters, &gauges);
    return status == 0 && gauges.corrupt > 0 ? CLI_CORRUPT : status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_store *store;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "stats takes no key; see idem show");
    }
    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status == 0) {
        status = stats(store);
        cli_journal_note(store);
        idem_close(store);
    }
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem stats",
    "idem stats --json | jq .counters.replayed",
    NULL,
};

const struct cli_command cli_stats = {
    .name = "stats",
    .summary = "count what was started, replayed, refused",
    .usage = "idem stats [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
