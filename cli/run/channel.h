/* channel.h: messages of one size, with descriptors beside them, between the
 * runner and its supervisor. */
#ifndef IDEM_CLI_RUN_CHANNEL_H
#define IDEM_CLI_RUN_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#define CHANNEL_FDS 4

/* The descriptors that come beside a message; -1 where there is none. */
struct channel_fds {
    int fd[CHANNEL_FDS];
};

extern const struct channel_fds channel_no_fds;

/* A pair of ends, closed on exec. 0, or -1 with errno. */
int channel_open(int ret_ends[2]);

/* Never waits, and raises no signal. 0, or -1 with errno. */
int channel_send(int end, const void *message, size_t len,
                 const struct channel_fds *fds);

/* Sends nothing more, but still receives: the receiver at the other end sees end of
 * file, as if this process had died. */
void channel_fall_silent(int end);

/* 1: a message of @len bytes; 0: none is there (with @wait: never); -1: the
 * other end is gone, or the bytes are not a message. The caller closes
 * @ret_fds, which may be NULL where none are expected. */
int channel_receive(int end, void *message, size_t len, bool wait,
                    struct channel_fds *ret_fds);

#endif
