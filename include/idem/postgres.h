/* idem/postgres.h: the store in PostgreSQL, for many machines of one's own.
 *
 *     postgres://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]
 *
 * "postgresql:" is the same. All parameters of libpq may be given, and what it reads
 * beside them counts: the environment, a service file, a file of passwords. Options of
 * our own:
 *
 *     schema=NAME     where the tables are: a-z 0-9 _ ("idem")
 *     prepare=no      no named statements: for PgBouncer in transaction mode
 *     clock=host      the time of this machine counts, not the server's: for tests, and
 *                     where a clock is better kept than the server's
 *
 * With another machine TLS is used, and its name and certificate are verified
 * (sslmode=verify-full), unless sslmode is set anywhere that libpq reads it.
 *
 * The library waits for no answer of the server's outside the functions that may block;
 * but a host name is looked up by libpq, which waits for the answer (IDEM_OPEN_THREAD
 * has a thread do so). One connection serves all callers of a handle.
 *
 * docs/postgresql.md says what is promised on which servers, and which rights are
 * needed.
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

/* The shortest lease: an owner stops 2 s before its end. */
#define IDEM_POSTGRES_LEASE_MIN_MS 4000

/* As idem_open(), with the part of the URL after "postgres:". Connects with the first
 * op, not before.
 *
 * IDEM_EINVALID  @place cannot be read, or options are out of range.
 * IDEM_ECONFIG   A service that it names does not exist.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_postgres_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error);

/* Makes schema and tables, in one transaction. Existing tables are left as they are,
 * and *@ret_created (may be NULL) is false then.
 *
 * Blocks: for connect_timeout, 5 s unless it is set, for each address of each host; and
 * for an answer until the server has been silent for 15 s. A commit that is not answered
 * is IDEM_EUNKNOWN: call it again.
 *
 * IDEM_EINVALID, IDEM_ECONFIG, IDEM_EDENIED, IDEM_EFULL, IDEM_EUNAVAILABLE,
 * IDEM_EUNKNOWN, IDEM_ENOMEM
 */
int idem_postgres_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error);

/* The SQL that makes them, for those who make tables with a tool of their own, in @buf
 * of @cap bytes; NUL-terminated. The schema is that of @place.
 *
 * IDEM_EINVALID  @place cannot be read, or @cap is less than IDEM_POSTGRES_SQL_MAX.
 * IDEM_ENOMEM
 */
#define IDEM_POSTGRES_SQL_MAX 8192
int idem_postgres_template(const char *place, char *buf, size_t cap,
                           struct idem_error *ret_error);

/* Checks the database: that it answers, its version, the schema and the rights in it,
 * what the server does before it says that something is on disk, its replicas, its
 * clock; that records can be trusted. Tells @each of what it finds. @options may be
 * NULL. Nothing is changed. Blocks as above, and for 35 s
 * where all rows are counted: what was not looked at then is told as IDEM_GRADE_SKIP.
 *
 * IDEM_EINVALID, IDEM_ENOMEM. All else is a finding.
 */
int idem_postgres_check(const char *place,
                        const struct idem_check_options *options,
                        idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error);

/* Facts about an open store. The texts are the store's. */
struct idem_postgres_info {
    size_t size; /* sizeof, set by IDEM_POSTGRES_INFO_INIT. */
    const char *schema;
    const char *endpoint; /* HOST:PORT/DATABASE */
    uint64_t connections; /* Made, or tried. */
    uint64_t round_trips; /* Over them, beside those that make one. */
    uint64_t requests;    /* In these. */
};
#define IDEM_POSTGRES_INFO_INIT                                                \
    {                                                                          \
        sizeof(struct idem_postgres_info), NULL, NULL, 0, 0, 0                 \
    }

/* Any thread may call it, whatever others do.
 *
 * IDEM_EINVALID  @store is of another kind, or the size of *@ret_info is not set. */
int idem_postgres_inspect(struct idem_store *store,
                          struct idem_postgres_info *ret_info,
                          struct idem_error *ret_error);

/* ---- Effect and record in one commit ----------------------------------- */

/* An effect that is itself a change of the same database can be committed together with
 * the end of its attempt, on the caller's own connection, with its own driver:
 *
 *     idem_begin(...)                                    STARTED
 *     idem_postgres_completion(attempt, &result, &statement, &error)
 *     BEGIN; the caller's own changes; the statement; COMMIT
 *     idem_attempt_recorded(attempt)
 *
 * One commit makes both durable, so an attempt that has no end has had no effect: with
 * IDEM_RERUN such effects happen exactly once. It holds for changes of that database
 * alone.
 *
 * The statement is good for this attempt alone, whatever renewals come between its making
 * and its running. It gives one row. Where another attempt or a person owns the record by
 * then, or the attempt was ended, it fails (22P02, with a sentence), and the transaction
 * can only be rolled back; so nobody has to look at counts of rows. It fails likewise once
 * the retention is over, which counts from its making: the record would count as absent,
 * and the next caller would make the effect again. Ask for another statement then. In a
 * transaction of a stricter isolation than READ COMMITTED a renewal makes it fail with
 * 40001: begin the transaction anew, with the same statement.
 *
 * Nobody else can take the key over from the moment it has run until the transaction
 * ends. Run it last, then: renewals and other callers of the key wait for it. */

/* The statement that completes @attempt with @result (NULL: an empty one), in the schema
 * of its store. Its values and text belong to the attempt, until idem_attempt_recorded(),
 * another idem_postgres_completion() or idem_attempt_destroy(); the store is open as long.
 * The time of the end is that of this call. Nothing is written; where the attempt was
 * begun by this handle, the database is not asked either, and only the statement shows
 * whether it is lost.
 *
 * An attempt whose transaction was rolled back is as it was: ask for another statement, or
 * end it in any other way. Where the answer to a COMMIT was lost, run the transaction again
 * with the same statement. It fails if it was committed: idem_begin() has the outcome.
 *
 * IDEM_ELOST         Another attempt or a person owns the record now, or an outcome is on
 *                    record; where the record was read.
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
