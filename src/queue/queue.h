/* The inside of queues, where answered ops wait for their caller; liveness and waiters of
 * a store. */
#ifndef IDEM_QUEUE_QUEUE_H
#define IDEM_QUEUE_QUEUE_H

#include "contract/parts.h"

#include <idem/queue.h>
#include <pthread.h>

struct idem_queue {
    struct idem_store *store;       /* Must not be used once the store is
                                       closed. */
    struct idem_liveness *liveness; /* Of the store. */
    pthread_mutex_t mutex;    /* Innermost lock: taken while a store holds its
                                 own; never call the store under it. */
    struct idem_op *answered; /* Oldest first. */
    struct idem_op *answered_last;
    struct idem_op *members; /* Submitted and not reaped. */
    size_t submitted;
    size_t sleepers;
    uint32_t wake_word; /* Rings for the sleepers whenever it changes. */
    bool poked;
    int fd;     /* Event; -1 until somebody asks for it. */
    int both;   /* Watch of that and of the store's; -1: it has none. */
    bool armed; /* The event is readable. */
    bool held;  /* It stays as it is until all answers are reaped. */
};

/* A queue in the caller's memory: for one blocking call. */
int idem__queue_init(struct idem_queue *queue, struct idem_store *store);
void idem__queue_finish(struct idem_queue *queue);

/* Adds @ops to those that were submitted and not reaped; and removes @op from them. */
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

/* IDEM_EINVALID, with a sentence, if the process is not the one that opened
 * @store. */
int idem__store_check(const struct idem_store *store, struct idem_error *error);

/* ---- Liveness: store.c ---- */

/* Whether a store is open, for its queues, which may outlive it by mistake. */

/* Of an open store; its store holds it. NULL when memory ran out. */
struct idem_liveness *idem__liveness_create(void);

/* Marks the store as closed, so that nobody uses a pointer to it any more, and releases
 * the mark. NULL is allowed. */
void idem__liveness_end(struct idem_liveness *liveness);

/* Each queue that is not on the stack of a call holds it, too. */
struct idem_liveness *idem__liveness_hold(struct idem_liveness *liveness);
void idem__liveness_drop(struct idem_liveness *liveness);

bool idem__liveness_is_closed(const struct idem_liveness *liveness);

/* 0 if the store is open, and this process opened it; else IDEM_EINVALID, with a
 * sentence. */
int idem__liveness_check(const struct idem_liveness *liveness,
                         struct idem_error *error);

/* ---- Callers of this process that wait for a record to change: waiters.c ---- */

/* NULL when memory ran out. */
struct idem_waiters *idem__waiters_create(void);
void idem__waiters_destroy(struct idem_waiters *waiters);

/* A mark: take it, read the record, then sleep until idem__store_changed() is called
 * for @id after the mark, or @ms have passed. */
uint64_t idem__waiters_mark(struct idem_waiters *waiters, const uint8_t *id);
void idem__waiters_sleep(struct idem_waiters *waiters, const uint8_t *id,
                         uint64_t mark, int64_t ms);

#endif
