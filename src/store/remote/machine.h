/* Decides for one op which request to the service comes next, and what each answer means.
 * Pure but for memory: it does no I/O and reads no clock, so that the simulator runs it.
 * docs/rooms.md draws the states.
 *
 *     state    request         what decides on the next state
 *     -------  --------------  -----------------------------------------------------
 *     start                    DONE: a completed record in memory is replayed; DECIDE: a
 *                              claim, an import, an owner whose claim is remembered; LOOK:
 *                              a claim that waits, is probably refused, or brings a large
 *                              input; any other op
 *     LOOK     the record      DECIDE: it was read, or there is none
 *     DECIDE                   LOOK: a remembered claim cannot answer the op; LOAD: the
 *                              caller gets a body; ACT: otherwise
 *     LOAD     its bodies      LOOK: they have changed since; ACT: they match the record
 *                              (PostgreSQL decides again first)
 *     ACT                      DONE: there is nothing to write; EXTEND: the record is a
 *                              claim of this op with too short a lease; WRITE, once the
 *                              service has stored what goes before it
 *     EXTEND                   WRITE: the claim with a longer lease
 *     WRITE    a write, if     DECIDE: refused, and the answer shows the record; LOOK:
 *              the record is   refused without showing it, or not answered; EXTEND:
 *              as found        applied, with too short a lease; settle: applied
 *     settle                   what the service tidies up; then DONE
 *
 * A write is decided on the record that was found, or on its absence, and is conditional
 * on exactly that. A refused write shows the record that is there now, and the op decides
 * again. Whether an unanswered write was applied is read, never guessed: the record then
 * has the nonce and the content of this op, or it does not.
 *
 * Any request may be throttled or get no useful answer: its state then goes through PAUSE
 * back to itself. Any state may fail, run out of time or get no time from the clock: it
 * goes to DONE, with an error that tells whether a write may have been applied
 * (flight->ambiguous).
 *
 * machine.c has DECIDE, ACT and EXTEND, and what follows from the answer to WRITE. The
 * service has the rest: the requests of LOOK, LOAD and WRITE, and states of its own for
 * lists, purges, limits and the mark of a store that is moved. */
#ifndef IDEM_STORE_REMOTE_MACHINE_H
#define IDEM_STORE_REMOTE_MACHINE_H

#include "base/bytes.h"
#include "contract/store.h"
#include "store/remote/claims.h"

enum idem__flight_next {
    IDEM__FLIGHT_SEND = 1,
    IDEM__FLIGHT_PAUSE, /* For pause_ms. */
    IDEM__FLIGHT_DONE,  /* The op's answer is set. */
};

/* One of the states below, or one of a service's own from IDEM__STATE_OWN on. */
typedef int idem__state;

enum {
    /* No next state: the caller goes on. */
    IDEM__STATE_NONE = 0,

    /* These end a step: its request is ready; or the op pauses, and then enters
     * flight->after_pause; or the op is answered. */
    IDEM__STATE_SEND = IDEM__FLIGHT_SEND,
    IDEM__STATE_PAUSE = IDEM__FLIGHT_PAUSE,
    IDEM__STATE_DONE = IDEM__FLIGHT_DONE,

    IDEM__STATE_LOOK,   /* Reads the record. */
    IDEM__STATE_DECIDE, /* Decides the answer and the write. */
    IDEM__STATE_LOAD,   /* Reads the bodies for the answer. */
    IDEM__STATE_ACT,    /* Sets the answer, and goes on to the write. */
    IDEM__STATE_EXTEND, /* Extends a claim to what its owner counts on. */
    IDEM__STATE_WRITE,  /* Writes the record, if it is still as found. */

    /* The first states of ops that are not about one record. */
    IDEM__STATE_LIST,
    IDEM__STATE_PURGE,
    IDEM__STATE_LIMIT,
    IDEM__STATE_MOVE,

    IDEM__STATE_OWN, /* The first of a service's own. */
};

