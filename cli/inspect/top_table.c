/* The screen of idem top: sums, and a table that fits the window. */
#include "inspect/top.h"
#include "record/open_records.h"
#include "record/record.h"
#include "text/color.h"
#include "text/text.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    ROWS = 24,
    COLUMNS = 80,
    ROWS_ABOVE = 4, /* The sums, the rates, the time, the headings. */
    GAP = 2,
    CELL_MAX = 4 * IDEM_KEY_MAX + 16
};

static const char bold[] = "\033[1m";
static const char red[] = "\033[1;31m";
static const char magenta[] = "\033[1;35m";

/* ---- One line ---- */

/* How many columns of it are left; what is beyond is cut. */
struct line {
    bool live;
    int left;
};

/* How many bytes of @text fill @columns: a character is not cut in two. */
static int bytes_of(const char *text, int columns)
{
    int i;

    for (i = 0; text[i] != '\0'; i++) {
        bool starts = ((unsigned char)text[i] & 0xc0) != 0x80;

        if (starts && columns-- == 0) {
            break;
        }
    }
    return i;
}

/* @paint may be NULL. Every colour repeats a word. */
static void put(struct line *line, const char *paint, const char *text)
{
    int columns = (int)cli_columns(text);
    bool paints = paint != NULL && line->left > 0 && cli_may_paint();

    (void)printf("%s%.*s%s", paints ? paint : "", bytes_of(text, line->left),
                 text, paints ? "\033[0m" : "");
    line->left = columns < line->left ? line->left - columns : 0;
}

static struct line begin_line(const struct top_terminal *terminal, int columns)
{
    return (struct line){terminal->live, terminal->live ? columns : INT_MAX};
}

static void end_line(const struct line *line)
{
    (void)fputs(line->live ? "\033[K\r\n" : "\n", stdout);
}

static void put_spaces(struct line *line, int count)
{
    for (; count > 0; count--) {
        put(line, NULL, " ");
    }
}

/* ---- Cells ---- */

/* One for each column: the text of @open at @now_ms in @buf. */
typedef void cell_fn(const struct cli_open *open, int64_t now_ms,
                     char buf[CELL_MAX]);

static bool holds_lease(const struct cli_open *open)
{
    return !open->unreadable && !open->record.retry &&
           open->record.status == IDEM_STATUS_IN_PROGRESS;
}

static void status_cell(const struct cli_open *open, int64_t now_ms,
                        char buf[CELL_MAX])
{
    const struct idem_record *r = &open->record;

    (void)now_ms;
    (void)snprintf(buf, CELL_MAX, "%s",
                   open->unreadable ? "unreadable"
                   : r->overdue     ? "overdue"
                                    : idem_status_name(idem_record_status(r)));
}

static void exit_cell(const struct cli_open *open, int64_t now_ms,
                      char buf[CELL_MAX])
{
    int status = open->exit_status >= 0 ? open->exit_status : open->http_status;

    (void)now_ms;
    (void)snprintf(buf, CELL_MAX, status >= 0 ? "%d" : "-", status);
}

/* Since it ended, or else since it started. */
static void since_cell(const struct cli_open *open, int64_t now_ms,
                       char buf[CELL_MAX])
{
    const struct idem_record *r = &open->record;
    int64_t ms = now_ms - (r->ended_ms != 0 ? r->ended_ms : r->started_ms);

    cli_span_text(ms < 0 ? 0 : ms, buf);
    if (open->unreadable) {
        (void)strcpy(buf, "-");
    }
}

static void lease_cell(const struct cli_open *open, int64_t now_ms,
                       char buf[CELL_MAX])
{
    int64_t left_ms = open->record.lease_end_ms - now_ms;
    char span[32];

    if (!holds_lease(open) || open->record.lease_end_ms == IDEM_NEVER) {
        (void)strcpy(buf, holds_lease(open) ? "no end" : "-");
        return;
    }
    cli_span_text(left_ms < 0 ? -left_ms : left_ms, span);
    (void)snprintf(buf, CELL_MAX, "%s %s", span, left_ms < 0 ? "over" : "left");
}

static void renewed_cell(const struct cli_open *open, int64_t now_ms,
                         char buf[CELL_MAX])
{
    const struct idem_record *r = &open->record;
    int64_t ago_ms = now_ms - (r->lease_end_ms - r->lease_ms);
    char span[32];

    if (open->unreadable || !r->live) {
        (void)strcpy(buf, "-");
        return;
    }
    cli_span_text(ago_ms < 0 ? 0 : ago_ms, span);
    (void)snprintf(buf, CELL_MAX, "%s ago", span);
}

