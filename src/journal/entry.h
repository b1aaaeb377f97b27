/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#ifndef IDEM_JOURNAL_ENTRY_H
#define IDEM_JOURNAL_ENTRY_H

#include "base/buffer.h"

#include <idem/journal.h>

enum {
    IDEM__ENTRY_LEN_MIN = 116,
    IDEM__ENTRY_TAIL_LEN = 24,   /* The time and the checksum. */
    IDEM__ENTRY_ID_AT = 9,       /* In STORE-ID-, ... */
    IDEM__ENTRY_RECORD_LEN = 26, /* ... which is so long. */
};

/* No file of ours is longer. */
#define IDEM__ENTRY_LEN_MAX (((size_t)40 << 10) + IDEM_RESULT_MAX)

/* The contents of an entry. Slices point to whatever holds the text. */
struct idem__entry {
    struct idem_slice store_url;
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN];
    uint8_t nonce[16];
    uint64_t fence;
    struct idem_outcome outcome;
    int64_t written_ms;
};

/* Appends @entry, whose members are in the ranges of idem.h. The caller frees
 * @file whatever this answers: 0, or IDEM_ENOMEM. */
int idem__entry_encode(const struct idem__entry *entry,
                       struct idem__buffer *file);

/* Decodes and verifies @file. On failure scope and key are what seems to be
 * there, or empty, and nothing else is set.
 *
 * IDEM_ECORRUPT  It is torn or changed, or no entry.
 * IDEM_ECONFIG   It was written by a newer version.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem__entry_decode(struct idem_slice file, struct idem__entry *ret_entry,
                       struct idem_error *ret_error);

/* How the names of all files for one record of one store begin: STORE-ID-. */
int idem__entry_record_name(struct idem_slice store_url,
                            const uint8_t id[IDEM_ID_LEN],
                            char ret_name[IDEM__ENTRY_RECORD_LEN + 1]);

#endif
