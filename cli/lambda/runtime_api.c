/* Lambda's Runtime API on this host, for one event.
 *
 *     GET  invocation/next             the event; the second time nothing, for good
 *     POST invocation/ID/response      how it ended, once
 *     POST invocation/ID/error
 *     POST init/error                  it did not come to that
 */
#include "lambda/runtime_api.h"

#include "process/clock.h"
#include "server/mhd.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PREFIX "/2018-06-01/runtime/"
#define BODY_MAX ((size_t)6 << 20) /* As Lambda takes it. */

struct lambda_api {
    const struct ui_mhd *mhd;
    struct MHD_Daemon *daemon;
    const struct lambda_event *event;
    int wake;

    pthread_mutex_t lock; /* Of what is below. */
    pthread_cond_t over_now;
    struct lambda_answer answer;
    char *body; /* The answer's. */
    bool over;
};

struct request {
    char *body; /* With a NUL after it; NULL: it is empty. */
    size_t len;
    size_t room;
    bool too_long;
};

/* ---- Answers ----------------------------------------------------------- */

static enum MHD_Result send_reply(struct lambda_api *api,
                                  struct MHD_Connection *connection,
                                  unsigned status, struct MHD_Response *reply)
{
    enum MHD_Result rc;

    if (reply == NULL) {
        return MHD_NO;
    }
    (void)api->mhd->add_response_header(reply, "Content-Type",
                                        "application/json");
    rc = api->mhd->queue_response(connection, status, reply);
    api->mhd->destroy_response(reply);
    return rc;
}

static enum MHD_Result say(struct lambda_api *api,
                           struct MHD_Connection *connection, unsigned status)
{
    static char ok[] = "{\"status\":\"OK\"}";
    static char no[] = "{\"errorType\":\"InvalidRequest\"}";
    char *text = status < 300 ? ok : no;

