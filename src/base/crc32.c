/* CRC-32 by one table: an answer of a service has a kilobyte or so, and its check
 * takes a few microseconds of the hundreds that the answer took. */
#include "base/crc32.h"

#include <pthread.h>

#define POLYNOMIAL 0xedb88320 /* Of IEEE 802.3, its bits mirrored. */

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    uint32_t b;
    unsigned bit;

    for (b = 0; b < 256; b++) {
        uint32_t r = b;

        for (bit = 0; bit < 8; bit++) {
            r = r >> 1 ^ (r & 1 ? POLYNOMIAL : 0);
        }
        table[b] = r;
    }
}

uint32_t idem__crc32(uint32_t crc, struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    uint32_t r = ~crc;
    size_t i;

    (void)pthread_once(&once, fill_table);
    for (i = 0; i < bytes.len; i++) {
        r = r >> 8 ^ table[(r ^ p[i]) & 255];
    }
    return ~r;
}
