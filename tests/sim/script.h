/* What the clients of a small world do: few calls, in a fixed order. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "world.h"

/* Two clients, of which the first one works; one key. */
struct script {
    const char *name;
    coro_fn *other; /* What the other one than the worker does. */
    enum idem_on_expired_lease policy;
    enum idem_status end;  /* How work ends. */
    uint32_t failures_max; /* Of a retry, as the next. */
    int64_t retry_after_ms;
    int64_t work_ms; /* Before its renewal, and after. */
    bool forgets;    /* A result is kept no longer than a lease. */
    int64_t wait_ms; /* Of who waits. */
    bool renews;
    bool says_more;           /* After the end it says something else. */
    enum idem_status decides; /* What a person says of it. */
    unsigned flags;           /* Of that person. */
    int64_t looks_ms;         /* When the person looks first. */
};

extern const struct script scripts[];
extern const unsigned scripts_len;

/* What client @no does. */
coro_fn *script_role(const struct script *script, unsigned no);

#endif
