/* idem/check.h: checks of a store. A check inspects everything that a store depends on,
 * such as the table and the permissions of a DynamoDB store, or the file and the disk
 * of a SQLite store, and changes nothing. It reports findings one by one, good ones
 * too, and for each of the others how to repair it. See idem_sqlite_check() and, in
 * <idem/dynamodb.h>, idem_dynamodb_check().
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
    IDEM_GRADE_WARN, /* It works, but a person should know. */
    IDEM_GRADE_BAD,  /* It does not work, or breaks a promise. */
    IDEM_GRADE_SKIP, /* It was not checked, or only in part. */
};

/* A finding; valid during the call only. */
struct idem_finding {
    enum idem_grade grade;
    int code;          /* BAD: an enum idem_code, or 0. */
    const char *about; /* One word: "table", "index", "file". */
    const char *text;  /* One sentence, without a full stop. */
    const char *mend;  /* The remedy: a command line, unless it ends in a full
                          stop. NULL: nothing. */
};

/* Must not call the library. */
typedef void idem_finding_fn(void *ctx, const struct idem_finding *finding);

/* Called many times a second during long work: the check has read @done of @all. If
 * this returns anything but 0, the check stops, and reports which parts it did not
 * read. Must not call the library. */
typedef int idem_check_progress_fn(void *ctx, uint64_t done, uint64_t all);

struct idem_check_options {
    size_t size; /* sizeof, set by IDEM_CHECK_OPTIONS_INIT. */
    bool quick;  /* Take seconds, however large the store is. */
    idem_check_progress_fn *progress; /* May be NULL. */
    void *ctx;                        /* Of progress. */
};
#define IDEM_CHECK_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(struct idem_check_options), false, NULL, NULL                   \
    }

/* Checks the store in the file @path, which the options of a URL may follow: that it
 * exists, its file system, who may read and write it, the free space on its disk; that
 * it opens, its schema; that every record can be trusted, with its result and its
 * input; that its indexes hold each record once, and nothing else; that the structure
 * of its pages is sound. Reports each finding to @each, and changes nothing. @options
 * may be NULL. The check copies the file in one transaction and reads the copy, so that
 * others can write meanwhile and the log can shrink once the copy is made. The copy is
 * a temporary file of SQLite, in SQLITE_TMPDIR, TMPDIR or /var/tmp, as large as the
 * store: only this user may read it, and it disappears however the process ends. A
 * finding reports its size before the check makes it. If it would leave less than 64
 * MiB free, the check makes no copy, and that finding is bad (IDEM_EFULL).
 *
 * A quick check copies a file of up to 4096 pages; of a larger one it reads only what
 * opening reads, and reports the rest as IDEM_GRADE_SKIP.
 *
 * IDEM_EINVALID  @path is not a place for a store; the size of @options is not set.
 *
 * Every other error is a finding.
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
