/* Which parts of a body an answer is about, and how results are packed. */
#include "aws/dynamodb/task/task.h"

#include <zstd.h>

bool idem__parts_number(const struct idem__parts *parts, struct idem_slice name,
                        uint32_t *ret_i)
{
    char expected[IDEM__PART_NAME_MAX];
    uint32_t i;

    for (i = 0; i < parts->body->parts; i++) {
        idem__part_name(parts->id, parts->kind, parts->body->tag, i, expected);
        if (name.len == strlen(expected) &&
            memcmp(name.base, expected, name.len) == 0) {
            *ret_i = i;
            return true;
        }
    }
    return false;
}

/* The id in {"PutRequest":{"Item":...}} or {"DeleteRequest":{"Key":...}}. */
static bool name_of(json_object *write, struct idem_slice *ret_name)
{
    json_object *inner = NULL;
    json_object *item = NULL;

    return ((json_object_object_get_ex(write, "PutRequest", &inner) &&
             json_object_object_get_ex(inner, "Item", &item)) ||
            (json_object_object_get_ex(write, "DeleteRequest", &inner) &&
             json_object_object_get_ex(inner, "Key", &item))) &&
           idem__json_attribute(item, "id", "S", ret_name) == 1;
}

/* Marks the next @carried parts as done, except those in @unprocessed. Returns how many
 * that were. */
static uint32_t mark(const struct idem__parts *parts, bool *done,
                     unsigned carried, json_object *unprocessed)
{
    size_t n = json_object_is_type(unprocessed, json_type_array)
                   ? json_object_array_length(unprocessed)
                   : 0;
    bool back[IDEM__PARTS_MAX] = {false};
    uint32_t marked = 0;
    uint32_t i;
    size_t k;

    for (k = 0; k < n; k++) {
        struct idem_slice name;

        if (name_of(json_object_array_get_idx(unprocessed, k), &name) &&
            idem__parts_number(parts, name, &i)) {
            back[i] = true;
        }
    }
    for (i = 0; i < parts->body->parts && carried > 0; i++) {
        if (!done[i]) {
            carried--;
            done[i] = !back[i];
            marked += !back[i];
        }
    }
    return marked;
}

idem__state idem__parts_answered(struct idem__task *task,
                                 const struct idem__parts *parts, bool *done,
                                 uint32_t *left, unsigned carried,
                                 const struct idem__answer *answer)
{
    idem__state asked = task->base.state;
    json_object *unprocessed =
        idem__task_under_table(task, answer->body, "UnprocessedItems");
    uint32_t marked = mark(parts, done, carried, unprocessed);

    *left -= marked;
    if (*left == 0) {
        return IDEM__STATE_NONE;
    }
    return unprocessed == NULL ? asked
                               : idem__task_busy(task, marked > 0,
                                                 asked == IDEM__STATE_PUT_PARTS
                                                     ? "take the result"
                                                     : "delete a result",
                                                 asked);
}

/* ---- Packing with zstd ---- */

enum {
    LEVEL = 3,
    GAIN_DIVISOR = 8,
    KEEP_BYTES = 64 * 1024 /* A context that served more bytes is freed. */
};

/* The process keeps one context of each kind for the next result. They are so large that
 * malloc() gets each from the kernel, which takes longer than to pack. A caller that finds
 * none here creates one. */
static ZSTD_CCtx *spare_packer;
static ZSTD_DCtx *spare_unpacker;

/* NULL: no memory. */
static ZSTD_CCtx *take_packer(void)
{
    ZSTD_CCtx *packer =
        __atomic_exchange_n(&spare_packer, NULL, __ATOMIC_ACQ_REL);

    return packer != NULL ? packer : ZSTD_createCCtx();
}

/* The context has grown with the @len bytes that it packed. */
static void give_packer(ZSTD_CCtx *packer, size_t len)
{
    if (len <= KEEP_BYTES) {
        packer = __atomic_exchange_n(&spare_packer, packer, __ATOMIC_ACQ_REL);
    }
    (void)ZSTD_freeCCtx(packer); /* NULL is allowed. */
}

static ZSTD_DCtx *take_unpacker(void)
{
    ZSTD_DCtx *unpacker =
        __atomic_exchange_n(&spare_unpacker, NULL, __ATOMIC_ACQ_REL);

    return unpacker != NULL ? unpacker : ZSTD_createDCtx();
}

static void give_unpacker(ZSTD_DCtx *unpacker, size_t len)
{
    if (len <= KEEP_BYTES) {
        unpacker =
            __atomic_exchange_n(&spare_unpacker, unpacker, __ATOMIC_ACQ_REL);
    }
    (void)ZSTD_freeDCtx(unpacker);
}

bool idem__pack(struct idem_slice bytes, struct idem__buffer *out)
{
    ZSTD_CCtx *packer;
    uint8_t *to;
    size_t cap;
    size_t len;

    out->len = 0;
    cap = ZSTD_compressBound(bytes.len);
    to = idem__buffer_room(out, cap);
    packer = to == NULL ? NULL : take_packer();
    if (packer == NULL) {
        idem__buffer_reset(out, 0);
        return false;
    }
    len = ZSTD_compressCCtx(packer, to, cap, bytes.base, bytes.len, LEVEL);
    give_packer(packer, bytes.len);
    if (ZSTD_isError(len) != 0 || len > bytes.len - bytes.len / GAIN_DIVISOR) {
        return false;
    }
    out->len = len;
    return true;
}

int idem__unpack(struct idem_slice packed, size_t len, struct idem__buffer *out)
{
    ZSTD_DCtx *unpacker;
    uint8_t *to;
    size_t got;

    to = idem__buffer_room(out, len);
    unpacker = to == NULL ? NULL : take_unpacker();
    if (unpacker == NULL) {
        return IDEM_ENOMEM;
    }
    got = ZSTD_decompressDCtx(unpacker, to, len, packed.base, packed.len);
    give_unpacker(unpacker, len);
    if (got != len) {
        return IDEM_ECORRUPT;
    }
    out->len += len;
    return 0;
}
