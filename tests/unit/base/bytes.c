/* Big-endian numbers, and spans of time as people read them. */
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

/* ---- JSON ---- */

/* Each byte is plain or not by the rule, wherever it stands among plain ones. */
TEST(json, plainBytesAreCounted)
{
    uint8_t bytes[27];
    size_t at;
    int value;

    for (value = 0; value < 256; value++) {
        bool plain =
            value >= ' ' && value < 0x7f && value != '"' && value != '\\';

        for (at = 0; at < sizeof(bytes); at++) {
            memset(bytes, at % 2 == 0 ? ' ' : '~', sizeof(bytes));
            bytes[at] = (uint8_t)value;
            assert_int_equal(idem__json_plain_len(bytes, sizeof(bytes)),
                             plain ? sizeof(bytes) : at);
            assert_int_equal(idem__json_plain_len(bytes, at), at);
        }
    }
}

/* ---- Spans of time ---- */

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

/* Each span is in the unit that a person would take, and never more than it is. */
TEST(span, isInTheUnitThatIsRead)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0 ms"},
        {0, "0 ms"},
        {420, "420 ms"},
        {1000, "1 s"},
        {2189, "2.1 s"},
        {9999, "9.9 s"},
        {10999, "10 s"},
        {119 * SECOND, "119 s"},
        {120 * SECOND, "2 minutes"},
        {7199 * SECOND, "119 minutes"},
        {7200 * SECOND, "2 hours"},
        {2 * DAY - 1, "47 hours"},
        {3 * DAY, "3 days"},
        {730 * DAY - 1, "729 days"},
        {20780 * DAY, "56 years"},
        {INT64_MAX, "292471208 years"},
    };
    char text[IDEM__SPAN_MAX];

    EACH(row, rows) {
        idem__span(row->ms, text);
        assert_string_equal(text, row->text);
    }
}