/* The meaning of an answer, or of the lack of one. */
enum idem__said {
    IDEM__SAID_OK = 1,      /* The request was done. */
    IDEM__SAID_REFUSED,     /* Its condition did not hold: not applied. */
    IDEM__SAID_NOT_APPLIED, /* Certainly not applied; worth another try. */
    IDEM__SAID_UNKNOWN,     /* It may have been applied, now or later. */
    IDEM__SAID_NEVER, /* Not applied; another try would end the same way. */
    /* Not applied: our condition in a transaction held, but the condition of one of the
     * caller's writes did not. */
    IDEM__SAID_CALLER_WRITE,
};

struct idem__flight;
struct idem__replays;

/* The parts that the flights of a store share. */
struct idem__flight_env {
    struct idem__claims *claims; /* NULL: none are remembered. */
    struct idem_host host;       /* random is used, for jitter. */
    uint8_t *scratch; /* IDEM_HEAD_MAX bytes, for one flight at a time. */
};

/* Sets up a zeroed @env, with a cache of claims if @remembers. 0 or IDEM_ENOMEM. A
 * half-built @env can be finished. */
int idem__flight_env_init(struct idem__flight_env *env,
                          const struct idem_host *host, bool remembers);
void idem__flight_env_finish(struct idem__flight_env *env);

/* A step returns the next state. */
typedef idem__state idem__flight_fn(struct idem__flight *flight);

/* The functions of a service. */
struct idem__machine_ops {
    const char *service; /* "DynamoDB", for sentences. */
    /* Most decisions of one op. Each but the first means that another writer changed the
     * record between our read and our write. */
    unsigned rounds_max;
    unsigned pause_base_ms; /* Base of the pauses before another try. */

    /* Starts the new flight->op. Returns its first state, from idem__flight_first() or of
     * the service. */
    idem__flight_fn *start;
    /* Enters flight->state, one of the service's states: prepares its request and returns
     * SEND, or does its work and returns the next state. */
    idem__flight_fn *enter;
    /* Reads the answer to the request of flight->state. For WRITE it calls
     * idem__flight_written(). */
    idem__flight_fn *answered;

    /* Sets flight->decision about the record @there (NULL: none) by idem__verb_decide().
     * Returns NONE or the next state. */
    idem__state (*decide)(struct idem__flight *flight,
                          const struct idem_record *there);
    /* Called once the decision stands, and *flight->next_record and flight->head have
     * what it writes: prepares what goes with it. Returns NONE or the next state. */
    idem__flight_fn *prepare;
    /* Returns the state that stores what a reader of the record has to find, such as its
     * bodies, before the record itself; ACT comes again after it. WRITE: nothing is left
     * to store. NULL: always WRITE. */
    idem__flight_fn *store;
    /* Called when the answer is set, after the op's write (@wrote) or without one.
     * Returns the next state. NULL: DONE. */
    idem__state (*settle)(struct idem__flight *flight, bool wrote);

    /* Builds a write of the record found, to which EXTEND gives another lease. */
    void (*rewrite)(struct idem__flight *flight);
    /* Makes the record just written the record found. False: the next write depends on
     * something that only a read shows. */
    bool (*found_written)(struct idem__flight *flight);

    /* Called after the claim *flight->next_record was written; calls
     * idem__flight_remember(). */
    void (*remember)(struct idem__flight *flight);
    /* Calls idem__flight_recall(). True if the op's own claim is now the record found. */
    bool (*recall)(struct idem__flight *flight);

    /* True if the last request may have changed something. */
    bool (*may_have_written)(const struct idem__flight *flight);
};

/* An entry in the line of flights that may send again; see base/list.h. */
struct idem__flight_turn {
    struct idem__flight_turn *next;
    struct idem__flight_turn *prev;
    struct idem__flight *flight; /* NULL: not in the line. */
};

/* An op that has started. The service's own struct begins with this one. */
struct idem__flight {
    const struct idem__machine_ops *ops;
    const struct idem__flight_env *env;
    struct idem_op *op;
    const struct idem_now *now; /* The same time for all of a step. */

    /* The next step. */
    enum idem__flight_next next;
    int64_t pause_ms;
    bool large;     /* The next request is large, and may take long. */
    bool heard;     /* The last request got a valid answer. */
    bool timed_out; /* The last request ended at its deadline. */

