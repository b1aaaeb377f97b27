/* The terminal: its width and colors, and progress on it. */
#include "text/screen.h"

#include "process/host.h"
#include "text/text.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_UNKNOWN 80

bool cli_stdout_is_tty(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

bool cli_stderr_is_tty(void)
{
    return isatty(STDERR_FILENO) == 1;
}

/* Asks the terminal: $COLUMNS is a variable of the shell, and may be stale. */
static int width_of(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                : WIDTH_UNKNOWN;
}

int cli_width(void)
{
    return width_of(STDOUT_FILENO);
}

/* An empty NO_COLOR counts as not set (no-color.org). */
static bool is_set(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && *value != '\0';
}

static bool is_zero(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && strcmp(value, "0") == 0;
}

static bool terminal_has_colors(void)
{
    const char *term = secure_getenv("TERM");

    return cli_stdout_is_tty() && term != NULL && strcmp(term, "dumb") != 0;
}

bool cli_may_paint(void)
{
    if (is_set("NO_COLOR")) {
        return false;
    }
    if (is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE")) {
        return true;
    }
    return !is_zero("CLICOLOR") && terminal_has_colors();
}

/* ---- Progress ---- */

enum {
    EVERY_MS = 100,
    FROM_MS = 250,    /* Progress is shown after this time ... */
    FROM_DONE = 1000, /* ... or once this much is done. */
    WIDTH_MIN = 20
};

bool cli_progress_off;

static struct {
    const char *doing; /* NULL: nothing is done now. */
    int64_t from_ms;
    int64_t drawn_ms; /* When it was drawn last; 0: not yet. */
    int columns;      /* Of the line that is on the terminal; 0: none is. */
} shown;

/* ---- The line ---- */

static void rate_text(uint64_t done, int64_t ms, char buf[32])
{
    if (ms < EVERY_MS) {
        buf[0] = '\0'; /* So early a rate is a guess. */
        return;
    }
    (void)snprintf(buf, 32, "  %llu/s",
                   (unsigned long long)((double)done * 1000 / (double)ms));
}

/* The time that is left at the rate so far, or, if the end is not known, the time
 * taken. */
static void time_text(uint64_t done, uint64_t all, int64_t ms, char buf[40])
{
    double left_ms = (double)ms;
    char span[32];

    buf[0] = '\0';
    if (ms < EVERY_MS || done == 0) {
        return;
    }
    if (all != 0) {
        left_ms = (double)ms / (double)done * (double)(all - done);
    }
    if (left_ms > (double)IDEM_DURATION_MAX_MS) {
        return; /* Nobody waits for that: it is a guess. */
    }
    if (left_ms < 120000) {
        (void)snprintf(span, sizeof(span), "%llds",
                       (long long)((left_ms + 999) / 1000));
    } else {
        cli_span_text((int64_t)left_ms, span);
    }
    (void)snprintf(buf, 40, "  %s%s", span, all != 0 ? " left" : "");
}

int cli_progress_line(const char *doing, uint64_t done, uint64_t all,
                      int64_t ms, int columns, char buf[CLI_PROGRESS_MAX])
{
    int cap = columns < CLI_PROGRESS_MAX ? columns : CLI_PROGRESS_MAX;
    char numbers[64];
    char rate[32];
    char time[40];
    int len;

    done = all != 0 && done > all ? all : done;
    if (all != 0) {
        (void)snprintf(numbers, sizeof(numbers), " %3d%% %llu/%llu",
                       (int)((double)done / (double)all * 100),
                       (unsigned long long)done, (unsigned long long)all);
    } else {
        (void)snprintf(numbers, sizeof(numbers), " %llu",
                       (unsigned long long)done);
    }
    rate_text(done, ms, rate);
    time_text(done, all, ms, time);
    len = snprintf(buf, (size_t)cap, "%s%s%s%s", doing, numbers, rate, time);
    return len < cap ? len : cap - 1;
}

/* ---- The terminal ---- */

/* Callers report each row, so this asks the system only once. */
static bool may_show(void)
{
    static int is_tty = -1;

    if (is_tty < 0) {
        is_tty = cli_stderr_is_tty();
    }
    return is_tty == 1 && !cli_progress_off;
}

static int width(void)
{
    int columns = width_of(STDERR_FILENO);

    return columns < WIDTH_MIN ? WIDTH_MIN : columns;
}

/* Draws over the line that is there. Blanks hide the rest of a longer one: they work on
 * any terminal, which an escape sequence does not. */
static void draw(const char *doing, uint64_t done, uint64_t all, int64_t now_ms)
{
    char line[CLI_PROGRESS_MAX];
    int len = cli_progress_line(doing, done, all, now_ms - shown.from_ms,
                                width(), line);
    int over = shown.columns > len ? shown.columns - len : 0;

    (void)fprintf(stderr, "\r%s%*s", line, over, "");
    (void)fflush(stderr);
    shown.columns = len;
    shown.drawn_ms = now_ms;
}

void cli_progress(const char *doing, uint64_t done, uint64_t all)
{
    int64_t now_ms;

    if (!may_show()) {
        return;
    }
    now_ms = cli_mono_ms();
    if (shown.doing == NULL || strcmp(shown.doing, doing) != 0) {
        cli_progress_end();
        shown.doing = doing;
        shown.from_ms = now_ms;
    }
    if ((done >= FROM_DONE || now_ms - shown.from_ms >= FROM_MS) &&
        (shown.drawn_ms == 0 || now_ms - shown.drawn_ms >= EVERY_MS)) {
        draw(doing, done, all, now_ms);
    }
}

void cli_progress_hide(void)
{
    if (shown.columns > 0) {
        (void)fprintf(stderr, "\r%*s\r", shown.columns, "");
        (void)fflush(stderr);
        shown.columns = 0;
        shown.drawn_ms = 0;
    }
}

void cli_progress_end(void)
{
    cli_progress_hide();
    memset(&shown, 0, sizeof(shown));
}
