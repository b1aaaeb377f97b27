/* Tests of src/key/flavour.c. The keys themselves are compared with those of the
 * libraries in tests/integration/flavours.py. */
#include "test.h"

#include <idem/key.h>
#include <string.h>

static struct idem_key_text key;

static int make(enum idem_flavour flavour, const char *json)
{
    return idem_flavour_key(flavour, "pay", idem_str(json), 0, &key, &why);
}

/* One event has a key of its own in each flavour. */
TEST(flavour, makesKeys)
{
    static const struct {
        enum idem_flavour flavour;
        const char *key;
    } rows[] = {
        {IDEM_FLAVOUR_PYTHON, "pay#ebd9f4c7b06cb0aaf5d13d80e49d8b90"},
        {IDEM_FLAVOUR_TYPESCRIPT, "pay#69n0x7BssKr10T2A5J2LkA=="},
    };

    EACH(row, rows) {
        assert_ok(make(row->flavour, "\"abc\""));
        assert_string_equal(key.text, row->key);
        assert_int_equal(key.len, strlen(row->key));
    }
}

/* A keyless event has no key unless that is asked for. */
TEST(flavour, wantsSomething)
{
    static const char *const nothing[] = {
        "null", "\"\"", "[]", "{}", "[null,[null]]", "{\"a\":null}"};

    EACH(one, nothing) {
        assert_code(IDEM_EINVALID, make(IDEM_FLAVOUR_TYPESCRIPT, *one));
        assert_why("every event without it");
        assert_ok(idem_flavour_key(IDEM_FLAVOUR_TYPESCRIPT, "pay",
                                   idem_str(*one), IDEM_FLAVOUR_NULL, &key,
                                   &why));
    }
    assert_ok(make(IDEM_FLAVOUR_TYPESCRIPT, "[null,0]"));
    assert_ok(make(IDEM_FLAVOUR_PYTHON, "false"));
}

/* A prefix is wanted, and a key is no longer than one of ours may be. */
TEST(flavour, checksThePrefix)
{
    char large[256];

    assert_code(IDEM_EINVALID, idem_flavour_key(IDEM_FLAVOUR_PYTHON, NULL,
                                                idem_str("1"), 0, &key, &why));
    assert_why("has a prefix");
    assert_code(IDEM_EINVALID, make((enum idem_flavour)0, "1"));
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_code(IDEM_EINVALID, idem_flavour_key(IDEM_FLAVOUR_PYTHON, large,
                                                idem_str("1"), 0, &key, &why));
    assert_why("at most 255");
    large[255 - 33] = '\0';
    assert_ok(idem_flavour_key(IDEM_FLAVOUR_PYTHON, large, idem_str("1"), 0,
                               &key, &why));
    assert_int_equal(key.len, 255);
}
