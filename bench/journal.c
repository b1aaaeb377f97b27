/* A journal that holds much: the CPU of a put, a lookup, a replay and a slice of a
 * catch-up beside @--records other entries, and the puts in a second of 1 and of 32
 * threads, each flushed and then removed, as one JSON object. DIR stays, for more to
 * be tried beside it: idem.db and journal. */
#include <err.h>
#include <getopt.h>
#include <idem.h>
#include <idem/journal.h>
#include <idem/sqlite.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 64,
    SLICE = 16,
    THREADS = 32,
    RATE_MS = 5000
};

/* While the journal is filled its flushes are left out, as in bench-idem. */
static bool flushes = true;

int fdatasync(int fd)
{
    return flushes ? (int)syscall(SYS_fdatasync, fd) : 0;
}

int fsync(int fd)
{
    return flushes ? (int)syscall(SYS_fsync, fd) : 0;
}

static struct idem_error error;

static void check(int rc, const char *doing)
{
    if (rc != 0) {
        errx(1, "%s: %s: %s", doing, idem_error_name(rc), error.text);
    }
}

/* What is measured. */
struct bench {
    struct idem_store *store;
    struct idem_journal *journal;
    char result[128];
};

static void open_all(struct bench *b, const char *directory)
{
    char path[4096];

    (void)mkdir(directory, 0700);
    (void)idem_sqlite_disable_memory_count();
    (void)snprintf(path, sizeof(path), "sqlite:%s/idem.db", directory);
    check(idem_open(path, NULL, &b->store, &error), path);
    (void)snprintf(path, sizeof(path), "%s/journal", directory);
    check(idem_journal_open(path, /* create= */ true, &b->journal, &error),
          path);
    memset(b->result, 'x', sizeof(b->result));
}

static struct idem_slice key_of(char buf[32], const char *kind, unsigned long n)
{
    (void)snprintf(buf, 32, "%s-%lu", kind, n);
    return idem_str(buf);
}

static struct idem_attempt *begin(const struct bench *b, const char *kind,
                                  unsigned long n)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    char key[32];

    request.key = key_of(key, kind, n);
    request.on_expired_lease = IDEM_HOLD;
    request.lease_ms = INT64_C(3600) * 1000;
    check(idem_begin(b->store, &request, &attempt, &error), "begin");
    if (attempt->verdict != IDEM_STARTED) {
        errx(1, "%s: the directory was used before: name a new one", key);
    }
    return attempt;
}

static struct idem_journal_entry *put(const struct bench *b,
                                      const struct idem_attempt *attempt)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result = {.bytes = idem_bytes(b->result, sizeof(b->result))},
    };
    struct idem_journal_entry *entry;

    check(idem_journal_put(b->journal, b->store, attempt, &outcome, &entry,
                           &error),
          "put");
    return entry;
}

static void put_many(const struct bench *b, const char *kind, unsigned long len)
{
    unsigned long n;

    flushes = false;
    for (n = 0; n < len; n++) {
        struct idem_attempt *attempt = begin(b, kind, n);

        idem_journal_leave(put(b, attempt));
        idem_attempt_destroy(attempt);
    }
    flushes = true;
}

static double cpu_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void print(const char *name, double us, unsigned rounds)
{
    (void)printf(", \"%s_us\": %.1f", name, us / rounds);
}

static void measure_put(const struct bench *b)
{
    double put_us = 0;
    double remove_us = 0;
    unsigned i;

    for (i = 0; i < ROUNDS; i++) {
        struct idem_attempt *attempt = begin(b, "put", i);
        struct idem_journal_entry *entry;
        double us = cpu_us();

        entry = put(b, attempt);
        put_us += cpu_us() - us;
        us = cpu_us();
        idem_journal_remove(entry);
        remove_us += cpu_us() - us;
        idem_attempt_destroy(attempt);
    }
    print("put", put_us, ROUNDS);
    print("remove", remove_us, ROUNDS);
}

static int count(void *ctx, const struct idem_journal_info *info,
                 const struct idem_error *why)
{
    unsigned *n = ctx;

    (void)why;
    return info->state == IDEM_JOURNAL_RECORDED && ++*n == SLICE;
}

/* What waits for one record, where nothing does and where one outcome does. */
static void measure_record(const struct bench *b, const char *name,
                           const char *kind, unsigned want)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    uint8_t id[IDEM_ID_LEN];
    double us = cpu_us();
    unsigned n = 0;
    char key[32];
    unsigned i;

    filter.id = id;
    for (i = 0; i < ROUNDS; i++) {
        check(idem_id(idem_str(""), key_of(key, kind, i), id), "id");
        n = 0;
        check(idem_journal_replay(b->journal, b->store, &filter, count, &n,
                                  &error),
              "replay");
        if (n != want) {
            errx(1, "%s: %u outcomes were recorded in place of %u", key, n,
                 want);
        }
    }
    print(name, cpu_us() - us, ROUNDS);
}

static void measure_slice(const struct bench *b)
{
    double us = cpu_us();
    unsigned n = 0;

    check(idem_journal_catch_up(b->journal, b->store, count, &n, &error),
          "catch up");
    us = cpu_us() - us;
    print("slice", us, 1);
    (void)printf(", \"slice\": %u", n);
}

/* One of the threads, with an attempt of its own. */
struct putter {
    const struct bench *bench;
    struct idem_attempt *attempt;
    pthread_t thread;
    unsigned puts;
};

static double now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void *put_on(void *ctx)
{
    struct putter *putter = ctx;
    double until_ms = now_ms() + RATE_MS;

    while (now_ms() < until_ms) {
        idem_journal_remove(put(putter->bench, putter->attempt));
        putter->puts++;
    }
    return NULL;
}

static void measure_rate(const struct bench *b, const char *kind, unsigned len)
{
    struct putter putters[THREADS];
    double began_ms;
    double puts = 0;
    unsigned i;

    for (i = 0; i < len; i++) {
        putters[i] = (struct putter){.bench = b, .attempt = begin(b, kind, i)};
    }
    began_ms = now_ms();
    for (i = 0; i < len; i++) {
        if (pthread_create(&putters[i].thread, NULL, put_on, &putters[i]) !=
            0) {
            errx(1, "a thread");
        }
    }
    for (i = 0; i < len; i++) {
        (void)pthread_join(putters[i].thread, NULL);
        puts += putters[i].puts;
        idem_attempt_destroy(putters[i].attempt);
    }
    (void)printf(", \"puts_per_s_%u\": %.0f", len,
                 puts * 1e3 / (now_ms() - began_ms));
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"records", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    unsigned long records = 1000;
    struct rusage usage;
    struct bench b;
    int option;

    while ((option = getopt_long(argc, argv, "n:", options, NULL)) == 'n') {
        records = strtoul(optarg, NULL, 10);
    }
    if (option != -1 || optind != argc - 1) {
        errx(1, "usage: bench-journal DIR [--records N]");
    }
    open_all(&b, argv[optind]);
    put_many(&b, "wait", records);
    (void)printf("{\"records\": %lu", records);
    measure_put(&b);
    measure_record(&b, "lookup", "absent", 0);
    put_many(&b, "told", ROUNDS);
    measure_record(&b, "replay", "told", 1);
    measure_slice(&b);
    measure_rate(&b, "one", 1);
    measure_rate(&b, "many", THREADS);
    idem_journal_close(b.journal);
    idem_close(b.store);
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf(", \"memory_kib\": %ld}\n", usage.ru_maxrss);
    return 0;
}
