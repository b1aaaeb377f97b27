/* What really happened, noted where nobody can forget it. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "world.h"

/* A write by @f is about to be stored. */
void ledger_write(struct world *w, const struct flight *f);

/* True if what is stored of @key has been kept for its retention, by true time. (Not
 * where clocks are wrong that are said to be right.) */
bool ledger_may_be_gone(const struct world *w, const struct key *key);

/* The claim with @fence, or NULL. */
struct start *ledger_start(struct key *key, uint64_t fence);

/* True if an attempt up to @fence stopped without a word and nobody has looked
 * into it, so that its effect may have happened. */
bool ledger_silent(struct key *key, uint64_t fence);

/* The newest completion with @fence, or NULL: what a person reopened may be completed
 * once more with the same fence, by the next decision. */
const struct completion *ledger_completion(const struct key *key,
                                           uint64_t fence);

/* The newest one with @content that still counted at @since_ms, or NULL: an answer
 * may be as old as its question. */
const struct completion *ledger_recorded(const struct key *key, uint64_t fence,
                                         uint64_t content, int64_t since_ms);

/* True if a completion with @fence was reopened at @since_ms or later, or the newest
 * one at any time. */
bool ledger_reopened(const struct key *key, uint64_t fence, int64_t since_ms);

/* True if the owner itself still counts on its lease; the second one leaves it
 * the margin by which it stops early. */
bool ledger_live(const struct held *held);
bool ledger_lease_runs(const struct client *c, const struct held *held);

/* @c was told that it owns @held->key: no one else may believe the same. */
void ledger_started(struct client *c, const struct held *held);

/* All is over: what was acknowledged or shown as completed must still be on
 * record, unless its retention is over. */
void ledger_kept(struct world *w);

/* An effect begins under @held. */
void ledger_effect(struct client *c, const struct held *held,
                   enum idem_on_expired_lease policy);

/* Its owner is about to say that the attempt @fence ended as @status, or a
 * person has said so: whoever held it no longer counts on it. Only what was
 * released may be done again. */
void ledger_over(struct world *w, struct key *key, uint64_t fence,
                 enum idem_status status);

#endif
