/* Pages, in which nothing is a mark but what we wrote. */
#include "ui/html.h"

#include "text.h"

static void put(FILE *f, unsigned char c)
{
    switch (c) {
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
        (void)fprintf(f, c >= ' ' && c <= '~' ? "%c" : "\\x%02x", c);
    }
}

void html_text(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        put(f, bytes[i]);
    }
}

void html_time(FILE *f, int64_t ms, int64_t now_ms)
{
    int64_t away_ms = ms - now_ms;
    char time[32];
    char distance[32];

    cli_time_text(ms, time);
    if (ms == 0 || ms == IDEM_NEVER) {
        (void)fputs(time, f);
        return;
    }
    cli_duration_text(away_ms < 0 ? -away_ms : away_ms, distance);
    (void)fprintf(f, "<time datetime=\"%s\">%s</time> <small>(%s%s%s)</small>",
                  time, time, away_ms > 0 ? "in " : "", distance,
                  away_ms > 0 ? "" : " ago");
}

static void hex(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        (void)fprintf(f, "%02x", bytes[i]);
    }
}

/* In hex, any byte may be in a key. */
void html_record_link(FILE *f, const struct idem_record *record)
{
    (void)fputs("<a href=\"/record?s=", f);
    hex(f, record->scope);
    (void)fputs("&amp;k=", f);
    hex(f, record->key);
    (void)fputs("\">", f);
    html_text(f, record->key);
    (void)fputs("</a>", f);
}

void html_begin(FILE *f, struct idem_slice title)
{
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                "<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n"
                "<title>",
                f);
    html_text(f, title);
    (void)fputs("</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n"
                "<link rel=\"icon\" href=\"data:,\">\n"
                "</head>\n<body>\n<header><a href=\"/\">idem</a></header>\n"
                "<main>\n<h1>",
                f);
    html_text(f, title);
    (void)fputs("</h1>\n", f);
}

void html_end(FILE *f)
{
    (void)fputs("</main>\n</body>\n</html>\n", f);
}
