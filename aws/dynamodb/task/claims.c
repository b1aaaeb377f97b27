/* The claims that this handle made and has not ended. All their memory is taken
 * when the store is opened, and the system gives it when it is first used. */
#include "aws/dynamodb/task/claims.h"

#include "base/heap.h"

#include <stddef.h>

enum {
    BUCKETS = 1024,
    CLAIMS_MAX = 4096,
    CLAIM_BYTES_MAX = 1024 /* Larger ones are read again. */
};

struct claim {
    struct claim *next; /* In its bucket, or of the free ones. */
    struct claim *newer;
    struct claim *older;
    struct idem__body result;
    struct idem__body input;
    size_t head_len;
    size_t scope_len;
    size_t key_len;
    uint8_t id[IDEM_ID_LEN];
    uint8_t bytes[CLAIM_BYTES_MAX]; /* head, scope, key, inline input. */
};

struct idem__claims {
    struct claim *buckets[BUCKETS];
    struct claim *newest;
    struct claim *oldest;
    struct claim *free;
    size_t used; /* Of claims, ever; the bytes after them were never touched. */
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

/* A free one; the oldest goes where there is none. */
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

static void append(struct idem_slice from, uint8_t **to)
{
    if (from.len > 0) {
        memcpy(*to, from.base, from.len);
        *to += from.len;
    }
}

void idem__claims_put(struct idem__claims *claims,
                      const struct idem__item *item, struct idem_slice head)
{
    const struct idem_record *record = &item->record;
    size_t len =
        head.len + record->scope.len + record->key.len + item->input.stored.len;
    struct claim **at = find(claims, record->id);
    struct claim *claim;
    uint8_t *to;

    if (*at != NULL) {
        drop(claims, at);
    }
    if (len > CLAIM_BYTES_MAX) {
        return;
    }
    claim = take(claims);
    claim->result = item->result;
    claim->input = item->input;
    claim->head_len = head.len;
    claim->scope_len = record->scope.len;
    claim->key_len = record->key.len;
    memcpy(claim->id, record->id, IDEM_ID_LEN);
    to = claim->bytes;
    append(head, &to);
    append(record->scope, &to);
    append(record->key, &to);
    append(item->input.stored, &to);
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

bool idem__claims_get(struct idem__claims *claims, const struct idem_op *op,
                      struct idem__buffer *memory, struct idem__item *ret_item)
{
    const struct claim *claim = *find(claims, op->id);
    struct idem_record *record = &ret_item->record;
    const uint8_t *p;
    size_t len;

    if (claim == NULL) {
        return false;
    }
    memset(ret_item, 0, sizeof(*ret_item));
    len = claim->head_len + claim->scope_len + claim->key_len +
          claim->input.stored.len;
    memory->len = 0;
    idem__buffer_add(memory, claim->bytes, len);
    p = memory->base;
    if (memory->failed ||
        idem_record_decode(op->id, idem_bytes(p, claim->head_len), record,
                           NULL) != 0 ||
        record->fence != op->fence ||
        memcmp(record->nonce, op->nonce, sizeof(op->nonce)) != 0) {
        return false;
    }
    p += claim->head_len;
    ret_item->head = idem_bytes(memory->base, claim->head_len);
    record->scope = idem_bytes(p, claim->scope_len);
    p += claim->scope_len;
    record->key = idem_bytes(p, claim->key_len);
    p += claim->key_len;
    ret_item->result = claim->result;
    ret_item->input = claim->input;
    ret_item->input.stored.base = p;
    return true;
}