static void tries_cell(const struct cli_open *open, int64_t now_ms,
                       char buf[CELL_MAX])
{
    (void)now_ms;
    (void)snprintf(buf, CELL_MAX, "%u", (unsigned)open->record.attempts);
}

/* An empty field is shown as "-", so that it does not look forgotten. */
static void text_cell(struct idem_slice s, size_t size, char *buf)
{
    (void)cli_escape(s.len > 0 ? s : idem_str("-"), buf, size);
}

static void owner_cell(const struct cli_open *open, int64_t now_ms,
                       char buf[CELL_MAX])
{
    (void)now_ms;
    text_cell(open->record.owner, 64, buf);
}

static void scope_cell(const struct cli_open *open, int64_t now_ms,
                       char buf[CELL_MAX])
{
    (void)now_ms;
    text_cell(open->record.scope, 64, buf);
}

static void key_cell(const struct cli_open *open, int64_t now_ms,
                     char buf[CELL_MAX])
{
    size_t mark =
        cli_key_is_escaped(open->record.key) ? strlen(CLI_ESCAPED) : 0;

    (void)now_ms;
    memcpy(buf, CLI_ESCAPED, mark);
    (void)cli_escape(open->record.key, buf + mark, CELL_MAX - mark);
}

/* ---- The table ---- */

struct column {
    char letter; /* In the sets below. */
    const char *heading;
    int width;
    cell_fn *cell;
};

static const struct column columns_known[] = {
    {'s', "STATUS", 11, status_cell},  {'x', "EXIT", 4, exit_cell},
    {'a', "SINCE", 6, since_cell},     {'l', "LEASE", 11, lease_cell},
    {'r', "RENEWED", 9, renewed_cell}, {'t', "TRIES", 5, tries_cell},
    {'o', "OWNER", 20, owner_cell},    {'c', "SCOPE", 10, scope_cell},
    {'k', "KEY", 0, key_cell},
};

/* The first that leaves room for the key is taken, or else the last. The scope and
 * what is rarely read go before a key is cut short, and the owner after that. */
static const struct {
    const char *letters;
    int key_room;
} sets[] = {{"sxalrtock", 24}, {"sxaltock", 24}, {"sxalock", 24},
            {"sxalok", 16},    {"sxalk", 16},    {"sak", 0}};

static const struct column *column_of(char letter)
{
    size_t i = 0;

    while (columns_known[i].letter != letter) {
        i++;
    }
    return &columns_known[i];
}

static int width_of(const char *set)
{
    int width = 0;

    for (; *set != '\0'; set++) {
        width += column_of(*set)->width + GAP;
    }
    return width;
}

static const char *set_for(const struct top_terminal *terminal, int columns)
{
    const size_t last = sizeof(sets) / sizeof(sets[0]) - 1;
    size_t i = 0;

    while (terminal->live && i < last &&
           width_of(sets[i].letters) - GAP + sets[i].key_room > columns) {
        i++;
    }
    return sets[i].letters;
}

/* A cell that is too wide ends in "~": more of it is in idem show. */
static void put_cell(struct line *line, const struct column *column,
                     const char *paint, char text[CELL_MAX])
{
    int width = (int)cli_columns(text);

    if (column->width > 0 && width > column->width) {
        (void)strcpy(text + bytes_of(text, column->width - 1), "~");
        width = column->width;
    }
    put(line, paint, text);
    if (column->width > 0) {
        put_spaces(line, column->width - width + GAP);
    }
}

static const char *paint_of(const struct cli_open *open)
{
    if (open->unreadable) {
        return red;
    }
    return open->record.status == IDEM_STATUS_COMPLETED
               ? "\033[31m"
               : cli_status_paint(&open->record, open->record.overdue);
}

static void put_row(struct line line, const char *set,
                    const struct cli_open *open, int64_t now_ms)
{
    char text[CELL_MAX];

    for (; *set != '\0'; set++) {
        const struct column *column = column_of(*set);

        column->cell(open, now_ms, text);
        put_cell(&line, column, *set == 's' ? paint_of(open) : NULL, text);
    }
    end_line(&line);
}

static void put_headings(struct line line, const char *set)
{
    char text[CELL_MAX];

    for (; *set != '\0'; set++) {
        (void)strcpy(text, column_of(*set)->heading);
        put_cell(&line, column_of(*set), bold, text);
    }
    end_line(&line);
}

