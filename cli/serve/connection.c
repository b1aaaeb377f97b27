/* The connection of a client: reading, sending, and its end. */
#include "serve/connection.h"

#include "process/descriptors.h"
#include "serve/attempts.h"
#include "serve/calls.h"
#include "serve/methods.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_LEN = 64 * 1024,
    READS = 16,                  /* In one turn, for others to get theirs. */
    BATCH = 256 * sizeof(void *) /* So many ops go to the store at once. */
};

/* A pipe or a socket belongs to this process. A terminal or a file is shared with the
 * shell, for which O_NONBLOCK would change it too. */
static void do_not_wait(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

struct serve_conn *serve_conn_open(struct serve *serve, int in, int out)
{
    struct serve_conn *conn = calloc(1, sizeof(*conn));

    if (conn == NULL) {
        (void)close(in);
        if (out != in) {
            (void)close(out);
        }
        return NULL;
    }
    do_not_wait(in);
    do_not_wait(out);
    conn->in = in;
    conn->out = out;
    conn->death = -1;
    conn->heard_ms = serve_now_ms(serve);
    conn->next = serve->conns;
    serve->conns = conn;
    return conn;
}

/* ---- Reading ------------------------------------------------------------- */

static void close_in(struct serve_conn *conn)
{
    if (conn->in != conn->out) {
        io_close(&conn->in);
    }
    conn->in = -1;
}

void serve_conn_deaf(struct serve_conn *conn)
{
    if (conn->in != conn->out) {
        io_close(&conn->out);
    }
    conn->out = -1;
    idem__buffer_reset(&conn->unsent, 0);
    conn->unsent_from = 0;
}

void serve_conn_close(struct serve_conn *conn)
{
    serve_conn_deaf(conn);
    io_close(&conn->in);
}

/* A client that does not read its answers is not read either. */
static bool has_room(const struct serve_conn *conn)
{
    return !conn->broken && !conn->bye &&
           (conn->dead ||
            (conn->in_flight < SERVE_IN_FLIGHT_MAX &&
             conn->unsent.len - conn->unsent_from < SERVE_UNSENT_MAX));
}

bool serve_conn_reads(const struct serve_conn *conn)
{
    return conn->in >= 0 && has_room(conn);
}

void serve_conn_take(struct serve *serve, struct serve_conn *conn)
{
    struct idem_slice line;
    enum serve_line got = SERVE_LINE_ONE;

    while (has_room(conn) && got != SERVE_LINE_NONE) {
        got = serve_lines_next(&conn->lines, &line);
        if (got == SERVE_LINE_ONE) {
            serve_line(serve, conn, line);
        } else if (got == SERVE_LINE_TOO_LONG) {
            serve_long_line(serve, conn);
        }
        if (serve->batch.len >= BATCH) { /* The answers may fill the room. */
            serve_calls_run(serve);
        }
    }
}

static bool is_readable(int fd)
{
    struct pollfd source = {.fd = fd, .events = POLLIN};

    return poll(&source, 1, 0) == 1;
}

/* Returns how many bytes were read; 0: there are none now. */
static size_t read_once(struct serve_conn *conn)
{
    uint8_t *to = serve_lines_room(&conn->lines, READ_LEN);
    ssize_t n;

    if (to == NULL) {
        conn->broken = true;
        return 0;
    }
    n = read(conn->in, to, READ_LEN);
    if (n > 0) {
        serve_lines_added(&conn->lines, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_in(conn);
    }
    return n > 0 ? (size_t)n : 0;
}

void serve_conn_read(struct serve *serve, struct serve_conn *conn)
{
    int i;

    for (i = 0; i < READS && serve_conn_reads(conn) &&
                (i == 0 || is_readable(conn->in));
         i++) {
        size_t n = read_once(conn);

        serve_conn_take(serve, conn);
        if (n < READ_LEN) {
            break;
        }
    }
}

/* ---- Sending ------------------------------------------------------------- */

static ssize_t send_some(int fd, const uint8_t *bytes, size_t len)
{
    ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    return n < 0 && errno == ENOTSOCK ? write(fd, bytes, len) : n;
}

void serve_conn_send(struct serve_conn *conn)
{
    struct idem__buffer *unsent = &conn->unsent;

    while (conn->out >= 0 && conn->unsent_from < unsent->len) {
        ssize_t n = send_some(conn->out, unsent->base + conn->unsent_from,
                              unsent->len - conn->unsent_from);

        if (n > 0) {
            conn->unsent_from += (size_t)n;
            conn->sent += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (n < 0 && errno != EINTR) {
            serve_conn_deaf(conn);
        }
    }
    serve_drop(unsent, &conn->unsent_from);
}

/* ---- Its end ------------------------------------------------------------- */

/* The client may have reported how its work ended before it died; that is still in the
 * pipe. Other processes may hold the other end too, so only the bytes that are there
 * now are taken for the client's. */
void serve_conn_died(struct serve *serve, struct serve_conn *conn)
{
    size_t n = 1;
    int left = 0;

    conn->dead = true;
    io_close(&conn->death);
    serve_conn_take(serve, conn);
    if (conn->in >= 0) {
        (void)ioctl(conn->in, FIONREAD, &left);
    }
    while (left > 0 && n > 0 && serve_conn_reads(conn)) {
        n = read_once(conn);
        left -= (int)n;
        serve_conn_take(serve, conn);
    }
    serve_conn_close(conn);
}

void serve_conn_settle(struct serve *serve, struct serve_conn *conn)
{
    bool is_told = conn->unsent_from == conn->unsent.len;

    if (conn->broken ||
        (is_told && (conn->bye || (conn->in < 0 && conn->in_flight == 0)))) {
        serve_conn_close(conn);
    }
    if (conn->in < 0 && conn->attempts > 0) {
        serve_attempts_leave(serve, conn);
    }
}

bool serve_conn_is_over(const struct serve_conn *conn)
{
    return conn->in < 0 && conn->out < 0 && conn->in_flight == 0 &&
           conn->attempts == 0;
}

void serve_conn_free(struct serve_conn *conn)
{
    serve_conn_close(conn);
    io_close(&conn->death);
    serve_lines_finish(&conn->lines);
    idem__buffer_free(&conn->unsent);
    free(conn);
}
