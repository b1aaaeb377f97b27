/* launch.h: everything up to the moment in which the command runs. */
#ifndef IDEM_CLI_RUN_LAUNCH_H
#define IDEM_CLI_RUN_LAUNCH_H

#include "run/run.h"
#include "run/watch.h"

/* Starts the command of a STARTED attempt for @watch, whose pumps have a
 * recorder, with its lease to be kept. 0; or, after saying why and releasing the
 * key, an exit status: nothing was run. */
int launch(struct run *run, struct watch *watch);

/* Releases the key without having run anything, because of @text. Returns
 * @status, or that of a key which is lost. */
int launch_give_up(struct run *run, int status, const char *text);

#endif
