/* The inside of ops: making them and filling in their arguments. */
#ifndef IDEM_QUEUE_OP_H
#define IDEM_QUEUE_OP_H

#include "contract/parts.h"
#include "contract/store.h"

/* A zeroed op of @verb with room for @args_len bytes of arguments, or NULL. */
struct idem_op *idem__op_create(enum idem_verb verb, size_t args_len);

/* Gives the caller a long block of arguments to which the record of the answer points;
 * NULL: nothing points to it. */
uint8_t *idem__op_take_args(struct idem_op *op);

/* Copies what *@slice points to into the op's arguments and points it there. */
void idem__op_keep(struct idem_op *op, struct idem_slice *slice);

/* Gives an import @op its copy of @record, whose slices are as they were. 0 or
 * IDEM_ENOMEM. */
int idem__op_import(struct idem_op *op, const struct idem_record *record);

/* How many bytes the slices of @record need in an op's arguments; and copies
 * them there. */
size_t idem__op_record_len(const struct idem_record *record);
void idem__op_keep_record(struct idem_op *op, struct idem_record *record);

/* Copies as many bytes to @to, and points the slices of @record there. */
void idem__op_copy_record(struct idem_record *record, uint8_t *to);

/* ---- The inside of attempts, which a begin gives to its caller: attempt.c ---- */

struct idem__attempt {
    struct idem_attempt pub;    /* First: what callers hold points here. */
    struct idem_store *store;   /* NULL: it lives in a caller's transaction. */
    struct idem_record *record; /* pub.record; its slices point to the bytes
                                   after it ... */
    uint8_t *args; /* ... or into long arguments of an op, or names. */
    struct idem_op *planned; /* The end that a statement of the caller's writes,
                                whose values point there; or NULL. */
    uint8_t nonce[16];
    int64_t lease_ms;          /* As asked for at begin. */
    int64_t lease_end_boot_ms; /* As this process counts it; atomic, because a
                                  renewal may come from another thread. */
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

/* An empty attempt at a key, or NULL. A begin gets one before it is submitted: if
 * memory ran out after the claim, nobody would own the key. */
struct idem__attempt *idem__attempt_create(struct idem_slice scope,
                                           struct idem_slice key);

/* The attempt of a begin that answered 0; it takes the record, and what that
 * points to, away from @op. */
struct idem_attempt *idem__attempt_of_op(struct idem_op *op);

/* Gives the attempt the record of @op, a verb that changed it; destroys @op. */
void idem__attempt_update(struct idem_attempt *attempt, struct idem_op *op);

/* Counts the lease anew after the renewal @op: from before it was requested, and never
 * shorter than before, unless the record shows that another holder of the token has
 * ended it in between. A renewal counts by the boot clock of the process that requests
 * it. */
void idem__attempt_count_lease(struct idem__attempt *a,
                               const struct idem_op *op);

#endif
