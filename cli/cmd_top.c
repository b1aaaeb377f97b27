/* idem top: what is open, as it is now, on a terminal. */
#include "cli.h"
#include "clock.h"
#include "look.h"
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct {
    int64_t every_ms;
    const char *scope;
    const char *store;
} args = {.every_ms = 2000};

enum {
    ROWS = 24,
    COLUMNS = 80,
    ROWS_ABOVE = 4, /* The sums, and the names of the columns. */
    LINE_MAX_LEN = 1024
};

struct top {
    struct idem_store *store;
    struct idem_counters counters; /* At the look before. */
    int64_t counted_ms;            /* When; 0: never. */
    struct termios before;
};

/* ---- The terminal ---- */

/* The other screen, without a cursor; keys come one by one, and unseen. */
static void enter(struct top *top)
{
    struct termios keys;

    if (tcgetattr(STDIN_FILENO, &top->before) == 0) {
        keys = top->before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    (void)fputs("\033[?1049h\033[?25l", stdout);
}

static void leave(const struct top *top)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

static void window(int *ret_rows, int *ret_columns)
{
    struct winsize size;

    *ret_rows = ROWS;
    *ret_columns = COLUMNS;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0) {
        *ret_rows = size.ws_row;
        *ret_columns = size.ws_col;
    }
}

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

/* One line, cut to the window, and nothing after it. */
static void put_line(const char *text, int columns)
{
    (void)printf("%.*s\033[K\r\n", bytes_of(text, columns), text);
}

/* @width columns of @text for "%-*s", which counts bytes. */
static int padded(int width, const char *text)
{
    return width + (int)(strlen(text) - cli_columns(text));
}

/* ---- The order ---- */

static int rank(const struct cli_open *open)
{
    if (open->unreadable) {
        return 0;
    }
    if (open->record.overdue) {
        return 1;
    }
    return open->record.status == IDEM_STATUS_UNKNOWN  ? 2
           : open->record.status == IDEM_STATUS_FAILED ? 3
                                                       : 4;
}

/* What needs a person, then what has gone on for longest. */
static int compare(const void *a, const void *b)
{
    const struct cli_open *x = a;
    const struct cli_open *y = b;

    if (rank(x) != rank(y)) {
        return rank(x) - rank(y);
    }
    return (x->record.started_ms > y->record.started_ms) -
           (x->record.started_ms < y->record.started_ms);
}

/* ---- What is shown ---- */

static void duration(int64_t ms, char buf[32])
{
    cli_span_text(ms < 0 ? 0 : ms, buf);
}

static void print_row(const struct cli_open *open, int64_t now_ms, int columns)
{
    const struct idem_record *r = &open->record;
    char line[LINE_MAX_LEN];
    char owner[64];
    char scope[64];
    char key[512];
    char age[32];

    duration(now_ms - r->started_ms, age);
    (void)cli_escape(r->owner, owner, sizeof(owner));
    (void)cli_escape(r->scope, scope, sizeof(scope));
    (void)snprintf(line, sizeof(line), "%-11s %8s %5u  %-*s  %-*s  %s",
                   open->unreadable ? "unreadable"
                   : r->overdue     ? "overdue"
                                    : idem_status_name(idem_record_status(r)),
                   open->unreadable ? "-" : age, (unsigned)r->attempts,
                   padded(20, owner), owner, padded(10, scope), scope,
                   cli_escape(r->key, key, sizeof(key)));
    put_line(line, columns);
}

/* How often things happened each second since the last look, where the store
 * counts. */
static void print_rates(struct top *top, int columns)
{
    struct idem_counters now = IDEM_COUNTERS_INIT;
    double s = (double)(cli_now_ms() - top->counted_ms) / 1000;
    char line[256];

    if (idem_count(top->store, &now, NULL) != 0) {
        put_line("", columns);
        return;
    }
    if (top->counted_ms == 0 || s <= 0) {
        put_line("", columns);
    } else {
        (void)snprintf(
            line, sizeof(line),
            "each second: %.1f started, %.1f completed, %.1f replayed, %.1f "
            "busy",
            (double)(now.started - top->counters.started) / s,
            (double)(now.completed - top->counters.completed) / s,
            (double)(now.replayed - top->counters.replayed) / s,
            (double)(now.busy - top->counters.busy) / s);
        put_line(line, columns);
    }
    top->counters = now;
    top->counted_ms = cli_now_ms();
}

