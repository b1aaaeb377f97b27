/* Tests of finding the certificates that are trusted. */
#include "base/ca.h"

#include "test.h"

#include <unistd.h>

/* What is asked for is taken, there or not: a missing one must not be replaced. */
TEST(ca, isTheOneThatIsGiven)
{
    assert_string_equal(idem__ca_file("/no/such", "/etc/passwd"), "/no/such");
}

TEST(ca, isLeftToLibcurlWhereItsOwnIsThere)
{
    assert_null(idem__ca_file(NULL, "/etc/passwd"));
}

/* A libcurl from another system looks where there is nothing. */
TEST(ca, isThatOfThisSystemElse)
{
    const char *found = idem__ca_file(NULL, "/no/such");

    if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0) {
        assert_string_equal(found, "/etc/ssl/certs/ca-certificates.crt");
    }
    assert_true(found == NULL || access(found, R_OK) == 0);
    assert_ptr_equal(idem__ca_file(NULL, NULL), found);
}
