/* idem/check.h: is a store as it should be?
 *
 * A check looks at what a store stands on, and never changes it: the table and
 * the rights of a DynamoDB store, the file and the disk of an SQLite store. It
 * tells what it finds one by one, also what is right, and for all else how to
 * mend it. See idem_dynamodb_check() and idem_sqlite_check().
 */
#ifndef IDEM_CHECK_H
#define IDEM_CHECK_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum idem_grade {
    IDEM_GRADE_OK = 1,
    IDEM_GRADE_WARN, /* It works, and a person should know. */
    IDEM_GRADE_BAD,  /* It does not work, or not as it is promised. */
};

/* What was found; valid during the call only. */
struct idem_finding {
    enum idem_grade grade;
    int code; /* BAD: what kind of error it is, an enum idem_code; or 0. */
    const char *about; /* One word: "table", "index", "file". */
    const char *text;  /* One sentence, without a full stop. */
    const char *mend;  /* What to do: a command line, unless it ends in a full
                          stop. NULL: nothing. */
};

/* Must not call the library. */
typedef void idem_finding_fn(void *ctx, const struct idem_finding *finding);

/* @done of @all pages were read; for what may take long. Must not call the
 * library. */
typedef void idem_check_progress_fn(void *ctx, uint64_t done, uint64_t all);

/* Checks the store in the file @path (its options may stand behind it): that it
 * is there, its file system, who may read and write it, the room on its disk; that
 * it opens, its schema; that the file is whole, and every record in it. Tells
 * @each of what it finds.
 *
 * Nothing is changed. All of the file is read, which may take a while: others work
 * on meanwhile, and @progress (may be NULL) is told now and then.
 *
 * IDEM_EINVALID  @path is no place for a store.
 * IDEM_ENOMEM
 * All else is a finding.
 */
int idem_sqlite_check(const char *path, idem_finding_fn *each,
                      idem_check_progress_fn *progress, void *ctx,
                      struct idem_error *ret_error);

/* Checks the table that @place names: that it is there, its key, its index, how
 * it is paid, its TTL, its replicas, its back-ups, its protection; this machine's
 * clock; what these credentials may do; and large results and inputs that belong to
 * no record. Tells @each of what it finds.
 *
 * Nothing is written: what asks for a right to write has a condition that cannot
 * hold, or deletes what is not there. It takes about a dozen requests, and then
 * reads the table, for five seconds at most.
 *
 * The errors of idem_dynamodb_open(). All else, also that the service is away, is
 * a finding.
 */
int idem_dynamodb_check(const char *place, idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
