/* idem top: what is open, and what failed, as it is now, on a terminal. */
#include "inspect/top.h"

#include "inspect/commands.h"
#include "options/command.h"
#include "options/common.h"
#include "options/usage.h"
#include "process/clock.h"
#include "process/stop.h"
#include "store/open.h"
#include "text/error.h"

#include <idem/operator.h>
#include <signal.h>
#include <stdio.h>

static struct {
    int64_t every_ms;
    const char *scope;
    const char *store;
} args = {.every_ms = 2000};

enum {
    RATES_MAX = 256
};

struct top {
    struct idem_store *store;
    struct idem_counters counters; /* At the look before. */
    int64_t counted_ms;            /* When; 0: never. */
    char rates[RATES_MAX];
    struct cli_snapshot snapshot;
    struct idem_error
        error; /* Of the last look; its code is 0 if it went well. */
    struct top_terminal terminal;
    bool outcomes; /* Only these are shown. */
};

/* How often things happened each second since the last look, where the store
 * counts. */
static void count_rates(struct top *top)
{
    struct idem_counters now = IDEM_COUNTERS_INIT;
    int64_t now_ms = cli_mono_ms();
    double s = (double)(now_ms - top->counted_ms) / 1000;

    top->rates[0] = '\0';
    if (idem_store_is_remote(top->store) || /* It counts its own calls. */
        idem_count(top->store, &now, NULL) != 0) {
        return;
    }
    if (top->counted_ms != 0 && s > 0) {
        (void)snprintf(
            top->rates, sizeof(top->rates),
            "each second: %.1f started, %.1f completed, %.1f replayed, %.1f "
            "busy",
            (double)(now.started - top->counters.started) / s,
            (double)(now.completed - top->counters.completed) / s,
            (double)(now.replayed - top->counters.replayed) / s,
            (double)(now.busy - top->counters.busy) / s);
    }
    top->counters = now;
    top->counted_ms = now_ms;
}

/* In an outage what was seen last stays. */
static int look_now(struct top *top)
{
    struct idem_slice scope = idem_str(args.scope);
    struct cli_snapshot snapshot;

    top->error = (struct idem_error){0};
    top->error.code =
        cli_snapshot_outcomes(top->store, args.scope != NULL ? &scope : NULL,
                              CLI_OUTCOMES_SINCE_MS, &top_keep, &snapshot,
                              &top->error);
    if (top->error.code == 0) {
        cli_snapshot_finish(&top->snapshot);
        top->snapshot = snapshot;
        count_rates(top);
    }
    return top->error.code;
}

static void draw(const struct top *top)
{
    const struct idem_error *error = &top->error;
    const struct top_view view = {
        .snapshot = &top->snapshot,
        .rates = top->rates,
        .outage = error->code == 0         ? NULL
                  : error->text[0] != '\0' ? error->text
                                           : idem_error_text(error->code),
        .outcomes = top->outcomes,
    };

    top_draw(&top->terminal, &view);
}

static void watch(struct top *top, int stop)
{
    int64_t next_ms = cli_mono_ms() + args.every_ms;
    enum top_event event;

    draw(top);
    while (!ferror(stdout) &&
           (event = top_wait(&top->terminal, stop, next_ms)) != TOP_QUIT) {
        if (event == TOP_LOOK) {
            (void)look_now(top);
            next_ms = cli_mono_ms() + args.every_ms;
        }
        top->outcomes ^= event == TOP_OUTCOMES;
        draw(top);
    }
}

/* The first look comes before the screen is taken: what is wrong is said where it
 * stays. */
static int show(struct top *top)
{
    int stop;

    if (look_now(top) != 0) {
        return cli_fail_with(&top->error);
    }
    stop = cli_stop_fd();
    (void)signal(SIGPIPE, SIG_IGN);
    top_enter(&top->terminal);
    if (top->terminal.live) {
        watch(top, stop);
    } else {
        draw(top);
    }
    top_leave(&top->terminal);
    cli_snapshot_finish(&top->snapshot);
    return 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct top top = {.counted_ms = 0};
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "top takes no key; see idem show");
    }
    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &top.store);
    if (status == 0) {
        status = show(&top);
        idem_close(top.store);
    }
    return status;
}

static struct cli_option options[] = {
    {.name = "every",
     .kind = CLI_DURATION,
     .target = &args.every_ms,
     .arg = "TIME",
     .min = 100,
     .max = 3600000,
     .help = "look so often (2s)"},
    CLI_OPTION_SCOPES(&args.scope),
    CLI_OPTION_COLOR,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem top                          # q ends it",
    "idem top --every 500ms --scope eu",
    "idem top >report.txt              # one look, as plain text",
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
