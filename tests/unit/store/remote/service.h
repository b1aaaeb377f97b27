/* A store on a service that is a few lines, for tests of the room without one that it
 * knows. */
#ifndef TEST_REMOTE_SERVICE_H
#define TEST_REMOTE_SERVICE_H

#include "store/remote/remote.h"

enum {
    SERVICE_PLACES = 64, /* That send at once. */
};

struct service {
    struct idem__remote remote;
    struct flight *sent; /* Newest first. */
    size_t sent_len;
    size_t sent_most;
    size_t made;       /* Flights. */
    unsigned requests; /* That it was sent. */
    int64_t pause_ms;
    bool silent;   /* It answers nothing. */
    bool holds;    /* Nothing that it is sent from now on. */
    bool writes;   /* What it was sent changes something. */
    bool blocks;   /* It waits until it is woken, as a real one does. */
    size_t wanted; /* Ops for which it is woken while it waits. */
    int waiting;
    int wakes;
    int fd;
    /* Of a store that runs the ops; NULL: a flight asks until the service has said
     * "done". */
    struct idem_queue *records;
};

struct flight {
    struct idem__flight base;
    struct service *service;
    struct flight *next_sent;
    int64_t deadline_ms;
    bool aborted;
    bool held;      /* It is not answered yet. */
    unsigned asked; /* Requests for this op. */
};

/* @cache: milliseconds for which records are kept in memory, as a number; or NULL. */
struct service *open_service(const char *cache,
                             const struct idem_open_options *options);

#endif
