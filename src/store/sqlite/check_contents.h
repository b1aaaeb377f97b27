/* check_contents.h: the records, indexes and pages inside a file. */
#ifndef IDEM_STORE_SQLITE_CHECK_CONTENTS_H
#define IDEM_STORE_SQLITE_CHECK_CONTENTS_H

#include "core/finding.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

#define IDEM__CHECK_PUT_BACK                                                   \
    "Stop all users and put back a copy; see idem-store(7), Back-up."

/* Free space that a check leaves on the disk of the copy. */
#define IDEM__CHECK_ROOM_LOW (UINT64_C(64) << 20)

/* The space that this user may still write in @directory; UINT64_MAX: unknown. */
uint64_t idem__check_room(const char *directory);

/* Copies the database that @store has open to a temporary file, and tells of the
 * records and the pages there. @info: of the store. */
void idem__check_contents(const struct idem__findings *to,
                          const struct idem_check_options *options,
                          struct idem__sqlite_store *store,
                          const struct idem_sqlite_info *info);

#endif
