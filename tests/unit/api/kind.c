/* Tests of src/api/kind.c: which store a URL names. */
#include "contract/kind.h"
#include "test.h"

#include <idem/memory.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static int opened;

static int count_open(const char *place,
                      const struct idem_open_options *options,
                      struct idem_store **ret_store,
                      struct idem_error *ret_error)
{
    assert_string_equal(place, "//a?b=c:d");
    opened++;
    return idem_memory_open(options, ret_store, ret_error);
}

static struct idem_store_kind kind_of(const char *scheme)
{
    struct idem_store_kind kind = {
        .abi = IDEM_STORE_ABI,
        .size = sizeof(kind),
        .scheme = scheme,
        .example = "x:",
        .open = count_open,
    };

    return kind;
}

static void expect_refusal(const char *url, int code, const char *word)
{
    const struct idem_store_kind *kind;
    const char *place;

    assert_code(code, idem__kind_find(url, &kind, &place, &why));
    assert_why(word);
}

/* A registered kind opens its URLs. */
TEST(kind, opensItsUrls)
{
    static struct idem_store_kind kind;
    const struct idem_store_kind *found;
    const char *place;
    struct idem_store *store;

    kind = kind_of("mine2");
    assert_ok(idem_kind_register(&kind, &why));
    assert_ok(idem_kind_register(&kind, &why));
    assert_ok(idem__kind_find("mine2:x", &found, &place, &why));
    assert_ptr_equal(found, &kind);
    assert_string_equal(place, "x");
    assert_ok(idem_open("mine2://a?b=c:d", NULL, &store, &why));
    assert_int_equal(opened, 1);
    idem_close(store);
}

/* A scheme has one kind. */
TEST(scheme, hasOneKind)
{
    static const char *const taken[] = {"sqlite", "memory", "once"};
    static struct idem_store_kind first;
    struct idem_store_kind other;

    first = kind_of("once");
    assert_ok(idem_kind_register(&first, &why));
    EACH(scheme, taken) {
        other = kind_of(*scheme);
        assert_code(IDEM_EINVALID, idem_kind_register(&other, &why));
        assert_why(*scheme);
    }
}

/* A scheme is lower case letters and digits, 16 at most. */
TEST(scheme, isLowerCaseLettersAndDigits)
{
    static const char *const bad[] = {"",
                                      "9a",
                                      "A",
                                      "a-b",
                                      "a:",
                                      "../",
                                      "a_b",
                                      "a/b",
                                      "a ",
                                      "\xc3\xa4",
                                      "abcdefghijklmnopq"};
    struct idem_store_kind kind;

    EACH(scheme, bad) {
        kind = kind_of(*scheme);
        assert_code(IDEM_EINVALID, idem_kind_register(&kind, &why));
    }
    kind = kind_of(NULL);
    assert_code(IDEM_EINVALID, idem_kind_register(&kind, &why));
    kind = kind_of("noopen");
    kind.open = NULL;
    assert_code(IDEM_EINVALID, idem_kind_register(&kind, &why));
}

/* A kind of another version is refused. */
TEST(kind, ofAnotherVersionIsRefused)
{
    struct idem_store_kind kind = kind_of("later");

    kind.abi++;
    assert_code(IDEM_ECONFIG, idem_kind_register(&kind, &why));
    kind = kind_of("later");
    kind.size = offsetof(struct idem_store_kind, schema) - 1;
    assert_code(IDEM_ECONFIG, idem_kind_register(&kind, &why));
    expect_refusal("later:", IDEM_EINVALID, "unknown kind of store");
}

/* The libraries are those of tests/lib/kind_library.c, on the path that the test's
 * environment names. */
TEST(library, hasTheKindOfItsName)
{
    const struct idem_store_kind *kind;
    const struct idem_store_kind *again;
    const char *place;
    struct idem_store *store;

    assert_ok(idem__kind_find("goodkind:p", &kind, &place, &why));
    assert_string_equal(kind->scheme, "goodkind");
    assert_string_equal(place, "p");
    assert_ok(idem__kind_find("goodkind:", &again, &place, &why));
    assert_ptr_equal(kind, again);
    /* All that this kind ever says. */
    assert_code(IDEM_EDENIED, idem_open("goodkind:", NULL, &store, &why));
    expect_refusal("oldkind:", IDEM_ECONFIG, "another version");
    expect_refusal("nokind:", IDEM_ECONFIG, "no symbol idem_nokind_kind");
    expect_refusal("otherkind:", IDEM_ECONFIG,
                   "provides another kind of store");
}

/* A path is never loaded. */
TEST(path, isNeverLoaded)
{
    char url[4200];
    char cwd[4096];

    assert_non_null(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(url, sizeof(url), "%s/libidem-goodkind.so.0:", cwd);
    expect_refusal(url, IDEM_EINVALID, "unknown kind of store");
    expect_refusal("../goodkind:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("goodkind", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("goodkind/:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal(":x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("", IDEM_EINVALID, "unknown kind of store");
    expect_refusal("sqlit:x", IDEM_EINVALID, "unknown kind of store");
    expect_refusal(NULL, IDEM_EINVALID, "no store given");
}

/* There is room for sixteen kinds. */
TEST(kinds, haveRoomForSixteen)
{
    static struct idem_store_kind kinds[IDEM_KINDS_MAX];
    static char names[IDEM_KINDS_MAX][8];
    int rc = 0;
    size_t i;

    for (i = 0; rc == 0 && i < IDEM_KINDS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "k%zu", i);
        kinds[i] = kind_of(names[i]);
        rc = idem_kind_register(&kinds[i], &why);
    }
    assert_int_equal(rc, IDEM_EFULL); /* Others are registered already. */
    assert_true(i > 8);
}
