/* An HTTP server for requests that have a Content-Length. */
#include "server.h"

#include "test.h"
#include "threads.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
    int fd;
    server_answers *answer;
    void *ctx;
    struct thread *thread;
};

struct connection {
    struct server *server;
    int fd;
};

/* Whether all of the request at @text is there; then also returns its body. */
static bool is_whole(const char *text, size_t len, struct idem_slice *ret_body)
{
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");

    if (end == NULL || length == NULL) {
        return false;
    }
    *ret_body =
        idem_bytes(end + 4,
                   strtoul(length + strlen("\r\nContent-Length:"), NULL, 10));
    return len >= (size_t)(end + 4 - text) + ret_body->len;
}

static void converse(void *ctx)
{
    static _Thread_local char text[65536];
    struct connection *connection = ctx;
    struct server *server = connection->server;
    struct idem_slice body;
    size_t len = 0;
    ssize_t n;

    while ((n = recv(connection->fd, text + len, sizeof(text) - 1 - len, 0)) >
           0) {
        len += (size_t)n;
        text[len] = '\0';
        if (is_whole(text, len, &body)) {
            server->answer(server->ctx, connection->fd, text, body);
            len = 0;
        }
    }
    (void)close(connection->fd);
    free(connection);
}

static void serve(void *ctx)
{
    struct server *server = ctx;
    struct thread *threads[256];
    size_t n = 0;
    int fd;

    while (n < COUNT(threads) &&
           (fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = malloc(sizeof(*connection));

        *connection = (struct connection){server, fd};
        threads[n++] = thread_start(converse, connection);
    }
    while (n > 0) {
        thread_join(threads[--n]);
    }
}

/* Returns a socket that is bound to a free port. */
static int bound(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* The socket stays open, so that no other program gets the port. */
int closed_port(void)
{
    int port;

    (void)bound(&port);
    return port;
}

struct server *server_start(server_answers *answer, void *ctx, int *port)
{
    struct server *server = malloc(sizeof(*server));

    assert_non_null(server);
    *server = (struct server){bound(port), answer, ctx, NULL};
    assert_int_equal(listen(server->fd, 128), 0);
    server->thread = thread_start(serve, server);
    return server;
}

void server_stop(struct server *server)
{
    (void)shutdown(server->fd, SHUT_RDWR);
    thread_join(server->thread);
    (void)close(server->fd);
    free(server);
}
