/* Random bytes of the system: getrandom(2). */
#ifndef IDEM_BASE_RANDOM_H
#define IDEM_BASE_RANDOM_H

#include <stddef.h>

/* Fills @buf with @len bytes that nobody can foretell. 0, or -1 with errno. */
int idem__random(void *buf, size_t len);

#endif
