/* The scheduler: what happens next, and when. */
#include "client.h"
#include "faults.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "table.h"
#include "work.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    STEPS_MAX = 600,
    QUIET_STEPS_MAX = 6000
};

void violate(struct world *world, const char *id, const char *format, ...)
{
    struct violation *v = &world->violation;
    va_list args;

    if (v->found || world->unjudged) {
        return;
    }
    v->found = true;
    (void)snprintf(v->id, sizeof(v->id), "%s", id);
    va_start(args, format);
    (void)vsnprintf(v->text, sizeof(v->text), format, args);
    va_end(args);
}

/* ---- Setting up ---- */

static void choose_config(struct world *w, const struct forced *forced)
{
    static const unsigned by_keys[] = {60, 25, 15};
    static const unsigned by_level[] = {20, 40, 40};
    static const unsigned faults[] = {0, 10, 35};
    static const unsigned fates[] = {0, 60, 180};
    struct config *config = &w->config;
    unsigned level;

    config->mode =
        forced->mode >= 0 ? (enum mode)forced->mode : (enum mode)(w->seed & 1);
    config->class = (enum class)rng_below(&w->rng, CLASSES);
    config->clients = 2 + rng_below(&w->rng, CLIENTS_USUAL - 1);
    config->keys = 1 + rng_weighted(&w->rng, by_keys, KEYS_MAX);
    config->restarts = rng_below(&w->rng, 4);
    level = rng_weighted(&w->rng, by_level, 3);
    config->fault_permille = faults[level];
    config->fate_permille = fates[level];
    config->clock_permille = rng_chance(&w->rng, 150) ? 5 : 0;
    config->timeout_ms = rng_between(&w->rng, 1000, 4000);
    config->by_wall = rng_chance(&w->rng, 400);
    config->clients = forced->clients > 0 ? forced->clients : config->clients;
    config->rounds = forced->rounds;
    if (forced->rounds > 0) { /* A long story, and a calmer one. */
        config->restarts += forced->rounds;
        config->fault_permille /= 5;
        config->fate_permille /= 5;
    }
    config->steps = STEPS_MAX * (1 + config->rounds * config->clients / 10);
}

static void set_up_keys(struct world *w)
{
    /* Two of them read the same when they are put side by side. */
    static struct name names[KEYS_MAX] = {
        {{"a", 1}, {"bc", 2}, {0}},
        {{"ab", 2}, {"c", 1}, {0}},
        {{"", 0}, {"abc", 3}, {0}},
    };
    unsigned i;

    for (i = 0; i < KEYS_MAX; i++) {
        struct key *key = &w->keys[i];

        if (names[i].id[0] == 0) {
            (void)idem_id(names[i].scope, names[i].key, names[i].id);
        }
        key->rows[0].rev = 0;
        key->rows[0].view.exists = false;
        memset(&key->at, 0,
               offsetof(struct key, starts) - offsetof(struct key, at));
        key->name = &names[i];
        key->no = (int)i;
        key->starts_len = 0;
        key->completions_len = 0;
        memset(&key->seen, 0, sizeof(*key) - offsetof(struct key, seen));
    }
}

static void set_up_hosts(struct world *w)
{
    bool remote = w->config.mode == REMOTE;
    unsigned i;

    for (i = 0; i < (remote ? w->config.clients : 1); i++) {
        struct host *host = &w->hosts[i];
        int64_t off_ms = remote ? rng_between(&w->rng, -HOUR_MS, HOUR_MS) : 0;

        host_boot(w, host, off_ms);
        host->drift_ppm = remote ? rng_between(&w->rng, -200, 200) : 0;
    }
}

static void set_up(struct world *w, const struct forced *forced)
{
    unsigned i;

    w->now = 1700000000000 + rng_between(&w->rng, 0, DAY_MS);
    choose_config(w, forced);
    set_up_keys(w);
    set_up_hosts(w);
    if (w->config.mode == EMBEDDED) {
        embedded_open(w);
    }
    for (i = 0; i < FLIGHTS_MAX; i++) {
        w->flights[i].stage = FLIGHT_FREE;
    }
    for (i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &w->clients[i];

        c->world = w;
        c->no = (int)i;
        c->host = &w->hosts[w->config.mode == REMOTE ? i : 0];
        c->state = CLIENT_GONE;
        c->priority = rng_below(&w->rng, 1000);
        c->rounds = 1 + rng_below(&w->rng, 5);
        c->rounds = w->config.rounds > 0 ? w->config.rounds : c->rounds;
        if (i < w->config.clients) {
            client_start(w, c, work_main);
        }
    }
}

/* ---- Choosing ---- */

enum {
    CHOICES_MAX = CLIENTS_MAX + FLIGHTS_MAX
};

struct choice {
    struct client *client; /* Or: */
    struct flight *flight;
};

