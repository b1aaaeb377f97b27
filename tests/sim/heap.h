/* The library's heap during a schedule: each block has an owner, so that what a
 * client that crashed held can be taken back, and what one leaked is seen. */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stddef.h>

struct heap_block;

/* Zeroed: empty. */
struct heap {
    struct heap_block *first;
    size_t blocks;
};

/* Makes the library allocate here; call it before anything else. */
void heap_install(void);

/* What is allocated from now on belongs to @heap. */
void heap_use(struct heap *heap);

/* Frees all that @heap owns. */
void heap_reclaim(struct heap *heap);

#endif
