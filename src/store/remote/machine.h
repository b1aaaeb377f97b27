/* One op on its way to a service and back: which request comes next, and what its answer
 * means. Pure but for memory: no I/O and no clock, so that the simulator runs it.
 * docs/rooms.md draws it.
 *
 *     state    request         what decides on the next state
 *     -------  --------------  -----------------------------------------------------
 *     start                    DECIDE: a claim, an import, an owner whose claim is
 *                              remembered; LOOK: a claim that waits, is probably refused,
 *                              or brings a large input; anybody else
 *     LOOK     the record      DECIDE: it is there, or none is
 *     DECIDE                   LOOK: what is remembered is good for no answer; LOAD: the
 *                              caller is given a body; ACT
 *     LOAD     its bodies      LOOK: they have changed since; ACT: all is as the record
 *                              says (PostgreSQL decides again first)
 *     ACT                      DONE: nothing is to be written; EXTEND: a claim of ours is
 *                              found, and too short; WRITE, once the service has stored
 *                              what goes before it
 *     EXTEND                   WRITE: the claim with a longer lease
 *     WRITE    a write, if     DECIDE: refused, and shown the record; LOOK: refused and
 *              it is as found  not shown it, or not answered; EXTEND: applied, and too
 *                              short; settle: applied
 *     settle                   what the service tidies up; then DONE
 *
 * A write is decided on what was found, or on there being nothing, and is conditional on
 * just that. Refused, it shows what is there now, and that is decided on anew. Whether an
 * unanswered write was applied is found by reading, never guessed: the record then holds
 * our nonce and content, or it does not.
 *
 * Each state that asks may be throttled, or read in vain: then it goes through PAUSE to
 * itself. Each may fail, the time may be up, or the clock not answer: DONE, with an error
 * that says whether a write may have been applied (flight->ambiguous).
 *
 * DECIDE, ACT and EXTEND are here (machine.c), as is what follows from an answer to WRITE.
 * All else is the service's: the requests of LOOK, LOAD and WRITE, and states of its own
 * for lists, purges, limits and the mark of a store that is moved.
 */
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

/* One of these, or of a service's own from IDEM__STATE_OWN on. */
typedef int idem__state;

enum {
    /* No next state: the caller goes on. */
    IDEM__STATE_NONE = 0,

    /* The ends of a step: its request is made; or the op waits, and then enters
     * flight->after_pause; or it is given back. */
    IDEM__STATE_SEND = IDEM__FLIGHT_SEND,
    IDEM__STATE_PAUSE = IDEM__FLIGHT_PAUSE,
    IDEM__STATE_DONE = IDEM__FLIGHT_DONE,

    IDEM__STATE_LOOK,   /* Reads the record. */
    IDEM__STATE_DECIDE, /* What is to be answered and written? */
    IDEM__STATE_LOAD,   /* Reads the bodies that the caller is given. */
    IDEM__STATE_ACT,    /* Does what was decided. */
    IDEM__STATE_EXTEND, /* Makes a claim last as long as its owner counts. */
    IDEM__STATE_WRITE,  /* Writes the record, if it is as it was found. */

    /* The first states of ops that are not about one record. */
    IDEM__STATE_LIST,
    IDEM__STATE_PURGE,
    IDEM__STATE_LIMIT,
    IDEM__STATE_MOVE,

    IDEM__STATE_OWN, /* The first of a service's own. */
};

/* The meaning of an answer, or of the lack of one. */
enum idem__said {
    IDEM__SAID_OK = 1,      /* It was done. */
    IDEM__SAID_REFUSED,     /* Its condition did not hold: not applied. */
    IDEM__SAID_NOT_APPLIED, /* Certainly not; it may be asked again. */
    IDEM__SAID_UNKNOWN,     /* It may have been applied, now or later. */
    IDEM__SAID_NEVER,       /* Not applied, and asking again will not help. */
    IDEM__SAID_CALLER_WRITE, /* Our condition of a transaction held, and that of a
                                write of the caller's did not: not applied. */
};

struct idem__flight;

/* The parts that the flights of a store share. */
struct idem__flight_env {
    struct idem__claims *claims; /* NULL: none are remembered. */
    struct idem_host host;       /* random is used, for jitter. */
    uint8_t *scratch; /* IDEM_HEAD_MAX bytes, for one flight at a time. */
};

/* Sets up a zeroed @env; @remembers: claims, too. Returns 0 or IDEM_ENOMEM; what is half
 * set up can be finished. */
int idem__flight_env_init(struct idem__flight_env *env,
                          const struct idem_host *host, bool remembers);
void idem__flight_env_finish(struct idem__flight_env *env);

/* A step returns the next state. */
typedef idem__state idem__flight_fn(struct idem__flight *flight);

/* The functions of a service. */
struct idem__machine_ops {
    const char *service; /* "DynamoDB", for sentences. */
    unsigned
        rounds_max; /* Decisions of one op: each but the first means that another
                            changed the record between our reading and our write. */
    unsigned pause_base_ms; /* Of the pauses before asking again. */

    /* flight->op is another one. Returns its first state: idem__flight_first(). */
    idem__flight_fn *start;
    /* Enters flight->state, which is none of machine.c's: makes its request, and returns
     * SEND, or does its work. */
    idem__flight_fn *enter;
    /* The answer to its request is there. For WRITE see idem__flight_written(). */
    idem__flight_fn *answered;