static unsigned gather(struct world *w, struct choice choices[CHOICES_MAX])
{
    unsigned n = 0;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        if (client_ready(w, &w->clients[i])) {
            choices[n++] = (struct choice){.client = &w->clients[i]};
        }
    }
    for (i = 0; i < w->flights_len; i++) {
        if (flight_ready(w, &w->flights[i])) {
            choices[n++] = (struct choice){.flight = &w->flights[i]};
        }
    }
    return n;
}

static unsigned priority(const struct choice *choice)
{
    const struct client *c =
        choice->client != NULL ? choice->client : choice->flight->client;

    return c != NULL ? c->priority : 0;
}

static unsigned choose(struct world *w, const struct choice *choices,
                       unsigned n)
{
    unsigned best = rng_below(&w->rng, n);
    unsigned i;

    if (w->config.class != CLASS_PRIORITY || rng_chance(&w->rng, 100)) {
        return best;
    }
    if (rng_chance(&w->rng, 20)) {
        struct client *c = &w->clients[rng_below(&w->rng, w->config.clients)];

        c->priority = rng_below(&w->rng, 1000);
    }
    for (i = 0; i < n; i++) {
        if (priority(&choices[i]) > priority(&choices[best])) {
            best = i;
        }
    }
    return best;
}

static void count_reordered(struct world *w, const struct choice *choices,
                            unsigned n, const struct flight *chosen)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        if (choices[i].flight != NULL && choices[i].flight->no < chosen->no) {
            w->stats->faults[FAULT_REORDERED]++;
            return;
        }
    }
}

/* ---- Time ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something will be ready; INT64_MAX: never. */
static int64_t next_time(const struct world *w)
{
    int64_t next = INT64_MAX;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        const struct client *c = &w->clients[i];

        if (c->state != CLIENT_GONE) {
            int64_t at = c->state == CLIENT_READY ? w->now : c->wake_at;

            next = sooner(next, later(at, c->paused_until));
        }
    }
    for (i = 0; i < w->flights_len; i++) {
        const struct flight *f = &w->flights[i];

        if (f->stage != FLIGHT_FREE && f->stage != FLIGHT_LATENT) {
            int64_t at = later(f->due_at, w->now + 1);

            next = sooner(next, f->client == NULL
                                    ? at
                                    : later(at, f->client->paused_until));
        }
    }
    return next;
}

/* ---- Running ---- */

/* One step. False: nothing is to be done, now or later. */
static bool step(struct world *w)
{
    struct choice choices[CHOICES_MAX];
    unsigned n = gather(w, choices);
    unsigned at;

    w->steps++;
    if (n == 0) {
        int64_t next = next_time(w);

        if (next == INT64_MAX) {
            return false;
        }
        w->now = later(next, w->now);
        return true;
    }
    at = choose(w, choices, n);
    if (choices[at].client != NULL) {
        client_resume(w, choices[at].client);
    } else {
        count_reordered(w, choices, n, choices[at].flight);
        flight_step(w, choices[at].flight);
    }
    w->now += rng_between(&w->rng, 0, rng_chance(&w->rng, 300) ? 30 : 2);
    return true;
}

static void run_with_faults(struct world *w)
{
    while (!w->violation.found && w->steps < w->config.steps) {
        if (rng_chance(&w->rng, w->config.fault_permille)) {
            faults_strike(w);
        }
        if (w->config.fault_permille > 0 && rng_chance(&w->rng, 15)) {
            (void)faults_restart(w);
        }
        if (!step(w) && !faults_restart(w)) {
            return;
        }
    }
}

static void run_to_rest(struct world *w)
{
    unsigned until = w->steps + QUIET_STEPS_MAX;

    while (!w->violation.found && step(w)) {
        if (w->steps > until) {
            violate(w, "I21", "it does not come to rest");
        }
    }
}

static void check_leaks(struct world *w)
{
    if (!w->violation.found && w->heap.blocks != 0) {
        violate(w, "LEAK", "operations leave %zu blocks behind",
                w->heap.blocks);
    }
}

void world_run(struct world *world, uint64_t seed, const struct forced *forced,
               struct stats *stats, bool live)
{
    struct world *w = world;

    memset(&w->quiet, 0,
           offsetof(struct world, hosts) - offsetof(struct world, quiet));
    memset(&w->flights_len, 0,
           offsetof(struct world, calls) - offsetof(struct world, flights_len));
    memset(&w->calls_len, 0, sizeof(*w) - offsetof(struct world, calls_len));
    w->seed = seed;
    w->rng.state = seed * 0x2545f4914f6cdd1dULL + 1;
    w->stats = stats;
    w->violation.found = false;
    trace_start(&w->trace, seed, live);
    heap_use(&w->heap);
    set_up(w, forced);
    history_start();

    run_with_faults(w);
    faults_end(w);
    run_to_rest(w);
    if (!w->violation.found) {
        client_start(w, &w->clients[0], probe_main);
        run_to_rest(w);
    }
    check_leaks(w);
    history_end(w);

    stats->schedules++;
    stats->steps += w->steps;
    stats->hash += w->trace.hash;
}