/* ---- Above it ---- */

static void put_sum(struct line *line, uint64_t count, const char *what,
                    const char *paint)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)count,
                   what);
    put(line, count > 0 ? paint : NULL, text);
}

static void put_sums(struct line line, const struct cli_snapshot *snapshot)
{
    put_sum(&line, snapshot->in_progress - snapshot->retry, "in progress",
            NULL);
    put(&line, NULL, ", ");
    put_sum(&line, snapshot->overdue, "overdue", magenta);
    put(&line, NULL, ", ");
    put_sum(&line, snapshot->unknown, "unknown", magenta);
    put(&line, NULL, ", ");
    put_sum(&line, snapshot->failed_len, "failed", red);
    put(&line, NULL, ", ");
    put_sum(&line, snapshot->retry, "retry", NULL);
    put(&line, NULL, ", ");
    put_sum(&line, snapshot->failed_outcomes, "failed outcomes", red);
    end_line(&line);
}

static void put_second(struct line line, const struct top_view *view)
{
    if (view->outage != NULL) {
        put(&line, red, "The store does not answer: ");
        put(&line, NULL, view->outage);
    } else {
        put(&line, NULL, view->rates);
    }
    end_line(&line);
}

static void put_time(struct line line, const struct top_view *view)
{
    char text[128];
    char time[48];

    cli_time_for(line.live, view->snapshot->now_ms, time);
    (void)snprintf(text, sizeof(text), "%s%s",
                   view->outage != NULL ? "as of " : "", time);
    put(&line, NULL, text);
    if (line.live) {
        put(&line, NULL,
            view->outcomes ? "  q: quit, f: all"
                           : "  q: quit, f: failed outcomes");
    }
    end_line(&line);
}

/* ---- All of it ---- */

static void window(const struct top_terminal *terminal, int *ret_rows,
                   int *ret_columns)
{
    struct winsize size;

    *ret_rows = terminal->live ? ROWS : INT_MAX;
    *ret_columns = COLUMNS;
    if (terminal->live && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_row > 0 && size.ws_col > 0) {
        *ret_rows = size.ws_row;
        *ret_columns = size.ws_col;
    }
}

enum {
    OPEN,
    OUTCOMES,
    KEEP_MAX = 1000
};

static int class_of(void *ctx, struct cli_open *open)
{
    (void)ctx;
    return !open->unreadable && open->record.status == IDEM_STATUS_COMPLETED
               ? OUTCOMES
               : OPEN;
}

const struct cli_snapshot_keep top_keep = {.max = KEEP_MAX,
                                           .compare = cli_open_compare,
                                           .class_of = class_of};

/* A report says what it leaves out; a window is too short for most anyway. */
static void put_left_out(const struct top_terminal *terminal,
                         const struct cli_snapshot_class *class,
                         const char *what, const char *command)
{
    if (!terminal->live && class->found > class->len) {
        (void)printf("and %llu more %s; see: %s\n",
                     (unsigned long long)(class->found - class->len), what,
                     command);
    }
}

static void put_rows(const struct top_terminal *terminal,
                     const struct top_view *view, const char *set, int room,
                     int columns)
{
    const struct cli_snapshot *snapshot = view->snapshot;
    size_t class = view->outcomes ? OUTCOMES : OPEN;
    size_t i;

    for (; class <= OUTCOMES; class ++) {
        const struct cli_snapshot_class *rows = &snapshot->classes[class];

        for (i = 0; i < rows->len && room > 0; i++) {
            put_row(begin_line(terminal, columns), set, &rows->open[i],
                    snapshot->now_ms);
            room--;
        }
        put_left_out(terminal, rows, class == OPEN ? "open" : "failed outcomes",
                     class == OPEN
                         ? "idem list --status in_progress,failed,unknown"
                         : "idem list --failed");
    }
}

void top_draw(const struct top_terminal *terminal, const struct top_view *view)
{
    const char *set;
    int columns;
    int rows;

    window(terminal, &rows, &columns);
    set = set_for(terminal, columns);
    (void)fputs(terminal->live ? "\033[H" : "", stdout);
    put_sums(begin_line(terminal, columns), view->snapshot);
    put_second(begin_line(terminal, columns), view);
    put_time(begin_line(terminal, columns), view);
    put_headings(begin_line(terminal, columns), set);
    put_rows(terminal, view, set, rows - ROWS_ABOVE - 1, columns);
    (void)fputs(terminal->live ? "\033[J" : "", stdout);
    (void)fflush(stdout);
}
