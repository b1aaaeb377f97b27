/* watch.h: the time between the start of the command and its end. */
#ifndef IDEM_CLI_RUN_WATCH_H
#define IDEM_CLI_RUN_WATCH_H

#include "run/child.h"
#include "run/descendants.h"
#include "run/lease.h"
#include "run/pump.h"
#include "run/signals.h"
#include "run/supervisor.h"
#include "run/terminal.h"

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

#endif
