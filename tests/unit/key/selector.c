/* Tests of selectors: src/key/selector*.c. */
#include "test.h"

#include "heap.h"
#include "key/selector.h"

#include <stdlib.h>
#include <string.h>

static struct idem_selector *compiled(const char *text)
{
    struct idem_selector *selector = NULL;

    assert_ok(idem_selector_create(text, &selector, &why));
    return selector;
}

/* What @text selects of @json, as values and as a key; NULL: there is none. */
static void check(const char *text, const char *json, const char *values,
                  const char *key)
{
    struct idem_selector *selector = compiled(text);
    struct idem_slice got;
    struct idem_key_text made;

    assert_ok(idem_selector_run(selector, idem_str(json), 0, &why));
    assert_ok(idem_selector_values(selector, &got, &why));
    assert_text(got, values);
    if (key == NULL) {
        assert_code(IDEM_EINVALID, idem_key_of(selector, &made, &why));
    } else {
        assert_ok(idem_key_of(selector, &made, &why));
        assert_string_equal(made.text, key);
        assert_int_equal(made.len, strlen(key));
    }
    idem_selector_destroy(selector);
}

/* A run that is refused. */
static void refuse(const char *text, const char *json, const char *words)
{
    struct idem_selector *selector = compiled(text);

    assert_code(IDEM_EINVALID,
                idem_selector_run(selector, idem_str(json), 0, &why));
    assert_why(words);
    idem_selector_destroy(selector);
}

/* A key that is refused. */
static void refuse_key(int code, const char *text, const char *json,
                       const char *words)
{
    struct idem_selector *selector = compiled(text);
    struct idem_key_text key;

    assert_ok(idem_selector_run(selector, idem_str(json), 0, &why));
    assert_code(code, idem_key_of(selector, &key, &why));
    assert_why(words);
    idem_selector_destroy(selector);
}

/* Each form of the language. */
TEST(selector, selects)
{
    static const char order[] =
        "{\"id\": 42, \"a b\": [10, [20]], \"n\": null, \"s\": \"Ab\", "
        "\"body\": \"{\\\"id\\\":\\\"x\\\"}\", \"d\": \"aGk=\", \"t\": true}";

    check(".", "\"x\"", "[\"x\"]", "x");
    check(".id", order, "[42e0]", "42");
    check(".[\"a b\"][0]", order, "[1e1]", "10");
    check(".\"a b\"[-1][0]", order, "[2e1]", "20");
    check("[.\"a b\"[]]", "{\"a b\":[1,2]}", "[[1e0,2e0]]", "=[\"1\",\"2\"]");
    check(".n // .id", order, "[42e0]", "42");
    check(".n // .x // .s", order, "[\"Ab\"]", "Ab");
    check("(.n, .id) // .s", order, "[42e0]", NULL);
    check(".s | ascii_downcase", order, "[\"ab\"]", "ab");
    check(".d|@base64d", order, "[\"hi\"]", "hi");
    check(".body | fromjson | .id", order, "[\"x\"]", "x");
    check(".body | fromjson.id", order, "[\"x\"]", "x");
    check(".id | tostring", order, "[\"42\"]", "42");
    check("\"order/\" + .s + \"/\\(.id)\"", order, "[\"order/Ab/42\"]",
          "order/Ab/42");
    check(".s.x?, .id", order, "[42e0]", NULL);
    check("del(.body, .d, .\"a b\"[0], .nix.x, .n)", order,
          "[{\"a b\":[[2e1]],\"id\":42e0,\"s\":\"Ab\",\"t\":true}]", NULL);
    check(".t, .s", order, "[true,\"Ab\"]", "=[\"true\",\"Ab\"]");
    check("-1.50, null, false, \"\\u00e9\\(1)\", []", "0",
          "[-15e-1,null,false,\"\xc3\xa9"
          "1\",[]]",
          NULL);
}

/* Numbers keep their digits, and what is one value is one key. */
TEST(selector, keepsDigits)
{
    static const struct {
        const char *json;
        const char *key;
    } rows[] = {
        {"108086391057176360", "108086391057176360"},
        {"12345678901234567890", "12345678901234567890"},
        {"1.0", "1"},
        {"10e-1", "1"},
        {"-0", "0"},
        {"0.00120", "0.0012"},
        {"120.50", "120.5"},
        {"-2.5e3", "-2500"},
        {"1e21", "1000000000000000000000"},
        {"1e22", "1e22"},
        {"1e-7", "0.0000001"},
        {"1e-8", "1e-8"},
        {"1e999999999", "1e999999999"},
        {"\"1.0\"", "1.0"},
    };

    EACH(row, rows) {
        struct idem_selector *selector = compiled("\"\\(.)\"");
        struct idem_key_text key;

        assert_ok(idem_selector_run(selector, idem_str(row->json), 0, &why));
        assert_ok(idem_key_of(selector, &key, &why));
        assert_string_equal(key.text, row->key);
        idem_selector_destroy(selector);
        selector = compiled(".");
        assert_ok(idem_selector_run(selector, idem_str(row->json), 0, &why));
        assert_ok(idem_key_of(selector, &key, &why));
        assert_string_equal(key.text, row->key);
        idem_selector_destroy(selector);
    }
    refuse("\"\\(.)\"", "1e100000000000000000", "exponent of too many digits");
}

