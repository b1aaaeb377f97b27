/* work.h: the work of an attempt, from its start to its end. */
#ifndef IDEM_CLI_RUN_WORK_H
#define IDEM_CLI_RUN_WORK_H

#include "run/ending.h"
#include "run/frames.h"
#include "run/run.h"
#include "run/terminal.h"
#include "run/watch.h"

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

/* Starts the command. 0; or, after saying why and releasing the key, an exit status:
 * nothing was run. */
int work_start(struct work *work);

/* Decides what its end means and records it, unless some of the work may be alive. The
 * outcome is in the store, or in the journal, or work->error says why not. */
void work_record(struct work *work);

/* The supervisor goes, and signals are again what they were to us. */
void work_let_go(struct work *work);

/* The output that a slow reader has not taken yet. */
void work_pass_output_on(struct work *work);

/* The lines of our own, which come last: whoever reads our stderr may be slow. The exit
 * status of the run. */
int work_tell(struct work *work);

void work_finish(struct work *work);

/* ---- Everything up to the moment in which the command runs -------------- */

/* Starts the command of a STARTED attempt for @watch, whose pumps have a
 * recorder, with its lease to be kept. 0; or, after saying why and releasing the
 * key, an exit status: nothing was run. */
int launch(struct run *run, struct watch *watch);

/* Releases the key without having run anything, because of @text. Returns
 * @status, or that of a key which is lost. */
int launch_give_up(struct run *run, int status, const char *text);

/* ---- A process of the command is alive, or may be ----------------------- */

/* Says who is alive and what happens next, and records nothing: a record that
 * the work ended, or that its lease did, would let another start beside it. The
 * exit status. */
int survived_say(struct run *run, const struct watch *watch,
                 const struct ending *ending);

#endif
