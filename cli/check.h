/* idem store check: is the store as it should be? */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include <stdbool.h>

/* Checks the store that @store_url (NULL: the default) names, and prints what was
 * found. Returns an exit status: 0 if nothing is bad. */
int cli_check(const char *store_url, bool json);

#endif