/* What is written differently and means the same is the same; what is not, is not. */
TEST(selector, comparesByMeaning)
{
    check(".", "{\"b\":[2,1.0],\"a\":\"\\u0041\"}",
          "[{\"a\":\"A\",\"b\":[2e0,1e0]}]", NULL);
    check(".a", "{\"a\":\"1\"}", "[\"1\"]", "1");
    check(".a", "{\"a\":1}", "[1e0]", "1");
}

/* Lists, long texts, and texts that look like either. */
TEST(selector, makesOneKeyOfEach)
{
    char json[3 * IDEM_KEY_MAX + 3] = "\"";
    struct idem_selector *selector = compiled(".");
    struct idem_key_text key;
    size_t i;

    check("[.a, .b]", "{\"a\":\"a\",\"b\":\"bc\"}", "[[\"a\",\"bc\"]]",
          "=[\"a\",\"bc\"]");
    check(".a, .b", "{\"a\":\"ab\",\"b\":\"c\"}", "[\"ab\",\"c\"]",
          "=[\"ab\",\"c\"]");
    check(".", "\"=[\\\"a\\\"]\"", "[\"=[\\\"a\\\"]\"]", "==[\"a\"]");
    check("[.]", "\"x\"", "[[\"x\"]]", "=[\"x\"]");

    /* 255 bytes are a key; 256 are its head, which is whole characters, and a
     * digest. */
    memset(json + 1, 'x', IDEM_KEY_MAX);
    strcpy(json + 1 + IDEM_KEY_MAX, "\"");
    assert_ok(idem_selector_run(selector, idem_str(json), 0, &why));
    assert_ok(idem_key_of(selector, &key, &why));
    assert_int_equal(key.len, IDEM_KEY_MAX);
    assert_int_equal(strspn(key.text, "x"), IDEM_KEY_MAX);
    for (i = 0; i < IDEM_KEY_MAX; i++) {
        memcpy(json + 1 + 2 * i, "\xc3\xa9", 2);
    }
    strcpy(json + 1 + 2 * i, "\"");
    assert_ok(idem_selector_run(selector, idem_str(json), 0, &why));
    assert_ok(idem_key_of(selector, &key, &why));
    assert_in_range(key.len, IDEM_KEY_MAX - 1, IDEM_KEY_MAX);
    assert_memory_equal(key.text, "=#\xc3\xa9", 4);
    assert_int_equal(key.text[key.len - 65], '#');
    assert_int_equal((unsigned char)key.text[key.len - 66], 0xa9);
    assert_int_equal(strspn(key.text + key.len - 64, "0123456789abcdef"), 64);
    idem_selector_destroy(selector);
}

/* A key that others would share is refused. */
TEST(selector, refusesWhatIsNotAKey)
{
    refuse_key(IDEM_ENOTFOUND, ".id", "{}",
               "selects null: the input has no such member");
    refuse_key(IDEM_ENOTFOUND, ".a, .b", "{}", "selects null");
    refuse_key(IDEM_ENOTFOUND, "[.a, [.b]]", "{}", "selects null");
    refuse_key(IDEM_ENOTFOUND, ".[]", "[]", "selects nothing");
    refuse_key(IDEM_ENOTFOUND, "[.[]]", "[]", "selects null");
    refuse_key(IDEM_EINVALID, "[.a, .b]", "{\"a\":1}",
               "part of the key is null");
    refuse_key(IDEM_EINVALID, ".", "{}", "an object, which is not a key");
    refuse_key(IDEM_EINVALID, ".a", "{\"a\":[1]}", "an array of the text");
    refuse_key(IDEM_EINVALID, "[.a]", "{\"a\":[1]}", "an array of the text");
    refuse_key(IDEM_EINVALID, ".", "\"\"", "an empty text");
    refuse_key(IDEM_EINVALID, ".", "\"a\\u0000\"", "a NUL in it");
    refuse_key(IDEM_EINVALID, ".[]", "[1,2]", "2 values in place of 1");
    refuse_key(IDEM_EINVALID, ".a?, .b", "{\"b\":1}",
               "part of the key is null");
    refuse_key(IDEM_EINVALID, ".a.x?, .b", "{\"a\":1,\"b\":1}",
               "1 values in place of 2");
    refuse("\"order/\\(.id)\"", "{}", "null cannot be part of a text");
    refuse("\"order/\" + .id", "{}", "+ takes a text, and this is null");
    refuse("\"\\(.)\"", "[1]", "an array cannot be part of a text");
    refuse(".a | tostring", "{\"a\":{}}", "an object cannot be part of a text");
}

