/* Rows of claims that this handle made, as src/store/remote remembers them. */
#include "postgres/task.h"

/* Before the bytes: what there is of each. */
struct lengths {
    size_t head;
    size_t scope;
    size_t key;
};

/* A claim is remembered until it is ended, so that its owner ends it in one round trip. */
void idem__pg_remember(struct idem__pg_task *task)
{
    const struct idem_record *record = &task->next;
    struct lengths lengths = {task->head.len, record->scope.len,
                              record->key.len};
    struct idem_slice parts[] = {
        idem_bytes(&lengths, sizeof(lengths)),
        idem__buffer_slice(&task->head),
        record->scope,
        record->key,
    };

    if (record->status == IDEM_STATUS_IN_PROGRESS && !record->retry &&
        memcmp(record->nonce, task->op->nonce, sizeof(record->nonce)) == 0) {
        idem__claims_put(task->env->claims, record->id, parts,
                         sizeof(parts) / sizeof(parts[0]));
    } else {
        idem__claims_forget(task->env->claims, record->id);
    }
}

bool idem__pg_recall(struct idem__pg_task *task)
{
    const struct idem_op *op = task->op;
    struct idem_record *record = &task->found.record;
    struct lengths lengths;
    const uint8_t *p;

    if (!idem__claims_get(task->env->claims, op->id, &task->found_memory)) {
        return false;
    }
    p = task->found_memory.base;
    memcpy(&lengths, p, sizeof(lengths));
    p += sizeof(lengths);
    task->found.head = idem_bytes(p, lengths.head);
    if (idem__record_decode(op->id, task->found.head, record, NULL) != 0 ||
        record->fence != op->fence ||
        memcmp(record->nonce, op->nonce, sizeof(op->nonce)) != 0) {
        return false;
    }
    p += lengths.head;
    memcpy(task->found.tag, p - IDEM__PG_TAG_LEN, IDEM__PG_TAG_LEN);
    record->scope = idem_bytes(p, lengths.scope);
    record->key = idem_bytes(p + lengths.scope, lengths.key);
    task->found.has_bodies = false;
    return true;
}
