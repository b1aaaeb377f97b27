/* Tests of src/key/tree.c. */
#include "test.h"

#include "key/tree.h"

#include <idem/key.h>
#include <string.h>

static struct idem__tree tree;

static int read_text(const char *text)
{
    return idem__tree_read(&tree, idem_str(text), &why);
}

/* Numbers keep the digits that they are written with. */
TEST(tree, keepsTheDigitsOfNumbers)
{
    static const char *const numbers[] = {
        "0",       "-0",    "1.0",   "1e21", "12345678901234567890123",
        "-1.5E-7", "1E400", "0.1e+2"};

    EACH(number, numbers) {
        assert_ok(read_text(*number));
        assert_text(idem__tree_raw(&tree, idem__tree_at(&tree, 0)), *number);
    }
    idem__tree_free(&tree);
}

/* Escapes become UTF-8; half a surrogate pair is kept, and said. */
TEST(tree, readsEscapes)
{
    static const struct {
        const char *json;
        const char *text;
        bool halves;
    } rows[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", false},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", false},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", false},
        {"\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80", false},
        {"\"\\ud800\"", "\xed\xa0\x80", true},
        {"\"\\udc00x\"", "\xed\xb0\x80x", true},
        {"\"\\ud83d\\ud83d\\ude00\"", "\xed\xa0\xbd\xf0\x9f\x98\x80", true},
        {"\"\\ud83d\\u0041\"", "\xed\xa0\xbd\x41", true},
    };

    EACH(row, rows) {
        assert_ok(read_text(row->json));
        assert_text(idem__tree_text(&tree, idem__tree_at(&tree, 0)), row->text);
        assert_int_equal(tree.halves, row->halves);
    }
    assert_ok(read_text("\"a\\u0000b\""));
    assert_int_equal(idem__tree_at(&tree, 0)->text_len, 3);
    idem__tree_free(&tree);
}

/* What is no JSON is refused, with the place where it goes wrong. */
TEST(tree, refusesWhatIsNoJson)
{
    static const struct {
        const char *json;
        const char *word;
    } rows[] = {
        {"", "line 1, column 1: a value is missing"},
        {"[1,\n 2 3]", "line 2, column 4: a comma or ]"},
        {"{\"a\":1,}", "the name of a member is missing"},
        {"{\"a\" 1}", "a colon is missing"},
        {"{a:1}", "the name of a member is missing"},
        {"[1,]", "not a JSON number"},
        {"[", "a value is missing"},
        {"{\"a\":1 \"b\":2}", "a comma or }"},
        {"01", "unexpected text after the value"},
        {"1.", "not a JSON number"},
        {".5", "not a JSON number"},
        {"1e", "not a JSON number"},
        {"-", "not a JSON number"},
        {"+1", "not a JSON number"},
        {"NaN", "not a JSON number"},
        {"Infinity", "not a JSON number"},
        {"nul", "not a JSON value"},
        {"\"a", "is not terminated"},
        {"\"a\nb\"", "a control character"},
        {"\"\\x\"", "unknown escape"},
        {"\"\\u12g4\"", "four hexadecimal digits"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\xed\xa0\x80\"", "not UTF-8"},
        {"\"\xc0\xaf\"", "not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "not UTF-8"},
        {"\"\xe2\x82", "not UTF-8"},
        {"1 2", "unexpected text after the value"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "two members with the name \"a\""},
        {"{\"a\":1,\"\\u0061\":2}", "two members with the name \"a\""},
        {"[{\"x\":{\"\":1,\"\":2}}]", "two members with the name \"\""},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        int rc = read_text(rows[i].json);

        if (rc != IDEM_EINVALID || strstr(why.text, rows[i].word) == NULL) {
            fail_with("row %zu: %d %s", i, rc, why.text);
        }
    }
    assert_ok(read_text("[{\"a\":1},{\"a\":1,\"b\":{\"a\":1}}]"));
    idem__tree_free(&tree);
}

static int nested(size_t levels)
{
    static char text[2 * 300 + 1];

    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    text[2 * levels] = '\0';
    return read_text(text);
}

/* Depth has an end. */
TEST(tree, goesDownTwoHundredLevels)
{
    assert_ok(nested(200));
    assert_code(IDEM_EINVALID, nested(201));
    assert_why("200 levels");
    idem__tree_free(&tree);
}

/* ---- Flavours ---- */

static struct idem_key_text key;

static int make(enum idem_flavour flavour, const char *json)
{
    return idem_flavour_key(flavour, "pay", idem_str(json), 0, &key, &why);
}

/* One event has a key of its own in each flavour. */
TEST(flavour, makesKeys)
{
    static const struct {
        enum idem_flavour flavour;
        const char *key;
    } rows[] = {
        {IDEM_FLAVOUR_PYTHON, "pay#ebd9f4c7b06cb0aaf5d13d80e49d8b90"},
        {IDEM_FLAVOUR_TYPESCRIPT, "pay#69n0x7BssKr10T2A5J2LkA=="},
    };

    EACH(row, rows) {
        assert_ok(make(row->flavour, "\"abc\""));
        assert_string_equal(key.text, row->key);
        assert_int_equal(key.len, strlen(row->key));
    }
}

/* A keyless event has no key unless that is asked for. */
TEST(flavour, wantsSomething)
{
    static const char *const nothing[][2] = {
        {"null", "pay#N6YlnMDB2uKZp4Zkid/wvQ=="},
        {"[null,null]", "pay#79hznynQaGEGP+tMxtM5Kw=="},
        {"\"\"", NULL},
        {"[]", NULL},
        {"{}", NULL},
        {"[null,[null]]", NULL},
        {"{\"a\":null}", NULL},
    };

    EACH(one, nothing) {
        assert_code(IDEM_EINVALID, make(IDEM_FLAVOUR_TYPESCRIPT, (*one)[0]));
        assert_why("every event without it");
        assert_ok(idem_flavour_key(IDEM_FLAVOUR_TYPESCRIPT, "pay",
                                   idem_str((*one)[0]), IDEM_FLAVOUR_NULL, &key,
                                   &why));
        if ((*one)[1] != NULL) {
            assert_string_equal(key.text, (*one)[1]);
        }
    }
    assert_ok(make(IDEM_FLAVOUR_TYPESCRIPT, "[null,0]"));
    assert_ok(make(IDEM_FLAVOUR_PYTHON, "false"));
}

/* A prefix is wanted, and a key is no longer than one of ours may be. */
TEST(flavour, checksThePrefix)
{
    char large[256];

    assert_code(IDEM_EINVALID, idem_flavour_key(IDEM_FLAVOUR_PYTHON, NULL,
                                                idem_str("1"), 0, &key, &why));
    assert_why("has a prefix");
    assert_code(IDEM_EINVALID, make((enum idem_flavour)0, "1"));
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_code(IDEM_EINVALID, idem_flavour_key(IDEM_FLAVOUR_PYTHON, large,
                                                idem_str("1"), 0, &key, &why));
    assert_why("at most 255");
    large[255 - 33] = '\0';
    assert_ok(idem_flavour_key(IDEM_FLAVOUR_PYTHON, large, idem_str("1"), 0,
                               &key, &why));
    assert_int_equal(key.len, 255);
}
