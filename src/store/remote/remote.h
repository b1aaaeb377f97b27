/* Runs a store that is reached by requests: keeps its ops pending, sending or paused,
 * with one leader that works for all callers.
 *
 * An op that has started is a flight. The store decides which request a flight sends and
 * what the answer means: it sets flight->next, and this room sends, pauses or answers.
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
#include <idem/setting.h>

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
    size_t sending_max;  /* Most flights whose requests it has at once. */

    /* Sets up the store's own struct, which is zero but for the head, the base by
     * idem__store_init(), and cache_ms. If it fails, finish() frees the half-built
     * store. */
    int (*set_up)(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *ret_error);
    /* Frees everything outside the head. */
    void (*finish)(struct idem__remote *remote);

    /* Creates a flight, which runs one op after another. NULL: memory ran out. */
    struct idem__flight *(*create)(struct idem__remote *remote);
    /* Clears a flight whose op has ended. False: the flight is not worth keeping. */
    bool (*reset)(struct idem__flight *flight);
    void (*destroy)(struct idem__flight *flight);

    /* The time that a decision may use now. 0 or IDEM_EUNAVAILABLE. */
    int (*now)(struct idem__remote *remote, struct idem_now *ret_now);

    /* Sends the flight's request. reap() returns the flight when the request is done, at
     * @deadline_ms of CLOCK_MONOTONIC at the latest. */
    void (*send)(struct idem__flight *flight, int64_t deadline_ms);
    /* Aborts the flight's request; reap() returns the flight next. */
    void (*abort)(struct idem__flight *flight);
    /* Sends and receives without waiting. */
    void (*work)(struct idem__remote *remote);
    /* The next flight whose request is done, with heard and timed_out set; or NULL. */
    struct idem__flight *(*reap)(struct idem__remote *remote);
    /* Sends what send() was given since the last call, if possible. NULL: work() is soon
     * enough. */
    void (*push)(struct idem__remote *remote);
    /* The number of new ops that end wait(). SIZE_MAX: none, because nothing can be sent
     * before an answer comes. NULL: always one. */
    size_t (*wanted)(struct idem__remote *remote);

    /* Waits until there is work, wake() was called by any thread, or
     * CLOCK_MONOTONIC has reached @deadline_ms. */
    void (*wait)(struct idem__remote *remote, int64_t deadline_ms);
    void (*wake)(struct idem__remote *remote);
    /* A descriptor that becomes readable when there is work, and the time at which there
     * is work in any case (IDEM_NEVER: none). */
    int (*fd)(struct idem__remote *remote);
    int64_t (*due_ms)(struct idem__remote *remote);

    /* True if a read-only handle may run @op. */
    bool (*reads)(const struct idem_op *op);
};

/* The part that all remote stores share; a store's own struct begins with it. */
struct idem__remote {
    struct idem_store base;
    const struct idem__remote_ops *ops;
    const char *endpoint; /* For messages; the store keeps it. */

    /* Its mutex also guards running, tally and wanted. */
    struct idem__leader leader;
    /* All flights that have started, doubly linked. */
    struct idem__flight *running;
    struct idem__tally tally;
    size_t wanted; /* How many more new ops wake a leader that sleeps. */

    /* Only the leader uses these. */
    size_t sending_len;
    struct idem__flight_turns turns; /* Flights whose pause is over. */
    bool due_next;                   /* A due flight got the last place. */
    int64_t due_ms;                  /* When the first pause ends. */
    struct idem__flight *spare;      /* Flights for reuse, linked by link. */
    struct idem__breaker breaker;

    struct idem__replays *replays; /* NULL: the store keeps no records. */
    uint64_t generation;           /* Of the records in replays. */
    int64_t cache_ms; /* How old these may be; set_up() sets it. 0: none. */

    /* Watches the store's fd and timer; -1: no caller asked for it. */
    int watch;
    int timer; /* Expires when there is work in any case. */
};

/* The error that the clock of a host is assumed to have until the service's first answer:
 * hosts are expected to synchronise their clocks. */
enum {
    IDEM__REMOTE_GUESS_ERR_MS = 2000,
};

/* The value of "cache=" in the URL of any remote store. */
#define IDEM__REMOTE_CACHE                                                     \
    IDEM_SETTING(IDEM_SETTING_TIME, .min = 1, .max = 3600 * 1000)

/* Implements now() of struct idem__remote_ops: the service's time by @clock, which learns
 * it from the answers. Before the first answer it is the host's wall clock, which may be
 * @unheard_err_ms off; if that is 0, the time is still unknown. @clock is NULL if the
 * store's clock is the host's. */
int idem__remote_now(const struct idem_host *host,
                     const struct idem__learned_clock *clock,
                     int64_t unheard_err_ms, struct idem_now *ret_now);

/* Opens a store of @ops. With IDEM_OPEN_THREAD a thread works for all callers, with all
 * signals blocked. Returns the errors of set_up(), or IDEM_ENOMEM. */
int idem__remote_open(const struct idem__remote_ops *ops, const char *place,
                      const struct idem_open_options *options,
                      struct idem_store **ret_store,
                      struct idem_error *ret_error);

/* The functions of struct idem_store_ops. close() first gives the releases that no caller
 * waits for a second to end, and then frees everything. */
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
