/* Callers of this process that wait for a record to change. */
#ifndef IDEM_QUEUE_WAITERS_H
#define IDEM_QUEUE_WAITERS_H

#include "contract/store.h"

/* NULL when memory ran out. */
struct idem_waiters *idem__waiters_create(void);
void idem__waiters_destroy(struct idem_waiters *waiters);

/* A mark: take it, look at the record, then sleep until idem__store_changed()
 * was called for @id after the mark, or @ms have gone. */
uint64_t idem__waiters_mark(struct idem_waiters *waiters, const uint8_t *id);
void idem__waiters_sleep(struct idem_waiters *waiters, const uint8_t *id,
                         uint64_t mark, int64_t ms);

#endif
