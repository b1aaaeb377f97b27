/* owner.h: the names of the caller. */
#ifndef IDEM_CLI_REQUEST_OWNER_H
#define IDEM_CLI_REQUEST_OWNER_H

#include <idem.h>

/* "HOST/PID" with the process @pid, or what --owner or $IDEM_OWNER says. */
void cli_owner(const char *given, long pid, char buf[IDEM_OWNER_MAX + 1]);

/* The person who decides: "USER@HOST", or what --who or $IDEM_OWNER says. */
void cli_who(const char *given, char buf[IDEM_OWNER_MAX + 1]);

#endif
