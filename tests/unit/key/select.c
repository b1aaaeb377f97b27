/* Tests of src/key/select.c. */
#include "test.h"

#include "heap.h"

#include <errno.h>
#include <idem/key.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define M (1024 * 1024)

static struct idem_select_options options = IDEM_SELECT_OPTIONS_INIT;

/* Compiles, runs once, and compares. */
static void check(const char *program, const char *json, const char *want)
{
    struct idem_select *select;
    struct idem_slice output;

    assert_ok(idem_select_create(program, &options, &select, &why));
    assert_ok(idem_select_run(select, idem_str(json), &output, &why));
    assert_text(output, want);
    idem_select_destroy(select);
}

static void refuse(const char *program, const char *json, const char *word)
{
    struct idem_select *select;
    struct idem_slice output = {NULL, 0};
    int rc;

    assert_ok(idem_select_create(program, &options, &select, &why));
    rc = idem_select_run(select, idem_str(json), &output, &why);
    if (rc != IDEM_EINVALID || strstr(why.text, word) == NULL) {
        fail_with("%s: %d %s", program, rc, rc == 0 ? "it ran" : why.text);
    }
    idem_select_destroy(select);
}

/* One value is selected, as compact JSON. */
TEST(select, givesOneValue)
{
    check(".a", "{\"a\": {\"b\": [1, \"x\"]}}", "{\"b\":[1,\"x\"]}");
    check(".a", "{\"a\": \"order-42\"}", "\"order-42\"");
    check("[.a, .b.c]", "{\"a\": 1, \"b\": {\"c\": true}}", "[1,true]");
    check(".", "\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    check(".body | fromjson | .id", "{\"body\": \"{\\\"id\\\": 7}\"}", "7");
    check(".a", "{\"a\": false}", "false");
    check("if .a > 10.5 then \"more\" else \"less\" end", "{\"a\": 10.75}",
          "\"more\"");
}

/* Several values, also of a program with a comment, are an array; one is, too. */
TEST(select, givesSeveralValues)
{
    struct idem_select *select;

    options.several = true;
    check(".a, .b", "{\"a\": 12.50, \"b\": \"EUR\"}", "[12.50,\"EUR\"]");
    check(".a # the sum", "{\"a\": [1]}", "[[1]]");
    check(".[]", "[1, null]", "[1,null]");
    refuse(".a, .b", "{}", "not there");
    refuse(".[]", "[]", "selects []");
    assert_code(IDEM_EINVALID,
                idem_select_create(".a] | [.b", &options, &select, &why));
    options.several = false;
    refuse(".a, .b", "{\"a\": 1, \"b\": 2}", "more than one value");
}

/* A text is compiled once and runs over many inputs; one that failed before
 * changes nothing. */
TEST(select, runsManyTimes)
{
    struct idem_select *select;
    struct idem_slice output;
    char json[64], want[32];
    int i;

    assert_ok(idem_select_create(".id", NULL, &select, &why));
    for (i = 0; i < 20; i++) {
        (void)snprintf(json, sizeof(json), "{\"id\":\"order-%d\"}", i);
        (void)snprintf(want, sizeof(want), "order-%d", i);
        assert_ok(idem_select_run(select, idem_str(json), &output, &why));
        assert_text(idem_select_text(select, output), want);
        assert_code(IDEM_EINVALID,
                    idem_select_run(select, idem_str("[1]"), &output, &why));
    }
    assert_ok(
        idem_select_run(select, idem_str("{\"id\":[\"a\"]}"), &output, &why));
    assert_text(idem_select_text(select, output), "[\"a\"]");
    idem_select_destroy(select);
}

/* Numbers keep their digits wherever the program moves them. */
TEST(select, keepsTheDigitsOfNumbers)
{
    check(".", "12345678901234567890", "12345678901234567890");
    check(".a", "{\"a\":1.0}", "1.0");
    check("{x: .a, y: .b}", "{\"a\":1e21,\"b\":-0}", "{\"x\":1e21,\"y\":-0}");
    check("[.[] | .n]", "[{\"n\":0.10},{\"n\":9007199254740993}]",
          "[0.10,9007199254740993]");
    /* What looks like one of our marks is a string all the same. */
    check("[.a, .b]", "{\"a\":\"\xef\xa3\xbfidem:2\",\"b\":1.50}",
          "[\"\xef\xa3\xbfidem:2\",1.50]");
    /* Computing with what a double holds is the program's business. */
    check(".a * 100", "{\"a\":10.5}", "1050");
    check(".a + 1", "{\"a\":41}", "42");
}

/* With a number that jq would round nothing is computed in silence. */
TEST(select, doesNotComputeWithWhatItWouldRound)
{
    refuse(".a + 1", "{\"a\":12345678901234567890}",
           "may compute with 12345678901234567890");
    refuse(".a + 0", "{\"a\":1e400}", "may compute with 1e400");
}

/* A keyless input is an error, not the key of all keyless inputs. */
TEST(select, wantsWhatItSelectsToBeThere)
{
    refuse(".id", "{}", "selects null: what it names is not there");
    refuse("[.a, .b]", "{\"c\":1}", "selects [null,null]");
    refuse("{a: .a}", "{\"c\":1}", "selects {\"a\":null}");
    refuse("empty", "{}", "selects nothing");
    refuse(".[]", "[]", "selects nothing");
    check("[.a, .b]", "{\"b\":1}", "[null,1]");
    options.allow_null = true;
    check(".id", "{}", "null");
    options.allow_null = false;
}

/* What goes wrong says how. */
TEST(select, saysWhatWasWrong)
{
    refuse(".a.b", "{\"a\":3}", "Cannot index number with");
    refuse(".[]", "[1,2]", "more than one value");
    refuse("error(\"no order\")", "{}", "the program fails: no order");
    refuse("error({a: 1})", "{}", "the program fails: {\"a\":1}");
    refuse("1, halt", "{}", "halts");
    refuse("input", "{}", "the program fails");
    refuse(".", "{\"a\":1,\"a\":2}", "two members");
    refuse(".", "{\"a\":", "a value is missing");
    refuse(".", "\"\\ud800\"", "half a surrogate pair");
}

/* What is no program is said by jq's own words. */
TEST(select, refusesWhatIsNoProgram)
{
    static const struct {
        const char *program;
        const char *word;
    } rows[] = {
        {".a +", "syntax error"},
        {"foo", "foo/0 is not defined"},
        {"$x", "x is not defined"},
        {".a | (1", "syntax error"},
        {"import \"x\" as x; .", "not a valid jq program"},
        {"include \"x\"; .", "not a valid jq program"},
    };
    struct idem_select *select;
    char *large;
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        int rc = idem_select_create(rows[i].program, NULL, &select, &why);

        if (rc != IDEM_EINVALID || strstr(why.text, rows[i].word) == NULL) {
            fail_with("%s: %d %s", rows[i].program, rc, why.text);
        }
    }
    large = calloc(1, 65 * 1024 + 1);
    memset(large, '.', 65 * 1024);
    assert_code(IDEM_EINVALID, idem_select_create(large, NULL, &select, &why));
    assert_why("at most 65536 bytes");
    free(large);
}

