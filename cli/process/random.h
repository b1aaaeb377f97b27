/* random.h: random bytes for nonces, secrets and pauses. */
#ifndef IDEM_CLI_PROCESS_RANDOM_H
#define IDEM_CLI_PROCESS_RANDOM_H

#include <stddef.h>

/* Fills @buf. 0, or -1 with errno. */
int cli_random(void *buf, size_t len);

#endif
