/* idem list: the records, one on a line. */
#include "alert.h"
#include "cli.h"
#include "clock.h"
#include "color.h"
#include "fields.h"
#include "journal.h"
#include "json.h"
#include "rows.h"
#include "screen.h"

#include <fnmatch.h>
#include <stdlib.h>

static struct {
    const char *statuses;
    bool overdue;
    bool failed;
    bool all;
    const char *scope;
    const char *match;
    int64_t since_ms;
    const char *fields;
    const char *sort;
    uint64_t limit;
    bool json;
    const char *store;
} args;

struct listing {
    struct cli_fields fields;
    bool is_tty;                  /* For eyes: headings, ages, local time. */
    bool tabs;                    /* --fields in a pipe: nothing is padded. */
    const struct cli_field *sort; /* NULL: in the order of the store. */
    bool sorts;
    struct cli_rows rows;
    int status; /* Of the whole command, so far. */
    uint64_t corrupt;
    bool headed; /* The headings are printed. */
};

/* ---- Which columns ------------------------------------------------------- */

/* In a pipe, and where the terminal is wide enough. */
static const char all_columns[] =
    "status,exit,started,lease,attempts,owner,scope,key";

/* On a terminal: the first that leaves KEY_ROOM columns for the key. */
static const char *const terminal_columns[] = {
    "status,exit,started,age,lease,attempts,owner,scope,key",
    "status,exit,age,lease,attempts,owner,scope,key",
    "status,exit,age,lease,attempts,scope,key",
    "status,exit,age,lease,scope,key",
    "status,exit,age,key",
    NULL,
};

#define KEY_ROOM 24
#define GAP 2 /* Between two columns. */

static int width_of(const struct cli_fields *fields)
{
    int width = 0;
    size_t i;

    for (i = 0; i < fields->len; i++) {
        width += abs(fields->list[i]->width) + GAP;
    }
    return width;
}

static int choose_for_terminal(const struct cli_command *command,
                               struct cli_fields *fields)
{
    size_t i;

    for (i = 0; terminal_columns[i] != NULL; i++) {
        int status =
            cli_fields_parse(command, "fields", terminal_columns[i], fields);

        if (status != 0 || width_of(fields) + KEY_ROOM <= cli_width()) {
            return status;
        }
    }
    return 0;
}

static int choose_fields(const struct cli_command *command,
                         struct listing *listing)
{
    if (args.fields != NULL) {
        listing->tabs = !listing->is_tty;
        return cli_fields_parse(command, "fields", args.fields,
                                &listing->fields);
    }
    return listing->is_tty ? choose_for_terminal(command, &listing->fields)
                           : cli_fields_parse(command, "fields", all_columns,
                                              &listing->fields);
}

/* "-started": the newest first. Without a field the newest come last, where the
 * reader of a terminal looks. */
static int choose_order(const struct cli_command *command,
                        struct listing *listing)
{
    struct cli_fields by = {.len = 0};
    const char *name = args.sort;
    int status;

    listing->sorts = args.sort != NULL || args.limit != 0;
    listing->rows.limit = (size_t)args.limit;
    listing->rows.keeps_last = args.sort == NULL;
    if (!listing->sorts) {
        return 0;
    }
    if (name != NULL && name[0] == '-') {
        listing->rows.descending = true;
        name++;
    }
    status =
        cli_fields_parse(command, "sort", name != NULL ? name : "started", &by);
    if (status == 0 && by.len > 1) {
        return cli_usage(command, "--sort: sort by one field");
    }
    listing->sort = status == 0 ? by.list[0] : NULL;
    return status;
}

/* ---- One row ------------------------------------------------------------- */

/* The text of one field, to be freed; NULL: no memory. */
static char *field_text(const struct cli_field *field,
                        const struct idem_record *r, bool is_tty)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) {
        return NULL;
    }
    field->print(f, r, is_tty);
    (void)fclose(f);
    return text;
}

static void pad(FILE *f, int columns)
{
    (void)fprintf(f, "%*s", columns > 0 ? columns : 0, "");
}

