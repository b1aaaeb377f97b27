/* idem list: the records, one on a line. */
#include "inspect/list.h"

#include "inspect/metrics.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/value.h"
#include "process/host.h"
#include "record/record.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>

static struct list_args args;
static unsigned statuses; /* Of --status; 0: all. */

/* ---- Which records -------------------------------------------------------- */

static bool is_recent(const struct idem_record *r)
{
    int64_t last_ms = r->ended_ms > r->started_ms ? r->ended_ms : r->started_ms;

    return args.since_ms == 0 || last_ms >= cli_now_ms() - args.since_ms;
}

/* The records by which idem watch raises an alert only once are shown only to a user who
 * names their scope. */
static bool is_shown(const struct idem_record *r)
{
    return args.scope != NULL || !cli_is_alert(r);
}

/* With --overdue, records that either option selects are shown, as idem resolve selects
 * them. */
static bool has_status(const struct idem_record *r)
{
    unsigned bits = 1u << r->status | 1u << idem_record_status(r);

    return statuses == 0 || (statuses & bits) != 0 ||
           (args.overdue && r->overdue);
}

/* A record that cannot be read is shown whatever the options about its contents are: it
 * may be one that the user wants. */
static bool is_wanted(int code, const struct idem_record *r)
{
    return (args.match == NULL || cli_matches(r, args.match)) && is_shown(r) &&
           (code != 0 || (is_recent(r) && has_status(r) &&
                          (!args.failed || cli_outcome_failed(r))));
}

static int list_one(void *ctx, int code, const struct idem_record *r)
{
    struct listing *listing = ctx;

    if (!is_wanted(code, r)) {
        return 0;
    }
    listing->corrupt += code != 0;
    if (listing->order.sorts) {
        listing->status = listing_keep(listing, code, r);
        return listing->status != 0 ||
               cli_list_is_full(&listing->order, ++listing->shown);
    }
    listing_begin_output(listing);
    listing->status = listing_print(stdout, listing, code, r);
    /* Once stdout fails, nobody reads the rest. */
    return listing->status != 0 || ferror(stdout) ||
           cli_list_is_full(&listing->order, ++listing->shown);
}

static int note_more(void *ctx, int code, const struct idem_record *r)
{
    struct listing *listing = ctx;

    listing->more = is_wanted(code, r);
    return listing->more;
}

/* Steps that are short enough for progress to be seen. */
enum {
    LOOK_STEP = 4096,
    LOOK_FOR_MORE = 2000
};

/* Looks whether more comes after the last row, but only at LOOK_FOR_MORE records. */
static int look_for_more(struct idem_store *store,
                         const struct idem_filter *filter,
                         struct listing *listing, const struct idem_page *page,
                         struct idem_error *error)
{
    struct idem_page next = *page;

    next.look_max = LOOK_FOR_MORE;
    error->code =
        idem_list_page(store, filter, note_more, listing, &next, error);
    listing->maybe_more = !listing->more && !next.done;
    return error->code;
}

static int walk(struct idem_store *store, const struct idem_filter *filter,
                struct listing *listing, struct idem_page *page,
                struct idem_error *error)
{
    bool full = false;

    page->look_max = LOOK_STEP;
    while (error->code == 0 && listing->status == 0 && !full && !page->done &&
           !ferror(stdout)) {
        if (!listing->begun) {
            cli_progress(listing->looking, page->looked, /* all= */ 0);
        }
        error->code =
            idem_list_page(store, filter, list_one, listing, page, error);
        full = cli_list_is_full(&listing->order, listing->shown);
    }
    cli_progress_end();
    return full && !page->done && error->code == 0
               ? look_for_more(store, filter, listing, page, error)
               : error->code;
}

/* Prints the rows that were kept. */
static void print_part(struct listing *listing)
{
    listing_begin_output(listing);
    cli_rows_print(&listing->order.rows, stdout);
}

/* Walks again for each part of a list that is sorted and shows all, so that it holds only
 * one part in memory. */
static int walk_parts(struct idem_store *store,
                      const struct idem_filter *filter, struct listing *listing,
                      struct idem_page *page, struct idem_error *error)
{
    const struct idem_page first = *page;

    while (walk(store, filter, listing, page, error) == 0) {
        print_part(listing);
        if (listing->status != 0 || ferror(stdout) ||
            !cli_list_next_part(&listing->order)) {
            break;
        }
        *page = first;
        listing->corrupt = 0; /* The next walk meets them all again. */
    }
    return error->code;
}

/* Prints how to see the next page: as the last line on a terminal, else on standard
 * error, apart from the records. */
static void print_next(const struct listing *listing, bool certain,
                       const char *place)
{
    FILE *f = listing->is_tty && !args.json ? stdout : stderr;

    (void)fflush(stdout);
    (void)fprintf(f, "%sthere %s more; repeat the command with --after %s\n",
                  f == stderr ? "idem: " : "", certain ? "are" : "may be",
                  place);
}

static void say_more(const struct listing *listing,
                     const struct idem_page *page)
{
    char place[CLI_LIST_PLACE_MAX];

    if (cli_list_next(&listing->order, place)) {
        print_next(listing, /* certain= */ true, place);
    } else if (listing->more || listing->maybe_more) {
        print_next(listing, listing->more, page->place);
    }
}

