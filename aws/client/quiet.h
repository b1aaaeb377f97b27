/* Keeping signals out while TLS libraries write and resolver threads start. */
#ifndef IDEM_AWS_CLIENT_QUIET_H
#define IDEM_AWS_CLIENT_QUIET_H

#include <signal.h>
#include <stdbool.h>

struct idem__quiet {
    sigset_t before;
    bool blocked;
};

/* Blocks all signals of this thread, so that a thread that libcurl starts now has
 * them blocked too, and SIGPIPE does not end the process. */
void idem__quiet_begin(struct idem__quiet *quiet);

/* Takes back a SIGPIPE that was raised meanwhile and lets signals in again. */
void idem__quiet_end(struct idem__quiet *quiet);

#endif
