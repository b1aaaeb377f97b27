/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#ifndef IDEM_JOURNAL_ENTRY_H
#define IDEM_JOURNAL_ENTRY_H

#include <idem/journal.h>

enum {
    IDEM__ENTRY_HEAD_MIN = 80,
    IDEM__ENTRY_TAIL_LEN = 24,
    IDEM__ENTRY_NAME_LEN = 44, /* Of STORE-ID-STATUS-DIGEST. */
};

/* Heads are shorter; the bytes of the result are not in it. */
#define IDEM__ENTRY_HEAD_MAX ((size_t)40 << 10)

/* No file of ours is longer. */
#define IDEM__ENTRY_MAX                                                        \
    (IDEM__ENTRY_HEAD_MAX + IDEM_RESULT_MAX + IDEM__ENTRY_TAIL_LEN)

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

/* The three pieces of a file: head, the bytes of the result, tail. */
struct idem__entry_file {
    uint8_t head[IDEM__ENTRY_HEAD_MAX];
    size_t head_len;
    struct idem_slice result; /* The entry's. */
    uint8_t tail[IDEM__ENTRY_TAIL_LEN];
    char name[IDEM__ENTRY_NAME_LEN + 1];
};

/* Encodes @entry, whose members are in the ranges of idem.h.
 *
 * IDEM_ENOMEM  The hash could not be made.
 */
int idem__entry_encode(const struct idem__entry *entry,
                       struct idem__entry_file *ret_file);

/* Decodes and verifies @file. On failure scope and key are what seems to be
 * there, or empty, and nothing else is set.
 *
 * IDEM_ECORRUPT  It is torn or changed, or no entry.
 * IDEM_ECONFIG   It was written by a newer version.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem__entry_decode(struct idem_slice file, struct idem__entry *ret_entry,
                       char ret_name[IDEM__ENTRY_NAME_LEN + 1],
                       struct idem_error *ret_error);

/* The beginnings of names: 8 hex digits for a store, 16 for a record. */
enum {
    IDEM__ENTRY_STORE_LEN = 8,
    IDEM__ENTRY_ID_LEN = 16
};

int idem__entry_store_name(struct idem_slice store_url,
                           char ret_name[IDEM__ENTRY_STORE_LEN + 1]);
void idem__entry_id_name(const uint8_t id[IDEM_ID_LEN],
                         char ret_name[IDEM__ENTRY_ID_LEN + 1]);

#endif
