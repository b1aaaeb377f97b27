/* idem/check.h: is a store as it should be?
 *
 * A check looks at everything that a store depends on, and never changes it:
 * the table and the rights of a DynamoDB store, the file and the disk of an
 * SQLite store. It tells what it finds one by one, also what is right, and for
 * all else how to mend it. See idem_sqlite_check() and, in <idem/dynamodb.h>,
 * idem_dynamodb_check().
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
    IDEM_GRADE_SKIP, /* It was not looked at, or not at all of it. */
};

/* A finding; valid during the call only. */
struct idem_finding {
    enum idem_grade grade;
    int code; /* BAD: what kind of error it is, an enum idem_code; or 0. */
    const char *about; /* One word: "table", "index", "file". */
    const char *text;  /* One sentence, without a full stop. */
    const char *mend;  /* The remedy: a command line, unless it ends in a full
                          stop. NULL: nothing. */
};

/* Must not call the library. */
typedef void idem_finding_fn(void *ctx, const struct idem_finding *finding);

/* @done of @all was read; for what may take long, many times a second. All that is
 * returned but 0 stops the check: what was not looked at by then is told as such.
 * Must not call the library. */
typedef int idem_check_progress_fn(void *ctx, uint64_t done, uint64_t all);

struct idem_check_options {
    size_t size; /* sizeof, set by IDEM_CHECK_OPTIONS_INIT. */
    bool quick;  /* Seconds, however large the store is. */
    idem_check_progress_fn *progress; /* May be NULL. */
    void *ctx;                        /* Of progress. */
};
#define IDEM_CHECK_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(struct idem_check_options), false, NULL, NULL                   \
    }

/* Checks the store in the file @path (its options may follow it): that it is
 * there, its file system, who may read and write it, the room on its disk; that
 * it opens, its schema; that every record can be trusted, with its result and
 * its input; that its indexes hold each record once, and nothing else; that the
 * file is whole. Tells @each of what it finds. @options may be NULL.
 *
 * Nothing is changed. The file is copied in one transaction and judged in the copy, so
 * that others write meanwhile and their log can shrink once it is copied. The copy is a
 * temporary file of SQLite's, in SQLITE_TMPDIR, TMPDIR or /var/tmp, as large as the
 * store: only this user may read it, and it is deleted at the end, however the process
 * ends. Its size is a finding before it is made. Where it would leave less than 64 MiB
 * free, nothing is copied, and that is bad (IDEM_EFULL).
 *
 * A quick check copies a file of up to 4096 pages; of a larger one it reads what opening
 * reads, and tells the rest as IDEM_GRADE_SKIP.
 *
 * IDEM_EINVALID  @path is not a place for a store; the size of @options is not set.
 * All else is a finding.
 */
int idem_sqlite_check(const char *path,
                      const struct idem_check_options *options,
                      idem_finding_fn *each, void *ctx,
                      struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
