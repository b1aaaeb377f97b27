/* CRC-32 by multiplication without carries, which x86 processors since 2010 have.
 *
 * A remainder depends only on the polynomial that the bytes stand for, modulo P.
 * So sixteen bytes may be moved on by n bits: both of their halves are multiplied
 * by what x^n is modulo P, and added to what stands there. Four such lanes go side
 * by side, as one multiplication need not wait for another's.
 */
#include "base/crc32_fold.h"

#include <immintrin.h>

enum {
    LANE = 16,
    BLOCK = 4 * LANE
};

#define FAST __attribute__((target("pclmul,sse2")))

/* x^(n+32) and x^(n-32) modulo P, mirrored as the bytes are, for the low and the
 * high half of a lane that is moved by n bits. */
static const uint64_t by_block[2] = {0x154442bd4, 0x1c6e41596}; /* n = 512 */
static const uint64_t by_lane[2] = {0x1751997d0, 0x0ccaa009e};  /* n = 128 */

FAST static __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

FAST static __m128i moved(__m128i lane, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(lane, by, 0x00),
                         _mm_clmulepi64_si128(lane, by, 0x11));
}

FAST static size_t fold(uint32_t remainder, const uint8_t *p, size_t len,
                        uint8_t *ret_rest)
{
    __m128i by = load(by_block);
    __m128i lanes[4];
    size_t done = BLOCK;
    unsigned i;

    for (i = 0; i < 4; i++) {
        lanes[i] = load(p + (size_t)i * LANE);
    }
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)remainder));
    for (; len - done >= BLOCK; done += BLOCK) {
        for (i = 0; i < 4; i++) {
            lanes[i] = _mm_xor_si128(moved(lanes[i], by),
                                     load(p + done + (size_t)i * LANE));
        }
    }
    by = load(by_lane);
    for (i = 1; i < 4; i++) {
        lanes[i] = _mm_xor_si128(moved(lanes[i - 1], by), lanes[i]);
    }
    _mm_storeu_si128((void *)ret_rest, lanes[3]);
    return done;
}

size_t idem__crc32_fold(uint32_t remainder, struct idem_slice bytes,
                        uint8_t ret_rest[IDEM__CRC32_REST])
{
    if (bytes.len < BLOCK || !__builtin_cpu_supports("pclmul")) {
        return 0;
    }
    return fold(remainder, bytes.base, bytes.len, ret_rest);
}
