/* Creates ops and fills in their arguments; and the inside of attempts. */
#ifndef IDEM_QUEUE_OP_H
#define IDEM_QUEUE_OP_H

#include "contract/parts.h"
#include "contract/store.h"

/* Returns a zeroed op of @verb with room for @args_len bytes of arguments, or NULL. */
struct idem_op *idem__op_create(enum idem_verb verb, size_t args_len);

/* Gives the caller the block of long arguments, into which the record of the answer may
 * point. NULL: the arguments are in the op's own block, and no answer points to
 * them. */
uint8_t *idem__op_take_args(struct idem_op *op);

/* Copies the bytes of *@slice into the op's arguments, and points it there. */
void idem__op_keep(struct idem_op *op, struct idem_slice *slice);

/* Gives the import @op a copy of @record, whose slices still point to the caller's
 * bytes. 0 or IDEM_ENOMEM. */
int idem__op_import(struct idem_op *op, const struct idem_record *record);

/* Returns how many bytes the slices of @record need in an op's arguments; and copies
 * them there. */
size_t idem__op_record_len(const struct idem_record *record);
void idem__op_keep_record(struct idem_op *op, struct idem_record *record);

/* Copies these bytes to @to instead, and points the slices of @record there. */
void idem__op_copy_record(struct idem_record *record, uint8_t *to);

/* ---- The inside of attempts, which a begin gives to its caller: attempt.c ---- */

struct idem__attempt {
    struct idem_attempt pub;    /* First: callers hold a pointer to it. */
    struct idem_store *store;   /* NULL: a transaction of the caller holds
                                   it. */
    struct idem_record *record; /* pub.record; its slices point to the bytes
                                   after it ... */
    uint8_t *args; /* ... or into long arguments of an op, or names. */
    struct idem_op *planned; /* The end that the caller's statement writes,
                                whose values point into it; or NULL. */
    uint8_t nonce[16];
    int64_t lease_ms;          /* As requested at begin. */
    int64_t lease_end_boot_ms; /* As this process counts it; atomic, because
                                  another thread may renew it. */
    struct idem_slice scope;   /* Into names. */
    struct idem_slice key;
    uint8_t names[];
};

static inline struct idem__attempt *idem__attempt_of(struct idem_attempt *pub)
{
    return (struct idem__attempt *)pub;
}

static inline int64_t idem__attempt_lease_end(const struct idem__attempt *a)
{
    return __atomic_load_n(&a->lease_end_boot_ms, __ATOMIC_RELAXED);
}

static inline void idem__attempt_set_lease_end(struct idem__attempt *a,
                                               int64_t boot_ms)
{
    __atomic_store_n(&a->lease_end_boot_ms, boot_ms, __ATOMIC_RELAXED);
}

/* Returns an empty attempt at a key, or NULL. A begin gets its attempt before it is
 * submitted: if memory ran out after the claim, the key would be claimed for an owner
 * that knows nothing of it. */
struct idem__attempt *idem__attempt_create(struct idem_slice scope,
                                           struct idem_slice key);

/* Returns the attempt of a begin that answered 0. The attempt takes the record, and the
 * bytes that it points to, away from @op. */
struct idem_attempt *idem__attempt_of_op(struct idem_op *op);

/* Gives the attempt the record of @op, a verb that changed it, and destroys @op. */
void idem__attempt_update(struct idem_attempt *attempt, struct idem_op *op);

/* Counts the lease anew after the renewal @op: from the moment before this process
 * requested it, and never to an earlier end than before, unless the record shows that
 * another holder of the token has shortened the lease in between. A renewal counts by
 * the boot clock of the process that requests it. */
void idem__attempt_count_lease(struct idem__attempt *a,
                               const struct idem_op *op);

#endif
