/* Tests of reading an answer from what libcurl gives: the lines of its head, and of
 * a trailer. Its bytes on a wire are in tests/integration/aws_transport.py. */
#include "aws/client/client.h"

#include "aws/client/transport.h"
#include "base/host.h"
#include "heap.h"
#include "test.h"

static struct idem__aws_options options;
static struct idem__learned_clock clock_learned;
static struct idem__aws_request request;
static struct idem__aws_slot slot;

static void start(void)
{
    assert_ok(idem__curl_ready(&why));
    idem__host_default(&options.host);
    slot = (struct idem__aws_slot){
        .easy = curl_easy_init(),
        .options = &options,
        .request = &request,
        .clock = &clock_learned,
    };
    assert_non_null(slot.easy);
    request.status = 200;
    idem__aws_answer_reset(&slot);
}

static void finish(void)
{
    curl_easy_cleanup(slot.easy);
    idem__aws_request_finish(&request);
}

/* Gives the lines of @text up to the first that is not taken. True: all were. */
static bool give(const char *text)
{
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        size_t len = end == NULL ? strlen(text) : (size_t)(end - text) + 1;
        char line[256];

        assert_true(len < sizeof(line));
        memcpy(line, text, len);
        if (idem__aws_on_header(line, 1, len, &slot) != len) {
            return false;
        }
        text += len;
    }
    return true;
}

static void give_body(const char *text)
{
    char body[64];
    size_t len = strlen(text);

    memcpy(body, text, len);
    assert_int_equal(idem__aws_on_body(body, 1, len, &slot), len);
}

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n"

/* A head that says where its answer ends is one, however it is written. */
TEST(head, saysWhereItsAnswerEnds)
{
    static const char *const good[] = {
        OK "Content-Length: 2\r\n\r\n",
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length:2 \n\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n",
        OK "content-LENGTH:\t 2\r\nX: y\r\n\r\n",
        OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        OK "Content-Length: 2\r\nContent-Encoding: Identity\r\n\r\n",
        CHUNKED "\r\n",
        CHUNKED "Content-Length: 9\r\n\r\n",
        OK "Transfer-Encoding: Chunked\r\n\r\n",
        "HTTP/1.1 100 Go on\r\n\r\n" OK "Content-Length: 2\r\n\r\n",
    };

    EACH(one, good) {
        bool taken;

        start();
        taken = give(*one);
        if (!taken || idem__aws_answer_flaw(&slot) != NULL) {
            fail_with("%s: %s", *one,
                      taken ? idem__aws_answer_flaw(&slot) : slot.arrival.flaw);
        }
        finish();
    }
}

/* ROW(26) What is framed in no way, or in ways that contradict each other, is not
 * an answer. */
TEST(head, isRefusedWhereItCouldHideACut)
{
    static const char *const bad[] = {
        "HTTP/2 200\r\n",
        "HTTP/1.2 200 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 020 OK\r\n",
        "HTTP/1.1 2x0 OK\r\n",
        "http/1.1 200 OK\r\n",
        "\r\n",
        "just text\r\n",
        "HTTP/1.1 101 Switching\r\n",
        OK "Content-Length: -2\r\n",
        OK "Content-Length: +2\r\n",
        OK "Content-Length: 2x\r\n",
        OK "Content-Length: 0x2\r\n",
        OK "Content-Length: 2, 2\r\n",
        OK "Content-Length: \r\n",
        OK "Content-Length: 2\r\nContent-Length: 3\r\n",
        OK "Content-Length: 99999999999999999999999\r\n",
        OK "Transfer-Encoding: gzip\r\n",
        OK "Transfer-Encoding: gzip, chunked\r\n",
        OK "Transfer-Encoding: chunked, gzip\r\n",
        OK "X: y\r\n Content-Length: 2\r\n",
        OK "no colon\r\n",
        OK ": no name\r\n",
        OK "HTTP/1.1 200 OK\r\n",
    };

    EACH(one, bad) {
        start();
        if (give(*one) || slot.arrival.flaw == NULL) {
            fail_with("%s is taken", *one);
        }
        finish();
    }
}

/* ROW(26) A whole head without a length is not a whole answer, unless its checksum
 * is right. */
TEST(head, withoutALengthNeedsAChecksum)
{
    start();
    assert_true(give(OK "\r\n"));
    give_body("{}");
    assert_non_null(strstr(idem__aws_answer_flaw(&slot), "no length"));
    finish();

    start();
    assert_true(give(OK "x-amz-crc32: 2745614147\r\n\r\n"));
    give_body("{}");
    assert_null(idem__aws_answer_flaw(&slot));
    give_body("x");
    assert_non_null(strstr(idem__aws_answer_flaw(&slot), "checksum"));
    finish();
}

/* The words of an interim answer and of a trailer are not the answer's. */
TEST(head, aloneSpeaksForItsAnswer)
{
    start();
    assert_true(give("HTTP/1.1 103 Early\r\nx-amz-crc32: 1\r\n"
                     "x-amzn-RequestId: EARLY\r\nContent-Encoding: br\r\n"
                     "\r\n" CHUNKED "x-amzn-RequestId: A\r\n\r\n"));
    assert_false(request.has_crc32);
    assert_string_equal(request.request_id, "A");
    give_body("{}");
    assert_true(give("x-amz-crc32: 1\r\nx-amzn-RequestId: B\r\n"
                     "Content-Encoding: br\r\nHTTP/1.1 500 No\r\nno colon\r\n"
                     "\r\n"));
    assert_false(request.has_crc32);
    assert_string_equal(request.request_id, "A");
    assert_null(idem__aws_answer_flaw(&slot));
    assert_slice(idem_bytes(request.answer, request.answer_len),
                 idem_str("{}"));
    finish();
}

/* A head has an end, in one answer and in those before it, and so has a trailer. */
TEST(head, isBounded)
{
    static const char *const endless[] = {
        "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
        "\r\nHTTP/1.1 100 Go on\r\n",
    };
    size_t i;

    for (i = 0; i < 2 * COUNT(endless); i++) {
        const char *lines = endless[i % COUNT(endless)];
        size_t len = 0;

        start();
        assert_true(give(i < COUNT(endless) ? "HTTP/1.1 100 Go on\r\n"
                                            : CHUNKED "\r\n"));
        while (give(lines)) {
            len += strlen(lines);
            assert_true(len <= 64 << 10);
        }
        assert_non_null(strstr(slot.arrival.flaw, "too long"));
        finish();
    }
}

/* A length that is announced is believed up to a point, and memory may end. */
TEST(body, needsMemory)
{
    start();
    assert_true(give(OK "Content-Length: 1099511627776\r\n\r\n"));
    assert_true(request.answer_cap <= 1 << 20);
    finish();

    start();
    heap_fail(0, /* on= */ true);
    assert_false(give(OK "Content-Length: 10000\r\n\r\n"));
    assert_true(heap_fail_never());
    assert_true(slot.arrival.no_memory);
    finish();
}
