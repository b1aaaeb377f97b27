/* Implements the cache of claims. Opening the store allocates memory for all of them, and
 * the kernel supplies each page when it is first used.
 *
 * A claim that was forgotten, or is too large, is read again before it is ended. A claim
 * that is still remembered after a takeover does no harm, because each write is
 * conditional on the record. */
#include "store/remote/claims.h"

#include "base/heap.h"

#include <stddef.h>

enum {
    BUCKETS = 1024,
    CLAIMS_MAX = 4096,
    CLAIM_BYTES_MAX = 1160 /* A larger claim is not remembered. */
};

struct claim {
    /* Next in its bucket, or in the list of free entries. */
    struct claim *next;
    struct claim *newer;
    struct claim *older;
    size_t len;
    uint8_t id[IDEM_ID_LEN];
    uint8_t bytes[CLAIM_BYTES_MAX];
};

struct idem__claims {
    struct claim *buckets[BUCKETS];
    struct claim *newest;
    struct claim *oldest;
    struct claim *free;
    /* Entries of claims[] that were ever used; the others are untouched. */
    size_t used;
    struct claim claims[CLAIMS_MAX];
};

struct idem__claims *idem__claims_create(void)
{
    struct idem__claims *claims = idem__alloc(sizeof(*claims));

    if (claims != NULL) {
        memset(claims, 0, offsetof(struct idem__claims, claims));
    }
    return claims;
}

void idem__claims_destroy(struct idem__claims *claims)
{
    idem__free(claims);
}

static struct claim **find(struct idem__claims *claims, const uint8_t *id)
{
    struct claim **at =
        &claims->buckets[((unsigned)id[0] << 8 | id[1]) % BUCKETS];

    while (*at != NULL && memcmp((*at)->id, id, IDEM_ID_LEN) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static void drop(struct idem__claims *claims, struct claim **at)
{
    struct claim *claim = *at;

    *at = claim->next;
    if (claim->newer == NULL) {
        claims->newest = claim->older;
    } else {
        claim->newer->older = claim->older;
    }
    if (claim->older == NULL) {
        claims->oldest = claim->newer;
    } else {
        claim->older->newer = claim->newer;
    }
    claim->next = claims->free;
    claims->free = claim;
}

/* Takes a free entry, or else drops the oldest claim, whose end then costs a read. */
static struct claim *take(struct idem__claims *claims)
{
    struct claim *claim;

    if (claims->free == NULL && claims->used < CLAIMS_MAX) {
        return &claims->claims[claims->used++];
    }
    if (claims->free == NULL) {
        drop(claims, find(claims, claims->oldest->id));
    }
    claim = claims->free;
    claims->free = claim->next;
    return claim;
}

void idem__claims_forget(struct idem__claims *claims,
                         const uint8_t id[IDEM_ID_LEN])
{
    struct claim **at = find(claims, id);

    if (*at != NULL) {
        drop(claims, at);
    }
}

static void append(struct claim *claim, struct idem_slice part)
{
    if (part.len > 0) {
        memcpy(claim->bytes + claim->len, part.base, part.len);
        claim->len += part.len;
    }
}

void idem__claims_put(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      const struct idem_slice *parts, size_t n)
{
    struct claim **at = find(claims, id);
    struct claim *claim;
    size_t len = 0;
    size_t i;

    /* Drop the earlier claim even if the new one is too large to remember: it is not on
     * record any more. */
    if (*at != NULL) {
        drop(claims, at);
    }
    for (i = 0; i < n; i++) {
        len += parts[i].len;
    }
    if (len > CLAIM_BYTES_MAX) {
        return;
    }
    claim = take(claims);
    memcpy(claim->id, id, IDEM_ID_LEN);
    claim->len = 0;
    for (i = 0; i < n; i++) {
        append(claim, parts[i]);
    }
    claim->next = NULL;
    claim->newer = NULL;
    at = find(claims, claim->id);
    *at = claim;
    claim->older = claims->newest;
    if (claim->older == NULL) {
        claims->oldest = claim;
    } else {
        claim->older->newer = claim;
    }
    claims->newest = claim;
}

bool idem__claims_get(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      struct idem__buffer *memory)
{
    const struct claim *claim = *find(claims, id);

    if (claim == NULL) {
        return false;
    }
    /* Copy it, because the entry may be reused for another claim while this op is in
     * flight. */
    memory->len = 0;
    idem__buffer_add(memory, claim->bytes, claim->len);
    return !memory->failed;
}
