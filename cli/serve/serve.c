/* idem serve: the verbs for programs in any language, as JSON-RPC. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "serve/attempts.h"
#include "serve/calls.h"
#include "serve/connection.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static struct {
    bool stdio;
    const char *socket;
    const char *group;
    bool is_operator;
    const char *store;
} args;

/* Ctrl-C reaches every process in the foreground group of the terminal. If it ended
 * this one, nobody could record what the client still has to report; the client ends it
 * by closing its input. A process that reads from the terminal stays in that group: in
 * a group of its own it would be stopped. */
static void stay(void)
{
    if (isatty(STDIN_FILENO) == 0) {
        (void)setpgid(0, 0);
    }
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGTTOU, SIG_IGN);
}

/* Standard output belongs to the protocol: a client would take a message that any code
 * prints there for a line of it. So such messages go to standard error. */
static int take_stdio(int *ret_in, int *ret_out)
{
    *ret_in = io_copy(STDIN_FILENO);
    *ret_out = io_copy(STDOUT_FILENO);
    if (*ret_in < 0 || *ret_out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        cli_say("cannot take standard input and output: %s", strerror(errno));
        return CLI_UNAVAILABLE;
    }
    return 0;
}

static int serve_stdio(struct serve *serve)
{
    struct serve_conn *conn;
    int status;
    int out;
    int in;

    stay();
    status = take_stdio(&in, &out);
    if (status != 0) {
        return status;
    }
    conn = serve_conn_open(serve, in, out);
    if (conn == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    serve_client_is_parent(conn);
    return serve_loop(serve, /* listen= */ -1, /* stop= */ -1);
}

static int serve_socket(struct serve *serve)
{
    int stop = cli_stop_fd();
    struct net_socket socket;
    int status = serve_socket_open(args.socket, args.group, &socket);

    if (status == 0) {
        status = serve_loop(serve, socket.fd, stop);
        net_remove(&socket);
    }
    return status;
}

static int serve(struct serve *serve)
{
    struct idem_error error = {0};
    int status;

    error.code = idem_queue_create(serve->store, &serve->queue, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    status = serve->is_socket ? serve_socket(serve) : serve_stdio(serve);
    serve_calls_finish(serve);
    while (serve->attempts.first != NULL) {
        serve_attempt_remove(serve, serve->attempts.first);
    }
    while (serve->conns != NULL) {
        struct serve_conn *conn = serve->conns;

        serve->conns = conn->next;
        serve_conn_free(conn);
    }
    idem__tree_free(&serve->tree);
    idem__tree_free(&serve->other);
    cli_json_finish(&serve->line);
    idem_queue_destroy(serve->queue);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct serve server = {.is_operator = args.is_operator,
                           .is_socket = args.socket != NULL};
    const struct idem_host host = {.ctx = &server, .clock = serve_clock};
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    if (args.stdio == (args.socket != NULL)) {
        return cli_usage(command, "choose one: --stdio or --socket PATH");
    }
    if (args.group != NULL && args.socket == NULL) {
        return cli_usage(command, "--group needs --socket");
    }
    status =
        cli_open_store_as(args.store, CLI_OPEN_TO_SERVE, &host, &server.store);
    if (status != 0) {
        return status;
    }
    status = serve(&server);
    idem_close(server.store);
    return status;
}

static struct cli_option options[] = {
    CLI_SWITCH("stdio", &args.stdio,
               "serve the parent program over stdin and stdout"),
    CLI_VALUE("socket", "PATH", CLI_TEXT, &args.socket,
              "serve clients of a Unix socket, or of systemd's"),
    CLI_VALUE("group", "GROUP", CLI_TEXT, &args.group,
              "let members of GROUP connect (default: only this user)"),
    CLI_SWITCH("operator", &args.is_operator,
               "also accept a person's decisions: resolve, reopen"),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem serve --stdio                       # as the child of a program",
    "idem serve --socket /run/app/idem.sock   # for the workers of one server",
    "",
    "# one line in, one line out:",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"protocol\":1}}",
    NULL,
};

const struct cli_command cli_serve = {
    .name = "serve",
    .summary = "serve programs in any language, over stdio or a socket",
    .usage = "idem serve [OPTION...] --stdio | --socket PATH",
    .examples = examples,
    .options = options,
    .run = run,
};
