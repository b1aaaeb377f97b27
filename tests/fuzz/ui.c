/* The page of idem ui, through libmicrohttpd. The rest of the input is sent to it,
 * cut in two where the first bytes say, and a bit of them says whether the sender knows
 * the secret of the session.
 *
 * Without it nothing of the record in the store is told, none of the answers is a
 * success but the style sheet, and a body is taken in only if the head before it is
 * that of a form at /login, by our name, encoded as a form, from no other site.
 */
#include "fuzz.h"

#include "net/net.h"
#include "ui/http_request.h"
#include "ui/ui.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define HOST "127.0.0.1:8400"
#define TOKEN "5ca1ab1e0ddba11c0ffee0ddba11f00d"
#define SESSION "0ff1ce0ff1ce0ff1ce0ff1ce0ff1ce00"
#define CANARY "canary-in-the-store"

enum {
    CUT_MAX = 1023,
    STEPS = 16 /* Of the server: it answers in a few. */
};

const struct ui_mhd *__wrap_ui_mhd(void);
const struct ui_mhd *__real_ui_mhd(void);
int __wrap_net_listen(const char *option, struct net_socket *socket);

static struct ui_mhd ours; /* libmicrohttpd, watched. */
static const struct ui_mhd *real;
static enum MHD_Result (*run_daemon)(struct MHD_Daemon *daemon);
static enum MHD_Result (*add_connection)(struct MHD_Daemon *daemon, int fd,
                                         const struct sockaddr *address,
                                         socklen_t len);

static struct net_socket listening = {.text = "127.0.0.1:8400"};
static struct ui_options options = {.socket = &listening,
                                    .token = TOKEN,
                                    .session = SESSION,
                                    .who = "ada"};
static struct ui_server *server;
static struct MHD_Daemon *serving;
static MHD_AccessHandlerCallback handle;

static bool stranger; /* The sender knows no secret. */
static bool at_login; /* The request that was last begun. */
static bool reads_body;

/* ---- libmicrohttpd, watched ---------------------------------------------- */

static bool is(struct MHD_Connection *connection, const char *header,
               const char *want)
{
    const char *value =
        real->lookup_connection_value(connection, MHD_HEADER_KIND, header);

    return value != NULL && strncasecmp(value, want, strlen(want)) == 0;
}

static bool lacks(struct MHD_Connection *connection, const char *header)
{
    return real->lookup_connection_value(connection, MHD_HEADER_KIND, header) ==
           NULL;
}

static struct MHD_PostProcessor *create_post_processor(
    struct MHD_Connection *connection, size_t size, MHD_PostDataIterator take,
    void *ctx)
{
    must(!stranger || at_login);
    must(is(connection, "Host", HOST));
    must(
        is(connection, "Content-Type", MHD_HTTP_POST_ENCODING_FORM_URLENCODED));
    must(lacks(connection, "Origin") ||
         is(connection, "Origin", "http://" HOST));
    reads_body = true;
    return real->create_post_processor(connection, size, take, ctx);
}

static enum MHD_Result queue_response(struct MHD_Connection *connection,
                                      unsigned status,
                                      struct MHD_Response *response)
{
    must(status >= 200 && status < 600);
    must(!stranger || status >= 400 || !reads_body);
    return real->queue_response(connection, status, response);
}

static enum MHD_Result watch(void *ctx, struct MHD_Connection *connection,
                             const char *url, const char *method,
                             const char *version, const char *data, size_t *len,
                             void **state)
{
    if (*state == NULL) {
        at_login = strcmp(method, "POST") == 0 && strcmp(url, "/login") == 0;
        reads_body = false;
    }
    must(*len == 0 || reads_body);
    return handle(ctx, connection, url, method, version, data, len, state);
}

/* Without a thread and a socket of its own: run_daemon() is each step of it. */
static struct MHD_Daemon *start_daemon(unsigned flags, uint16_t port,
                                       MHD_AcceptPolicyCallback accept,
                                       void *accept_ctx,
                                       MHD_AccessHandlerCallback answer,
                                       void *ctx, ...)
{
    MHD_RequestCompletedCallback completed = NULL;
    void *completed_ctx = NULL;
    enum MHD_OPTION option;
    va_list args;

    (void)flags;
    va_start(args, ctx);
    while ((option = va_arg(args, enum MHD_OPTION)) != MHD_OPTION_END) {
        if (option == MHD_OPTION_NOTIFY_COMPLETED) {
            completed = va_arg(args, MHD_RequestCompletedCallback);
            completed_ctx = va_arg(args, void *);
        } else if (option == MHD_OPTION_CONNECTION_MEMORY_LIMIT) {
            (void)va_arg(args, size_t);
        } else {
            (void)va_arg(args, unsigned); /* A socket is an int. */
        }
    }
    va_end(args);
    must(completed != NULL);
    handle = answer;
    serving =
        real->start_daemon(MHD_USE_NO_LISTEN_SOCKET, port, accept, accept_ctx,
                           watch, ctx, MHD_OPTION_NOTIFY_COMPLETED, completed,
                           completed_ctx, MHD_OPTION_END);
    return serving;
}

