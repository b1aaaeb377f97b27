/* AWS Signature Version 4. */
#include "aws/client/sigv4.h"

#include <assert.h>

static const char algorithm[] = "AWS4-HMAC-SHA256";
static const char ending[] = "aws4_request";

/* Text under construction. len goes on counting past cap, so that one check at the end
 * finds out whether all of it fitted. */
struct text {
    char *base;
    size_t cap;
    size_t len;
};

static void put(struct text *text, struct idem_slice part)
{
    bool fits = text->len <= text->cap && part.len <= text->cap - text->len;

    if (fits && part.len > 0) {
        memcpy(text->base + text->len, part.base, part.len);
    }
    text->len += part.len;
}

static void put_str(struct text *text, const char *str)
{
    put(text, idem_str(str));
}

static void hex(const uint8_t *bytes, char ret[2 * IDEM__SHA256_LEN])
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < IDEM__SHA256_LEN; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
}

static struct idem_slice hex_slice(const char digits[2 * IDEM__SHA256_LEN])
{
    return idem_bytes(digits, (size_t)2 * IDEM__SHA256_LEN);
}

/* ---- The key ----------------------------------------------------------- */

static bool holds(const struct idem__sigv4 *signer,
                  const struct idem__aws_credentials *credentials,
                  const char *region, const char *service, const char *date)
{
    return signer->cached &&
           memcmp(signer->date, date, sizeof(signer->date)) == 0 &&
           strcmp(signer->region, region) == 0 &&
           strcmp(signer->service, service) == 0 &&
           strcmp(signer->secret, credentials->secret_key) == 0;
}

/* Makes one link of the chain: @digest becomes HMAC(@digest, @part). */
static int link(uint8_t digest[IDEM__SHA256_LEN], struct idem_slice part)
{
    struct idem__hmac_key key;
    int rc = idem__hmac_key_init(&key, idem_bytes(digest, IDEM__SHA256_LEN));

    if (rc == 0) {
        rc = idem__hmac(&key, part, digest);
    }
    idem__hmac_key_finish(&key);
    return rc;
}

static int derive(struct idem__sigv4 *signer,
                  const struct idem__aws_credentials *credentials,
                  const char *region, const char *service, const char *date)
{
    uint8_t digest[IDEM__SHA256_LEN];
    char secret[4 + IDEM__AWS_KEY_MAX] = "AWS4";
    const char *const links[] = {region, service, ending};
    size_t len = strlen(credentials->secret_key);
    struct idem__hmac_key first;
    size_t i;
    int rc;

    memcpy(secret + 4, credentials->secret_key, len);
    rc = idem__hmac_key_init(&first, idem_bytes(secret, 4 + len));
    if (rc != 0) {
        goto done;
    }
    rc = idem__hmac(&first, idem_bytes(date, sizeof(signer->date)), digest);
    for (i = 0; rc == 0 && i < 3; i++) {
        rc = link(digest, idem_str(links[i]));
    }
    if (rc != 0) {
        goto done;
    }
    rc = idem__hmac_key_init(&signer->key, idem_bytes(digest, sizeof(digest)));
done:
    idem__hmac_key_finish(&first);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(digest, sizeof(digest));
    return rc;
}

static int prepare(struct idem__sigv4 *signer,
                   const struct idem__aws_credentials *credentials,
                   const char *region, const char *service, const char *date)
{
    int rc;

    if (holds(signer, credentials, region, service, date)) {
        return 0;
    }
    if (strlen(region) >= sizeof(signer->region) ||
        strlen(service) >= sizeof(signer->service)) {
        return IDEM_EINVALID;
    }
    signer->cached = false;
    rc = derive(signer, credentials, region, service, date);
    if (rc != 0) {
        return rc;
    }
    memcpy(signer->date, date, sizeof(signer->date));
    strcpy(signer->region, region);
    strcpy(signer->service, service);
    strcpy(signer->secret, credentials->secret_key);
    signer->cached = true;
    signer->derived++;
    return 0;
}

/* ---- The text ---------------------------------------------------------- */

