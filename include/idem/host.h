/* host.h: the functions that the library needs from its host, which a program may
 * replace: clocks, random bytes, sleep and memory. */
#ifndef IDEM_HOST_H
#define IDEM_HOST_H

#include <idem/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* One reading of the host's clocks. */
struct idem_clock_reading {
    int64_t wall_ms;     /* CLOCK_REALTIME. */
    int64_t boot_ms;     /* CLOCK_BOOTTIME: counts suspended time too. */
    uint8_t boot_id[16]; /* Another value after every boot of the host. */
    bool unsynchronised; /* True if nothing is known to keep the wall clock
                            right. */
};

/* The clocks, random bytes and sleep of the host. A member that is NULL means the
 * system's own function. clock and random return 0, or anything else if they fail; the
 * call that needs them then returns IDEM_EUNAVAILABLE and does nothing. sleep takes
 * milliseconds. */
struct idem_host {
    void *ctx; /* Passed to each function. */
    int (*clock)(void *ctx, struct idem_clock_reading *ret_reading);
    int (*random)(void *ctx, void *buf, size_t len);
    void (*sleep)(void *ctx, int64_t ms);
};

/* The source of the library's own memory; all three functions must be set. */
struct idem_heap {
    void *ctx;
    void *(*alloc)(void *ctx, size_t len);
    void *(*realloc)(void *ctx, void *ptr, size_t len);
    void (*free)(void *ctx, void *ptr);
};

/* Makes this library take its memory from @heap, which is copied; call it before any
 * other function. NULL restores malloc(), realloc() and free(). */
void idem_heap_set(const struct idem_heap *heap);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
