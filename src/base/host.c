/* The system's clocks, randomness and sleep. */
#include "base/host.h"

#include "base/boot.h"
#include "base/random.h"

#include <errno.h>
#include <sys/timex.h>
#include <time.h>

enum {
    ASK_EVERY_MS = 1000
};

/* A time after 2038 is as good as any other, also where long has 32 bits. */
_Static_assert(sizeof(time_t) >= 8, "seconds have 64 bits");

static int read_clock(clockid_t id, int64_t *ret_ms)
{
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0) {
        return -1;
    }
    *ret_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    return 0;
}

/* The daemon that keeps the clock right tells the kernel so. A system that may
 * not be asked is not known to have such a thing. Asked once a second. */
static bool is_unsynchronised(int64_t boot_ms)
{
    static int64_t asked_ms = INT64_MIN / 2;
    static bool unsynchronised;
    struct timex state = {.modes = 0};
    int64_t last_ms = __atomic_load_n(&asked_ms, __ATOMIC_ACQUIRE);
    int rc;

    if (boot_ms >= last_ms && boot_ms - last_ms < ASK_EVERY_MS) {
        return __atomic_load_n(&unsynchronised, __ATOMIC_RELAXED);
    }
    rc = adjtimex(&state);
    __atomic_store_n(&unsynchronised,
                     rc < 0 || rc == TIME_ERROR ||
                         (state.status & STA_UNSYNC) != 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&asked_ms, boot_ms, __ATOMIC_RELEASE);
    return __atomic_load_n(&unsynchronised, __ATOMIC_RELAXED);
}

static int system_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    (void)ctx;
    if (read_clock(CLOCK_REALTIME, &ret_reading->wall_ms) != 0 ||
        idem__boot_read(&ret_reading->boot_ms, ret_reading->boot_id) != 0) {
        return -1;
    }
    ret_reading->unsynchronised = is_unsynchronised(ret_reading->boot_ms);
    return 0;
}

static int system_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    return idem__random(buf, len);
}

static void system_sleep(void *ctx, int64_t ms)
{
    struct timespec ts = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000) * 1000000,
    };

    (void)ctx;
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

bool idem__host_has_our_random(const struct idem_host *host)
{
    return host->random == system_random;
}

void idem__host_default(struct idem_host *host)
{
    if (host->clock == NULL) {
        host->clock = system_clock;
    }
    if (host->random == NULL) {
        host->random = system_random;
    }
    if (host->sleep == NULL) {
        host->sleep = system_sleep;
    }
}

int64_t idem__mono_ms(void)
{
    int64_t ms = 0;

    (void)read_clock(CLOCK_MONOTONIC, &ms);
    return ms;
}

int64_t idem__mono_ns(void)
{
    struct timespec ts = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t idem__time_ns(int64_t ms)
{
    return ms > IDEM_NEVER / 1000000 ? IDEM_NEVER : ms * 1000000;
}

int64_t idem__time_add(int64_t base, int64_t add)
{
    return add > IDEM_NEVER - base ? IDEM_NEVER : base + add;
}
