/* Checks a decoded record, for the rest of the library. */
#ifndef IDEM_CORE_RECORD_H
#define IDEM_CORE_RECORD_H

#include <idem.h>

/* The highest fence that an imported record may have. Later attempts of its key, and of
 * every key after a purge, need higher ones. */
#define IDEM__FENCE_IMPORT_MAX (((uint64_t)1 << 61) - 1)

/* Names the first invalid value in @record. NULL: all are valid. */
const char *idem__record_fault(const struct idem_record *record);

#endif
