/* CRC-32, by the processor's own means where it has some, else, and at the end,
 * by tables, eight bytes at a time. */
#include "base/crc32.h"

#include "base/crc32_fold.h"

#include <pthread.h>

/* tables[k][b]: what byte b does to the remainder k bytes further on. */
static uint32_t tables[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    uint32_t b;
    unsigned k;

    for (b = 0; b < 256; b++) {
        uint32_t r = b;

        for (k = 0; k < 8; k++) {
            r = r >> 1 ^ (r & 1 ? 0xedb88320 : 0);
        }
        tables[0][b] = r;
    }
    for (k = 1; k < 8; k++) {
        for (b = 0; b < 256; b++) {
            uint32_t r = tables[k - 1][b];

            tables[k][b] = r >> 8 ^ tables[0][r & 255];
        }
    }
}

static uint32_t low_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint32_t by_table(uint32_t r, const uint8_t *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t a = r ^ low_u32(p);
        uint32_t b = low_u32(p + 4);

        r = tables[7][a & 255] ^ tables[6][a >> 8 & 255] ^
            tables[5][a >> 16 & 255] ^ tables[4][a >> 24] ^ tables[3][b & 255] ^
            tables[2][b >> 8 & 255] ^ tables[1][b >> 16 & 255] ^
            tables[0][b >> 24];
    }
    for (; len > 0; len--, p++) {
        r = r >> 8 ^ tables[0][(r ^ *p) & 255];
    }
    return r;
}

uint32_t idem__crc32(uint32_t crc, struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    uint8_t rest[IDEM__CRC32_REST];
    uint32_t r = ~crc;
    size_t done = idem__crc32_fold(r, bytes, rest);

    (void)pthread_once(&once, fill_tables);
    if (done > 0) {
        r = by_table(0, rest, sizeof(rest));
        p += done;
    }
    return ~by_table(r, p, bytes.len - done);
}
