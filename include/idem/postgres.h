/* idem/postgres.h: the store in PostgreSQL, for many machines.
 *
 *     postgres://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]
 *
 * "postgresql:" means the same. A URL takes all parameters of libpq, and libpq also
 * reads its other settings: the environment, a service file, a password file. Our own
 * options:
 *
 *     schema=NAME     where the tables are: a-z 0-9 _ ("idem")
 *     cache=TIME      replay a completed record from memory (cache_max) until so long, 1h
 *                     at most, after it was read; meanwhile the store does not see what
 *                     other processes do to that record, or that they moved the store
 *     prepare=no      no named statements: for PgBouncer in transaction mode
 *     clock=host      use the clock of this machine, not the server's: for tests, and
 *                     for a host whose clock is better kept than the server's
 *
 * A connection to another machine uses TLS, and verifies name and certificate
 * (sslmode=verify-full), unless sslmode is set somewhere that libpq reads.
 *
 * The library waits for the server only in functions that may block; but libpq waits
 * when it looks up a host name (with IDEM_OPEN_THREAD, in a thread). One connection
 * serves all callers of a handle. docs/postgresql.md lists which servers keep which
 * promise, and the rights that a role needs.
 */
#ifndef IDEM_POSTGRES_H
#define IDEM_POSTGRES_H

#include <idem.h>
#include <idem/check.h>
#include <idem/statement.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct idem_store_kind;

/* The kinds of "postgres:" and "postgresql:", for idem_kind_register(). */
extern const struct idem_store_kind idem_postgres_kind;
extern const struct idem_store_kind idem_postgresql_kind;

/* idem_store_lease_min_ms() of these stores. An owner stops 2 s before its lease ends;
 * the other half leaves time to renew it. */
#define IDEM_POSTGRES_LEASE_MIN_MS 4000

/* Like idem_open(), with the part of the URL after "postgres:". The store connects at
 * its first op.
 *
 * IDEM_EINVALID  @place cannot be read, or options are out of range.
 * IDEM_ECONFIG   A service in @place does not exist.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_postgres_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error);

/* Creates the schema and the tables in one transaction. Does not change existing
 * tables, and sets *@ret_created to whether it created any; @ret_created may be NULL.
 *
 * Blocks: for each address of each host, for connect_timeout (5 s unless it is set),
 * and then until the server has been silent for 15 s. If a commit gets no answer,
 * returns IDEM_EUNKNOWN: call again.
 *
 * IDEM_EINVALID, IDEM_ECONFIG, IDEM_EDENIED, IDEM_EFULL, IDEM_EUNAVAILABLE,
 * IDEM_EUNKNOWN, IDEM_ENOMEM
 */
int idem_postgres_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error);

/* Writes the SQL that creates the schema and the tables of @place, NUL-terminated, to
 * @buf of @cap bytes, for use with another tool.
 *
 * IDEM_EINVALID  @place cannot be read, or @cap is less than IDEM_POSTGRES_SQL_MAX.
 * IDEM_ENOMEM
 */
#define IDEM_POSTGRES_SQL_MAX 8192
int idem_postgres_template(const char *place, char *buf, size_t cap,
                           struct idem_error *ret_error);

/* Checks the database: that it answers, its version, the schema and the rights in it,
 * its durability settings, replicas and clock, and that records can be trusted. Reports
 * each finding to @each, and changes nothing. @options may be NULL. Blocks as
 * idem_postgres_create() does, and for up to 35 s while it counts all rows; it reports
 * checks that it left out as IDEM_GRADE_SKIP.
 *
 * IDEM_EINVALID, IDEM_ENOMEM. Every other error is a finding.
 */
int idem_postgres_check(const char *place,
                        const struct idem_check_options *options,
                        idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error);

/* Facts about an open store. The texts belong to the store. */
struct idem_postgres_info {
    size_t size; /* sizeof, set by IDEM_POSTGRES_INFO_INIT. */
    const char *schema;
    const char *endpoint; /* HOST:PORT/DATABASE */
    uint64_t connections; /* Connections made or tried. */
    uint64_t round_trips; /* Without those that connect. */
    uint64_t requests;    /* Sent in these round trips. */
};
#define IDEM_POSTGRES_INFO_INIT                                                \
    {                                                                          \
        sizeof(struct idem_postgres_info), NULL, NULL, 0, 0, 0                 \
    }

/* Reads the facts and counts of an open store. Any thread may call it at any time.
 *
 * IDEM_EINVALID  @store is not a PostgreSQL store, or the size of *@ret_info is not
 *                set.
 */
int idem_postgres_inspect(struct idem_store *store,
                          struct idem_postgres_info *ret_info,
                          struct idem_error *ret_error);

/* ---- Effect and record in one commit ----------------------------------- */

/* A program can commit an effect in the same database together with the end of its
 * attempt, on its own connection, with its own driver:
 *
 *     idem_begin(...)                                    STARTED
 *     idem_postgres_completion(attempt, &result, &statement, &error)
 *     BEGIN; the caller's own changes; the statement; COMMIT
 *     idem_attempt_recorded(attempt)
 *
 * One commit makes both durable, so an attempt without an end has had no effect: with
 * IDEM_RERUN such effects happen exactly once. This holds only for changes of that
 * database.
 *
 * The statement is valid for this attempt only; renewals before it runs do no harm. It
 * returns one row. If another attempt or a person owns the record by then, or the
 * attempt has ended, it fails (22P02, with a message), and the transaction can only be
 * rolled back, so the caller need not check counts of rows. It fails in the same way
 * once the retention is over, which counts from idem_postgres_completion(): the record
 * would count as absent, and the next caller would make the effect again. Then request
 * another statement. In a transaction with stricter isolation than READ COMMITTED, a
 * renewal makes it fail with 40001: begin the transaction anew, with the same
 * statement.
 *
 * Run the statement last: after it, renewals of the attempt and other callers of the
 * key wait until the transaction ends. */

/* Returns the statement that completes @attempt with @result (NULL: an empty one), in
 * the schema of its store. Its values and text belong to the attempt, and are valid
 * until idem_attempt_recorded(), another idem_postgres_completion() or
 * idem_attempt_destroy(); keep the store open as long. The end of the work, and the
 * retention, count from this call. It writes nothing, and does not contact the database
 * if this handle began the attempt; if the attempt is lost, the statement fails.
 *
 * A rollback leaves the attempt as it was: request another statement, or end the
 * attempt in another way. If the answer to a COMMIT is lost, run the transaction again
 * with the same statement. If the first commit succeeded, the statement fails, and
 * idem_begin() returns the outcome.
 *
 * IDEM_ELOST         Another attempt or a person owns the record now, or an outcome is
 *                    on record. (Only if this call read the record.)
 * IDEM_EINVALID      The attempt was not STARTED, its store is not in PostgreSQL, or
 *                    @result is too long.
 * IDEM_EUNAVAILABLE, IDEM_ECONFIG, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_postgres_completion(struct idem_attempt *attempt,
                             const struct idem_result *result,
                             struct idem_statement *ret_statement,
                             struct idem_error *ret_error)
    __attribute__((warn_unused_result));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
