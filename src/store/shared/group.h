/* A leader (store/shared/leader.h) runs what all callers have queued as batches. */
#ifndef IDEM_STORE_SHARED_GROUP_H
#define IDEM_STORE_SHARED_GROUP_H

#include "contract/parts.h"
#include "store/shared/leader.h"

#include <idem/queue.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* ---- How long a leader waits for company before it runs a batch ---- */

/* All of it under the group's mutex. */
struct idem__gather {
    int64_t wait_max_ns;
    size_t expected; /* Ops that may come together: those of the last batch, and
                         those that were pending at its end. */
    size_t wanted; /* How many ops the leader is waiting for; 0 while it is not
                         waiting. */
    int64_t batch_ns;   /* The time of a batch, about. */
    unsigned misses;    /* After a wait in vain, this many batches run without
                           waiting; */
    unsigned skip;      /* of which these are left. */
    uint32_t wake_word; /* Changes to wake the leader. */
};

void idem__gather_init(struct idem__gather *gather);

/* For the leader: waits until as many ops are pending as it can expect, but only for
 * part of the time that a batch takes. *@pending is how many there are; releases @mutex
 * meanwhile. */
void idem__gather_wait(struct idem__gather *gather, const size_t *pending,
                       pthread_mutex_t *mutex);

/* Another op came; so many are @pending now. */
void idem__gather_came(struct idem__gather *gather, size_t pending);

/* A batch of @len ops took @took_ns; so many more are @pending. */
void idem__gather_ran(struct idem__gather *gather, size_t len, size_t pending,
                      int64_t took_ns);

/* ---- The group ---- */

struct idem__group_ops {
    /* Takes the locks that a batch needs, and waits until CLOCK_MONOTONIC has reached
     * @deadline_ms at most. Returns 0; IDEM_EUNAVAILABLE at the deadline, for the ops
     * whose deadline it is; or, for all ops, IDEM_EUNAVAILABLE earlier, or another
     * code. *@ends is true (atomic) while a queued op ends or renews something: it goes
     * before the claims of other processes. */
    int (*enter)(struct idem_store *store, int64_t deadline_ms,
                 const bool *ends, struct idem_error *ret_error);
    /* Runs the ops linked by next, sets their answers, leaves. Durable changes
     * are durable when it returns. */
    void (*run)(struct idem_store *store, struct idem_op *batch);
    /* Leaves without having run anything. */
    void (*leave)(struct idem_store *store);
    /* The store could not be entered: answers @op if that is possible without. False:
     * @op gets the error of enter(). */
    bool (*refuse)(struct idem_store *store, struct idem_op *op);
    /* Takes a chore that nobody waits for, true if there is one; NULL: there is never
     * one. A leader takes it while other threads wait for an answer, and does it beside
     * the next leader once its batch is answered. A store without callers in other
     * threads must do it in run(). */
    bool (*take_chore)(struct idem_store *store);
    void (*do_chore)(struct idem_store *store);
};

struct idem__group {
    struct idem_store *store;
    const struct idem__group_ops *ops;
    struct idem__leader leader;
    bool ends; /* Something pending ends or renews an attempt; atomic. */
    struct idem__gather gather; /* Under the leader's mutex. */
};

/* 0 or IDEM_ENOMEM. With @threaded one thread, all signals blocked, leads. */
int idem__group_init(struct idem__group *group, struct idem_store *store,
                     const struct idem__group_ops *ops, bool threaded);
void idem__group_finish(struct idem__group *group);

/* submit_all of struct idem_store_ops. The @ops, one or more, are of one queue.
 * cancel and drive are the leader's. */
size_t idem__group_submit(struct idem__group *group, struct idem_op **ops,
                          size_t n);

#endif
