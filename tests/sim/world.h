/* world.h: everything that one schedule consists of.
 *
 * One thread. Clients are coroutines that call the library as any program
 * would; the store behind it (door.c) only notes what was submitted and yields.
 * The scheduler (schedule.c) decides what happens next: a client runs on, a
 * request reaches the store, an answer comes back, time passes, something
 * breaks.
 *
 *     client  --idem_begin()-->  libidem  --submit()-->  flight
 *        ^                          |                      |
 *        |                        drive() yields           v
 *        '------- woken <---- idem__op_answer() <---- store (table.c)
 *
 * Embedded: all clients live on one host and decisions are made where the table
 * is, as in SQLite (embedded.c). Remote: each client has a host of its own,
 * decides by what it has read and learned of the store's time, and writes by
 * compare and swap, as with DynamoDB (remote.c).
 *
 * DynamoDB: as remote, and what is done where is the code of that store itself
 * (service.c), each of its requests a message of its own (dynamodb.c, cloud.c).
 *
 * PostgreSQL: likewise; requests go together as transactions, whose statements those
 * of others come between (postgres.c, server.c).
 *
 * Whatever is decided is judged by a second opinion that was written from the
 * documentation and not from the code (judge*.c); whatever a client is told is
 * held against what really happened (told*.c, ledger.c).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "../lib/rng.h"
#include "contract/parts.h"
#include "coro.h"
#include "heap.h"
#include "stats.h"
#include "trace.h"

#include "base/bytes.h"
#include "store/shared/replays.h"

enum {
    KEYS_MAX = 3,
    CLIENTS_MAX = 8,
    CLIENTS_USUAL = 4,
    FLIGHTS_MAX = 32,
    CALLS_MAX = 4096,
    CHANGES_MAX = 3,                   /* Priority class: change points. */
    TARGETS_MAX = 2 * CLIENTS_MAX + 1, /* Swizzle class: what can be stopped. */
    HELD_MAX = 4,    /* Attempts that a client keeps hold of. */
    STARTS_MAX = 96, /* Claims and completions of a key that are remembered. */
    ROW_MAX = 2560,
    RESULT_USUAL = 48, /* config.result_max: usually, and at most. */
    RESULT_MAX = 1300,
    SET_BACKS_MAX = 4,
    DAY_MS = 24 * 3600 * 1000,
    HOUR_MS = 3600 * 1000,
    /* Embedded: how old the time in the store may be, and so how much of it a
     * reboot with a wall clock that is behind can take back. */
    SAVE_EVERY_MS = 1000,
};

enum mode {
    EMBEDDED,
    REMOTE,
    DYNAMODB, /* Remote, too: by the code of the store itself. */
    POSTGRES, /* Likewise. */
    MODES
};

/* How long before the end of its lease an owner stops, as documented. */
enum {
    EMBEDDED_STOP_MS = 500,
    REMOTE_STOP_MS = 2000
};

/* ---- Records ----------------------------------------------------------- */

/* A record as the judges look at it. */
struct view {
    bool exists;
    bool not_kept;
    bool by_lease;
    bool retry;
    bool reopened;   /* A person has, and nobody has started since. */
    bool times_back; /* A time in it goes behind an earlier one. */
    enum idem_status status;
    enum idem_on_expired_lease policy;
    uint32_t attempts;
    uint32_t retried;
    uint32_t failures;
    uint64_t in_doubt;
    uint64_t fence;
    uint8_t nonce[16];
    uint8_t boot_id[16];
    int64_t lease_ms;
    int64_t lease_end_ms;
    int64_t lease_end_boot_ms;
    int64_t expected_ms;
    int64_t expires_ms;
    int64_t retention_ms;
    uint64_t fingerprint; /* A hash of it; 0: none. */
    uint64_t content;     /* A hash of what a replay brings. */
    uint64_t text;        /* A hash of error and note. */
    uint64_t resolved_by; /* A hash of the person's name; 0: by nobody. */
};

/* A record as it is stored: the library's own encoding. */
struct version {
    uint64_t rev; /* Another one with every write; 0: there is no record. */
    struct view view;
    size_t head_len;
    size_t result_len;
    size_t input_len;
    uint8_t bytes[ROW_MAX];
};

struct name {
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN];
};

/* A claim that was written, and whether its owner was told so. */
struct start {
    uint64_t fence;
    uint8_t nonce[16];
    bool told;
    bool over;      /* Somebody has said how it ended. */
    bool resolved;  /* A person has. */
    bool forced;    /* While its lease ran. */
    bool silent;    /* One before it stopped without a word. */
    unsigned chain; /* The same for an attempt and those that took it over. */
};

