/* Makes the signed header lines of a request to AWS, as libcurl takes them. */
#include "aws/client/client.h"

#include "base/heap.h"

#include <string.h>

enum {
    SIGNED_MAX = 5,
    NAME_MAX_LEN = 128, /* Of a target or a content type. */
};

/* True if @text may be the value of a header: no byte of it ends the line. */
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

/* A header that is sent and signed, in the order in which headers are signed. */
struct header {
    const char *title;
    struct idem__sigv4_header header;
};

struct headers {
    struct header all[SIGNED_MAX];
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
    struct idem__sigv4_header signed_ones[SIGNED_MAX];
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

static void link_line(struct idem__aws_post *post, size_t at, char *line)
{
    post->lines[at].data = line;
    post->lines[at].next = NULL;
    if (at > 0) {
        post->lines[at - 1].next = &post->lines[at];
    }
}

/* Writes "@title: @value" at @at and links it. Returns the place of the next line. */
static char *write_line(struct idem__aws_post *post, size_t i, char *at,
                        const char *title, struct idem_slice value)
{
    size_t title_len = strlen(title);

    link_line(post, i, at);
    memcpy(at, title, title_len);
    memcpy(at + title_len, ": ", 2);
    memcpy(at + title_len + 2, value.base, value.len);
    at += title_len + 2 + value.len;
    *at = '\0';
    return at + 1;
}

/* Writes all lines. libcurl adds Content-Length and User-Agent. */
static int write_all(struct idem__aws_post *post, const struct headers *headers,
                     struct idem_slice authorization)
{
    /* libcurl would add these two by itself, but not after a line without a value. */
    static char no_accept[] = "Accept:";
    static char no_expect[] = "Expect:";
    size_t room = 32 + authorization.len;
    char *at;
    size_t i;

    for (i = 0; i < headers->len; i++) {
        room += 32 + headers->all[i].header.value.len;
    }
    if (!reserve(post, room)) {
        return IDEM_ENOMEM;
    }
    at = post->base;
    for (i = 0; i < headers->len; i++) {
        at = write_line(post, i, at, headers->all[i].title,
                        headers->all[i].header.value);
    }
    (void)write_line(post, i, at, "Authorization", authorization);
    link_line(post, i + 1, no_accept);
    link_line(post, i + 2, no_expect);
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
    if (rc != 0) {
        return rc;
    }
    rc = sign(request, signer, credentials, stamp, &headers, authorization,
              &len);
    if (rc != 0) {
        return rc;
    }
    return write_all(post, &headers, idem_bytes(authorization, len));
}

/* Wipes the lines: they contain the session token. */
void idem__aws_post_free(struct idem__aws_post *post)
{
    if (post->base != NULL) {
        explicit_bzero(post->base, post->cap);
        idem__free(post->base);
    }
    memset(post, 0, sizeof(*post));
}
