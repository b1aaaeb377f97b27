/* The list of what is open, and pages of one sentence. */
#include "ui/html.h"
#include "ui/page.h"

const char *const page_shows[] = {"overdue", "failed", "unknown", "open", NULL};

static const char *const titles[] = {"Should have ended by now",
                                     "Failed, and wait for a person",
                                     "May have happened", "All that is open"};

static uint64_t count(const struct cli_look *look, enum page_show show)
{
    switch (show) {
    case PAGE_LATE:
        return look->overdue;
    case PAGE_FAILED:
        return look->failed_len;
    case PAGE_UNKNOWN:
        return look->unknown;
    case PAGE_OPEN:
    case PAGE_SHOWS:
        break;
    }
    return look->len;
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
    case PAGE_OPEN:
    case PAGE_SHOWS:
        break;
    }
    return true;
}

static bool has(const struct idem_record *r, struct idem_slice scope,
                struct idem_slice key)
{
    return (scope.len == 0 ||
            (scope.len == r->scope.len &&
             memcmp(scope.base, r->scope.base, scope.len) == 0)) &&
           (key.len == 0 ||
            memmem(r->key.base, r->key.len, key.base, key.len) != NULL);
}

static void cards(FILE *f, const struct cli_look *look, enum page_show here)
{
    static const char *const names[] = {"overdue", "failed", "unknown", "open"};
    static const char *const paint[] = {"bad", "warn", "bad", ""};
    int show;

    (void)fputs("<nav class=\"cards\">\n", f);
    for (show = 0; show < PAGE_SHOWS; show++) {
        uint64_t n = count(look, (enum page_show)show);

        (void)fprintf(f,
                      "<a class=\"card%s\" href=\"/?show=%s\"><b class=\"%s\">"
                      "%llu</b>%s</a>\n",
                      (int)here == show ? " here" : "", page_shows[show],
                      n > 0 ? paint[show] : "good", (unsigned long long)n,
                      names[show]);
    }
    (void)fputs("</nav>\n", f);
}

static void search(FILE *f, struct idem_slice scope, struct idem_slice key)
{
    (void)fputs("<form class=\"search\" action=\"/search\" method=\"get\">"
                "<label>Key <input type=\"text\" name=\"k\" maxlength=\"255\" "
                "value=\"",
                f);
    html_text(f, key);
    (void)fputs("\"></label><label>Scope <input type=\"text\" name=\"s\" "
                "maxlength=\"255\" value=\"",
                f);
    html_text(f, scope);
    (void)fputs("\"></label><button>Find</button></form>\n", f);
}

static const char *status_paint(const struct cli_open *open)
{
    if (open->unreadable || open->record.overdue ||
        open->record.status == IDEM_STATUS_UNKNOWN) {
        return "bad";
    }
    return open->record.status == IDEM_STATUS_FAILED ? "warn" : "good";
}

static void row(FILE *f, const struct cli_open *open, int64_t now_ms)
{
    const struct idem_record *r = &open->record;

    (void)fputs("<tr><td>", f);
    html_record_link(f, r);
    (void)fputs("</td><td>", f);
    html_text(f, r->scope);
    (void)fprintf(f, "</td><td class=\"%s\">%s%s</td><td>", status_paint(open),
                  open->unreadable ? "unreadable"
                                   : idem_status_name(idem_record_status(r)),
                  r->overdue ? ", overdue" : "");
    html_text(f, r->owner);
    (void)fputs("</td><td>", f);
    html_time(f, r->created_ms, now_ms);
    (void)fprintf(f, "</td><td>%u</td></tr>\n", (unsigned)r->attempts);
}

static void table(FILE *f, const struct cli_look *look, enum page_show show,
                  struct idem_slice scope, struct idem_slice key)
{
    bool any = false;
    size_t i;

    for (i = 0; i < look->len; i++) {
        const struct cli_open *open = &look->open[i];

        if (!is_shown(open, show) || !has(&open->record, scope, key)) {
            continue;
        }
        if (!any) {
            (void)fputs("<div class=\"scroll\"><table>\n<tr><th>Key<th>Scope"
                        "<th>Status<th>Owner<th>Created<th>Tries</tr>\n",
                        f);
            any = true;
        }
        row(f, open, look->now_ms);
    }
    (void)fputs(any ? "</table></div>\n" : "<p>There is nothing.</p>\n", f);
}

void page_list(FILE *f, const struct cli_look *look, enum page_show show,
               struct idem_slice scope, struct idem_slice key)
{
    html_begin(f, idem_str(titles[show]));
    cards(f, look, show);
    search(f, scope, key);
    table(f, look, show, scope, key);
    html_end(f);
}

void page_text(FILE *f, const char *title, const char *text)
{
    html_begin(f, idem_str(title));
    (void)fputs("<p>", f);
    html_text(f, idem_str(text));
    (void)fputs("</p>\n<p><a href=\"/\">Back to what is open</a></p>\n", f);
    html_end(f);
}

void page_login(FILE *f, bool wrong)
{
    html_begin(f, idem_str("Who are you?"));
    if (wrong) {
        (void)fputs("<p class=\"said bad\">That is not the token.</p>\n", f);
    }
    (void)fputs("<form action=\"/login\" method=\"post\"><fieldset>"
                "<label>The token that <code>idem ui</code> printed "
                "<input type=\"password\" name=\"token\" autofocus "
                "autocomplete=\"off\"></label>"
                "<button>Enter</button></fieldset></form>\n",
                f);
    html_end(f);
}
