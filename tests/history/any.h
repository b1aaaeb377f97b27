/* A caller that makes calls of every kind, whatever the answers. */
#ifndef HISTORY_ANY_H
#define HISTORY_ANY_H

#include "caller.h"

enum {
    ANY_HELD = 4 /* Attempts that it keeps hold of. */
};

struct any {
    struct caller caller; /* The first member. */
    struct caller_held held[ANY_HELD];
    unsigned history; /* Its number: the store may have earlier ones. */
    int64_t lease_min_ms;
};

/* Makes the calls of a struct any, with pauses: most of them short, a few longer
 * than a lease. */
void any_run(struct caller *caller);

#endif