/* Computes the digest of the canonical request, and hashes its parts as it goes. */
static int hash_canonical(const struct idem__sigv4_request *request,
                          struct idem_slice names,
                          uint8_t ret_digest[IDEM__SHA256_LEN])
{
    uint8_t body[IDEM__SHA256_LEN];
    char body_hex[2 * IDEM__SHA256_LEN];
    struct idem__hash hash;
    struct idem_slice line = idem_str("\n");
    size_t i;
    int rc = idem__sha256(&request->body, 1, body);

    if (rc != 0) {
        return rc;
    }
    hex(body, body_hex);
    idem__hash_init(&hash, idem_bytes(NULL, 0));
    idem__hash_add(&hash, request->method);
    idem__hash_add(&hash, line);
    idem__hash_add(&hash, request->path);
    idem__hash_add(&hash, line);
    idem__hash_add(&hash, request->query);
    idem__hash_add(&hash, line);
    for (i = 0; i < request->headers_len; i++) {
        idem__hash_add(&hash, request->headers[i].name);
        idem__hash_add(&hash, idem_str(":"));
        idem__hash_add(&hash, request->headers[i].value);
        idem__hash_add(&hash, line);
    }
    idem__hash_add(&hash, line);
    idem__hash_add(&hash, names);
    idem__hash_add(&hash, line);
    idem__hash_add(&hash, hex_slice(body_hex));
    return idem__hash_end(&hash, ret_digest);
}

static int make_signature(const struct idem__sigv4 *signer, const char *stamp,
                          struct idem_slice scope,
                          const uint8_t canonical[IDEM__SHA256_LEN],
                          char ret_signature[2 * IDEM__SHA256_LEN])
{
    char buf[512];
    char canonical_hex[2 * IDEM__SHA256_LEN];
    uint8_t digest[IDEM__SHA256_LEN];
    struct text text = {buf, sizeof(buf), 0};
    int rc;

    hex(canonical, canonical_hex);
    put_str(&text, algorithm);
    put_str(&text, "\n");
    put(&text, idem_bytes(stamp, IDEM__AWS_STAMP_LEN));
    put_str(&text, "\n");
    put(&text, scope);
    put_str(&text, "\n");
    put(&text, hex_slice(canonical_hex));
    assert(text.len <= text.cap);
    rc = idem__hmac(&signer->key, idem_bytes(buf, text.len), digest);
    if (rc == 0) {
        hex(digest, ret_signature);
    }
    return rc;
}

/* Returns @text from @start to its end, or an empty slice if not all of it fitted. */
static struct idem_slice since(const struct text *text, size_t start)
{
    return text->len > text->cap
               ? idem_bytes(NULL, 0)
               : idem_bytes(text->base + start, text->len - start);
}

int idem__sigv4_sign(struct idem__sigv4 *signer,
                     const struct idem__aws_credentials *credentials,
                     const char *region, const char *service,
                     const char stamp[IDEM__AWS_STAMP_LEN + 1],
                     const struct idem__sigv4_request *request, char *buf,
                     size_t cap, size_t *ret_len)
{
    struct text text = {buf, cap, 0};
    struct idem_slice scope, names;
    uint8_t canonical[IDEM__SHA256_LEN];
    char signature[2 * IDEM__SHA256_LEN];
    size_t start, i;
    int rc = prepare(signer, credentials, region, service, stamp);

    if (rc != 0) {
        return rc;
    }
    put_str(&text, algorithm);
    put_str(&text, " Credential=");
    put_str(&text, credentials->access_key);
    put_str(&text, "/");
    start = text.len;
    put(&text, idem_bytes(stamp, sizeof(signer->date)));
    put_str(&text, "/");
    put_str(&text, region);
    put_str(&text, "/");
    put_str(&text, service);
    put_str(&text, "/");
    put_str(&text, ending);
    scope = since(&text, start);
    put_str(&text, ", SignedHeaders=");
    start = text.len;
    for (i = 0; i < request->headers_len; i++) {
        put_str(&text, i == 0 ? "" : ";");
        put(&text, request->headers[i].name);
    }
    names = since(&text, start);
    put_str(&text, ", Signature=");
    if (text.len + sizeof(signature) >= cap) {
        return IDEM_EINVALID;
    }
    rc = hash_canonical(request, names, canonical);
    if (rc == 0) {
        rc = make_signature(signer, stamp, scope, canonical, signature);
    }
    if (rc != 0) {
        return rc;
    }
    put(&text, hex_slice(signature));
    buf[text.len] = '\0';
    *ret_len = text.len;
    return 0;
}

void idem__sigv4_finish(struct idem__sigv4 *signer)
{
    explicit_bzero(signer, sizeof(*signer));
}
