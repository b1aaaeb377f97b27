/* signals.h: signals as reads of a descriptor, so that none of them interrupts
 * a step half-way. They are blocked from before the claim until the outcome is
 * recorded: a runner that is told to stop always ends its claim. */
#ifndef IDEM_CLI_RUN_SIGNALS_H
#define IDEM_CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd;          /* Readable while a signal waits. */
    sigset_t before; /* The mask that we were started with. */
};

/* Blocks them. 0, or -1 with errno. */
int signals_take(struct signals *signals);

/* Takes those that wait, which were meant for a command that has ended. Returns the
 * last of them that wants us to end; 0: none does. */
int signals_drop(struct signals *signals);

/* From here on a signal has its effect at once again. */
void signals_give_back(struct signals *signals);

/* The next signal that waits; 0: none does. */
int signals_next(struct signals *signals);

/* Waits up to @ms for one. Returns it, or 0. */
int signals_wait(struct signals *signals, int ms);

/* True for those that end a process which has nothing to say about them. */
bool signals_is_fatal(int signo);

/* Stops us as SIGTSTP would, and returns when somebody continues us: at once
 * where no shell is there to do that. */
void signals_stop_self(void);

/* In the child, before exec: nothing blocked, nothing ignored. */
void signals_reset(void);

#endif
