/* Whether there is a loader of libraries. */
#ifndef IDEM_BASE_LOADER_H
#define IDEM_BASE_LOADER_H

#include <stdbool.h>

/* False in a static program, which has what it needs inside: it must not offer a
 * library that could be installed. Defined by loader.c, or no_loader.c. */
bool idem__has_loader(void);

#endif
