/* Functions of a record beyond its stored form, for the rest of the library. */
#ifndef IDEM_CORE_RECORD_H
#define IDEM_CORE_RECORD_H

#include <idem.h>

/* No record with a greater fence is taken in from elsewhere: the attempts that
 * follow it, and those of every key after it was purged, need greater ones. */
#define IDEM__FENCE_IMPORT_MAX (((uint64_t)1 << 61) - 1)

/* The fault of the members that every record has; NULL: nothing. */
const char *idem__record_fault(const struct idem_record *record);

#endif
