/* Runs the ops of all callers in batches, under one leader (store/shared/leader.h). */
#ifndef IDEM_STORE_SHARED_GROUP_H
#define IDEM_STORE_SHARED_GROUP_H

#include "contract/parts.h"
#include "store/shared/leader.h"

#include <idem/queue.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* ---- How long a leader waits for company before it runs a batch ---- */

/* The mutex of the group's leader guards all members. */
struct idem__gather {
    int64_t wait_max_ns;
    /* How many ops may come together: those of the last batch, and those that were
     * pending at its end. */
    size_t expected;
    size_t wanted; /* How many ops the leader is waiting for; 0 while it is not
                         waiting. */
    int64_t batch_ns; /* The time of a batch, averaged. */
    /* Batches that run without a wait after the last wait in vain, ... */
    unsigned misses;
    unsigned skip;      /* ... and those of them that are left. */
    uint32_t wake_word; /* Changes to wake the leader. */
};

void idem__gather_init(struct idem__gather *gather);

/* Called by the leader: waits until as many ops are pending as it can expect, but only
 * for part of the time of a batch. *@pending is the number of pending ops. Releases
 * @mutex while it waits. */
void idem__gather_wait(struct idem__gather *gather, const size_t *pending,
                       pthread_mutex_t *mutex);

/* Called after an op was queued: @pending ops are pending now. */
void idem__gather_came(struct idem__gather *gather, size_t pending);

/* Called after a batch of @len ops that took @took_ns: @pending ops are pending now. */
void idem__gather_ran(struct idem__gather *gather, size_t len, size_t pending,
                      int64_t took_ns);

/* ---- The group ---- */

struct idem__group_ops {
    /* Takes the locks that a batch needs, and waits for them until CLOCK_MONOTONIC
     * reaches @deadline_ms. Returns 0; IDEM_EUNAVAILABLE at the deadline, which fails
     * only the ops whose deadline has come; or a code before the deadline, which fails
     * all ops. *@ends (atomic) is true while a queued op ends or renews an attempt: this
     * process then passes the claims of other processes. */
    int (*enter)(struct idem_store *store, int64_t deadline_ms,
                 const bool *ends, struct idem_error *ret_error);
    /* Runs the ops linked by next, sets their answers and releases the locks. The changes
     * are durable when it returns. */
    void (*run)(struct idem_store *store, struct idem_op *batch);
    /* Releases the locks without running anything. */
    void (*leave)(struct idem_store *store);
    /* Called after enter() failed: answers @op if that needs no lock. False: @op gets the
     * error of enter(). */
    bool (*refuse)(struct idem_store *store, struct idem_op *op);
    /* Takes a chore that no caller waits for; true if there is one. NULL: the store has
     * no chores. A leader takes a chore only while other threads wait for answers, and
     * does it beside the next leader, once its own batch is answered. Without other
     * threads, run() has to do it. */
    bool (*take_chore)(struct idem_store *store);
    void (*do_chore)(struct idem_store *store);
};

struct idem__group {
    struct idem_store *store;
    const struct idem__group_ops *ops;
    struct idem__leader leader;
    bool ends; /* A pending op ends or renews an attempt; atomic. */
    struct idem__gather gather; /* Guarded by the leader's mutex. */
};

/* 0 or IDEM_ENOMEM. With @threaded a thread of the store leads, with all signals
 * blocked. */
int idem__group_init(struct idem__group *group, struct idem_store *store,
                     const struct idem__group_ops *ops, bool threaded);
void idem__group_finish(struct idem__group *group);

/* submit_all() of struct idem_store_ops. The @ops, at least one, are of one queue.
 * cancel() and drive() are the leader's. */
size_t idem__group_submit(struct idem__group *group, struct idem_op **ops,
                          size_t n);

#endif
