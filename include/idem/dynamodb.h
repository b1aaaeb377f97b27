/* idem/dynamodb.h: the store for many machines, one DynamoDB table; in libidem-aws. */
#ifndef IDEM_DYNAMODB_H
#define IDEM_DYNAMODB_H

#include <idem.h>
#include <idem/check.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* idem_store_lease_min_ms() of these stores. An owner stops 2 s before its lease ends;
 * the other half leaves time to renew it. */
#define IDEM_DYNAMODB_LEASE_MIN_MS 4000

/* The kind of DynamoDB stores. idem_open() finds it if libidem-aws is linked or
 * installed; a static program passes it to idem_kind_register(). */
struct idem_store_kind;
extern const struct idem_store_kind idem_dynamodb_kind;

/* Opens the store in a table, like idem_open(), with the same errors. @place is the
 * part of the URL after "dynamodb:":
 *
 *     //TABLE?region=eu-west-1&endpoint=http://127.0.0.1:8000&...
 *
 *     region     by default AWS_REGION, AWS_DEFAULT_REGION, or the region of the
 *                profile
 *     endpoint   by default AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, the
 *                endpoint of the profile, or DynamoDB's own in the region
 *     layout     powertools-python, powertools-typescript, lock-token,
 *                idempotency-store or http-idempotency: the table has the layout
 *                of that library or article; no scopes, results up to 120 KiB
 *     key-attr, status-attr, expiry-attr, in-progress-expiry-attr, data-attr,
 *     sort-key-attr, static-pk-value
 *                with a layout: names of attributes that differ from its defaults,
 *                see docs/layouts.md
 *     index      off: the table has no index "open"; a list scans the table
 *     clock      host: the store's time is this machine's clock, which you know
 *                to be right; by default the service's answers tell the time
 *     writer     of a global table: the one region whose processes write; a
 *                process in another opens it with IDEM_OPEN_READONLY
 *     insecure   yes: allow http:// to another machine
 *     cache      a time, at most 1h: replay a completed record from memory (cache_max)
 *                until so long after it was read; meanwhile the store does not see
 *                what other processes do to that record
 *
 * A "%" and two hexadecimal digits encode one byte. Credentials come from the usual
 * places of AWS programs; idem-dynamodb(7) has the list. This store reads the
 * environment and the configuration files of AWS. It is the only store that starts a
 * thread on its own: a short-lived one to fetch credentials.
 *
 * Opening sends no request to DynamoDB: an error of the table, or missing credentials,
 * show at the first operation. It initializes libcurl.
 *
 * IDEM_EINVALID  @place is not of this form.
 * IDEM_ECONFIG   No region; only one of the two access keys; libcurl is too old;
 *                the endpoint is not allowed; a configuration file of AWS cannot
 *                be read; or writer names another region.
 * IDEM_ENOMEM
 */
int idem_dynamodb_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error);

/* Counts since the store was opened. */
struct idem_dynamodb_info {
    size_t size;       /* sizeof, set by IDEM_DYNAMODB_INFO_INIT. */
    const char *table; /* These three are valid until the store is closed. */
    const char *region;
    const char *endpoint; /* Its URL. */
    uint64_t requests;    /* Requests that were answered or given up. */
    uint64_t sends;       /* Copies of them that were sent. */
    uint64_t connections;
    bool clock_known;      /* The next three are set. */
    int64_t clock_ms;      /* The service's time. */
    int64_t clock_err_ms;  /* Its error, at most. */
    int64_t clock_off_ms;  /* How far this machine's clock is ahead of it. */
    uint64_t parts_purged; /* Parts of large results and inputs without a record
                              that purges have deleted. */
};
#define IDEM_DYNAMODB_INFO_INIT                                                \
    {                                                                          \
        sizeof(struct idem_dynamodb_info), NULL, NULL, NULL, 0, 0, 0, false,   \
            0, 0, 0, 0                                                         \
    }

/* Reads the counts of an open store. Any thread may call it at any time.
 *
 * IDEM_EINVALID      The store is not a DynamoDB store, or the size is not set.
 * IDEM_EUNAVAILABLE  The clock cannot be read.
 */
int idem_dynamodb_inspect(struct idem_store *store,
                          struct idem_dynamodb_info *ret_info,
                          struct idem_error *ret_error);

/* ---- Purges of a table ---- */

