/* The lists: what is open, and what was completed with a failure. */
#include "record/open_records.h"
#include "record/record.h"
#include "text/text.h"
#include "ui/page.h"

enum {
    ROWS_MAX = 500, /* Of a page: more is not read by anybody. */
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

    (void)fputs("<nav class=\"cards\" aria-label=\"Lists\">\n", f);
    for (show = 0; show < PAGE_SHOWS; show++) {
        uint64_t n = count(snapshot, (enum page_show)show);

        (void)fprintf(f,
                      "<a class=\"card\" href=\"./?show=%s\"%s>"
                      "<b class=\"%s\">%llu</b> %s</a>\n",
                      page_shows[show],
                      (int)here == show ? " aria-current=\"page\"" : "",
                      n > 0 ? paint[show] : "", (unsigned long long)n,
                      names[show]);
    }
    (void)fputs("</nav>\n", f);
}

static void search_form(FILE *f, const struct page_search *search)
{
    (void)fputs("<form class=\"search\" role=\"search\" action=\"search\" "
                "method=\"get\">\n<div><label for=\"k\">Key</label>"
                "<input type=\"text\" id=\"k\" name=\"k\" maxlength=\"1029\" "
                "autocomplete=\"off\" spellcheck=\"false\" value=\"",
                f);
    html_value(f, search->typed_key);
    (void)fputs("\"></div>\n<div><label for=\"s\">Scope</label>"
                "<input type=\"text\" id=\"s\" name=\"s\" maxlength=\"1029\" "
                "autocomplete=\"off\" spellcheck=\"false\" value=\"",
                f);
    html_value(f, search->typed_scope);
    (void)fputs("\"></div>\n<button>Find</button></form>\n", f);
}

static void as_of(FILE *f, int64_t now_ms, enum page_show show)
{
    char utc[48];

    html_utc(now_ms, utc);
    (void)fprintf(f,
                  "<p class=\"soft\">As of %s. <a href=\"./?show=%s\">Look "
                  "again</a>, or <a href=\"./?show=%s&amp;again=\">each "
                  "minute</a></p>\n",
                  utc, page_shows[show], page_shows[show]);
}

/* ---- The table ---- */

static void cell(FILE *f, const char *name)
{
    (void)fprintf(f, "<td data-label=\"%s\"><div>", name);
}

static void key_cell(FILE *f, const struct cli_open *open)
{
    const struct idem_record *r = &open->record;
    struct idem_slice text = r->error.len > 0 ? r->error : r->note;
    char shown[ERROR_SHOWN];

    (void)fputs("<th scope=\"row\">", f);
    html_record_link(f, r);
    if (text.len > 0) {
        (void)cli_escape(text, shown, sizeof(shown));
        (void)fputs("<span class=\"why\">", f);
        html_value(f, idem_str(shown)); /* It is escaped already. */
        (void)fputs("</span>", f);
    }
    (void)fputs("</th>", f);
}

static void status_cell(FILE *f, const struct cli_open *open)
{
    cell(f, "Status");
    if (open->unreadable) {
        (void)fputs("<span class=\"badge bad\">unreadable</span>", f);
    } else {
        html_status(f, &open->record, open->record.overdue);
    }
    if (open->exit_status >= 0) {
        (void)fprintf(f, " <span class=\"code\">exit %d</span>",
                      open->exit_status);
    } else if (open->http_status >= 0) {
        (void)fprintf(f, " <span class=\"code\">HTTP %d</span>",
                      open->http_status);
    }
    (void)fputs("</div></td>", f);
}

/* "57 seconds left, renewed 3 seconds ago". */
static void lease_cell(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;
    int64_t renewed_ms = r->lease_end_ms - r->lease_ms;
    char words[CLI_WORDS_MAX];

    cell(f, "Lease");
    if (open->unreadable || r->status != IDEM_STATUS_IN_PROGRESS || r->retry) {
        (void)fputs("<span class=\"soft\">none</span>", f);
    } else if (r->lease_end_ms == IDEM_NEVER) {
        (void)fputs("has no end", f);
    } else if (r->live) {
        cli_span_words(r->lease_end_ms > now_ms ? r->lease_end_ms - now_ms : 0,
                       words);
        (void)fprintf(f, "%s left, renewed ", words);
        html_time(f, renewed_ms < now_ms ? renewed_ms : now_ms, now_ms);
    } else {
        (void)fputs("ended ", f);
        html_time(f, r->lease_end_ms, now_ms);
    }
    (void)fputs("</div></td>", f);
}

static void when_cell(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;

    cell(f, "When");
    if (!open->unreadable) {
        (void)fputs(r->ended_ms != 0 ? "ended " : "started ", f);
        html_time(f, r->ended_ms != 0 ? r->ended_ms : r->started_ms, now_ms);
    }
    (void)fputs("</div></td>", f);
}

static void row(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;

    (void)fputs("<tr>", f);
    key_cell(f, open);
    cell(f, "Scope");
    html_text(f, r->scope);
    (void)fputs("</div></td>", f);
    status_cell(f, open);
    when_cell(f, open, now_ms);
    lease_cell(f, open, now_ms);
    cell(f, "Owner");
    html_text(f, r->owner);
    (void)fputs("</div></td>", f);
    cell(f, "Tries");
    (void)fprintf(f, "%u</div></td></tr>\n", (unsigned)r->attempts);
}

static void begin_table(FILE *f, const char *caption)
{
    (void)
        fprintf(f,
                "<table class=\"records\"><caption class=\"unseen\">%s"
                "</caption>\n<thead><tr><th scope=\"col\">Key</th>"
                "<th scope=\"col\">Scope</th><th scope=\"col\">Status</th>"
                "<th scope=\"col\">When</th><th scope=\"col\">Lease</th>"
                "<th scope=\"col\">Owner</th><th scope=\"col\">Tries</th></tr>"
                "</thead>\n<tbody>\n",
                caption);
}

static void say_more(FILE *f, uint64_t found)
{
    if (found > ROWS_MAX) {
        (void)fprintf(f,
                      "<p>The first %d of %llu are shown. Search, or at a "
                      "terminal: <code>idem list</code></p>\n",
                      ROWS_MAX, (unsigned long long)found);
    }
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
        (void)fputs("</tbody></table>\n", f);
    } else if (search->key.len + search->scope.len > 0) {
        (void)
            fputs("<p>No open record matches. A record that ended is found by "
                  "its whole key and scope.</p>\n",
                  f);
    } else {
        (void)fprintf(f, "<p class=\"none\">%s</p>\n", none[choice->show]);
    }
    say_more(f, rows->found);
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
        (void)fputs(
            "<p>Work that was completed in the last 24 hours with an exit status "
            "other than 0, a signal, or an HTTP status of 500 or above. It is "
            "replayed until its retention ends, or until you reopen it. Older "
            "ones: <code>idem list --failed</code></p>\n",
            f);
    }
    table(f, snapshot, choice, title);
    as_of(f, snapshot->now_ms, show);
    html_end(f);
}
