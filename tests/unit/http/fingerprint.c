/* Tests of src/http/fingerprint.c and multipart.c. */
#include <idem/http.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define FORM "multipart/form-data; boundary="

static const struct idem_slice target[2] = {{"POST", 4}, {"/pay", 4}};

static void print_of(const char *type, struct idem_slice body,
                     uint8_t ret[IDEM_FINGERPRINT_LEN])
{
    assert_ok(idem_http_fingerprint(target, 2, idem_str(type), body,
                                    idem_str(NULL), ret));
}

static bool is_one(const char *type_a, struct idem_slice a, const char *type_b,
                   struct idem_slice b)
{
    uint8_t print_a[IDEM_FINGERPRINT_LEN];
    uint8_t print_b[IDEM_FINGERPRINT_LEN];

    print_of(type_a, a, print_a);
    print_of(type_b, b, print_b);
    return memcmp(print_a, print_b, sizeof(print_a)) == 0;
}

static void is_of(const uint8_t got[IDEM_FINGERPRINT_LEN], const char *tag,
                  struct idem_slice last)
{
    struct idem_slice parts[4] = {target[0], target[1], idem_str(tag), last};
    uint8_t want[IDEM_FINGERPRINT_LEN];

    assert_ok(idem_fingerprint(parts, 4, idem_str(NULL), want));
    assert_memory_equal(got, want, sizeof(want));
}

static struct idem_slice sha256_of(struct idem_slice bytes, uint8_t digest[32])
{
    assert_ok(idem__sha256(&bytes, 1, digest));
    return idem_bytes(digest, 32);
}

/* Each kind has its tag, after the parts of the caller. */
TEST(http_fingerprint, hasATag)
{
    uint8_t got[IDEM_FINGERPRINT_LEN];
    uint8_t digests[64];
    uint8_t digest[32];

    print_of("text/plain", idem_str("{ }"), got);
    is_of(got, "bytes", idem_str("{ }"));
    print_of("application/json", idem_str("{ \"b\": 10, \"a\": 1.0 }"), got);
    is_of(got, "json", idem_str("{\"a\":1e0,\"b\":1e1}"));
    print_of("application/json", idem_str("{ } x"), got);
    is_of(got, "bytes", idem_str("{ } x"));
    print_of(FORM "b", idem_str("--b\r\none\r\n--b\r\n\r\n--b--"), got);
    (void)sha256_of(idem_str("one"), digests);
    (void)sha256_of(idem_str(""), digests + 32);
    is_of(got, "form", sha256_of(idem_bytes(digests, 64), digest));
    assert_ok(idem_http_fingerprint_selected(target, 2, idem_str("[ 1.0 ]"),
                                             idem_str(NULL), got));
    is_of(got, "selected", idem_str("[1e0]"));
}