struct completion {
    uint64_t fence;
    uint64_t content;
    int64_t expires_ms;
    int64_t reopened_ms; /* True time; IDEM_NEVER: it was not. */
};

/* The newest that any client was shown of a key, or had acknowledged. */
struct sight {
    uint64_t fence;
    bool completed;
    bool acknowledged;
    int64_t expires_ms;
};

/* For how long what is stored is to be kept, as its writer was promised. */
struct kept {
    int64_t from_ms; /* True times. */
    int64_t until_ms;
};

struct key {
    const struct name *name;
    int no;
    struct version rows[2]; /* rows[at] is stored, the other one is scratch. */
    unsigned at;
    uint64_t fence_max; /* Of all that were ever written. */
    bool flipped;       /* A byte at flipped_at is not as it was written. */
    size_t flipped_at;
    uint8_t flipped_bits;
    unsigned flips;
    bool imported_below; /* A record with an old fence was brought back. */
    struct start starts[STARTS_MAX];
    unsigned starts_len;
    unsigned corrections; /* Of these, fences of decisions about decisions. */
    struct completion completions[STARTS_MAX];
    unsigned completions_len;
    struct sight seen;
    struct kept kept;
    /* The ledger of effects: the last one that began. */
    uint64_t effect_fence;
    bool effect_held;    /* Under IDEM_HOLD. */
    bool effect_settled; /* It was released: it may be done again. */
    unsigned effects;
};

/* ---- Hosts ------------------------------------------------------------- */

struct host {
    int64_t up_at;      /* True time of the boot. */
    int64_t up_boot_ms; /* What the boot clock showed then. */
    int64_t drift_ppm;
    int64_t wall_off_ms;
    bool unsynchronised; /* Nothing is known to keep the wall clock right. */
    uint8_t boot_id[16];
};

/* What a client knows of a remote store's time: store time less its own boot
 * clock was in [low, high] when that clock showed at_ms. */
struct learned {
    bool known;
    int64_t at_ms;
    int64_t low_ms;
    int64_t high_ms;
};

/* ---- Clients ----------------------------------------------------------- */

/* One call of the API, from its begin until all that came of it is over. */
struct call {
    struct key *key;
    bool nothing_done; /* Its caller was told so. */
    bool applied;      /* Something was written for it. */
    bool answer_flipped;
    int64_t asked_ms; /* True time. */
    int64_t boot_ms;  /* Of the caller's host. */
    int64_t stalled_ms;
    int64_t op_since; /* True time; 0: no op is under way. */
    int64_t op_ms;    /* Spent on ops so far. */
    bool unsure;      /* One of them was not answered for certain. */
    struct sight sight;
    uint64_t busy_fence; /* First BUSY that it was answered; 0: none. */
    unsigned flips;
    struct view wrote;        /* The last that was written for it. */
    uint8_t unsure_nonce[16]; /* Of a request that nothing is known of. */
    uint64_t unsure_fence;    /* Of the claim that it may have made; 0. */
};

/* An attempt that was STARTED and is still held. */
struct held {
    struct idem_attempt *attempt; /* NULL: the slot is free. */
    struct key *key;
    uint64_t fence;
    uint8_t nonce[16];
    bool over; /* It began to say how it ended, or it learned that it lost. */
};

enum client_state {
    CLIENT_GONE,
    CLIENT_READY,
    CLIENT_ASLEEP,
    CLIENT_WAITING
};

struct client;
struct batch;
struct service;

struct door {
    struct idem_store base;
    struct client *client;
};

struct client {
    struct world *world;
    int no;
    struct host *host;
    struct coro coro;
    struct heap heap;
    enum client_state state;
    int64_t wake_at;  /* True time; asleep or waiting. */
    int64_t ready_at; /* When it could have run on. */
    int64_t paused_until;
    int64_t stalled_ms; /* Could have run, but was not let. */
    unsigned priority;
    unsigned rounds;
    struct door door;
    struct learned learned;
    struct version cache[KEYS_MAX]; /* Last seen of each key, remote. */
    struct idem__replays *replays;  /* Embedded; NULL: none so far. */
    struct call *call;
    struct held held[HELD_MAX];

    /* In a small world (small.h). */
    unsigned births;
    bool killed;
    unsigned script_step;
    struct rng random; /* What the library is given. */
    uint64_t told;     /* Hash of all since it was last between two calls. */
};

/* ---- Operations under way ---------------------------------------------- */

