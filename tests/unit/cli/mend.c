/* Commands for people to type: every byte must reach the program again. */
#include "record/verdict.h"

#include "test.h"

#include <stdlib.h>

static void check_quoted(struct idem_slice s, const char *want)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    cli_print_quoted(f, s);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
}

/* Only what a shell would change is quoted. */
TEST(quoted, isOneWordOfAShell)
{
    check_quoted(idem_str("order-42"), "order-42");
    check_quoted(idem_str("a/b.c_d:e@f%g+h,i"), "a/b.c_d:e@f%g+h,i");
    check_quoted(idem_str(""), "''");
    check_quoted(idem_str("a b"), "'a b'");
    check_quoted(idem_str("~root"), "'~root'");
    check_quoted(idem_str("=ls"), "'=ls'");
    check_quoted(idem_str("$(id) `id` *"), "'$(id) `id` *'");
    check_quoted(idem_str("it's"), "'it'\\''s'");
    check_quoted(idem_str("schl\xc3\xbcssel"), "'schl\xc3\xbcssel'");
    check_quoted(idem_str("a\nb"), "$'a\\012b'");
    check_quoted(idem_str("\xff'\\7"), "$'\\377\\047\\1347'");
}

static void check_mend(const char *scope, struct idem_slice key,
                       const char *want)
{
    struct idem_record record = {.scope = idem_str(scope), .key = key};
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    cli_print_remedy(f, "show", " --json", &record, "sqlite:a b");
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
}

/* A key that looks like an option stands behind "--". */
TEST(mend, isReadyToBeTyped)
{
    (void)unsetenv("IDEM_SCOPE");
    check_mend("", idem_str("k"), "idem show --store='sqlite:a b' --json k");
    check_mend("s", idem_str("-k"),
               "idem show --store='sqlite:a b' --scope=s --json -- -k");
    check_mend("", idem_str("escaped:k"),
               "idem show --store='sqlite:a b' --json escaped:escaped:k");
    check_mend("", idem_bytes("a\0b", 3),
               "idem show --store='sqlite:a b' --json --key-file=FILE");
}

/* An empty scope is said where another one would be taken. */
TEST(mend, saysAnEmptyScopeIfItMust)
{
    (void)setenv("IDEM_SCOPE", "acme", /* overwrite= */ 1);
    check_mend("", idem_str("k"),
               "idem show --store='sqlite:a b' --scope='' --json k");
    (void)unsetenv("IDEM_SCOPE");
}
