/* One handle of libcurl and the request that it carries. */
#include "aws/client/client.h"

#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <stdio.h>
#include <unistd.h>

#define CONNECT_MS 3000
#define IDLE_MS 20000

/* ---- libcurl's callbacks ----------------------------------------------- */

static curl_socket_t on_open(void *ctx, curlsocktype purpose,
                             struct curl_sockaddr *address)
{
    curl_socket_t fd = idem__curl_socket(NULL, purpose, address);

    if (fd >= 0) {
        idem__sockets_opened(ctx, fd);
    }
    return fd;
}

static int on_close(void *ctx, curl_socket_t fd)
{
    idem__sockets_closing(ctx, fd);
    return close(fd);
}

/* libcurl calls this before each copy of the request; client.h says which copies go. */
static int on_send(void *ctx, char *remote, char *local, int remote_port,
                   int local_port)
{
    struct idem__aws_slot *slot = ctx;
    struct idem__aws_request *request = slot->request;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (request->sends > 0) {
        /* libcurl counts the second copies of a handle over its whole life, and sends none
         * after the fifth: reset the handle. */
        slot->worn = true;
        if (request->once || request->sends > 1 ||
            request->deadline_ms <= idem__mono_ms()) {
            return CURL_PREREQFUNC_ABORT;
        }
    }
    request->sends++;
    /* This copy has its connection; libcurl reads the option when it looks for one for the
     * second copy. */
    (void)curl_easy_setopt(slot->easy, CURLOPT_FRESH_CONNECT, 1L);
    return CURL_PREREQFUNC_OK;
}

/* ---- Life -------------------------------------------------------------- */

/* Returns the option by which a connection idle for longer than idle_ms is not used again.
 * libcurl counts in whole seconds, and lets one more pass; 0 would mean no limit. */
static long idle_seconds(const struct idem__aws_options *options)
{
    int64_t idle_ms = options->idle_ms == 0 ? IDLE_MS : options->idle_ms;

    return idle_ms < 2000 ? 1 : (long)(idle_ms / 1000 - 1);
}