/* Only the time shows which records are past their retention, so a purge reads the
 * whole table, at half a read unit for each 4 KB, and deletes at a write unit for each
 * KB. The service itself deletes records with a ttl within days, at no cost. */

/* The default of units_per_second: as many as one partition can write. A new table that
 * is billed per request takes four times as many writes and twelve times as many reads. */
#define IDEM_DYNAMODB_PURGE_UNITS 1000

struct idem_dynamodb_purged;

struct idem_dynamodb_purge_options {
    size_t size;  /* sizeof, set by IDEM_DYNAMODB_PURGE_OPTIONS_INIT. */
    uint64_t max; /* Records to delete at most; 0: all. */
    /* The most units to read and write in a second, but for one page; 0:
     * IDEM_DYNAMODB_PURGE_UNITS. */
    uint64_t units_per_second;
    /* Called after each page, unless it is NULL. Stops the purge if it does not
     * return 0. */
    int (*progress)(void *ctx, const struct idem_dynamodb_purged *purged);
    void *ctx;
};
#define IDEM_DYNAMODB_PURGE_OPTIONS_INIT                                       \
    {                                                                          \
        sizeof(struct idem_dynamodb_purge_options), 0, 0, NULL, NULL           \
    }

/* The result of a purge. */
struct idem_dynamodb_purged {
    size_t size;     /* sizeof, set by IDEM_DYNAMODB_PURGED_INIT. */
    uint64_t purged; /* Records that were deleted. */
    /* Deleted parts of large results and inputs without a record. */
    uint64_t parts;
    uint64_t looked;    /* Items that were read. */
    uint64_t throttled; /* Requests that the service throttled; they were
                           repeated. */
    double read_units;  /* As the service reported them. */
    double write_units; /* The same; a refused delete counts as one. */
    bool done;          /* The whole table was read. */
};
#define IDEM_DYNAMODB_PURGED_INIT                                              \
    {                                                                          \
        sizeof(struct idem_dynamodb_purged), 0, 0, 0, 0, 0, 0, false           \
    }

/* Deletes the records of @store's table that are past their retention, and parts of
 * bodies without a record, like idem_purge(), but within a budget of units: after each
 * page of at most 100 items it pauses for as long as the budget demands. A page that
 * is throttled for too long starts again, up to eight times. Deletes are conditional: a
 * record that has changed since it was read stays. A purge that fails midway sets
 * *@ret_purged to what it has done.
 *
 * IDEM_EINVALID  The store is not a DynamoDB store, or a size is not set.
 * IDEM_EUNAVAILABLE, IDEM_ECONFIG, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_dynamodb_purge(struct idem_store *store,
                        const struct idem_dynamodb_purge_options *options,
                        struct idem_dynamodb_purged *ret_purged,
                        struct idem_error *ret_error);

/* Creates the table that @place names, with the key "id", the index "open" (unless
 * index=off) and TTL on the attribute "ttl", billed per request, and waits until it is
 * active. An existing table keeps its data and its settings, except that it gets TTL if
 * it has none; *@ret_created is then false. @ret_created may be NULL.
 *
 * The errors of idem_dynamodb_open(), and:
 * IDEM_EDENIED       These credentials do not allow it.
 * IDEM_EUNAVAILABLE  The service cannot be reached, or takes longer than two minutes.
 */
int idem_dynamodb_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error);

/* Checks the table that @place names: that it exists, its key, index, billing mode,
 * TTL, replicas, backups and deletion protection; the clock of this machine; and the
 * permissions of the credentials. Reports each finding to @each. Changes no record: a
 * request that tests a write permission has a condition that cannot hold, or deletes an
 * item that does not exist. It sends about a dozen requests, and reads no record, so that
 * every check is a quick one and never calls progress. @options may be NULL.
 *
 * The errors of idem_dynamodb_open(), and IDEM_EINVALID for @options as
 * idem_sqlite_check(). Everything else is a finding, also an unreachable service.
 */
int idem_dynamodb_check(const char *place,
                        const struct idem_check_options *options,
                        idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error);

/* ---- Effect and record in one transaction ---- */

