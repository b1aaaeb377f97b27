/* Pages, in which nothing is markup but what this program wrote, and their style. */
#include "text/text.h"
#include "ui/page.h"

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

/* ---- The style sheet ---- */

/* The one style sheet of the pages. Every pair of text and background has a contrast
 * of at least 4.5, of controls and their edges 3 (WCAG 2.2 AA); a test has axe
 * measure it, in light and in dark. */
static const char page_rules[] =
    /* Colours. */
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--soft:#59636e;"
    "--line:#d1d9e0;--edge:#7a828c;--panel:#f6f8fa;--link:#0550ae;"
    "--main-bg:#0550ae;--main-fg:#fff;"
    "--bad:#a40e26;--bad-bg:#ffebe9;--warn:#7d4e00;--warn-bg:#fff3c4;"
    "--good:#116329;--good-bg:#dafbe1;--info:#0550ae;--info-bg:#e3f2ff}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--bg:#0d1117;"
    "--fg:#e6edf3;--soft:#9ea7b3;--line:#30363d;--edge:#7d8590;"
    "--panel:#161b22;--link:#79c0ff;--main-bg:#79c0ff;--main-fg:#0d1117;"
    "--bad:#ff9a92;--bad-bg:#3c1618;--warn:#e9b949;--warn-bg:#2e2200;"
    "--good:#7ee787;--good-bg:#12301b;--info:#79c0ff;--info-bg:#10243e}}\n"
    /* The page. */
    "*{box-sizing:border-box}\n"
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:var(--bg);"
    "color:var(--fg)}\n"
    "a{color:var(--link);text-underline-offset:.15em}\n"
    ":focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
    "header{padding:.6rem 1.5rem;border-bottom:1px solid var(--line);"
    "font-weight:700;background:var(--panel)}\n"
    "header a{color:inherit;text-decoration:none}\n"
    ".skip{position:absolute;left:-100rem}\n"
    ".skip:focus{left:.5rem;top:.5rem;background:var(--bg);padding:.3rem "
    ".6rem}\n"
    "main{max-width:76rem;margin:0 auto;padding:1rem 1.5rem 4rem}\n"
    "h1{font-size:1.5rem;line-height:1.3;margin:.5rem 0 1rem;"
    "overflow-wrap:anywhere}\n"
    "h2{font-size:1.15rem;margin:2rem 0 .5rem}\n"
    "p{max-width:45rem}code,pre{font:.9em ui-monospace,monospace;"
    "overflow-wrap:anywhere}\n"
    "code{background:var(--panel);padding:.1em .3em;border-radius:.25rem}\n"
    ".soft,.utc,small{color:var(--soft);font-size:.875rem}\n"
    ".unseen{position:absolute;width:1px;height:1px;overflow:hidden;"
    "clip-path:inset(50%)}\n"
    ".bad{color:var(--bad)}.warn{color:var(--warn)}.good{color:var(--good)}"
    ".info{color:var(--info)}\n";

/* The lists. */
static const char lists[] =
    ".cards{display:flex;flex-wrap:wrap;gap:.6rem;margin:0 0 1.25rem}\n"
    ".card{border:1px solid var(--line);border-radius:.5rem;padding:.5rem 1rem;"
    "min-width:8rem;color:inherit;text-decoration:none;background:var(--panel)}"
    "\n"
    ".card b{display:block;font-size:1.6rem;line-height:1.2;"
    "font-variant-numeric:tabular-nums}\n"
    ".card small{display:block}\n"
    ".card:hover{border-color:var(--edge)}\n"
    ".card[aria-current]{border-color:var(--link);box-shadow:inset 0 -3px "
    "var(--link);background:var(--bg)}\n"
    "form.search{display:flex;flex-wrap:wrap;gap:.6rem;align-items:end;"
    "margin:0 0 1.25rem}\n"
    "form.search div{flex:1 1 12rem;max-width:24rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.9375rem}\n"
    "th,td{text-align:left;padding:.5rem .75rem .5rem 0;border-bottom:1px solid "
    "var(--line);vertical-align:top;overflow-wrap:anywhere}\n"
    "thead th{color:var(--soft);font-size:.8125rem;white-space:nowrap}\n"
    "tbody th{font-weight:600;min-width:10rem;max-width:24rem}\n"
    "td{min-width:4.5rem}td[data-label=Owner]{min-width:9rem;"
    "overflow-wrap:break-word}pre{white-space:pre-wrap}\n"
    ".why{display:block;font-weight:400;color:var(--soft);font-size:.875rem}\n"
    ".badge{display:inline-block;border:1px solid currentColor;"
    "border-radius:1rem;padding:0 .55rem;font-size:.8125rem;white-space:nowrap}"
    "\n"
    ".badge.bad{background:var(--bad-bg)}.badge.warn{background:var(--warn-bg)}"
    ".badge.good{background:var(--good-bg)}"
    ".badge.info{background:var(--info-bg)}\n"
    ".code{white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    ".none{padding:1.5rem;background:var(--panel);border-radius:.5rem}\n";

