/* Identities and fingerprints: two are equal exactly if all of their parts are,
 * however the same bytes are divided among the parts. The hash below them does
 * not care how its input is cut up, and is libcrypto's.
 */
#include "base/hash.h"
#include "fuzz.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum {
    PARTS_MAX = 8
};

struct list {
    struct idem_slice parts[PARTS_MAX];
    size_t len;
};

static struct list take_list(struct tape *tape, struct idem_slice bytes)
{
    struct list list = {.len = take_up_to(tape, PARTS_MAX)};
    const uint8_t *p = bytes.base;
    size_t i;

    for (i = 0; i < list.len; i++) {
        size_t len = take_u8(tape) % (bytes.len + 1);

        list.parts[i] = idem_bytes(p, len);
        p += len;
        bytes.len -= len;
    }
    return list;
}

static bool same_list(const struct list *a, const struct list *b)
{
    size_t i;

    for (i = 0; a->len == b->len && i < a->len; i++) {
        if (!same_bytes(a->parts[i], b->parts[i])) {
            return false;
        }
    }
    return a->len == b->len;
}

/* Both lists are cut from the same bytes. */
static void compare_fingerprints(struct tape *tape)
{
    struct idem_slice secret = take_bytes(tape, 100);
    struct idem_slice bytes = take_bytes(tape, 64);
    struct list a = take_list(tape, bytes);
    struct list b = take_list(tape, bytes);
    uint8_t fa[IDEM_FINGERPRINT_LEN];
    uint8_t fb[IDEM_FINGERPRINT_LEN];
    uint8_t plain[IDEM_FINGERPRINT_LEN];

    must(idem_fingerprint(a.parts, a.len, secret, fa) == 0);
    must(idem_fingerprint(b.parts, b.len, secret, fb) == 0);
    must((memcmp(fa, fb, sizeof(fa)) == 0) == same_list(&a, &b));
    must(idem_fingerprint(a.parts, a.len, idem_str(NULL), plain) == 0);
    must((memcmp(fa, plain, sizeof(fa)) == 0) == (secret.len == 0));
}

/* The same bytes, divided twice between scope and key. */
static void compare_ids(struct tape *tape)
{
    struct idem_slice bytes = take_bytes(tape, 600);
    const uint8_t *p = bytes.base;
    uint8_t ids[2][IDEM_ID_LEN];
    size_t cuts[2];
    int rc[2];
    int i;

    for (i = 0; i < 2; i++) {
        struct idem_slice key;

        cuts[i] = (take_u8(tape) + (size_t)take_u8(tape)) % (bytes.len + 1);
        key = idem_bytes(p + cuts[i], bytes.len - cuts[i]);
        rc[i] = idem_id(idem_bytes(p, cuts[i]), key, ids[i]);
        must((rc[i] == 0) == (key.len > 0 && key.len <= IDEM_KEY_MAX &&
                              cuts[i] <= IDEM_SCOPE_MAX));
    }
    if (rc[0] == 0 && rc[1] == 0) {
        must((memcmp(ids[0], ids[1], IDEM_ID_LEN) == 0) ==
             (cuts[0] == cuts[1]));
    }
}

static void hash_in_parts(struct tape *tape)
{
    struct idem_slice secret = take_bytes(tape, 200);
    struct idem_slice bytes = take_bytes(tape, 300);
    struct list list = take_list(tape, bytes);
    uint8_t digest[IDEM__SHA256_LEN];
    uint8_t theirs[IDEM__SHA256_LEN];
    struct idem__hash hash;
    size_t len = 0;
    size_t i;

    idem__hash_init(&hash, secret);
    for (i = 0; i < list.len; i++) {
        idem__hash_add(&hash, list.parts[i]);
        len += list.parts[i].len;
    }
    must(idem__hash_end(&hash, digest) == 0);
    if (secret.len == 0) {
        must(EVP_Digest(bytes.base, len, theirs, NULL, EVP_sha256(), NULL) ==
             1);
    } else {
        must(HMAC(EVP_sha256(), secret.base, (int)secret.len, bytes.base, len,
                  theirs, NULL) != NULL);
    }
    must(memcmp(digest, theirs, sizeof(digest)) == 0);
    if (secret.len == 0) {
        must(idem__sha256(list.parts, list.len, digest) == 0);
        must(memcmp(digest, theirs, sizeof(digest)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    switch (take_up_to(&tape, 2)) {
    case 0:
        compare_fingerprints(&tape);
        break;
    case 1:
        compare_ids(&tape);
        break;
    default:
        hash_in_parts(&tape);
        break;
    }
    return 0;
}
