/* Answers as results: what is written is read, what must not leave never does. */
#include <idem/http.h>

#include "test.h"

static int add(struct idem_http_head *head, const char *name, const char *value)
{
    return idem_http_head_add(head, idem_str(name), idem_str(value));
}

/* Status and headers come back in their order, byte for byte. */
TEST(http_head, roundTrips)
{
    char buf[512];
    struct idem_http_head head;
    struct idem_slice rest;
    struct idem_slice name;
    struct idem_slice value;
    int status;
    int rc = 1;

    assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 201));
    assert_ok(add(&head, "Location", "/orders/42?a=b: c"));
    assert_ok(add(&head, "X-Empty", ""));
    assert_ok(add(&head, "Location", "\ttwice \xc3\xa9"));
    assert_text(idem_bytes(buf, head.len),
                "HTTP 201\nLocation: /orders/42?a=b: c\nX-Empty: \n"
                "Location: \ttwice \xc3\xa9\n");

    assert_ok(idem_http_head_read(idem_bytes(buf, head.len), &status, &rest));
    assert_int_equal(status, 201);
    assert_true(idem_http_head_next(&rest, &name, &value, &rc));
    assert_text(name, "Location");
    assert_text(value, "/orders/42?a=b: c");
    assert_true(idem_http_head_next(&rest, &name, &value, &rc));
    assert_text(name, "X-Empty");
    assert_int_equal(value.len, 0);
    assert_true(idem_http_head_next(&rest, &name, &value, &rc));
    assert_text(value, "\ttwice \xc3\xa9");
    assert_false(idem_http_head_next(&rest, &name, &value, &rc));
    assert_ok(rc);
}

/* What belongs to one caller, connection or moment is not written, and not read
 * either where somebody else wrote it. */
TEST(http_head, keepsSecretsOut)
{
    static const char *const names[] = {
        "Set-Cookie",
        "set-cookie",
        "SET-COOKIE2",
        "Authorization",
        "WWW-Authenticate",
        "Proxy-Authenticate",
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "Date",
        "Server",
        "Access-Control-Allow-Origin",
        "Keep-Alive",
        "Upgrade",
        "Authentication-Info",
        "X-Accel-Redirect",
        "X-CSRF-Token",
        "Idempotent-Replayed",
        "Age",
        "Alt-Svc",
        "Strict-Transport-Security",
        "TE",
        "Trailer",
        "Content-Range",
    };
    struct idem_slice name;
    struct idem_slice value;
    struct idem_slice rest;
    char buf[256];

    EACH(one, names) {
        struct idem_http_head head;
        int status;
        int rc = 1;
        int len;

        assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 200));
        assert_ok(add(&head, *one, "secret"));
        assert_text(idem_bytes(buf, head.len), "HTTP 200\n");

        len =
            snprintf(buf, sizeof(buf), "HTTP 200\n%s: secret\nETag: e\n", *one);
        assert_ok(
            idem_http_head_read(idem_bytes(buf, (size_t)len), &status, &rest));
        assert_true(idem_http_head_next(&rest, &name, &value, &rc));
        assert_text(name, "ETag");
        assert_false(idem_http_head_next(&rest, &name, &value, &rc));
        assert_ok(rc);
    }
    assert_false(idem_http_header_never(idem_str("Setting")));
    assert_false(idem_http_header_never(idem_str("Dates")));
    assert_false(idem_http_header_never(idem_str("")));
}

/* A header that would end a line, or has no name, is refused. */
TEST(http_head, refusesWhatIsNoHeader)
{
    static const char *const rows[][2] = {
        {"", "v"},       {"a b", "v"},  {"a:", "v"},     {"a\n", "v"},
        {"a", "v\r\nb"}, {"a", "v\nb"}, {"a", "v\x7f"},  {"a", "\x01"},
        {"\xc3", "v"},   {"a(", "v"},   {"a\"b\"", "v"},
    };
    char buf[128];
    struct idem_http_head head;
    size_t i;

    assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 200));
    for (i = 0; i < COUNT(rows); i++) {
        if (add(&head, rows[i][0], rows[i][1]) != IDEM_EINVALID) {
            fail_with("row %zu was taken", i);
        }
    }
    assert_code(IDEM_EINVALID, idem_http_head_add(&head, idem_str("a"),
                                                  idem_bytes("v\0w", 3)));
    assert_text(idem_bytes(buf, head.len), "HTTP 200\n");
}

