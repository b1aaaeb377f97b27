/* Tests of src/api/kind.c: which store a URL names. */
#include "contract/kind.h"
#include "test.h"

#include <idem/dynamodb.h>
#include <stdio.h>
#include <unistd.h>

static void expect_refusal(const char *url, int code, const char *word)
{
    const struct idem_store_kind *kind;
    const char *place;

    assert_code(code, idem__kind_find(url, &kind, &place, &why));
    assert_why(word);
}

/* A URL has the kind of its scheme: one of libidem's, or one that was registered, as often
 * as the program likes. */
TEST(kind, isThatOfTheScheme)
{
    static const char *const schemes[] = {"sqlite", "memory", "dynamodb"};
    const struct idem_store_kind *kind;
    const char *place;
    char url[64];

    assert_ok(idem_kind_register(&idem_dynamodb_kind, &why));
    assert_ok(idem_kind_register(&idem_dynamodb_kind, &why));
    EACH(scheme, schemes) {
        (void)snprintf(url, sizeof(url), "%s://a?b=c:d", *scheme);
        assert_ok(idem__kind_find(url, &kind, &place, &why));
        assert_string_equal(kind->scheme, *scheme);
        assert_string_equal(place, "//a?b=c:d");
    }
}

/* A kind of another version is refused before its scheme is read, and so is one that
 * libidem does not know. */
TEST(kind, ofAnotherBuildIsRefused)
{
    struct idem_store_kind kind = idem_dynamodb_kind;

    kind.abi++;
    kind.scheme = NULL;
    assert_code(IDEM_ECONFIG, idem_kind_register(&kind, &why));
    kind = idem_dynamodb_kind;
    kind.size--;
    assert_code(IDEM_ECONFIG, idem_kind_register(&kind, &why));
    kind = idem_dynamodb_kind;
    kind.scheme = "mine";
    assert_code(IDEM_EINVALID, idem_kind_register(&kind, &why));
    expect_refusal("mine:", IDEM_EINVALID, "unknown kind of store");
}

/* A path is never loaded. */
TEST(path, isNeverLoaded)
{
    char url[4200];
    char cwd[4096];

    assert_non_null(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(url, sizeof(url), "%s/libidem-aws.so.0:", cwd);
    expect_refusal(url, IDEM_EINVALID, "unknown kind of store");
    expect_refusal("../dynamodb:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("dynamodb", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("dynamodb/:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal(":x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("sqlit:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal(NULL, IDEM_EINVALID, "no store given");
}
