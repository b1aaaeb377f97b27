/* idem list: the records, one on a line. */
#include "cli.h"
#include "clock.h"
#include "journal.h"
#include "json.h"

#include <unistd.h>

static struct {
    const char *statuses;
    bool overdue;
    const char *scope;
    uint64_t limit;
    bool json;
    const char *store;
} args;

/* A word of a column: its spaces are escaped too, and it is never empty. */
static void print_word(struct idem_slice s, int width)
{
    const char *bytes = s.base;
    char text[4 * IDEM_OWNER_MAX + 1] = "";
    char *p = text;
    size_t i;

    for (i = 0; i < s.len; i++) {
        if (bytes[i] == ' ') {
            p = stpcpy(p, "\\x20");
        } else {
            p += strlen(cli_escape(idem_bytes(&bytes[i], 1), p, 5));
        }
    }
    (void)printf("%-*s  ", width, s.len > 0 ? text : "-");
}

/* What is left of the lease, "-12s" if it is over; "-" where none runs. */
static void lease_text(const struct idem_record *r, char buf[40])
{
    int64_t left_ms = r->lease_end_ms - cli_now_ms();
    char text[32];

    if (r->status != IDEM_STATUS_IN_PROGRESS) {
        (void)strcpy(buf, "-");
        return;
    }
    if (r->lease_end_ms == IDEM_NEVER) {
        left_ms = IDEM_NEVER;
    }
    cli_duration_text(left_ms < 0 ? -left_ms : left_ms, text);
    (void)snprintf(buf, 40, "%s%s", left_ms < 0 ? "-" : "", text);
}

static void print_row(int code, const struct idem_record *r)
{
    char started[32];
    char lease[40];

    if (code != 0) {
        (void)printf("%-11s  %-24s  %-7s  %5s  ", "CORRUPT", "-", "-", "-");
    } else {
        cli_time_text(r->started_ms, started);
        lease_text(r, lease);
        cli_print_status(r, /* width= */ 11);
        (void)printf("  %-24s  %-7s  %5u  ", started, lease,
                     (unsigned)r->attempts);
    }
    print_word(r->owner, 20);
    print_word(r->scope, 10);
    cli_print_escaped(stdout, r->key);
    (void)putchar('\n');
}

static int print_json_row(int code, const struct idem_record *r)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    if (code == 0) {
        cli_json_record(&json, r, /* with_bytes= */ false);
    } else {
        cli_json_bytes(&json, "scope", r->scope);
        cli_json_bytes(&json, "key", r->key);
        cli_json_hex(&json, "id", idem_bytes(r->id, sizeof(r->id)));
        cli_json_text(&json, "problem", idem_error_name(code));
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

struct listing {
    int status; /* Of the whole command, so far. */
    uint64_t corrupt;
};

static int print_one(void *ctx, int code, const struct idem_record *r)
{
    struct listing *listing = ctx;

    if (code != 0) {
        listing->corrupt++;
    }
    if (args.json) {
        listing->status = print_json_row(code, r);
    } else {
        print_row(code, r);
    }
    /* Nobody reads on: there is no use in going on either. */
    return listing->status != 0 || ferror(stdout);
}

static void print_header(void)
{
    if (!args.json && isatty(STDOUT_FILENO)) {
        (void)printf("%-11s  %-24s  %-7s  %5s  %-20s  %-10s  %s\n", "STATUS",
                     "STARTED", "LEASE", "TRIES", "OWNER", "SCOPE", "KEY");
    }
}

static int list(const struct idem_filter *filter)
{
    struct listing listing = {0};
    struct idem_error error = {0};
    struct idem_store *store;
    int status;

    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    print_header();
    error.code = idem_list(store, filter, print_one, &listing,
                           /* ret_now_ms= */ NULL, &error);
    if (error.code == 0) {
        cli_journal_note(store);
    }
    idem_close(store);

    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (listing.corrupt > 0 && listing.status == 0) {
        cli_say("%llu record%s cannot be trusted; restore the store, or take "
                "other keys",
                (unsigned long long)listing.corrupt,
                listing.corrupt == 1 ? "" : "s");
        return CLI_CORRUPT;
    }
    return listing.status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "list takes no key; see idem show");
    }
    status = cli_statuses(command, args.statuses, &filter.statuses);
    if (status != 0) {
        return status;
    }
    filter.overdue = args.overdue;
    filter.any_scope = args.scope == NULL;
    filter.scope = idem_str(args.scope);
    filter.max = args.limit;
    return list(&filter);
}

static struct cli_option options[] = {
    {.name = "status",
     .kind = CLI_TEXT,
     .target = &args.statuses,
     .arg = "STATUS",
     .help = "only these: failed,unknown"},
    {.name = "overdue",
     .kind = CLI_FLAG,
     .target = &args.overdue,
     .help = "only work that should have ended by now"},
    {.name = "scope",
     .letter = 's',
     .kind = CLI_ANY_TEXT,
     .target = &args.scope,
     .arg = "SCOPE",
     .max = IDEM_SCOPE_MAX,
     .help = "only this scope (default: all)"},
    {.name = "limit",
     .kind = CLI_COUNT,
     .target = &args.limit,
     .arg = "N",
     .min = 1,
     .max = INT64_MAX,
     .help = "at most so many (default: all)"},
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem list --status failed,unknown # what waits for a person",
    "idem list --overdue               # what should have ended by now",
    "idem list --json | jq -r 'select(.attempts > 1) | .key'",
    NULL,
};

const struct cli_command cli_list = {
    .name = "list",
    .summary = "list the records",
    .usage = "idem list [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
