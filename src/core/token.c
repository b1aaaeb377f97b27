/* Encodes the credential of an attempt as a token, which is text, and decodes it. */
#include "core/token.h"

#include "base/base64.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "core/error.h"

#include <assert.h>

#define PREFIX "idem1."
#define PREFIX_LEN (sizeof(PREFIX) - 1)

enum {
    TAIL_LEN = 16 + 8,
    SUM_LEN = 4
};

static int sum_of(const uint8_t *bytes, size_t len, uint8_t ret_sum[SUM_LEN])
{
    struct idem_slice part = {bytes, len};
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(&part, 1, digest);

    if (rc == 0) {
        memcpy(ret_sum, digest, SUM_LEN);
    }
    return rc;
}

static size_t put_short(uint8_t *p, struct idem_slice s)
{
    assert(s.len <= 255);
    p[0] = (uint8_t)s.len;
    if (s.len > 0) {
        memcpy(p + 1, s.base, s.len);
    }
    return 1 + s.len;
}

int idem__token_write(const struct idem__token *token, char buf[IDEM_TOKEN_MAX])
{
    uint8_t bytes[sizeof(token->bytes)];
    size_t len;
    size_t n;
    int rc;

    n = put_short(bytes, token->scope);
    n += put_short(bytes + n, token->key);
    memcpy(bytes + n, token->nonce, 16);
    idem__put_u64(bytes + n + 16, token->fence);
    n += TAIL_LEN;
    rc = sum_of(bytes, n, bytes + n);
    if (rc != 0) {
        return rc;
    }
    n += SUM_LEN;
    len = PREFIX_LEN + idem__base64_len(IDEM__BASE64_URL, n);
    assert(len < IDEM_TOKEN_MAX);
    memcpy(buf, PREFIX, PREFIX_LEN);
    idem__base64_write(IDEM__BASE64_URL, idem_bytes(bytes, n),
                       buf + PREFIX_LEN);
    buf[len] = '\0';
    return 0;
}

static int bad(struct idem_error *error, const char *why)
{
    return idem__error(
        error, IDEM_EINVALID,
        "not an idem token: %s; give the whole line that idem begin printed",
        why);
}

/* Takes a length and that many bytes off the front of @rest. */
static bool take_short(struct idem_slice *rest, struct idem_slice *ret)
{
    const uint8_t *p = rest->base;

    if (rest->len == 0 || rest->len - 1 < p[0]) {
        return false;
    }
    *ret = idem_bytes(p + 1, p[0]);
    *rest = idem_bytes(p + 1 + p[0], rest->len - 1 - p[0]);
    return true;
}

int idem__token_read(const char *text, struct idem__token *ret_token,
                     struct idem_error *ret_error)
{
    struct idem__token *token = ret_token;
    size_t text_len = text == NULL ? 0 : strnlen(text, IDEM_TOKEN_MAX);
    struct idem_slice coded;
    struct idem_slice rest;
    uint8_t sum[SUM_LEN];
    size_t n;
    int rc;

    if (text_len < PREFIX_LEN || memcmp(text, PREFIX, PREFIX_LEN) != 0) {
        return bad(ret_error, "it does not begin with \"" PREFIX "\"");
    }
    coded = idem_bytes(text + PREFIX_LEN, text_len - PREFIX_LEN);
    if (idem__base64_max(coded.len) > sizeof(token->bytes) ||
        idem__base64_read(IDEM__BASE64_URL, coded, token->bytes, &n) != 0 ||
        n < 2 + TAIL_LEN + SUM_LEN) {
        return bad(ret_error, "it is truncated or mistyped");
    }
    n -= SUM_LEN;
    rc = sum_of(token->bytes, n, sum);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    rest = idem_bytes(token->bytes, n);
    /* The sum detects typing errors and nothing else: the record shows whether the
     * token is valid for the attempt (is_own() in decide_end.c). */
    if (memcmp(sum, token->bytes + n, SUM_LEN) != 0 ||
        !take_short(&rest, &token->scope) || !take_short(&rest, &token->key) ||
        rest.len != TAIL_LEN || token->key.len == 0) {
        return bad(ret_error, "it is truncated or mistyped");
    }
    memcpy(token->nonce, rest.base, 16);
    token->fence = idem__get_u64((const uint8_t *)rest.base + 16);
    if (token->fence == 0) {
        return bad(ret_error, "its fence is zero");
    }
    return 0;
}
