/* The parts that the files of the journal share: the stored form of an entry, which
 * <idem/journal.h> draws, and the directory with its files and locks. */
#ifndef IDEM_JOURNAL_JOURNAL_H
#define IDEM_JOURNAL_JOURNAL_H

#include "base/bytes.h"

#include <idem/journal.h>

/* ---- Entries: entry.c ---- */

enum {
    IDEM__ENTRY_AT_STATUS = 5,
    IDEM__ENTRY_TAIL_LEN = 24,   /* The time and the checksum. */
    IDEM__ENTRY_PREFIX_LEN = 26, /* The length of STORE-ID-. */
    IDEM__ENTRY_NAME_MAX = 63,
    /* The numbers N of STORE-ID-N.idj. A lookup tries all below LIKELY, and goes on as
     * long as it finds a file: a record seldom has more than one outcome here, unless a
     * log is read in. */
    IDEM__ENTRY_LIKELY = 4,
    IDEM__ENTRY_NUMBERS = 1000,
};

/* The longest file that this library writes: every field at its maximum. */
#define IDEM__ENTRY_LEN_MAX (((size_t)40 << 10) + IDEM_RESULT_MAX)

/* Describes in @ret_entry how @attempt of the store @store_url ended. A result that is
 * longer than @result_max becomes a tombstone. */
void idem__entry_fill(const char *store_url, const struct idem_attempt *attempt,
                      const struct idem_outcome *outcome, size_t result_max,
                      struct idem_journal_info *ret_entry);

/* Appends the file of @entry, without name, state and len; the other members must be in
 * the ranges of idem.h. Returns 0 or IDEM_ENOMEM; in both cases the caller frees
 * @file. */
int idem__entry_encode(const struct idem_journal_info *entry,
                       struct idem__buffer *file);

/* Decodes and verifies @file. The caller has set name and state; if name is not NULL,
 * it must begin with the prefix that the entry's content gives. On failure this sets
 * only len, and scope and key as far as a damaged file still shows them (else empty).
 *
 * IDEM_ECORRUPT  The file is torn or changed, has the name of another entry, or is not
 *                an entry.
 * IDEM_ECONFIG   A newer version of idem wrote it.
 * IDEM_ENOMEM    The hash could not be computed.
 */
int idem__entry_decode(struct idem_slice file,
                       struct idem_journal_info *ret_entry,
                       struct idem_error *ret_error);

/* Sets @error to "the entry cannot be trusted: WHAT", and returns IDEM_ECORRUPT. */
int idem__entry_damaged(struct idem_error *error, const char *what);

/* Writes the prefix that all file names of one record share, STORE-ID-; with @id NULL,
 * the prefix of all records of the store, STORE-. Returns 0 or IDEM_ENOMEM. */
int idem__entry_prefix(struct idem_slice store_url, const uint8_t *id,
                       char ret_prefix[IDEM__ENTRY_PREFIX_LEN + 1],
                       struct idem_error *error);

/* Writes "N.idj" for @number after the prefix STORE-ID- in @name. */
void idem__entry_number(char name[IDEM__ENTRY_NAME_MAX + 1], int number);

/* ---- The directory: directory.c ---- */

struct idem_journal {
    int fd;
    char directory[]; /* As the caller gave it, for messages. */
};

enum {
    IDEM__JOURNAL_BUSY = 1, /* Returned by idem__journal_hold() only. */
};

/* Returns the state that the ending of @name stands for: WAITING, LOST or DAMAGED; 0 if
 * @name is not the name of an entry. */
enum idem_journal_state idem__journal_state_of(const char *name);

/* Sets @error to "cannot DOING NAME: why" for errno, and returns its code. */
int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name);

/* Calls @each for every file of the directory, in any order. If @each returns anything
 * but 0, the walk ends and returns that. */
typedef int idem__journal_name_fn(void *ctx, const char *name);
int idem__journal_walk(const struct idem_journal *journal,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error);

/* A file of a journal, which idem__journal_hold() opens and locks. @name must stay
 * valid as long as this struct is used. */
struct idem__journal_file {
    const struct idem_journal *journal;
    const char *name;
    int fd;    /* -1: not held. */
    bool made; /* hold() created it; it is empty. */
    uint64_t len;
    uint64_t inode;
};

/* Opens and locks @file, whose journal and name the caller has set. LOCK_SH lets other
 * readers in, LOCK_EX does not. With @make it creates a missing file; it leaves a file
 * that it created open even if it fails, and the caller deletes and releases that file.
 *
 * IDEM__JOURNAL_BUSY Another process holds the file; @error is not set.
 * IDEM_ENOTFOUND  The file does not exist any more, or another file has its name now.
 * IDEM_ECORRUPT   The file does not have the name of an entry, is not a regular file,
 *                 or belongs to another user.
 * IDEM_EDENIED, IDEM_EFULL, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem__journal_hold(struct idem__journal_file *file, int operation,
                       bool make, struct idem_error *error);

/* Closes @file, which unlocks it. A file that is not held is allowed. */
void idem__journal_release(struct idem__journal_file *file);

/* Reads all of @file; the caller frees *@ret_bytes.
 *
 * IDEM_ECORRUPT  The file is longer than any entry.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error);

#endif
