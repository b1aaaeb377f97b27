/* Big-endian numbers. */
#include "base/bytes.h"

#include "test.h"

/* The most significant byte comes first, and what was put is got. */
TEST(bytes, putsTheMostSignificantFirst)
{
    static const uint64_t rows[] = {0, 1, 0x0102030405060708,
                                    0x8000000000000000, UINT64_MAX};
    uint8_t p[8];

    idem__put_u64(p, 0x0102030405060708);
    assert_memory_equal(p, "\1\2\3\4\5\6\7\10", 8);
    idem__put_u32(p, 0xfedcba98);
    assert_memory_equal(p, "\xfe\xdc\xba\x98", 4);
    assert_int_equal(idem__get_u32(p), 0xfedcba98);
    EACH(row, rows) {
        idem__put_u64(p, *row);
        assert_int_equal(idem__get_u64(p), *row);
    }
}
