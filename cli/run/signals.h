/* signals.h: signals as reads of a descriptor, so that none of them interrupts
 * a step half-way. They are blocked from before the claim until the outcome is
 * recorded: a runner that is told to stop always ends its claim. */
#ifndef IDEM_CLI_RUN_SIGNALS_H
#define IDEM_CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct signals {
    int fd;          /* Readable while a signal waits. */
    sigset_t before; /* The mask that we were started with. */
};

/* Blocks them. 0, or -1 with errno. */
int signals_take(struct signals *signals);

/* Drops pending signals, which were meant for a command that has ended. Returns the
 * last fatal one; 0: none. */
int signals_drop(struct signals *signals);

/* From here on a signal has its effect at once again. */
void signals_give_back(struct signals *signals);

/* The next signal that waits; 0: none does. */
int signals_next(struct signals *signals);

/* Waits up to @ms for one. Returns it, or 0. */
int signals_wait(struct signals *signals, int ms);

/* True for signals that end a process by default. */
bool signals_is_fatal(int signo);

/* Stops us as SIGTSTP would, and returns when somebody continues us: at once
 * where no shell is there to do that. */
void signals_stop_self(void);

/* In the child, before exec: nothing blocked, nothing ignored. */
void signals_reset(void);

/* Gives the terminal to the runner or to the command.
 *
 * The command has a process group of its own, and a terminal serves one group
 * at a time. An interactive command gets the foreground; in a pipeline, where
 * the other programs need it too, only once it asks. */

struct terminal {
    int fd;     /* Our terminal; -1: there is none. */
    pid_t own;  /* The group of the runner. */
    bool given; /* The command's group has the foreground, or gets it. */
    bool saved; /* How it was set before the command got it is known. */
    struct termios before;
};

/* Finds the terminal, and sets @terminal->given if the command gets it from its start,
 * from the supervisor. */
void terminal_init(struct terminal *terminal);
void terminal_finish(struct terminal *terminal);

/* Needs SIGTTOU to be blocked. */
void terminal_take(struct terminal *terminal);

/* Restores the settings, which a killed command could not. */
void terminal_mend(const struct terminal *terminal);

/* The command was stopped by @signo. Gives it the terminal if that is what it
 * stopped for; otherwise stops the runner too, so that the shell notices, and
 * continues the command once the shell continues the runner. */
void terminal_stopped(struct terminal *terminal, pid_t group, int signo);

/* The runner was told to stop: stops the command, and then as above. */
void terminal_stop(struct terminal *terminal, pid_t group);

#endif
