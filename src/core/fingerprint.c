/* The fingerprint of a request. */
#include "core/fingerprint.h"

#define PARTS_MAX 65535

enum fingerprint_version {
    FINGERPRINT_PLAIN = 1,
    FINGERPRINT_KEYED = 2,
};

int idem__fingerprint_start(struct idem__hash *hash, struct idem_slice secret,
                            size_t count, const struct idem_slice *parts,
                            size_t parts_len)
{
    size_t i;

    if (count > PARTS_MAX || parts_len > count ||
        secret.len > IDEM_SECRET_MAX) {
        return IDEM_EINVALID;
    }
    idem__hash_init(hash, secret);
    idem__hash_add_u64(hash, count);
    for (i = 0; i < parts_len; i++) {
        idem__hash_add_u64(hash, parts[i].len);
        idem__hash_add(hash, parts[i]);
    }
    return 0;
}

int idem__fingerprint_end(struct idem__hash *hash,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__hash_end(hash, digest);

    if (rc != 0) {
        return rc;
    }
    ret_fingerprint[0] = hash->keyed ? FINGERPRINT_KEYED : FINGERPRINT_PLAIN;
    memcpy(ret_fingerprint + 1, digest, sizeof(digest));
    return 0;
}

int idem_fingerprint(const struct idem_slice *parts, size_t parts_len,
                     struct idem_slice secret,
                     uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem__hash hash;
    int rc =
        idem__fingerprint_start(&hash, secret, parts_len, parts, parts_len);

    return rc != 0 ? rc : idem__fingerprint_end(&hash, ret_fingerprint);
}