/* What means the same by its type is one; else the bytes decide. */
TEST(http_fingerprint, isOfWhatABodyMeans)
{
    static const struct {
        const char *type;
        const char *a;
        const char *b;
        bool one;
    } rows[] = {
        {"application/json", "{\"a\":1,\"b\":2}", "{\"b\":2, \"a\":1.0}", true},
        {"Application/JSON ; charset=utf-8", "[1]", " [ 1e0 ] ", true},
        {"application/vnd.api+json", "\"\\u00e9\"", "\"\xc3\xa9\"", true},
        {"application/json", "1", "\"1\"", false},
        {"application/json", "9007199254740993", "9007199254740992", false},
        {"application/json", "[1,2]", "[2,1]", false},
        {"application/json", "{\"a\":1,\"a\":2}", "{\"a\":1, \"a\":2}", false},
        {"application/json", "\"\\ud800\"", "\"\\uD800\"", false},
        {"application/jsonp", "[1]", "[1 ]", false},
        {"text/plain", "[1]", "[1 ]", false},
        {"", "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {NULL, "\t\n\r [1]", "[1.0 ]", true},
        {NULL, "1", "1.0", false},
        {NULL, "[1", "[1 ", false},
        {NULL, "", " ", false},
    };

    EACH(row, rows) {
        if (is_one(row->type, idem_str(row->a), row->type, idem_str(row->b)) !=
            row->one) {
            fail_with("%s: %s and %s", row->type, row->a, row->b);
        }
    }
    assert_false(is_one("application/json", idem_str("[1e0]"), "text/plain",
                        idem_str("[1e0]")));
}

/* JSON up to the limit has a canonical form, and one byte more is bytes. */
TEST(http_fingerprint, hasALimitForJson)
{
    char *body = malloc(IDEM_HTTP_JSON_MAX + 1);
    struct idem_slice whole;
    struct idem_slice more;

    assert_non_null(body);
    memset(body, ' ', IDEM_HTTP_JSON_MAX + 1);
    body[0] = '7';
    whole = idem_bytes(body, IDEM_HTTP_JSON_MAX);
    more = idem_bytes(body, IDEM_HTTP_JSON_MAX + 1);
    assert_true(
        is_one("application/json", whole, "application/json", idem_str("7")));
    assert_false(
        is_one("application/json", more, "application/json", idem_str("7")));
    free(body);
}

/* A form is its parts, with another boundary too; anything beside them, or a
 * boundary that is not one, and it is bytes. */
TEST(http_fingerprint, isOfThePartsOfAForm)
{
    static const char part[] = "Content-Disposition: form-data; name=\"f\"; "
                               "filename=\"f.txt\"\r\n\r\nhello";
    static const struct {
        const char *type;
        const char *body; /* $: the part. */
        bool one;
    } rows[] = {
        {FORM "other", "--other\r\n$\r\n--other--\r\n", true},
        {FORM "x", "--x\r\n$\r\n--x--", true},
        {"Multipart/Form-Data ; charset=utf-8; Boundary=\"a b\"",
         "--a b\r\n$\r\n--a b--\r\n", true},
        {"multipart/mixed; boundary=x", "--x\r\n$\r\n--x--", false},
        {FORM "x", "--x\r\n$ \r\n--x--", false},
        {FORM "x", "--x\r\n$\r\n--x\r\n\r\n--x--", false},
        {FORM "x", "\r\n--x\r\n$\r\n--x--", false},
        {FORM "x", "--x\r\n$\r\n--x--\r\n\r\n", false},
        {FORM "x", "--x\r\n$\r\n--x--y", false},
        {FORM "x", "--x\r\n$\r\n--x", false},
        {FORM "x", "--x\n$\n--x--", false},
        {FORM "x", "--x \r\n$\r\n--x--", false},
        {FORM "x; boundary=x", "--x\r\n$\r\n--x--", false},
        {FORM "\"x", "--x\r\n$\r\n--x--", false},
        {FORM, "--\r\n$\r\n----", false},
        {FORM "0123456789012345678901234567890123456789012345678901234567890123"
              "4567890",
         "--01234567890123456789012345678901234567890123456789012345678901234567"
         "890\r\n$\r\n--0123456789012345678901234567890123456789012345678901234"
         "567890123456"
         "7890--",
         false},
    };
    char a[400];
    char b[800];
    size_t i;

    (void)snprintf(a, sizeof(a), "--first\r\n%s\r\n--first--\r\n", part);
    for (i = 0; i < COUNT(rows); i++) {
        const char *mark = strchr(rows[i].body, '$');

        (void)snprintf(b, sizeof(b), "%.*s%s%s", (int)(mark - rows[i].body),
                       rows[i].body, part, mark + 1);
        if (is_one(FORM "first", idem_str(a), rows[i].type, idem_str(b)) !=
            rows[i].one) {
            fail_with("row %zu: %s: %s", i, rows[i].type, b);
        }
    }
}

/* ---- In pieces ---- */

static const struct {
    const char *type;
    const char *body;
} bodies[] = {
    {"text/plain", "0123456789abcdef0123456789"},
    {"application/json", "{\"b\":[1,2],\"a\":\"\\u0041\"}"},
    {"application/json", "{\"b\":[1,2],\"a\":\"\\u0041\""},
    {"", " [1.0]"},
    {FORM "--x", "----x\r\n\r\n--\r\n--x\r\r\n----x\r\nb\r\n----x--\r\n"},
    {FORM "--x", "----x\r\n\r\n--\r\n--x\r\r\n----x\r\nb\r\n----x--\r"},
};

static int in_pieces(size_t row, size_t cut, struct idem_slice secret,
                     uint8_t ret[IDEM_FINGERPRINT_LEN])
{
    struct idem_slice body = idem_str(bodies[row].body);
    struct idem_http_fingerprint *print;
    int rc = idem_http_fingerprint_create(target, 2, idem_str(bodies[row].type),
                                          body.len, secret, &print);

    if (rc != 0) {
        return rc;
    }
    idem_http_fingerprint_add(print, idem_bytes(body.base, cut));
    idem_http_fingerprint_add(print, idem_bytes(bodies[row].body + cut,
                                                body.len - cut));
    return idem_http_fingerprint_end(print, ret);
}

/* However the body is cut up, it is the fingerprint of the whole. */
TEST(http_fingerprint, isThatOfTheWhole)
{
    struct idem_slice secrets[2] = {{NULL, 0}, {"secret", 6}};
    uint8_t want[IDEM_FINGERPRINT_LEN];
    uint8_t got[IDEM_FINGERPRINT_LEN];
    size_t row, i, cut;

    for (row = 0; row < COUNT(bodies); row++) {
        for (i = 0; i < 2; i++) {
            assert_ok(idem_http_fingerprint(target, 2,
                                            idem_str(bodies[row].type),
                                            idem_str(bodies[row].body),
                                            secrets[i], want));
            for (cut = 0; cut <= strlen(bodies[row].body); cut++) {
                assert_ok(in_pieces(row, cut, secrets[i], got));
                assert_memory_equal(want, got, sizeof(want));
            }
        }
    }
}

/* A body that is longer or shorter than announced has none, of whatever kind. */
TEST(http_fingerprint, wantsWhatWasAnnounced)
{
    static const char *const types[] = {"text/plain", "application/json",
                                        FORM "x"};
    struct idem_http_fingerprint *print;
    uint8_t got[IDEM_FINGERPRINT_LEN];

    EACH(one, types) {
        struct idem_slice type = idem_str(*one);

        assert_ok(idem_http_fingerprint_create(NULL, 0, type, 3, idem_str(""),
                                               &print));
        idem_http_fingerprint_add(print, idem_str("12"));
        assert_code(IDEM_EINVALID, idem_http_fingerprint_end(print, got));
        assert_ok(idem_http_fingerprint_create(NULL, 0, type, 3, idem_str(""),
                                               &print));
        idem_http_fingerprint_add(print, idem_str("1234"));
        assert_code(IDEM_EINVALID, idem_http_fingerprint_end(print, got));
    }
    assert_code(IDEM_EINVALID,
                idem_http_fingerprint_create(NULL, 65534, idem_str(""), 0,
                                             idem_str(""), &print));
    assert_code(IDEM_EINVALID,
                idem_http_fingerprint_create(NULL, SIZE_MAX, idem_str(""), 0,
                                             idem_str(""), &print));
    assert_code(IDEM_EINVALID,
                idem_http_fingerprint_selected(NULL, SIZE_MAX, idem_str("1"),
                                               idem_str(""), got));
    idem_http_fingerprint_destroy(NULL);
}

/* What has no canonical text is selected as it is spelled. */
TEST(http_fingerprint, takesWhatIsSelected)
{
    uint8_t got[IDEM_FINGERPRINT_LEN];

    assert_ok(idem_http_fingerprint_selected(target, 2,
                                             idem_str("[1e100000000000000000]"),
                                             idem_str(NULL), got));
    is_of(got, "selected", idem_str("[1e100000000000000000]"));
}
