/* One connection and the request that is on it. */
#include "aws/client/slot.h"

#include "aws/client/ca.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    RECEIVE = 16 * 1024,
};

/* ---- libcurl's callbacks ----------------------------------------------- */

/* libcurl's own sockets would be inherited by children of this process. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose,
                             struct curl_sockaddr *address)
{
    struct idem__aws_slot *slot = ctx;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                    address->protocol);

    (void)purpose;
    if (fd >= 0) {
        idem__sockets_opened(slot->sockets, fd);
    }
    return fd;
}

static int on_close(void *ctx, curl_socket_t fd)
{
    struct idem__aws_slot *slot = ctx;

    idem__sockets_closing(slot->sockets, fd);
    return close(fd);
}

/* The descriptors that libcurl waits for, while it connects. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                     void *known)
{
    struct idem__aws_slot *slot = ctx;
    uint32_t wanted = 0;

    (void)easy;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) {
        wanted |= EPOLLIN;
    }
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) {
        wanted |= EPOLLOUT;
    }
    if (wanted != 0 && known == NULL) {
        (void)slot->curl->multi_assign(slot->multi, fd, slot);
    }
    return idem__sockets_want(slot->sockets, fd, wanted, known == NULL);
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct idem__aws_slot *slot = ctx;

    (void)multi;
    slot->curl_due_ms = timeout_ms < 0
                            ? IDEM_NEVER
                            : idem__time_add(idem__mono_ms(), timeout_ms);
    return 0;
}

/* ---- Life -------------------------------------------------------------- */

