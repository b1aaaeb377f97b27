/* For processors of which we know no way of their own to a CRC-32. */
#include "base/crc32_fold.h"

size_t idem__crc32_fold(uint32_t remainder, struct idem_slice bytes,
                        uint8_t ret_rest[IDEM__CRC32_REST])
{
    (void)remainder;
    (void)bytes;
    (void)ret_rest;
    return 0;
}
