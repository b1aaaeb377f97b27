/* Computes SHA-256 and MD5 with libcrypto's plain functions, and CRC-32.
 *
 * libcrypto deprecates these functions in favour of EVP, which reads configuration and
 * loads providers at its first use. That takes 0.9 ms, more than everything else that a
 * short process such as `idem run` does for a replay, and then an allocation for each
 * hash. The plain functions need neither, and a FIPS provider does not refuse MD5.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include "base/bytes.h"

#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <pthread.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(((struct idem__hash *)0)->state),
               "the state must hold libcrypto's");

static SHA256_CTX *context(struct idem__hash *hash)
{
    return (SHA256_CTX *)(void *)hash->state;
}

int idem__sha256(const struct idem_slice *parts, size_t parts_len,
                 uint8_t ret_digest[IDEM__SHA256_LEN])
{
    struct idem__hash hash;
    size_t i;

    idem__hash_init(&hash, idem_bytes(NULL, 0));
    for (i = 0; i < parts_len; i++) {
        idem__hash_add(&hash, parts[i]);
    }
    return idem__hash_end(&hash, ret_digest);
}

/* HMAC is two plain hashes (RFC 2104). The key block of the outer hash is kept until
 * the inner one is done. */
static void start_keyed(struct idem__hash *hash, struct idem_slice secret)
{
    uint8_t block[64] = {0};
    uint8_t inner_pad[64];
    size_t i;

    if (secret.len > sizeof(block)) {
        hash->ok = hash->ok && idem__sha256(&secret, 1, block) == 0;
    } else {
        memcpy(block, secret.base, secret.len);
    }
    for (i = 0; i < sizeof(block); i++) {
        inner_pad[i] = block[i] ^ 0x36;
        hash->outer_pad[i] = block[i] ^ 0x5c;
    }
    hash->ok = hash->ok &&
               SHA256_Update(context(hash), inner_pad, sizeof(inner_pad)) == 1;
    OPENSSL_cleanse(block, sizeof(block));
    OPENSSL_cleanse(inner_pad, sizeof(inner_pad));
}

void idem__hash_init(struct idem__hash *hash, struct idem_slice secret)
{
    hash->ok = SHA256_Init(context(hash)) == 1;
    hash->small_len = 0;
    hash->keyed = secret.len > 0;
    if (hash->keyed) {
        start_keyed(hash, secret);
    }
}

static void flush(struct idem__hash *hash)
{
    hash->ok = hash->ok &&
               SHA256_Update(context(hash), hash->small, hash->small_len) == 1;
    hash->small_len = 0;
}

/* Collects small parts: requests and identities have many parts of a few bytes, and for
 * each call libcrypto takes longer than it takes to hash them. */
void idem__hash_add(struct idem__hash *hash, struct idem_slice part)
{
    if (part.len == 0) {
        return;
    }
    if (part.len > sizeof(hash->small) - hash->small_len) {
        flush(hash);
    }
    if (part.len > sizeof(hash->small)) {
        hash->ok =
            hash->ok && SHA256_Update(context(hash), part.base, part.len) == 1;
        return;
    }
    memcpy(hash->small + hash->small_len, part.base, part.len);
    hash->small_len += part.len;
}

void idem__hash_add_u64(struct idem__hash *hash, uint64_t n)
{
    if (sizeof(hash->small) - hash->small_len < sizeof(n)) {
        flush(hash);
    }
    idem__put_u64(hash->small + hash->small_len, n);
    hash->small_len += sizeof(n);
}

int idem__hash_end(struct idem__hash *hash,
                   uint8_t ret_digest[IDEM__SHA256_LEN])
{
    bool ok;

    flush(hash);
    ok = hash->ok && SHA256_Final(ret_digest, context(hash)) == 1;
    if (ok && hash->keyed) {
        struct idem_slice outer[2] = {
            {hash->outer_pad, sizeof(hash->outer_pad)},
            {ret_digest, IDEM__SHA256_LEN},
        };

        ok = idem__sha256(outer, 2, ret_digest) == 0;
        OPENSSL_cleanse(hash->outer_pad, sizeof(hash->outer_pad));
    }
    return ok ? 0 : IDEM_ENOMEM;
}

static SHA256_CTX *inner_of(struct idem__hmac_key *key)
{
    return (SHA256_CTX *)(void *)key->inner;
}

static SHA256_CTX *outer_of(struct idem__hmac_key *key)
{
    return (SHA256_CTX *)(void *)key->outer;
}

int idem__hmac_key_init(struct idem__hmac_key *key, struct idem_slice secret)
{
    struct idem__hash hash;
    bool ok;

    hash.ok =
        SHA256_Init(context(&hash)) == 1 && SHA256_Init(outer_of(key)) == 1;
    start_keyed(&hash, secret);
    ok = hash.ok && SHA256_Update(outer_of(key), hash.outer_pad,
                                  sizeof(hash.outer_pad)) == 1;
    memcpy(inner_of(key), context(&hash), sizeof(SHA256_CTX));
    OPENSSL_cleanse(&hash, sizeof(hash));
    return ok ? 0 : IDEM_ENOMEM;
}

int idem__hmac(const struct idem__hmac_key *key, struct idem_slice message,
               uint8_t ret_digest[IDEM__SHA256_LEN])
{
    struct idem__hmac_key copy = *key;
    bool ok = message.len == 0 ||
              SHA256_Update(inner_of(&copy), message.base, message.len) == 1;

    ok = ok && SHA256_Final(ret_digest, inner_of(&copy)) == 1 &&
         SHA256_Update(outer_of(&copy), ret_digest, IDEM__SHA256_LEN) == 1 &&
         SHA256_Final(ret_digest, outer_of(&copy)) == 1;
    OPENSSL_cleanse(&copy, sizeof(copy));
    return ok ? 0 : IDEM_ENOMEM;
}

void idem__hmac_key_finish(struct idem__hmac_key *key)
{
    OPENSSL_cleanse(key, sizeof(*key));
}

int idem__md5(struct idem_slice bytes, uint8_t ret_digest[IDEM__MD5_LEN])
{
    MD5_CTX md5;
    bool ok =
        MD5_Init(&md5) == 1 &&
        (bytes.len == 0 || MD5_Update(&md5, bytes.base, bytes.len) == 1) &&
        MD5_Final(ret_digest, &md5) == 1;

    return ok ? 0 : IDEM_ENOMEM;
}

/* ---- CRC-32 -------------------------------------------------------------- */

/* One table is enough: the answer of a service has about a kilobyte, and its check
 * takes a few microseconds of the hundreds that the request took. */

#define POLYNOMIAL 0xedb88320 /* From IEEE 802.3, with mirrored bits. */

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    uint32_t b;
    unsigned bit;

    for (b = 0; b < 256; b++) {
        uint32_t r = b;

        for (bit = 0; bit < 8; bit++) {
            r = r >> 1 ^ (r & 1 ? POLYNOMIAL : 0);
        }
        table[b] = r;
    }
}

uint32_t idem__crc32(uint32_t crc, struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    uint32_t r = ~crc;
    size_t i;

    (void)pthread_once(&once, fill_table);
    for (i = 0; i < bytes.len; i++) {
        r = r >> 8 ^ table[(r ^ p[i]) & 255];
    }
    return ~r;
}
