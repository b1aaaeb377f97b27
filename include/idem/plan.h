/* plan.h: effect and record in one transaction of SQLite, by statements that the caller
 * runs.
 *
 * For programs that can give this library no connection and cannot load its extension:
 * their driver hides the handle, has an SQLite of its own without extensions, or works
 * asynchronously. The caller reads one row, idem_plan() decides and says what is to be
 * written, and the caller writes it, all in the transaction of its own changes:
 *
 *     idem_op_begin(&request, &op, &error)      or idem_op_end(attempt, ...),
 *     |                                         idem_op_renew(attempt, ...)
 *     BEGIN IMMEDIATE
 *     idem_plan_read(op, &query)                run query: one row
 *     idem_moment_read(&moment, &error)
 *     idem_plan(op, row, IDEM_PLAN_COLUMNS, &moment, &writes, &error)
 *     idem_writes_at(writes, 0), (writes, 1)    run each, until there is none
 *     idem_op_verdict(op), idem_op_take_attempt(op, &attempt)
 *     |
 *     +-- IDEM_STARTED   change the database; then the same from BEGIN on with an
 *     |                  idem_op_end(), and COMMIT
 *     +-- IDEM_REPLAY    ROLLBACK; attempt->record->result is the outcome
 *     +-- ...            ROLLBACK
 *
 * The tables are those of idem_sqlite_begin_in() in <idem/sqlite.h> and of mod_idem,
 * and so are the promises: what one of them has recorded is replayed by the others.
 * idem_plan_table() has the statements that make them.
 *
 * Nothing here opens, reads or writes anything, but for idem_moment_read(), which reads
 * the clocks and asks for random bytes. What idem_plan() answers depends on its
 * arguments alone.
 */
#ifndef IDEM_PLAN_H
#define IDEM_PLAN_H

#include <idem/queue.h>
#include <idem/statement.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* The @n-th statement, from 0 on, that makes the tables, unless they are there; NULL
 * after the last. To be run one by one, once in the life of the database, or at each
 * start of the program. They have no parameters. */
const char *idem_plan_table(size_t n);

/* The columns of the row that idem_plan() is given. */
#define IDEM_PLAN_COLUMNS 16

/* The query that gives the row for @op; valid until @op is destroyed. The row is given
 * also where the key has no record: most of its columns are NULL then. No row at all:
 * the tables are empty, run those of idem_plan_table().
 *
 * IDEM_EINVALID  @op is not a begin, an end or a renewal, or it gave its attempt away.
 */
int idem_plan_read(const struct idem_op *op,
                   struct idem_statement *ret_statement);

/* The moment of a decision. */
struct idem_moment {
    struct idem_clock_reading clock; /* Now. */
    uint8_t nonce[16];               /* Random: by it an attempt is known. */
};

/* Reads the clocks of this host, and asks it for random bytes. Once for each plan.
 *
 * IDEM_EUNAVAILABLE  It does not answer.
 */
int idem_moment_read(struct idem_moment *ret_moment,
                     struct idem_error *ret_error);

/* What is to be written. */
struct idem_writes;

/* Decides @op on @row, the row that the query of idem_plan_read() gave in this
 * transaction: its @row_len values, in their order, of which none is kept. @op is
 * answered then, as if it had come back through a queue, and *@ret_writes is what is to
 * be written. The answer holds once that was written and committed: a plan that is not
 * carried out never was. The caller destroys @op and the writes, in any order.
 *
 * In a transaction that was begun with BEGIN IMMEDIATE nobody comes between the row and
 * the writes. Where somebody does, a write changes no row, or fails because its record
 * is there already: never carry out a part of a plan.
 *
 * IDEM_ELOST     Of an end or a renewal: another attempt, or a person, owns the record
 *                now, or it was ended before with other content, or it is gone.
 * IDEM_EINVALID  @op is not one of those of idem_plan_read(), or the row is not that of
 *                its query.
 * IDEM_ECONFIG   The tables are of another version of idem.
 * IDEM_ECORRUPT  The record or the clock cannot be trusted.
 * IDEM_ENOMEM
 */
int idem_plan(struct idem_op *op, const struct idem_value *row, size_t row_len,
              const struct idem_moment *moment, struct idem_writes **ret_writes,
              struct idem_error *ret_error) __attribute__((warn_unused_result));

/* The @n-th statement to run, from 0 on; NULL: there are no more, and of a replay there
 * are none. Valid until @writes are destroyed. */
const struct idem_statement *idem_writes_at(const struct idem_writes *writes,
                                            size_t n);

/* NULL is allowed. */
void idem_writes_destroy(struct idem_writes *writes);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
