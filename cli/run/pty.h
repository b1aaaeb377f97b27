/* pty.h: --pty, a terminal of the command's own.
 *
 *     our stdin --> master ==== slave --> stdin of the command
 *     our stdout <-- pump <-- master ==== slave <-- its stdout and stderr
 *
 * The command leads a session whose terminal the slave is, so that Ctrl-C and the
 * like, which come as bytes, are signals there, to whichever of its groups is in
 * the foreground. If our own stdin is a terminal it is raw meanwhile, and passes on
 * each byte; if it is not, nothing is echoed, and its end is an end of file to each
 * command that reads.
 *
 * We hold the slave open until the command has ended: a command that closes its
 * terminal for a while does not lose it.
 */
#ifndef IDEM_CLI_RUN_PTY_H
#define IDEM_CLI_RUN_PTY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#define PTY_INPUT_MAX 1024 /* Held at a time. */

struct pty {
    int master; /* -1: the command has no terminal of its own. */
    int slave;  /* -1 from the command's end on. */
    int outer;  /* Our terminal, for its size; -1: there is none. */

    bool has_outer; /* Our stdin is a terminal. */
    bool is_raw;
    struct termios before; /* How our stdin was set, */
    struct termios raw;    /* and how it is set meanwhile. */

    bool feeds;    /* Our stdin is passed on. */
    bool at_end;   /* Our stdin is. */
    bool is_split; /* The last bytes that were passed on do not end a line. */
    char held[PTY_INPUT_MAX];
    size_t off;
    size_t len;
};

/* No pair yet: pty_finish() does nothing. */
void pty_init(struct pty *pty);

/* Opens a pair, as large as our terminal and set like it. @feeds: the command reads
 * our stdin. 0, or -1 with errno. */
int pty_open(struct pty *pty, bool feeds);

/* Our terminal is raw while the command is in its foreground. */
bool pty_sets_outer(const struct pty *pty);

/* The buffers of our pumps. It is non-blocking. -1 with errno. */
int pty_reader(const struct pty *pty);

/* The command was started: our terminal is raw from here on, if we are in its
 * foreground. */
void pty_begin(struct pty *pty);

/* The events that it waits for: our stdin, or room in the command's. */
struct pollfd pty_poll(const struct pty *pty);
void pty_move(struct pty *pty, const struct pollfd *ready, pid_t group);

/* How long until pty_tick() has something to do; -1: it never has. */
int pty_wait_ms(const struct pty *pty);
void pty_tick(struct pty *pty);

/* Our terminal has another size. */
void pty_resize(struct pty *pty);

/* Stops the command, whose group is @group, and us; goes on once we are continued. */
void pty_stop(struct pty *pty, pid_t group);

/* We were continued by somebody else. */
void pty_continued(struct pty *pty);

/* The command has ended: lets go of the slave, and reads no more. */
void pty_end(struct pty *pty);

/* Its output is written: sets our terminal as it was. */
void pty_give_back(struct pty *pty);

/* Hangs up for the processes that outlived the command. */
void pty_finish(struct pty *pty);

/* Sets our terminal as it was, if nobody has since: for the supervisor of a runner that
 * was killed. Opens /dev/tty. */
void pty_restore(const struct termios *before);

#endif
