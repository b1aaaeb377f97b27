/* The page of a store, for one person on this host.
 *
 * Whoever can reach the port is on this host, but may be another user of it, or a
 * page of somebody else's in a browser here. So nothing is told without the token,
 * which a cookie of this site only carries; a name in Host that is not ours (as
 * where a name was made to point here) is refused; and nothing is changed but by a
 * form that has our seal and was sent from our own page. */
#include "ui/server.h"

#include "audit.h"
#include "cli.h"
#include "clock.h"
#include "look.h"
#include "ui/form.h"
#include "ui/html.h"
#include "ui/listen.h"
#include "ui/mhd.h"
#include "ui/page.h"

#include <errno.h>
#include <stdlib.h>

enum {
    CONNECTIONS = 32,
    IDLE_S = 30,
    CONNECTION_MEMORY = 64 << 10,
    BODY_MAX = 64 << 10,
    POST_MEMORY = 4096
};

struct ui_server {
    const struct ui_mhd *mhd;
    const struct ui_options *options;
    struct MHD_Daemon *daemon;
    char cookie[32];    /* Its name: cookies do not know of ports. */
    char origin[2][80]; /* "http://127.0.0.1:8080", "http://localhost:8080" */
};

/* One request, from its head to its answer. */
struct request {
    struct ui_server *server;
    struct MHD_Connection *connection;
    struct MHD_PostProcessor *post;
    size_t body_len;
    struct ui_form form;
};

/* ---- Answers ---- */

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
     "frame-ancestors 'none'; base-uri 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

/* @body is copied. @name and @value: one more header; may be NULL. */
static enum MHD_Result answer(const struct request *request, unsigned status,
                              const char *type, struct idem_slice body,
                              const char *name, const char *value)
{
    const struct ui_mhd *mhd = request->server->mhd;
    enum MHD_Result result;
    struct MHD_Response *response =
        mhd->create_response_from_buffer(body.len, (void *)(uintptr_t)body.base,
                                         MHD_RESPMEM_MUST_COPY);
    size_t i;

    if (response == NULL) {
        return MHD_NO;
    }
    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        (void)mhd->add_response_header(response, headers[i][0], headers[i][1]);
    }
    (void)mhd->add_response_header(response, "Content-Type", type);
    if (name != NULL) {
        (void)mhd->add_response_header(response, name, value);
    }
    result = mhd->queue_response(request->connection, status, response);
    mhd->destroy_response(response);
    return result;
}

/* A page in memory: what is written to f goes into text. */
struct page {
    FILE *f;
    char *text;
    size_t len;
};

static bool page_open(struct page *page)
{
    page->text = NULL;
    page->len = 0;
    page->f = open_memstream(&page->text, &page->len);
    return page->f != NULL;
}

static enum MHD_Result page_send(const struct request *request,
                                 struct page *page, unsigned status)
{
    enum MHD_Result result = MHD_NO;

    if (fclose(page->f) == 0) {
        result = answer(request, status, "text/html; charset=utf-8",
                        idem_bytes(page->text, page->len), NULL, NULL);
    }
    free(page->text);
    return result;
}

static enum MHD_Result say(const struct request *request, unsigned status,
                           const char *title, const char *text)
{
    struct page page;

    if (!page_open(&page)) {
        return MHD_NO;
    }
    page_text(page.f, title, text);
    return page_send(request, &page, status);
}

static enum MHD_Result fail_with(const struct request *request,
                                 const struct idem_error *error)
{
    return say(request,
               error->code == IDEM_ENOTFOUND ? MHD_HTTP_NOT_FOUND
                                             : MHD_HTTP_SERVICE_UNAVAILABLE,
               error->code == IDEM_ENOTFOUND ? "There is no such record"
                                             : "The store does not answer",
               error->text[0] != '\0' ? error->text
                                      : idem_error_text(error->code));
}

static enum MHD_Result ask_who(const struct request *request, bool wrong)
{
    struct page page;

    if (!page_open(&page)) {
        return MHD_NO;
    }
    page_login(page.f, wrong);
    return page_send(request, &page, MHD_HTTP_FORBIDDEN);
}

/* ---- Who asks ---- */

static const char *value(const struct request *request, enum MHD_ValueKind kind,
                         const char *name)
{
    return request->server->mhd->lookup_connection_value(request->connection,
                                                         kind, name);
}

static bool is_our_origin(const struct ui_server *server, const char *origin)
{
    return strcmp(origin, server->origin[0]) == 0 ||
           strcmp(origin, server->origin[1]) == 0;
}

