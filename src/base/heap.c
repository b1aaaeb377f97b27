/* Implements the heap, whose functions a program can replace. */
#include "base/heap.h"

#include <idem.h>

#include <stdlib.h>

static void *system_alloc(void *ctx, size_t len)
{
    (void)ctx;
    return malloc(len);
}

static void *system_realloc(void *ctx, void *ptr, size_t len)
{
    (void)ctx;
    return realloc(ptr, len);
}

static void system_free(void *ctx, void *ptr)
{
    (void)ctx;
    free(ptr);
}

static const struct idem_heap system_heap = {
    .ctx = NULL,
    .alloc = system_alloc,
    .realloc = system_realloc,
    .free = system_free,
};

static struct idem_heap heap = {
    .ctx = NULL,
    .alloc = system_alloc,
    .realloc = system_realloc,
    .free = system_free,
};

void idem_heap_set(const struct idem_heap *new_heap)
{
    heap = new_heap == NULL ? system_heap : *new_heap;
}

void *idem__alloc(size_t len)
{
    return heap.alloc(heap.ctx, len == 0 ? 1 : len);
}

void *idem__zalloc(size_t len)
{
    void *ptr = idem__alloc(len);

    if (ptr != NULL) {
        memset(ptr, 0, len);
    }
    return ptr;
}

void *idem__realloc(void *ptr, size_t len)
{
    return heap.realloc(heap.ctx, ptr, len == 0 ? 1 : len);
}

void idem__free(void *ptr)
{
    if (ptr != NULL) {
        heap.free(heap.ctx, ptr);
    }
}
