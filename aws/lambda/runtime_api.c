/* A client of the Runtime API. */
#include "aws/lambda/runtime_api.h"

#include "aws/client/curl.h"
#include "base/heap.h"
#include "core/error.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define BASE_MAX 128
#define VALUE_MAX 8192
#define CONNECT_MS 300000 /* libcurl's default. */

/* The headers of a delivery. */
#define HEADER_MAP(X)                                                          \
    X(REQUEST_ID, "lambda-runtime-aws-request-id")                             \
    X(DEADLINE, "lambda-runtime-deadline-ms")                                  \
    X(ARN, "lambda-runtime-invoked-function-arn")                              \
    X(TRACE, "lambda-runtime-trace-id")                                        \
    X(CLIENT, "lambda-runtime-client-context")                                 \
    X(COGNITO, "lambda-runtime-cognito-identity")

enum header {
#define X(name, text) HEADER_##name,
    HEADER_MAP(X)
#undef X
    HEADERS_LEN
};

static const char *const header_names[] = {
#define X(name, text) text,
    HEADER_MAP(X)
#undef X
};

struct idem__lambda_api {
    CURL *easy;
    char base[BASE_MAX];
    char url[BASE_MAX + 256];
    char why[CURL_ERROR_SIZE];
    char values[HEADERS_LEN][VALUE_MAX];
    bool seen[HEADERS_LEN];
    const char *fault;
    struct idem__buffer body;
    unsigned sends;
};

/* ---- The address ------------------------------------------------------- */

static bool is_dotted(const char *text, size_t len)
{
    size_t dots = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        if (text[i] == '.') {
            dots++;
        } else if (!isdigit((unsigned char)text[i])) {
            return false;
        }
    }
    return dots == 3;
}

bool idem__lambda_api_is_local(const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;
    size_t len;

    if (colon == NULL || !idem__digits(idem_str(colon + 1), 65535, &port) ||
        port == 0) {
        return false;
    }
    len = (size_t)(colon - address);
    if ((len == 9 && strncmp(address, "localhost", len) == 0) ||
        (len == 5 && strncmp(address, "[::1]", len) == 0)) {
        return true;
    }
    return len <= 15 && is_dotted(address, len) &&
           (strncmp(address, "127.", 4) == 0 ||
            strncmp(address, "169.254.", 8) == 0);
}

/* ---- libcurl's callbacks ----------------------------------------------- */

/* Keeps libcurl from sending a request a second time: Lambda would take a second "next"
 * for the end of the first delivery. */
static int on_send(void *ctx, char *remote, char *local, int remote_port,
                   int local_port)
{
    struct idem__lambda_api *api = ctx;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    return api->sends++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct idem__lambda_api *api = ctx;

    if (api->body.len + size * count > IDEM__LAMBDA_EVENT_MAX) {
        api->fault = "the event is too long";
        return size * count;
    }
    idem__buffer_add(&api->body, data, size * count);
    return api->body.failed ? 0 : size * count;
}

