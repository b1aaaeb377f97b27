/* One leader for all callers of a store.
 *
 * A caller that drives and finds no leader becomes it, works for all callers, and
 * hands leadership on; the others sleep until their ops are answered, or until it
 * is their turn to lead. Or a thread leads, and nobody else.
 *
 * The work itself is the store's, and of one of two kinds:
 *
 *                        batches                        requests
 *     led                while ops are pending          always: connections need
 *                                                       care without ops, too
 *     a caller leads     until its op is answered,      until then, or until its
 *                        however late that is, and      deadline
 *                        no claim is to be given back
 *     the thread ends    when nothing is pending        at once
 */
#ifndef IDEM_STORE_SHARED_LEADER_H
#define IDEM_STORE_SHARED_LEADER_H

#include "contract/parts.h"

#include <pthread.h>

/* True for an end, a renewal or an expiry: its owner must not be kept waiting, because
 * the lease runs. Such an op is never refused for want of room, and is bounded all the
 * same: the caller has allocated it, a store only links it into a list, and its attempt
 * was started by a begin that found room. */
static inline bool idem__op_is_of_owner(const struct idem_op *op)
{
    return op->verb == IDEM_OP_END || op->verb == IDEM_OP_RENEW ||
           op->verb == IDEM_OP_EXPIRE;
}

/* The queue in which a caller waits for @op. NULL: nobody does, and the queue may be
 * gone. Call it before @op is answered, with the mutex held under which cancel detaches
 * it. */
static inline struct idem_queue *idem__op_awaited_in(const struct idem_op *op)
{
    return __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_DETACHED
               ? NULL
               : op->queue;
}

struct idem__leader_ops {
    bool batches; /* False: requests. */

    /* Works for all; led is false when it returns. @queue (NULL: none) is that of the
     * caller. Called and returns with the mutex held; releases it meanwhile. True: it
     * ended because CLOCK_MONOTONIC has reached @deadline_ms. */
    bool (*lead)(void *ctx, struct idem_queue *queue, int64_t deadline_ms);

    /* Of requests. With the mutex held: idem__leader_call() for the queue of each op
     * that is running and awaited, until it returns true, which is returned. */
    bool (*call_running)(void *ctx, struct idem_queue **first);
    /* Of requests. Ends the waiting in lead(). */
    void (*wake)(void *ctx);
};

struct idem__leader {
    const struct idem__leader_ops *ops;
    void *ctx;

    pthread_mutex_t mutex; /* Guards all members below. */
    struct idem_pending pending;
    size_t
        running_len; /* Of requests: ops that have left pending, unanswered. */
    bool led;
    bool asleep; /* Of requests: the leader waits, and does not check for
                    pending ops before it is woken. While it works, it checks
                    before it waits. */
    bool stopping;
    pthread_cond_t wake; /* Of the thread: something is pending. */
    pthread_t thread;
    bool threaded; /* Written before any caller comes, and after the last. */
};

void idem__leader_init(struct idem__leader *leader,
                       const struct idem__leader_ops *ops, void *ctx);

/* Has a thread, all signals blocked, lead from now on. 0 or IDEM_ENOMEM. */
int idem__leader_start(struct idem__leader *leader);

/* Ends the thread, if there is one; the caller may lead then. */
void idem__leader_stop(struct idem__leader *leader);

/* Drops what is still pending, after idem__leader_stop(). */
void idem__leader_finish(struct idem__leader *leader);

/* cancel and drive of struct idem_store_ops. */
enum idem_cancel idem__leader_cancel(struct idem__leader *leader,
                                     struct idem_op *op);
void idem__leader_drive(struct idem__leader *leader, struct idem_queue *queue,
                        int64_t deadline_ms);

/* Without the mutex, after ops of @queue became pending. @led was read with it: a thread
 * leads, and is woken. */
void idem__leader_tell(struct idem__leader *leader, struct idem_queue *queue,
                       bool led);

/* With the mutex held: true while an op is not answered, or is being answered. */
bool idem__leader_has_work(const struct idem__leader *leader);

/* With the mutex held, and led false: wakes a caller that can lead; the descriptor
 * of the first op's queue becomes readable if nobody sleeps. */
void idem__leader_call_next(struct idem__leader *leader);

/* Pokes @queue if a caller sleeps there: true. Else remembers the *@first one. */
bool idem__leader_call(struct idem_queue *queue, struct idem_queue **first);

#endif
