/* terminal.h: who has the terminal: the runner or the command.
 *
 * The command has a process group of its own, and a terminal serves one group
 * at a time. An interactive command gets the foreground; in a pipeline, where
 * the other programs need it too, only once it asks. */
#ifndef IDEM_CLI_RUN_TERMINAL_H
#define IDEM_CLI_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd;     /* Our terminal; -1: there is none. */
    pid_t own;  /* The group of the runner. */
    bool given; /* The command's group has the foreground, or gets it. */
    bool saved; /* How it was set before the command got it is known. */
    struct termios before;
};

/* Looks, and sets @terminal->given if the command is to have it from its start:
 * the supervisor gives it then. */
void terminal_init(struct terminal *terminal);
void terminal_finish(struct terminal *terminal);

/* Both need SIGTTOU to be blocked. */
void terminal_give(struct terminal *terminal, pid_t group);
void terminal_take(struct terminal *terminal);

/* Sets it as it was: a command that was killed could not. */
void terminal_mend(const struct terminal *terminal);

/* The command was stopped by @signo. Gives it the terminal if that is what it
 * stopped for; otherwise stops the runner too, so that the shell notices, and
 * continues the command once the shell continues the runner. */
void terminal_stopped(struct terminal *terminal, pid_t group, int signo);

/* The runner was told to stop: stops the command, and then as above. */
void terminal_stop(struct terminal *terminal, pid_t group);

#endif
