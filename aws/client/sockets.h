/* The sockets of connections, and those that libcurl waits for while it makes one,
 * in one epoll descriptor. */
#ifndef IDEM_AWS_CLIENT_SOCKETS_H
#define IDEM_AWS_CLIENT_SOCKETS_H

#include <idem.h>

#include <sys/epoll.h>

/* A kept-alive connection is waited for again and again. It stays registered in
 * between: taking it out and putting it back would be two system calls for each
 * request. Only sockets whose closing we hear of can be treated so; others are
 * registered as they are asked for. */
struct idem__socket {
    int fd;
    uint32_t wanted;     /* The events that are waited for; 0: nothing. */
    uint32_t registered; /* The events that epoll reports; 0: nothing. */
    void *owner;         /* See idem__sockets_own(). */
};

struct idem__sockets {
    int epoll;
    int wake; /* eventfd, always registered. */
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

/* Says whose @fd is, until it is closed; NULL: nobody's. */
void idem__sockets_own(struct idem__sockets *sockets, int fd, void *owner);
void *idem__sockets_owner(struct idem__sockets *sockets, int fd);

/* From now on @fd is waited for with @wanted of EPOLLIN and EPOLLOUT; 0: not any
 * more; @is_new: it was not waited for before. 0 or -1. */
int idem__sockets_want(struct idem__sockets *sockets, int fd, uint32_t wanted,
                       bool is_new);

/* The sockets that are ready now, without waiting, at most @max; a wake is
 * among them. Returns how many. */
int idem__sockets_ready(struct idem__sockets *sockets,
                        struct epoll_event *events, int max);

#endif
