/* How much a journal holds: a record beside its entries, so that nobody has to
 * count them. It is a cache, and may be deleted at any time.
 *
 * The file "usage", read and written whole under a flock(), all numbers with the
 * most significant byte first:
 *
 *      0  4  "IDJU"                     40  2  (zero)
 *      4  2  version, 1                 42  2  part in which a catch-up stopped
 *      6  2  1 counted,                 44 44  the entry after which it did
 *            2 being counted            88 32  parts that are durable, a bit each
 *      8  8  bytes in all parts        120  .  files in each part, 4 bytes each
 *     16 16  boot id                  1148  4  CRC-32 of what is before
 *     32  8  when it was counted, by
 *            the boot clock, in ms
 *
 * An entry is added here before it is made and taken off after it is gone, so a
 * death between leaves a number that is too high, never one that is too low; and
 * where a number would have a consequence the files are counted again. Nothing
 * is flushed: what another boot wrote is not believed, but for the bits of the
 * parts, which are set after their flush. */
#ifndef IDEM_JOURNAL_USAGE_H
#define IDEM_JOURNAL_USAGE_H

#include "journal/directory.h"

struct idem__usage {
    bool counted; /* The numbers are of this boot. */
    bool counting;
    uint64_t bytes;
    int64_t counted_ms;
    uint16_t part; /* Where a catch-up stopped: in it, after this entry. */
    char after[IDEM__ENTRY_NAME_LEN + 1];
    uint8_t durable[32];
    uint32_t files[IDEM__JOURNAL_PARTS];
};

/* Adds a file of @len bytes in @part. *@ret_durable says whether the part's own
 * directory is durable.
 *
 * IDEM_EFULL  The journal is full; nothing was added.
 */
int idem__usage_add(const struct idem_journal *journal, unsigned part,
                    uint64_t len, bool *ret_durable, struct idem_error *error);

/* Takes a file of @len bytes off again. @directory is open as the journal's. */
void idem__usage_take_off(int directory, unsigned part, uint64_t len);

/* The directory of @part was flushed, and those above it. */
void idem__usage_set_durable(int directory, unsigned part);

/* Where the next catch-up goes on. */
void idem__usage_set_stop(int directory, unsigned part, const char *after);

/* The recorded usage; all zeros where nothing can be believed. */
void idem__usage_read(int directory, struct idem__usage *ret_usage);

uint64_t idem__usage_files(const struct idem__usage *usage);

#endif
