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
    "usage: driver" CROWD_USAGE "           [--slow] [--cold]\n"
    "           [--naive] [--careless] [--hasty]\n"
    "\n"
    "Each thread makes N calls. DIRECTORY gets the ledger (its lines: owner.h),\n"
    "the parts of the history, and each machine's journal. --kills: so many\n"
    "processes are killed, one every MS, and others go on until the last kill; then\n"
    "the machines are told to stop. --pauses: so many are stopped likewise, for up to\n"
    "three leases. --slow: work takes up to most of a lease. --cold: a machine claims\n"
    "before it knows the service's time. --naive: takes no answer for \"not done\".\n"
    "--careless: never looks at its lease. --hasty: every other clock is ahead.\n";

enum {
    TIMEOUT_MS = 3000,
    IMPATIENT_MS = 150,
    /* Of a service's lease the last two seconds are margin. */
    LEASE_MS = 4000,
    AHEAD_MS = 1500,
};

static int slow;
static int cold;
static int naive;
static int careless;
static int hasty;

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
    if (hasty) { /* In the same boot. */
        clocks = (struct clocks){.boot_ms = machine % 2 * AHEAD_MS};
        clocks.boot_id[0] = 'h';
    }
    return clocks;
}

static bool is_file(const struct crowd *crowd)
{
    return strncmp(crowd->store, "sqlite:", 7) == 0;
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

/* Who is stopped with a file's lock keeps the others out for as long. */
static struct idem_store *open_store(const struct crowd *crowd,
                                     const struct idem_open_options *options)
{
    struct idem_store *store = NULL;
    struct idem_error error;
    int rc;

    do {
        rc = idem_open(crowd->store, options, &store, &error);
    } while (rc == IDEM_EUNAVAILABLE && crowd->pauses > 0);
    if (rc != 0) {
        fprintf(stderr, "driver: %s: %s\n", crowd->store, error.text);
    }
    return store;
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
    char path[4096];
    char name[40];
    unsigned i;

    in(crowd, path, "ledger");
    ledger_open(path);
    /* The proxy knows its clients by their key. */
    (void)snprintf(name, sizeof(name), "MACHINE%u", life);
    (void)setenv("AWS_ACCESS_KEY_ID", name, 1);
    options.timeout_ms = naive ? IMPATIENT_MS : TIMEOUT_MS;
    if (hasty || !is_file(crowd)) { /* Or one clock is that of all. */
        options.host.ctx = &clocks;
        options.host.clock = read_clocks;
    }
    store = open_store(crowd, &options);
    if (store == NULL) {
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
        owners[i].lease_ms = is_file(crowd) ? IDEM_LEASE_MIN_MS : LEASE_MS;
        owners[i].work_ms = slow ? IDEM_LEASE_MIN_MS * 3 / 4 : cold ? 100 : 5;
        owners[i].rest_ms = slow ? 150 : 10;
        owners[i].turn_ms = slow ? 2000 : 200;
        owners[i].cold = cold;
        owners[i].naive = naive;
        owners[i].careless = careless;
    }
    crowd_threads(callers, crowd->threads, owner_run);
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {
        {"slow", no_argument, &slow, true},
        {"cold", no_argument, &cold, true},
        {"naive", no_argument, &naive, true},
        {"careless", no_argument, &careless, true},
        {"hasty", no_argument, &hasty, true},
        {NULL, 0, NULL, 0},
    };
    struct crowd crowd = {.processes = 2,
                          .threads = 4,
                          .calls = 100,
                          .keys = 2,
                          .pause_ms = 3 * IDEM_LEASE_MIN_MS,
                          .every_ms = 100,
                          .seed = 1,
                          .until_killed = true,
                          .live = live};

    return crowd_main(argc, argv, &crowd, flags, usage);
}
