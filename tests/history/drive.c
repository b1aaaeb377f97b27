/* drive: real processes and threads on a real store, each of which writes down its answers;
 * check decides whether these can be true. */
#include "any.h"
#include "crowd.h"

#include <idem/dynamodb.h>
#include <idem/postgres.h>

#include <string.h>

static const char usage[] =
    "usage: drive" CROWD_USAGE "           [--copies]\n"
    "\n"
    "Each thread makes N calls and writes a part of the history, for\n"
    "`check --merge DIRECTORY/history-*`. --kills: so many processes are killed on\n"
    "the way, and others started in their place. --copies: the store may send a\n"
    "request more than once.\n";

static int copies;

/* The shortest lease of @store, a URL. */
static int64_t lease_min_ms(const char *store)
{
    return strncmp(store, "postgres", 8) == 0   ? IDEM_POSTGRES_LEASE_MIN_MS
           : strncmp(store, "dynamodb", 8) == 0 ? IDEM_DYNAMODB_LEASE_MIN_MS
                                                : IDEM_LEASE_MIN_MS;
}

static int live(const struct crowd *crowd, unsigned place, unsigned life)
{
    struct any anys[CROWD_THREADS_MAX] = {0};
    struct caller *callers[CROWD_THREADS_MAX];
    struct idem_store *store;
    struct idem_error error;
    unsigned i;

    (void)place;
    if (idem_open(crowd->store, NULL, &store, &error) != 0) {
        fprintf(stderr, "drive: %s: %s\n", crowd->store, error.text);
        return 1;
    }
    for (i = 0; i < crowd->threads; i++) {
        callers[i] = &anys[i].caller;
        crowd_caller(crowd, life, i, store, callers[i]);
        callers[i]->writer.copies = copies;
        anys[i].history = crowd->seed;
        anys[i].lease_min_ms = lease_min_ms(crowd->store);
    }
    crowd_threads(callers, crowd->threads, any_run);
    idem_close(store);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {{"copies", no_argument, &copies,
                                           true},
                                          {NULL, 0, NULL, 0}};
    struct crowd crowd = {.processes = 1,
                          .threads = 1,
                          .calls = 200,
                          .keys = 3,
                          .every_ms = 400,
                          .seed = 1,
                          .live = live};

    return crowd_main(argc, argv, &crowd, flags, usage);
}