    /* Makes flight->decision on @there (NULL: nothing), which is idem__verb_decide()'s.
     * NONE, or the next state. */
    idem__state (*decide)(struct idem__flight *flight,
                          const struct idem_record *there);
    /* The decision stands, and what it writes is in *flight->next_record and
     * flight->head: makes what goes with it. NONE, or the next state. */
    idem__flight_fn *prepare;
    /* Stores what a reader of the record must find, and which comes before it. The state
     * that does so, after which ACT comes again; or WRITE. NULL: nothing does. */
    idem__flight_fn *store;
    /* Called when the op is answered, after its write or (not @wrote) without one.
     * NULL: DONE. */
    idem__state (*settle)(struct idem__flight *flight, bool wrote);

    /* Builds the write from the record found, for another lease. */
    void (*rewrite)(struct idem__flight *flight);
    /* Treats the record written as the record found. False: the next write depends on
     * something that only a read shows. */
    bool (*found_written)(struct idem__flight *flight);

    /* The claim *flight->next_record was written: idem__flight_remember(). */
    void (*remember)(struct idem__flight *flight);
    /* True if what was found is now the op's own claim: idem__flight_recall(). */
    bool (*recall)(struct idem__flight *flight);

    /* True if the last request may have changed what the op is about. */
    bool (*may_have_written)(const struct idem__flight *flight);
};

/* A place in the line of those that may send again; see base/list.h. */
struct idem__flight_turn {
    struct idem__flight_turn *next;
    struct idem__flight_turn *prev;
    struct idem__flight *flight; /* NULL: it is not in the line. */
};

/* The service's own struct begins with it. */
struct idem__flight {
    const struct idem__machine_ops *ops;
    const struct idem__flight_env *env;
    struct idem_op *op;
    const struct idem_now *now; /* One time for all of a step. */

    /* The next step. */
    enum idem__flight_next next;
    int64_t pause_ms;
    bool large;     /* Of the request to be sent: it takes its time. */
    bool heard;     /* Of the last one: the service gave a valid answer. */
    bool timed_out; /* The deadline ended the last one. */

    /* Where the op is. */
    idem__state state;
    idem__state after_pause; /* PAUSE: what is entered then. */

    /* Counts of its tries so far; but for waits each is bounded. */
    unsigned tries;  /* Requests in vain, in a row. */
    unsigned waits;  /* Pauses for a reason of idem__flight_again(). */
    unsigned rounds; /* Decisions. */

    /* How much is known of its effect should it fail. Once set for an op, neither is
     * ever unset. */
    bool ambiguous; /* A write of ours may have been applied: never report
                       "nothing was done". */
    bool settled;   /* The op is answered; what is left to do may fail. */

    /* The record found, on which the decision and the condition of the write rest; the
     * service keeps it. */
    bool has_found;
    bool remembered; /* It is what this handle wrote, and not a reading. */
    struct idem_record *found;
    struct idem_slice *found_head;
    struct idem__buffer found_memory;
    struct idem__buffer written; /* The head of found, where that is a write of
                                    ours that was not read back. */

    /* The decision, which is to be answered and written. */
    struct idem_decision decision;
    struct idem_record given;
    struct idem_record
        *next_record;         /* As it is to be written; the service's. */
    struct idem__buffer head; /* The encoded head of next_record. */
    bool extending;           /* The write is a claim that is made to last. */

    /* flights.c's. */
    struct idem__flight *link;
    struct idem__flight *link_back; /* Of those that are under way. */
    struct idem__flight_turn turn;
    int64_t due_ms; /* Paused: the clock is looked at then. */
};

/* ---- Its life: start to give_up of struct idem__remote_ops ---- */

void idem__flight_start(struct idem__flight *flight,
                        const struct idem_now *now);
void idem__flight_resume(struct idem__flight *flight,
                         const struct idem_now *now);
void idem__flight_answered(struct idem__flight *flight,
                           const struct idem_now *now);
void idem__flight_no_clock(struct idem__flight *flight);
void idem__flight_give_up(struct idem__flight *flight);

/* The op has been given back; most of the memory stays. */
void idem__flight_reset(struct idem__flight *flight);
void idem__flight_free(struct idem__flight *flight);

/* ---- For a service ---- */

/* Where the op begins; @looks: a claim of it reads first. */
idem__state idem__flight_first(struct idem__flight *flight, bool looks);

/* Takes in an answer to WRITE. Returns the next state; after REFUSED that is NONE, for
 * the service knows whether it was shown the record. */
idem__state idem__flight_written(struct idem__flight *flight,
                                 enum idem__said said, bool sent,
                                 const struct idem_error *error);

/* Ends the op. These return DONE. */
idem__state idem__flight_fail(struct idem__flight *flight,
                              const struct idem_error *error);
idem__state idem__flight_fail_with(struct idem__flight *flight, int code,
                                   const char *text);
idem__state idem__flight_no_memory(struct idem__flight *flight);

/* After an answer that is neither OK nor REFUSED: @again after a pause, or the end.
 * @sent: the service is there. */
idem__state idem__flight_retry(struct idem__flight *flight,
                               enum idem__said said, bool sent,
                               const struct idem_error *error,
                               idem__state again);

/* @again after a pause, because of @why (another was faster, say), until the time is
 * up. */
idem__state idem__flight_again(struct idem__flight *flight, idem__state again,
                               const char *why);

/* @again after a pause that is as long as the tries so far say. */
idem__state idem__flight_pause(struct idem__flight *flight, idem__state again);

/* Remembers what was written, and the @n of @more, three at most. */
void idem__flight_remember(struct idem__flight *flight,
                           const struct idem_slice *more, size_t n);

/* Takes the claim of the op as found, if it is remembered. *@ret_more is what was added
 * to it, in found_memory. */
bool idem__flight_recall(struct idem__flight *flight, const uint8_t **ret_more);

#endif
