/* Pages, in which only text that this program wrote is markup. */
#include "text/text.h"
#include "ui/page.h"

#include <stdarg.h>

/* Prints @text, which is UTF-8 or was escaped already, with no character left as markup. */
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

static void html_text(FILE *f, struct idem_slice s)
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

static void html_key(FILE *f, struct idem_slice key)
{
    if (cli_key_is_escaped(key)) {
        (void)fputs(CLI_ESCAPED, f);
    }
    html_text(f, key);
}

static void html_value(FILE *f, struct idem_slice s)
{
    if (cli_is_seen(s)) {
        put_markup(f, s.base, s.len);
    } else {
        (void)fputs(CLI_ESCAPED, f);
        html_text(f, s);
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

/* <time>, with the distance to @now_ms as its text. */
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

static void html_time(FILE *f, int64_t ms, int64_t now_ms)
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

/* ---- Values in markup ---- */

static void html_hex(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        (void)fprintf(f, "%02x", bytes[i]);
    }
}

static void put_value(FILE *f, char conversion, va_list *args)
{
    int64_t ms;

    switch (conversion) {
    case 's':
        (void)fputs(va_arg(*args, const char *), f);
        break;
    case 'u':
        (void)fprintf(f, "%llu", (unsigned long long)va_arg(*args, uint64_t));
        break;
    case 't':
        html_text(f, va_arg(*args, struct idem_slice));
        break;
    case 'k':
        html_key(f, va_arg(*args, struct idem_slice));
        break;
    case 'v':
        html_value(f, va_arg(*args, struct idem_slice));
        break;
    case 'x':
        html_hex(f, va_arg(*args, struct idem_slice));
        break;
    case 'T':
        ms = va_arg(*args, int64_t);
        html_time(f, ms, va_arg(*args, int64_t));
        break;
    default:
        (void)fputc('%', f);
    }
}

void html_print(FILE *f, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (; *format != '\0'; format++) {
        if (*format == '%') {
            format++;
            put_value(f, *format, &args);
        } else {
            (void)fputc(*format, f);
        }
    }
    va_end(args);
}

/* ---- Records ---- */

static const char *status_class(enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_UNKNOWN:
        return "bad";
    case IDEM_STATUS_FAILED:
        return "warn";
    case IDEM_STATUS_COMPLETED: /* A failure shows in its exit status. */
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
    html_print(f, "<a href=\"record?s=%x&amp;k=%x\">%k</a>", record->scope,
               record->key, record->key);
}

/* ---- Pages ---- */

static const char *where = "";

void html_set_place(const char *place)
{
    where = place;
}

/* A page with @title, or with @key as its title. */
static void begin(FILE *f, struct idem_slice title, struct idem_slice key,
                  bool inside)
{
    struct idem_slice place = idem_str(inside ? where : "");

    html_print(f,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
               "<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" "
               "content=\"width=device-width, initial-scale=1\">\n"
               "<title>%t%k%s%t - idem</title>\n"
               "<link rel=\"stylesheet\" href=\"/style.css\">\n"
               "<link rel=\"icon\" href=\"data:,\">\n</head>\n<body>\n"
               "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
               "<header><a href=\"./\">idem</a> <small>%t</small></header>\n"
               "<main id=\"main\">\n<h1>%t%k</h1>\n",
               title, key, place.len > 0 ? " - " : "", place, place, title,
               key);
}

void html_begin(FILE *f, const char *title, bool inside)
{
    begin(f, idem_str(title), idem_bytes(NULL, 0), inside);
}

void html_begin_key(FILE *f, struct idem_slice key)
{
    begin(f, idem_bytes(NULL, 0), key, /* inside= */ true);
}

void html_end(FILE *f)
{
    (void)fputs("</main>\n</body>\n</html>\n", f);
}
