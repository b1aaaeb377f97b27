/* Tests of a program that can load no library: what it says of what it has not. It has
 * no_loader.c, as a static program does, in the place of loader.c. */
#include "test.h"

#include "base/host.h"
#include "contract/kind.h"

#include <idem/dynamodb.h>

static void expect(int code, const struct idem_error *error, int rc,
                   const char *word)
{
    assert_int_equal(rc, code);
    assert_int_equal(error->code, code);
    if (strstr(error->text, word) == NULL ||
        strstr(error->text, "linked statically") == NULL ||
        strstr(error->text, "apt") != NULL) {
        fail_msg("\"%s\" misses \"%s\", or offers a library", error->text,
                 word);
    }
}

/* A URL whose kind is not inside is refused, and no library is offered. */
TEST(kind, isUnknownWhenNotInside)
{
    const struct idem_store_kind *kind;
    const char *place;
    struct idem_error error;

    assert_false(idem__has_loader());
    expect(IDEM_EINVALID, &error,
           idem__kind_find("sqlit:x", &kind, &place, &error), "\"sqlit:x\"");
}

/* A kind that was registered is found. */
TEST(kind, isFoundWhenRegistered)
{
    const struct idem_store_kind *kind;
    const char *place;
    struct idem_error error;

    assert_int_equal(idem__kind_find("dynamodb://x", &kind, &place, &error), 0);
    assert_ptr_equal(kind, &idem_dynamodb_kind);
    assert_string_equal(place, "//x");
}
