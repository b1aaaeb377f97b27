/* What somebody who mistyped may have meant. */
#include "text/error.h"

#include "test.h"

static const char *nearest(const char *word)
{
    static const char *const known[] = {"run",   "begin", "renew", "release",
                                        "show",  "list",  "key",   "completion",
                                        "purge", "fail"};
    struct cli_nearest n = {.word = word};

    EACH(one, known) {
        cli_nearest_offer(&n, *one);
    }
    return n.best;
}

/* One slip in a short word, two in a long one, or the beginning of it. */
TEST(nearest, forgivesSlips)
{
    assert_string_equal(nearest("bgin"), "begin");
    assert_string_equal(nearest("bgeni"), "begin");
    assert_string_equal(nearest("rnu"), "run");
    assert_string_equal(nearest("lst"), "list");
    assert_string_equal(nearest("lists"), "list");
    assert_string_equal(nearest("comp"), "completion");
    assert_string_equal(nearest("ru"), "run");
}

/* Nothing is better than something far away. */
TEST(nearest, doesNotGuess)
{
    assert_null(nearest("xyzzy"));
    assert_null(nearest(""));
    assert_null(nearest("k"));
    assert_null(nearest("rabbit"));
    assert_null(nearest("an argument that is longer than any command is"));
}
