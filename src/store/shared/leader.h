/* Lets one caller work for all callers of a store.
 *
 * A caller that drives the store and finds no leader becomes the leader: it works for all
 * callers, and then hands leadership on. The others sleep until their ops are answered,
 * or until it is their turn to lead. If the store has a thread (IDEM_OPEN_THREAD), only
 * that thread leads.
 *
 * The store does the work itself, which is of one of two kinds:
 *
 *                        batches                        requests
 *     led                while ops are pending          always: connections need
 *                                                       care even without ops
 *     a caller leads     until its op is answered, even until its op is answered, or
 *                        after its deadline, and no     until its deadline
 *                        claim has to be released
 *     the thread ends    when no op is pending          at once
 */
#ifndef IDEM_STORE_SHARED_LEADER_H
#define IDEM_STORE_SHARED_LEADER_H

#include "contract/parts.h"

#include <pthread.h>

/* True for an end, a renewal or an expiry, which must not wait because the owner's lease
 * runs. Such an op is never refused for lack of room. Their number is bounded all the
 * same: the caller has allocated the op, the store only links it into a list, and a begin
 * that found room started its attempt. */
static inline bool idem__op_is_of_owner(const struct idem_op *op)
{
    return op->verb == IDEM_OP_END || op->verb == IDEM_OP_RENEW ||
           op->verb == IDEM_OP_EXPIRE;
}

/* The queue in which a caller waits for @op. NULL: the caller has cancelled @op, and the
 * queue may be gone. Call it before @op is answered, with the mutex held under which
 * cancel() detaches ops. */
static inline struct idem_queue *idem__op_awaited_in(const struct idem_op *op)
{
    return __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_DETACHED
               ? NULL
               : op->queue;
}

struct idem__leader_ops {
    bool batches; /* False: requests. */

    /* Works for all callers; led is false when it returns. @queue is the queue of the
     * caller that leads (NULL: there is none). Called with the mutex held, which it
     * releases while it works. True: it ended because CLOCK_MONOTONIC has reached
     * @deadline_ms. */
    bool (*lead)(void *ctx, struct idem_queue *queue, int64_t deadline_ms);

    /* For requests only, with the mutex held: calls idem__leader_call() with the queue of
     * each running op that a caller waits for, until one call returns true. True if one
     * did. */
    bool (*call_running)(void *ctx, struct idem_queue **first);
    /* For requests only: ends the wait in lead(). */
    void (*wake)(void *ctx);
};

struct idem__leader {
    const struct idem__leader_ops *ops;
    void *ctx;

    pthread_mutex_t mutex; /* Guards all members below. */
    struct idem_pending pending;
    /* For requests only: ops taken off pending and not yet answered. */
    size_t running_len;
    bool led;
    /* For requests only: the leader waits, and notices a new pending op only if it is
     * woken. While it works, it checks for pending ops before it waits. */
    bool asleep;
    bool stopping;
    /* Wakes the thread: an op is pending, or it has to stop. */
    pthread_cond_t wake;
    pthread_t thread;
    /* Written only before the first caller comes and after the last. */
    bool threaded;
};

void idem__leader_init(struct idem__leader *leader,
                       const struct idem__leader_ops *ops, void *ctx);

/* Starts a thread that leads from now on, with all signals blocked. 0 or IDEM_ENOMEM. */
int idem__leader_start(struct idem__leader *leader);

/* Ends the thread, if there is one. Afterwards a caller may lead. */
void idem__leader_stop(struct idem__leader *leader);

/* Drops the ops that are still pending, after idem__leader_stop(). */
void idem__leader_finish(struct idem__leader *leader);

/* cancel() and drive() of struct idem_store_ops. */
enum idem_cancel idem__leader_cancel(struct idem__leader *leader,
                                     struct idem_op *op);
void idem__leader_drive(struct idem__leader *leader, struct idem_queue *queue,
                        int64_t deadline_ms);

/* Called without the mutex, after ops of @queue became pending: wakes the thread that
 * will run them. @led tells whether there was a leader under the mutex: a leader of
 * requests is woken itself. */
void idem__leader_tell(struct idem__leader *leader, struct idem_queue *queue,
                       bool led);

/* With the mutex held: true while an op is pending or, of requests, running. */
bool idem__leader_has_work(const struct idem__leader *leader);

/* With the mutex held, and led false: wakes a caller that sleeps, so that it leads. If
 * none sleeps, the descriptor of the first op's queue becomes readable. */
void idem__leader_call_next(struct idem__leader *leader);

/* Wakes the caller that sleeps in @queue; true if there is one. Sets *@first to the first
 * queue that it was called with. */
bool idem__leader_call(struct idem_queue *queue, struct idem_queue **first);

#endif
