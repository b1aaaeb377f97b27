/* The store is a service: each operation is a task of the store's own code, which asks
 * one request after the other. service.c drives the tasks; a service carries requests
 * there and answers back.
 *
 *     task --request--> dynamodb.c, postgres.c --network--> cloud.c, server.c
 *      ^                                                         |
 *      '-------- answer, or silence, or what became of it <------'
 *
 * Other than remote.c none of them has an opinion of its own on how an operation becomes
 * requests, what an answer means, or what time it is at the service: that is all the
 * library's. Of src/store/remote the machine is run; the rest (queue, leader, deadlines) is
 * redone here. */
#ifndef SIM_SERVICE_H
#define SIM_SERVICE_H

#include "base/learned_clock.h"
#include "store/remote/machine.h"
#include "world.h"

/* What a process has beside its operations. */
struct process {
    unsigned no;
    struct idem_host host;
    struct idem__claims *claims;
    uint8_t *scratch; /* IDEM_HEAD_MAX bytes. */
    struct idem__learned_clock clock;
    bool answered;    /* Somebody has told it the time. */
    bool missed_time; /* It was told the time too late to learn it. */
    uint64_t fence_floor;
    struct spare *spare; /* Tasks for the next operations. */
};

struct service {
    void (*open)(struct world *w);
    void (*close)(void);

    /* A process begins, with nothing that another has left. */
    void (*born)(struct process *process);

    /* Tasks, which are task_size large and begin with a flight. */
    size_t task_size;
    void (*init)(struct idem__flight *task, const struct process *process);
    void (*reset)(struct idem__flight *task);
    void (*free)(struct idem__flight *task);
    /* True for a purge that carries out what it has decided. NULL: none does so later. */
    bool (*carries)(const struct idem__flight *task);

    /* Errors that the library may give without asking the table. */
    int uncertain[3];

    /* Sends, or lines up, what the task of @f asks. */
    void (*ask)(struct world *w, struct flight *f);

    /* Goes on with what is on its way (SENT, BACK), or with an operation whose time to
     * wait is over (WAITING). */
    void (*step)(struct world *w, struct flight *f);

    /* Something has happened at the process: what is ready goes on. May be NULL. */
    void (*work)(struct world *w, const struct process *process);

    /* Frees what only its flights have. */
    void (*drop)(struct flight *f);

    /* Something happens to the service. May be NULL. */
    void (*strike)(struct world *w);

    /* Sets key->flipped_at and flipped_bits for what is there; false: nothing is. Turns
     * a bit of what is stored, or turns it back. */
    bool (*choose_flip)(struct world *w, struct key *key);
    void (*flip)(struct key *key);

    /* Store time, in truth; and the latest that anybody may take it for. */
    int64_t (*ms)(const struct world *w);
    int64_t (*latest_ms)(const struct world *w);

    /* False: store time is not, and was not, @ms give or take @err_ms. Else the latest
     * that it can be for who believes so. */
    bool (*knows)(const struct world *w, int64_t ms, int64_t err_ms,
                  int64_t *ret_ms);

    /* How far off a wall clock is, at most, by which it has answered; 0: it is of no use
     * after an answer. */
    int64_t signed_err_ms;
};

extern const struct service dynamodb_service;
/* Not there without libpq. */
extern const struct service postgres_service __attribute__((weak));

/* NULL: there is none for @mode. */
const struct service *service_of(enum mode mode);

/* ---- For the world ---- */

/* The host of client @no, and whether two clients are one process. */
unsigned service_host(const struct world *w, unsigned no);
bool service_together(const struct client *a, const struct client *b);

/* A client starts or is gone. */
void service_born(struct client *c);
void service_gone(struct client *c);

/* @c ends in peace. True: somebody else of its process goes on with @f. */
bool service_hand_over(const struct client *c, struct flight *f);

void service_step(struct world *w, struct flight *f);
void service_drop(struct flight *f);

/* ---- For services ---- */

struct process *service_process(const struct flight *f);

/* @p carries what @f asks: by when that was decided, and what the write is. */
void service_carry(struct flight *p, const struct flight *f);

/* The operation @f has what its task looks for. @seen: what the table showed, of which
 * the head counts as read if @shown; or NULL. */
void service_look(struct world *w, struct flight *f, const struct flight *seen,
                  bool shown);

#endif
