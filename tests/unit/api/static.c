/* Tests of a program that can load no library: what it says of what it has not. It has
 * no_loader.c, as a static program does, in the place of loader.c, and libidem alone. */
#include "test.h"

#include "base/host.h"
#include "contract/kind.h"

/* A URL whose kind is not inside is refused, and no library is offered. */
TEST(kind, isMissingWhenNotInside)
{
    static const char *const urls[] = {"dynamodb://x", "postgres:///x",
                                       "postgresql:///x"};
    const struct idem_store_kind *kind;
    const char *place;

    assert_false(idem__has_loader());
    EACH(url, urls) {
        assert_code(IDEM_ECONFIG, idem__kind_find(*url, &kind, &place, &why));
        assert_why("linked statically");
        assert_null(strstr(why.text, "apt"));
    }
    assert_code(IDEM_EINVALID, idem__kind_find("sqlit:x", &kind, &place, &why));
    assert_why("\"sqlit:x\"");
}
