/* The table of records, as the engine of the local stores sees it. */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include "contract/parts.h"
#include "world.h"

/* One look at one key: what is found, and where what is written goes. */
struct look {
    const struct name *name;
    const struct version *found;
    struct version *next;
    bool saved;
    bool full;         /* There is no room to write. */
    bool keeps_result; /* That of what was found was not written over. */
    bool blind;        /* It was written as if what was found were not there. */
};

struct idem_table table_of(struct look *table);

/* The hash of a piece of content, as views carry it; never 0. */
uint64_t content_of(const struct idem_result *result);
uint64_t hash_of(struct idem_slice s, uint64_t hash);

/* Copies no more than is used. */
void version_copy(struct version *to, const struct version *from);

/* What is stored under @key. */
static inline const struct version *stored(const struct key *key)
{
    return &key->rows[key->at];
}

/* Makes @next what is stored under @key, with a rev of its own. */
void table_store(struct world *w, struct key *key, const struct version *next);

/* What the judges see of @record, whose result is @result. */
void table_view(const struct idem_record *record, struct idem_slice result,
                struct view *ret_view);

/* The record under @key was deleted, by the store itself or by a purge. */
void table_forget(struct world *w, struct key *key, int64_t truth);

/* Deletes at most op->u.purge.max records that are over by @now. */
void table_purge(struct world *w, struct idem_op *op,
                 const struct idem_now *now, int64_t truth);

#endif
