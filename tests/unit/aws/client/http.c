/* Answers of every form, cut at every place: what is read does not depend on how
 * it came, and nothing is taken for whole that may have been cut. */
#include "aws/client/http.h"

#include "heap.h"
#include "test.h"

/* What was read. */
struct heard {
    char lines[4096];
    char body[4096];
    int lines_max; /* Then it says no. */
};

static bool on_line(void *ctx, struct idem_slice line)
{
    struct heard *heard = ctx;
    size_t used = strlen(heard->lines);

    (void)snprintf(heard->lines + used, sizeof(heard->lines) - used, "%.*s|",
                   (int)line.len, (const char *)line.base);
    return heard->lines_max == 0 || --heard->lines_max > 0;
}

static bool on_body(void *ctx, struct idem_slice bytes)
{
    struct heard *heard = ctx;
    size_t used = strlen(heard->body);

    (void)snprintf(heard->body + used, sizeof(heard->body) - used, "%.*s",
                   (int)bytes.len, (const char *)bytes.base);
    return true;
}

static struct idem__http http = {.on_line = on_line, .on_body = on_body};
static struct heard heard;
static size_t read_len; /* Of all bytes, the answer's own. */

static void feed(const char *text, size_t len)
{
    size_t used;

    (void)idem__http_feed(&http, idem_bytes(text, len), &used);
    assert_true(used <= len);
    read_len += used;
}

static void start(void)
{
    memset(&heard, 0, sizeof(heard));
    read_len = 0;
    http.ctx = &heard;
    idem__http_start(&http);
}

/* Reads @text in pieces of @piece bytes, the first of @first; then, if it asks for
 * more, the connection ends. */
static void read_in_pieces(const char *text, size_t first, size_t piece)
{
    size_t len = strlen(text);
    size_t at = 0;

    start();
    while (at < len) {
        size_t n = at == 0 ? first : piece;

        n = n < len - at ? n : len - at;
        feed(text + at, n);
        at += n;
    }
    (void)idem__http_end(&http);
}

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n"

struct row {
    const char *text;
    int status;
    const char *body;
    bool keeps;
    size_t rest; /* Bytes that are not the answer's. */
};

static const struct row good[] = {
    {OK "Content-Length: 2\r\n\r\n{}", 200, "{}", true, 0},
    {"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true, 0},
    {"HTTP/1.1 200 OK\nContent-Length:2 \n\n{}", 200, "{}", true, 0},
    {OK "content-LENGTH:\t 2\r\nX: y\r\n\r\n{}", 200, "{}", true, 0},
    {OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true, 0},
    {OK "Content-Length: 0\r\n\r\n", 200, "", true, 0},
    {OK "Content-Length: 2\r\n\r\n{}HTTP/1.1", 200, "{}", true, 8},
    {OK "Content-Length: 2\r\nConnection: Close\r\n\r\n{}", 200, "{}", false,
     0},
    {OK "Content-Length: 2\r\nConnection: x, close\r\n\r\n{}", 200, "{}", false,
     0},
    {OK "Content-Length: 2\r\nConnection: closed\r\n\r\n{}", 200, "{}", true,
     0},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false, 0},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
     200, "{}", true, 0},
    {OK "\r\nall to the end", 200, "all to the end", false, 0},
    {CHUNKED "\r\n2\r\n{}\r\n0\r\n\r\n", 200, "{}", true, 0},
    {CHUNKED "\r\n1;a=b\r\n{\r\n01 \r\n}\r\n000\r\nX: y\r\n\r\nz", 200, "{}",
     true, 1},
    {CHUNKED "\r\nA\r\n0123456789\r\n0\r\n\r\n", 200, "0123456789", true, 0},
    {CHUNKED "\r\na\r\n0123456789\r\n0\r\n\r\n", 200, "0123456789", true, 0},
    {CHUNKED "Content-Length: 9\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, "{}", false,
     0},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, 0},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", true,
     0},
    {"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nHTTP/1.1 103 Early\r\n"
     "Transfer-Encoding: chunked\r\n\r\n" OK "Content-Length: 1\r\n\r\nx",
     200, "x", true, 0},
};

/* Whole, byte by byte, and cut in two at every place, it is the same answer. */
TEST(http, readsAnyPieces)
{
    unsigned pieces = 0;
    size_t i;

    for (i = 0; i < COUNT(good); i++) {
        const struct row *row = &good[i];
        size_t len = strlen(row->text);
        char lines[sizeof(heard.lines)] = "";
        size_t first;

        for (first = len; first > 0; first--) {
            read_in_pieces(row->text, first, first == 1 ? 1 : len);
            if (http.state != IDEM__HTTP_DONE || http.status != row->status ||
                http.keeps != row->keeps || len - read_len != row->rest ||
                strcmp(heard.body, row->body) != 0) {
                fail_with("%s, cut at %zu: state %d, %d, keeps %d, rest %zu, "
                          "\"%s\", %s",
                          row->text, first, (int)http.state, http.status,
                          (int)http.keeps, len - read_len, heard.body,
                          http.flaw == NULL ? "" : http.flaw);
            }
            if (first == len) {
                memcpy(lines, heard.lines, sizeof(lines));
            }
            assert_string_equal(lines, heard.lines);
            pieces++;
        }
    }
    print_message("# %zu answers, cut in %u ways\n", COUNT(good), pieces);
    idem__http_free(&http);
}

