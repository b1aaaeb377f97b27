/* CRC-32 as zlib and Ethernet have it. */
#ifndef IDEM_BASE_CRC32_H
#define IDEM_BASE_CRC32_H

#include <idem.h>

/* Goes on from @crc; begin with 0. */
uint32_t idem__crc32(uint32_t crc, struct idem_slice bytes);

#endif
