/* Tests of the names of executions. */
#include <idem/stepfunctions.h>

#include "test.h"

static char name[IDEM_EXECUTION_NAME_MAX + 1];

static const char *name_of(const char *scope, const char *key)
{
    assert_code(0, idem_execution_name(idem_str(scope), idem_str(key), name));
    return name;
}

static void assert_derived(const char *scope, const char *key)
{
    char wanted[IDEM_EXECUTION_NAME_MAX + 1] = "idem-";
    uint8_t id[IDEM_ID_LEN];
    size_t i;

    assert_code(0, idem_id(idem_str(scope), idem_str(key), id));
    for (i = 0; i < sizeof(id); i++) {
        (void)snprintf(wanted + 5 + 2 * i, 3, "%02x", id[i]);
    }
    print_message("# %s\n", key);
    assert_string_equal(wanted, name_of(scope, key));
}

/* A key of 1 to 80 letters, digits, "-" and "_" is the name. */
TEST(name, isTheKeyWhereThatFits)
{
    static const char *const keys[] = {
        "a",
        "order-42",
        "A_z09",
        "-",
        "idem",
        "Idem-1",
        "x1234567890123456789012345678901234567890123456789012345678901234567890"
        "123456789"};
    size_t i;

    for (i = 0; i < COUNT(keys); i++) {
        assert_string_equal(keys[i], name_of("", keys[i]));
    }
    assert_int_equal(IDEM_EXECUTION_NAME_MAX, strlen(keys[COUNT(keys) - 1]));
}

/* All other keys, and every key with a scope, have the id in the name. */
TEST(name, isDerivedElse)
{
    static const char *const keys[] = {
        "a b",
        "a.b",
        "a/b",
        "a:b",
        "a*",
        "\xc3\xa4",
        "a\x7f",
        "\n",
        "\xff",
        "x1234567890123456789012345678901234567890123456789012345678901234567890"
        "1234567890"};
    size_t i;

    for (i = 0; i < COUNT(keys); i++) {
        assert_derived("", keys[i]);
    }
    assert_derived("shop", "order-42");
    assert_derived("shop", "a b");
}

/* A key in the form of a derived name is derived itself, so that it never has the name
 * of another key. */
TEST(name, isNeverThatOfAnotherKey)
{
    char first[IDEM_EXECUTION_NAME_MAX + 1];

    (void)snprintf(first, sizeof(first), "%s", name_of("shop", "order-42"));
    assert_derived("", first);
    assert_string_not_equal(first, name_of("", first));
    assert_derived("", "idem-");
}

/* A key that idem does not take has no name. */
TEST(name, needsAKey)
{
    assert_code(IDEM_EINVALID,
                idem_execution_name(idem_str(""), idem_str(""), name));
}
