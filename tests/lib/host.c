/* Virtual clocks; they may be read from many threads. */
#include "host.h"

static int read_clocks(void *ctx, struct idem_clock_reading *ret_reading)
{
    struct host *host = ctx;

    if (host->clock_code != 0) {
        return host->clock_code;
    }
    ret_reading->wall_ms =
        __atomic_load_n(host->kept_right ? &host->true_ms : &host->wall_ms,
                        __ATOMIC_ACQUIRE);
    ret_reading->boot_ms = __atomic_load_n(&host->boot_ms, __ATOMIC_ACQUIRE);
    memcpy(ret_reading->boot_id, host->boot_id, sizeof(host->boot_id));
    ret_reading->unsynchronised = host->unsynchronised;
    return 0;
}

uint64_t random_next(uint64_t *seed)
{
    uint64_t z = __atomic_add_fetch(seed, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void random_fill(uint64_t *seed, void *buf, size_t len)
{
    uint8_t *p = buf;
    size_t i;

    for (i = 0; i < len; i++) {
        p[i] = (uint8_t)random_next(seed);
    }
}

static int draw(void *ctx, void *buf, size_t len)
{
    struct host *host = ctx;

    if (host->random_code != 0) {
        return host->random_code;
    }
    random_fill(&host->drawn, buf, len);
    return 0;
}

static void sleep_on(void *ctx, int64_t ms)
{
    struct host *host = ctx;

    host->slept_ms += ms;
    host->sleeps++;
    host_pass(host, ms);
    if (host->on_sleep != NULL) {
        host->on_sleep(host->ctx, host);
    }
}

void host_init(struct host *host)
{
    memset(host, 0, sizeof(*host));
    host->wall_ms = HOST_WALL_MS;
    host->true_ms = HOST_WALL_MS;
    host->boot_ms = HOST_BOOT_MS;
    memset(host->boot_id, 'A', sizeof(host->boot_id));
    host->drawn = 1;
}

struct idem_open_options host_options(struct host *host, bool sleeping)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.host.ctx = host;
    options.host.clock = read_clocks;
    options.host.random = draw;
    options.host.sleep = sleeping ? sleep_on : NULL;
    return options;
}

void host_pass(struct host *host, int64_t ms)
{
    (void)__atomic_add_fetch(&host->wall_ms, ms, __ATOMIC_ACQ_REL);
    (void)__atomic_add_fetch(&host->true_ms, ms, __ATOMIC_ACQ_REL);
    (void)__atomic_add_fetch(&host->boot_ms, ms, __ATOMIC_ACQ_REL);
}

void host_set_wall(struct host *host, int64_t wall_ms)
{
    __atomic_store_n(&host->wall_ms, wall_ms, __ATOMIC_RELEASE);
}

void host_reboot(struct host *host, int64_t down_ms)
{
    host->wall_ms += down_ms;
    host->true_ms += down_ms > 0 ? down_ms : 0;
    host->boot_ms = 1000;
    host->boot_id[0]++;
}
