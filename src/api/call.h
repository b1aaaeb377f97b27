/* How the blocking verbs run one op. */
#ifndef IDEM_API_CALL_H
#define IDEM_API_CALL_H

#include <idem/store.h>

/* Submits @op and waits for its answer, asking again (the same nonce) while it
 * is unknown whether it was applied, until the store's timeout is over. On
 * success *@op is answered. On failure it was destroyed, or left to the store;
 * *@op is NULL then. */
int idem__call(struct idem_store *store, struct idem_op **op,
               struct idem_error *error);

/* The boot clock of the store's host; IDEM_NEVER when it does not answer. */
int64_t idem__boot_ms(const struct idem_store *store);

/* The ops of idem_expire(), and of idem_resolve() and idem_reopen(). */
int idem__op_expire(const struct idem_attempt *attempt, struct idem_op **ret_op,
                    struct idem_error *error);
int idem__op_resolve(const struct idem_store *store, struct idem_slice scope,
                     struct idem_slice key, uint64_t fence,
                     struct idem_slice who, const struct idem_outcome *outcome,
                     unsigned flags, struct idem_op **ret_op,
                     struct idem_error *error);

#endif
