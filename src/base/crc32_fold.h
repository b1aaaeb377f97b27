/* The processor's own way to a CRC-32, where it has one. */
#ifndef IDEM_BASE_CRC32_FOLD_H
#define IDEM_BASE_CRC32_FOLD_H

#include <idem.h>

enum {
    IDEM__CRC32_REST = 16
};

/* Folds whole blocks from the front of @bytes into sixteen bytes: who goes on from
 * a remainder of 0 with @ret_rest, and then with what is behind the blocks, ends
 * where going on from @remainder with all of @bytes ends. Returns the length of
 * the blocks; 0: nothing was done, as @bytes are few or the processor cannot. */
size_t idem__crc32_fold(uint32_t remainder, struct idem_slice bytes,
                        uint8_t ret_rest[IDEM__CRC32_REST]);

#endif
