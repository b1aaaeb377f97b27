/* Making a request: its header lines, its signature, the options of libcurl. */
#include "aws/slot.h"

#include "base/heap.h"
#include "core/error.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- libcurl's callbacks ----------------------------------------------- */

/* libcurl's own sockets would be inherited by children of this process. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose,
                             struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                    address->protocol);

    (void)purpose;
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

/* Called each time the request is about to be written to a connection. */
static int on_send(void *ctx, char *remote, char *local, int remote_port,
                   int local_port)
{
    struct idem__aws_slot *slot = ctx;
    struct idem__aws_request *request = slot->request;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (request->once && request->sends > 0) {
        return CURL_PREREQFUNC_ABORT;
    }
    request->sends++;
    return CURL_PREREQFUNC_OK;
}

/* ---- Life -------------------------------------------------------------- */

/* Options that stay for the life of the handle. */
static CURLcode set_up(struct idem__aws_slot *slot,
                       const struct idem__aws_options *options)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = slot->curl->easy_setopt;
    CURL *easy = slot->easy;
    long connect_ms =
        options->connect_ms == 0 ? 3000 : (long)options->connect_ms;
    long idle_ms = options->idle_ms == 0 ? 20000 : (long)options->idle_ms;
    int bad = 0;

    bad |= set(easy, CURLOPT_POST, 1L);
    bad |= set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= set(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= set(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    bad |= set(easy, CURLOPT_MAXAGE_CONN, (idle_ms + 999) / 1000);
    bad |= set(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= set(easy, CURLOPT_USERAGENT, "idem/" IDEM_VERSION);
    bad |= set(easy, CURLOPT_HTTPHEADER, slot->lines);
    bad |= set(easy, CURLOPT_ERRORBUFFER, slot->why);
    bad |= set(easy, CURLOPT_PRIVATE, slot);
    bad |= set(easy, CURLOPT_HEADERFUNCTION, idem__aws_on_header);
    bad |= set(easy, CURLOPT_HEADERDATA, slot);
    bad |= set(easy, CURLOPT_WRITEFUNCTION, idem__aws_on_body);
    bad |= set(easy, CURLOPT_WRITEDATA, slot);
    bad |= set(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    bad |= set(easy, CURLOPT_OPENSOCKETDATA, slot->sockets);
    bad |= set(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    bad |= set(easy, CURLOPT_CLOSESOCKETDATA, slot->sockets);
    bad |= set(easy, CURLOPT_PREREQFUNCTION, on_send);
    bad |= set(easy, CURLOPT_PREREQDATA, slot);
    if (options->ca_file != NULL) {
        bad |= set(easy, CURLOPT_CAINFO, options->ca_file);
    }
    /* From 7.87: a deadline does not wait for a name that is being looked up. */
    (void)set(easy, CURLOPT_QUICK_EXIT, 1L);
    return bad == 0 ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

int idem__aws_slot_create(const struct idem__curl *curl,
                          const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__aws_clock *clock,
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
    slot->host = &options->host;
    slot->easy = curl->easy_init();
    if (slot->easy == NULL || set_up(slot, options) != CURLE_OK) {
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
        slot->curl->easy_cleanup(slot->easy);
    }
    if (slot->token_line != NULL) {
        explicit_bzero(slot->token_line, slot->token_cap);
        idem__free(slot->token_line);
    }
    explicit_bzero(slot, sizeof(*slot));
    idem__free(slot);
}

/* ---- Header lines ------------------------------------------------------ */

struct lines {
    struct idem__aws_slot *slot;
    size_t len;
    struct idem__sigv4_header signed_ones[5];
    size_t signed_len;
};

static void add_line(struct lines *lines, char *line)
{
    struct curl_slist *all = lines->slot->lines;

    assert(lines->len < sizeof(lines->slot->lines) / sizeof(all[0]));
    all[lines->len].data = line;
    all[lines->len].next = NULL;
    if (lines->len > 0) {
        all[lines->len - 1].next = &all[lines->len];
    }
    lines->len++;
}

/* Writes "@title: @value" to @line and has it sent and signed as @name. False: it
 * does not fit. */
static bool add_signed(struct lines *lines, char *line, size_t cap,
                       const char *title, const char *name, const char *value)
{
    struct idem__sigv4_header *header = &lines->signed_ones[lines->signed_len];
    size_t title_len = strlen(title);
    size_t value_len = strlen(value);

    if (title_len + 2 + value_len >= cap) {
        return false;
    }
    memcpy(line, title, title_len);
    memcpy(line + title_len, ": ", 2);
    memcpy(line + title_len + 2, value, value_len + 1);
    header->name = idem_str(name);
    header->value = idem_bytes(line + title_len + 2, value_len);
    lines->signed_len++;
    add_line(lines, line);
    return true;
}

static bool reserve_token(struct idem__aws_slot *slot, const char *token)
{
    size_t cap = sizeof("X-Amz-Security-Token: ") + strlen(token);
    char *line;

    if (cap <= slot->token_cap) {
        return true;
    }
    line = idem__alloc(cap);
    if (line == NULL) {
        return false;
    }
    if (slot->token_line != NULL) {
        explicit_bzero(slot->token_line, slot->token_cap);
        idem__free(slot->token_line);
    }
    slot->token_line = line;
    slot->token_cap = cap;
    return true;
}

/* The lines that are signed, in the order in which they are signed. */
static int add_signed_lines(struct lines *lines,
                            const struct idem__aws_request *request,
                            const char *token, const char *stamp)
{
    struct idem__aws_slot *slot = lines->slot;
    const char *type = request->content_type != NULL
                           ? request->content_type
                           : "application/x-amz-json-1.0";
    bool fits = add_signed(lines, slot->type_line, sizeof(slot->type_line),
                           "Content-Type", "content-type", type) &&
                add_signed(lines, slot->host_line, sizeof(slot->host_line),
                           "Host", "host", request->endpoint->host) &&
                add_signed(lines, slot->stamp_line, sizeof(slot->stamp_line),
                           "X-Amz-Date", "x-amz-date", stamp);

    if (fits && token[0] != '\0') {
        if (!reserve_token(slot, token)) {
            return IDEM_ENOMEM;
        }
        fits =
            add_signed(lines, slot->token_line, slot->token_cap,
                       "X-Amz-Security-Token", "x-amz-security-token", token);
    }
    if (fits && request->target != NULL) {
        fits = add_signed(lines, slot->target_line, sizeof(slot->target_line),
                          "X-Amz-Target", "x-amz-target", request->target);
    }
    return fits ? 0 : IDEM_EINVALID;
}

static int make_lines(struct idem__aws_slot *slot,
                      const struct idem__aws_request *request,
                      struct idem__sigv4 *signer,
                      const struct idem__aws_credentials *credentials,
                      int64_t now_ms)
{
    static const char title[] = "Authorization: ";
    static char no_accept[] = "Accept:";
    static char no_expect[] = "Expect:";
    struct lines lines = {.slot = slot};
    struct idem__sigv4_request parts = {
        .method = idem_str("POST"),
        .path = idem_str(request->endpoint->path),
        .body = request->body,
    };
    char stamp[IDEM__AWS_STAMP_LEN + 1];
    size_t len;
    int rc;

    idem__aws_stamp(now_ms, stamp);
    rc = add_signed_lines(&lines, request, credentials->token, stamp);
    if (rc != 0) {
        return rc;
    }
    parts.headers = lines.signed_ones;
    parts.headers_len = lines.signed_len;
    memcpy(slot->authorization_line, title, sizeof(title));
    rc = idem__sigv4_sign(signer, credentials, request->endpoint->region,
                          request->endpoint->service, stamp, &parts,
                          slot->authorization_line + sizeof(title) - 1,
                          sizeof(slot->authorization_line) - sizeof(title) + 1,
                          &len);
    if (rc != 0) {
        return rc;
    }
    add_line(&lines, slot->authorization_line);
    /* These two libcurl would add by itself; neither is signed. */
    add_line(&lines, no_accept);
    add_line(&lines, no_expect);
    return 0;
}

/* ---- One request ------------------------------------------------------- */

/* Points the handle at another endpoint. */
static int set_endpoint(struct idem__aws_slot *slot,
                        const struct idem__aws_endpoint *endpoint)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = slot->curl->easy_setopt;
    int bad = 0;

    if (strcmp(slot->url, endpoint->url) == 0) {
        return 0;
    }
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

int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, int64_t timeout_ms,
                        struct idem_error *ret_error)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = slot->curl->easy_setopt;
    const void *body = request->body.len == 0 ? "" : request->body.base;
    /* Where the deadline has passed since it was looked at: 0 would be no limit at
     * all, and less than that is refused. */
    int64_t at_least_ms = timeout_ms > 0 ? timeout_ms : 1;
    long timeout = at_least_ms > 1000000000 ? 1000000000 : (long)at_least_ms;
    int bad = 0;
    int rc;

    slot->request = request;
    slot->why[0] = '\0';
    request->sends = 0;
    request->status = 0;
    idem__aws_answer_reset(slot);
    rc = make_lines(slot, request, signer, credentials, now_ms);
    if (rc == 0) {
        rc = set_endpoint(slot, request->endpoint);
    }
    bad |= set(slot->easy, CURLOPT_POSTFIELDSIZE_LARGE,
               (curl_off_t)request->body.len);
    bad |= set(slot->easy, CURLOPT_POSTFIELDS, body);
    bad |= set(slot->easy, CURLOPT_TIMEOUT_MS, timeout);
    if (rc == 0 && bad != 0) {
        rc = IDEM_ENOMEM;
    }
    if (rc != 0) {
        slot->request = NULL;
        return rc == IDEM_EINVALID
                   ? idem__error(ret_error, rc,
                                 "the request's host, target or type is too "
                                 "long")
                   : idem__error_plain(ret_error, rc);
    }
    return 0;
}

/* ---- Its end ----------------------------------------------------------- */

static const char *reason(const struct idem__aws_slot *slot, CURLcode code)
{
    if (slot->arrival.no_memory) {
        return "there was no memory for the answer";
    }
    if (slot->arrival.too_long) {
        return "the answer is longer than it may be";
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return "the connection broke before an answer came";
    }
    return slot->why[0] != '\0' ? slot->why : slot->curl->easy_strerror(code);
}

void idem__aws_slot_judge(struct idem__aws_slot *slot, CURLcode code)
{
    struct idem__aws_request *request = slot->request;
    const char *host = request->endpoint->host;
    const char *flaw;
    long status = 0;

    (void)slot->curl->easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
    request->status = (int)status;
    request->error.code = 0;
    request->error.text[0] = '\0';
    flaw = code == CURLE_OK ? idem__aws_answer_flaw(slot) : reason(slot, code);
    if (flaw == NULL) {
        request->outcome = IDEM__AWS_ANSWERED;
    } else if (request->sends > 0) {
        request->outcome = IDEM__AWS_NO_ANSWER;
        (void)idem__error(&request->error,
                          slot->arrival.no_memory ? IDEM_ENOMEM : IDEM_EUNKNOWN,
                          "%.80s gave no whole answer: %s", host, flaw);
    } else {
        request->outcome = IDEM__AWS_NOT_SENT;
        (void)idem__error(&request->error,
                          code == CURLE_SSL_CACERT_BADFILE ? IDEM_ECONFIG
                          : code == CURLE_OUT_OF_MEMORY    ? IDEM_ENOMEM
                                                           : IDEM_EUNAVAILABLE,
                          "%.80s cannot be reached: %s", host, flaw);
    }
}