    /* The state of the op. */
    idem__state state;
    idem__state after_pause; /* The state to enter after PAUSE. */

    /* Counts of the op's tries. All but waits are bounded. */
    unsigned tries;  /* Requests in a row without progress. */
    unsigned waits;  /* Pauses for a reason of idem__flight_again(). */
    unsigned rounds; /* Decisions. */

    /* How much is known of the op's effect, should it fail. Neither is unset before the
     * op ends. */
    bool ambiguous; /* A write of ours may have been applied: never report
                       "nothing was done". */
    bool settled;   /* The answer is certain; what is left to do may fail. */

    /* The record found, on which the decision and the condition of the write rest. The
     * service keeps it. */
    bool has_found;
    bool remembered; /* It is from the cache of claims, and was not read. */
    struct idem_record *found;
    struct idem_slice *found_head;
    struct idem__buffer found_memory;
    /* The memory of *found_head if the record found is a write of ours that was not read
     * back. */
    struct idem__buffer written;

    /* The decision, with its answer and its write. */
    struct idem_decision decision;
    struct idem_record given;
    /* The record to write, which the service keeps. */
    struct idem_record *next_record;
    struct idem__buffer head; /* The encoded head of next_record. */
    bool extending;           /* The write only extends a claim. */

    /* For flights.c. */
    struct idem__flight *link;
    /* With link, the list of flights that have started. */
    struct idem__flight *link_back;
    struct idem__flight_turn turn;
    int64_t due_ms; /* Paused: check_clock() looks at the flight then. */
    /* Of the store; NULL: it has none, or recall() answered the op. */
    struct idem__replays *replays;
    uint64_t generation; /* That of the store when the op started. */
    uint32_t told;       /* idem__replays_told() when the op started. */
};

/* ---- The life of a flight; flights.c calls these ---- */

void idem__flight_start(struct idem__flight *flight,
                        const struct idem_now *now);
void idem__flight_resume(struct idem__flight *flight,
                         const struct idem_now *now);
void idem__flight_answered(struct idem__flight *flight,
                           const struct idem_now *now);
void idem__flight_no_clock(struct idem__flight *flight);
void idem__flight_give_up(struct idem__flight *flight);

/* Detaches the op, which has ended. Keeps most of the memory for the next op. */
void idem__flight_reset(struct idem__flight *flight);
void idem__flight_free(struct idem__flight *flight);

/* ---- For a service ---- */

/* The first state of the op. @looks: a claim reads the record first. */
idem__state idem__flight_first(struct idem__flight *flight, bool looks);

/* Handles the answer to WRITE, and returns the next state. After REFUSED that is NONE,
 * because only the service knows whether the answer showed the record. */
idem__state idem__flight_written(struct idem__flight *flight,
                                 enum idem__said said, bool sent,
                                 const struct idem_error *error);

/* Ends the op. These return DONE. */
idem__state idem__flight_fail(struct idem__flight *flight,
                              const struct idem_error *error);
idem__state idem__flight_fail_with(struct idem__flight *flight, int code,
                                   const char *text);
idem__state idem__flight_no_memory(struct idem__flight *flight);

/* Handles an answer that is neither OK nor REFUSED: enters @again after a pause, or ends
 * the op. @sent: the request was sent, so the service is there. */
idem__state idem__flight_retry(struct idem__flight *flight,
                               enum idem__said said, bool sent,
                               const struct idem_error *error,
                               idem__state again);

/* Enters @again after a pause, because of @why (another caller was faster, for example),
 * until the op's time is up. */
idem__state idem__flight_again(struct idem__flight *flight, idem__state again,
                               const char *why);

/* Enters @again after a pause that grows with the tries so far. */
idem__state idem__flight_pause(struct idem__flight *flight, idem__state again);

/* Remembers the claim that was written, with the @n slices @more, three at most. */
void idem__flight_remember(struct idem__flight *flight,
                           const struct idem_slice *more, size_t n);

/* Makes the op's claim the record found, if it is remembered. *@ret_more points to the
 * added slices, in found_memory. */
bool idem__flight_recall(struct idem__flight *flight, const uint8_t **ret_more);

#endif