static bool set_up_multi(struct idem__aws_slot *slot)
{
    CURLMcode (*set)(CURLM *, CURLMoption, ...) = slot->curl->multi_setopt;
    int bad = 0;

    bad |= set(slot->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    bad |= set(slot->multi, CURLMOPT_SOCKETDATA, slot);
    bad |= set(slot->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    bad |= set(slot->multi, CURLMOPT_TIMERDATA, slot);
    return bad == 0;
}

/* Options that stay for the life of the handle. */
static bool set_up_easy(struct idem__aws_slot *slot,
                        const struct idem__aws_options *options)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = slot->curl->easy_setopt;
    CURL *easy = slot->easy;
    long connect_ms =
        options->connect_ms == 0 ? 3000 : (long)options->connect_ms;
    const char *ca_file =
        idem__aws_ca_file(options->ca_file,
                          slot->curl->version_info(CURLVERSION_NOW)->cainfo);
    int bad = 0;

    bad |= set(easy, CURLOPT_CONNECT_ONLY, 1L);
    /* The request is for the service, and not for a proxy to read. */
    bad |= set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    bad |= set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= set(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= set(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    bad |= set(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= set(easy, CURLOPT_USERAGENT, "idem/" IDEM_VERSION);
    bad |= set(easy, CURLOPT_ERRORBUFFER, slot->why);
    bad |= set(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    bad |= set(easy, CURLOPT_OPENSOCKETDATA, slot);
    bad |= set(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    bad |= set(easy, CURLOPT_CLOSESOCKETDATA, slot);
    if (ca_file != NULL) {
        bad |= set(easy, CURLOPT_CAINFO, ca_file);
    }
    /* From 7.87: a deadline does not wait for a name that is being looked up. */
    (void)set(easy, CURLOPT_QUICK_EXIT, 1L);
    return bad == 0;
}

int idem__aws_slot_create(const struct idem__curl *curl,
                          const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__aws_clock *clock,
                          struct idem__aws_news *news,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error)
{
    struct idem__aws_slot *slot = idem__zalloc(sizeof(*slot));

    if (slot == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    slot->curl = curl;
    slot->sockets = sockets;
    slot->clock = clock;
    slot->news = news;
    slot->host = &options->host;
    slot->fd = -1;
    slot->curl_due_ms = IDEM_NEVER;
    slot->idle_ms = options->idle_ms == 0 ? 20000 : options->idle_ms;
    slot->http.on_line = idem__aws_on_line;
    slot->http.on_body = idem__aws_on_body;
    slot->http.ctx = slot;
    slot->multi = curl->multi_init();
    slot->easy = slot->multi == NULL ? NULL : curl->easy_init();
    if (slot->easy == NULL || !set_up_multi(slot) ||
        !set_up_easy(slot, options)) {
        idem__aws_slot_destroy(slot);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    *ret_slot = slot;
    return 0;
}

/* libcurl closes a connection that was made for a handle alone when the handle is
 * taken out. */
static void close_line(struct idem__aws_slot *slot)
{
    if (slot->line == IDEM__AWS_LINE_CLOSED) {
        return;
    }
    (void)slot->curl->multi_remove_handle(slot->multi, slot->easy);
    slot->news->opening -= slot->line == IDEM__AWS_LINE_OPENING;
    slot->line = IDEM__AWS_LINE_CLOSED;
    slot->fd = -1;
    slot->curl_due_ms = IDEM_NEVER;
}

void idem__aws_slot_destroy(struct idem__aws_slot *slot)
{
    if (slot == NULL) {
        return;
    }
    close_line(slot);
    if (slot->easy != NULL) {
        slot->curl->easy_cleanup(slot->easy);
    }
    if (slot->multi != NULL) {
        (void)slot->curl->multi_cleanup(slot->multi);
    }
    idem__http_free(&slot->http);
    idem__aws_post_free(&slot->post);
    explicit_bzero(slot, sizeof(*slot));
    idem__free(slot);
}

/* ---- A request, loaded ------------------------------------------------- */

/* Points the handle at another endpoint. */
static int set_endpoint(struct idem__aws_slot *slot,
                        const struct idem__aws_endpoint *endpoint)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = slot->curl->easy_setopt;
    int bad = 0;

    if (strcmp(slot->url, endpoint->url) == 0) {
        return 0;
    }
    close_line(slot);
    slot->url[0] = '\0';
    bad |= set(slot->easy, CURLOPT_URL, endpoint->url);
    /* NULL: as the usual variables say; "": none. */
    bad |= set(slot->easy, CURLOPT_PROXY, endpoint->local ? "" : NULL);
    if (bad != 0) {
        return IDEM_ENOMEM;
    }
    strcpy(slot->url, endpoint->url);
    return 0;
}

static void forget_answer(struct idem__aws_slot *slot)
{
    slot->sent = 0;
    slot->begun = false;
    slot->why[0] = '\0';
    idem__http_start(&slot->http);
    idem__aws_answer_reset(slot);
}

int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, struct idem_error *ret_error)
{
    int rc;

    slot->request = request;
    slot->ended = false;
    slot->code = CURLE_OK;
    request->sends = 0;
    request->status = 0;
    forget_answer(slot);
    rc = idem__aws_post_make(&slot->post, request, signer, credentials, now_ms);
    if (rc == 0) {
        rc = set_endpoint(slot, request->endpoint);
    }
    if (rc != 0) {
        slot->request = NULL;
        return rc == IDEM_EINVALID
                   ? idem__error(ret_error, rc,
                                 "the request's host, target, type or token is "
                                 "too long, or cannot be sent in a header")
                   : idem__error_plain(ret_error, rc);
    }
    return 0;
}

/* ---- On its way -------------------------------------------------------- */

static void end(struct idem__aws_slot *slot, CURLcode code)
{
    struct idem__aws_news *news = slot->news;

    slot->ended = true;
    slot->code = code;
    slot->since_ms = idem__mono_ms();
    slot->next = NULL;
    if (news->first == NULL) {
        news->first = slot;
    } else {
        news->last->next = slot;
    }
    news->last = slot;
}

void idem__aws_slot_end(struct idem__aws_slot *slot, CURLcode code,
                        const char *why)
{
    close_line(slot);
    if (why != NULL) {
        (void)snprintf(slot->why, sizeof(slot->why), "%s", why);
    }
    end(slot, code);
}

static void open_line(struct idem__aws_slot *slot)
{
    int64_t left_ms = slot->request->deadline_ms - idem__mono_ms();

    slot->kept = false;
    left_ms = left_ms < 1 ? 1 : left_ms > 1000000000 ? 1000000000 : left_ms;
    if (slot->curl->easy_setopt(slot->easy, CURLOPT_TIMEOUT_MS,
                                (long)left_ms) != CURLE_OK) {
        idem__aws_slot_end(slot, CURLE_OUT_OF_MEMORY, NULL);
        return;
    }
    if (slot->curl->multi_add_handle(slot->multi, slot->easy) != CURLM_OK) {
        idem__aws_slot_end(slot, CURLE_OUT_OF_MEMORY, NULL);
        return;
    }
    slot->line = IDEM__AWS_LINE_OPENING;
    slot->news->opening++;
}

/* The connection ended, or what came on it is no HTTP. A connection that was kept
 * may have been dead before the request was sent, which nobody can know: where no
 * line of an answer came, the request is sent once more, on a new one. */
static void broke(struct idem__aws_slot *slot, CURLcode code, const char *why)
{
    struct idem__aws_request *request = slot->request;

    if (!slot->kept || slot->http.begun || request->once ||
        request->deadline_ms <= idem__mono_ms()) {
        idem__aws_slot_end(slot, code, why);
        return;
    }
    close_line(slot);
    forget_answer(slot);
    open_line(slot);
}

static void want(struct idem__aws_slot *slot, uint32_t events)
{
    (void)idem__sockets_want(slot->sockets, slot->fd, events, false);
}

static struct idem_slice unsent(const struct idem__aws_slot *slot)
{
    return idem__aws_post_rest(&slot->post, slot->request->body, slot->sent);
}

/* Sends what is left, as far as that goes without waiting. */
static void send_out(struct idem__aws_slot *slot)
{
    struct idem_slice rest = unsent(slot);
    CURLcode code = CURLE_OK;

    slot->request->sends += !slot->begun;
    slot->begun = true;
    while (code == CURLE_OK && rest.len > 0) {
        size_t n = 0;

        code = slot->curl->easy_send(slot->easy, rest.base, rest.len, &n);
        slot->sent += n;
        rest = unsent(slot);
    }
    if (code == CURLE_AGAIN) {
        want(slot, EPOLLIN | EPOLLOUT);
    } else if (code != CURLE_OK) {
        broke(slot, code, "the connection broke before an answer came");
    } else {
        want(slot, EPOLLIN);
    }
}

/* The answer is whole. The bytes after it, or the request itself, make the
 * connection useless. */
static void answered(struct idem__aws_slot *slot, bool clean)
{
    if (!clean || !slot->http.keeps || unsent(slot).len > 0) {
        close_line(slot);
    }
    end(slot, CURLE_OK);
}

static void lost(struct idem__aws_slot *slot, CURLcode code)
{
    bool begun = slot->http.begun;

    if (code == CURLE_OK && idem__http_end(&slot->http) == IDEM__HTTP_DONE) {
        answered(slot, /* clean= */ false);
        return;
    }
    broke(slot, code == CURLE_OK ? CURLE_GOT_NOTHING : code,
          begun ? "the connection broke before the answer was whole"
                : "the connection broke before an answer came");
}

static void receive(struct idem__aws_slot *slot)
{
    char bytes[RECEIVE];

    while (!slot->ended && slot->line == IDEM__AWS_LINE_OPEN) {
        size_t len = 0;
        size_t used;
        CURLcode code =
            slot->curl->easy_recv(slot->easy, bytes, sizeof(bytes), &len);

        if (code == CURLE_AGAIN) {
            return;
        }
        if (code != CURLE_OK || len == 0) {
            lost(slot, code);
            return;
        }
        switch (idem__http_feed(&slot->http, idem_bytes(bytes, len), &used)) {
        case IDEM__HTTP_DONE:
            answered(slot, /* clean= */ used == len);
            break;
        case IDEM__HTTP_BAD:
            idem__aws_slot_end(slot, CURLE_WEIRD_SERVER_REPLY, slot->http.flaw);
            break;
        default:
            break;
        }
    }
}

/* True if nothing has come on a kept connection, not even its end. */
static bool is_quiet(struct idem__aws_slot *slot)
{
    char byte;
    size_t n;

    return slot->curl->easy_recv(slot->easy, &byte, 1, &n) == CURLE_AGAIN;
}

void idem__aws_slot_start(struct idem__aws_slot *slot)
{
    if (slot->line == IDEM__AWS_LINE_OPEN &&
        (idem__mono_ms() - slot->since_ms > slot->idle_ms || !is_quiet(slot))) {
        close_line(slot);
    }
    if (slot->line == IDEM__AWS_LINE_OPEN) {
        slot->kept = true;
        send_out(slot);
    } else {
        open_line(slot);
    }
}

/* libcurl is done with connecting. */
static void connected(struct idem__aws_slot *slot, CURLcode code)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (code == CURLE_OK) {
        (void)slot->curl->easy_getinfo(slot->easy, CURLINFO_ACTIVESOCKET, &fd);
        code = fd == CURL_SOCKET_BAD ? CURLE_COULDNT_CONNECT : CURLE_OK;
    }
    if (code != CURLE_OK) {
        idem__aws_slot_end(slot, code, NULL);
        return;
    }
    slot->line = IDEM__AWS_LINE_OPEN;
    slot->news->opening--;
    slot->fd = fd;
    slot->curl_due_ms = IDEM_NEVER;
    slot->opened++;
    idem__sockets_own(slot->sockets, fd, slot);
    (void)idem__sockets_want(slot->sockets, fd, EPOLLIN, /* is_new= */ true);
    send_out(slot);
}

void idem__aws_slot_curl(struct idem__aws_slot *slot, int fd, int what)
{
    CURLMsg *message;
    int left;

    if (fd == CURL_SOCKET_TIMEOUT) {
        slot->curl_due_ms = IDEM_NEVER;
    }
    (void)slot->curl->multi_socket_action(slot->multi, fd, what, &left);
    message = slot->curl->multi_info_read(slot->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE) {
        connected(slot, message->data.result);
    }
}

void idem__aws_slot_ready(struct idem__aws_slot *slot)
{
    if (slot->ended) {
        if (!is_quiet(slot)) {
            close_line(slot);
        }
        return;
    }
    if (unsent(slot).len > 0) {
        send_out(slot);
    }
    receive(slot);
}

/* ---- Its end ----------------------------------------------------------- */

static const char *reason(const struct idem__aws_slot *slot)
{
    if (slot->arrival.no_memory || slot->http.no_memory) {
        return "memory ran out for the answer";
    }
    if (slot->arrival.too_long) {
        return "the answer is longer than it may be";
    }
    return slot->why[0] != '\0' ? slot->why
                                : slot->curl->easy_strerror(slot->code);
}

static void say_timed_out(struct idem__aws_request *request)
{
    int64_t ms = idem__mono_ms() - request->submitted_ms;
    bool sent = request->sends > 0;

    request->outcome = sent ? IDEM__AWS_NO_ANSWER : IDEM__AWS_NOT_SENT;
    (void)idem__error(&request->error, sent ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE,
                      "timed out after %lld.%lld s %s %s (%.100s)",
                      (long long)ms / 1000, (long long)ms % 1000 / 100,
                      sent ? "waiting for" : "connecting to",
                      idem__aws_service_title(request->endpoint),
                      request->endpoint->url);
}

void idem__aws_slot_classify(struct idem__aws_slot *slot)
{
    struct idem__aws_request *request = slot->request;
    bool no_memory = slot->arrival.no_memory || slot->http.no_memory;
    const char *host = request->endpoint->host;
    const char *flaw;

    request->status = slot->http.status;
    /* One that is given up has no deadline any more. */
    request->timed_out =
        slot->code == CURLE_OPERATION_TIMEDOUT && request->deadline_ms != 0;
    request->error.code = 0;
    request->error.text[0] = '\0';
    flaw = slot->code == CURLE_OK ? idem__aws_answer_flaw(slot) : reason(slot);
    if (flaw == NULL) {
        request->outcome = IDEM__AWS_ANSWERED;
    } else if (request->timed_out) {
        say_timed_out(request);
    } else if (request->sends > 0) {
        request->outcome = IDEM__AWS_NO_ANSWER;
        (void)idem__error(&request->error,
                          no_memory ? IDEM_ENOMEM : IDEM_EUNKNOWN,
                          "%.80s did not answer in full: %s", host, flaw);
    } else {
        request->outcome = IDEM__AWS_NOT_SENT;
        (void)idem__error(&request->error,
                          slot->code == CURLE_SSL_CACERT_BADFILE ? IDEM_ECONFIG
                          : slot->code == CURLE_OUT_OF_MEMORY
                              ? IDEM_ENOMEM
                              : IDEM_EUNAVAILABLE,
                          "%.80s cannot be reached: %s", host, flaw);
    }
}
