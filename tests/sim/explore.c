/* Paths, and the set of states. */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

void explore_init(struct explore *e, unsigned faults_max, unsigned delays_max)
{
    memset(e, 0, sizeof(*e));
    e->faults_max = faults_max;
    e->delays_max = delays_max;
    e->met_cap = 1 << 16;
    e->met = calloc(e->met_cap, sizeof(*e->met));
    if (e->met == NULL) {
        abort();
    }
}

void explore_finish(struct explore *e)
{
    free(e->met);
    free(e->steps);
    e->met = NULL;
    e->steps = NULL;
}

bool explore_next(struct explore *e)
{
    unsigned last;

    if (e->started) {
        while (e->path_len > 0 &&
               e->chosen[e->path_len - 1] + 1 == e->options[e->path_len - 1]) {
            e->path_len--;
        }
        if (e->path_len == 0) {
            return false;
        }
        last = e->path_len - 1;
        e->chosen[last]++;
    }
    e->started = true;
    e->at = 0;
    e->faults = 0;
    e->delays = 0;
    e->last_state = 0;
    e->executions++;
    return true;
}

unsigned explore_choose(struct explore *e, unsigned n)
{
    if (n <= 1) {
        return 0;
    }
    if (e->at == e->path_len) {
        if (e->path_len == PATH_MAX_LEN) {
            e->too_long = true;
            return 0;
        }
        e->chosen[e->path_len] = 0;
        e->options[e->path_len] = (uint8_t)n;
        e->path_len++;
        e->choices++;
        e->longest = e->path_len > e->longest ? e->path_len : e->longest;
    }
    return e->chosen[e->at++];
}

bool explore_may_fault(const struct explore *e)
{
    return e->faults < e->faults_max;
}

unsigned explore_fault(struct explore *e, unsigned n)
{
    unsigned chosen = explore_may_fault(e) ? explore_choose(e, n) : 0;

    e->faults += chosen != 0;
    return chosen;
}

/* ---- States ---- */

static struct met *place_of(struct met *met, size_t cap, uint64_t state)
{
    size_t at = (size_t)(state * 0x9e3779b97f4a7c15ULL >> 20) & (cap - 1);

    while (met[at].state != 0 && met[at].state != state) {
        at = (at + 1) & (cap - 1);
    }
    return &met[at];
}

static void grow(struct explore *e)
{
    size_t cap = e->met_cap * 2;
    struct met *met = calloc(cap, sizeof(*met));
    size_t i;

    if (met == NULL) {
        abort();
    }
    for (i = 0; i < e->met_cap; i++) {
        if (e->met[i].state != 0) {
            *place_of(met, cap, e->met[i].state) = e->met[i];
        }
    }
    free(e->met);
    e->met = met;
    e->met_cap = cap;
}

/* ---- Steps ---- */

static uint64_t step_of(const struct explore *e)
{
    uint64_t hash =
        e->last_state + (e->last_faults + 1) * 0x2545f4914f6cdd1dULL;
    unsigned i;

    for (i = e->last_at; i < e->at; i++) {
        hash = (hash ^ hash >> 31 ^ (e->chosen[i] + 1)) * 0x9e3779b97f4a7c15ULL;
    }
    hash ^= hash >> 31;
    return hash == 0 ? 1 : hash;
}

static struct step *place_of_step(struct step *steps, size_t cap, uint64_t from)
{
    size_t at = (size_t)(from * 0x9e3779b97f4a7c15ULL >> 20) & (cap - 1);

    while (steps[at].from != 0 && steps[at].from != from) {
        at = (at + 1) & (cap - 1);
    }
    return &steps[at];
}

static void grow_steps(struct explore *e)
{
    size_t cap = e->steps_cap == 0 ? 1 << 16 : e->steps_cap * 2;
    struct step *steps = calloc(cap, sizeof(*steps));
    size_t i;

    if (steps == NULL) {
        abort();
    }
    for (i = 0; i < e->steps_cap; i++) {
        if (e->steps[i].from != 0) {
            *place_of_step(steps, cap, e->steps[i].from) = e->steps[i];
        }
    }
    free(e->steps);
    e->steps = steps;
    e->steps_cap = cap;
}

static void compare(struct explore *e, uint64_t state)
{
    struct step *step;
    uint64_t from = step_of(e);

    if (2 * e->steps_len >= e->steps_cap) {
        grow_steps(e);
    }
    step = place_of_step(e->steps, e->steps_cap, from);
    if (step->from == 0) {
        *step = (struct step){from, state};
        e->steps_len++;
        return;
    }
    e->steps_again++;
    e->unsound = e->unsound || step->to != state;
}

/* ---- Meeting ---- */

static void note_step(struct explore *e, uint64_t state)
{
    /* What lies before the last choice was compared when it was new. */
    if (e->last_state != 0 && e->at == e->path_len) {
        compare(e, state);
    }
    e->last_state = state;
    e->last_at = e->at;
    e->last_faults = e->faults;
}

bool explore_met(struct explore *e, uint64_t state)
{
    struct met *met;

    state = state == 0 ? 1 : state;
    if (e->twice) {
        note_step(e, state);
    }
    if (e->at < e->path_len) {
        return false; /* On the way that was gone before. */
    }
    met = place_of(e->met, e->met_cap, state);
    if (met->state != 0 && met->faults <= e->faults) {
        return ++met->times > 2 || !e->twice;
    }
    if (met->state == 0) {
        e->met_len++;
    }
    *met = (struct met){state, (uint8_t)e->faults, 1};
    if (2 * e->met_len > e->met_cap) {
        grow(e);
    }
    return false;
}

void explore_ended(struct explore *e, unsigned calls)
{
    e->ended++;
    e->most_calls = calls > e->most_calls ? calls : e->most_calls;
    e->by_calls[calls < CALLS_COUNTED ? calls : CALLS_COUNTED - 1]++;
}
