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
    struct idem_error error;

    assert_int_equal(idem__kind_find(url, &kind, &place, &error), code);
    assert_int_equal(error.code, code);
    if (strstr(error.text, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, word);
    }
}

static void a_registered_kind_opens_its_urls(void **state)
{
    static struct idem_store_kind kind;
    const struct idem_store_kind *found;
    const char *place;
    struct idem_store *store;
    struct idem_error error;

    (void)state;
    kind = kind_of("mine2");
    assert_int_equal(idem_kind_register(&kind, &error), 0);
    assert_int_equal(idem_kind_register(&kind, &error), 0);
    assert_int_equal(idem__kind_find("mine2:x", &found, &place, &error), 0);
    assert_ptr_equal(found, &kind);
    assert_string_equal(place, "x");
    assert_int_equal(idem_open("mine2://a?b=c:d", NULL, &store, &error), 0);
    assert_int_equal(opened, 1);
    idem_close(store);
}

static void a_scheme_has_one_kind(void **state)
{
    static const char *const taken[] = {"sqlite", "memory", "once"};
    static struct idem_store_kind first;
    struct idem_store_kind other;
    struct idem_error error;
    size_t i;

    (void)state;
    first = kind_of("once");
    assert_int_equal(idem_kind_register(&first, &error), 0);
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        other = kind_of(taken[i]);
        assert_int_equal(idem_kind_register(&other, &error), IDEM_EINVALID);
        assert_non_null(strstr(error.text, taken[i]));
    }
}

static void a_scheme_is_lower_case_letters_and_digits(void **state)
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
    struct idem_error error;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kind = kind_of(bad[i]);
        assert_int_equal(idem_kind_register(&kind, &error), IDEM_EINVALID);
    }
    kind = kind_of(NULL);
    assert_int_equal(idem_kind_register(&kind, &error), IDEM_EINVALID);
    kind = kind_of("noopen");
    kind.open = NULL;
    assert_int_equal(idem_kind_register(&kind, &error), IDEM_EINVALID);
}

static void a_kind_of_another_version_is_refused(void **state)
{
    struct idem_store_kind kind = kind_of("later");
    struct idem_error error;

    (void)state;
    kind.abi++;
    assert_int_equal(idem_kind_register(&kind, &error), IDEM_ECONFIG);
    kind = kind_of("later");
    kind.size = offsetof(struct idem_store_kind, schema) - 1;
    assert_int_equal(idem_kind_register(&kind, &error), IDEM_ECONFIG);
    expect_refusal("later:", IDEM_EINVALID, "unknown kind of store");
}

/* The libraries are those of tests/lib/kind_library.c, on the path that the test's
 * environment names. */
static void a_library_has_the_kind_of_its_name(void **state)
{
    const struct idem_store_kind *kind;
    const struct idem_store_kind *again;
    const char *place;
    struct idem_store *store;
    struct idem_error error;

    (void)state;
    assert_int_equal(idem__kind_find("goodkind:p", &kind, &place, &error), 0);
    assert_string_equal(kind->scheme, "goodkind");
    assert_string_equal(place, "p");
    assert_int_equal(idem__kind_find("goodkind:", &again, &place, &error), 0);
    assert_ptr_equal(kind, again);
    assert_int_equal(idem_open("goodkind:", NULL, &store, &error),
                     IDEM_EDENIED); /* All that this kind ever says. */
    expect_refusal("oldkind:", IDEM_ECONFIG, "another version");
    expect_refusal("nokind:", IDEM_ECONFIG, "no symbol idem_nokind_kind");
    expect_refusal("otherkind:", IDEM_ECONFIG,
                   "provides another kind of store");
}

static void a_path_is_never_loaded(void **state)
{
    char url[4200];
    char cwd[4096];

    (void)state;
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

static void there_is_room_for_sixteen(void **state)
{
    static struct idem_store_kind kinds[IDEM_KINDS_MAX];
    static char names[IDEM_KINDS_MAX][8];
    struct idem_error error;
    int rc = 0;
    size_t i;

    (void)state;
    for (i = 0; rc == 0 && i < IDEM_KINDS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "k%zu", i);
        kinds[i] = kind_of(names[i]);
        rc = idem_kind_register(&kinds[i], &error);
    }
    assert_int_equal(rc, IDEM_EFULL); /* Others are registered already. */
    assert_true(i > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registered_kind_opens_its_urls),
        cmocka_unit_test(a_scheme_has_one_kind),
        cmocka_unit_test(a_scheme_is_lower_case_letters_and_digits),
        cmocka_unit_test(a_kind_of_another_version_is_refused),
        cmocka_unit_test(a_library_has_the_kind_of_its_name),
        cmocka_unit_test(a_path_is_never_loaded),
        cmocka_unit_test(there_is_room_for_sixteen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
