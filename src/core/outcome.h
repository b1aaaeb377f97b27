/* Outcomes before they are recorded. */
#ifndef IDEM_CORE_OUTCOME_H
#define IDEM_CORE_OUTCOME_H

#include <idem.h>

/* True for a status that an attempt can end with. */
bool idem__is_end(enum idem_status status);

/* Checks that an attempt can end with @outcome. 0 or IDEM_EINVALID. */
int idem__outcome_check(const struct idem_outcome *outcome,
                        struct idem_error *error);

/* The work is done, and must not be left unrecorded because something is long: a
 * result of more than @result_max bytes, or one that is not to be kept, becomes a
 * tombstone, a text is cut. Points to what @outcome points to. */
struct idem_outcome idem__outcome_bounded(const struct idem_outcome *outcome,
                                          size_t result_max);

#endif