static void print_look(struct top *top, struct cli_look *look)
{
    char line[256];
    char time[32];
    int columns;
    int rows;
    size_t i;

    window(&rows, &columns);
    cli_look_sort(look, compare);
    cli_time_text(look->now_ms, time);
    (void)fputs("\033[H", stdout);
    (void)snprintf(line, sizeof(line),
                   "%.19sZ  %llu in progress, %llu overdue, %llu unknown, "
                   "%llu failed  (q: quit)",
                   time, (unsigned long long)look->in_progress,
                   (unsigned long long)look->overdue,
                   (unsigned long long)look->unknown,
                   (unsigned long long)look->failed_len);
    put_line(line, columns);
    print_rates(top, columns);
    put_line("", columns);
    (void)snprintf(line, sizeof(line), "%-11s %8s %5s  %-20s  %-10s  %s",
                   "STATUS", "SINCE", "TRIES", "OWNER", "SCOPE", "KEY");
    put_line(line, columns);
    for (i = 0; i < look->len && (int)i < rows - ROWS_ABOVE - 1; i++) {
        print_row(&look->open[i], look->now_ms, columns);
    }
    (void)fputs("\033[J", stdout);
    (void)fflush(stdout);
}

/* ---- Again and again ---- */

/* True: somebody typed q, or a signal came. */
static bool pause_or_quit(int stop)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = stop, .events = POLLIN}};
    char key = '\0';

    if (poll(fds, 2, (int)args.every_ms) <= 0) {
        return false;
    }
    return fds[1].revents != 0 || read(STDIN_FILENO, &key, 1) != 1 ||
           key == 'q' || key == 'Q' || key == 3;
}

static int watch(struct top *top, int stop)
{
    struct idem_slice scope = idem_str(args.scope);
    struct idem_error error = {0};
    struct cli_look look;

    do {
        error.code = cli_look(top->store, args.scope != NULL ? &scope : NULL,
                              &look, &error);
        if (error.code != 0) {
            return error.code;
        }
        print_look(top, &look);
        cli_look_finish(&look);
    } while (!ferror(stdout) && !pause_or_quit(stop));
    return 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct top top = {.counted_ms = 0};
    int status;
    int stop;
    int rc;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "top takes no key; see idem show");
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return cli_usage(command, "top needs a terminal; see idem list, and "
                                  "idem watch");
    }
    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &top.store);
    if (status != 0) {
        return status;
    }
    stop = cli_stop_fd();
    (void)signal(SIGPIPE, SIG_IGN);
    /* timeout(1) puts us in the background, where setting the modes of the
     * terminal would stop us for good; reading a key fails there, and ends us. */
    (void)signal(SIGTTOU, SIG_IGN);
    (void)signal(SIGTTIN, SIG_IGN);
    enter(&top);
    rc = watch(&top, stop);
    leave(&top);
    idem_close(top.store);
    if (rc != 0) {
        struct idem_error error = {.code = rc, .text = ""};

        return cli_fail_with(&error);
    }
    return 0;
}

static struct cli_option options[] = {
    {.name = "every",
     .kind = CLI_DURATION,
     .target = &args.every_ms,
     .arg = "TIME",
     .min = 100,
     .max = 3600000,
     .help = "look so often (2s)"},
    {.name = "scope",
     .letter = 's',
     .kind = CLI_ANY_TEXT,
     .target = &args.scope,
     .arg = "SCOPE",
     .max = IDEM_SCOPE_MAX,
     .help = "only this scope (default: all)"},
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem top                          # q ends it",
    "idem top --every 500ms --scope eu",
    NULL,
};

const struct cli_command cli_top = {
    .name = "top",
    .summary = "show what is open, live",
    .usage = "idem top [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