static bool is_plain(const char *p, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static void take_header(struct idem__lambda_api *api, enum header which,
                        const char *value, size_t len)
{
    while (len > 0 && strchr(" \t", value[0]) != NULL) {
        value++;
        len--;
    }
    while (len > 0 && strchr(" \t\r\n", value[len - 1]) != NULL) {
        len--;
    }
    if (api->seen[which]) {
        api->fault = "duplicate header";
    } else if (len >= VALUE_MAX) {
        api->fault = "a header is too long";
    } else if (!is_plain(value, len)) {
        api->fault = "a header contains control bytes";
    } else {
        memcpy(api->values[which], value, len);
        api->values[which][len] = '\0';
    }
    api->seen[which] = true;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct idem__lambda_api *api = ctx;
    size_t len = size * count;
    const char *colon = memchr(line, ':', len);
    size_t i;

    for (i = 0; colon != NULL && i < HEADERS_LEN; i++) {
        size_t name_len = (size_t)(colon - line);

        if (strlen(header_names[i]) == name_len &&
            strncasecmp(line, header_names[i], name_len) == 0) {
            take_header(api, (enum header)i, colon + 1, len - name_len - 1);
        }
    }
    return len;
}

/* ---- Life -------------------------------------------------------------- */

static int set_up(struct idem__lambda_api *api)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    struct idem__curl_setup setup = {
        .local = true,
        .connect_ms = CONNECT_MS,
        .why = api->why,
    };
    int bad = idem__curl_set_up(api->easy, &setup) ? 0 : 1;

    bad |= set(api->easy, CURLOPT_TIMEOUT_MS, 0L);
    bad |= set(api->easy, CURLOPT_MAXAGE_CONN, 86400L);
    bad |= set(api->easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= set(api->easy, CURLOPT_HEADERDATA, api);
    bad |= set(api->easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= set(api->easy, CURLOPT_WRITEDATA, api);
    bad |= set(api->easy, CURLOPT_PREREQFUNCTION, on_send);
    bad |= set(api->easy, CURLOPT_PREREQDATA, api);
    return bad == 0 ? 0 : IDEM_ENOMEM;
}

int idem__lambda_api_create(const char *address,
                            struct idem__lambda_api **ret_api,
                            struct idem_error *ret_error)
{
    struct idem__lambda_api *api;
    int rc;

    if (address == NULL || !idem__lambda_api_is_local(address)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "AWS_LAMBDA_RUNTIME_API is not HOST:PORT of this "
                           "machine");
    }
    rc = idem__curl_ready(ret_error);
    if (rc != 0) {
        return rc;
    }
    api = idem__zalloc(sizeof(*api));
    if (api == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    api->easy = curl_easy_init();
    (void)snprintf(api->base, sizeof(api->base), "http://%s/2018-06-01/runtime",
                   address);
    if (api->easy == NULL || set_up(api) != 0) {
        idem__lambda_api_destroy(api);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    *ret_api = api;
    return 0;
}

void idem__lambda_api_destroy(struct idem__lambda_api *api)
{
    if (api == NULL) {
        return;
    }
    if (api->easy != NULL) {
        curl_easy_cleanup(api->easy);
    }
    idem__buffer_free(&api->body);
    idem__free(api);
}

/* ---- Requests ---------------------------------------------------------- */

/* Sends the request. Returns the status of the answer; 0: there was none. */
static long perform(struct idem__lambda_api *api)
{
    long status = 0;

    api->sends = 0;
    api->fault = NULL;
    api->why[0] = '\0';
    idem__buffer_reset(&api->body, /* keep= */ 1 << 20);
    if (curl_easy_setopt(api->easy, CURLOPT_URL, api->url) != CURLE_OK ||
        curl_easy_perform(api->easy) != CURLE_OK) {
        return 0;
    }
    (void)curl_easy_getinfo(api->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool is_request_id(const char *id)
{
    size_t i;

    for (i = 0; id[i] != '\0'; i++) {
        if (!isalnum((unsigned char)id[i]) && id[i] != '-' && id[i] != '_') {
            return false;
        }
    }
    return i > 0 && i <= 128;
}

static void fill(struct idem__lambda_api *api,
                 struct idem_lambda_invocation *now)
{
    memset(now, 0, sizeof(*now));
    now->size = sizeof(*now);
    now->request_id = api->values[HEADER_REQUEST_ID];
    now->function_arn = api->values[HEADER_ARN];
    now->trace_id = api->values[HEADER_TRACE];
    now->client_context = api->values[HEADER_CLIENT];
    now->cognito_identity = api->values[HEADER_COGNITO];
    now->event = idem__buffer_slice(&api->body);
}

int idem__lambda_api_next(struct idem__lambda_api *api,
                          struct idem_lambda_invocation *ret_now,
                          const char **ret_fault, struct idem_error *ret_error)
{
    uint64_t deadline_ms = 0;
    long status;

    memset(api->seen, 0, sizeof(api->seen));
    memset(api->values, 0, sizeof(api->values));
    (void)snprintf(api->url, sizeof(api->url), "%s/invocation/next", api->base);
    (void)curl_easy_setopt(api->easy, CURLOPT_HTTPHEADER, NULL);
    (void)curl_easy_setopt(api->easy, CURLOPT_HTTPGET, 1L);
    status = perform(api);
    if (status != 200) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "no next event: HTTP %ld %s", status, api->why);
    }
    if (!is_request_id(api->values[HEADER_REQUEST_ID])) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "an event came without a request id");
    }
    /* A handler may use the event as a C string. */
    idem__buffer_add(&api->body, "", 1);
    if (api->body.failed) {
        return idem__error_plain(ret_error, IDEM_EUNAVAILABLE);
    }
    api->body.len--;
    fill(api, ret_now);
    *ret_fault = api->fault;
    (void)idem__digits(idem_str(api->values[HEADER_DEADLINE]), 999999999999999,
                       &deadline_ms);
    ret_now->deadline_ms = (int64_t)deadline_ms;
    if (deadline_ms == 0 && *ret_fault == NULL) {
        *ret_fault = "the deadline is missing or not a number";
    }
    return 0;
}

static enum idem__lambda_post post(struct idem__lambda_api *api,
                                   const char *error_type,
                                   struct idem_slice body, long *ret_status)
{
    char type[64 + IDEM__LAMBDA_TYPE_MAX];
    char json[] = "Content-Type: application/json";
    char expect[] = "Expect:";
    struct curl_slist lines[3] = {{json, &lines[1]},
                                  {expect, &lines[2]},
                                  {type, NULL}};
    long status;

    (void)snprintf(type, sizeof(type), "Lambda-Runtime-Function-Error-Type: %s",
                   error_type == NULL ? "" : error_type);
    lines[1].next = error_type == NULL ? NULL : &lines[2];
    (void)curl_easy_setopt(api->easy, CURLOPT_HTTPHEADER, lines);
    (void)curl_easy_setopt(api->easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(api->easy, CURLOPT_POSTFIELDS,
                           body.len == 0 ? "" : body.base);
    (void)curl_easy_setopt(api->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)body.len);
    status = perform(api);
    (void)curl_easy_setopt(api->easy, CURLOPT_HTTPHEADER, NULL);
    *ret_status = status;
    if (status >= 200 && status < 300) {
        return IDEM__LAMBDA_ACCEPTED;
    }
    return status == 0     ? IDEM__LAMBDA_NO_ANSWER
           : status >= 500 ? IDEM__LAMBDA_BROKEN
                           : IDEM__LAMBDA_REFUSED;
}

enum idem__lambda_post idem__lambda_api_post(struct idem__lambda_api *api,
                                             const char *request_id,
                                             const char *error_type,
                                             struct idem_slice body,
                                             long *ret_status)
{
    (void)snprintf(api->url, sizeof(api->url), "%s/invocation/%s/%s", api->base,
                   request_id, error_type == NULL ? "response" : "error");
    return post(api, error_type, body, ret_status);
}

enum idem__lambda_post idem__lambda_api_init_error(struct idem__lambda_api *api,
                                                   const char *error_type,
                                                   struct idem_slice body)
{
    long status;

    (void)snprintf(api->url, sizeof(api->url), "%s/init/error", api->base);
    return post(api, error_type, body, &status);
}