/* The name by which the browser came here. */
static bool came_to_us(const struct request *request)
{
    const char *host = value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    char origin[80];

    if (host == NULL || strlen(host) > 64) {
        return false;
    }
    (void)snprintf(origin, sizeof(origin), "http://%s", host);
    return is_our_origin(request->server, origin);
}

static bool came_from_us(const struct request *request)
{
    const char *origin =
        value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
    const char *site = value(request, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return (origin == NULL || is_our_origin(request->server, origin)) &&
           (site == NULL || strcmp(site, "same-origin") == 0);
}

static bool has_token(const struct request *request)
{
    const char *token =
        value(request, MHD_COOKIE_KIND, request->server->cookie);

    return token != NULL &&
           ui_same(token, strlen(token), request->server->options->token);
}

static enum MHD_Result log_in(const struct request *request)
{
    const struct ui_server *server = request->server;
    const struct ui_field *token = &request->form.token;
    char cookie[512];

    if (!ui_same(token->text, token->len, server->options->token)) {
        return ask_who(request, /* wrong= */ true);
    }
    (void)snprintf(cookie, sizeof(cookie),
                   "%s=%s; Path=/; HttpOnly; SameSite=Strict", server->cookie,
                   server->options->token);
    /* Not a redirect: a strict cookie is kept back from one that began on another
     * site, as a link in a mail is. */
    return answer(request, MHD_HTTP_OK, "text/html; charset=utf-8",
                  idem_str("<!DOCTYPE html><meta charset=\"utf-8\">"
                           "<title>idem</title><meta http-equiv=\"refresh\" "
                           "content=\"0;url=/\"><a href=\"/\">Go on</a>\n"),
                  MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

/* ---- Lists ---- */

static enum page_show show_of(const struct request *request)
{
    const char *show = value(request, MHD_GET_ARGUMENT_KIND, "show");
    int i;

    for (i = 0; show != NULL && i < PAGE_SHOWS; i++) {
        if (strcmp(show, page_shows[i]) == 0) {
            return (enum page_show)i;
        }
    }
    return PAGE_OPEN;
}

static enum MHD_Result list(const struct request *request,
                            struct idem_slice scope, struct idem_slice key)
{
    struct idem_error error = {0};
    enum MHD_Result result;
    struct cli_look look;
    struct page page;

    error.code = cli_look(request->server->options->store, /* scope= */ NULL,
                          &look, &error);
    if (error.code != 0) {
        return fail_with(request, &error);
    }
    if (!page_open(&page)) {
        cli_look_finish(&look);
        return MHD_NO;
    }
    page_list(page.f, &look, show_of(request), scope, key);
    result = page_send(request, &page, MHD_HTTP_OK);
    cli_look_finish(&look);
    return result;
}

/* ---- One record ---- */

struct identity {
    uint8_t scope[IDEM_SCOPE_MAX];
    size_t scope_len;
    uint8_t key[IDEM_KEY_MAX];
    size_t key_len;
};

static bool read_identity(const struct ui_form *form, struct identity *id)
{
    return ui_field_unhex(&form->scope, id->scope, sizeof(id->scope),
                          &id->scope_len) &&
           ui_field_unhex(&form->key, id->key, sizeof(id->key), &id->key_len) &&
           id->key_len > 0;
}

static int get(const struct request *request, const struct identity *id,
               struct idem_answer **ret_answer, struct idem_error *error)
{
    error->code = idem_get(request->server->options->store,
                           idem_bytes(id->scope, id->scope_len),
                           idem_bytes(id->key, id->key_len), ret_answer, error);
    return error->code;
}

static enum MHD_Result show(const struct request *request,
                            const struct identity *id, const char *said,
                            bool bad)
{
    struct idem_error error = {0};
    struct idem_answer *found;
    struct page page;

    if (get(request, id, &found, &error) != 0) {
        return fail_with(request, &error);
    }
    if (!page_open(&page)) {
        idem_answer_destroy(found);
        return MHD_NO;
    }
    page_record(page.f, idem_answer_record(found), cli_now_ms(),
                request->server->options->seal, said, bad);
    idem_answer_destroy(found);
    return page_send(request, &page, bad ? MHD_HTTP_CONFLICT : MHD_HTTP_OK);
}

static enum MHD_Result record(const struct request *request)
{
    struct identity id;

    if (!read_identity(&request->form, &id)) {
        return say(request, MHD_HTTP_BAD_REQUEST, "There is no such page",
                   "The address is not one of ours.");
    }
    return show(request, &id, /* said= */ NULL, /* bad= */ false);
}

/* The record of this very scope and key, or else what is open and like it. */
static enum MHD_Result search(const struct request *request)
{
    const struct ui_field *scope = &request->form.scope;
    const struct ui_field *key = &request->form.key;
    struct idem_slice s = idem_bytes(scope->text, scope->len);
    struct idem_slice k = idem_bytes(key->text, key->len);
    struct idem_answer *found;
    struct identity id;

    if (k.len > 0 && k.len <= IDEM_KEY_MAX && s.len <= IDEM_SCOPE_MAX &&
        idem_get(request->server->options->store, s, k, &found, NULL) == 0) {
        idem_answer_destroy(found);
        memcpy(id.scope, scope->text, s.len);
        id.scope_len = s.len;
        memcpy(id.key, key->text, k.len);
        id.key_len = k.len;
        return show(request, &id, /* said= */ NULL, /* bad= */ false);
    }
    return list(request, s, k);
}

/* ---- A decision ---- */

static enum idem_status status_of(const struct ui_form *form)
{
    if (strcmp(form->decision.text, "complete") == 0) {
        return IDEM_STATUS_COMPLETED;
    }
    if (strcmp(form->decision.text, "fail") == 0) {
        return IDEM_STATUS_FAILED;
    }
    return strcmp(form->decision.text, "release") == 0 ? IDEM_STATUS_RELEASED
                                                       : (enum idem_status)0;
}

static int decide(const struct request *request, const struct identity *id,
                  uint64_t fence, struct idem_error *error)
{
    const struct ui_form *form = &request->form;
    struct idem_result result = {
        .bytes = idem_bytes(form->result.text, form->result.len)};
    struct cli_decision decision = {
        .status = status_of(form),
        .result = &result,
        .who = request->server->options->who,
        .why = form->reason.text,
    };
    struct idem_answer *found;
    struct cli_audit audit;

    if (decision.status != IDEM_STATUS_COMPLETED) {
        decision.result = NULL;
    }
    if (get(request, id, &found, error) != 0) {
        return error->code;
    }
    if (cli_audit_open(&audit) != 0) {
        (void)snprintf(error->text, sizeof(error->text),
                       "the audit log cannot be written; see where idem ui "
                       "runs");
        error->code = IDEM_ECONFIG;
    } else {
        error->code =
            cli_decide(request->server->options->store, &audit,
                       idem_answer_record(found), fence, &decision, error);
        cli_audit_close(&audit);
    }
    idem_answer_destroy(found);
    return error->code;
}

static enum MHD_Result resolve(const struct request *request)
{
    const struct ui_form *form = &request->form;
    struct idem_error error = {0};
    struct identity id;
    uint64_t fence;
    char *end;

    if (!ui_same(form->seal.text, form->seal.len,
                 request->server->options->seal)) {
        return say(request, MHD_HTTP_FORBIDDEN, "Nothing was decided",
                   "The form is not one of ours, or is from before idem ui was "
                   "started anew. Look at the record again.");
    }
    fence = strtoull(form->fence.text, &end, 10);
    if (!read_identity(form, &id) || status_of(form) == 0 || *end != '\0' ||
        form->fence.len == 0 || form->result.too_long ||
        form->reason.too_long) {
        return say(request, MHD_HTTP_BAD_REQUEST, "Nothing was decided",
                   "Something is missing in the form, or too long.");
    }
    if (form->reason.len == 0) {
        return show(request, &id, "Nothing was decided: say how you know.",
                    /* bad= */ true);
    }
    if (decide(request, &id, fence, &error) != 0) {
        char said[320];

        (void)snprintf(said, sizeof(said), "Nothing was decided: %s",
                       error.text[0] != '\0' ? error.text
                                             : idem_error_text(error.code));
        return show(request, &id, said, /* bad= */ true);
    }
    return show(request, &id, "It is decided, and on record.",
                /* bad= */ false);
}

/* ---- Requests ---- */

static void take_argument(struct request *request, const char *name,
                          const char *form_name)
{
    const char *text = value(request, MHD_GET_ARGUMENT_KIND, name);
    struct ui_field *field = ui_form_field(&request->form, form_name);

    if (text != NULL) {
        ui_field_add(field, text, strlen(text));
    }
}

static enum MHD_Result route_get(struct request *request, const char *path)
{
    take_argument(request, "s", "s");
    take_argument(request, "k", "k");
    if (strcmp(path, "/") == 0) {
        return list(request, idem_str(""), idem_str(""));
    }
    if (strcmp(path, "/record") == 0) {
        return record(request);
    }
    if (strcmp(path, "/search") == 0) {
        return search(request);
    }
    return say(request, MHD_HTTP_NOT_FOUND, "There is no such page",
               "The address is not one of ours.");
}

static enum MHD_Result respond(struct request *request, const char *method,
                               const char *path)
{
    bool post = strcmp(method, "POST") == 0;

    if (!came_to_us(request)) {
        return say(request, MHD_HTTP_FORBIDDEN, "This is not that site",
                   "Another name than this host's leads here.");
    }
    if (post && !came_from_us(request)) {
        return say(request, MHD_HTTP_FORBIDDEN, "Nothing was done",
                   "Another site sent this.");
    }
    if (post && request->body_len > BODY_MAX) {
        return say(request, MHD_HTTP_CONTENT_TOO_LARGE, "Nothing was done",
                   "That is too long.");
    }
    if (!post && strcmp(path, "/style.css") == 0) {
        return answer(request, MHD_HTTP_OK, "text/css; charset=utf-8",
                      idem_str(html_style), NULL, NULL);
    }
    if (post && strcmp(path, "/login") == 0) {
        return log_in(request);
    }
    if (!has_token(request)) {
        return ask_who(request, /* wrong= */ false);
    }
    if (post && strcmp(path, "/resolve") == 0) {
        return resolve(request);
    }
    if (post || strcmp(method, "GET") != 0) {
        return say(request, MHD_HTTP_METHOD_NOT_ALLOWED, "Nothing was done",
                   "That cannot be done here.");
    }
    return route_get(request, path);
}

static enum MHD_Result take_field(void *ctx, enum MHD_ValueKind kind,
                                  const char *name, const char *file,
                                  const char *type, const char *encoding,
                                  const char *bytes, uint64_t at, size_t len)
{
    struct request *request = ctx;
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

static struct request *request_create(struct ui_server *server,
                                      struct MHD_Connection *connection,
                                      bool post)
{
    struct request *request = calloc(1, sizeof(*request));

    if (request != NULL) {
        request->server = server;
        request->connection = connection;
        if (post) {
            request->post =
                server->mhd->create_post_processor(connection, POST_MEMORY,
                                                   take_field, request);
        }
    }
    return request;
}

/* Called with the head, with each piece of the body, and at the end of it. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *data,
                              size_t *data_len, void **state)
{
    struct request *request = *state;

    (void)version;
    if (request == NULL) {
        *state = request_create(ctx, connection, strcmp(method, "POST") == 0);
        return *state == NULL ? MHD_NO : MHD_YES;
    }
    if (*data_len == 0) {
        return respond(request, method, url);
    }
    request->body_len += *data_len;
    if (request->post != NULL && request->body_len <= BODY_MAX) {
        (void)request->server->mhd->post_process(request->post, data,
                                                 *data_len);
    }
    *data_len = 0;
    return MHD_YES;
}

static void completed(void *ctx, struct MHD_Connection *connection,
                      void **state, enum MHD_RequestTerminationCode how)
{
    struct request *request = *state;

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

/* @socket is libmicrohttpd's from now on. */
static bool answer_on(struct ui_server *server, int socket)
{
    server->daemon = server->mhd->start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle, server,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    if (server->daemon == NULL) {
        cli_say("libmicrohttpd cannot start");
    }
    return server->daemon != NULL;
}

/* What requests are held against is known before the first one can come. */
static bool start(struct ui_server *server, unsigned *ret_port)
{
    const struct ui_options *options = server->options;
    int socket = ui_listen(options->address, ret_port);

    if (socket < 0) {
        cli_say("--listen: %s cannot be listened on: %s", options->host,
                strerror(errno));
        return false;
    }
    (void)snprintf(server->cookie, sizeof(server->cookie), "idem_%u",
                   *ret_port);
    (void)snprintf(server->origin[0], sizeof(server->origin[0]), "http://%s:%u",
                   options->host, *ret_port);
    (void)snprintf(server->origin[1], sizeof(server->origin[1]),
                   "http://localhost:%u", *ret_port);
    return answer_on(server, socket);
}

int ui_server_start(const struct ui_options *options,
                    struct ui_server **ret_server, unsigned *ret_port)
{
    struct ui_server *server = calloc(1, sizeof(*server));

    if (server == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    server->options = options;
    server->mhd = ui_mhd();
    if (server->mhd == NULL) {
        free(server);
        return CLI_CONFIG;
    }
    if (!start(server, ret_port)) {
        free(server);
        return CLI_UNAVAILABLE;
    }
    *ret_server = server;
    return 0;
}

void ui_server_stop(struct ui_server *server)
{
    server->mhd->stop_daemon(server->daemon);
    free(server);
}
