/* Somebody who claims keys, works and says how it went, as a seed has it; and
 * what is noted of it outside of the store. */
#ifndef CHAOS_OWNER_H
#define CHAOS_OWNER_H

#include "caller.h"

#include <idem/journal.h>

/* The ledger has a line for each event, in the order in which they happened:
 *
 *     B key who            the key is asked for
 *     Q key who            ... and the answer is that nobody knows, or nothing
 *     S key who fence      an attempt was STARTED
 *     E key who fence      its effect (fence 0: one without an attempt)
 *     Z key who fence      ... between the look at its lease and which the lease
 *                          ended: it had no processor
 *     C key who fence      it asks for its completion
 *     A key who fence id   the completion was acknowledged
 *     W key who fence id   ... and so was another one after it, with another id
 *     L key who fence      its release was acknowledged
 *     T key who fence      its completion was told that it is LOST
 *     V key who fence      ... although its lease was not over
 *     R key who fence id   somebody was given this outcome
 *     X key who fence      ... an outcome that nobody ever made
 *     U key who fence      somebody was told that it may have happened
 *
 * A key's first letter is its policy: h is held, r is run again; x is run again
 * and expires after a moment. */

struct owner {
    struct caller caller; /* The first member. */
    struct idem_journal *journal;
    int64_t lease_ms;
    unsigned work_ms; /* Before the effect, and after it; at most. */
    unsigned rest_ms; /* Between two calls; at most. */
    unsigned turn_ms; /* After so long everybody turns to new keys. */
    bool cold; /* The service's time is not known to all; nobody waits long. */
    /* The controls: it takes no answer for "not done", and goes on; or it never
     * looks at its lease. */
    bool naive;
    bool careless;
};

/* Makes the calls of a struct owner. */
void owner_run(struct caller *caller);

/* Tells the store what those who were killed could not. */
void owner_replay(struct idem_store *store, struct idem_journal *journal,
                  unsigned who);

#endif
