/* Every block has a head in a list, so that leaks and pointers to other memory show. */
#include "heap.h"

#include <idem.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
    struct block *next;
    struct block *prev;
    size_t len;
    size_t magic;
};

enum {
    MAGIC = 0x1de3b10c
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block all = {&all, &all, 0, 0};
static size_t live;
static long allocations;
static long fail_in = -1;
static bool fail_on;
static bool failed;

/* Call it with the mutex held. */
static bool must_fail(void)
{
    allocations++;
    if (fail_in < 0) {
        return false;
    }
    if (fail_in > 0) {
        fail_in--;
        return false;
    }
    if (!fail_on) {
        fail_in = -1;
    }
    failed = true;
    return true;
}

static void link_block(struct block *b)
{
    b->next = all.next;
    b->prev = &all;
    all.next->prev = b;
    all.next = b;
    live++;
}

static void unlink_block(struct block *b)
{
    b->prev->next = b->next;
    b->next->prev = b->prev;
    live--;
}

static struct block *block_of(void *ptr)
{
    struct block *b = (struct block *)ptr - 1;

    if (b->magic != MAGIC) {
        (void)fprintf(stderr, "# a block that is not of this heap was freed\n");
        abort();
    }
    return b;
}

static void *counted_realloc(void *ctx, void *ptr, size_t len)
{
    struct block *old = ptr == NULL ? NULL : block_of(ptr);
    struct block *b = NULL;

    (void)ctx;
    (void)pthread_mutex_lock(&mutex);
    if (!must_fail() && len <= SIZE_MAX - sizeof(*b)) {
        if (old != NULL) {
            unlink_block(old);
        }
        b = realloc(old, sizeof(*b) + len);
        if (b != NULL) {
            b->len = len;
            b->magic = MAGIC;
            link_block(b);
        } else if (old != NULL) {
            link_block(old);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return b == NULL ? NULL : b + 1;
}

/* Fills new memory, so that a read before the first write does not find zeros. */
static void *counted_alloc(void *ctx, size_t len)
{
    void *ptr = counted_realloc(ctx, NULL, len);

    if (ptr != NULL && len < 65536) {
        memset(ptr, 0xa5, len);
    }
    return ptr;
}

static void counted_free(void *ctx, void *ptr)
{
    struct block *b = block_of(ptr);

    (void)ctx;
    (void)pthread_mutex_lock(&mutex);
    unlink_block(b);
    (void)pthread_mutex_unlock(&mutex);
    b->magic = 0;
    free(b);
}

void heap_install(void)
{
    static const struct idem_heap heap = {
        .ctx = NULL,
        .alloc = counted_alloc,
        .realloc = counted_realloc,
        .free = counted_free,
    };

    idem_heap_set(&heap);
}

size_t heap_live(void)
{
    size_t n;

    (void)pthread_mutex_lock(&mutex);
    n = live;
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

void heap_forget(void)
{
    (void)pthread_mutex_lock(&mutex);
    live = 0;
    (void)pthread_mutex_unlock(&mutex);
}

void heap_fail(long n, bool on)
{
    (void)pthread_mutex_lock(&mutex);
    fail_in = n;
    fail_on = on;
    failed = false;
    (void)pthread_mutex_unlock(&mutex);
}

bool heap_fail_never(void)
{
    bool was;

    (void)pthread_mutex_lock(&mutex);
    was = failed;
    fail_in = -1;
    failed = false;
    (void)pthread_mutex_unlock(&mutex);
    return was;
}

long heap_allocations(void)
{
    long n;

    (void)pthread_mutex_lock(&mutex);
    n = allocations;
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

void *heap_find(const void *start, size_t len, size_t *ret_block_len)
{
    void *found = NULL;
    struct block *b;

    (void)pthread_mutex_lock(&mutex);
    for (b = all.next; b != &all && found == NULL; b = b->next) {
        if (b->len >= len && memcmp(b + 1, start, len) == 0) {
            found = b + 1;
            *ret_block_len = b->len;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return found;
}
