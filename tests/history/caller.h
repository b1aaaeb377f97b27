/* One that calls a store again and again, and writes down what it is told. */
#ifndef HISTORY_CALLER_H
#define HISTORY_CALLER_H

#include "write.h"

enum {
    CALLER_HELD = 4 /* Attempts that it keeps hold of. */
};

struct caller_key {
    char name[40];
};

struct caller {
    struct idem_store *store;
    struct writer writer;
    unsigned ops;  /* Calls to make. */
    unsigned keys; /* At any time. */
    int64_t lease_ms;
    uint64_t seed;
    struct caller_held {
        struct idem_attempt *attempt; /* NULL: free. */
        struct call_id id;            /* Of its begin. */
        struct caller_key key;
    } held[CALLER_HELD];
};

/* Makes its calls, with pauses: most of them short, a few longer than a lease. */
void caller_run(struct caller *caller);

#endif
