/* Tests of src/key/request.c. */
#include "test.h"

#include "heap.h"
#include "key/request.h"
#include "key/tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 20000,
    HEADERS = 4,
};

static uint32_t state = 1;

static uint32_t chance(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

/* Bytes of which JSON, queries and UTF-8 are made, and of others. */
static struct idem_slice anything(char buf[24])
{
    static const char often[] = "{}[]\"\\:,&=%+?a1 \n";
    size_t len = chance(24);
    size_t i;

    for (i = 0; i < len; i++) {
        buf[i] = chance(60) == 0 ? (char)chance(256)
                                 : often[chance(sizeof(often) - 1)];
    }
    return idem_bytes(buf, len);
}

static bool same(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

static bool same_requests(const struct idem_select_request *a,
                          const struct idem_select_request *b)
{
    bool equal = same(a->method, b->method) && same(a->target, b->target) &&
                 same(a->body, b->body) && a->headers_len == b->headers_len;
    size_t i;

    for (i = 0; equal && i < a->headers_len; i++) {
        equal = same(a->headers[i].name, b->headers[i].name) &&
                same(a->headers[i].value, b->headers[i].value);
    }
    return equal;
}

/* Of any request comes a JSON text or a refusal, and what another process is told of
 * it is the request. */
TEST(request, takesAnything)
{
    struct idem__buffer json = {NULL, 0, 0, false};
    struct idem__buffer bytes = {NULL, 0, 0, false};
    struct idem__buffer room = {NULL, 0, 0, false};
    struct idem__tree tree = {0};
    unsigned refused = 0;
    unsigned i;

    for (i = 0; i < ROUNDS; i++) {
        char text[3 + 2 * HEADERS][24];
        struct idem_select_header headers[HEADERS];
        struct idem_select_request request, back;
        size_t k, cut;

        request =
            (struct idem_select_request){anything(text[0]), anything(text[1]),
                                         headers, chance(HEADERS + 1),
                                         anything(text[2])};
        for (k = 0; k < request.headers_len; k++) {
            headers[k].name = anything(text[3 + 2 * k]);
            headers[k].value = anything(text[4 + 2 * k]);
        }
        idem__buffer_reset(&json, SIZE_MAX);
        if (idem__request_json(&request, &json, &why) != 0) {
            assert_why("is not UTF-8");
            refused++;
        } else {
            assert_ok(idem__tree_read(&tree, idem__buffer_slice(&json), &why));
        }

        idem__buffer_reset(&bytes, SIZE_MAX);
        idem__request_pack(&request, &bytes);
        assert_int_equal(bytes.len, idem__request_packed_len(&request));
        assert_ok(
            idem__request_unpack(idem__buffer_slice(&bytes), &room, &back));
        assert_true(same_requests(&request, &back));

        /* Part of it, and other bytes, are no more than refused. */
        cut = chance((uint32_t)bytes.len);
        (void)idem__request_unpack(idem_bytes(bytes.base, cut), &room, &back);
        bytes.base[cut] ^= (uint8_t)(1 + chance(255));
        (void)idem__request_unpack(idem__buffer_slice(&bytes), &room, &back);
    }
    print_message("# %u of %u refused\n", refused, ROUNDS);
    assert_true(refused > ROUNDS / 100 && refused < ROUNDS / 2);
    idem__tree_free(&tree);
    idem__buffer_free(&json);
    idem__buffer_free(&bytes);
    idem__buffer_free(&room);
}

/* Two requests that differ are two texts: a fingerprint of "." tells them apart. */
TEST(request, losesNothingThatCounts)
{
    static const char *const targets[] = {"/a",         "/A",     "/%61",
                                          "/a?b",       "/a?b=1", "/a?b=1&b=1",
                                          "/a?b=%31%31"};
    struct idem__buffer json[COUNT(targets)];
    size_t i, k;

    memset(json, 0, sizeof(json));
    for (i = 0; i < COUNT(targets); i++) {
        struct idem_select_request request = {idem_str("POST"),
                                              idem_str(targets[i]), NULL, 0,
                                              idem_str("")};

        assert_ok(idem__request_json(&request, &json[i], &why));
        for (k = 0; k < i; k++) {
            assert_false(same(idem__buffer_slice(&json[i]),
                              idem__buffer_slice(&json[k])));
        }
    }
    for (i = 0; i < COUNT(targets); i++) {
        idem__buffer_free(&json[i]);
    }
}

/* Without memory there is an error, and no part of a text that looks whole. */
TEST(request, failsWithoutMemory)
{
    struct idem_select_header headers[] = {{idem_str("A"), idem_str("b")}};
    struct idem_select_request request = {idem_str("POST"), idem_str("/?a=1"),
                                          headers, 1, idem_str("{\"a\":[1]}")};
    struct idem__buffer json = {NULL, 0, 0, false};
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        int rc;

        heap_fail(n, /* on= */ false);
        rc = idem__request_json(&request, &json, &why);
        failed = heap_fail_never();
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
        if (!failed) {
            assert_text(idem__buffer_slice(&json),
                        "{\"method\":\"POST\",\"path\":\"/\",\"query\":{\"a\":"
                        "\"1\"},\"headers\":{\"a\":\"b\"},\"body\":{\"a\":[1]}"
                        "}");
        }
        idem__buffer_free(&json);
        json = (struct idem__buffer){NULL, 0, 0, false};
    }
    assert_true(n > 5);
}
