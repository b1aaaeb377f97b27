/* One file under two names is two stores: is there only one? */
#ifndef IDEM_STORE_SQLITE_NAMES_H
#define IDEM_STORE_SQLITE_NAMES_H

#include <idem.h>

/* Looks at the regular file @path in @directory.
 *
 * IDEM_ECONFIG  It has several names, or is mounted without its directory.
 */
int idem__names_check(const char *path, const char *directory,
                      struct idem_error *error);

#endif
