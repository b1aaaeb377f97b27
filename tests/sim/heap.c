/* Blocks in a list per owner, recycled by size. */
#include "heap.h"

#include "sanitized.h"

#include <assert.h>
#include <idem.h>
#include <stdint.h>
#include <stdlib.h>

/* Under the sanitizer every block comes from malloc(), which it watches. */
#ifdef SIM_SANITIZED
enum {
    RECYCLED_MAX = 0
};
#else
enum {
    RECYCLED_MAX = 4096
};
#endif
enum {
    UNIT = 64,
    MAGIC = 0x51ab1e
};

struct heap_block {
    struct heap_block *next;
    struct heap_block *prev;
    struct heap *owner;
    uint32_t units;
    uint32_t magic;
};

static struct heap *in_use;
static struct heap_block *recycled[RECYCLED_MAX / UNIT + 1];

static struct heap_block *take(uint32_t units)
{
    struct heap_block *block;

    if (units <= RECYCLED_MAX / UNIT && recycled[units] != NULL) {
        block = recycled[units];
        recycled[units] = block->next;
        return block;
    }
    block = malloc((size_t)units * UNIT);
    if (block == NULL) {
        abort();
    }
    block->units = units;
    return block;
}

static void *heap_alloc(void *ctx, size_t len)
{
    struct heap_block *block =
        take((uint32_t)((len + sizeof(*block) + UNIT - 1) / UNIT));

    (void)ctx;
    assert(in_use != NULL);
    block->magic = MAGIC;
    block->owner = in_use;
    block->prev = NULL;
    block->next = in_use->first;
    if (block->next != NULL) {
        block->next->prev = block;
    }
    in_use->first = block;
    in_use->blocks++;
    return block + 1;
}

static void heap_free(void *ctx, void *ptr)
{
    struct heap_block *block = (struct heap_block *)ptr - 1;

    (void)ctx;
    assert(block->magic == MAGIC);
    block->magic = 0;
    block->owner->blocks--;
    if (block->next != NULL) {
        block->next->prev = block->prev;
    }
    if (block->prev != NULL) {
        block->prev->next = block->next;
    } else {
        block->owner->first = block->next;
    }
    if (block->units > RECYCLED_MAX / UNIT) {
        free(block);
        return;
    }
    block->next = recycled[block->units];
    recycled[block->units] = block;
}

static void *heap_realloc(void *ctx, void *ptr, size_t len)
{
    void *grown = heap_alloc(ctx, len);

    if (ptr != NULL) {
        const struct heap_block *old = (struct heap_block *)ptr - 1;
        size_t old_len = (size_t)old->units * UNIT - sizeof(*old);

        memcpy(grown, ptr, old_len < len ? old_len : len);
        heap_free(ctx, ptr);
    }
    return grown;
}

void heap_install(void)
{
    static const struct idem_heap heap = {
        .ctx = NULL,
        .alloc = heap_alloc,
        .realloc = heap_realloc,
        .free = heap_free,
    };

    idem_heap_set(&heap);
}

void heap_use(struct heap *heap)
{
    in_use = heap;
}

void heap_reclaim(struct heap *heap)
{
    while (heap->first != NULL) {
        heap_free(NULL, heap->first + 1);
    }
}
