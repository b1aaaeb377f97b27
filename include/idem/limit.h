/* idem/limit.h: rate limits that count a request once.
 *
 * A plain counter also counts retries, and a window chosen by the present time gives a
 * retry after midnight another answer. Here the request has an id and the time of its
 * event. That time chooses the window, and every caller that asks about the same
 * request in the same window gets the first decision.
 *
 *     struct idem_limit_request limit = IDEM_LIMIT_INIT;
 *     limit.name = idem_str("uploads");
 *     limit.subject = idem_str("u1");           the user that is limited
 *     limit.request = idem_str("r1");           the id of the event
 *     limit.at_ms = 1510067704370;              the time of the event
 *     limit.max = 8;
 *     limit.per_ms = IDEM_LIMIT_DAY;
 *
 *     idem_limit(store, &limit, &limited, &error)
 *     limited.admitted, limited.remaining
 *
 * However many requests run at the same time, in any number of processes, the store
 * admits no more than the limit in one window, and refuses no request for which there
 * was room. After an error of kind RETRY it is safe to ask again: the request counts
 * once.
 *
 * Name, subject and window together identify a limit: another per_ms or start_ms makes
 * another limit, which counts from zero. You may change max at any time: requests
 * counted in the window stay counted, and a repeated request gets its first decision. A
 * smaller number refuses requests until the count is below it; a larger one admits the
 * difference.
 *
 * The store remembers decisions until late_ms after the end of the window; later calls
 * delete them at least an hour after that. An unknown request whose window has been
 * over for longer gets IDEM_EINVALID, because the store no longer knows whether it
 * counted that request. So does a request from the future (IDEM_LIMIT_AHEAD_MS).
 */
#ifndef IDEM_LIMIT_H
#define IDEM_LIMIT_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define IDEM_LIMIT_NAME_MAX 255 /* Bytes of name, subject and request. */
#define IDEM_LIMIT_MAX 1000000000000LL

/* Lengths of windows, in ms. Windows follow each other without a gap. One of them
 * begins at start_ms, which is 1970-01-01T00:00:00Z by default, so that a day is a day
 * in UTC, and seven days begin on a Thursday. A caller with a calendar sets the start
 * and the length of the window of at_ms itself: 31 days for July, 23 hours for a day in
 * Berlin on which clocks are set forward. */
#define IDEM_LIMIT_SECOND 1000LL /* The shortest. */
#define IDEM_LIMIT_MINUTE 60000LL
#define IDEM_LIMIT_HOUR 3600000LL
#define IDEM_LIMIT_DAY 86400000LL
#define IDEM_LIMIT_PER_MAX (366 * IDEM_LIMIT_DAY)

/* How far ahead of the store's time an event may be. */
#define IDEM_LIMIT_AHEAD_MS (15 * IDEM_LIMIT_MINUTE)

/* How many refusals a window remembers of requests with a cost of more than 1 for which
 * there was some room, but not enough. Beyond that, such a request is still refused,
 * but may get another remaining count. */
#define IDEM_LIMIT_REFUSALS 100

struct idem_limit_request {
    size_t size;               /* sizeof, set by IDEM_LIMIT_INIT. */
    struct idem_slice name;    /* Of the limit. */
    struct idem_slice subject; /* The subject that is limited: a user, a
                                  tenant. */
    struct idem_slice request; /* The same for each retry. */
    int64_t at_ms;    /* When the event happened; the same for each retry. */
    int64_t per_ms;   /* Length of the window. */
    int64_t start_ms; /* When a window begins, not after at_ms; 0: in UTC. */
    uint64_t max;     /* Admitted in one window. */
    uint64_t cost;    /* Of this request; 1. */
    int64_t late_ms;  /* How long after the end of its window a request may
                         still come; 24 h. The same for all requests of a
                         limit. */
};

#define IDEM_LIMIT_INIT                                                        \
    {                                                                          \
        sizeof(struct idem_limit_request), {NULL, 0}, {NULL, 0}, {NULL, 0}, 0, \
            0, 0, 0, 1, IDEM_LIMIT_DAY                                         \
    }

/* The decision about a request. */
struct idem_limited {
    bool admitted;
    bool repeated; /* It was made before, perhaps by an earlier copy of this
                      very call. */
    uint64_t remaining; /* What is left after it. */
    int64_t start_ms;   /* The window: from here ... */
    int64_t end_ms;     /* ... to before this. */
};

/* Decides about one request. A decision to admit is durable when this returns.
 *
 * IDEM_EINVALID      @limit is not valid, or its window is too far away.
 * IDEM_EUNAVAILABLE  The store counted nothing.
 * IDEM_EUNKNOWN      The store may have counted the request: ask again.
 * IDEM_EFULL, IDEM_EDENIED, IDEM_ECONFIG, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_limit(struct idem_store *store, const struct idem_limit_request *limit,
               struct idem_limited *ret_limited, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Creates the op of idem_limit() for a queue; the caller destroys *@ret_op.
 *
 * IDEM_EINVALID, IDEM_ENOMEM
 */
struct idem_op;
int idem_op_limit(const struct idem_limit_request *limit,
                  struct idem_op **ret_op, struct idem_error *ret_error);

/* Returns the decision of an op of idem_op_limit() that answered 0; else NULL. Valid
 * until the op is submitted again or destroyed. */
const struct idem_limited *idem_op_limited(const struct idem_op *op);

/* HTTP fields about a decision, as draft-ietf-httpapi-ratelimit-headers-10 has
 * them; each a NUL-terminated value. */
struct idem_limit_http {
    char policy[896];     /* RateLimit-Policy: "uploads";q=8;w=86400 */
    char limit[896];      /* RateLimit: "uploads";r=7;t=3600 */
    char retry_after[24]; /* Retry-After: 3600; empty if admitted. */
};

/* Fills in the fields for a response that is sent at @now_ms, by the clock of the
 * sender. Percent-encodes bytes of the name that are not printable ASCII. Contacts no
 * store.
 *
 * IDEM_EINVALID  @limit is not valid.
 */
int idem_limit_fields(const struct idem_limit_request *limit,
                      const struct idem_limited *limited, int64_t now_ms,
                      struct idem_limit_http *ret_fields,
                      struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
