/* Functions of a record beyond its stored form, for the rest of the library. */
#ifndef IDEM_CORE_RECORD_H
#define IDEM_CORE_RECORD_H

#include <idem.h>

/* The greatest fence of an imported record: later attempts of its key, and of every key
 * after a purge, need greater ones. */
#define IDEM__FENCE_IMPORT_MAX (((uint64_t)1 << 61) - 1)

/* The fault in the members that every record has; NULL: none. */
const char *idem__record_fault(const struct idem_record *record);

#endif
