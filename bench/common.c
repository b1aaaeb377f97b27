/* Keys, times and processor time. */
#include "load.h"

#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LINE "One line of the result: sixty-four bytes that stand for a bill.."
#define FOUR LINE LINE LINE LINE
const char result[RESULT_LEN] = FOUR FOUR FOUR FOUR;

static uint64_t mix(uint64_t n)
{
    n += 0x9e3779b97f4a7c15ULL;
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ULL;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebULL;
    return n ^ (n >> 31);
}

void key_of(uint64_t stream, uint64_t n, char ret_key[KEY_LEN + 1])
{
    uint64_t a = mix(stream ^ mix(n));

    (void)snprintf(ret_key, KEY_LEN + 1, "order-%016llx-%016llx-%06llx",
                   (unsigned long long)a, (unsigned long long)mix(a),
                   (unsigned long long)(n & 0xffffff));
}

int64_t now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- Processor time ---- */

int64_t own_cpu_us(void)
{
    struct rusage r;

    (void)getrusage(RUSAGE_SELF, &r);
    return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 +
           r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

struct calls own_calls(void)
{
    struct calls calls = {0, 0};
    FILE *f = fopen("/proc/self/io", "r");
    char line[128];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "syscr: ", 7) == 0) {
            calls.reads = strtoll(line + 7, NULL, 10);
        } else if (strncmp(line, "syscw: ", 7) == 0) {
            calls.writes = strtoll(line + 7, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return calls;
}

long own_peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib;
}

/* Ticks of process @pid with the children that it has seen off, if it, or its
 * parent, is @server. */
static int64_t ticks_of(const char *pid, long server)
{
    unsigned long t[4] = {0};
    char path[300];
    char line[1024];
    const char *rest;
    long parent;
    FILE *f;
    int n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    f = fopen(path, "r");
    if (f == NULL) {
        return 0; /* Gone. */
    }
    if (fgets(line, sizeof(line), f) != NULL &&
        (rest = strrchr(line, ')')) != NULL) {
        n = sscanf(rest + 1,
                   " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu "
                   "%lu",
                   &parent, &t[0], &t[1], &t[2], &t[3]);
    }
    (void)fclose(f);
    if (n != 5 || (parent != server && atol(pid) != server)) {
        return 0;
    }
    return (int64_t)(t[0] + t[1] + t[2] + t[3]);
}

int64_t server_cpu_us(long pid)
{
    int64_t ticks = 0;
    struct dirent *entry;
    DIR *proc;

    if (pid == 0) {
        return 0;
    }
    proc = opendir("/proc");
    if (proc == NULL) {
        err(1, "/proc");
    }
    while ((entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            ticks += ticks_of(entry->d_name, pid);
        }
    }
    (void)closedir(proc);
    return ticks * (1000000 / sysconf(_SC_CLK_TCK));
}

/* ---- Times ---- */

enum {
    TIMES_MAX =
        1 << 15 /* 128 KiB for a caller: a long load shows idem's own. */
};

static void grow(struct times *times, size_t cap)
{
    if (cap > times->cap) {
        times->cap = cap > 2 * times->cap ? cap : 2 * times->cap;
        times->us = realloc(times->us, times->cap * sizeof(times->us[0]));
        if (times->us == NULL) {
            err(1, "times");
        }
    }
}

/* Of more than TIMES_MAX a part is kept, in the place of others; the longest is
 * first then. */
static void replace(struct times *times, uint32_t us)
{
    uint32_t longest;

    times->seen++;
    if (times->us[0] < us) {
        longest = us;
        us = times->us[0];
        times->us[0] = longest;
    }
    times->us[1 + times->seen * 2654435761u % (times->len - 1)] = us;
}

void times_add(struct times *times, int64_t ns)
{
    if (times->len >= TIMES_MAX) {
        replace(times, (uint32_t)(ns / 1000));
        return;
    }
    grow(times, times->len + 1);
    times->us[times->len++] = (uint32_t)(ns / 1000);
    times->seen++;
}

void times_append(struct times *times, const struct times *more)
{
    if (more->len > 0) {
        grow(times, times->len + more->len);
        memcpy(times->us + times->len, more->us,
               more->len * sizeof(more->us[0]));
        times->len += more->len;
        times->seen += more->seen;
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void times_sort(struct times *times)
{
    if (times->len > 0) {
        qsort(times->us, times->len, sizeof(times->us[0]), compare);
    }
}

uint32_t times_at(const struct times *times, double part)
{
    return times->len == 0
               ? 0
               : times->us[(size_t)(part * (double)(times->len - 1))];
}

void times_free(struct times *times)
{
    free(times->us);
    memset(times, 0, sizeof(*times));
}
