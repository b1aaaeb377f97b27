/* Purging a table of DynamoDB. */
#include "dynamodb/table.h"

#include "store/journal.h"
#include "text/error.h"
#include "text/json.h"
#include "text/screen.h"

#define SCHEME "dynamodb:"

bool cli_is_table(const struct idem_store *store)
{
    const char *url = idem_store_url(store);

    return url != NULL && strncmp(url, SCHEME, strlen(SCHEME)) == 0;
}

static int show(void *ctx, const struct idem_dynamodb_purged *purged)
{
    (void)ctx;
    cli_progress("purging", purged->purged, /* all= */ 0);
    return 0;
}

static uint64_t rounded_up(double n)
{
    uint64_t whole = (uint64_t)n;

    return whole + ((double)whole < n);
}

static int tell(const struct idem_dynamodb_purged *p, bool as_json)
{
    struct cli_json json;
    uint64_t read_units = rounded_up(p->read_units);
    uint64_t write_units = rounded_up(p->write_units);

    if (as_json) {
        cli_json_init(&json);
        cli_json_count(&json, "purged", p->purged);
        cli_json_count(&json, "parts", p->parts);
        cli_json_count(&json, "read_units", read_units);
        cli_json_count(&json, "write_units", write_units);
        cli_json_count(&json, "throttled", p->throttled);
        return cli_json_print(&json);
    }
    (void)printf("purged %llu record%s", (unsigned long long)p->purged,
                 p->purged == 1 ? "" : "s");
    if (p->parts > 0) {
        (void)printf(", and %llu part%s of results and inputs without a record",
                     (unsigned long long)p->parts, p->parts == 1 ? "" : "s");
    }
    (void)printf("\nused %llu read units and %llu write units",
                 (unsigned long long)read_units,
                 (unsigned long long)write_units);
    if (p->throttled > 0) {
        (void)printf("; %llu request%s throttled and retried",
                     (unsigned long long)p->throttled,
                     p->throttled == 1 ? " was" : "s were");
    }
    (void)puts("");
    return 0;
}

int cli_purge_table(struct idem_store *store, uint64_t max,
                    uint64_t units_per_second, bool json)
{
    struct idem_dynamodb_purge_options how = IDEM_DYNAMODB_PURGE_OPTIONS_INIT;
    struct idem_dynamodb_purged purged = IDEM_DYNAMODB_PURGED_INIT;
    struct idem_error error = {0};
    int status = 0;
    int printed;

    how.max = max;
    how.units_per_second = units_per_second;
    how.progress = show;
    error.code = idem_dynamodb_purge(store, &how, &purged, &error);
    cli_progress_end();
    if (error.code == 0) {
        cli_journal_catch_up(store, cli_stderr_is_tty());
    } else {
        status = cli_fail_with(&error);
    }
    printed = tell(&purged, json);
    return status != 0 ? status : printed;
}