/* Sets the options that stay for the life of the handle. */
static bool set_up(struct idem__aws_slot *slot)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    const struct idem__aws_options *options = slot->options;
    struct idem__curl_setup setup = {
        .ca_file = options->ca_file,
        .connect_ms =
            options->connect_ms == 0 ? CONNECT_MS : options->connect_ms,
        .why = slot->why,
    };
    CURL *easy = slot->easy;
    int bad = idem__curl_set_up(easy, &setup) ? 0 : 1;

    bad |= set(easy, CURLOPT_POST, 1L);
    /* A proxy must tunnel the request, and not read it. */
    bad |= set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    bad |= set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= set(easy, CURLOPT_MAXAGE_CONN, idle_seconds(options));
    bad |= set(easy, CURLOPT_PRIVATE, slot);
    bad |= set(easy, CURLOPT_HEADERFUNCTION, idem__aws_on_header);
    bad |= set(easy, CURLOPT_HEADERDATA, slot);
    bad |= set(easy, CURLOPT_WRITEFUNCTION, idem__aws_on_body);
    bad |= set(easy, CURLOPT_WRITEDATA, slot);
    bad |= set(easy, CURLOPT_PREREQFUNCTION, on_send);
    bad |= set(easy, CURLOPT_PREREQDATA, slot);
    bad |= set(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    bad |= set(easy, CURLOPT_OPENSOCKETDATA, slot->sockets);
    bad |= set(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    bad |= set(easy, CURLOPT_CLOSESOCKETDATA, slot->sockets);
    return bad == 0;
}

int idem__aws_slot_create(const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__learned_clock *clock,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error)
{
    struct idem__aws_slot *slot = idem__zalloc(sizeof(*slot));

    if (slot == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    slot->options = options;
    slot->sockets = sockets;
    slot->clock = clock;
    slot->easy = curl_easy_init();
    if (slot->easy == NULL || !set_up(slot)) {
        idem__aws_slot_destroy(slot);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    *ret_slot = slot;
    return 0;
}

void idem__aws_slot_destroy(struct idem__aws_slot *slot)
{
    if (slot == NULL) {
        return;
    }
    if (slot->easy != NULL) {
        curl_easy_cleanup(slot->easy);
    }
    idem__aws_post_free(&slot->post);
    explicit_bzero(slot, sizeof(*slot));
    idem__free(slot);
}

/* ---- A request, loaded ------------------------------------------------- */

/* Points the handle at another endpoint. */
static int set_endpoint(struct idem__aws_slot *slot,
                        const struct idem__aws_endpoint *endpoint)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    int bad = 0;

    if (strcmp(slot->url, endpoint->url) == 0) {
        return 0;
    }
    slot->url[0] = '\0';
    bad |= set(slot->easy, CURLOPT_URL, endpoint->url);
    /* NULL: by the usual variables; "": no proxy. */
    bad |= set(slot->easy, CURLOPT_PROXY, endpoint->local ? "" : NULL);
    if (bad != 0) {
        return IDEM_ENOMEM;
    }
    strcpy(slot->url, endpoint->url);
    return 0;
}

/* Resets a handle that had trouble. Its connections belong to the client, and stay. */
static int renew(struct idem__aws_slot *slot)
{
    if (!slot->worn) {
        return 0;
    }
    curl_easy_reset(slot->easy);
    slot->url[0] = '\0';
    slot->worn = !set_up(slot);
    return slot->worn ? IDEM_ENOMEM : 0;
}

static int set_request(struct idem__aws_slot *slot,
                       const struct idem__aws_request *request)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    const void *body = request->body.len == 0 ? "" : request->body.base;
    curl_off_t len = (curl_off_t)request->body.len;
    int bad = 0;

    bad |= set(slot->easy, CURLOPT_HTTPHEADER, slot->post.lines);
    bad |= set(slot->easy, CURLOPT_POSTFIELDSIZE_LARGE, len);
    bad |= set(slot->easy, CURLOPT_POSTFIELDS, body);
    bad |= set(slot->easy, CURLOPT_FRESH_CONNECT, 0L);
    bad |= set(slot->easy, CURLOPT_FORBID_REUSE, 0L);
    return bad == 0 ? 0 : IDEM_ENOMEM;
}

int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, struct idem_error *ret_error)
{
    int rc;

    slot->request = request;
    slot->why[0] = '\0';
    request->sends = 0;
    request->status = 0;
    idem__aws_answer_reset(slot);
    rc = idem__aws_post_make(&slot->post, request, signer, credentials, now_ms);
    if (rc != 0) {
        goto done;
    }
    rc = renew(slot);
    if (rc != 0) {
        goto done;
    }
    rc = set_endpoint(slot, request->endpoint);
    if (rc != 0) {
        goto done;
    }
    rc = set_request(slot, request);
done:
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

/* ---- Its end ----------------------------------------------------------- */

static const char *reason(const struct idem__aws_slot *slot, CURLcode code)
{
    if (slot->arrival.no_memory) {
        return "out of memory for the answer";
    }
    if (slot->arrival.flaw != NULL) {
        return slot->arrival.flaw;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return "the connection broke before an answer came"; /* on_send() */
    }
    return slot->why[0] != '\0' ? slot->why : curl_easy_strerror(code);
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

void idem__aws_slot_classify(struct idem__aws_slot *slot, CURLcode code)
{
    struct idem__aws_request *request = slot->request;
    bool no_memory = slot->arrival.no_memory;
    const char *host = request->endpoint->host;
    const char *flaw;
    long status = 0;

    if (request->sends > 0) {
        (void)curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
    }
    slot->worn = slot->worn || code != CURLE_OK;
    request->status = (int)status;
    /* idem__aws_abort() has cleared the deadline of a request that was given up. */
    request->timed_out =
        code == CURLE_OPERATION_TIMEDOUT && request->deadline_ms != 0;
    request->error.code = 0;
    request->error.text[0] = '\0';
    flaw = code == CURLE_OK ? idem__aws_answer_flaw(slot) : reason(slot, code);
    if (flaw == NULL) {
        request->outcome = IDEM__AWS_ANSWERED;
    } else if (request->timed_out) {
        say_timed_out(request);
    } else if (request->sends > 0) {
        request->outcome = IDEM__AWS_NO_ANSWER;
        (void)idem__error(&request->error,
                          no_memory ? IDEM_ENOMEM : IDEM_EUNKNOWN,
                          "incomplete answer from %.80s: %s", host, flaw);
    } else {
        request->outcome = IDEM__AWS_NOT_SENT;
        (void)idem__error(&request->error,
                          code == CURLE_SSL_CACERT_BADFILE ? IDEM_ECONFIG
                          : code == CURLE_OUT_OF_MEMORY    ? IDEM_ENOMEM
                                                           : IDEM_EUNAVAILABLE,
                          "%.80s cannot be reached: %s", host, flaw);
    }
}
