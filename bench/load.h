/* Load on a store: callers that ask as fast as they are answered, and what that
 * costs. A target is a store under load; main() is in load.c. */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_LEN = 46,      /* Bytes of every key. */
    RESULT_LEN = 1024, /* Bytes of every result. */
    LEASE_MS = 60 * 1000,
    RETENTION_MS = 24 * 3600 * 1000
};

/* Times of operations, and their percentiles. */
struct times {
    uint32_t *us;
    size_t len;
    size_t cap;
    uint64_t
        seen; /* Of which us has no more than a part if they are very many. */
};
void times_add(struct times *times, int64_t ns);
void times_append(struct times *times, const struct times *more);
void times_sort(struct times *times);
/* Of sorted ones; @part from 0 to 1. */
uint32_t times_at(const struct times *times, double part);
void times_free(struct times *times);

/* Whatever goes wrong ends the program with a sentence. */
struct target {
    const char *name;
    /* Shared by all callers. @where is a file, a socket or a URL. */
    void *(*open)(const char *where);
    void (*close)(void *shared);
    /* Makes it empty; NULL: a file that is not there is empty. */
    void (*clear)(void *shared);
    /* What one caller has for itself: a connection, for example. */
    void *(*connect)(void *shared);
    void (*disconnect)(void *caller);
    /* A new operation: the key is claimed, durably, and then its result is
     * recorded by its owner, durably. */
    void (*run_new)(void *caller, const char *key);
    /* New operations, each of which ends the one before it: what connect_next gives
     * is one caller, whose last operation disconnect_next ends. NULL: it cannot. */
    void *(*connect_next)(void *shared);
    void (*run_next)(void *caller, const char *key);
    void (*disconnect_next)(void *caller);
    /* A duplicate: the recorded result comes back. */
    void (*run_replay)(void *caller, const char *key);
    /* Records the outcomes of key_of(0, @from) and the following, with @len bytes
     * each, fast and without regard for a power cut. */
    void (*fill)(void *shared, uint64_t from, uint64_t count, size_t len);
    /* A new operation in one transaction, which is durable at its end alone. NULL: it
     * cannot. */
    void (*run_held)(void *caller, const char *key);
    /* New operations, @in_flight at a time, from this one thread; those between
     * the two points are counted. NULL: it cannot. */
    void (*fly)(void *shared, unsigned in_flight, int64_t from_ns,
                int64_t until_ns, struct times *times);
    /* Deletes what is past its retention, until @most records are gone or
     * @seconds are over, with calls for @each; NULL: it cannot. */
    void (*purge)(const char *where, uint64_t most, double seconds,
                  uint64_t each);
};

/* Of ten records that are filled in, so many are past their retention after so
 * long; the others much later. 0: all are alike. Of idem alone. */
extern unsigned short_of_ten;
extern int64_t short_ms;

/* Each program has one. */
extern const struct target target;

/* The key with number @n of @stream, with a NUL; different for each, and in no
 * order. */
void key_of(uint64_t stream, uint64_t n, char ret_key[KEY_LEN + 1]);

/* The result that everybody records. */
extern const char result[RESULT_LEN];

/* How much of it the recorded outcomes have, and how long they are kept. */
extern size_t recorded_len;
extern int64_t retention_ms;

/* False: nothing is flushed to the disk (flushes.c). */
extern bool flushes;

/* CLOCK_MONOTONIC. */
int64_t now_ns(void);

/* What this process, and the server @pid (0: none) with its children, have used
 * of the processors. */
int64_t own_cpu_us(void);
int64_t server_cpu_us(long pid);

/* How often this process has read from a file and written to one. */
struct calls {
    int64_t reads;
    int64_t writes;
};
struct calls own_calls(void);

/* The most memory that this process has had, in KiB. */
long own_peak_kib(void);

#endif