/* The last column is not padded: a long key is not followed by blanks. */
static void print_cell(FILE *f, const struct listing *listing, size_t i,
                       const char *text)
{
    const struct cli_field *field = listing->fields.list[i];
    int width = field->width == 0 ? KEY_ROOM : abs(field->width);
    int room = width - (int)cli_columns(text);
    bool last = i + 1 == listing->fields.len;

    if (listing->tabs) {
        (void)fprintf(f, "%s%s", text, last ? "" : "\t");
        return;
    }
    pad(f, field->width < 0 ? room : 0);
    (void)fputs(text, f);
    pad(f, field->width < 0 || last ? 0 : room);
    pad(f, last ? 0 : GAP);
}

static void print_field(FILE *f, const struct listing *listing, size_t i,
                        int code, const struct idem_record *r)
{
    const struct cli_field *field = listing->fields.list[i];
    bool is_status = strcmp(field->name, "status") == 0;
    bool is_identity =
        strcmp(field->name, "key") == 0 || strcmp(field->name, "scope") == 0;
    char *text;

    if (code != 0 && !is_identity) {
        print_cell(f, listing, i, is_status ? "CORRUPT" : "-");
        return;
    }
    if (is_status && !listing->tabs) {
        cli_print_status(f, r, field->width);
        pad(f, i + 1 == listing->fields.len ? 0 : GAP);
        return;
    }
    text = field_text(field, r, listing->is_tty);
    print_cell(f, listing, i, text != NULL ? text : "?");
    free(text);
}

static void print_row(FILE *f, const struct listing *listing, int code,
                      const struct idem_record *r)
{
    size_t i;

    for (i = 0; i < listing->fields.len; i++) {
        print_field(f, listing, i, code, r);
    }
    (void)fputc('\n', f);
}

static int print_json_row(FILE *f, const struct listing *listing, int code,
                          const struct idem_record *r)
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
    if (args.fields != NULL && code == 0 && !json.failed) {
        cli_fields_keep(&listing->fields, json.object);
    }
    status = cli_json_write(&json, f);
    cli_json_finish(&json);
    return status;
}

static int print_to(FILE *f, const struct listing *listing, int code,
                    const struct idem_record *r)
{
    if (args.json) {
        return print_json_row(f, listing, code, r);
    }
    print_row(f, listing, code, r);
    return 0;
}

/* Keeps the line until all of them can be sorted. */
static int keep_row(struct listing *listing, int code,
                    const struct idem_record *r)
{
    const struct cli_field *by = listing->sort;
    char *text = NULL;
    char *line = NULL;
    size_t len;
    int status;
    FILE *f = open_memstream(&line, &len);

    if (f == NULL) {
        return CLI_INTERNAL;
    }
    status = print_to(f, listing, code, r);
    (void)fclose(f);
    if (by->number == NULL) {
        text = field_text(by, r, /* is_tty= */ false);
    }
    if (status == 0 && line != NULL &&
        cli_rows_add(&listing->rows, line, text,
                     code == 0 && by->number != NULL ? by->number(r) : 0) ==
            0) {
        return 0;
    }
    cli_say("out of memory");
    return CLI_INTERNAL;
}

/* ---- Which records -------------------------------------------------------- */

static bool matches(const struct idem_record *r)
{
    char key[4 * IDEM_KEY_MAX + 1];

    return args.match == NULL ||
           fnmatch(args.match, cli_escape(r->key, key, sizeof(key)),
                   FNM_NOESCAPE) == 0;
}

static bool is_recent(const struct idem_record *r)
{
    int64_t last_ms = r->ended_ms > r->started_ms ? r->ended_ms : r->started_ms;

    return args.since_ms == 0 || last_ms >= cli_now_ms() - args.since_ms;
}

/* The records by which idem watch tells of an alert once are for those who name
 * them. */
static bool is_shown(const struct idem_record *r)
{
    return args.all || args.scope != NULL || !cli_is_alert(r);
}

/* One that cannot be read is shown in any case: it may be any. */
static bool is_wanted(int code, const struct idem_record *r)
{
    return matches(r) && is_shown(r) &&
           (code != 0 ||
            (is_recent(r) && (!args.failed || cli_outcome_failed(r))));
}

