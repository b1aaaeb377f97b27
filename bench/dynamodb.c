/* Operations at a DynamoDB table, and what they cost the client.
 *
 * Usage: bench-dynamodb CLIENT WHERE RESULT
 *
 * RESULT is a file with the result that each operation records. Each line of
 * standard input is work: "new|dup IN_FLIGHT FROM KEYS OPS"; each is answered by
 * a line of JSON with the CPU and wall time, and the allocations, of all of it.
 */
#include "dynamodb.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* ---- Allocations ---- */

/* glibc's own functions behind ours: whoever allocates in this process comes
 * through here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static uint64_t allocations;

static void count(void)
{
    (void)__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count();
    return __libc_realloc(p, size);
}

/* ---- Work ---- */

void name_of(uint64_t n, char ret_name[NAME_MAX_LEN])
{
    (void)snprintf(ret_name, NAME_MAX_LEN, "order-%020llu",
                   (unsigned long long)n);
}

static int64_t cpu_us(void)
{
    struct rusage r;

    (void)getrusage(RUSAGE_SELF, &r);
    return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 +
           r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

static int64_t wall_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void do_work(const struct client *client, const struct work *work)
{
    uint64_t before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    int64_t wall = wall_us();
    int64_t cpu = cpu_us();

    client->run(work);
    cpu = cpu_us() - cpu;
    wall = wall_us() - wall;
    before = __atomic_load_n(&allocations, __ATOMIC_RELAXED) - before;
    printf("{\"cpu_us\": %lld, \"wall_us\": %lld, \"allocations\": %llu}\n",
           (long long)cpu, (long long)wall, (unsigned long long)before);
    (void)fflush(stdout);
}

static char *read_whole(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "r");
    size_t len;

    if (f == NULL) {
        err(1, "%s", path);
    }
    len = fread(text, 1, sizeof(text) - 1, f);
    text[len] = '\0';
    (void)fclose(f);
    return text;
}

static const struct client *find(const char *name)
{
    static const struct client *const all[] = {
        &client_idem,
        &client_idem_threads,
        &client_raw,
    };
    size_t i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    errx(64, "there is no client %s", name);
}

int main(int argc, char **argv)
{
    const struct client *client;
    struct work work;
    char line[200];
    char what[8];

    if (argc != 4) {
        errx(64, "usage: bench-dynamodb CLIENT WHERE RESULT");
    }
    client = find(argv[1]);
    client->open(argv[2], read_whole(argv[3]));
    while (fgets(line, sizeof(line), stdin) != NULL) {
        unsigned long long from, keys, ops;

        if (sscanf(line, "%7s %u %llu %llu %llu", what, &work.in_flight, &from,
                   &keys, &ops) != 5 ||
            work.in_flight < 1 || work.in_flight > IN_FLIGHT_MAX || keys < 1) {
            errx(64, "no work: %s", line);
        }
        work.fresh = strcmp(what, "new") == 0;
        work.from = from;
        work.keys = keys;
        work.ops = ops;
        do_work(client, &work);
    }
    client->close();
    return 0;
}
