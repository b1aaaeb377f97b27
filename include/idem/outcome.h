/* idem/outcome.h: a table that maps the endings of work to outcomes.
 *
 * Every front end takes the same table: entries separated by spaces, of which the first
 * that matches wins.
 *
 *     0,1=complete 42=fail 75=release *=retry           exit statuses
 *     401,408,429,503=release 500-599=retry none=retry  statuses of HTTP
 *
 *     entry      matches with commas between them, "=", an outcome
 *     match      42        a status
 *                64-78     a range of them
 *                5xx       statuses of HTTP by their first digit
 *                Declined  the name of an error of a Lambda function; a * in it
 *                          is any characters, none among them: Exit.4*
 *                *         every status, and every error that has a name
 *                none      an ending without a status: a signal, a time limit, a
 *                          response that was cut or cannot be read
 *     outcome    complete  it is done; this is its result
 *                fail      it failed for good: a person must look
 *                release   nothing happened: the next caller starts anew
 *                retry     it may have happened: the next caller takes over
 *                unknown   it may have happened: a person must look
 *
 * A status that no entry matches gets the default: exit status 75 is a release; 401,
 * 407, 408, 425, 429 and 503 of HTTP are a release, 502 and 504 unknown; all other
 * statuses complete. An ending without a status is unknown under hold, and a retry
 * under rerun; a table may make it unknown, retry or fail, because only the work itself
 * can report that it was done, or that nothing happened.
 *
 * An ending that an entry, and not the default, names complete is a success, whatever
 * its status: the metadata of the result records that ("exit 1 complete", "HTTP 404
 * complete") for idem_outcome_succeeded() and idem_outcome_failed().
 *
 * The name of a preset stands for its entries:
 *
 *     jobs       0=complete 75=release *=retry
 *     webhook    2xx=complete 401,407,408,425,429,503=release 4xx=complete *=retry
 */
#ifndef IDEM_OUTCOME_H
#define IDEM_OUTCOME_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Ends the first line of the metadata if an entry named the ending complete. */
#define IDEM_META_COMPLETE " complete"

/* The kind of endings that a table maps. */
enum idem_endings {
    IDEM_ENDINGS_EXIT = 1, /* Exit statuses, 0 to 255. */
    IDEM_ENDINGS_HTTP,     /* Statuses of HTTP, 200 to 599. */
    IDEM_ENDINGS_LAMBDA,   /* Statuses of HTTP, and errors by their names. */
};

struct idem_outcome_table {
    enum idem_endings of;
    const char *text;      /* NULL: the defaults. */
    enum idem_status none; /* Of an ending without a status; 0: no entry, so
                              that the policy decides. */
    uint8_t by_status[600];
};

/* Reads @text, which must stay valid as long as the table is used. NULL: the defaults.
 * The table needs no freeing.
 *
 * IDEM_EINVALID  @text is not a table, an entry in it can never match, or exit status 0
 *                would not complete. The sentence names the entry.
 */
int idem_outcome_table_read(struct idem_outcome_table *ret_table,
                            enum idem_endings of, const char *text,
                            struct idem_error *ret_error);

/* Returns the outcome of @status; 0 if work cannot end with that status. *@ret_named is
 * true if an entry matched, and not a default; @ret_named may be NULL. */
enum idem_status idem_outcome_of_status(const struct idem_outcome_table *table,
                                        int status, bool *ret_named);

/* Returns the outcome of the error @name of a Lambda function; 0: no entry matches. */
enum idem_status idem_outcome_of_error(const struct idem_outcome_table *table,
                                       const char *name);

/* Returns the outcome of an ending without a status, under @policy. */
enum idem_status idem_outcome_of_none(const struct idem_outcome_table *table,
                                      enum idem_on_expired_lease policy);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
