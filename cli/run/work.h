/* work.h: the work of an attempt, from its start to its end. */
#ifndef IDEM_CLI_RUN_WORK_H
#define IDEM_CLI_RUN_WORK_H

#include "run/ending.h"
#include "run/run.h"
#include "run/watch.h"

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
