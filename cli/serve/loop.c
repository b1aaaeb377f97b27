/* The loop of the server. */
#include "serve/connection.h"

#include "process/host.h"
#include "serve/attempts.h"
#include "serve/calls.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum {
    TIMER,
    QUEUE,
    STOP,
    LISTEN,
    CONNS,
    FOR_CONN = 3, /* in, out, death */

    ACCEPT_PAUSE_MS = 100, /* While there are no descriptors. */
    PASSES_MAX = 16        /* Over due work, before clients are read again. */
};

static struct pollfd *fds_of(const struct idem__buffer *watch)
{
    return (struct pollfd *)(void *)watch->base;
}

static void watch_conn(struct pollfd *fds, const struct serve_conn *conn)
{
    bool unsent = conn->unsent_from < conn->unsent.len;

    fds[0] = (struct pollfd){.fd = serve_conn_reads(conn) ? conn->in : -1,
                             .events = POLLIN};
    /* Even without events, poll() reports that nobody reads any more. */
    fds[1] = (struct pollfd){.fd = conn->out, .events = unsent ? POLLOUT : 0};
    fds[2] = (struct pollfd){.fd = conn->proved ? conn->death : -1,
                             .events = POLLIN};
}

static void watch_listen(struct serve *serve, struct pollfd *listen)
{
    bool lets_in = serve->accept_ms <= serve_now_ms(serve);

    listen->events = lets_in ? POLLIN : 0;
    if (!lets_in) {
        serve_due(serve, serve->accept_ms);
    }
}

static bool prepare(struct serve *serve, struct idem__buffer *watch)
{
    const size_t len = FOR_CONN * sizeof(struct pollfd);
    struct serve_conn *conn;

    watch->len = CONNS * sizeof(struct pollfd);
    watch_listen(serve, fds_of(watch) + LISTEN);
    for (conn = serve->conns; conn != NULL; conn = conn->next) {
        uint8_t *fds = idem__buffer_room(watch, len);

        if (fds == NULL) {
            return false;
        }
        watch_conn((struct pollfd *)(void *)fds, conn);
        watch->len += len;
    }
    return true;
}

/* ---- What is due --------------------------------------------------------- */

/* Reports a lease that ran out, above all while this process was frozen, before anything
 * that has come meanwhile is answered. */
static void run_due(struct serve *serve)
{
    int i;

    for (i = 0; i < PASSES_MAX && serve->due_ms <= serve_now_ms(serve); i++) {
        int64_t now_ms = serve_now_ms(serve);

        serve->due_ms = IDEM_NEVER;
        serve_attempts_due(serve, now_ms);
        serve_calls_due(serve, now_ms);
        serve_calls_run(serve);
    }
}

/* ---- Clients ------------------------------------------------------------- */

/* Without a free descriptor, accepts nobody for a while; connected clients are
 * served meanwhile. */
static void accept_all(struct serve *serve, int listen)
{
    int fd;

    while ((fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >=
           0) {
        struct serve_conn *conn = serve_conn_open(serve, fd, fd);

        if (conn != NULL) {
            serve_client_is_peer(conn);
        }
    }
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        serve->accept_ms = serve_now_ms(serve) + ACCEPT_PAUSE_MS;
    }
}

/* Begins at @first: the connections before it came in this turn, and have no place in
 * @fds. */
static void read_all(struct serve *serve, struct serve_conn *first,
                     const struct pollfd *fds)
{
    struct serve_conn *conn;

    for (conn = first; conn != NULL; conn = conn->next, fds += FOR_CONN) {
        if (fds[2].revents != 0) {
            serve_conn_died(serve, conn);
            continue;
        }
        if ((fds[1].revents & (POLLERR | POLLHUP)) != 0) {
            serve_conn_deaf(conn);
        }
        if (fds[0].revents != 0) {
            serve_conn_read(serve, conn);
        }
    }
}

