/* The fingerprint of a request whose body comes in pieces. */
#include <idem/http.h>

#include "base/heap.h"
#include "base/sha256.h"

/* Of a fingerprint, with the body. */
#define PARTS_MAX 65535

struct idem_http_fingerprint {
    struct idem__hash hash;
    uint64_t left; /* Bytes of the body that are to come. */
    bool too_many;
    bool keyed;
};

int idem_http_fingerprint_create(const struct idem_slice *parts,
                                 size_t parts_len, uint64_t body_len,
                                 struct idem_slice secret,
                                 struct idem_http_fingerprint **ret_print)
{
    struct idem_http_fingerprint *print;
    size_t i;

    if (parts_len >= PARTS_MAX || secret.len > IDEM_SECRET_MAX) {
        return IDEM_EINVALID;
    }
    print = idem__zalloc(sizeof(*print));
    if (print == NULL) {
        return IDEM_ENOMEM;
    }
    print->left = body_len;
    print->keyed = secret.len > 0;
    idem__hash_init(&print->hash, secret);
    idem__hash_add_u64(&print->hash, parts_len + 1);
    for (i = 0; i < parts_len; i++) {
        idem__hash_add_u64(&print->hash, parts[i].len);
        idem__hash_add(&print->hash, parts[i]);
    }
    idem__hash_add_u64(&print->hash, body_len);
    *ret_print = print;
    return 0;
}

void idem_http_fingerprint_add(struct idem_http_fingerprint *print,
                               struct idem_slice piece)
{
    if (piece.len > print->left) {
        print->too_many = true;
        return;
    }
    print->left -= piece.len;
    idem__hash_add(&print->hash, piece);
}

int idem_http_fingerprint_end(struct idem_http_fingerprint *print,
                              uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__hash_end(&print->hash, digest);

    if (rc == 0 && (print->too_many || print->left > 0)) {
        rc = IDEM_EINVALID;
    }
    if (rc == 0) {
        ret_fingerprint[0] = print->keyed ? 2 : 1;
        memcpy(ret_fingerprint + 1, digest, sizeof(digest));
    }
    idem_http_fingerprint_destroy(print);
    return rc;
}

void idem_http_fingerprint_destroy(struct idem_http_fingerprint *print)
{
    idem__free(print);
}
