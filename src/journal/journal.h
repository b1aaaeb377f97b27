/* The inside of a journal: the stored form of an entry, which <idem/journal.h> draws; and
 * the directory with its names, files and locks. */
#ifndef IDEM_JOURNAL_JOURNAL_H
#define IDEM_JOURNAL_JOURNAL_H

#include "base/bytes.h"

#include <idem/journal.h>

/* ---- Entries: entry.c ---- */

enum {
    IDEM__ENTRY_AT_STATUS = 5,
    IDEM__ENTRY_TAIL_LEN = 24,   /* The time and the checksum. */
    IDEM__ENTRY_PREFIX_LEN = 26, /* Of STORE-ID-. */
    IDEM__ENTRY_NAME_MAX = 63,
    /* N of STORE-ID-N.idj. A lookup tries those below LIKELY, and on as long as it finds
     * one: more than one is rare but where a log is read. */
    IDEM__ENTRY_LIKELY = 4,
    IDEM__ENTRY_NUMBERS = 1000,
};

/* No file of ours is longer. */
#define IDEM__ENTRY_LEN_MAX (((size_t)40 << 10) + IDEM_RESULT_MAX)

/* Describes in @ret_entry how @attempt of the store @store_url ended; of a result that is
 * longer than @result_max only that there was one. */
void idem__entry_fill(const char *store_url, const struct idem_attempt *attempt,
                      const struct idem_outcome *outcome, size_t result_max,
                      struct idem_journal_info *ret_entry);

/* Appends @entry but for its name, state and len; its members are in the ranges of
 * idem.h. The caller frees @file whatever this answers: 0, or IDEM_ENOMEM. */
int idem__entry_encode(const struct idem_journal_info *entry,
                       struct idem__buffer *file);

/* Decodes and verifies @file; name and state are the caller's, and a name that is not NULL
 * must begin as that of the entry does. On failure scope and key are what seems to be
 * there, or empty, and nothing else is set but len.
 *
 * IDEM_ECORRUPT  It is torn or changed, has the name of another, or is no entry.
 * IDEM_ECONFIG   It was written by a newer version.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem__entry_decode(struct idem_slice file,
                       struct idem_journal_info *ret_entry,
                       struct idem_error *ret_error);

/* Sets the error, IDEM_ECORRUPT, which it returns: "the entry cannot be trusted: WHAT". */
int idem__entry_damaged(struct idem_error *error, const char *what);

/* The beginning of the names of the files of a record, STORE-ID-; with @id NULL of those of
 * all records of the store, STORE-. 0, or IDEM_ENOMEM. */
int idem__entry_prefix(struct idem_slice store_url, const uint8_t *id,
                       char ret_prefix[IDEM__ENTRY_PREFIX_LEN + 1],
                       struct idem_error *error);

/* Puts the number and the ending of a waiting entry after STORE-ID- in @name. */
void idem__entry_number(char name[IDEM__ENTRY_NAME_MAX + 1], int number);

/* ---- The directory: directory.c ---- */

struct idem_journal {
    int fd;
    char directory[]; /* As it was opened, for messages. */
};

enum {
    IDEM__JOURNAL_BUSY = 1, /* An answer of idem__journal_hold(). */
};

/* The state of an entry by the ending of its name: WAITING, LOST or DAMAGED; 0: it is not the
 * name of one. */
enum idem_journal_state idem__journal_state_of(const char *name);

/* Sets the error for errno: "cannot DO NAME: why". Returns its code. */
int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name);

/* Calls @each for every file, in any order. Its answer, if not 0, ends the walk
 * and is returned. */
typedef int idem__journal_name_fn(void *ctx, const char *name);
int idem__journal_walk(const struct idem_journal *journal,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error);

/* A file of a journal; idem__journal_hold() opens and locks it. The name is valid as
 * long as this. */
struct idem__journal_file {
    const struct idem_journal *journal;
    const char *name;
    int fd;    /* -1: it is not held. */
    bool made; /* It was not there; it is empty. */
    uint64_t len;
    uint64_t inode;
};

/* Opens and locks @file, which has its journal and name: LOCK_SH where others may read it
 * too, or LOCK_EX. With @make it is made if it is not there; a file that was made is open
 * whatever this answers, and the caller deletes and releases it.
 *
 * IDEM__JOURNAL_BUSY  Another process is at it; @error is not set.
 * IDEM_ENOTFOUND      It is not there any more, or is another one now.
 * IDEM_ECORRUPT       It has not the name of an entry, is not a regular file, or is
 *                     another user's.
 * IDEM_EDENIED, IDEM_EFULL, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem__journal_hold(struct idem__journal_file *file, int operation,
                       bool make, struct idem_error *error);

/* Closes @file, which unlocks it; one that is not held is allowed. */
void idem__journal_release(struct idem__journal_file *file);

/* Reads all of @file; the caller frees the bytes. IDEM_ECORRUPT: it is longer than
 * any entry. IDEM_EUNAVAILABLE, IDEM_ENOMEM. */
int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error);

#endif