/* A head that is full stays as it was. */
TEST(http_head, saysThatItIsFull)
{
    char buf[16];
    struct idem_http_head head;

    assert_code(IDEM_EFULL, idem_http_head_open(&head, buf, 9, 200));
    assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 200));
    assert_code(IDEM_EFULL, add(&head, "Name", "x"));
    assert_code(IDEM_EFULL, add(&head, "N", "value"));
    assert_ok(add(&head, "N", "val"));
    assert_int_equal(head.len, 16);
    assert_code(IDEM_EFULL, add(&head, "N", ""));
    assert_code(IDEM_EINVALID,
                idem_http_head_open(&head, buf, sizeof(buf), 199));
    assert_code(IDEM_EINVALID,
                idem_http_head_open(&head, buf, sizeof(buf), 600));
}

/* A status that is named complete is marked in the first line, if it needs to be. */
TEST(http_head, saysThatItIsNamed)
{
    char buf[40];
    struct idem_http_head head;
    struct idem_slice rest;
    int status;

    assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 404));
    assert_ok(idem_http_head_complete(&head));
    assert_ok(add(&head, "N", "v"));
    assert_text(idem_bytes(buf, head.len), "HTTP 404 complete\nN: v\n");
    assert_ok(idem_http_head_read(idem_bytes(buf, head.len), &status, &rest));
    assert_int_equal(status, 404);
    assert_text(rest, "N: v\n");
    assert_ok(idem_http_head_open(&head, buf, sizeof(buf), 204));
    assert_ok(idem_http_head_complete(&head));
    assert_text(idem_bytes(buf, head.len), "HTTP 204\n");
    assert_ok(idem_http_head_open(&head, buf, 18, 404));
    assert_code(IDEM_EFULL, idem_http_head_complete(&head));
    assert_ok(idem_http_head_open(&head, buf, 19, 404));
    assert_ok(idem_http_head_complete(&head));
    assert_int_equal(head.len, 18);
}

/* A record that a person completed has no head: it is a 200. */
TEST(http_head, takesNoneFor200)
{
    struct idem_slice rest;
    struct idem_slice name;
    struct idem_slice value;
    int status;
    int rc = 1;

    assert_ok(idem_http_head_read(idem_str(""), &status, &rest));
    assert_int_equal(status, 200);
    assert_false(idem_http_head_next(&rest, &name, &value, &rc));
    assert_ok(rc);
}

/* A head from elsewhere is not believed. */
TEST(http_head, refusesStrangers)
{
    static const char *const heads[] = {
        "exit 0\n",
        "HTTP 20\n",
        "HTTP 2000\n",
        "http 200\n",
        "HTTP 199\n",
        "HTTP 600\n",
        "HTTP 200",
        "HTTP 2x0\n",
        "HTTP 404 complete",
        "HTTP 404 complet\n",
        "HTTP 404  complete\n",
    };
    static const char *const lines[] = {
        "a: b", "a:b\n", "a\n",       ": b\n",   "a b: c\n",
        "\n",   "a:\n",  "a: \x01\n", "a : b\n",
    };
    struct idem_slice rest;
    struct idem_slice name;
    struct idem_slice value;
    char buf[64];
    int status;

    EACH(head, heads) {
        assert_code(IDEM_ECORRUPT,
                    idem_http_head_read(idem_str(*head), &status, &rest));
    }
    EACH(line, lines) {
        int rc = 0;

        (void)snprintf(buf, sizeof(buf), "HTTP 200\n%s", *line);
        assert_ok(idem_http_head_read(idem_str(buf), &status, &rest));
        assert_false(idem_http_head_next(&rest, &name, &value, &rc));
        assert_code(IDEM_ECORRUPT, rc);
    }
}
