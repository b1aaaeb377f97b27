/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#ifndef IDEM_JOURNAL_ENTRY_H
#define IDEM_JOURNAL_ENTRY_H

#include "base/bytes.h"

#include <idem/journal.h>

enum {
    IDEM__ENTRY_LEN_MIN = 128,
    IDEM__ENTRY_TAIL_LEN = 24,   /* The time and the checksum. */
    IDEM__ENTRY_ID_AT = 9,       /* In STORE-ID-, ... */
    IDEM__ENTRY_RECORD_LEN = 26, /* ... which is so long. */
};

/* No file of ours is longer. */
#define IDEM__ENTRY_LEN_MAX (((size_t)40 << 10) + IDEM_RESULT_MAX)

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

#endif
