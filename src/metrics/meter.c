/* Implements meters: counts to which all processes of a host add. */
#include "metrics/names.h"

#include "base/heap.h"
#include "contract/store.h"
#include "core/error.h"
#include "store/shared/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "IDEMMTR1"

enum {
    FILE_LEN = 4096,
    PLACES = 32,
    SUM_AT = 20, /* Of the places of a call. */
};

/* The file; see <idem/metrics.h>. */
struct page {
    char magic[8];
    uint64_t spare[7];
    uint64_t counters[PLACES];
    uint64_t errors[PLACES];
    uint64_t calls[8][PLACES];
    uint64_t rest[184];
};

_Static_assert(sizeof(struct page) == FILE_LEN, "the layout of the file");
_Static_assert(IDEM__COUNTERS <= (int)PLACES, "there is a place for each");
_Static_assert(IDEM_METRICS_BUCKETS <= (int)SUM_AT, "the sum is after them");

struct idem_meter {
    struct page *page;
};

static bool has_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[4096] = ".";
    struct stat st;

    if (slash != NULL) {
        (void)snprintf(directory, sizeof(directory), "%.*s/",
                       (int)(slash - path), path);
    }
    return stat(directory, &st) == 0;
}

static int cannot(struct idem_error *error, const char *path)
{
    if (errno == ENOENT || errno == ENOTDIR) {
        return idem__error(
            error, IDEM_ENOTFOUND,
            has_directory(path)
                ? "no meter in %.100s: its first user creates it"
                : "cannot create the meter %.100s: create its directory first",
            path);
    }
    return idem__error(error, idem__error_code_of(errno),
                       "cannot open the meter %.100s: %s", path,
                       strerror(errno));
}

/* Prepares a new file, or checks an old one. Two processes may both prepare it without
 * a lock, because they write the same bytes. */
static int prepare(int fd, const char *path, struct idem_error *error)
{
    char magic[8] = "";
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return cannot(error, path);
    }
    if (!S_ISREG(st.st_mode)) {
        return idem__error(error, IDEM_EDENIED,
                           "the meter %.100s is not a regular file", path);
    }
    if (st.st_size == 0 &&
        (ftruncate(fd, FILE_LEN) != 0 || pwrite(fd, MAGIC, 8, 0) != 8)) {
        return cannot(error, path);
    }
    if (st.st_size != 0 &&
        (st.st_size != FILE_LEN || pread(fd, magic, 8, 0) != 8 ||
         (memcmp(magic, MAGIC, 8) != 0 &&
          memcmp(magic, "\0\0\0\0\0\0\0\0", 8) != 0))) {
        return idem__error(error, IDEM_ECONFIG,
                           "%.100s is not a meter, or is one of a newer idem",
                           path);
    }
    return 0;
}

static int map_file(const char *path, unsigned flags, void **ret_page,
                    struct idem_error *error)
{
    bool readonly = (flags & IDEM_METER_READONLY) != 0;
    int how = (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW;
    int fd;
    int rc;

    if ((flags & IDEM_METER_CREATE) != 0) {
        how |= O_CREAT;
    }
    fd = open(path, how, 0600);
    if (fd < 0) {
        return cannot(error, path);
    }
    rc = prepare(fd, path, error);
    if (rc == 0) {
        *ret_page =
            mmap(NULL, FILE_LEN, readonly ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_SHARED, fd, 0);
        rc = *ret_page == MAP_FAILED ? cannot(error, path) : 0;
    }
    (void)close(fd);
    return rc;
}

int idem_meter_open(const char *path, unsigned flags,
                    struct idem_meter **ret_meter, struct idem_error *ret_error)
{
    struct idem_meter *meter = idem__alloc(sizeof(*meter));
    void *page;
    int rc = 0;

    if (meter == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    if (path != NULL) {
        rc = map_file(path, flags, &page, ret_error);
    } else {
        page = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        rc = page == MAP_FAILED ? idem__error_plain(ret_error, IDEM_ENOMEM) : 0;
    }
    if (rc != 0) {
        idem__free(meter);
        return rc;
    }
    meter->page = page;
    *ret_meter = meter;
    return 0;
}

void idem_meter_close(struct idem_meter *meter)
{
    if (meter != NULL) {
        (void)munmap(meter->page, FILE_LEN);
        idem__free(meter);
    }
}

static void add(uint64_t *to, uint64_t n)
{
    if (n != 0) {
        (void)__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
    }
}

static enum idem_call call_of(enum idem_verb verb)
{
    switch (verb) {
    case IDEM_OP_BEGIN:
        return IDEM_CALL_BEGIN;
    case IDEM_OP_END:
        return IDEM_CALL_END;
    case IDEM_OP_RENEW:
        return IDEM_CALL_RENEW;
    case IDEM_OP_EXPIRE:
    case IDEM_OP_GET:
    case IDEM_OP_LIST:
    case IDEM_OP_IMPORT:
    case IDEM_OP_RESOLVE:
    case IDEM_OP_PURGE:
    case IDEM_OP_COUNT:
    case IDEM_OP_LIMIT:
    case IDEM_OP_MOVE:
        break;
    }
    return IDEM_CALL_OTHER;
}

static size_t bucket_of(int64_t us)
{
    size_t i = 0;

    while (i < IDEM_METRICS_BUCKETS - 1 && us > idem__bucket_us[i]) {
        i++;
    }
    return i;
}

void idem_meter_observe(void *ctx, const struct idem_op *op, int64_t took_us)
{
    struct page *page = ((struct idem_meter *)ctx)->page;
    uint64_t *call = page->calls[call_of(op->verb)];
    struct idem__tally tally = {{0}};
    int code = -op->error.code;
    size_t i;

    idem__tally_op(&tally, op);
    for (i = 0; i < IDEM__COUNTERS; i++) {
        add(&page->counters[i], tally.n[i]);
    }
    if (code > 0 && code < IDEM_METRICS_ERRORS) {
        add(&page->errors[code], 1);
    }
    add(&call[bucket_of(took_us)], 1);
    add(&call[SUM_AT], took_us > 0 ? (uint64_t)took_us : 0);
}

static uint64_t get(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

void idem_meter_read(const struct idem_meter *meter,
                     struct idem_metrics *metrics)
{
    const struct page *page = meter->page;
    size_t i;
    size_t k;

    for (i = 1; i < IDEM_METRICS_ERRORS; i++) {
        metrics->errors[i] += get(&page->errors[i]);
    }
    for (i = 0; i < IDEM_CALLS; i++) {
        for (k = 0; k < IDEM_METRICS_BUCKETS; k++) {
            metrics->buckets[i][k] += get(&page->calls[i][k]);
        }
        metrics->sum_us[i] += get(&page->calls[i][SUM_AT]);
    }
    metrics->has_calls = true;
    if (!metrics->has_counters) {
#define IDEM__X(name)                                                          \
    metrics->counters.name = get(&page->counters[IDEM__COUNTER_##name]);
        IDEM__COUNTER_MAP(IDEM__X)
#undef IDEM__X
        metrics->has_counters = true;
    }
}
