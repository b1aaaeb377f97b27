/* Computes the hashes that identify a key, a request and a body. */
#include "core/identity.h"

#include "base/bytes.h"
#include "base/hash.h"

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
    /* Without the lengths, scope and key of ("a", "bc") and of ("ab", "c") would hash the
     * same bytes. */
    idem__put_u64(scope_len, scope.len);
    idem__put_u64(key_len, key.len);
    return idem__sha256(parts, 5, ret_id);
}

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
    /* Without a secret, a reader of the store can guess a small request and confirm the
     * guess by its hash. */
    idem__hash_init(hash, secret);
    /* With the count and the lengths, no two lists of parts hash the same bytes. */
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
    /* The first byte differs, so that a fingerprint with a secret never equals one
     * without. */
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

int idem__body_digest(struct idem_slice body, uint8_t ret_digest[16])
{
    uint8_t digest[IDEM__SHA256_LEN] = {0};
    int rc = body.len == 0 ? 0 : idem__sha256(&body, 1, digest);

    if (rc == 0) {
        memcpy(ret_digest, digest, 16);
    }
    return rc;
}
