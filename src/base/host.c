/* Provides the services that the library needs from its host: clocks, random bytes,
 * sleep, the boot, and installed files. */
#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int idem__random(void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return -1;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* ---- The boot ------------------------------------------------------------ */

static ssize_t read_small(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return -1;
    }
    do {
        n = read(fd, buf, cap - 1);
    } while (n < 0 && errno == EINTR);
    (void)close(fd);
    if (n >= 0) {
        buf[n] = '\0';
    }
    return n;
}

/* A time namespace shifts CLOCK_BOOTTIME, but all records of a host must use one clock,
 * so read that shift and undo it. Only a kernel without time namespaces lacks the
 * file. */
static int read_boottime_shift(int64_t *ret_ms)
{
    char buf[256];
    const char *line;
    long long sec;
    long nsec;

    *ret_ms = 0;
    if (read_small("/proc/self/timens_offsets", buf, sizeof(buf)) < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    line = strstr(buf, "boottime");
    if (line != NULL && sscanf(line, "boottime %lld %ld", &sec, &nsec) == 2) {
        *ret_ms = (int64_t)sec * 1000 + nsec / 1000000;
    }
    return 0;
}

static int parse_uuid(const char *text, uint8_t ret_id[16])
{
    size_t n = 0;

    while (n < 32) {
        char c = *text++;
        int v;

        if (c == '-') {
            continue;
        }
        if (c >= '0' && c <= '9') {
            v = c - '0';
        } else if (c >= 'a' && c <= 'f') {
            v = c - 'a' + 10;
        } else {
            return -1;
        }
        ret_id[n / 2] = (uint8_t)(ret_id[n / 2] << 4 | v);
        n++;
    }
    return 0;
}

/* These facts do not change while this process lives. A failed read is tried again at
 * the next call. */
static struct {
    pthread_mutex_t mutex;
    bool known;
    int64_t shift_ms;
    uint8_t id[16];
} boot = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool read_boot(void)
{
    char text[64];

    return read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text)) >=
               36 &&
           parse_uuid(text, boot.id) == 0 &&
           read_boottime_shift(&boot.shift_ms) == 0;
}

static bool know_boot(void)
{
    bool known = __atomic_load_n(&boot.known, __ATOMIC_ACQUIRE);

    if (!known) {
        (void)pthread_mutex_lock(&boot.mutex);
        known = boot.known || read_boot();
        __atomic_store_n(&boot.known, known, __ATOMIC_RELEASE);
        (void)pthread_mutex_unlock(&boot.mutex);
    }
    return known;
}

int idem__boot_read(int64_t *ret_ms, uint8_t ret_id[16])
{
    struct timespec ts;

    if (!know_boot() || clock_gettime(CLOCK_BOOTTIME, &ts) != 0) {
        return -1;
    }
    *ret_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 - boot.shift_ms;
    memcpy(ret_id, boot.id, sizeof(boot.id));
    return 0;
}

/* ---- The defaults of struct idem_host ------------------------------------ */

enum {
    ASK_EVERY_MS = 1000
};

/* Times after 2038 must work, also on a platform whose long has 32 bits. */
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

/* The daemon that keeps the clock right reports that to the kernel; ask the kernel once
 * a second at most. A kernel that refuses to answer counts as unsynchronised. */
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

int idem__host_clock(void *ctx, struct idem_clock_reading *ret_reading)
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
        host->clock = idem__host_clock;
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

/* ---- Installed files ------------------------------------------------------ */

static const char *const places[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian. */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* Amazon, Fedora. */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL. */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE. */
    "/etc/ssl/cert.pem",                                 /* Alpine. */
};

const char *idem__ca_file(const char *given, const char *built_in)
{
    size_t i;

    if (given != NULL || (built_in != NULL && access(built_in, R_OK) == 0)) {
        return given;
    }
    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], R_OK) == 0) {
            return places[i];
        }
    }
    return NULL;
}
