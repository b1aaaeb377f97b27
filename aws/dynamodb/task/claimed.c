/* Items of claims that this handle made, as src/store/remote remembers them. */
#include "aws/dynamodb/task/claimed.h"

/* Before the bytes: head, scope, key, and the bodies that are inline. */
struct lengths {
    struct idem__body result;
    struct idem__body input;
    size_t head;
    size_t scope;
    size_t key;
};

void idem__claimed_put(struct idem__claims *claims,
                       const struct idem__item *item, struct idem_slice head)
{
    const struct idem_record *record = &item->record;
    struct lengths lengths = {
        .result = item->result,
        .input = item->input,
        .head = head.len,
        .scope = record->scope.len,
        .key = record->key.len,
    };
    struct idem_slice parts[] = {
        idem_bytes(&lengths, sizeof(lengths)),
        head,
        record->scope,
        record->key,
        item->result.stored,
        item->input.stored,
    };

    idem__claims_put(claims, record->id, parts,
                     sizeof(parts) / sizeof(parts[0]));
}

bool idem__claimed_get(struct idem__claims *claims, const struct idem_op *op,
                       struct idem__buffer *memory, struct idem__item *ret_item)
{
    struct idem_record *record = &ret_item->record;
    struct lengths lengths;
    const uint8_t *p;

    if (!idem__claims_get(claims, op->id, memory)) {
        return false;
    }
    memset(ret_item, 0, sizeof(*ret_item));
    p = memory->base;
    memcpy(&lengths, p, sizeof(lengths));
    p += sizeof(lengths);
    ret_item->head = idem_bytes(p, lengths.head);
    if (idem__record_decode(op->id, ret_item->head, record, NULL) != 0 ||
        record->fence != op->fence ||
        memcmp(record->nonce, op->nonce, sizeof(op->nonce)) != 0) {
        return false;
    }
    p += lengths.head;
    record->scope = idem_bytes(p, lengths.scope);
    p += lengths.scope;
    record->key = idem_bytes(p, lengths.key);
    p += lengths.key;
    ret_item->result = lengths.result;
    ret_item->result.stored.base = p;
    p += lengths.result.stored.len;
    ret_item->input = lengths.input;
    ret_item->input.stored.base = p;
    return true;
}
