/* What the rest of the library asks of a record beyond its stored form. */
#ifndef IDEM_CORE_RECORD_H
#define IDEM_CORE_RECORD_H

#include <idem.h>

/* What is wrong with the members that every record has; NULL: nothing. */
const char *idem__record_fault(const struct idem_record *record);

#endif
