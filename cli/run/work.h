/* work.h: the work of an attempt, from the start of the command to its recorded end. */
#ifndef IDEM_CLI_RUN_WORK_H
#define IDEM_CLI_RUN_WORK_H

#include "run/child.h"
#include "run/descendants.h"
#include "run/frames.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/supervisor.h"

#include <idem.h>
#include <poll.h>

/* Carries one stream of the command to ours, and to the recording.
 *
 * A pump either waits for the command (nothing is held) or for its sink (bytes
 * are held): while a sink is blocked nothing more is read, and the pipe slows
 * the command down. The sink is a descriptor that we share with others, so it
 * is never made non-blocking; it gets pieces that a ready sink takes at once. */

struct pump {
    enum frame_stream stream;
    int from;       /* The command's end; -1 once it is over. */
    int to;         /* Our stream; -1 once it cannot be written to. */
    int sink_error; /* errno of what happened to it; 0: nothing. */
    char *buf;
    size_t size;
    size_t off; /* Where the held bytes start ... */
    size_t len; /* ... and how many there are. */
    struct recorder *recorder;
};

/* A pump without a command's end is done. 0, or -1: out of memory. */
int pump_init(struct pump *pump, enum frame_stream stream, int to,
              struct recorder *recorder);

/* @from, which is non-blocking, is the pump's from here on. */
void pump_connect(struct pump *pump, int from);

/* The descriptor that it waits for; -1: nothing more. */
struct pollfd pump_poll(const struct pump *pump);

/* Reads or writes as far as poll() allows. */
void pump_move(struct pump *pump, const struct pollfd *ready);

/* True once the command's end is over and nothing is held. */
bool pump_is_done(const struct pump *pump);

/* The command has ended: reads and records what it left in the pipe, without
 * waiting for the sink. */
void pump_drain(struct pump *pump);

/* Writes what the sink takes at once. True: nothing is held any more. */
bool pump_try(struct pump *pump);

/* Writes what is held, however long the sink takes. */
void pump_flush(struct pump *pump);

void pump_finish(struct pump *pump);

/* Renews the lease while the command runs, and tells the supervisor when it ends.
 *
 * It is renewed every third of its length, or as often as a short one needs. A store
 * that does not answer is asked again; if it stays away, the supervisor ends the
 * work in time. If the record belongs to another attempt, the work ends at once. If
 * the command has ended the attempt itself, there is no lease to renew, and it may
 * go on. */

struct lease {
    const struct supervisor *supervisor;
    struct idem_store *store;
    struct idem_attempt *attempt;
    int64_t length_ms;
    int64_t renew_at_ms;     /* By io_now_ms(); INT64_MAX: never again. */
    struct idem_error error; /* Of the last renewal; code 0: it worked. */
};

/* @attempt was STARTED. */
void lease_init(struct lease *lease, struct idem_store *store,
                struct idem_attempt *attempt,
                const struct supervisor *supervisor);

/* The end of the lease less the margin of the store, by io_now_ms(): no work may go
 * on after it. SUPERVISOR_NEVER if the lease never ends. */
int64_t lease_kill_at_ms(const struct lease *lease);

/* How long before that SIGTERM is sent: @wanted_ms, but at most a quarter of the
 * lease, so that a late renewal still comes before it. */
int64_t lease_grace_ms(const struct lease *lease, int64_t wanted_ms);

/* ---- The time between the start of the command and its end ---- */

struct watch {
    struct signals *signals;
    struct terminal *terminal;
    const struct supervisor *supervisor;
    bool allow_background;
    pid_t group; /* Of the command, until it ended; 0: not known. */
    struct lease lease;
    struct pump out;
    struct pump err;
    bool ended;    /* The command itself; its output may still come. */
    bool alone;    /* And all of its descendants, unless some survived. */
    bool left;     /* Some of which had to be stopped. */
    bool survived; /* Some of which may be alive: survivor, if one was seen. */
    struct descendants_survivor survivor;
    bool supervisor_died;
    enum supervisor_why stopping; /* Why it was told to end. */
    struct child_end end;
    int64_t over_at_ms; /* Once it ended: when we stop to wait for output. */
};

