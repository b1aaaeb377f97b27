/* The API as clients use it: each call is noted before and checked after. */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include "world.h"

/* Begins. On 0 *@ret_attempt is set; if it was STARTED, *@ret_held keeps it;
 * otherwise that is NULL, and the caller destroys it. */
int call_begin(struct client *c, struct key *key,
               const struct idem_request *request, struct held **ret_held,
               struct idem_attempt **ret_attempt);

/* Keeps a STARTED attempt in a slot, dropping an older one if it must. */
struct held *call_keep(struct client *c, struct key *key,
                       struct idem_attempt *attempt);
void call_drop(struct held *held);

int call_end(struct client *c, struct held *held,
             const struct idem_outcome *outcome);
int call_renew(struct client *c, struct held *held, int64_t lease_ms);

int call_expire(struct client *c, struct held *held);
int call_get(struct client *c, struct key *key, uint64_t *ret_fence,
             enum idem_status *ret_status);
int call_resolve(struct client *c, struct key *key, uint64_t fence,
                 const struct idem_outcome *outcome, unsigned flags);
int call_import(struct client *c, struct key *key,
                const struct idem_record *record);
int call_purge(struct client *c, uint64_t max);

#endif
