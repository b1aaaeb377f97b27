/* Operations under way between a client and the store. */
#ifndef SIM_FLIGHT_H
#define SIM_FLIGHT_H

#include "world.h"

/* A free flight, or NULL when too many are under way. */
struct flight *flight_create(struct world *w);

/* A further copy of what @f carries, for which nobody waits; NULL likewise. */
struct flight *flight_double(struct world *w, const struct flight *f);

void flight_destroy(struct flight *f);

/* Notes whether what is read from f->key now is damaged. */
void flight_mark_flipped(struct flight *f);

/* Lets the library decide over @found, by f->now. */
void flight_decide(struct world *w, struct flight *f,
                   const struct version *found);

/* The same by reading alone. False: the store has to be written to. */
bool flight_peek(struct world *w, struct flight *f,
                 const struct version *found);

/* Lets @replays, of its process, answer it by f->now over what is stored: true. */
bool flight_recall(struct world *w, struct flight *f,
                   struct idem__replays *replays);

/* Has what was decided judged; stores what was to be written. */
void flight_commit(struct world *w, struct flight *f);

/* Answers whoever waits for @f, with f->told if that is set, and ends it. */
void flight_answer(struct world *w, struct flight *f);

/* @client is no more, after a crash or in peace; what of its operations is out
 * of its hands may still come to pass. */
void flight_orphan(struct world *w, struct client *client, bool crashed);

/* How long a message takes; sometimes very long if @late. */
int64_t flight_delay(struct world *w, bool late);

/* True if the scheduler may go on with @f now. */
bool flight_ready(const struct world *w, const struct flight *f);

/* Goes on with it. */
void flight_step(struct world *w, struct flight *f);

/* What flight_step() does in each mode. */
void embedded_step(struct world *w, struct flight *f);
void remote_step(struct world *w, struct flight *f);

/* Something opens the store for the first time in a boot. */
void embedded_open(struct world *w);

/* @client is no more, and what it kept in memory neither. */
void embedded_gone(struct client *client);

/* A process died or the host went down: commits that failed are found done, if
 * nothing was written since, or gone. */
void embedded_reopen(struct world *w);

#endif
