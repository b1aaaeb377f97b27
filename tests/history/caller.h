/* A caller of a store: it writes each call into a history before it makes it, and then
 * the answer. Scripts choose the calls: any.c, and owner.c of tests/chaos. */
#ifndef HISTORY_CALLER_H
#define HISTORY_CALLER_H

#include "write.h"

#include "../lib/rng.h"

#include <idem.h>

struct caller {
    struct idem_store *store;
    struct writer writer; /* Of its part of the history. */
    struct rng rng;
    unsigned calls;     /* To make. */
    unsigned keys;      /* Of each kind, at any time. */
    bool lossy;         /* Answers of the store may be lost. */
    const int *stopped; /* Atomic; not 0: it must end. */
};

/* An attempt, and its name in the history. */
struct caller_held {
    struct idem_attempt *attempt; /* NULL: free. */
    struct call_id id;            /* Of its begin. */
    char key[40];
};

/* Whether there are calls to make, and *caller->stopped is 0. */
bool caller_goes_on(const struct caller *caller);

/* Each makes one call and returns its code. If that is 0, *@ret_held is filled; the
 * caller destroys its attempt. */
int caller_begin(struct caller *caller, const char *key,
                 const struct idem_request *request,
                 struct caller_held *ret_held);
int caller_end(struct caller *caller, const struct caller_held *held,
               const struct idem_outcome *outcome);
int caller_renew(struct caller *caller, const struct caller_held *held,
                 int64_t lease_ms);
int caller_expire(struct caller *caller, const struct caller_held *held);
int caller_resolve(struct caller *caller, const char *key, uint64_t fence,
                   const char *who, const struct idem_outcome *outcome,
                   bool force);
int caller_purge(struct caller *caller, uint64_t max);

/* Returns the fence of @key's record; 0: the call failed. */
uint64_t caller_get(struct caller *caller, const char *key);

void caller_pause(int64_t ms);

/* The clock that leases and histories run on. */
int64_t caller_now_ms(void);

#endif
