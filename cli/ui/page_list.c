/* The lists of open records, and of those completed with a failure. */
#include "record/open_records.h"
#include "record/record.h"
#include "text/text.h"
#include "ui/page.h"

enum {
    ROWS_MAX = 500, /* Of a page: nobody reads more. */
    ERROR_SHOWN = 200
};

const char *const page_shows[] = {"overdue", "unknown",  "failed", "retry",
                                  "open",    "outcomes", NULL};

/* ---- What is shown ---- */

static uint64_t count(const struct cli_snapshot *snapshot, enum page_show show)
{
    switch (show) {
    case PAGE_LATE:
        return snapshot->overdue;
    case PAGE_FAILED:
        return snapshot->failed_len;
    case PAGE_UNKNOWN:
        return snapshot->unknown;
    case PAGE_RETRY:
        return snapshot->retry;
    case PAGE_OUTCOMES:
        return snapshot->failed_outcomes;
    case PAGE_OPEN:
    case PAGE_SHOWS:
        break;
    }
    return cli_snapshot_open(snapshot);
}

static bool is_shown(const struct cli_open *open, enum page_show show)
{
    switch (show) {
    case PAGE_LATE:
        return !open->unreadable && open->record.overdue;
    case PAGE_FAILED:
        return open->record.status == IDEM_STATUS_FAILED;
    case PAGE_UNKNOWN:
        return open->record.status == IDEM_STATUS_UNKNOWN;
    case PAGE_RETRY:
        return open->record.retry;
    case PAGE_OUTCOMES:
        return !open->unreadable &&
               open->record.status == IDEM_STATUS_COMPLETED;
    case PAGE_OPEN:
        return open->unreadable || open->record.status != IDEM_STATUS_COMPLETED;
    case PAGE_SHOWS:
        break;
    }
    return true;
}

static bool has(const struct idem_record *r, const struct page_search *search)
{
    const struct idem_slice *scope = &search->scope;
    const struct idem_slice *key = &search->key;

    return (scope->len == 0 ||
            (scope->len == r->scope.len &&
             memcmp(scope->base, r->scope.base, scope->len) == 0)) &&
           (key->len == 0 ||
            memmem(r->key.base, r->key.len, key->base, key->len) != NULL);
}

static int class_of(void *ctx, struct cli_open *open)
{
    const struct page_choice *choice = ctx;

    return is_shown(open, choice->show) && has(&open->record, choice->search)
               ? 0
               : -1;
}

struct cli_snapshot_keep page_list_keep(struct page_choice *choice)
{
    return (struct cli_snapshot_keep){.max = ROWS_MAX,
                                      .compare = cli_open_compare,
                                      .class_of = class_of,
                                      .ctx = choice};
}

/* ---- Above the table ---- */

static void cards(FILE *f, const struct cli_snapshot *snapshot,
                  enum page_show here)
{
    static const char *const names[] = {
        "overdue",     "unknown",
        "failed",      "to be run again",
        "open in all", "failed outcomes <small>in 24 hours</small>"};
    static const char *const paint[] = {"bad",  "bad", "warn",
                                        "info", "",    "warn"};
    int show;

    html_print(f, "<nav class=\"cards\" aria-label=\"Lists\">\n");
    for (show = 0; show < PAGE_SHOWS; show++) {
        uint64_t n = count(snapshot, (enum page_show)show);

        html_print(f,
                   "<a class=\"card\" href=\"./?show=%s\"%s>"
                   "<b class=\"%s\">%u</b> %s</a>\n",
                   page_shows[show],
                   (int)here == show ? " aria-current=\"page\"" : "",
                   n > 0 ? paint[show] : "", n, names[show]);
    }
    html_print(f, "</nav>\n");
}

static void search_field(FILE *f, const char *id, const char *label,
                         struct idem_slice typed)
{
    html_print(
        f,
        "<div><label for=\"%s\">%s</label><input type=\"text\" id=\"%s\" "
        "name=\"%s\" maxlength=\"1029\" autocomplete=\"off\" "
        "spellcheck=\"false\" value=\"%v\"></div>\n",
        id, label, id, id, typed);
}

static void search_form(FILE *f, const struct page_search *search)
{
    html_print(f, "<form class=\"search\" role=\"search\" action=\"search\" "
                  "method=\"get\">\n");
    search_field(f, "k", "Key", search->typed_key);
    search_field(f, "s", "Scope", search->typed_scope);
    html_print(f, "<button>Find</button></form>\n");
}

static void as_of(FILE *f, int64_t now_ms, enum page_show show)
{
    char utc[48];

    html_utc(now_ms, utc);
    html_print(f,
               "<p class=\"soft\">As of %s. <a href=\"./?show=%s\">Look "
               "again</a>, or <a href=\"./?show=%s&amp;again=\">each "
               "minute</a></p>\n",
               utc, page_shows[show], page_shows[show]);
}

/* ---- The table ---- */

static void begin_cell(FILE *f, const char *name)
{
    html_print(f, "<td data-label=\"%s\"><div>", name);
}

static void end_cell(FILE *f)
{
    html_print(f, "</div></td>");
}

static void key_cell(FILE *f, const struct cli_open *open)
{
    const struct idem_record *r = &open->record;
    struct idem_slice text = r->error.len > 0 ? r->error : r->note;
    char shown[ERROR_SHOWN];

    html_print(f, "<th scope=\"row\">");
    html_record_link(f, r);
    if (text.len > 0) {
        (void)cli_escape(text, shown, sizeof(shown));
        /* The text is escaped already. */
        html_print(f, "<span class=\"why\">%v</span>", idem_str(shown));
    }
    html_print(f, "</th>");
}

