/* Who a record belongs to, and what it was asked for. */
#include "base/bytes.h"
#include "base/sha256.h"

#define PARTS_MAX 65535

enum fingerprint_version {
    FINGERPRINT_PLAIN = 1,
    FINGERPRINT_KEYED = 2,
};

int idem_id(struct idem_slice scope, struct idem_slice key,
            uint8_t ret_id[IDEM_ID_LEN])
{
    uint8_t scope_len[8];
    uint8_t key_len[8];
    struct idem_slice parts[5] = {
        idem_str("idem1"), {scope_len, 8}, scope, {key_len, 8}, key,
    };

    if (key.len == 0 || key.len > IDEM_KEY_MAX || scope.len > IDEM_SCOPE_MAX) {
        return IDEM_EINVALID;
    }
    idem__put_u64(scope_len, scope.len);
    idem__put_u64(key_len, key.len);
    return idem__sha256(parts, 5, ret_id);
}

int idem_fingerprint(const struct idem_slice *parts, size_t parts_len,
                     struct idem_slice secret,
                     uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem__hash hash;
    uint8_t digest[IDEM__SHA256_LEN];
    size_t i;
    int rc;

    if (parts_len > PARTS_MAX || secret.len > IDEM_SECRET_MAX) {
        return IDEM_EINVALID;
    }
    idem__hash_init(&hash, secret);
    idem__hash_add_u64(&hash, parts_len);
    for (i = 0; i < parts_len; i++) {
        idem__hash_add_u64(&hash, parts[i].len);
        idem__hash_add(&hash, parts[i]);
    }
    rc = idem__hash_end(&hash, digest);
    if (rc != 0) {
        return rc;
    }
    ret_fingerprint[0] = secret.len > 0 ? FINGERPRINT_KEYED : FINGERPRINT_PLAIN;
    memcpy(ret_fingerprint + 1, digest, sizeof(digest));
    return 0;
}
