/* A host whose clocks, randomness and sleep are the test's. */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include <idem.h>

/* What the clocks of a new host show. */
#define HOST_WALL_MS 1700000000000
#define HOST_BOOT_MS 5000000

struct host {
    int64_t wall_ms;
    int64_t true_ms; /* As wall_ms, but nobody sets it. */
    bool kept_right; /* The wall clock that is read is true_ms. */
    int64_t boot_ms;
    uint8_t boot_id[16];
    uint64_t drawn;      /* Random numbers, which are those of a seed. */
    bool unsynchronised; /* Nothing keeps the wall clock right. */
    int clock_code;      /* What the hooks answer. */
    int random_code;
    int64_t slept_ms;
    unsigned sleeps;
    /* Called in each sleep, after the clocks moved on; may be NULL. */
    void (*on_sleep)(void *ctx, struct host *host);
    void *ctx;
};

void host_init(struct host *host);

/* Options for a store on @host. Without @sleeping it has the system's sleep, and
 * waiters are woken; with it they poll, and each sleep moves the clocks on. */
struct idem_open_options host_options(struct host *host, bool sleeping);

/* @ms go by. */
void host_pass(struct host *host, int64_t ms);

/* The wall clock is set; nothing else changes. */
void host_set_wall(struct host *host, int64_t wall_ms);

/* The host is down for @down_ms, as its wall clock counts it, and boots. */
void host_reboot(struct host *host, int64_t down_ms);

/* The next number of the sequence that begins with @seed. */
uint64_t random_next(uint64_t *seed);
void random_fill(uint64_t *seed, void *buf, size_t len);

#endif