/* A program that does not end is stopped; what it left behind is gone. */
TEST(select, hasItsTime)
{
    options.timeout_ms = 100;
    refuse("def f: f; f", "{}", "longer than 100 ms");
    refuse("[range(1e9)] | length", "{}", "longer than 100 ms");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Nor does it take the memory of its caller. */
TEST(select, hasItsMemory)
{
    options.memory_max = 16 * M;
    options.timeout_ms = 20000;
    refuse("\"x\" * 100000000", "{}", "more than 16777216 bytes of memory");
    refuse("[range(1e9)] | length", "{}", "of memory, or crashes");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* Sizes have an end on both sides. */
TEST(select, hasItsSizes)
{
    options.input_max = 10;
    options.output_max = 5;
    check(".", "\"abc\"", "\"abc\"");
    refuse(".", "\"abcd\"", "more than 5 bytes");
    refuse("\"abc\" * 3", "0", "more than 5 bytes");
    refuse(".", "\"abcdefghi\"", "has 11 bytes, and at most 10");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* An option that is out of range is refused. */
TEST(select, checksItsOptions)
{
    struct idem_select *select;
    struct idem_select_options o = IDEM_SELECT_OPTIONS_INIT;

    o.timeout_ms = 0;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    o = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    o.size--;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    o.size++;
    o.input_max = 17 * M;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    idem_select_destroy(NULL);
}

/* Without memory it fails cleanly. */
TEST(select, failsWithoutMemory)
{
    struct idem_select *select;
    struct idem_slice output;
    long n, failures = 0;
    bool failed = true;
    int rc;

    for (n = 0; failed; n++) {
        heap_fail(n, /* on= */ false);
        rc = idem_select_create(".a", NULL, &select, &why);
        if (rc == 0) {
            rc = idem_select_run(select, idem_str("{\"a\":[1.0,\"x\"]}"),
                                 &output, &why);
        } else {
            select = NULL;
        }
        failed = heap_fail_never();
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
        if (!failed) {
            assert_text(output, "[1.0,\"x\"]");
        }
        failures += failed;
        idem_select_destroy(select);
    }
    print_message("# %ld allocations failed\n", failures);
    assert_true(failures >= 8);
}
