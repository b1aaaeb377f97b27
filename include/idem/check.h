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

/* The state of a check: @state, of @len bytes, takes the place of the one
 * before. It is told every few seconds, and when the check is stopped. Must not
 * call the library. */
typedef void idem_check_keep_fn(void *ctx, const void *state, size_t len);

#define IDEM_CHECK_STATE_MAX (2 << 20) /* Bytes. */

struct idem_check_options {
    size_t size; /* sizeof, set by IDEM_CHECK_OPTIONS_INIT. */
    bool quick; /* Seconds, however large the store is: a part of it is read. */
    struct idem_slice
        state; /* Go on where a check of this store stopped that was
                                not quick: what keep() was given. Empty: begin. */
    idem_check_progress_fn *progress; /* May be NULL. */
    idem_check_keep_fn *keep;         /* May be NULL. */
    void *ctx;                        /* Of these two. */
};
#define IDEM_CHECK_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(struct idem_check_options), false, {NULL, 0}, NULL, NULL, NULL  \
    }

/* Checks the store in the file @path (its options may follow it): that it is
 * there, its file system, who may read and write it, the room on its disk; that
 * it opens, its schema; that every record can be trusted, with its result and
 * its input; that its indexes hold each record once, and nothing else; that the
 * file is whole. Tells @each of what it finds. @options may be NULL.
 *
 * Nothing is changed. All of the file is read, in slices of a few milliseconds:
 * others write meanwhile, and their log can shrink. The structure of the file's
 * pages, which slices cannot see, is read at last and at once, which keeps the
 * log from shrinking: that is given up when others have written 32 MiB
 * meanwhile, and told as IDEM_GRADE_SKIP.
 *
 * A quick check reads the newest records and some at random, for three seconds at
 * most, with their entries in the indexes, and tells as IDEM_GRADE_SKIP what it did
 * not look at. A file that is small is read as a whole.
 *
 * IDEM_EINVALID  @path is not a place for a store; the size of @options is not set;
 *                their state is damaged, of another store, or @options are quick.
 * IDEM_ENOMEM
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
