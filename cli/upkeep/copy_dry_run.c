/* idem store copy --dry-run: how many records, and what they cost.
 *
 * The records of a file are read, and each is sized as the table would hold it. Of a
 * table only the service's count is asked for, which costs no units: an average stands
 * in for each record. */
#include "dynamodb/table_size.h"
#include "process/clock.h"
#include "store/index.h"
#include "text/error.h"
#include "text/json.h"
#include "text/progress.h"
#include "upkeep/copying.h"

#include <idem/operator.h>

enum {
    WRITE_BYTES = 1024, /* One write unit: what the service bills. */
    /* An item without its key, scope, texts and bodies, and the item of a part of a
     * body without its bytes: as of aws/dynamodb/layout/item.c, rounded up. */
    ITEM_BYTES = 300,
    PART_BYTES = 100,
};

struct bill {
    bool counted;   /* The service knows how many items the source has. */
    bool estimated; /* From averages. */
    uint64_t records;
    uint64_t source_read_units;
    uint64_t target_read_units;
    uint64_t target_write_units;
};

static uint64_t units(uint64_t bytes, uint64_t each)
{
    return bytes == 0 ? 1 : (bytes + each - 1) / each;
}

/* ---- From a file ---- */

struct counting {
    const struct cli_copy_options *options;
    int64_t now_ms;
    bool index; /* The target has one. */
    struct bill *bill;
};

static bool is_left_out(const struct counting *c, const struct idem_record *r)
{
    return r->status == IDEM_STATUS_IN_PROGRESS &&
           c->options->open == CLI_COPY_OPEN_LEAVE;
}

static bool is_in_index(const struct idem_record *r)
{
    return r->status == IDEM_STATUS_IN_PROGRESS ||
           r->status == IDEM_STATUS_FAILED ||
           r->status == IDEM_STATUS_UNKNOWN || idem_outcome_failed(r);
}

static uint64_t part_units(uint64_t len)
{
    return len == 0 ? 0 : units(len + PART_BYTES, WRITE_BYTES);
}

/* Bodies are taken as they are: what packs well takes less. */
static uint64_t write_units(const struct idem_record *r)
{
    uint64_t head = ITEM_BYTES + 2 * r->key.len + 2 * r->scope.len +
                    r->owner.len + r->result.meta.len + r->error.len +
                    r->note.len;
    uint64_t bodies = r->result_len + r->input_len;

    if (head + bodies <= WRITE_BYTES) {
        return 1;
    }
    return units(head, WRITE_BYTES) + part_units(r->result_len) +
           part_units(r->input_len);
}

static int count_one(void *ctx, int code, const struct idem_record *r)
{
    const struct counting *c = ctx;

    if (code != 0 || r->expires_ms <= c->now_ms) {
        return 0;
    }
    c->bill->target_read_units++; /* A copy looks there first. */
    if (is_left_out(c, r)) {
        return 0;
    }
    c->bill->records++;
    c->bill->target_write_units +=
        write_units(r) + (c->index && is_in_index(r));
    cli_progress("counting", c->bill->records, /* all= */ 0);
    return 0;
}

static int count_file(struct idem_store *from, const char *to_url,
                      const struct cli_copy_options *options, struct bill *bill)
{
    struct counting c = {.options = options,
                         .now_ms = cli_now_ms(),
                         .index = cli_table_has_index(to_url),
                         .bill = bill};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};

    bill->counted = true;
    error.code = idem_list(from, &filter, count_one, &c,
                           /* ret_now_ms= */ NULL, &error);
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* ---- From a table ---- */

/* A list of all of it, strongly, then each item once more, by its key. */
static int count_table(const char *place, struct bill *bill)
{
    struct idem_dynamodb_extent size;
    struct idem_error error = {0};
    uint64_t item;

    error.code = cli_table_size(place, &size, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    bill->estimated = true;
    bill->counted = size.items > 0;
    if (!bill->counted) {
        return 0;
    }
    item = size.bytes / size.items;
    bill->records = size.items;
    bill->source_read_units =
        cli_table_list_units(&size) + cli_table_get_units(&size);
    bill->target_read_units = size.items;
    bill->target_write_units = size.items * units(item, WRITE_BYTES);
    return 0;
}

/* ---- Both ---- */

static int print_json(const struct bill *bill)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_bool(&json, "dry_run", true);
    cli_json_bool(&json, "counted", bill->counted);
    cli_json_bool(&json, "estimated", bill->estimated);
    if (bill->counted) {
        cli_json_count(&json, "records", bill->records);
        cli_json_count(&json, "source_read_units", bill->source_read_units);
        cli_json_count(&json, "target_read_units", bill->target_read_units);
        cli_json_count(&json, "target_write_units", bill->target_write_units);
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static void print_text(const struct bill *bill)
{
    if (!bill->counted) {
        (void)puts("the service has not counted the items of the source yet, "
                   "which it does about every six hours; nothing was changed");
        return;
    }
    (void)printf("would have copied about %llu record%s; nothing was changed\n",
                 (unsigned long long)bill->records,
                 bill->records == 1 ? "" : "s");
    if (bill->source_read_units > 0) {
        (void)printf("a copy takes about %llu read units of the source\n",
                     (unsigned long long)bill->source_read_units);
    }
    if (bill->target_read_units > 0) {
        (void)printf("a copy takes about %llu read units and %llu write units "
                     "of the target%s\n",
                     (unsigned long long)bill->target_read_units,
                     (unsigned long long)bill->target_write_units,
                     bill->estimated ? ", and one more for each record that "
                                       "failed or is unknown"
                                     : "");
    }
}

int cli_copy_dry_run(struct idem_store *from, const char *to_url,
                     const struct cli_copy_options *options, bool json)
{
    const char *place = cli_table_place(idem_store_url(from));
    struct bill bill = {.counted = false};
    int status = place != NULL ? count_table(place, &bill)
                               : count_file(from, to_url, options, &bill);

    if (status != 0) {
        return status;
    }
    if (cli_table_place(to_url) == NULL) {
        bill.target_read_units = 0;
        bill.target_write_units = 0;
    }
    if (json) {
        return print_json(&bill);
    }
    print_text(&bill);
    return 0;
}