/* Any shorter beginning of them is not done while more may come, and no answer if
 * the connection ends there, but where only that end shows the end. */
TEST(http, isNotDeceivedByACut)
{
    size_t i;

    for (i = 0; i < COUNT(good); i++) {
        const struct row *row = &good[i];
        const char *head_end = strstr(row->text, "OK\r\n\r\n");
        size_t len = strlen(row->text) - row->rest;
        size_t at;

        for (at = 0; at < len; at++) {
            bool open_end =
                head_end != NULL && at >= (size_t)(head_end - row->text) + 6;

            start();
            feed(row->text, at);
            assert_true(http.state != IDEM__HTTP_DONE);
            assert_true(http.state != IDEM__HTTP_BAD);
            (void)idem__http_end(&http);
            if ((http.state == IDEM__HTTP_DONE) != open_end) {
                fail_with("%s, cut at %zu: state %d", row->text, at,
                          (int)http.state);
            }
        }
    }
    idem__http_free(&http);
}

/* ROW(26) What is framed in no way, or in two, is no answer. */
TEST(http, refusesWhatIsNone)
{
    static const char *const bad[] = {
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 020 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "\r\n",
        "\r\n" OK,
        "just text\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        OK "Content-Length: -2\r\n\r\n{}",
        OK "Content-Length: +2\r\n\r\n{}",
        OK "Content-Length: 2x\r\n\r\n{}",
        OK "Content-Length: 0x2\r\n\r\n{}",
        OK "Content-Length: 2, 2\r\n\r\n{}",
        OK "Content-Length: \r\n\r\n{}",
        OK "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        OK "Content-Length: 99999999999999999999999\r\n\r\n{}",
        OK "Transfer-Encoding: gzip\r\n\r\n{}",
        OK "Transfer-Encoding: gzip, chunked\r\n\r\n{}",
        OK "Transfer-Encoding: chunked, gzip\r\n\r\n{}",
        OK "X: y\r\n Content-Length: 2\r\n\r\n{}",
        OK "no colon\r\n\r\n",
        OK ": no name\r\n\r\n",
        CHUNKED "\r\n\r\n{}\r\n0\r\n\r\n",
        CHUNKED "\r\nZZ\r\n{}\r\n0\r\n\r\n",
        CHUNKED "\r\n-2\r\n{}\r\n0\r\n\r\n",
        CHUNKED "\r\n0x2\r\n{}\r\n0\r\n\r\n",
        CHUNKED "\r\n2\r\n{}x\r\n0\r\n\r\n",
        CHUNKED "\r\n2\r\n{}2\r\n{}\r\n0\r\n\r\n",
        CHUNKED "\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    };
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        size_t piece;

        for (piece = 1; piece < 4; piece++) {
            read_in_pieces(bad[i], piece, piece);
            if (http.state != IDEM__HTTP_BAD || http.flaw == NULL) {
                fail_with("%s: state %d", bad[i], (int)http.state);
            }
        }
    }
    print_message("# %zu answers that are none\n", COUNT(bad));
    idem__http_free(&http);
}

/* A head has an end, in one line or in many, in one answer or before it. */
TEST(http, isBounded)
{
    static const char *const endless[] = {"x", "X: y\r\n",
                                          "\r\n\r\nHTTP/1.1 100 Go on\r\nX: y"};
    size_t i;

    for (i = 0; i < COUNT(endless); i++) {
        size_t n = 0;

        start();
        feed("HTTP/1.1 100 Go on\r\nX: ", 23);
        while (http.state == IDEM__HTTP_HEAD && n <= IDEM__HTTP_HEAD_MAX) {
            feed(endless[i], strlen(endless[i]));
            memset(heard.lines, 0, sizeof(heard.lines));
            n += strlen(endless[i]);
        }
        assert_int_equal(http.state, IDEM__HTTP_BAD);
        assert_non_null(strstr(http.flaw, "longer"));
        assert_true(http.part.cap <= 2 * IDEM__HTTP_HEAD_MAX);
    }
    idem__http_free(&http);
}

/* The caller may stop it, and it may have no memory for half a line. */
TEST(http, stops)
{
    start();
    heard.lines_max = 2;
    feed(OK "X: y\r\nContent-Length: 0\r\n\r\n", 43);
    assert_int_equal(http.state, IDEM__HTTP_BAD);
    assert_null(http.flaw);
    assert_string_equal(heard.lines, "HTTP/1.1 200 OK|X: y|");

    idem__http_free(&http);
    start();
    heap_fail(0, true);
    feed("HTTP/1.1 2", 10);
    assert_true(heap_fail_never());
    assert_int_equal(http.state, IDEM__HTTP_BAD);
    assert_true(http.no_memory);
    read_in_pieces(good[0].text, 5, 5);
    assert_int_equal(http.state, IDEM__HTTP_DONE);
    idem__http_free(&http);
}