/* What two readers may understand differently is refused, and ? does not pass over
 * it; nor is anything else taken for what it is not. */
TEST(selector, refusesTexts)
{
    refuse(".", "{\"a\":1,\"a\":1}", "two members with the name \"a\"");
    refuse("[fromjson?]", "\"{\\\"a\\\":1,\\\"a\\\":1}\"", "two members");
    refuse(".", "\"\\ud800\"", "half a surrogate pair");
    refuse("fromjson", "\"\\\"\\\\ud800\\\"\"", "half a surrogate pair");
    refuse("[@base64d?]", "\"/w==\"", "not UTF-8");
    refuse("@base64d", "\"a\"", "not base64");
    refuse("@base64d", "\"a===\"", "not base64");
    refuse("fromjson", "\"{\"", "line 1, column 2");
    refuse("fromjson", "1", "fromjson takes a text, and this is a number");
    refuse(".a", "[]", "an array has no member \"a\"");
    refuse(".[0]", "{}", "an object has no element 0");
    refuse(".[]", "{\"a\":1}", "no order: name them");
    refuse(".[]", "1", "elements of an array, and this is a number");
    refuse(".", "\x1f\x8b\x08", "compressed with gzip");
    refuse(".", "{\"a\":", "a value is missing");
}

/* A run is bounded, whatever selector and text are. */
TEST(selector, isBounded)
{
    char many[IDEM__SELECTOR_LEN_MAX + 2];
    struct idem_selector *selector = NULL;
    size_t i;

    strcpy(many, "(.,.)");
    for (i = 0; i < 40; i++) {
        strcat(many, "|(.,.)");
    }
    refuse(many, "1", "exceeds its limit of steps");
    strcpy(many, ".");
    for (i = 0; i < 40; i++) {
        strcat(many, "|.+.");
    }
    refuse(many, "\"0123456789\"", "exceeds its limit of steps");
    strcpy(many, "[.,.]");
    for (i = 0; i < 40; i++) {
        strcat(many, "|[.,.]");
    }
    refuse(many, "1", "exceeds its limit of steps");

    memset(many, '[', IDEM__SELECTOR_DEPTH_MAX + 1);
    many[IDEM__SELECTOR_DEPTH_MAX + 1] = '\0';
    assert_code(IDEM_EINVALID, idem_selector_create(many, &selector, &why));
    assert_why("nested too deeply");
    memset(many, ' ', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    assert_code(IDEM_EINVALID, idem_selector_create(many, &selector, &why));
    assert_why("at most 4096 bytes");
}

/* A request is seen as idem/key.h draws it, and its key as the grammar reads it. */
TEST(selector, seesARequest)
{
    struct idem_selector_header headers[] = {
        {idem_str("Host"), idem_str("h")},
        {idem_str("X-Two"), idem_str("b")},
        {idem_str("x-two"), idem_str("a\"\\\t")},
        {idem_str("X-Latin"), idem_str("\xe9")},
        {idem_str("IDEMPOTENCY-Key"), idem_str(" \"pay 1\"")},
        {idem_str("Idempotency-Key"), idem_str("\"pay 1\"")},
    };
    struct idem_selector_request request = {
        idem_str("POST"), idem_str("/o%20r?b=1&a=%C3%A9+x&b=2%&c&&d=%ff"),
        headers, COUNT(headers), idem_str(" {\"n\":12345678901234567890}")};
    static const struct {
        const char *body;
        const char *want;
    } bodies[] = {
        {"", "[\"\"]"},
        {"a=1&b=2", "[\"a=1&b=2\"]"},
        {"42", "[\"42\"]"},
        {"[1]", "[[1e0]]"},
        {"[1,", "[\"[1,\"]"},
        {"{\"a\":1,\"a\":2}", "[\"{\\\"a\\\":1,\\\"a\\\":2}\"]"},
        {"[\"\\ud800\"]", "[\"[\\\"\\\\ud800\\\"]\"]"},
    };
    struct idem_selector *selector = compiled(".");
    struct idem_selector *body = compiled(".body");
    struct idem_slice got;
    struct idem_key_text key;

    assert_ok(idem_selector_run_request(selector, &request, &why));
    assert_ok(idem_selector_values(selector, &got, &why));
    assert_text(
        got,
        "[{\"body\":{\"n\":1234567890123456789e1},\"headers\":{\"host\":"
        "\"h\",\"idempotency-key\":\"pay 1\",\"x-latin\":null,\"x-two\":"
        "[\"b\",\"a\\\"\\\\\\t\"]},\"method\":\"POST\",\"path\":\"/o%20r\","
        "\"query\":{\"a\":\"\xc3\xa9 x\",\"b\":[\"1\",\"2%\"],\"c\":\"\","
        "\"d\":null}}]");
    EACH(row, bodies) {
        request.body = idem_str(row->body);
        assert_ok(idem_selector_run_request(body, &request, &why));
        assert_ok(idem_selector_values(body, &got, &why));
        assert_text(got, row->want);
    }
    request.body = idem_str("\x1f\x8b\x08\xff");
    assert_ok(idem_selector_run_request(body, &request, &why));
    assert_code(IDEM_ENOTFOUND, idem_key_of(body, &key, &why));
    assert_why("compressed with gzip");

    headers[5].value = idem_str("pay-2");
    assert_code(IDEM_EINVALID, idem_selector_run_request(body, &request, &why));
    assert_why("two Idempotency-Keys that differ");
    headers[5].value = idem_str("a, b");
    assert_code(IDEM_EINVALID, idem_selector_run_request(body, &request, &why));
    assert_why("is a list");
    request.headers_len = 0;
    request.target = idem_str("/?%ff=1");
    assert_code(IDEM_EINVALID, idem_selector_run_request(body, &request, &why));
    assert_why("the name of an argument is not UTF-8");
    idem_selector_destroy(selector);
    idem_selector_destroy(body);
}

/* In the event of an HTTP request the header is found whatever case it has. */
TEST(selector, readsTheKeyOfAnEvent)
{
    static const char event[] =
        "{\"body\":{},\"headers\":{\"a\":\"b\",\"Idempotency-Key\":\"\\\"k "
        "1\\\"\"}}";
    struct idem_selector *selector =
        compiled(".headers[\"idempotency-key\"] // \"none\"");
    struct idem_key_text key;

    assert_ok(
        idem_selector_run(selector, idem_str(event), IDEM_SELECTOR_HTTP, &why));
    assert_ok(idem_key_of(selector, &key, &why));
    assert_string_equal(key.text, "k 1");
    assert_ok(idem_selector_run(selector, idem_str(event), 0, &why));
    assert_ok(idem_key_of(selector, &key, &why));
    assert_string_equal(key.text, "none");
    idem_selector_destroy(selector);
}

static long allocations_of(struct idem_selector *selector, int runs)
{
    long before = heap_allocations();
    struct idem_slice values;
    struct idem_key_text key;

    for (; runs > 0; runs--) {
        assert_ok(idem_selector_run(
            selector, idem_str("{\"a\":[1,{\"b\":\"x\"}],\"c\":\"[2]\"}"), 0,
            &why));
        assert_ok(idem_selector_values(selector, &values, &why));
        assert_ok(idem_key_of(selector, &key, &why));
    }
    return heap_allocations() - before;
}

/* The memory of one run is that of the next: only reading names takes some for a
 * moment. */
TEST(selector, allocatesOnce)
{
    struct idem_selector *selector = compiled(
        "\"\\(.a[1] | del(.c) | .b)/\" + (.c | fromjson[0] | tostring)");
    long first = allocations_of(selector, 1);
    long next = allocations_of(selector, 1);

    assert_true(next < first);
    assert_int_equal(allocations_of(selector, 100), 100 * next);
    assert_int_equal(next, 1);
    idem_selector_destroy(selector);
}

/* Without memory there is an error, and nothing is lost. */
TEST(selector, failsWithoutMemory)
{
    struct idem_selector_header headers[] = {
        {idem_str("Idempotency-Key"), idem_str("b")}};
    struct idem_selector_request request = {
        idem_str("POST"), idem_str("/?a=1"), headers, 1,
        idem_str("{\"a\":[1],\"b\":{\"x\":1,\"y\":2},\"c\":\"aGk=\"}")};
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct idem_selector *selector = NULL;
        struct idem_slice values;
        struct idem_key_text key;
        int rc;

        heap_fail(n, /* on= */ false);
        rc = idem_selector_create(
            "[\"\\(.body.a[0])/\" + (.body.c | @base64d | ascii_downcase), "
            "(.query.a | fromjson), .headers[\"idempotency-key\"]], "
            "(.body | del(.b.x) | .b.y)",
            &selector, &why);
        if (rc == 0) {
            rc = idem_selector_run_request(selector, &request, &why);
        }
        if (rc == 0) {
            rc = idem_selector_values(selector, &values, &why);
        }
        if (rc == 0) {
            rc = idem_key_of(selector, &key, &why) == IDEM_ENOMEM ? IDEM_ENOMEM
                                                                  : 0;
        }
        failed = heap_fail_never();
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
        idem_selector_destroy(selector);
    }
    assert_true(n > 10);
}
