/* The mark of a store that is moved, as a store loads it. */
#include "core/move.h"

#include "test.h"

#define HEX "0102030405060708090a0b0c0d0e0f10"

/* True if a store that has loaded @text refuses a begin. */
static bool refuses(char mark[IDEM_MARK_MAX], const char *text)
{
    const struct idem_op begin = {.verb = IDEM_OP_BEGIN};
    char reason[160];

    idem__move_load(idem_str(text), mark);
    assert_int_equal(idem__move_closes(idem_str(mark)),
                     idem__move_refuses(mark, &begin, reason, sizeof(reason)));
    return idem__move_closes(idem_str(mark));
}

/* A mark stays as it was written. */
TEST(load, keepsEachMark)
{
    static const struct {
        const char *text;
        bool refuses;
    } rows[] = {
        {"", false},
        {"left " HEX " 5 dynamodb://orders", true},
        {"left " HEX " 5", true},
        {"filling " HEX " 5", true},
        {"here " HEX " 5", false},
        {"here " HEX " 9223372036854775807", false},
        {"", false},
    };
    char mark[IDEM_MARK_MAX] = "";
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(refuses(mark, rows[i].text), rows[i].refuses);
        assert_string_equal(mark, rows[i].text);
    }
}

/* The damaged mark may have been that of a store that was left. */
TEST(load, closesTheStoreWhereTheMarkIsDamaged)
{
    static const char *const damaged[] = {
        "here zz",
        "here ",
        "here",
        "left zz",
        "damaged",
        "here " HEX,
        "here " HEX " ",
        "here " HEX " 05",
        "here " HEX " -5",
        "here " HEX " 5 place",
        "here 00000000000000000000000000000000 5",
        "here 0102030405060708090A0B0C0D0E0F10 5",
        "here " HEX " 9223372036854775808",
    };
    char mark[IDEM_MARK_MAX] = "";
    char longest[IDEM_MARK_MAX + 1];
    size_t i;

    for (i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        assert_true(refuses(mark, damaged[i]));
        assert_true(refuses(mark, damaged[i]));
        assert_false(refuses(mark, i % 2 == 0 ? "" : "here " HEX " 5"));
    }
    memset(longest, 'x', IDEM_MARK_MAX);
    memcpy(longest, "here ", 5);
    longest[IDEM_MARK_MAX] = '\0';
    assert_true(refuses(mark, longest));
}
