/* ending.h: what the end of the command means for the record. */
#ifndef IDEM_CLI_RUN_ENDING_H
#define IDEM_CLI_RUN_ENDING_H

#include "run/child.h"
#include "run/run.h"

/* What @end is to the record, whose policy is @policy; IN_PROGRESS: its lease is to
 * end now. */
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

/* True if a command can end so that it is to be run again. */
bool ending_may_be_retry(const struct idem_outcome_table *outcomes);

/* Fills everything but the output in the result, which points into @ret_ending:
 * it must not be moved. @policy is that of the record. */
void ending_decide(const struct run_options *options,
                   enum idem_on_expired_lease policy,
                   const struct child_end *end, struct ending *ret_ending);

/* Records it, asking again while the store may still answer. 0, or an enum
 * idem_code with its sentence. A command that used its token to say itself how
 * it ended is right: that answers 0 too. */
int ending_record(struct run *run, const struct ending *ending,
                  struct idem_error *ret_error);

/* A recording that failed with @error is told with all that a person needs to mend it.
 * CLI_NOT_RECORDED. */
int ending_not_recorded(struct run *run, const struct ending *ending,
                        const struct idem_error *error);

/* Records that nothing was run, because of @text, with a line on stderr if that
 * cannot be done. 0, or an enum idem_code. */
int ending_release(struct run *run, const char *text);

#endif