/* A record. */
static const char record_rules[] =
    ".live{border:1px solid var(--info);border-left-width:4px;"
    "background:var(--info-bg);padding:.6rem 1rem;border-radius:.3rem;"
    "overflow-wrap:anywhere}\n"
    "dl.facts{display:grid;grid-template-columns:max-content 1fr;"
    "gap:.35rem 1.25rem;margin:0}\n"
    "dt{color:var(--soft);max-width:12rem}dd{margin:0;overflow-wrap:anywhere}\n"
    "ol.history{list-style:none;margin:.75rem 0;padding:0 0 0 1.25rem;"
    "border-left:3px solid var(--line)}\n"
    "ol.history li{margin:.6rem 0;position:relative;overflow-wrap:anywhere}\n"
    "ol.history li::before{content:\"\";position:absolute;left:-1.72rem;top:.45rem;"
    "width:.7rem;height:.7rem;border-radius:50%;background:currentColor}\n"
    "ol.history time{color:var(--fg)}\n"
    ".steps li{margin:.4rem 0;max-width:45rem}\n"
    ".said{border-left:4px solid var(--good);padding:.6rem 1rem;"
    "background:var(--good-bg);color:var(--fg);overflow-wrap:anywhere}\n"
    ".said.bad{border-color:var(--bad);background:var(--bad-bg)}\n";

static const char forms[] =
    "form.box{border:1px solid var(--line);border-radius:.5rem;padding:1rem;"
    "background:var(--panel);max-width:45rem;display:flex;"
    "flex-direction:column;gap:.5rem;align-items:flex-start}\n"
    "fieldset{border:0;margin:0 0 .5rem;padding:0}"
    "legend,label{font-weight:600;padding:0}\n"
    "label{display:block}label.line{display:flex;gap:.5rem;"
    "align-items:baseline;font-weight:400;min-height:1.75rem}\n"
    ".force{border-left:4px solid var(--bad);background:var(--bad-bg);"
    "padding:.5rem .75rem;overflow-wrap:anywhere}\n"
    "form.box p{margin:0}\n"
    "input[type=text],input[type=password],textarea{font:inherit;width:100%;"
    "padding:.4rem .55rem;border:1px solid var(--edge);border-radius:.3rem;"
    "background:var(--bg);color:inherit}\n"
    "input[type=radio],input[type=checkbox]{width:1rem;height:1rem;"
    "flex:none;accent-color:var(--link)}\n"
    "button,.button{font:inherit;padding:.4rem 1.1rem;min-height:2.5rem;"
    "border-radius:.3rem;border:1px solid var(--edge);background:var(--bg);"
    "color:var(--fg);cursor:pointer;display:inline-block;text-decoration:none}\n"
    "button.main{background:var(--main-bg);color:var(--main-fg);"
    "border-color:transparent}\n"
    "button:hover,.button:hover{border-color:var(--link)}\n";

/* Where a table has no room its rows become blocks, with the names beside. On paper
 * there are the facts, and keys in full. */
static const char media[] =
    "@media(max-width:54rem){main{padding:.75rem 1rem 3rem}"
    "header{padding:.6rem 1rem}.card{min-width:6.5rem;padding:.4rem .7rem}"
    ".records,.records tbody,.records tr,.records th,.records td{display:block;"
    "max-width:none;min-width:0}"
    ".records thead{position:absolute;clip-path:inset(50%);width:1px;"
    "height:1px;overflow:hidden}"
    ".records tr{border:1px solid var(--line);border-radius:.5rem;"
    "padding:.6rem .8rem;margin:0 0 .75rem}"
    ".records th,.records td{border:0;padding:.15rem 0}"
    ".records td{display:grid;grid-template-columns:5rem 1fr;"
    "justify-items:start}"
    ".records td:has(div:empty){display:none}"
    ".records td::before{content:attr(data-label);color:var(--soft)}"
    "dl.facts{grid-template-columns:1fr;gap:0}dd{margin:0 0 .5rem}"
    "dt{max-width:none;font-size:.875rem}}\n"
    "@media print{header,nav,form,.act{display:none}"
    "a{color:inherit}}\n";

/* The parts are apart because C promises no longer strings. */
void html_style(FILE *f)
{
    (void)fputs(page_rules, f);
    (void)fputs(lists, f);
    (void)fputs(record_rules, f);
    (void)fputs(forms, f);
    (void)fputs(media, f);
}