/* The supervisor's reports about the command. */
void watch_take_news(struct watch *watch, const struct supervisor_news *news);

/* Carries output, forwards signals and keeps the lease until the command and
 * its descendants have ended, or cannot be ended, and their output is here, or
 * does not come. The terminal is ours again. */
void watch_until_end(struct watch *watch);

/* ---- The end ---- */

/* The status that @end means for a record with @policy; IN_PROGRESS: end its lease
 * now. */
enum idem_status ending_status(const struct run_options *options,
                               enum idem_on_expired_lease policy,
                               const struct child_end *end);

struct ending {
    enum idem_status status; /* To be recorded. */
    int exit_status;         /* Of the command, as a shell gives it. */
    int64_t ended_ms; /* By the clock of io_now_ms(); 0: nothing was run. */
    struct idem_result result; /* Where the status keeps one. */
    char meta[32];             /* "exit 3\n", "exit 3 complete\n" */
    char text[192];            /* "the command ended with status 3" */
};

/* True if some ending of a command means retry. */
bool ending_may_be_retry(const struct idem_outcome_table *outcomes);

/* Fills everything but the output in the result, which points into @ret_ending:
 * it must not be moved. @policy is that of the record. */
void ending_decide(const struct run_options *options,
                   enum idem_on_expired_lease policy,
                   const struct child_end *end, struct ending *ret_ending);

/* Records @ending, trying again while the store may still answer. 0, or an enum
 * idem_code with its sentence. Also 0 if the command used its token to end the
 * attempt itself: its own report wins. */
int ending_record(struct run *run, const struct ending *ending,
                  struct idem_error *ret_error);

/* Reports a recording that failed with @error and how to make up for it. Returns
 * CLI_NOT_RECORDED. */
int ending_not_recorded(struct run *run, const struct ending *ending,
                        const struct idem_error *error);

/* Releases the key: nothing was run, because of @text. Reports a failure of that. 0,
 * or an enum idem_code. */
int ending_release(struct run *run, const char *text);

/* Called after the store answered LOST to @attempt. The status with which the
 * command ended the attempt by its token; 0: it was really lost, or the store does
 * not answer. */
enum idem_status self_report(struct idem_store *store,
                             const struct idem_attempt *attempt);

/* ---- The work ---- */

/* Points into itself: it must not be moved. */
struct work {
    struct run *run; /* Its attempt was STARTED. */
    struct terminal terminal;
    struct recorder recorder;
    struct watch watch;
    struct ending ending;    /* Set by work_record(). */
    struct idem_error error; /* Of the recording; code 0: it worked. */
    int told; /* A signal that came while it was recorded; 0: none. */
};

void work_init(struct work *ret_work, struct run *run);

/* Starts the command. 0; or, after an error message and releasing the key, an exit
 * status: nothing was run. */
int work_start(struct work *work);

/* Decides what the end means and records it, unless some of the work may be alive.
 * Then the outcome is in the store or the journal, or work->error tells why not. */
void work_record(struct work *work);

/* Dismisses the supervisor and unblocks signals. */
void work_let_go(struct work *work);

/* Writes the output that a slow reader has not taken yet. */
void work_pass_output_on(struct work *work);

/* Prints idem's own messages; last, as the reader of stderr may be slow. Returns the
 * exit status of the run. */
int work_tell(struct work *work);

void work_finish(struct work *work);

/* ---- Everything up to the moment in which the command runs -------------- */

/* Starts the command of a STARTED attempt for @watch, whose pumps have a recorder,
 * and sets up its lease. 0; or, after an error message and releasing the key, an
 * exit status: nothing was run. */
int launch(struct run *run, struct watch *watch);

/* Releases the key without having run anything, because of @text. Returns @status,
 * or CLI_NOT_RECORDED if the lease was lost. */
int launch_give_up(struct run *run, int status, const char *text);

/* ---- A process of the command is alive, or may be ----------------------- */

#endif
