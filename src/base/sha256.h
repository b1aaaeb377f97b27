/* SHA-256 and HMAC-SHA-256 over lists of slices. */
#ifndef IDEM_BASE_SHA256_H
#define IDEM_BASE_SHA256_H

#include <idem.h>

#define IDEM__SHA256_LEN 32

/* 0, or IDEM_ENOMEM when libcrypto cannot. */
int idem__sha256(const struct idem_slice *parts, size_t parts_len,
                 uint8_t ret_digest[IDEM__SHA256_LEN]);

/* An incremental hash: init, add any number of slices, end. */
struct idem__hash {
    uint64_t state[16]; /* libcrypto's. */
    bool ok;
    bool keyed;
    uint8_t outer_pad[64];
    size_t small_len;
    uint8_t small[256]; /* Of small parts, until there are enough of them. */
};

/* @secret with len 0: plain SHA-256, else HMAC. */
void idem__hash_init(struct idem__hash *hash, struct idem_slice secret);
void idem__hash_add(struct idem__hash *hash, struct idem_slice part);
/* Adds @n in eight bytes, the most significant first. */
void idem__hash_add_u64(struct idem__hash *hash, uint64_t n);
int idem__hash_end(struct idem__hash *hash,
                   uint8_t ret_digest[IDEM__SHA256_LEN]);

/* A secret made ready for many HMACs: the hash of its two key blocks. As secret
 * as the secret itself. */
struct idem__hmac_key {
    uint64_t inner[16]; /* libcrypto's. */
    uint64_t outer[16];
};

/* 0 or IDEM_ENOMEM, as above. */
int idem__hmac_key_init(struct idem__hmac_key *key, struct idem_slice secret);
int idem__hmac(const struct idem__hmac_key *key, struct idem_slice message,
               uint8_t ret_digest[IDEM__SHA256_LEN]);
void idem__hmac_key_finish(struct idem__hmac_key *key);

#endif
