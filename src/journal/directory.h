/* The directory of a journal: its names, its files, their locks. */
#ifndef IDEM_JOURNAL_DIRECTORY_H
#define IDEM_JOURNAL_DIRECTORY_H

#include "journal/entry.h"

struct idem_journal {
    int fd;
    char directory[]; /* As it was opened, for messages. */
};

enum {
    IDEM__JOURNAL_NAME_MAX = 63,
    /* N of STORE-ID-STATUS-N.idj. A lookup tries those below LIKELY, and on as long
     * as it finds one: more than one is rare but where a log is read. */
    IDEM__JOURNAL_LIKELY = 4,
    IDEM__JOURNAL_NUMBERS = 1000,
};

/* The facts in the name of a file. */
enum idem__journal_kind {
    IDEM__JOURNAL_FOREIGN,
    IDEM__JOURNAL_PENDING, /* .idj */
    IDEM__JOURNAL_LOST,    /* .INODE.lost */
    IDEM__JOURNAL_BAD,     /* .INODE.bad */
};

enum idem__journal_kind idem__journal_kind_of(const char *name);

/* Sets the error for errno: "cannot DO NAME: why". Returns its code. */
int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name);

/* Calls @each for every file, in any order. Its answer, if not 0, ends the walk
 * and is returned. */
typedef int idem__journal_name_fn(void *ctx, const char *name);
int idem__journal_walk(const struct idem_journal *journal,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error);

/* A file that is open and locked; the caller closes @fd, which unlocks it. */
struct idem__journal_file {
    int fd;
    bool made; /* It was not there; it is empty. */
    uint64_t len;
    uint64_t inode;
};

enum idem__journal_how {
    IDEM__JOURNAL_READ, /* Others may read it too. */
    IDEM__JOURNAL_ALONE,
    IDEM__JOURNAL_MAKE, /* Alone; where it is not there it is made, and empty. */
};

/* Opens the file @name and locks it. Of what this has made nothing is left where it
 * answers a code.
 *
 * IDEM__JOURNAL_BUSY  Another process is at it; @error is not set.
 * IDEM_ENOTFOUND      It is not there any more, or is another one now.
 * IDEM_ECORRUPT       It has not the name of an entry, is not a regular file, or is
 *                     another user's.
 * IDEM_EDENIED, IDEM_EFULL, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
enum {
    IDEM__JOURNAL_BUSY = 1
};
int idem__journal_hold(const struct idem_journal *journal, const char *name,
                       enum idem__journal_how how,
                       struct idem__journal_file *ret_file,
                       struct idem_error *error);

/* Reads all of @file; the caller frees the bytes. IDEM_ECORRUPT: it is longer than
 * any entry. IDEM_EUNAVAILABLE, IDEM_ENOMEM. */
int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error);

#endif
