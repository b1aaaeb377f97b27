/* A row of a table as values: what its columns must be, wherever they were read. */
#ifndef IDEM_STORE_SQLITE_ROW_H
#define IDEM_STORE_SQLITE_ROW_H

#include "contract/parts.h"

/* The row of the clock. */
struct idem__clock_row {
    struct idem_anchor anchor;
    int64_t last_ms;     /* The newest time in the file that is sure. */
    int64_t fence_floor; /* See struct idem_now. */
};

/* No checksum covers the row; but its numbers are added to, and must leave room for
 * that. True: they do; what an older program left out is filled in. */
bool idem__clock_row_settle(struct idem__clock_row *row);

/* True if the time in the row has become so old that @now is to be saved: by so much a
 * reboot with a slow wall clock can take it back. Saving it costs one more page in a
 * commit. */
bool idem__clock_row_is_due(int64_t last_ms, const struct idem_now *now);

/* The part of the store's time that is sure: what is saved of it never goes back. */
static inline int64_t idem__clock_sure_ms(const struct idem_now *now)
{
    return now->store_ms - now->doubt_ms;
}

/* The columns beside the head are for SQL; whoever changes them by hand must not change
 * what we believe.
 *
 * IDEM_ECORRUPT  They do not match @record, which was decoded from the head.
 */
int idem__row_check(const struct idem_record *record, int64_t status,
                    int64_t deadline, struct idem_error *error);

/* IDEM_ECORRUPT, with the sentence for columns that do not match. */
int idem__row_differs(struct idem_error *error);

#endif
