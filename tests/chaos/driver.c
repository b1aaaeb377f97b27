/* driver: machines that share a table, each with clocks and a journal of its own.
 * A machine is a process; it may be killed, and another one goes on from what it
 * left on its disk. */
#include "crowd.h"
#include "owner.h"

#include "ledger.h"

#include <idem/dynamodb.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: driver" CROWD_USAGE "           [--cold] [--naive]\n"
    "\n"
    "Each thread makes N calls. DIRECTORY gets the ledger (its lines: owner.h),\n"
    "the parts of the history, and each machine's journal. --kills: so many\n"
    "processes are killed, one every MS, and others go on until the last kill; then\n"
    "the machines are told to stop. --cold: a machine claims before it knows the service's\n"
    "time. --naive: takes no answer for \"not done\".\n";

enum {
    TIMEOUT_MS = 3000,
    IMPATIENT_MS = 150,
};

static int cold;
static int naive;

/* ---- Clocks ---- */

/* What is wrong with the clocks of a machine. */
struct clocks {
    int64_t wall_ms;
    int64_t boot_ms;
    int64_t ppm;
    uint8_t boot_id[16];
};

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int read_clocks(void *ctx, struct idem_clock_reading *ret_reading)
{
    const struct clocks *clocks = ctx;
    int64_t boot_ms = read_ms(CLOCK_BOOTTIME);

    ret_reading->boot_ms =
        boot_ms + boot_ms * clocks->ppm / 1000000 + clocks->boot_ms;
    ret_reading->wall_ms = read_ms(CLOCK_REALTIME) + clocks->wall_ms;
    memcpy(ret_reading->boot_id, clocks->boot_id, sizeof(clocks->boot_id));
    return 0;
}

/* Ten seconds off or more, either way, booted at other times, and not at the same pace. */
static struct clocks clocks_of(unsigned machine)
{
    struct clocks clocks = {
        .wall_ms = (machine % 2 == 0 ? -15000 : 10000) + (int64_t)machine * 500,
        .boot_ms = (int64_t)machine * 86400000,
        .ppm = (int64_t)(machine % 3) * 50 - 50,
    };

    memset(clocks.boot_id, (int)machine + 1, sizeof(clocks.boot_id));
    return clocks;
}

/* ---- A machine ---- */

static void in(const struct crowd *crowd, char path[4096], const char *name)
{
    if (snprintf(path, 4096, "%s/%s", crowd->into, name) >= 4096) {
        abort();
    }
}

static struct idem_journal *open_journal(const struct crowd *crowd,
                                         unsigned machine)
{
    struct idem_journal *journal;
    struct idem_error error;
    char path[4096];
    char name[40];

    (void)snprintf(name, sizeof(name), "state-%u", machine);
    in(crowd, path, name);
    if (idem_journal_open(path, /* create= */ true, &journal, &error) != 0) {
        fprintf(stderr, "driver: %s: %s\n", path, error.text);
        exit(1);
    }
    return journal;
}

/* Asks for nothing in particular until the service's time is known: DynamoDB's answers
 * are believed after a few, the first of PostgreSQL has it. */
static void warm_up(struct idem_store *store)
{
    struct idem_dynamodb_info info = IDEM_DYNAMODB_INFO_INIT;
    struct idem_answer *answer;

    do {
        if (idem_get(store, idem_str(""), idem_str("time"), &answer, NULL) ==
            0) {
            idem_answer_destroy(answer);
        }
    } while (idem_dynamodb_inspect(store, &info, NULL) == 0 &&
             !info.clock_known);
}

/* The machine of @place, for the @life-th process of all. */
static int live(const struct crowd *crowd, unsigned place, unsigned life)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct clocks clocks = clocks_of(place);
    struct owner owners[CROWD_THREADS_MAX] = {0};
    struct caller *callers[CROWD_THREADS_MAX];
    struct idem_journal *journal = open_journal(crowd, place);
    struct idem_store *store;
    struct idem_error error;
    char path[4096];
    char name[40];
    unsigned i;

    in(crowd, path, "ledger");
    ledger_open(path);
    /* The proxy knows its clients by their key. */
    (void)snprintf(name, sizeof(name), "MACHINE%u", life);
    (void)setenv("AWS_ACCESS_KEY_ID", name, 1);
    options.timeout_ms = naive ? IMPATIENT_MS : TIMEOUT_MS;
    options.host.ctx = &clocks;
    options.host.clock = read_clocks;
    if (idem_open(crowd->store, &options, &store, &error) != 0) {
        fprintf(stderr, "driver: %s: %s\n", crowd->store, error.text);
        return 1;
    }
    if (!cold) {
        warm_up(store);
    }
    owner_replay(store, journal, life * crowd->threads);
    for (i = 0; i < crowd->threads; i++) {
        callers[i] = &owners[i].caller;
        crowd_caller(crowd, life, i, store, callers[i]);
        callers[i]->lossy = true;
        owners[i].journal = journal;
        owners[i].cold = cold;
        owners[i].naive = naive;
    }
    crowd_threads(callers, crowd->threads, owner_run);
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {{"cold", no_argument, &cold, true},
                                          {"naive", no_argument, &naive, true},
                                          {NULL, 0, NULL, 0}};
    struct crowd crowd = {.processes = 2,
                          .threads = 4,
                          .calls = 100,
                          .keys = 2,
                          .every_ms = 100,
                          .seed = 1,
                          .until_killed = true,
                          .live = live};

    return crowd_main(argc, argv, &crowd, flags, usage);
}
