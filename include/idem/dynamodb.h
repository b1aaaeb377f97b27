/* idem/dynamodb.h: the store for many machines, one DynamoDB table. */
#ifndef IDEM_DYNAMODB_H
#define IDEM_DYNAMODB_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Opens the store in a table. @place is what stands behind "dynamodb:" in the URL
 * of idem_open(), whose errors it has:
 *
 *     //TABLE?region=eu-west-1&endpoint=http://127.0.0.1:8000&...
 *
 *     region     else AWS_REGION, AWS_DEFAULT_REGION, the profile's, or that of
 *                this instance
 *     endpoint   else AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, the
 *                profile's, or the service's own for the region
 *     index      off: the table has no index "open"; a list scans the table
 *     pack       off: large results are not packed with zstd
 *     clock      host: the store's time is this machine's clock, which is known
 *                to be right; else it is learned from the service's answers
 *     writer     of a global table: the one region whose processes write; any
 *                other opens it for reading only (IDEM_OPEN_READONLY)
 *     insecure   yes: http:// to another machine than this is wanted
 *
 * A "%" and two hexadecimal digits stand for one byte. Credentials come from where
 * every program for AWS looks for them; idem-dynamodb(7) has the list. This is the
 * one store that reads the environment and AWS's files, and that has a thread
 * without being asked: a short-lived one while it fetches credentials.
 *
 * Opening asks nothing of the service: what is wrong with the table, or that there
 * are no credentials, shows at the first operation. It loads libcurl; where nothing
 * names a region, it waits some seconds at most for what the instance says.
 *
 * IDEM_EINVALID  @place is not of this form.
 * IDEM_ECONFIG   No region, half a pair of keys, no libcurl, an endpoint that may
 *                not be used, a file of AWS's that cannot be read, or another
 *                region is the one that writes.
 * IDEM_ENOMEM
 */
int idem_dynamodb_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error);

/* What the store has done since it was opened. */
struct idem_dynamodb_info {
    size_t size;       /* sizeof, set by IDEM_DYNAMODB_INFO_INIT. */
    const char *table; /* These three until the store is closed. */
    const char *region;
    const char *endpoint; /* Its URL. */
    uint64_t requests;    /* Answered or given up. */
    uint64_t sends;       /* Copies of them that were sent. */
    uint64_t connections;
    bool clock_known;     /* The service's time was learned ... */
    int64_t clock_ms;     /* ... and is this ... */
    int64_t clock_err_ms; /* ... plus or minus this ... */
    int64_t clock_off_ms; /* ... and this machine's clock is ahead by this. */
};
#define IDEM_DYNAMODB_INFO_INIT                                                \
    {                                                                          \
        sizeof(struct idem_dynamodb_info), NULL, NULL, NULL, 0, 0, 0, false,   \
            0, 0, 0                                                            \
    }

/* IDEM_EINVALID  The store is no DynamoDB store, or the size is not set.
 * IDEM_EUNAVAILABLE  The clock does not answer.
 */
int idem_dynamodb_inspect(struct idem_store *store,
                          struct idem_dynamodb_info *ret_info,
                          struct idem_error *ret_error);

/* Makes the table that @place names: the key "id", the index "open" (unless
 * index=off), TTL on the attribute "ttl", paid by request; and waits until it can
 * be used. A table that is there already keeps its data and its shape (only its
 * TTL is set where there is none): *@ret_created (may be NULL) is false then.
 *
 * The errors of idem_dynamodb_open(), and:
 * IDEM_EDENIED       These credentials may not do that.
 * IDEM_EUNAVAILABLE  The service is away, or takes longer than two minutes.
 */
int idem_dynamodb_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error);

/* Adds up approximate limits (IDEM_LIMIT_APPROXIMATE) from the table's stream, whose
 * view must be NEW_IMAGE or have it: @event is an event as Lambda gives it, {"Records":
 * [...]}, or the answer of GetRecords. An event that comes a second time, as it was,
 * counts once. *@ret_requests (may be NULL): the requests of limits that were in it.
 *
 * The errors of idem_dynamodb_open(), and:
 * IDEM_EINVALID      It is no such event.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN  Give the same event again.
 */
int idem_dynamodb_limit_sum(const char *place, struct idem_slice event,
                            uint64_t *ret_requests,
                            struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
