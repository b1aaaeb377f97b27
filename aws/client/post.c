/* The bytes of a request to AWS: its head, signed, and its body. */
#include "aws/client/post.h"

#include "base/heap.h"

#include <stdio.h>
#include <string.h>

enum {
    SHORT_BODY = 16 * 1024, /* Sent together with the head. */
    NAME_MAX_LEN = 128,     /* Of a target, of a content type. */
};

struct head {
    char *base;
    size_t len;
};

static void put(struct head *head, const char *text, size_t len)
{
    memcpy(head->base + head->len, text, len);
    head->len += len;
}

static void put_str(struct head *head, const char *text)
{
    put(head, text, strlen(text));
}

static void put_header(struct head *head, const char *title,
                       struct idem_slice value)
{
    put_str(head, title);
    put(head, ": ", 2);
    put(head, value.base, value.len);
    put(head, "\r\n", 2);
}

/* The bytes that a header's value may have: nothing in it ends the line. */
static bool is_value(const char *text, size_t len_max)
{
    size_t len = strlen(text);
    size_t i;

    for (i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return false;
        }
    }
    return len <= len_max;
}

/* A header that is sent and signed; in the order in which they are signed. */
struct header {
    const char *title;
    struct idem__sigv4_header header;
};

struct headers {
    struct header all[5];
    size_t len;
};

static void add(struct headers *headers, const char *title, const char *name,
                const char *value)
{
    struct header *header = &headers->all[headers->len++];

    header->title = title;
    header->header.name = idem_str(name);
    header->header.value = idem_str(value);
}

static int collect_headers(const struct idem__aws_request *request,
                           const char *token, const char *stamp,
                           struct headers *headers)
{
    const char *type = request->content_type != NULL
                           ? request->content_type
                           : "application/x-amz-json-1.0";

    if (!is_value(type, NAME_MAX_LEN) ||
        !is_value(request->endpoint->host, IDEM__AWS_HOST_MAX) ||
        !is_value(request->endpoint->path, SIZE_MAX) ||
        !is_value(token, SIZE_MAX) ||
        (request->target != NULL && !is_value(request->target, NAME_MAX_LEN))) {
        return IDEM_EINVALID;
    }
    headers->len = 0;
    add(headers, "Content-Type", "content-type", type);
    add(headers, "Host", "host", request->endpoint->host);
    add(headers, "X-Amz-Date", "x-amz-date", stamp);
    if (token[0] != '\0') {
        add(headers, "X-Amz-Security-Token", "x-amz-security-token", token);
    }
    if (request->target != NULL) {
        add(headers, "X-Amz-Target", "x-amz-target", request->target);
    }
    return 0;
}

static int sign(const struct idem__aws_request *request,
                struct idem__sigv4 *signer,
                const struct idem__aws_credentials *credentials,
                const char *stamp, const struct headers *headers,
                char authorization[IDEM__SIGV4_LEN_MAX], size_t *ret_len)
{
    struct idem__sigv4_header signed_ones[5];
    struct idem__sigv4_request parts = {
        .method = idem_str("POST"),
        .path = idem_str(request->endpoint->path),
        .headers = signed_ones,
        .headers_len = headers->len,
        .body = request->body,
    };
    size_t i;

    for (i = 0; i < headers->len; i++) {
        signed_ones[i] = headers->all[i].header;
    }
    return idem__sigv4_sign(signer, credentials, request->endpoint->region,
                            request->endpoint->service, stamp, &parts,
                            authorization, IDEM__SIGV4_LEN_MAX, ret_len);
}

static bool reserve(struct idem__aws_post *post, size_t len)
{
    if (len <= post->cap) {
        return true;
    }
    idem__aws_post_free(post);
    post->base = idem__alloc(len);
    if (post->base == NULL) {
        return false;
    }
    post->cap = len;
    return true;
}

/* The head, followed by a short body. */
static int write_all(struct idem__aws_post *post,
                     const struct idem__aws_request *request,
                     const struct headers *headers,
                     struct idem_slice authorization)
{
    static const char agent[] = "idem/" IDEM_VERSION;
    const char *path = request->endpoint->path;
    bool is_short = request->body.len <= SHORT_BODY;
    struct head head = {.len = 0};
    char length[24];
    size_t room = 256 + sizeof(agent) + strlen(path) + authorization.len +
                  (is_short ? request->body.len : 0);
    size_t i;

    for (i = 0; i < headers->len; i++) {
        room += 32 + headers->all[i].header.value.len;
    }
    if (!reserve(post, room)) {
        return IDEM_ENOMEM;
    }
    head.base = post->base;
    put_str(&head, "POST ");
    put_str(&head, path);
    put_str(&head, " HTTP/1.1\r\n");
    for (i = 0; i < headers->len; i++) {
        put_header(&head, headers->all[i].title, headers->all[i].header.value);
    }
    put_header(&head, "Authorization", authorization);
    put_header(&head, "User-Agent", idem_bytes(agent, sizeof(agent) - 1));
    (void)snprintf(length, sizeof(length), "%zu", request->body.len);
    put_header(&head, "Content-Length", idem_str(length));
    put(&head, "\r\n", 2);
    post->head_len = head.len;
    if (is_short && request->body.len > 0) {
        put(&head, request->body.base, request->body.len);
    }
    post->len = head.len;
    return 0;
}

int idem__aws_post_make(struct idem__aws_post *post,
                        const struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms)
{
    char authorization[IDEM__SIGV4_LEN_MAX];
    char stamp[IDEM__AWS_STAMP_LEN + 1];
    struct headers headers;
    size_t len = 0;
    int rc;

    idem__aws_stamp(now_ms, stamp);
    rc = collect_headers(request, credentials->token, stamp, &headers);
    if (rc == 0) {
        rc = sign(request, signer, credentials, stamp, &headers, authorization,
                  &len);
    }
    if (rc == 0) {
        rc = write_all(post, request, &headers, idem_bytes(authorization, len));
    }
    return rc;
}

/* It held a secret. */
void idem__aws_post_free(struct idem__aws_post *post)
{
    if (post->base != NULL) {
        explicit_bzero(post->base, post->cap);
        idem__free(post->base);
    }
    memset(post, 0, sizeof(*post));
}

struct idem_slice idem__aws_post_rest(const struct idem__aws_post *post,
                                      struct idem_slice body, size_t sent)
{
    if (sent < post->len) {
        return idem_bytes(post->base + sent, post->len - sent);
    }
    if (sent == post->head_len + body.len) {
        return idem_bytes(NULL, 0);
    }
    sent -= post->head_len;
    return idem_bytes((const char *)body.base + sent, body.len - sent);
}
