/* Ends an attempt, or resolves a record, with the function of the API for the outcome. */
#ifndef TEST_VERBS_H
#define TEST_VERBS_H

#include <idem.h>

/* Calls idem_complete(), idem_fail(), idem_release(), idem_retry() or idem_unknown(), by
 * the status of @outcome. */
int verb_end(struct idem_attempt *attempt, const struct idem_outcome *outcome);

/* Calls idem_reopen() if @outcome is RETRY, and idem_resolve() otherwise. */
int verb_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, const char *who,
                 const struct idem_outcome *outcome, unsigned flags);

#endif