const struct ui_mhd *__wrap_ui_mhd(void)
{
    real = __real_ui_mhd();
    must(real != NULL);
    ours = *real;
    ours.start_daemon = start_daemon;
    ours.create_post_processor = create_post_processor;
    ours.queue_response = queue_response;
    return &ours;
}

int __wrap_net_listen(const char *option, struct net_socket *socket)
{
    (void)option;
    socket->fd = 0; /* Nobody looks at it. */
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    void *run = library == NULL ? NULL : dlsym(library, "MHD_run");
    void *add = library == NULL ? NULL : dlsym(library, "MHD_add_connection");

    (void)argc;
    (void)argv;
    fuzz_hush();
    must(run != NULL && add != NULL);
    memcpy(&run_daemon, &run, sizeof(run));
    memcpy(&add_connection, &add, sizeof(add));
    must(setenv("IDEM_AUDIT_LOG", "off", /* overwrite= */ 1) == 0);
    must(ui_server_start(&options, &server) == 0 && serving != NULL);
    return 0;
}

/* ---- A request ----------------------------------------------------------- */

static void open_store(void)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;

    request.key = idem_str(CANARY);
    request.on_expired_lease = IDEM_HOLD;
    must(idem_open("memory:", NULL, &options.store, NULL) == 0);
    must(idem_begin(options.store, &request, &attempt, NULL) == 0);
    must(idem_fail(attempt, idem_str(CANARY), /* result= */ NULL, NULL) == 0);
    idem_attempt_destroy(attempt);
}

/* The server may have closed it by now. */
static void send_all(int fd, const char *text, size_t len)
{
    ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);

    must(sent == (ssize_t)len || errno == EPIPE);
}

static bool names(const char *answer, size_t len, const char *what)
{
    return memmem(answer, len, what, strlen(what)) != NULL;
}

/* Lets the server work, and reads its answers. */
static void step(int fd)
{
    static char answer[1 << 16];
    ssize_t len;
    int i;

    for (i = 0; i < STEPS; i++) {
        must(run_daemon(serving) == MHD_YES);
        len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
        if (len == 0) {
            return; /* It was closed. */
        }
        must(!stranger || len < 0 || !names(answer, (size_t)len, CANARY));
        must(!stranger || len < 0 || !names(answer, (size_t)len, SESSION));
    }
}

/* The request, with the secret of the session in front of its path. */
static char *with_session(struct idem_slice text, size_t *ret_len)
{
    const char *all = text.base;
    const char *path = text.len == 0 ? NULL : memchr(all, ' ', text.len);
    size_t before = path == NULL ? text.len : (size_t)(path + 1 - all);
    size_t more = path == NULL || stranger ? 0 : sizeof(SESSION);
    char *sent = malloc(text.len + more + 1);

    must(sent != NULL);
    memcpy(sent, text.len == 0 ? "" : all, before);
    memcpy(sent + before, "/" SESSION, more);
    memcpy(sent + before + more, text.len == 0 ? "" : all + before,
           text.len - before);
    *ret_len = text.len + more;
    return sent;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct sockaddr nobody = {.sa_family = AF_UNIX};
    struct tape tape = tape_of(data, len);
    unsigned cut = take_u8(&tape) << 8;
    size_t size;
    char *text;
    int fd[2];

    cut |= take_u8(&tape);
    stranger = (cut & 0x8000) == 0;
    text = with_session(take_rest(&tape), &size);
    cut = cut & CUT_MAX;
    cut = cut > size ? (unsigned)size : cut;

    open_store();
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    must(add_connection(serving, fd[1], &nobody, sizeof(nobody)) == MHD_YES);
    send_all(fd[0], text, cut);
    step(fd[0]);
    send_all(fd[0], text + cut, size - cut);
    (void)shutdown(fd[0], SHUT_WR);
    step(fd[0]);
    (void)close(fd[0]);
    must(run_daemon(serving) == MHD_YES);
    idem_close(options.store);
    free(text);
    return 0;
}