enum stage {
    FLIGHT_FREE,
    FLIGHT_QUEUED,  /* Submitted; nothing done. */
    FLIGHT_SENT,    /* On its way to where the table is. */
    FLIGHT_BACK,    /* On its way back. */
    FLIGHT_WAITING, /* DynamoDB, PostgreSQL: its task waits for an answer, */
    FLIGHT_PAUSED,  /* or before it asks again. */
    FLIGHT_LATENT,  /* A commit that failed, and may yet be found applied. */
};

enum ask {
    ASK_READ,
    ASK_WRITE,
    ASK_PURGE
};

struct flight {
    enum stage stage;
    unsigned no;
    struct client *client; /* NULL: nobody waits and nobody goes on with it. */
    struct idem_op *op;    /* The client's own; NULL: nobody waits. */
    struct idem_op *copy;  /* What travels. */
    struct call *call;     /* To be told; NULL: nobody is. */
    struct call *origin;   /* That it came from. */
    struct key *key;       /* NULL: a purge. */
    int64_t due_at;
    unsigned priority;
    int told; /* Answer with this code instead of what came out. */

    /* What was decided, and by what time. */
    struct idem_now now;
    int64_t truth_ms;  /* Store time, in truth, when now was taken; */
    int64_t sure_ms;   /* as much of it as expires anything; */
    int64_t true_ms;   /* and true time. */
    bool saved;        /* A write was decided: next. */
    bool keeps_result; /* It has the result of before. */
    bool flipped;      /* The head that was found is damaged. */
    bool body_flipped; /* Its result is. */
    struct view before;
    struct version next;
    uint64_t writes;     /* Latent: as many were done before. */
    uint64_t generation; /* Embedded: before its record was read. */

    /* Remote. */
    enum ask ask;
    bool fresh;   /* seen was read for this very op. */
    bool by_wall; /* now is no more than the host's wall clock. */
    bool refused;
    bool lost;  /* Nothing comes back. */
    bool maybe; /* A write may have been applied. */
    unsigned tries;
    int64_t sent_at; /* True time. */
    int64_t sent_boot_ms;
    int64_t date_ms;

    /* Of a service: an operation, */
    const struct service *service; /* NULL: there is none. */
    struct idem__flight *task;
    unsigned rounds;  /* Of the task, */
    bool extending;   /* when now was taken. */
    bool asked;       /* The table answered it. */
    unsigned request; /* Its latest. */

    /* DynamoDB: an operation; */
    bool silent; /* What it waits for was not even sent. */
    /* a request, or its answer. */
    unsigned answers; /* The operation's no. */
    enum net net;
    bool skewed; /* Signed by a clock that the service refuses. */
    unsigned sends;
    const char *target;
    struct idem__buffer body;
    struct idem__buffer answer;
    int status;

    /* PostgreSQL: an operation, and its place in the line for the connection; */
    unsigned line_no; /* 0: it is in no line. */
    bool alone;       /* It failed together with others. */
    unsigned link;    /* The connection that it was sent over; */
    /* what is on its way over a connection. */
    enum carries {
        CARRIES_NOTHING,
        CARRIES_CONNECT, /* The connection itself. */
        CARRIES_CUT,     /* That it is lost. */
        CARRIES_BATCH,
        CARRIES_LOCK, /* A transaction of somebody else's. */
    } carries;
    struct batch *batch;

    struct idem_op *begin; /* While its lease is being mended: the begin. */
    struct version seen;
};

/* ---- The schedule ------------------------------------------------------ */

/* What clients do, and how their work ends (work.c). */
enum {
    ROUNDS = 7,
    ENDS = 6
};

/* What the seed has chosen for all of a schedule. Each schedule leaves some
 * things out and does others often: what is rare among all things together is
 * met more often where little else happens. */
struct config {
    enum mode mode;
    enum class class;
    unsigned clients;
    size_t result_max;     /* A longer result is a tombstone. */
    unsigned ttl_permille; /* DynamoDB: that what is due is deleted. */
    bool threads;          /* PostgreSQL: two clients are one process. */
    unsigned rounds_each;  /* 0: each client draws its own. */
    unsigned steps;        /* After these nothing breaks any more. */
    unsigned keys;
    unsigned restarts;
    unsigned fault_permille; /* For each step. */
    unsigned fate_permille;  /* For each operation. */
    unsigned clock_permille; /* For each reading. */
    unsigned clock_at;       /* This reading fails; 0: none. */
    int64_t timeout_ms;
    bool by_wall;            /* Remote: a first claim trusts the wall clock. */
    bool hot;                /* Everybody wants one key, at once and again. */
    unsigned rounds[ROUNDS]; /* Weights. */
    unsigned ends[ENDS];     /* After work that was done. */
    int64_t rest_ms;         /* Between rounds, at most. */
    int64_t decide_ms;      /* From a person's look to its decision, at most. */
    unsigned hold_permille; /* Of the requests. */
    unsigned wait_permille;
    int64_t wait_max_ms;
    int64_t lease_max_ms;
    unsigned forever_permille; /* Leases without an end. */
    unsigned token_permille;   /* Owners that pass their token on. */
    unsigned force_permille;   /* Decisions of a person that are forced. */
    /* A retry may come with a budget, a pause, and what it came to. */
    bool budgets;
    /* Embedded: the wall clock is right while it is synchronised, and in other
     * boots days ahead. */
    bool doubtful;
    bool replays; /* Embedded: processes keep completed records in memory. */
};