/* An effect that is itself a change of DynamoDB tables can be committed together with
 * its record, by one TransactWriteItems: either both are made or neither is, even if the
 * process dies or an answer is lost. The tables must belong to the account and region of
 * the store.
 *
 * The caller's writes are entries of TransactItems, as JSON:
 *
 *     {"Put":{"TableName":"orders","Item":{"id":{"S":"42"}, ...}}}
 *     {"Update":{...}}    {"Delete":{...}}    {"ConditionCheck":{...}}
 *
 * There can be IDEM_DYNAMODB_WRITES_MAX of them, and IDEM_DYNAMODB_WRITES_BYTES_MAX
 * together; the service limits them further (100 items of 4 MB in all, none of them
 * twice). Each needs the permission of its verb on its table, and the record needs
 * PutItem.
 *
 * There are two forms. If the work is only such writes, it is one call:
 *
 *     idem_dynamodb_commit(store, &request, &result, writes, n, &attempt, &commit,
 *                          &error)
 *
 * If other work must be done first, claim the key with idem_begin(), and complete it
 * like this:
 *
 *     idem_begin(store, &request, &attempt, &error)     IDEM_STARTED
 *     ... whatever leads to the writes ...
 *     idem_dynamodb_complete_with(attempt, &result, writes, n, &commit, &error)
 */
enum {
    IDEM_DYNAMODB_WRITES_MAX = 99,
    IDEM_DYNAMODB_WRITES_BYTES_MAX = 4 * 1024 * 1024
};

/* The result of the writes, if the call returns 0. */
struct idem_dynamodb_committed {
    size_t size; /* sizeof, set by IDEM_DYNAMODB_COMMITTED_INIT. */
    /* True: all writes were made, together with the completed record. False: this call
     * made none of them. */
    bool committed;
    /* If not committed: the write whose condition did not hold, from 1 on. 0: the writes
     * are not the reason; the verdict of the attempt is. */
    size_t refused;
    char text[252]; /* The service's reason to refuse that write. */
};
#define IDEM_DYNAMODB_COMMITTED_INIT                                           \
    {                                                                          \
        sizeof(struct idem_dynamodb_committed), false, 0, ""                   \
    }

/* Completes @attempt with @result (NULL: an empty result) and applies @writes in one
 * transaction. If a condition of the writes does not hold, the service writes nothing:
 * this returns 0, *@ret_commit names the write, and the attempt goes on; complete it
 * with other writes, or end it in another way.
 *
 * If the answer is lost, this reads the record, which shows by the attempt's nonce and
 * fence and by the digest of @writes whether the transaction was committed. So you may
 * repeat the same call until you know its outcome.
 *
 * IDEM_ELOST         Another attempt owns the record now; nothing was written.
 * IDEM_EINVALID      Not a DynamoDB store; no or too many writes; a write is not an
 *                    entry of TransactItems; or the attempt was completed before,
 *                    without these writes.
 * IDEM_ECONFIG       The service cannot make one of the writes: the text says which
 *                    and why. Nothing was written.
 * IDEM_EUNKNOWN      The writes may have been made: call again with the same ones.
 * IDEM_EUNAVAILABLE  Nothing was done: the service was too busy, or other writes
 *                    conflicted with these for too long.
 * IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_dynamodb_complete_with(struct idem_attempt *attempt,
                                const struct idem_result *result,
                                const struct idem_slice *writes,
                                size_t writes_len,
                                struct idem_dynamodb_committed *ret_commit,
                                struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Claims the key of @request, makes @writes and records @result (NULL: an empty one),
 * in one transaction: no attempt is ever in progress, and no lease can end. wait_ms must
 * be 0. The caller destroys the attempt.
 *
 *     STARTED   the writes were made, and the result is on record
 *     RELEASED  a condition of the writes did not hold: nothing was written, and
 *               the key is free
 *     REPLAY, BUSY, MISMATCH, FAILED, UNKNOWN
 *               as for idem_begin(); nothing was written
 *
 * The errors of idem_begin() and idem_dynamodb_complete_with(). After IDEM_EUNKNOWN call
 * again: either the record and all writes were made, or none of them.
 */
int idem_dynamodb_commit(struct idem_store *store,
                         const struct idem_request *request,
                         const struct idem_result *result,
                         const struct idem_slice *writes, size_t writes_len,
                         struct idem_attempt **ret_attempt,
                         struct idem_dynamodb_committed *ret_commit,
                         struct idem_error *ret_error)
    __attribute__((warn_unused_result));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
