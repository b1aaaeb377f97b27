/* run.h: what the parts of `idem run` share.
 *
 *     main.c            run_main(): the steps in their order
 *     command_line.c    options, and which of them exclude each other
 *     claim.c           the key, of a window with --every: claimed, waited for
 *     not_started.c     every verdict but STARTED, and --dry-run
 *     work.h            STARTED: the command from its start to its recorded end
 *       work.c            the steps of that, and what idem reports of them
 *       launch.c          the order to start the command
 *       watch.c           the lease; the loop over output, signals and news
 *       pump.c, frames.c  output: carried, recorded, replayed
 *       signals.c         what people do to it, and who has the terminal
 *       ending.c          what its end means, and the recording of that
 *     supervisor.h      the process beside us that starts and ends the command
 *       supervisor.c      the runner's side of it, and the guard
 *       channel.c         messages between the two
 *       supervisor_main.c its loop: the runner's orders, the ends of children
 *       supervision.c     ending the command in time
 *       child.c           the start of the command, and its environment
 *       descendants.c     the descendants of the command
 *       runner_death.c    what it records if the runner dies
 *     status_report.c   --status-fd
 */
#ifndef IDEM_CLI_RUN_RUN_H
#define IDEM_CLI_RUN_RUN_H

#include "options/command.h"
#include "request/period.h"
#include "request/request.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "store/journal.h"
#include "store/open.h"

#include <idem.h>
#include <idem/outcome.h>
#include <stdio.h>

enum run_capture {
    RUN_CAPTURE_BOTH,
    RUN_CAPTURE_NONE,
};

/* --replay. */
enum run_replay {
    RUN_REPLAY_PRINT,
    RUN_REPLAY_QUIET, /* Its status, without its output. */
};

struct run_options {
    struct cli_claim claim;
    const char *store;
    const char *outcome; /* The table, as text; NULL: the defaults. */
    struct idem_outcome_table outcomes;
    uint64_t failures_max; /* 0: no budget. */
    int64_t retry_after_ms;
    int capture; /* enum run_capture */
    uint64_t max_output;
    int64_t kill_after_ms; /* From SIGTERM to SIGKILL. */
    int64_t max_time_ms;   /* 0: no limit. */
    bool
        lock; /* The key is held while the command runs, and nothing is kept. */
    const char *every; /* Calendar windows; NULL: one key for ever. */
    const char *zone;
    bool overlap;
    int replay; /* enum run_replay */
    bool drain;
    bool allow_background;
    uint64_t status_fd;
    bool status_fd_given;
    int journal; /* An enum cli_journal_rule. */
    bool dry_run;
    bool verbose;
    bool quiet;
};

/* The nonce of the one attempt that a run may begin, known before it is asked
 * for: so the supervisor can tell whether a runner that died had the claim. */
struct run_nonce {
    uint8_t bytes[16];
    bool is_due; /* The library must draw this nonce next. */
};

struct supervisor;

struct run {
    const struct run_options *options;
    char **argv; /* The command; NULL at its end. */
    struct cli_request asked;
    struct cli_patience patience;
    struct idem_store *store;
    struct idem_attempt *attempt; /* NULL until the store has answered. */
    struct run_nonce nonce;
    struct supervisor *supervisor;
    bool asks;      /* The supervisor knows that the key is asked for. */
    bool is_before; /* The key is that of the window before the current one. */
    struct signals signals;
    struct status_report report;
};

/* ---- command_line.c ---------------------------------------------------- */

/* The options, as read from the command line. */
extern struct run_options run_options;

/* Their rows, for the table of idem run; ends with a name of NULL. */
extern struct cli_option run_option_table[];

/* Checks run_options. 0, or a usage error. */
int run_check_options(const struct cli_command *command, int argc);

/* The command gets the key in its environment, which cannot hold a NUL. 0, or a
 * usage error. */
int run_check_key(const struct cli_command *command,
                  const struct idem_request *request);

/* --lock: gives the key a prefix that no selector makes, so that a lock never meets
 * an operation. 0, or a usage error: the key is too long. */
int run_lock_key(const struct cli_command *command, struct cli_request *asked);

/* ---- claim.c: 0, or an exit status ------------------------------------- */

/* Records an outcome for this key that waits in the journal of this host. */
int run_settle_journal(struct run *run);

/* 0 with run->attempt. */
int run_claim(struct run *run);

/* ---- run.c ------------------------------------------------------------- */

/* A host with the system's random numbers, but for the next nonce, which is @nonce.
 * It must stay as long as the host is used. */
struct idem_host run_nonce_host(struct run_nonce *nonce);

/* ---- claim.c: the windows of --every ----------------------------------- */

/* The windows of a run, taken once, from the clock of this host. */
struct windows {
    size_t key_len; /* Of the key without a window. */
    int64_t retention_ms;
    struct cli_window current;
    struct cli_window before;
};

/* Adds the current window to the key of @run->asked, which is complete, and keeps
 * its outcome until the window after that is over. 0, or a usage error. */
int windows_choose(struct windows *ret_windows, struct run *run,
                   const struct cli_command *command);

/* Makes the key of @run that of @window. 0, or a usage error: too long. */
int windows_take(const struct windows *windows, struct run *run,
                 const struct cli_window *window);

/* The name of the window that the key of @run has; empty without --every. */
struct idem_slice windows_name_of(const struct run *run);

/* With the store open: *@ret_left is true, and the key that of the window before, if
 * work of that window is or may be undone. 0, or an exit status after an error
 * message. */
int windows_look_back(const struct windows *windows, struct run *run,
                      bool *ret_left);

/* ---- not_started.c: the exit status ------------------------------------ */

int run_answer(struct run *run);
int run_dry(struct run *run);

/* @status, or CLI_OUTPUT_LOST after an error message. @write_error: errno of the write
 * to stdout that failed; 0: none did. */
int run_passed_on(struct run *run, int write_error, int status);

/* ---- run.c: idem's own lines on stderr --------------------------------- */

enum run_news {
    RUN_DETAIL, /* With -v. */
    RUN_REMARK, /* Where stderr is a terminal, or with -v. */
    RUN_NOTICE, /* Unless -q. */
    RUN_ERROR,  /* Always. */
};

/* True if the options let @news be printed. */
bool run_says(const struct run *run, enum run_news news);

void run_say(const struct run *run, enum run_news news, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, followed by the commands that decide about the record. */
void run_say_resolve(const struct run *run, enum run_news news,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
