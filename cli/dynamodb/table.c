/* A table of DynamoDB: its size, and purging it. */
#include "dynamodb/table.h"

#include "store/journal.h"
#include "text/error.h"
#include "text/json.h"
#include "text/screen.h"

/* ---- Its size ---- */

#define SCHEME "dynamodb:"

const char *cli_table_place(const char *url)
{
    size_t len = strlen(SCHEME);

    return url != NULL && strncmp(url, SCHEME, len) == 0 ? url + len : NULL;
}

bool cli_is_table(const struct idem_store *store)
{
    return cli_table_place(idem_store_url(store)) != NULL;
}

int cli_table_size(const char *place, struct idem_dynamodb_extent *ret_size,
                   struct idem_error *ret_error)
{
    *ret_size = (struct idem_dynamodb_extent)IDEM_DYNAMODB_EXTENT_INIT;
    return idem_dynamodb_size(place, ret_size, ret_error);
}

/* ---- Purging it ---- */

enum {
    /* Items that a dry run reads: about 100 read units for small records. */
    SAMPLE = 1000,
    UNIT = 8192, /* Bytes that are read for one, not strongly. */
};

/* The result of a purge, or of its dry run. */
struct bill {
    uint64_t records;
    uint64_t parts;
    uint64_t read_units;
    uint64_t write_units;
    uint64_t throttled;
    bool estimated;
    uint64_t items; /* In the table; 0: not known. */
    const struct idem_dynamodb_purged *purged;
};

/* False: the service does not say it to these credentials. */
static bool table_size(const struct idem_store *store,
                       struct idem_dynamodb_extent *ret_size)
{
    struct idem_error error;

    return cli_table_size(cli_table_place(idem_store_url(store)), ret_size,
                          &error) == 0;
}

/* ---- Purging ---- */

static int show(void *ctx, const struct idem_dynamodb_purged *purged)
{
    const struct cli_purge_options *options = ctx;

    if (options->dry_run) {
        cli_progress("counting", purged->looked, /* all= */ 0);
        return 0;
    }
    cli_progress("purging", purged->purged, /* all= */ 0);
    if (options->verbose && !cli_stderr_is_tty()) {
        (void)fprintf(stderr, "purged %llu\n",
                      (unsigned long long)purged->purged);
    }
    return 0;
}

static int purge(struct idem_store *store,
                 const struct cli_purge_options *options,
                 struct idem_dynamodb_purged *ret_purged)
{
    struct idem_dynamodb_purge_options how = IDEM_DYNAMODB_PURGE_OPTIONS_INIT;
    struct idem_error error = {0};

    how.max = options->max;
    how.units_per_second = options->units_per_second;
    how.look_only = options->dry_run;
    how.look_max = options->dry_run ? SAMPLE : 0;
    how.progress = show;
    how.ctx = (void *)(uintptr_t)options;
    error.code = idem_dynamodb_purge(store, &how, ret_purged, &error);
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* ---- What came of it ---- */

static uint64_t rounded_up(double n)
{
    uint64_t whole = (uint64_t)n;

    return whole + ((double)whole < n);
}

static uint64_t scaled(double of_sample, const struct bill *bill)
{
    double factor = (double)bill->items / (double)bill->purged->looked;

    return rounded_up(of_sample * factor);
}

/* From what the sample had to the whole table. */
static void estimate(struct bill *bill, const struct cli_purge_options *options)
{
    const struct idem_dynamodb_purged *p = bill->purged;

    bill->records = p->found;
    bill->read_units = rounded_up(p->read_units);
    if (!p->done) {
        bill->estimated = true;
        if (bill->items < p->looked) {
            bill->items = p->looked; /* The service has not counted anew. */
        }
        bill->records = scaled((double)p->found, bill);
        bill->read_units = scaled(p->read_units, bill);
    }
    if (options->max != 0 && bill->records > options->max) {
        bill->records = options->max;
    }
    bill->write_units = bill->records;
}

static void print_sample(const struct bill *bill)
{
    (void)printf("would have purged about %llu record%s: of %llu items that "
                 "were read %llu are past their retention, and the table has "
                 "about %llu; nothing was changed\n",
                 (unsigned long long)bill->records,
                 bill->records == 1 ? "" : "s",
                 (unsigned long long)bill->purged->looked,
                 (unsigned long long)bill->purged->found,
                 (unsigned long long)bill->items);
}

static void print_count(const struct bill *bill, bool dry_run)
{
    (void)printf("%spurged %llu record%s", dry_run ? "would have " : "",
                 (unsigned long long)bill->records,
                 bill->records == 1 ? "" : "s");
    if (bill->parts > 0) {
        (void)printf(", and %llu part%s of results and inputs that had none",
                     (unsigned long long)bill->parts,
                     bill->parts == 1 ? "" : "s");
    }
    (void)puts(dry_run ? "; nothing was changed" : "");
}

static void print_text(const struct bill *bill, bool dry_run)
{
    if (bill->estimated) {
        print_sample(bill);
    } else {
        print_count(bill, dry_run);
    }
    if (dry_run) {
        (void)printf("a purge takes about %llu read units and %llu write "
                     "units, and one more for each KB above the first of what "
                     "it deletes\n",
                     (unsigned long long)bill->read_units,
                     (unsigned long long)bill->write_units);
        return;
    }
    (void)printf("used %llu read units and %llu write units",
                 (unsigned long long)bill->read_units,
                 (unsigned long long)bill->write_units);
    if (bill->throttled > 0) {
        (void)printf("; %llu request%s throttled, and made again",
                     (unsigned long long)bill->throttled,
                     bill->throttled == 1 ? " was" : "s were");
    }
    (void)puts("");
}

static int print_json(const struct bill *bill, bool dry_run)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_count(&json, "purged", bill->records);
    cli_json_count(&json, "parts", bill->parts);
    cli_json_count(&json, "read_units", bill->read_units);
    cli_json_count(&json, "write_units", bill->write_units);
    if (dry_run) {
        cli_json_bool(&json, "dry_run", true);
        cli_json_bool(&json, "estimated", bill->estimated);
    } else {
        cli_json_count(&json, "throttled", bill->throttled);
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

int cli_purge_table(struct idem_store *store,
                    const struct cli_purge_options *options)
{
    struct idem_dynamodb_purged purged = IDEM_DYNAMODB_PURGED_INIT;
    struct bill bill = {.purged = &purged};
    struct idem_dynamodb_extent size;
    int printed = 0;
    int status;

    status = purge(store, options, &purged);
    if (status != 0 && options->dry_run) {
        return status;
    }
    if (options->dry_run) {
        if (!purged.done && table_size(store, &size)) {
            bill.items = size.items;
        }
        estimate(&bill, options);
    } else {
        if (status == 0) {
            cli_journal_catch_up(store, cli_stderr_is_tty());
        }
        bill.records = purged.purged;
        bill.parts = purged.parts;
        bill.read_units = rounded_up(purged.read_units);
        bill.write_units = rounded_up(purged.write_units);
        bill.throttled = purged.throttled;
    }
    if (options->json) {
        printed = print_json(&bill, options->dry_run);
    } else {
        print_text(&bill, options->dry_run);
    }
    return status != 0 ? status : printed;
}
