/* The inside of a journal: the stored form of an entry, which <idem/journal.h> draws; and
 * the directory with its names, files and locks. */
#ifndef IDEM_JOURNAL_JOURNAL_H
#define IDEM_JOURNAL_JOURNAL_H

#include "base/bytes.h"

#include <idem/journal.h>

/* ---- Entries: entry.c ---- */

enum {
    IDEM__ENTRY_TAIL_LEN = 24,   /* The time and the checksum. */
    IDEM__ENTRY_ID_AT = 9,       /* In STORE-ID-, ... */
    IDEM__ENTRY_RECORD_LEN = 26, /* ... which is so long. */
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

/* Decodes and verifies @file; name and state are the caller's. On failure scope and
 * key are what seems to be there, or empty, and nothing else is set but len.
 *
 * IDEM_ECORRUPT  It is torn or changed, or no entry.
 * IDEM_ECONFIG   It was written by a newer version.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem__entry_decode(struct idem_slice file,
                       struct idem_journal_info *ret_entry,
                       struct idem_error *ret_error);

/* How the names of all files for one record of one store begin: STORE-ID-. 0, or
 * IDEM_ENOMEM. */
int idem__entry_record_name(struct idem_slice store_url,
                            const uint8_t id[IDEM_ID_LEN],
                            char ret_name[IDEM__ENTRY_RECORD_LEN + 1],
                            struct idem_error *error);

/* ---- The directory: directory.c ---- */

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

/* Closes @fd, which unlocks its file; -1 is allowed. */
void idem__journal_release(int fd);

/* Reads all of @file; the caller frees the bytes. IDEM_ECORRUPT: it is longer than
 * any entry. IDEM_EUNAVAILABLE, IDEM_ENOMEM. */
int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error);

#endif