/* People expect the newest first, so this says that the store has no order. */
static void say_unordered(const struct listing *listing,
                          const struct idem_store *store)
{
    if (listing->is_tty && !args.json && listing->order.unordered &&
        listing->shown > 1) {
        (void)printf("%s keeps no order: %s\n", idem_store_url(store),
                     args.limit != 0 ? "the newest of this page are first"
                                     : "the records came as it gave them");
    }
}

static int conclude(struct listing *listing, struct idem_store *store,
                    const struct idem_page *page)
{
    const char *url = idem_store_url(store);
    bool is_layout = url != NULL && strstr(url, "layout=") != NULL;

    say_unordered(listing, store);
    say_more(listing, page);
    cli_journal_note(store);
    if (listing->corrupt > 0 && listing->status == 0) {
        cli_say("%llu record%s cannot be trusted%s",
                (unsigned long long)listing->corrupt,
                listing->corrupt == 1 ? "" : "s",
                listing->corrupt == listing->shown && is_layout
                    ? ", and no other was found: was the table written in "
                      "another layout than the one in the URL?"
                    : "; restore the store, or take other keys");
        return CLI_CORRUPT;
    }
    return listing->status;
}

/* Shows the rows that were found before the store failed. */
static int give_up(const struct cli_command *command, struct listing *listing,
                   const struct idem_error *error)
{
    if (error->code == IDEM_EINVALID && args.after != NULL) {
        return cli_list_bad_place(command);
    }
    if (listing->order.rows.added > 0) {
        print_part(listing);
    }
    return cli_fail_with(error);
}

static int list(const struct cli_command *command, struct listing *listing,
                const struct idem_filter *filter)
{
    struct idem_page page = IDEM_PAGE_INIT;
    struct idem_error error = {0};
    struct idem_store *store;
    int status;

    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    status =
        cli_list_order(command, &listing->order, filter, store, page.place);
    if (status == 0) {
        error.code = walk_parts(store, filter, listing, &page, &error);
        status = error.code != 0 ? give_up(command, listing, &error)
                                 : conclude(listing, store, &page);
    }
    idem_close(store);
    return status;
}

/* The progress of a walk says when no index helps. */
static const char *looking(void)
{
    return args.scope != NULL ? "no index has the scope, looking at all records"
                              : "looking at all records";
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct listing listing = {.args = &args,
                              .is_tty = cli_stdout_is_tty(),
                              .looking = looking()};
    struct cli_list_order *order = &listing.order;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "list takes no key; see idem show");
    }
    status = cli_statuses(command, args.statuses, &filter.statuses);
    if (status == 0) {
        status = listing_choose_fields(command, &listing);
    }
    statuses = filter.statuses;
    order->limit = args.limit;
    order->after = args.after;
    if (status != 0) {
        return status;
    }
    if (args.failed && filter.statuses == 0) {
        /* Reads only the records that list_one() would let through. */
        filter.statuses = 1u << IDEM_STATUS_FAILED;
        filter.failed_outcomes = true;
    }
    filter.newest_first = true;
    if (args.overdue && statuses != 0) {
        filter.statuses |= 1u << IDEM_STATUS_IN_PROGRESS;
    }
    filter.overdue = args.overdue && statuses == 0;
    filter.any_scope = args.scope == NULL;
    filter.scope = idem_str(args.scope);
    status = list(command, &listing, &filter);
    cli_rows_finish(&order->rows);
    return status;
}

static struct cli_option options[] = {
    CLI_VALUE("status", "STATUS", CLI_TEXT, &args.statuses,
              "only these statuses: failed,unknown"),
    CLI_SWITCH("overdue", &args.overdue,
               "only work that should have ended by now"),
    CLI_SWITCH("failed", &args.failed,
               "only what failed, or ended with an exit status other than 0"),
    CLI_VALUE("since", "TIME", CLI_DURATION, &args.since_ms,
              "only work that began or ended within this time: 2h", .min = 1),
    CLI_VALUE("match", "PATTERN", CLI_TEXT, &args.match,
              "only keys that match: 'order-*'"),
    CLI_OPTION_SCOPES(&args.scope),
    /* Rows are counted in size_t. */
    CLI_VALUE("max", "N", CLI_COUNT, &args.limit,
              "show at most N, and where the next page begins", .min = 1,
              .max = PTRDIFF_MAX),
    CLI_VALUE("after", "PLACE", CLI_TEXT, &args.after,
              "continue where a list with --max ended",
              .max = IDEM_PLACE_MAX - 1),
    CLI_VALUE("fields", "FIELDS", CLI_TEXT, &args.fields,
              "show these fields, separated by commas: status exit started age "
              "took lease attempts owner scope key created ended expires fence "
              "error",
              .letter = 'f'),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem list --status failed,unknown # what waits for a person",
    "idem list --max 20                # the newest",
    "idem list --overdue               # what should have ended by now",
    "idem list --failed --since 24h    # what went wrong since yesterday",
    "idem list --match 'order-*' --fields key,status,exit",
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