/* With the first row: a store that cannot be read has no heading. */
static void print_header(struct listing *listing)
{
    size_t i;

    if (args.json || !listing->is_tty || listing->headed) {
        return;
    }
    listing->headed = true;
    for (i = 0; i < listing->fields.len; i++) {
        print_cell(stdout, listing, i, listing->fields.list[i]->heading);
    }
    (void)putchar('\n');
}

static int list_one(void *ctx, int code, const struct idem_record *r)
{
    struct listing *listing = ctx;

    if (!is_wanted(code, r)) {
        return 0;
    }
    if (code != 0) {
        listing->corrupt++;
    }
    if (!listing->sorts) {
        print_header(listing);
    }
    listing->status = listing->sorts ? keep_row(listing, code, r)
                                     : print_to(stdout, listing, code, r);
    /* Nobody reads on: there is no use in going on either. */
    return listing->status != 0 || ferror(stdout);
}

static int list(struct listing *listing, const struct idem_filter *filter)
{
    struct idem_error error = {0};
    struct idem_store *store;
    int status;

    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    cli_page_begin();
    error.code = idem_list(store, filter, list_one, listing,
                           /* ret_now_ms= */ NULL, &error);
    if (error.code == 0 || listing->rows.len > 0) {
        print_header(listing);
    }
    cli_rows_print(&listing->rows, stdout);
    if (error.code == 0) {
        cli_journal_note(store);
    }
    idem_close(store);

    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (listing->corrupt > 0 && listing->status == 0) {
        cli_say("%llu record%s cannot be trusted; restore the store, or take "
                "other keys",
                (unsigned long long)listing->corrupt,
                listing->corrupt == 1 ? "" : "s");
        return CLI_CORRUPT;
    }
    return listing->status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct listing listing = {.is_tty = cli_stdout_is_tty()};
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "list takes no key; see idem show");
    }
    status = cli_statuses(command, args.statuses, &filter.statuses);
    if (status == 0) {
        status = choose_fields(command, &listing);
    }
    if (status == 0) {
        status = choose_order(command, &listing);
    }
    if (status != 0) {
        return status;
    }
    if (args.failed && filter.statuses == 0) {
        /* What list_one() would let through, and no other record is read. */
        filter.statuses = 1u << IDEM_STATUS_FAILED;
        filter.failed_outcomes = true;
    }
    filter.overdue = args.overdue;
    filter.any_scope = args.scope == NULL;
    filter.scope = idem_str(args.scope);
    status = list(&listing, &filter);
    cli_rows_finish(&listing.rows);
    return status;
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
    {.name = "failed",
     .kind = CLI_FLAG,
     .target = &args.failed,
     .help = "only what failed, or ended with an exit status other than 0"},
    {.name = "all",
     .letter = 'a',
     .kind = CLI_FLAG,
     .target = &args.all,
     .help = "also what idem keeps for itself: the alerts of idem watch"},
    {.name = "since",
     .kind = CLI_DURATION,
     .target = &args.since_ms,
     .arg = "TIME",
     .min = 1,
     .max = IDEM_DURATION_MAX_MS,
     .help = "only what began or ended that recently: 2h"},
    {.name = "match",
     .kind = CLI_TEXT,
     .target = &args.match,
     .arg = "PATTERN",
     .help = "only keys that look like this: 'order-*'"},
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
     .help = "at most so many: the newest, or the first of --sort"},
    {.name = "sort",
     .kind = CLI_TEXT,
     .target = &args.sort,
     .arg = "FIELD",
     .help = "in this order; -FIELD: the greatest first"},
    {.name = "fields",
     .letter = 'f',
     .kind = CLI_TEXT,
     .target = &args.fields,
     .arg = "FIELDS",
     .help = "show these, with commas between them: status exit started age "
             "lease attempts owner scope key created ended expires fence "
             "error"},
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_COLOR,
    CLI_OPTION_NO_PAGER,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem list --status failed,unknown # what waits for a person",
    "idem list --overdue               # what should have ended by now",
    "idem list --failed --since 24h    # what went wrong since yesterday",
    "idem list --match 'order-*' --sort -started --fields key,status,exit",
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
