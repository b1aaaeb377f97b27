/* The sockets that libcurl waits for, in one descriptor.
 *
 * A kept-alive connection is waited for again and again. It stays registered in
 * between: taking it out and putting it back would be two system calls for each
 * request, and so we hear of it when it says something meanwhile. That is its end,
 * or an answer that nobody requested (a 408 of a proxy that waited too long, a
 * second answer to the last request). libcurl asks a connection that it kept only
 * whether it has ended, and would take such bytes for the answer to the next
 * request: they are thrown away here, and the connection is ended before libcurl
 * looks at it again.
 *
 *     nobody wants it --- want() ---> wanted ---- want(0) --+
 *           ^                                               |
 *           +-----------------------------------------------+
 *           |
 *           +-- it is ready --> ended: its next reader finds its end
 *
 * Only sockets whose closing we hear of can be treated so; others are registered as
 * they are asked for. */
#ifndef IDEM_AWS_CLIENT_SOCKETS_H
#define IDEM_AWS_CLIENT_SOCKETS_H

#include "base/wait.h"

#include <idem.h>

struct idem__socket {
    int fd;
    short wanted;     /* The events that are waited for; 0: nothing. */
    short registered; /* The events that the watch reports; 0: nothing. */
};

struct idem__sockets {
    int watch;
    int wake; /* An event, always registered. */
    struct idem__socket *kept;
    size_t kept_len;
    size_t kept_cap;
};

/* For about @max connections. IDEM_ENOMEM: descriptors or memory ran out;
 * close() is still to be called. */
int idem__sockets_open(struct idem__sockets *sockets, size_t max);
void idem__sockets_close(struct idem__sockets *sockets);

/* @fd was just opened, or is about to be closed. */
void idem__sockets_opened(struct idem__sockets *sockets, int fd);
void idem__sockets_closing(struct idem__sockets *sockets, int fd);

/* From now on @fd is waited for with @wanted of POLLIN and POLLOUT; 0: not any
 * more; @is_new: it was not waited for before. 0 or -1. */
int idem__sockets_want(struct idem__sockets *sockets, int fd, short wanted,
                       bool is_new);

/* The sockets that are ready now, without waiting, at most @max; a wake is
 * among them. Returns how many. Ends those that are ready and nobody wants. */
int idem__sockets_ready(struct idem__sockets *sockets, struct pollfd *ret_ready,
                        int max);

#endif
