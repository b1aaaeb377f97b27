/* A host whose clocks, randomness and sleep are the test's. */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include <idem.h>

/* The times on the clocks of a new host. */
#define HOST_WALL_MS 1700000000000
#define HOST_BOOT_MS 5000000

struct host {
    int64_t wall_ms;
    int64_t true_ms; /* The wall clock if nobody had set it. */
    bool kept_right; /* The wall clock that is read is true_ms. */
    int64_t boot_ms;
    uint8_t boot_id[16];
    uint64_t drawn;      /* The state of the random numbers. */
    bool unsynchronised; /* Nothing keeps the wall clock right. */
    int clock_code;      /* The results of the hooks. */
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

/* Lets @ms pass. */
void host_pass(struct host *host, int64_t ms);

/* Sets the wall clock; no other clock changes. */
void host_set_wall(struct host *host, int64_t wall_ms);

/* Boots the host again, after it was down for @down_ms of its wall clock. */
void host_reboot(struct host *host, int64_t down_ms);

/* Returns the next number of the sequence that starts from @seed. */
uint64_t random_next(uint64_t *seed);
void random_fill(uint64_t *seed, void *buf, size_t len);

#endif
