/* The store is in PostgreSQL: each operation is a task of postgres/, which asks one
 * request after the other. The requests of a process wait in a line for its one
 * connection, and go over it together, as a transaction.
 *
 *     task --request--> line --batch--> connection --> server.c: statements
 *      ^                                                  |
 *      '----- answer, or what became of the connection ---'
 *
 * What an operation asks, what an answer means and what time it is at the server is all
 * the library's. What postgres/conn.c and src/store/remote do (the connection, batches,
 * deadlines) is redone here, not run. */
#ifndef SIM_POSTGRES_H
#define SIM_POSTGRES_H

#include "world.h"

/* False: this was built without libpq. */
bool postgres_is_there(void);

void postgres_open(struct world *w);
void postgres_close(void);

/* The host of client @no, and whether two clients are one process. */
unsigned postgres_host(const struct world *w, unsigned no);
bool postgres_together(const struct client *a, const struct client *b);

/* A client starts or is gone. */
void postgres_born(struct client *c);
void postgres_gone(struct client *c);

/* Goes on with an operation, or with what is on its way. */
void postgres_step(struct world *w, struct flight *f);

/* @c ends in peace. True: somebody else of its process goes on with @f. */
bool postgres_hand_over(const struct client *c, struct flight *f);

/* Frees what only a flight of this store has. */
void postgres_drop(struct flight *f);

/* Something happens at the server. */
void postgres_strike(struct world *w);

/* As cloud.h has it. */
bool postgres_choose_flip(struct world *w, struct key *key);
void postgres_flip(struct key *key);

/* Store time, in truth; and the latest that anybody may take it for. */
int64_t postgres_ms(const struct world *w);
int64_t postgres_latest_ms(const struct world *w);

#endif
