/* idem ui: a page on this host for the person who resolves open records. */
#include "ui/ui.h"

#include "inspect/metrics.h"
#include "net/net.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/read.h"
#include "process/host.h"
#include "process/self.h"
#include "request/request.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"
#include "ui/page.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    const char *listen;
    const char *token_file;
    const char *who;
    const char *missing;
    const char *store;
} args;

static struct cli_jobs jobs;

enum {
    TOKEN_MIN = 16,
    TOKEN_MAX = 200
};

/* ---- Where ---- */

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080": an address of this host alone. */
static int find_address(const struct cli_command *command,
                        struct net_socket *ret_socket)
{
    struct net_address address;
    const char *why =
        net_address_parse(args.listen != NULL ? args.listen : "127.0.0.1:0",
                          &address);
    int status = 0;

    /* "localhost" is also [::1], where another user may listen, and a browser takes
     * both for one origin. */
    if (why == NULL && strcmp(address.host, "localhost") == 0) {
        (void)strcpy(address.host, "127.0.0.1");
    }
    if (why == NULL && (strncmp(address.host, "127.", 4) == 0 ||
                        strcmp(address.host, "::1") == 0)) {
        status = net_find("listen", &address, ret_socket);
    }
    if (status == 0 && !ret_socket->is_loopback) {
        status = cli_usage(command,
                           "--listen: an address of this host alone, such as "
                           "127.0.0.1:8400; from elsewhere, come through ssh "
                           "-L");
    }
    return status;
}

/* ---- The secrets ---- */

static int make_secret(char text[UI_SECRET_LEN + 1])
{
    uint8_t bytes[UI_SECRET_LEN / 2];

    if (cli_random(bytes, sizeof(bytes)) != 0) {
        cli_say("cannot get random bytes");
        return CLI_UNAVAILABLE;
    }
    cli_hex(idem_bytes(bytes, sizeof(bytes)), text);
    return 0;
}

/* True for a token that a person can type or paste as it is. */
static bool is_token(const char *text)
{
    const char *p;

    for (p = text; *p != '\0'; p++) {
        if ((*p < '0' || *p > '9') && (*p < 'a' || *p > 'z') &&
            (*p < 'A' || *p > 'Z') && *p != '-' && *p != '_') {
            return false;
        }
    }
    return strlen(text) >= TOKEN_MIN;
}

static int read_token(const struct cli_command *command,
                      char token[TOKEN_MAX + 1])
{
    char *spec = NULL;
    const char *end;
    char *text;
    size_t len;
    int status;

    if (args.token_file == NULL) {
        return make_secret(token);
    }
    if (asprintf(&spec, "@%s", args.token_file) < 0) {
        return CLI_INTERNAL;
    }
    status = cli_read_arg("token-file", spec, /* text_ok= */ false, TOKEN_MAX,
                          &text, &len);
    free(spec);
    if (status != 0) {
        return status;
    }
    end = memchr(text, '\n', len); /* The token is the first line. */
    (void)snprintf(token, TOKEN_MAX + 1, "%.*s",
                   (int)(end != NULL ? (size_t)(end - text) : len), text);
    explicit_bzero(text, len);
    free(text);
    return is_token(token) ? 0
                           : cli_usage(command,
                                       "--token-file: a token has at least %d "
                                       "letters, digits, - and _",
                                       TOKEN_MIN);
}

/* ---- The command ---- */

static int serve(struct ui_options *options, bool show_token)
{
    /* Blocks the signals before there is a thread, which inherits that. */
    int stop = cli_stop_fd();
    struct ui_server *server;
    int status;

    (void)signal(SIGPIPE, SIG_IGN);
    status = ui_server_start(options, &server);
    if (status != 0) {
        return status;
    }
    (void)printf("http://%s/\n", options->socket->text);
    if (show_token) {
        (void)printf("token: %s\n", options->token);
    }
    (void)fflush(stdout);
    (void)cli_stop_within(stop, IDEM_NEVER);
    ui_server_stop(server);
    return 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    char token[TOKEN_MAX + 1];
    char session[UI_SECRET_LEN + 1];
    char who[IDEM_OWNER_MAX + 1];
    char name[HOST_NAME_MAX + 1] = "";
    char *place = NULL;
    struct net_socket socket = {.fd = -1};
    struct ui_options options = {.socket = &socket,
                                 .token = token,
                                 .session = session,
                                 .who = who,
                                 .jobs = &jobs};
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "ui takes no key; its page has a search");
    }
    status = find_address(command, &socket);
    if (status != 0) {
        goto done;
    }
    status = cli_jobs_read(command, args.missing, &jobs);
    if (status != 0) {
        goto done;
    }
    status = cli_log_init();
    if (status != 0) {
        goto done;
    }
    status = read_token(command, token);
    if (status != 0) {
        goto done;
    }
    status = make_secret(session);
    if (status != 0) {
        goto done;
    }
    cli_who(args.who, who);
    status =
        cli_open_store(args.store, IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON,
                       &options.store);
    if (status != 0) {
        goto done;
    }
    (void)gethostname(name, HOST_NAME_MAX);
    if (idem_store_url(options.store) != NULL &&
        asprintf(&place, "%s on %s", idem_store_url(options.store), name) > 0) {
        html_set_place(place);
    }
    status = serve(&options, args.token_file == NULL);

done:
    free(place);
    idem_close(options.store);
    explicit_bzero(token, sizeof(token));
    return status;
}

static struct cli_option options_of_ui[] = {
    CLI_VALUE("listen", "ADDRESS", CLI_TEXT, &args.listen,
              "address on this host: 127.0.0.1:8400 (any free port)",
              .letter = 'l'),
    CLI_VALUE("token-file", "FILE", CLI_TEXT, &args.token_file,
              "read the token from FILE (default: print a new one)"),
    CLI_OPTION_WHO(&args.who),
    CLI_OPTION_MISSING(&args.missing, "/metrics also shows when such keys last "
                                      "succeeded: 'backup@*'"),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem ui                           # prints an address, and a token",
    "idem ui -l 127.0.0.1:8400         # elsewhere: ssh -L 8400:127.0.0.1:8400",
    NULL,
};

const struct cli_command cli_ui = {
    .name = "ui",
    .summary = "serve a page on this host to inspect and decide",
    .usage = "idem ui [OPTION...]",
    .examples = examples,
    .options = options_of_ui,
    .run = run,
};
