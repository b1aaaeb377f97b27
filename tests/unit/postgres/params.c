/* Tests of postgres/params.c: parameters in PostgreSQL's binary form. */
#include "postgres/params.h"

#include "test.h"

#include <string.h>

static const char *values[IDEM__PG_PARAMS_MAX];
static int lengths[IDEM__PG_PARAMS_MAX];
static int formats[IDEM__PG_PARAMS_MAX];

/* Each form, byte by byte, twice: what is cleared leaves nothing. */
TEST(params, areWritten)
{
    static const char array[] = "\0\0\0\1\0\0\0\1\0\0\0\x11\0\0\0\3\0\0\0\1"
                                "\0\0\0\2ab\0\0\0\0\xff\xff\xff\xff";
    static const char numbers[] = "\0\0\0\1\0\0\0\1\0\0\0\x14\0\0\0\1\0\0\0\1"
                                  "\0\0\0\x8\xff\xff\xff\xff\xff\xff\xff\xfe";
    static const char empty[] = "\0\0\0\0\0\0\0\1\0\0\0\x11";
    struct idem__pg_params params = {.len = 0};
    size_t place;
    int round;

    for (round = 0; round < 2; round++) {
        (void)idem__pg_params_bytes(&params, idem_str("a\\'b"));
        (void)idem__pg_params_bytes(&params, idem_str(""));
        (void)idem__pg_params_number(&params, 258);
        place = idem__pg_params_array(&params, IDEM__PG_BYTEAS);
        idem__pg_params_add_bytes(&params, place, idem_str("ab"));
        idem__pg_params_add_bytes(&params, place, idem_str(""));
        idem__pg_params_add_null(&params, place);
        place = idem__pg_params_array(&params, IDEM__PG_INT8S);
        idem__pg_params_add_number(&params, place, -2);
        (void)idem__pg_params_array(&params, IDEM__PG_BYTEAS);
        assert_true(idem__pg_params_finish(&params, values, lengths, formats));
        assert_int_equal(params.len, 6);
        assert_int_equal(lengths[0], 4);
        assert_memory_equal(values[0], "a\\'b", 4);
        assert_int_equal(lengths[1], 0);
        assert_non_null(values[1]); /* Not NULL of SQL. */
        assert_int_equal(lengths[2], 8);
        assert_memory_equal(values[2], "\0\0\0\0\0\0\1\2", 8);
        assert_int_equal(lengths[3], sizeof(array) - 1);
        assert_memory_equal(values[3], array, sizeof(array) - 1);
        assert_int_equal(lengths[4], sizeof(numbers) - 1);
        assert_memory_equal(values[4], numbers, sizeof(numbers) - 1);
        assert_int_equal(lengths[5], sizeof(empty) - 1);
        assert_memory_equal(values[5], empty, sizeof(empty) - 1);
        assert_int_equal(formats[5], 1);
        idem__pg_params_reset(&params);
    }
    idem__pg_params_free(&params);
}