static void take_all(struct serve *serve)
{
    struct serve_conn *conn;

    for (conn = serve->conns; conn != NULL; conn = conn->next) {
        serve_conn_take(serve, conn);
    }
}

static void settle_all(struct serve *serve)
{
    struct serve_conn **at = &serve->conns;
    struct serve_conn *conn;

    while ((conn = *at) != NULL) {
        serve_conn_send(conn);
        serve_conn_settle(serve, conn);
        if (serve_conn_is_over(conn)) {
            *at = conn->next;
            serve_conn_free(conn);
        } else {
            at = &conn->next;
        }
    }
}

/* ---- The loop ------------------------------------------------------------ */

static void turn(struct serve *serve, struct serve_conn *first,
                 const struct pollfd *fds)
{
    run_due(serve);
    if (fds[LISTEN].revents != 0) {
        accept_all(serve, fds[LISTEN].fd);
    }
    read_all(serve, first, fds + CONNS);
    take_all(serve);
    serve_calls_run(serve);
    run_due(serve);
    settle_all(serve);
    serve_calls_run(serve); /* Releases claims whose clients have gone. */
    settle_all(serve);
}

/* Sends what can still be sent, and releases claims whose answers never left. */
static void stop(struct serve *serve)
{
    struct serve_conn *conn;

    settle_all(serve);
    for (conn = serve->conns; conn != NULL; conn = conn->next) {
        serve_conn_close(conn);
        if (conn->attempts > 0) {
            serve_attempts_leave(serve, conn);
        }
    }
    serve_calls_run(serve);
}

static int64_t due_by_boot_clock(const struct serve *serve)
{
    return serve->due_ms == IDEM_NEVER ? IDEM_NEVER
                                       : serve->due_ms - serve->ahead_ms;
}

static int serve_all(struct serve *serve, struct idem__buffer *watch)
{
    struct pollfd *fds;
    int64_t set_ms = 0; /* The time to which the timer is set. */
    int status = 0;

    while (serve->is_socket || serve->conns != NULL) {
        struct serve_conn *first = serve->conns;
        int64_t due_ms;

        if (!prepare(serve, watch)) {
            cli_say("out of memory");
            status = CLI_INTERNAL;
            break;
        }
        fds = fds_of(watch);
        due_ms = due_by_boot_clock(serve);
        if (due_ms != set_ms) {
            set_ms = due_ms;
            boot_timer_set(fds[TIMER].fd, set_ms == IDEM_NEVER ? 0
                                          : set_ms < 1         ? 1
                                                               : set_ms);
        }
        if (poll(fds, watch->len / sizeof(*fds),
                 due_ms <= io_now_ms() ? 0 : -1) < 0) {
            continue;
        }
        if (fds[STOP].revents != 0) {
            break;
        }
        if (fds[TIMER].revents != 0) {
            boot_timer_take(fds[TIMER].fd);
        }
        turn(serve, first, fds);
    }
    stop(serve);
    return status;
}

int serve_loop(struct serve *serve, int listen, int stop_fd)
{
    struct idem__buffer watch = {.failed = false};
    struct pollfd *fds =
        (struct pollfd *)(void *)idem__buffer_room(&watch,
                                                   CONNS * sizeof(*fds));
    int timer = boot_timer_open();
    int queue = idem_queue_fd(serve->queue);
    int status;

    if (timer < 0 || queue < 0 || fds == NULL) {
        cli_say("cannot serve: too many files are open, or out of memory");
        return CLI_UNAVAILABLE;
    }
    fds[TIMER] = (struct pollfd){.fd = timer, .events = POLLIN};
    fds[QUEUE] = (struct pollfd){.fd = queue, .events = POLLIN};
    fds[STOP] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    fds[LISTEN] = (struct pollfd){.fd = listen, .events = POLLIN};
    serve->due_ms = IDEM_NEVER;
    status = serve_all(serve, &watch);
    idem__buffer_free(&watch);
    return status;
}