    return send_reply(api, connection, status,
                      api->mhd->create_response_from_buffer(
                          strlen(text), text, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_event(struct lambda_api *api,
                                  struct MHD_Connection *connection,
                                  int64_t deadline_ms)
{
    const struct lambda_event *event = api->event;
    struct MHD_Response *reply = api->mhd->create_response_from_buffer(
        event->json.len, (void *)(uintptr_t)event->json.base,
        MHD_RESPMEM_PERSISTENT);
    char deadline[24];

    if (reply == NULL) {
        return MHD_NO;
    }
    (void)snprintf(deadline, sizeof(deadline), "%lld", (long long)deadline_ms);
    (void)api->mhd->add_response_header(reply, "Lambda-Runtime-Aws-Request-Id",
                                        event->request_id);
    (void)api->mhd->add_response_header(reply, "Lambda-Runtime-Deadline-Ms",
                                        deadline);
    if (event->arn != NULL) {
        (void)api->mhd->add_response_header(
            reply, "Lambda-Runtime-Invoked-Function-Arn", event->arn);
    }
    return send_reply(api, connection, MHD_HTTP_OK, reply);
}

/* ---- The calls --------------------------------------------------------- */

static void wake(struct lambda_api *api)
{
    uint64_t one = 1;

    (void)!write(api->wake, &one, sizeof(one));
}

/* The second one waits as in a sandbox that is frozen, until it is closed. */
static enum MHD_Result next(struct lambda_api *api,
                            struct MHD_Connection *connection)
{
    int64_t deadline_ms = 0;

    (void)pthread_mutex_lock(&api->lock);
    if (api->answer.deadline_ms == 0) {
        deadline_ms = cli_now_ms() + api->event->time_ms;
        api->answer.deadline_ms = deadline_ms;
        wake(api);
    } else {
        api->answer.asked_again = api->answer.end != LAMBDA_OPEN;
        wake(api);
        while (!api->over) {
            (void)pthread_cond_wait(&api->over_now, &api->lock);
        }
    }
    (void)pthread_mutex_unlock(&api->lock);
    return deadline_ms == 0 ? MHD_NO : send_event(api, connection, deadline_ms);
}

/* False: it has ended already. The body is the answer's from then on. */
static bool end(struct lambda_api *api, enum lambda_end how,
                struct request *request)
{
    bool first;

    (void)pthread_mutex_lock(&api->lock);
    first = api->answer.end == LAMBDA_OPEN &&
            (how == LAMBDA_INIT_ERROR || api->answer.deadline_ms != 0);
    if (first) {
        api->answer.end = how;
        api->answer.body = idem_bytes(request->body, request->len);
        api->body = request->body;
        request->body = NULL;
        wake(api);
    }
    (void)pthread_mutex_unlock(&api->lock);
    return first;
}

/* "invocation/ID/response" */
static enum lambda_end end_in(const struct lambda_api *api, const char *path)
{
    const char *id = api->event->request_id;
    size_t len = strlen(id);

    if (strcmp(path, "init/error") == 0) {
        return LAMBDA_INIT_ERROR;
    }
    if (strncmp(path, "invocation/", 11) != 0 ||
        strncmp(path + 11, id, len) != 0) {
        return LAMBDA_OPEN;
    }
    path += 11 + len;
    return strcmp(path, "/response") == 0 ? LAMBDA_RESPONSE
           : strcmp(path, "/error") == 0  ? LAMBDA_ERROR
                                          : LAMBDA_OPEN;
}

static enum MHD_Result respond(struct lambda_api *api,
                               struct MHD_Connection *connection,
                               const char *method, const char *url,
                               struct request *request)
{
    enum lambda_end how;

    if (strncmp(url, PREFIX, strlen(PREFIX)) != 0) {
        return say(api, connection, MHD_HTTP_NOT_FOUND);
    }
    url += strlen(PREFIX);
    if (strcmp(method, "GET") == 0 && strcmp(url, "invocation/next") == 0) {
        return next(api, connection);
    }
    how = strcmp(method, "POST") == 0 ? end_in(api, url) : LAMBDA_OPEN;
    if (how == LAMBDA_OPEN) {
        return say(api, connection, MHD_HTTP_BAD_REQUEST);
    }
    if (request->too_long) {
        return say(api, connection, MHD_HTTP_CONTENT_TOO_LARGE);
    }
    return say(api, connection,
               end(api, how, request) ? MHD_HTTP_ACCEPTED
                                      : MHD_HTTP_BAD_REQUEST);
}

/* ---- Requests ---------------------------------------------------------- */

static bool take(struct request *request, const char *data, size_t len)
{
    if (request->too_long || len > BODY_MAX - request->len) {
        request->too_long = true;
        return true;
    }
    if (request->len + len >= request->room) {
        size_t room = 2 * (request->len + len) + 1;
        char *body = realloc(request->body, room);

        if (body == NULL) {
            return false;
        }
        request->body = body;
        request->room = room;
    }
    memcpy(request->body + request->len, data, len);
    request->len += len;
    request->body[request->len] = '\0';
    return true;
}

/* Called with the head, with each piece of the body, and at the end of it. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *data,
                              size_t *data_len, void **state)
{
    struct request *request = *state;
    size_t len = *data_len;

    (void)version;
    if (request == NULL) {
        *state = calloc(1, sizeof(*request));
        return *state == NULL ? MHD_NO : MHD_YES;
    }
    if (len == 0) {
        return respond(ctx, connection, method, url, request);
    }
    *data_len = 0;
    return take(request, data, len) ? MHD_YES : MHD_NO;
}

static void completed(void *ctx, struct MHD_Connection *connection,
                      void **state, enum MHD_RequestTerminationCode how)
{
    struct request *request = *state;

    (void)ctx;
    (void)connection;
    (void)how;
    if (request != NULL) {
        free(request->body);
        free(request);
        *state = NULL;
    }
}

/* ---- Life -------------------------------------------------------------- */

static int start(struct lambda_api *api, unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const struct sockaddr *any = (const void *)&address;
    int fd;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    api->mhd = ui_mhd();
    if (api->mhd == NULL) {
        return CLI_CONFIG;
    }
    api->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fd = api->wake < 0 ? -1 : ui_listen(any, ret_port);
    if (fd < 0) {
        cli_say("cannot serve the Runtime API on this host: %s",
                strerror(errno));
        return CLI_UNAVAILABLE;
    }
    api->daemon = api->mhd->start_daemon(MHD_USE_INTERNAL_POLLING_THREAD |
                                             MHD_USE_THREAD_PER_CONNECTION,
                                         0, NULL, NULL, handle, api,
                                         MHD_OPTION_LISTEN_SOCKET, fd,
                                         MHD_OPTION_NOTIFY_COMPLETED, completed,
                                         NULL, MHD_OPTION_END);
    if (api->daemon == NULL) {
        cli_say("libmicrohttpd cannot start");
        return CLI_UNAVAILABLE;
    }
    return 0;
}

int lambda_api_start(const struct lambda_event *event,
                     struct lambda_api **ret_api, unsigned *ret_port)
{
    struct lambda_api *api = calloc(1, sizeof(*api));
    int status;

    if (api == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    api->event = event;
    api->wake = -1;
    (void)pthread_mutex_init(&api->lock, NULL);
    (void)pthread_cond_init(&api->over_now, NULL);
    status = start(api, ret_port);
    if (status != 0) {
        lambda_api_stop(api);
        return status;
    }
    *ret_api = api;
    return 0;
}

int lambda_api_fd(const struct lambda_api *api)
{
    return api->wake;
}

void lambda_api_look(struct lambda_api *api, struct lambda_answer *ret_answer)
{
    uint64_t count;

    (void)!read(api->wake, &count, sizeof(count));
    (void)pthread_mutex_lock(&api->lock);
    *ret_answer = api->answer;
    (void)pthread_mutex_unlock(&api->lock);
}

void lambda_api_stop(struct lambda_api *api)
{
    (void)pthread_mutex_lock(&api->lock);
    api->over = true;
    (void)pthread_cond_broadcast(&api->over_now);
    (void)pthread_mutex_unlock(&api->lock);
    if (api->daemon != NULL) {
        api->mhd->stop_daemon(api->daemon);
    }
    if (api->wake >= 0) {
        (void)close(api->wake);
    }
    (void)pthread_cond_destroy(&api->over_now);
    (void)pthread_mutex_destroy(&api->lock);
    free(api->body);
    free(api);
}
