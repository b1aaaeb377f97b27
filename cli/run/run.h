/* run.h: what the parts of `idem run` share.
 *
 *     run.c             the steps in their order, from the command line to the status
 *     command_line.c    options, and which of them exclude each other
 *     dry_run.c         --dry-run
 *     window.c          --every: the key of a calendar window, and the window before
 *     nonce.c           by which an attempt is known to be ours
 *     claim.c           the journal, then the key, which is waited for if asked
 *     answer.c          every verdict but STARTED: replays, or says what is wrong
 *     work.c            STARTED: the command from its start to its recorded end
 *       launch.c          its start
 *       watch.c           the loop: output, signals, the lease, the command's end
 *         pump.c, recorder.c, spool.c    output
 *         signals.c, terminal.c          what people do to it
 *         lease.c                        how long it may go on
 *       ending.c          what its end means, and the recording of that
 *       survived.c        or why it is not recorded: some of it may be alive
 *     supervisor.c      the process beside us that starts and ends the command
 *       channel.c         between it and us
 *       guard.c           its parent, where we have other children
 *       supervisor_main.c what it hears and sees
 *         supervision.c                  ending the command in time
 *         child.c, environment.c         the start of the command
 *         descendants.c                  its descendants
 *         runner_death.c                 what it writes if we die
 *     passed_on.c       output that could not be written to our stdout
 *     status_report.c   what happened, for programs
 *     say.c             idem's own line on stderr
 */
#ifndef IDEM_CLI_RUN_RUN_H
#define IDEM_CLI_RUN_RUN_H

#include "options/command.h"
#include "request/request.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "store/journal.h"
#include "store/patience.h"

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
    uint64_t busy_exit;
    uint64_t status_fd;
    bool status_fd_given;
    const char *status_file;
    struct cli_journal_choice journal;
    bool dry_run;
    bool verbose;
    bool quiet;
};

/* The nonce of the one attempt that a run may begin, known before it is asked
 * for: so the supervisor can tell whether a runner that died had the claim. */
struct run_nonce {
    uint8_t bytes[16];
    bool is_due; /* The next one that the library draws is this. */
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

/* As the command line says. */
extern struct run_options run_options;

/* Their rows, for the table of idem run; ends with a name of NULL. */
extern struct cli_option run_option_table[];

/* 0, or a usage error. */
int run_check_options(const struct cli_command *command, int argc);

/* The key is passed on in the environment, where no NUL can be. 0, or a usage error. */
int run_check_key(const struct cli_command *command,
                  const struct idem_request *request);

/* --lock: the key of a lock is that of no operation: no selector makes one that begins
 * so. 0, or a usage error: too long. */
int run_lock_key(const struct cli_command *command, struct cli_request *asked);

/* ---- claim.c: 0, or an exit status ------------------------------------- */

/* An outcome that waits on this host for the record is recorded. */
int run_settle_journal(struct run *run);

/* 0 with run->attempt. */
int run_claim(struct run *run);

/* ---- nonce.c ------------------------------------------------------------- */

/* A host whose random numbers are the system's, but for @nonce, which must stay
 * as long as the host is used. */
struct idem_host run_nonce_host(struct run_nonce *nonce);

/* ---- answer.c, dry_run.c: the exit status ------------------------------ */

int run_answer(struct run *run);
int run_dry(struct run *run);

/* ---- passed_on.c: @status, or CLI_OUTPUT_LOST after saying so ----------- */

/* @write_error: errno of the write to stdout that failed; 0: none did. */
int run_passed_on(struct run *run, int write_error, int status);

/* ---- say.c ------------------------------------------------------------- */

enum run_news {
    RUN_DETAIL, /* With -v. */
    RUN_REMARK, /* Where stderr is a terminal, or with -v. */
    RUN_NOTICE, /* Unless -q. */
    RUN_ERROR,  /* Always. */
};

/* True if @news is to be said. */
bool run_says(const struct run *run, enum run_news news);

void run_say(const struct run *run, enum run_news news, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, followed by the commands that decide about the record. */
void run_say_resolve(const struct run *run, enum run_news news,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
