/* The library's heap, as the tests own it: it counts, and fails on demand. */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Puts this heap under the library; malloc lies below it. */
void heap_install(void);

/* How many blocks the library holds that were allocated since heap_forget(). */
size_t heap_live(void);

/* What is held now, by a test that failed, is not counted any more. */
void heap_forget(void);

/* The allocation that comes @n after this call (0: the next) fails, and, with
 * @on, every one after it. */
void heap_fail(long n, bool on);

/* Allocations succeed again. True if one failed since heap_fail(). */
bool heap_fail_never(void);

/* How many allocations there were. */
long heap_allocations(void);

/* The first live block that begins with @len bytes of @start; NULL: none. Lets
 * a test damage what a store in memory has stored. */
void *heap_find(const void *start, size_t len, size_t *ret_block_len);

#endif
