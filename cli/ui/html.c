/* Pages, in which nothing is markup but what this program wrote. */
#include "ui/html.h"

#include "text/text.h"

/* One character of text, which is UTF-8 or escaped already. */
static void put_markup(FILE *f, const char *text, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        switch (text[i]) {
        case '&':
            (void)fputs("&amp;", f);
            break;
        case '<':
            (void)fputs("&lt;", f);
            break;
        case '>':
            (void)fputs("&gt;", f);
            break;
        case '"':
            (void)fputs("&quot;", f);
            break;
        case '\'':
            (void)fputs("&#39;", f);
            break;
        default:
            (void)fputc(text[i], f);
        }
    }
}

void html_text(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    char text[CLI_ESCAPED_LEN + 1];
    size_t taken;
    size_t i;

    for (i = 0; i < s.len; i += taken) {
        size_t len = cli_escape_one(bytes + i, s.len - i, text, &taken);

        put_markup(f, text, len);
    }
}

void html_key(FILE *f, struct idem_slice key)
{
    if (cli_key_is_escaped(key)) {
        (void)fputs(CLI_ESCAPED, f);
    }
    html_text(f, key);
}

void html_value(FILE *f, struct idem_slice s)
{
    if (cli_is_seen(s)) {
        put_markup(f, s.base, s.len);
    } else {
        (void)fputs(CLI_ESCAPED, f);
        html_text(f, s);
    }
}

void html_hex(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        (void)fprintf(f, "%02x", bytes[i]);
    }
}

/* ---- Times ---- */

void html_utc(int64_t ms, char buf[48])
{
    char time[32];

    cli_time_text(ms, time);
    if (strlen(time) == strlen("2026-11-21T08:24:00.123Z")) {
        (void)snprintf(buf, 48, "%.10s %.8s UTC", time, time + 11);
    } else {
        (void)snprintf(buf, 48, "%s", time);
    }
}

static bool is_moment(int64_t ms)
{
    return ms != 0 && ms != IDEM_NEVER;
}

/* <time>, with @distance as its text. */
static void put_time(FILE *f, int64_t ms, int64_t now_ms, bool title)
{
    int64_t away_ms = ms - now_ms;
    char words[CLI_WORDS_MAX];
    char time[32];
    char utc[48];

    cli_time_text(ms, time);
    html_utc(ms, utc);
    if (!is_moment(ms)) {
        (void)fputs(time, f);
        return;
    }
    cli_span_words(away_ms < 0 ? -away_ms : away_ms, words);
    (void)fprintf(f, "<time datetime=\"%s\"", time);
    if (title) {
        (void)fprintf(f, " title=\"%s\"", utc);
    }
    (void)fprintf(f, ">%s%s%s</time>", away_ms > 0 ? "in " : "", words,
                  away_ms > 0 ? "" : " ago");
}

void html_time(FILE *f, int64_t ms, int64_t now_ms)
{
    put_time(f, ms, now_ms, /* title= */ true);
}

void html_full_time(FILE *f, int64_t ms, int64_t now_ms)
{
    char utc[48];

    put_time(f, ms, now_ms, /* title= */ false);
    if (is_moment(ms)) {
        html_utc(ms, utc);
        (void)fprintf(f, " <span class=\"utc\">%s</span>", utc);
    }
}

/* ---- Records ---- */

static const char *status_class(enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_UNKNOWN:
        return "bad";
    case IDEM_STATUS_FAILED:
        return "warn";
    case IDEM_STATUS_COMPLETED: /* Perhaps badly: the exit status says it. */
    case IDEM_STATUS_RELEASED:
        return "";
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RETRY:
        break;
    }
    return "info";
}

void html_status(FILE *f, const struct idem_record *record, bool overdue)
{
    enum idem_status status = idem_record_status(record);

    (void)fprintf(f, "<span class=\"badge %s\">%s</span>%s",
                  status_class(status), idem_status_name(status),
                  overdue ? " <span class=\"badge bad\">overdue</span>" : "");
}

void html_record_link(FILE *f, const struct idem_record *record)
{
    (void)fputs("<a href=\"record?s=", f);
    html_hex(f, record->scope);
    (void)fputs("&amp;k=", f);
    html_hex(f, record->key);
    (void)fputs("\">", f);
    html_key(f, record->key);
    (void)fputs("</a>", f);
}

/* ---- Pages ---- */

static const char *where = "";

void html_set_place(const char *place)
{
    where = place;
}

static void put_head(FILE *f)
{
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                "<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" "
                "content=\"width=device-width, initial-scale=1\">\n<title>",
                f);
}

static void put_top(FILE *f, bool inside)
{
    struct idem_slice place = idem_str(inside ? where : "");

    (void)fputs(place.len > 0 ? " - " : "", f);
    html_text(f, place);
    (void)fputs(" - idem</title>\n"
                "<link rel=\"stylesheet\" href=\"/style.css\">\n"
                "<link rel=\"icon\" href=\"data:,\">\n</head>\n<body>\n"
                "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
                "<header><a href=\"./\">idem</a> <small>",
                f);
    html_text(f, place);
    (void)fputs("</small></header>\n"
                "<main id=\"main\">\n<h1>",
                f);
}

void html_begin(FILE *f, const char *title, bool inside)
{
    put_head(f);
    html_text(f, idem_str(title));
    put_top(f, inside);
    html_text(f, idem_str(title));
    (void)fputs("</h1>\n", f);
}

void html_begin_key(FILE *f, struct idem_slice key)
{
    put_head(f);
    html_key(f, key);
    put_top(f, /* inside= */ true);
    html_key(f, key);
    (void)fputs("</h1>\n", f);
}

void html_end(FILE *f)
{
    (void)fputs("</main>\n</body>\n</html>\n", f);
}