/* Priority class (order.h). */
struct order {
    unsigned time;                 /* Its priority. */
    unsigned behind;               /* The lowest that was given so far. */
    unsigned changes[CHANGES_MAX]; /* At these steps. */
    unsigned changes_len;
};

/* Swizzle class (swizzle.h). */
struct turn {
    int64_t at;
    unsigned target;
    bool stop; /* Or start. */
};

struct swizzle {
    struct turn turns[2 * TARGETS_MAX];
    unsigned turns_len;
    unsigned next;
    unsigned stopped; /* A bit for each target. */
};

struct violation {
    bool found;
    char id[8];
    char text[240];
};

struct explore;
struct script;

struct world {
    uint64_t seed;
    struct rng rng;
    struct rng aside;  /* For what few schedules have: the others stay as they
                         were before there was such a thing. */
    struct rng budget; /* Likewise, for budgets of failures and pauses, */
    struct rng memory; /* and for replays from memory. */
    struct config config;
    struct stats *stats;
    struct trace trace;
    struct violation violation;
    bool unjudged; /* Violations are passed over: a history is written. */
    bool quiet;    /* No more faults. */
    bool checking; /* Hooks are called by the checker. */

    int64_t now; /* True time. */
    int64_t start_ms;
    struct host hosts[CLIENTS_MAX];
    struct client clients[CLIENTS_MAX];
    struct client *running;
    struct key keys[KEYS_MAX];
    struct heap heap; /* Of the store and what is in flight. */

    struct flight flights[FLIGHTS_MAX];
    unsigned flights_len; /* Used at most so far. */
    unsigned flight_no;
    struct call calls[CALLS_MAX];
    unsigned calls_len;

    uint64_t rev;
    uint64_t writes;
    uint64_t generation; /* Embedded: of the completed records. */
    uint64_t fence_floor;
    bool disk_full;
    struct idem_anchor anchor; /* Embedded: the store's. */
    struct idem_anchor truth;  /* Embedded: the checker's own. */
    int64_t saved_ms;          /* Embedded: what the store knows of its time. */
    bool believed; /* A doubt was outlasted: a clock that was ahead counts. */
    unsigned chains;
    /* PostgreSQL: the server's clock less true time, and what it was before it was set
     * back. */
    int64_t server_off_ms[SET_BACKS_MAX + 1];
    unsigned set_backs;
    struct order order;
    struct swizzle swizzle;
    struct explore *explore; /* Small: makes the choices; else NULL. */
    const struct script *script;
    unsigned store_calls;
    unsigned clock_reads;
    unsigned steps;
    unsigned restarts;
    char token[IDEM_TOKEN_MAX]; /* That somebody passed on; "" if none. */
    struct key *token_key;
    uint64_t token_fence;
};

/* What of a schedule is not left to its seed. */
struct forced {
    int mode;         /* -1: the seed decides. */
    int class;        /* Likewise. */
    unsigned clients; /* 0: likewise; else at most CLIENTS_MAX. */
    unsigned rounds;  /* Of each client; 0: likewise. */
};

/* Runs the schedule of @seed. Afterwards world->violation says whether anything
 * was wrong. */
void world_run(struct world *world, uint64_t seed, const struct forced *forced,
               struct stats *stats, bool live);

/* Notes that invariant @id does not hold; the first to be found counts. */
void violate(struct world *world, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void note(struct world *w, enum event event,
                        const struct client *c, int64_t a, int64_t b)
{
    trace_add(&w->trace, w->now, event, c == NULL ? -1 : c->no, a, b);
}

static inline bool fault(struct world *w, enum fault fault, unsigned permille)
{
    if (w->quiet || w->explore != NULL || !rng_chance(&w->rng, permille)) {
        return false;
    }
    w->stats->faults[fault]++;
    return true;
}

static inline void scene(struct world *w, enum scene scene)
{
    w->stats->scenes[scene]++;
}

#endif
