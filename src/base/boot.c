/* Which boot of the host this is, and the time since. */
#include "base/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* A time namespace shifts CLOCK_BOOTTIME; records of one host must agree. Only a
 * kernel without time namespaces has no such file. */
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

/* Facts that do not change while this process lives, once they could be
 * read. */
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
