/* Checks outcomes, and bounds their size, before they are recorded. */
#ifndef IDEM_CORE_OUTCOME_H
#define IDEM_CORE_OUTCOME_H

#include <idem.h>

/* True for a status that an attempt can end with. */
bool idem__is_end(enum idem_status status);

/* Checks that an attempt can end with @outcome. 0 or IDEM_EINVALID. */
int idem__outcome_check(const struct idem_outcome *outcome,
                        struct idem_error *error);

/* Returns @outcome within the limits of a record. The work is done and has to be
 * recorded, even if a part of its outcome is too long: a result of more than @result_max
 * bytes, or one that is not to be kept, becomes a tombstone, and a text is cut. The copy
 * points to the bytes of @outcome. */
struct idem_outcome idem__outcome_bounded(const struct idem_outcome *outcome,
                                          size_t result_max);

#endif
