/* The inside of attempts: what a begin gives to its caller. */
#ifndef IDEM_QUEUE_ATTEMPT_H
#define IDEM_QUEUE_ATTEMPT_H

#include <idem/store.h>

struct idem__attempt {
    struct idem_attempt pub;  /* First: what callers hold points here. */
    struct idem_store *store; /* NULL: it lives in a caller's transaction. */
    struct idem_op *op;       /* Holds pub.record; NULL: own_record does. */
    struct idem_record own_record;
    uint8_t nonce[16];
    int64_t lease_ms;          /* As asked for at begin. */
    int64_t lease_end_boot_ms; /* As this process counts it; atomic, because a
                                  renewal may come from another thread. */
    uint8_t names[IDEM_SCOPE_MAX + IDEM_KEY_MAX];
    struct idem_slice scope; /* Into names. */
    struct idem_slice key;
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

/* The attempt of a begin that answered 0; takes @op over. NULL: no memory, @op
 * stays the caller's. */
struct idem_attempt *idem__attempt_create(struct idem_op *op);

/* Makes @op the holder of the attempt's record, after a verb that changed it. */
void idem__attempt_update(struct idem_attempt *attempt, struct idem_op *op);

#endif
