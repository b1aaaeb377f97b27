/* A heap for the library that counts, and fails on demand. */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Puts this heap under the library; malloc lies below it. */
void heap_install(void);

/* Returns how many blocks the library holds that it allocated since heap_forget(). */
size_t heap_live(void);

/* Stops counting the blocks that a failed test still holds. */
void heap_forget(void);

/* The allocation that comes @n after this call (0: the next) fails, and, with
 * @on, every one after it. */
void heap_fail(long n, bool on);

/* Lets allocations succeed again. Returns whether one has failed since heap_fail(). */
bool heap_fail_never(void);

/* Returns how many allocations there were. */
long heap_allocations(void);

/* Returns the first live block that begins with @len bytes of @start; NULL: none. With it a
 * test can damage a record of a store in memory. */
void *heap_find(const void *start, size_t len, size_t *ret_block_len);

#endif
