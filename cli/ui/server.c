/* The server: takes a request from its head to its answer. */
#include "net/net.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "ui/http_request.h"
#include "ui/ui.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    CONNECTIONS = 32, /* And threads. */
    IDLE_S = 30,
    CONNECTION_MEMORY = 64 << 10,
    BODY_MAX = 64 << 10,
    POST_MEMORY = 4096
};

/* ---- Requests ---- */

static void take_argument(struct ui_request *request, const char *name)
{
    const char *text = ui_value(request, MHD_GET_ARGUMENT_KIND, name);
    struct ui_field *field = ui_form_field(&request->form, name);

    if (text != NULL) {
        ui_field_add(field, text, strlen(text));
    }
}

static enum MHD_Result take_field(void *ctx, enum MHD_ValueKind kind,
                                  const char *name, const char *file,
                                  const char *type, const char *encoding,
                                  const char *bytes, uint64_t at, size_t len)
{
    struct ui_request *request = ctx;
    struct ui_field *field = ui_form_field(&request->form, name);

    (void)kind;
    (void)file;
    (void)type;
    (void)encoding;
    (void)at;
    if (field != NULL && bytes != NULL) {
        ui_field_add(field, bytes, len);
    }
    return MHD_YES;
}

/* ---- Routes ---- */

static const struct route {
    const char *path;
    bool post;
    bool inside; /* The path is after the secret of the session. */
    enum MHD_Result (*answer)(const struct ui_request *request);
} routes[] = {
    {"/style.css", false, false, ui_style},
    {"/metrics", false, false, ui_metrics},
    {"/login", true, false, ui_log_in},
    {"/", false, true, ui_list},
    {"/record", false, true, ui_record},
    {"/search", false, true, ui_search},
    {"/resolve", true, true, ui_resolve},
    {"/reopen", true, true, ui_reopen},
};

/* NULL: there is none. @inside may be NULL. */
static const struct route *find_route(bool post, const char *path,
                                      const char *inside)
{
    size_t i;

    for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const char *at = routes[i].inside ? inside : path;

        if (routes[i].post == post && at != NULL &&
            strcmp(routes[i].path, at) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

/* Lets the body of a form come, which @route answers. libmicrohttpd reads only the
 * encoding of the forms of idem ui: its reader of multipart bodies would pass NULL as
 * the name of a part that has none. */
static enum MHD_Result await_form(struct ui_request *request,
                                  const struct route *route)
{
    if (!ui_is_form(request)) {
        return ui_say(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                      "Nothing was done",
                      "A form is sent as "
                      "application/x-www-form-urlencoded.");
    }
    request->answer = route->answer;
    request->post =
        request->server->mhd->create_post_processor(request->connection,
                                                    POST_MEMORY, take_field,
                                                    request);
    return request->post == NULL ? MHD_NO : MHD_YES;
}

static enum MHD_Result refuse_name(const struct ui_request *request)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "This page is at %s/ only.",
                   request->server->origin);
    return ui_say(request, MHD_HTTP_FORBIDDEN, "Wrong host name", text);
}

/* Decides by the head alone. An answer here goes out before a byte of the
 * body is read, and libmicrohttpd closes the connection after it: only a form
 * that may act here has a body that is worth reading. */
static enum MHD_Result begin(struct ui_request *request, const char *method,
                             const char *path)
{
    const char *inside = ui_path_inside(request, path);
    bool post = strcmp(method, "POST") == 0;
    const struct route *route = find_route(post, path, inside);

    if (!ui_came_to_us(request)) {
        return refuse_name(request);
    }
    if (post && !ui_came_from_us(request)) {
        return ui_say(request, MHD_HTTP_FORBIDDEN, "Nothing was done",
                      "Another site sent this.");
    }
    if (inside == NULL && route == NULL) {
        return ui_ask_who(request, /* wrong= */ false);
    }
    if (post && route != NULL) {
        return await_form(request, route);
    }
    if (inside != NULL && strcmp(method, "GET") != 0) {
        return ui_say(request, MHD_HTTP_METHOD_NOT_ALLOWED, "Nothing was done",
                      "This method is not allowed here.");
    }
    if (route == NULL) {
        return ui_say(request, MHD_HTTP_NOT_FOUND, "Page not found",
                      "The address is not a page of idem.");
    }
    take_argument(request, "s");
    take_argument(request, "k");
    return route->answer(request);
}

static enum MHD_Result end_form(const struct ui_request *request)
{
    if (request->body_len > BODY_MAX) {
        return ui_say(request, MHD_HTTP_CONTENT_TOO_LARGE, "Nothing was done",
                      "That is too long.");
    }
    return request->answer(request);
}

static struct ui_request *request_create(struct ui_server *server,
                                         struct MHD_Connection *connection)
{
    struct ui_request *request = calloc(1, sizeof(*request));

    if (request != NULL) {
        request->server = server;
        request->connection = connection;
    }
    return request;
}

/* Called with the head, with each piece of the body, and at the end of it. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *data,
                              size_t *data_len, void **state)
{
    struct ui_request *request = *state;

    (void)version;
    if (request == NULL) {
        request = request_create(ctx, connection);
        *state = request;
        return request == NULL ? MHD_NO : begin(request, method, url);
    }
    if (*data_len == 0) {
        return end_form(request);
    }
    request->body_len += *data_len;
    if (request->body_len <= BODY_MAX) {
        (void)request->server->mhd->post_process(request->post, data,
                                                 *data_len);
    }
    *data_len = 0;
    return MHD_YES;
}

static void completed(void *ctx, struct MHD_Connection *connection,
                      void **state, enum MHD_RequestTerminationCode how)
{
    struct ui_request *request = *state;

    (void)ctx;
    (void)connection;
    (void)how;
    if (request != NULL) {
        if (request->post != NULL) {
            (void)request->server->mhd->destroy_post_processor(request->post);
        }
        explicit_bzero(request, sizeof(*request));
        free(request);
        *state = NULL;
    }
}

/* ---- The server ---- */

/* @socket is libmicrohttpd's from now on. A thread for each connection: in an outage
 * of the store one request must not wait for the end of another. */
static bool answer_on(struct ui_server *server, int socket)
{
    server->daemon = server->mhd->start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0,
        NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, socket,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    if (server->daemon == NULL) {
        cli_say("libmicrohttpd cannot start");
    }
    return server->daemon != NULL;
}

/* Sets the values that requests are compared with before the first request can come. */
static int start(struct ui_server *server)
{
    struct net_socket *socket = server->options->socket;

    server->mhd = ui_mhd();
    if (server->mhd == NULL) {
        return CLI_CONFIG;
    }
    if (net_listen("listen", socket) != 0) {
        return CLI_UNAVAILABLE;
    }
    (void)snprintf(server->origin, sizeof(server->origin), "http://%.60s",
                   socket->text);
    return answer_on(server, socket->fd) ? 0 : CLI_UNAVAILABLE;
}

int ui_server_start(const struct ui_options *options,
                    struct ui_server **ret_server)
{
    struct ui_server *server = calloc(1, sizeof(*server));
    int status;

    if (server == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    server->options = options;
    status = start(server);
    if (status != 0) {
        free(server);
        return status;
    }
    *ret_server = server;
    return 0;
}

void ui_server_stop(struct ui_server *server)
{
    server->mhd->stop_daemon(server->daemon);
    free(server);
}
