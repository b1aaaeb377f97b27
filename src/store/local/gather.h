/* How long a leader waits for company before it runs a batch. */
#ifndef IDEM_STORE_LOCAL_GATHER_H
#define IDEM_STORE_LOCAL_GATHER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* All of it under the group's mutex. */
struct idem__gather {
    int64_t wait_max_ns;
    size_t expected; /* Ops that may come together: those of the last batch, and
                         those that were pending at its end. */
    size_t wanted;   /* The time that the leader waits; 0: it does not wait. */
    int64_t batch_ns;   /* The time of a batch, about. */
    unsigned misses;    /* Grows when nobody came; so many batches ... */
    unsigned skip;      /* ... are run at once, of which these are left. */
    uint32_t wake_word; /* Changes to wake the leader. */
};

void idem__gather_init(struct idem__gather *gather);

/* The leader: waits until as many ops are pending as it can expect, but only for
 * part of the time that a batch takes. *@pending is how many there are; the
 * @mutex is let go meanwhile. */
void idem__gather_wait(struct idem__gather *gather, const size_t *pending,
                       pthread_mutex_t *mutex);

/* Another op came; so many are @pending now. */
void idem__gather_came(struct idem__gather *gather, size_t pending);

/* A batch of @len ops took @took_ns; so many more are @pending. */
void idem__gather_ran(struct idem__gather *gather, size_t len, size_t pending,
                      int64_t took_ns);

#endif
