/* A store that is reached by requests: ops that are pending, in flight or paused, and
 * the leader that works for all of them.
 *
 * An op is on its way as a flight. The store knows what a flight asks of the service
 * and what an answer means: it sets flight->next, and this room does it.
 *
 *     pending ----> sending <----> paused ----> due
 *       op, queued     |  ^                      |
 *                      |  +----------------------+
 *                      v
 *                   answered
 */
#ifndef IDEM_STORE_REMOTE_REMOTE_H
#define IDEM_STORE_REMOTE_REMOTE_H

#include "base/learned_clock.h"
#include "contract/parts.h"
#include "store/remote/breaker.h"
#include "store/remote/machine.h"
#include "store/shared/leader.h"
#include "store/shared/tally.h"

#include <idem/queue.h>

struct idem__remote;

struct idem__flight_turns {
    struct idem__flight_turn *first;
    struct idem__flight_turn *last;
};

/* The store's functions. One thread at a time calls them, except wake(). Only wait()
 * blocks. */
struct idem__remote_ops {
    const char *service; /* "DynamoDB", for sentences. */
    size_t size;         /* Of the store's own struct. */
    size_t sending_max;  /* Flights whose requests it has at once. */

    /* Sets up a zeroed store whose head is set up except for its base: calls
     * idem__store_init(). If it fails, finish() frees the half-built store. */
    int (*set_up)(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *ret_error);
    /* Frees everything outside the head. */
    void (*finish)(struct idem__remote *remote);

    /* A flight that may be started again and again; NULL: no memory. */
    struct idem__flight *(*create)(struct idem__remote *remote);
    /* Called when the op has been given back. False: the flight is not worth
     * keeping. */
    bool (*reset)(struct idem__flight *flight);
    void (*destroy)(struct idem__flight *flight);

    /* The time that a decision may use now. 0 or IDEM_EUNAVAILABLE. */
    int (*now)(struct idem__remote *remote, struct idem_now *ret_now);

    /* Sends the request; reap() returns it when it is done, at @deadline_ms of
     * CLOCK_MONOTONIC at the latest. */
    void (*send)(struct idem__flight *flight, int64_t deadline_ms);
    /* Ends the request at once; reap() returns it next. */
    void (*abort)(struct idem__flight *flight);
    /* Sends and receives without waiting. */
    void (*work)(struct idem__remote *remote);
    /* The next whose request is done, with heard and timed_out set; or NULL. */
    struct idem__flight *(*reap)(struct idem__remote *remote);
    /* Sends the requests of send() since, if possible. NULL: work() is soon enough. */
    void (*push)(struct idem__remote *remote);
    /* How many new ops end wait(); SIZE_MAX: none, because nothing can be sent before
     * an answer comes. NULL: always one. */
    size_t (*wanted)(struct idem__remote *remote);

    /* Waits until there is work, wake() was called by any thread, or
     * CLOCK_MONOTONIC has reached @deadline_ms. */
    void (*wait)(struct idem__remote *remote, int64_t deadline_ms);
    void (*wake)(struct idem__remote *remote);
    /* A descriptor that is readable when there is work; and the time at which there is
     * work in any case, or IDEM_NEVER. */
    int (*fd)(struct idem__remote *remote);
    int64_t (*due_ms)(struct idem__remote *remote);

    /* True for an op that a handle for reading may run. */
    bool (*reads)(const struct idem_op *op);
};

/* The head of the store: its own struct begins with it. */
struct idem__remote {
    struct idem_store base;
    const struct idem__remote_ops *ops;
    const char *endpoint; /* For sentences; the store's to keep. */

    struct idem__leader leader;   /* Its mutex is that of the next three. */
    struct idem__flight *running; /* Linked both ways. */
    struct idem__tally tally;
    size_t wanted; /* New ops for which a leader that sleeps is woken. */

    size_t sending_len;              /* The leader's: in the store's hands. */
    struct idem__flight_turns turns; /* The leader's: paused, and due. */
    bool due_next;                /* The leader's: they got the last place. */
    int64_t due_ms;               /* The leader's: of the first that pauses. */
    struct idem__flight *spare;   /* The leader's; linked by link. */
    struct idem__breaker breaker; /* The leader's. */

    int watch; /* Of the store's fd and of timer; -1: nobody asked. */
    int timer; /* When there is something to do in any case. */
};

/* The error that a host's clock may have before the service's first answer: hosts are
 * expected to synchronize it. */
enum {
    IDEM__REMOTE_GUESS_ERR_MS = 2000,
};

/* now() of struct idem__remote_ops: the service's time by @clock, which learned it from
 * the answers. Until the first, the host's wall clock is used, and may be
 * @unheard_err_ms off; 0: it is not used. @clock is NULL where the host's clock is the
 * store's. */
int idem__remote_now(const struct idem_host *host,
                     const struct idem__learned_clock *clock,
                     int64_t unheard_err_ms, struct idem_now *ret_now);

/* Opens a store of @ops. Under IDEM_OPEN_THREAD a thread, all signals blocked, works for
 * all callers. The errors of set_up(), and IDEM_ENOMEM. */
int idem__remote_open(const struct idem__remote_ops *ops, const char *place,
                      const struct idem_open_options *options,
                      struct idem_store **ret_store,
                      struct idem_error *ret_error);

/* The functions of struct idem_store_ops. close() frees everything, after a moment in
 * which ops that nobody waits for may end. */
int idem__remote_submit(struct idem_store *base, struct idem_op *op);
enum idem_cancel idem__remote_cancel(struct idem_store *base,
                                     struct idem_op *op);
void idem__remote_drive(struct idem_store *base, struct idem_queue *queue,
                        int64_t deadline_ms);
void idem__remote_close(struct idem_store *base);
int idem__remote_fd(struct idem_store *base);

#define IDEM__REMOTE_STORE_OPS(title)                                          \
    {                                                                          \
        .name = (title), .submit = idem__remote_submit,                        \
        .cancel = idem__remote_cancel, .drive = idem__remote_drive,            \
        .close = idem__remote_close, .fd = idem__remote_fd                     \
    }

#endif
