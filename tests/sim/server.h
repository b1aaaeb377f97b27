/* The PostgreSQL server: transactions, one statement after the other, and its clock.
 *
 * The tables are those of tests/lib, which are compared with a real server. What they
 * hold under each key is also kept as a view (key->rows), for the judges. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "../lib/pg_table.h"
#include "world.h"

/* A request of a batch, and what the judges need of it. */
struct carried {
    struct flight judged;
    struct idem__pg_request *request;
    unsigned asker;  /* The operation's no, */
    unsigned number; /* and the request's. */
};

/* Requests that travel together, and their transaction. */
struct batch {
    struct carried *carried;
    size_t len;
    struct idem__pg_request *requests[FLIGHTS_MAX];
    unsigned host; /* Of its process: with the flight's link, its connection. */
    unsigned order; /* In which it was sent over that. */
    int64_t sent_boot_ms;
    bool settled; /* It goes over a connection that is. */
    bool shows;   /* Refused claims are shown the record. */
    bool begun;
    struct pg_tx tx;
    unsigned steps;     /* Statements that were done. */
    unsigned steps_max; /* Before this one it ends; UINT_MAX: it does not, */
    bool at_commit;     /* but at COMMIT; */
    const char *state;  /* with this SQLSTATE; NULL: with the connection. */
    int64_t blocked_at; /* True time; 0: it is not. */

    const struct pg_failure *failure; /* What it is answered; NULL: COMMIT. */
};

void server_open(struct world *w);
void server_close(void);

/* What its clock shows; and what it would show, had it never been set back. */
int64_t server_ms(const struct world *w);
int64_t server_latest_ms(const struct world *w);

/* The latest that it can be by what a client believes who takes it for @ms, give or take
 * @err_ms: that client may not have heard that the clock was set back. False: it is
 * neither. */
bool server_knows(const struct world *w, int64_t ms, int64_t err_ms,
                  int64_t *ret_ms);

/* Goes on with what @p carries to it: a batch, or somebody else's transaction. */
void server_step(struct world *w, struct flight *p);

/* Sets the clock back, or lets somebody else hold a row. */
void server_strike(struct world *w);

/* As service.h has it. */
bool server_choose_flip(struct world *w, struct key *key);
void server_flip(struct key *key);

void server_drop(struct flight *p);

#endif
