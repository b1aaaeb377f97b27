/* Tests of CRC-32. */
#include "base/crc32.h"

#include "host.h"
#include "test.h"

/* It gives the check value of its definition and some that are well known. */
TEST(crc32, givesKnownValues)
{
    static const char fox[] = "The quick brown fox jumps over the lazy dog";

    assert_int_equal(idem__crc32(0, idem_str("")), 0);
    assert_int_equal(idem__crc32(0, idem_str("123456789")), 0xcbf43926);
    assert_int_equal(idem__crc32(0, idem_str("a")), 0xe8b7be43);
    assert_int_equal(idem__crc32(0, idem_str(fox)), 0x414fa339);
}

/* One bit at a time, as the definition says it. */
static uint32_t by_bits(const uint8_t *p, size_t len)
{
    uint32_t r = 0xffffffff;
    size_t i;
    unsigned k;

    for (i = 0; i < len; i++) {
        r ^= p[i];
        for (k = 0; k < 8; k++) {
            r = r >> 1 ^ (r & 1 ? 0xedb88320 : 0);
        }
    }
    return ~r;
}

/* It is the same at every length and alignment, in one piece or in two. */
TEST(crc32, isTheSameHoweverItsInputIsCut)
{
    uint8_t bytes[300];
    uint64_t seed = 7;
    size_t start, len, cut;

    random_fill(&seed, bytes, sizeof(bytes));
    for (start = 0; start < 9; start++) {
        for (len = 0; len < 280; len++) {
            uint32_t want = by_bits(bytes + start, len);

            assert_int_equal(idem__crc32(0, idem_bytes(bytes + start, len)),
                             want);
            cut = len / 3;
            assert_int_equal(
                idem__crc32(idem__crc32(0, idem_bytes(bytes + start, cut)),
                            idem_bytes(bytes + start + cut, len - cut)),
                want);
        }
    }
}
