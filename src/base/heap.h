/* All allocations of the library go through this heap; see idem_heap_set(). */
#ifndef IDEM_BASE_HEAP_H
#define IDEM_BASE_HEAP_H

#include <stddef.h>

/* NULL: memory ran out. @len 0 gives a valid pointer. */
void *idem__alloc(size_t len) __attribute__((malloc, warn_unused_result));

/* The same, filled with zeros. */
void *idem__zalloc(size_t len) __attribute__((malloc, warn_unused_result));

/* On failure NULL, and @ptr stays as it is. */
void *idem__realloc(void *ptr, size_t len) __attribute__((warn_unused_result));

void idem__free(void *ptr);

#endif
