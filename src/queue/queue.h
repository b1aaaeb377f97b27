/* Shared by the files of this room: queues, in which answered ops wait for their
 * caller; the liveness and the waiters of a store. */
#ifndef IDEM_QUEUE_QUEUE_H
#define IDEM_QUEUE_QUEUE_H

#include "contract/parts.h"

#include <idem/queue.h>
#include <pthread.h>

struct idem_queue {
    struct idem_store *store;       /* Must not be used once the store is
                                       closed. */
    struct idem_liveness *liveness; /* Of the store. */
    pthread_mutex_t mutex;    /* Innermost lock: a store takes it while it holds
                                 its own, so never call the store under it. */
    struct idem_op *answered; /* Oldest first. */
    struct idem_op *answered_last;
    struct idem_op *members; /* Submitted and not reaped yet. */
    size_t submitted;
    size_t sleepers;
    uint32_t wake_word; /* A change of it wakes the sleepers. */
    bool poked;
    int fd;     /* Event; -1 until the caller asks for it. */
    int both;   /* Watches fd and the store's own; -1: none. */
    bool armed; /* The event is readable. */
    bool held;  /* Leave the event alone until a reap finds no answer. */
};

/* Set up and tear down a queue in the caller's memory, for one blocking call. */
int idem__queue_init(struct idem_queue *queue, struct idem_store *store);
void idem__queue_finish(struct idem_queue *queue);

/* Adds @ops to the members of the queue, the ops that were submitted and not reaped;
 * and removes @op from them. */
void idem__queue_enter(struct idem_queue *queue, struct idem_op **ops,
                       size_t n);
void idem__queue_leave(struct idem_queue *queue, struct idem_op *op);

/* Adds the answered ops from @first to @last, linked by next. */
void idem__queue_push(struct idem_queue *queue, struct idem_op *first,
                      struct idem_op *last);

/* Takes @op back from the store or detaches it; afterwards @op is not in the queue. */
enum idem_cancel idem__queue_cancel(struct idem_queue *queue,
                                    struct idem_op *op);

/* Cancels @op and frees it, now or when it is answered. No other thread may submit or
 * reap in @queue any more. */
void idem__queue_abandon(struct idem_queue *queue, struct idem_op *op);

/* Calls the observer of the store about @op, which was answered or given up. */
void idem__queue_observe(const struct idem_store *store,
                         const struct idem_op *op);

/* Returns 0, or IDEM_EINVALID with a sentence if another process, such as the parent of
 * this one, opened @store. */
int idem__store_check(const struct idem_store *store, struct idem_error *error);

/* ---- Liveness: store.c ---- */

/* Tells the queues of a store whether it is still open: they may outlive it by
 * mistake. */

/* Creates the liveness of an open store, which holds it. NULL: out of memory. */
struct idem_liveness *idem__liveness_create(void);

/* Marks the store as closed, so that no queue uses its pointer to it any more, and
 * drops the store's hold. NULL is allowed. */
void idem__liveness_end(struct idem_liveness *liveness);

/* Add and drop a hold: each queue has one, except a queue on the stack of a call. */
struct idem_liveness *idem__liveness_hold(struct idem_liveness *liveness);
void idem__liveness_drop(struct idem_liveness *liveness);

bool idem__liveness_is_closed(const struct idem_liveness *liveness);

/* Returns 0 if the store is open and this process opened it; else IDEM_EINVALID, with a
 * sentence. */
int idem__liveness_check(const struct idem_liveness *liveness,
                         struct idem_error *error);

/* ---- Callers of this process that wait for a record to change: waiters.c ---- */

/* NULL: out of memory. */
struct idem_waiters *idem__waiters_create(void);
void idem__waiters_destroy(struct idem_waiters *waiters);

/* To wait without missing a change: take a mark, read the record, then sleep with that
 * mark. The sleep ends when idem__store_changed() was called for @id after the mark, or
 * after @ms. */
uint64_t idem__waiters_mark(struct idem_waiters *waiters, const uint8_t *id);
void idem__waiters_sleep(struct idem_waiters *waiters, const uint8_t *id,
                         uint64_t mark, int64_t ms);

#endif