static void status_cell(FILE *f, const struct cli_open *open)
{
    int exits = open->exit_status;

    begin_cell(f, "Status");
    if (open->unreadable) {
        html_print(f, "<span class=\"badge bad\">unreadable</span>");
    } else {
        html_status(f, &open->record, open->record.overdue);
    }
    if (exits >= 0 || open->http_status >= 0) {
        html_print(f, " <span class=\"code\">%s %u</span>",
                   exits >= 0 ? "exit" : "HTTP",
                   (uint64_t)(exits >= 0 ? exits : open->http_status));
    }
    end_cell(f);
}

/* "57 seconds left, renewed 3 seconds ago". */
static void lease_cell(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;
    int64_t renewed_ms = r->lease_end_ms - r->lease_ms;
    char words[CLI_WORDS_MAX];

    begin_cell(f, "Lease");
    if (open->unreadable || r->status != IDEM_STATUS_IN_PROGRESS || r->retry) {
        html_print(f, "<span class=\"soft\">none</span>");
    } else if (r->lease_end_ms == IDEM_NEVER) {
        html_print(f, "has no end");
    } else if (r->live) {
        cli_span_words(r->lease_end_ms > now_ms ? r->lease_end_ms - now_ms : 0,
                       words);
        html_print(f, "%s left, renewed %T", words,
                   renewed_ms < now_ms ? renewed_ms : now_ms, now_ms);
    } else {
        html_print(f, "ended %T", r->lease_end_ms, now_ms);
    }
    end_cell(f);
}

static void when_cell(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;

    begin_cell(f, "When");
    if (!open->unreadable) {
        html_print(f, "%s %T", r->ended_ms != 0 ? "ended" : "started",
                   r->ended_ms != 0 ? r->ended_ms : r->started_ms, now_ms);
    }
    end_cell(f);
}

static void row(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;

    html_print(f, "<tr>");
    key_cell(f, open);
    html_print(f, "<td data-label=\"Scope\"><div>%t</div></td>", r->scope);
    status_cell(f, open);
    when_cell(f, open, now_ms);
    lease_cell(f, open, now_ms);
    html_print(f,
               "<td data-label=\"Owner\"><div>%t</div></td>"
               "<td data-label=\"Tries\"><div>%u</div></td></tr>\n",
               r->owner, (uint64_t)r->attempts);
}

static void begin_table(FILE *f, const char *caption)
{
    html_print(f,
               "<table class=\"records\"><caption class=\"unseen\">%s"
               "</caption>\n<thead><tr><th scope=\"col\">Key</th>"
               "<th scope=\"col\">Scope</th><th scope=\"col\">Status</th>"
               "<th scope=\"col\">When</th><th scope=\"col\">Lease</th>"
               "<th scope=\"col\">Owner</th><th scope=\"col\">Tries</th></tr>"
               "</thead>\n<tbody>\n",
               caption);
}

static void table(FILE *f, const struct cli_snapshot *snapshot,
                  const struct page_choice *choice, const char *title)
{
    static const char *const none[] = {
        "Nothing is overdue.",
        "Nothing is unknown.",
        "Nothing failed.",
        "Nothing waits to be run again.",
        "Nothing is open.",
        "Nothing ended with a failure in the last 24 hours."};
    const struct cli_snapshot_class *rows = &snapshot->classes[0];
    const struct page_search *search = choice->search;
    size_t i;

    if (rows->len > 0) {
        begin_table(f, title);
    }
    for (i = 0; i < rows->len; i++) {
        row(f, &rows->open[i], snapshot->now_ms);
    }
    if (rows->len > 0) {
        html_print(f, "</tbody></table>\n");
    } else if (search->key.len + search->scope.len > 0) {
        html_print(f, "<p>No open record matches. Find a record that ended by "
                      "its whole key and scope.</p>\n");
    } else {
        html_print(f, "<p class=\"none\">%s</p>\n", none[choice->show]);
    }
    if (rows->found > ROWS_MAX) {
        html_print(f,
                   "<p>The first %u of %u are shown. Search, or at a terminal: "
                   "<code>idem list</code></p>\n",
                   (uint64_t)ROWS_MAX, rows->found);
    }
}

void page_list(FILE *f, const struct cli_snapshot *snapshot,
               const struct page_choice *choice)
{
    static const char *const titles[] = {"Should have ended by now",
                                         "May have happened",
                                         "Failed, and waits for a person",
                                         "To be run again",
                                         "All that is open",
                                         "Failed outcomes"};
    const struct page_search *search = choice->search;
    enum page_show show = choice->show;
    bool searched = search->key.len + search->scope.len > 0;
    const char *title = searched ? "Found among what is open" : titles[show];

    html_begin(f, title, /* inside= */ true);
    cards(f, snapshot, searched ? PAGE_SHOWS : show);
    search_form(f, search);
    if (show == PAGE_OUTCOMES) {
        html_print(
            f,
            "<p>Work that was completed in the last 24 hours with an exit status "
            "other than 0, a signal, or an HTTP status of 500 or above. It is "
            "replayed until its retention ends, or until you reopen it. Older "
            "ones: <code>idem list --failed</code></p>\n");
    }
    table(f, snapshot, choice, title);
    as_of(f, snapshot->now_ms, show);
    html_end(f);
}
