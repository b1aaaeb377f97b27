/* idem store create: making what a store needs before it can be used. */
#ifndef IDEM_CLI_UPKEEP_CREATE_H
#define IDEM_CLI_UPKEEP_CREATE_H

#include <stdbool.h>

/* Makes the store @store_url (NULL: the default) names. Returns an exit status. */
int cli_create(const char *store_url, bool json);

#endif
