/* The scheduler: what happens next, and when. */
#include "client.h"
#include "faults.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "ledger.h"
#include "order.h"
#include "setup.h"
#include "swizzle.h"
#include "work.h"

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

static void choose_config(struct world *w, const struct forced *forced)
{
    static const unsigned by_keys[] = {60, 25, 15};
    static const unsigned by_level[] = {20, 40, 40};
    static const unsigned faults[] = {0, 10, 35};
    static const unsigned fates[] = {0, 60, 180};
    static const unsigned clocks[10] = {5, 60, 300};
    struct config *config = &w->config;
    unsigned level;

    config->mode =
        forced->mode >= 0 ? (enum mode)forced->mode : (enum mode)(w->seed & 1);
    config->class = forced->class >= 0 ? (enum class)forced->class
                                       : (enum class)(w->seed / 2 % CLASSES);
    config->clients = 2 + rng_below(&w->rng, CLIENTS_USUAL - 1);
    config->keys = 1 + rng_weighted(&w->rng, by_keys, KEYS_MAX);
    config->restarts = rng_below(&w->rng, 4);
    level = rng_weighted(&w->rng, by_level, 3);
    config->fault_permille = faults[level];
    config->fate_permille = fates[level];
    config->clock_permille = clocks[rng_below(&w->rng, 10)];
    if (rng_chance(&w->rng, 150)) {
        config->clock_at = 1 + rng_below(&w->rng, 60);
    }
    config->timeout_ms = rng_between(&w->rng, 300, 4000);
    config->by_wall = rng_chance(&w->rng, 400);
    config->clients = forced->clients > 0 ? forced->clients : config->clients;
    config->rounds_each = forced->rounds;
    if (forced->rounds > 0) { /* A long story, and a calmer one. */
        config->restarts += forced->rounds;
        config->fault_permille /= 5;
        config->fate_permille /= 5;
        config->clock_permille /= 5;
        config->timeout_ms += 1000;
    }
    config->steps =
        STEPS_MAX * (1 + config->rounds_each * config->clients / 10);
    work_choose(w);
    if (rng_chance(&w->aside, 250)) {
        config->force_permille = 500;
    }
    /* (Of a history only so much is known then that a long one has too many
     * orders.) */
    config->doubtful = config->mode == EMBEDDED && forced->rounds == 0 &&
                       rng_chance(&w->aside, 150);
    config->budgets = rng_chance(&w->budget, 300);
    config->replays = config->mode == EMBEDDED && forced->rounds == 0 &&
                      rng_chance(&w->memory, 80);
    if (config->replays) { /* One key, that is asked for and decided about. */
        config->keys = 1;
        config->rounds[0] += 100;
        config->rounds[4] += 100;
        config->ends[0] += 200;
        config->rest_ms = 20;
        config->decide_ms = 100; /* While others still ask. */
    }
    config->result_max = RESULT_USUAL;
    if (config->mode == DYNAMODB) {
        static const unsigned ttls[] = {0, 5, 1000};

        config->ttl_permille = ttls[rng_below(&w->rng, 3)];
        config->result_max =
            rng_chance(&w->rng, 100) ? RESULT_MAX : RESULT_USUAL;
    }
    if (config->mode == POSTGRES) {
        config->threads = rng_chance(&w->rng, 500);
    }
}

static void start_clients(struct world *w)
{
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        struct client *c = &w->clients[i];

        c->priority = order_priority(w);
        c->rounds = 1 + rng_below(&w->rng, 5);
        if (w->config.rounds_each > 0) {
            c->rounds = w->config.rounds_each;
        }
        c->rounds += w->config.replays ? 4 : 0;
        client_start(w, c, work_main);
    }
}

/* ---- Running ---- */

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

/* One step. False: nothing is to be done, now or later. */
static bool step(struct world *w)
{
    struct choice choices[CHOICES_MAX];
    struct choice chosen = {NULL, NULL};
    unsigned n;

    w->steps++;
    swizzle_go(w);
    n = order_gather(w, choices);
    if (n > 0) {
        chosen = order_choose(w, choices, n);
    }
    if (chosen.client != NULL) {
        client_resume(w, chosen.client);
    } else if (chosen.flight != NULL) {
        count_reordered(w, choices, n, chosen.flight);
        flight_step(w, chosen.flight);
    } else {
        int64_t next = order_next_time(w);

        if (next == INT64_MAX) {
            return false;
        }
        w->now = next;
        return true;
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

    setup_clear(w, seed, stats, live);
    choose_config(w, forced);
    setup_world(w);
    history_start();
    start_clients(w);
    order_start(w);

    run_with_faults(w);
    faults_end(w);
    run_to_rest(w);
    ledger_kept(w);
    if (!w->violation.found) {
        client_start(w, &w->clients[0], probe_main);
        run_to_rest(w);
    }
    check_leaks(w);
    history_end(w);
    setup_undo(w);

    stats->schedules++;
    stats->by_class[w->config.class]++;
    stats->killed[w->config.class] += w->violation.found;
    stats->steps += w->steps;
    stats->hash += w->trace.hash;
}
