/* hash.h: SHA-256 and HMAC-SHA-256 over lists of slices, MD5, and CRC-32. */
#ifndef IDEM_BASE_HASH_H
#define IDEM_BASE_HASH_H

#include <idem.h>

/* ---- SHA-256 ------------------------------------------------------------- */

#define IDEM__SHA256_LEN 32

/* Hashes the parts one after the other. Returns 0, or IDEM_ENOMEM if libcrypto
 * failed. */
int idem__sha256(const struct idem_slice *parts, size_t parts_len,
                 uint8_t ret_digest[IDEM__SHA256_LEN]);

/* An incremental hash: call init, add any number of times, then end. A failure is
 * reported by end. */
struct idem__hash {
    uint64_t state[16]; /* libcrypto's. */
    bool ok;
    bool keyed;
    uint8_t outer_pad[64];
    size_t small_len;
    uint8_t small[256]; /* Collects small parts. */
};

/* Starts a plain SHA-256 if @secret is empty, else an HMAC. */
void idem__hash_init(struct idem__hash *hash, struct idem_slice secret);
void idem__hash_add(struct idem__hash *hash, struct idem_slice part);
/* Adds @n as eight bytes, the most significant first. */
void idem__hash_add_u64(struct idem__hash *hash, uint64_t n);
int idem__hash_end(struct idem__hash *hash,
                   uint8_t ret_digest[IDEM__SHA256_LEN]);

/* A secret prepared for many HMACs: the hashes of its two key blocks. It must be kept
 * as secret as the secret itself. */
struct idem__hmac_key {
    uint64_t inner[16]; /* libcrypto's. */
    uint64_t outer[16];
};

/* These return 0, or IDEM_ENOMEM if libcrypto failed. */
int idem__hmac_key_init(struct idem__hmac_key *key, struct idem_slice secret);
int idem__hmac(const struct idem__hmac_key *key, struct idem_slice message,
               uint8_t ret_digest[IDEM__SHA256_LEN]);
void idem__hmac_key_finish(struct idem__hmac_key *key);

/* ---- MD5 ----------------------------------------------------------------- */

#define IDEM__MD5_LEN 16

/* Other libraries make their keys with MD5; it protects nothing here. Returns 0, or
 * IDEM_ENOMEM if libcrypto failed. */
int idem__md5(struct idem_slice bytes, uint8_t ret_digest[IDEM__MD5_LEN]);

/* ---- CRC-32 -------------------------------------------------------------- */

/* CRC-32 as zlib computes it: continues @crc, which begins as 0. */
uint32_t idem__crc32(uint32_t crc, struct idem_slice bytes);

#endif
