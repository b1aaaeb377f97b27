/* heap.h: the heap through which the library allocates all its memory; see
 * idem_heap_set(). */
#ifndef IDEM_BASE_HEAP_H
#define IDEM_BASE_HEAP_H

#include <stddef.h>

/* Returns memory of @len bytes, or NULL if memory ran out. A @len of 0 gives a valid
 * pointer. */
void *idem__alloc(size_t len) __attribute__((malloc, warn_unused_result));

/* Returns such memory filled with zeros. */
void *idem__zalloc(size_t len) __attribute__((malloc, warn_unused_result));

/* Returns NULL on failure, and leaves @ptr as it is. */
void *idem__realloc(void *ptr, size_t len) __attribute__((warn_unused_result));

void idem__free(void *ptr);

#endif
