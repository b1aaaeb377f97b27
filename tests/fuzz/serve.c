/* The lines of a client of idem serve. The input is the bytes of a connection, cut where
 * its first byte says. However they are cut, the lines are the same; each is answered
 * once, on one line that is a message of JSON-RPC; and what is refused is nothing but
 * refused: every attempt that is open was answered STARTED.
 */
#include "fuzz.h"

#include "serve/attempts.h"
#include "serve/calls.h"
#include "serve/connection.h"
#include "serve/line_reader.h"
#include "serve/methods.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_hush();
    must(setenv("IDEM_AUDIT_LOG", "off", /* overwrite= */ 1) == 0);
    return 0;
}

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"hello\",\"params\":"
    "{\"protocol\":1}}";

static unsigned count(const struct idem__buffer *unsent, const char *what)
{
    const char *p = (const char *)unsent->base;
    const char *end = p + unsent->len;
    unsigned n = 0;

    while (p != NULL && p < end &&
           (p = memmem(p, (size_t)(end - p), what, strlen(what))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* Feeds @bytes in pieces of @piece, and counts the lines. */
static unsigned feed(struct serve *serve, struct serve_conn *conn,
                     struct idem_slice bytes, size_t piece)
{
    struct serve_lines lines = {.from = 0};
    const uint8_t *from = bytes.base;
    struct idem_slice line;
    enum serve_line got;
    unsigned n = 0;

    while (bytes.len > 0) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        uint8_t *to = serve_lines_room(&lines, len);

        must(to != NULL);
        memcpy(to, from, len);
        serve_lines_added(&lines, len);
        from += len;
        bytes.len -= len;
        while ((got = serve_lines_next(&lines, &line)) != SERVE_LINE_NONE) {
            must(got == SERVE_LINE_ONE);
            n++;
            if (serve != NULL) {
                serve_line(serve, conn, line);
                serve_calls_run(serve);
            }
        }
    }
    serve_lines_finish(&lines);
    return n;
}

static void check(const struct serve_conn *conn, unsigned lines)
{
    const struct idem__buffer *unsent = &conn->unsent;
    unsigned answers = count(unsent, "\n");
    struct idem__tree tree = {.nodes_max = 0};
    const uint8_t *p = unsent->base;
    unsigned i;

    must(answers + conn->in_flight >= lines);
    must(conn->attempts <= count(unsent, "\"verdict\":\"STARTED\""));
    for (i = 0; i < answers; i++) {
        const uint8_t *end =
            memchr(p, '\n', unsent->len - (size_t)(p - unsent->base));
        struct serve_message m;

        must(end != NULL);
        (void)serve_message_read(&tree, idem_bytes(p, (size_t)(end - p)), &m);
        must(m.code != SERVE_NOT_JSON && m.code != 0);
        p = end + 1;
    }
    idem__tree_free(&tree);
}

static void close_all(struct serve *serve, struct serve_conn *conn)
{
    serve_calls_finish(serve);
    while (serve->attempts.first != NULL) {
        serve_attempt_remove(serve, serve->attempts.first);
    }
    serve_conn_free(conn);
    idem__tree_free(&serve->tree);
    idem__tree_free(&serve->other);
    cli_json_finish(&serve->line);
    idem_queue_destroy(serve->queue);
    idem_close(serve->store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    size_t piece = 1 + take_u8(&tape);
    struct idem_slice bytes = take_rest(&tape);
    struct serve serve = {.is_operator = true, .due_ms = IDEM_NEVER};
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct serve_conn *conn;
    int ends[2];
    unsigned n;

    options.host.ctx = &serve;
    options.host.clock = serve_clock;
    must(idem_open("memory:", &options, &serve.store, NULL) == 0);
    must(idem_queue_create(serve.store, &serve.queue, NULL) == 0);
    must(pipe(ends) == 0);
    conn = serve_conn_open(&serve, ends[0], ends[1]);
    must(conn != NULL);
    serve_line(&serve, conn, idem_str(hello));
    n = feed(&serve, conn, bytes, piece);
    must(n == feed(NULL, NULL, bytes, bytes.len + 1));
    check(conn, n + 1);
    close_all(&serve, conn);
    return 0;
}
