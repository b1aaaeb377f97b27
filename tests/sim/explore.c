/* Paths, and the set of states. */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

enum {
    TIME = 256 /* In the value of a state. */
};

void explore_init(struct explore *e, unsigned faults_max, unsigned delays_max)
{
    memset(e, 0, sizeof(*e));
    e->faults_max = faults_max;
    e->delays_max = delays_max;
}

void explore_finish(struct explore *e)
{
    free(e->met.at);
    free(e->steps.at);
    e->met.at = NULL;
    e->steps.at = NULL;
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

static struct place *find(const struct places *places, uint64_t hash)
{
    size_t at = (size_t)(hash * 0x9e3779b97f4a7c15ULL >> 20);

    for (;; at++) {
        struct place *place = &places->at[at & (places->cap - 1)];

        if (place->hash == 0 || place->hash == hash) {
            return place;
        }
    }
}

/* That of @hash, which is taken, with value 0, if it was free. */
static struct place *place_of(struct places *places, uint64_t hash)
{
    struct places grown = {.cap = places->cap == 0 ? 1 << 16 : places->cap * 2};
    struct place *place;
    size_t i;

    if (2 * places->len >= places->cap) {
        grown.at = calloc(grown.cap, sizeof(*grown.at));
        if (grown.at == NULL) {
            abort();
        }
        for (i = 0; i < places->cap; i++) {
            if (places->at[i].hash != 0) {
                *find(&grown, places->at[i].hash) = places->at[i];
            }
        }
        grown.len = places->len;
        free(places->at);
        *places = grown;
    }
    place = find(places, hash);
    places->len += place->hash == 0;
    place->hash = hash;
    return place;
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

static void compare(struct explore *e, uint64_t state)
{
    struct place *step = place_of(&e->steps, step_of(e));

    if (step->value == 0) {
        step->value = state;
        return;
    }
    e->steps_again++;
    e->unsound = e->unsound || step->value != state;
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

bool explore_asks(const struct explore *e)
{
    return e->twice || e->at == e->path_len;
}

bool explore_met(struct explore *e, uint64_t state)
{
    struct place *met;

    state = state == 0 ? 1 : state;
    if (e->twice) {
        note_step(e, state);
    }
    if (e->at < e->path_len) {
        return false; /* On the way that was gone before. */
    }
    met = place_of(&e->met, state);
    if (met->value != 0 && met->value % TIME <= e->faults) {
        met->value += TIME;
        return met->value / TIME > 2 || !e->twice;
    }
    met->value = TIME + e->faults;
    return false;
}

void explore_ended(struct explore *e, unsigned calls)
{
    e->ended++;
    e->most_calls = calls > e->most_calls ? calls : e->most_calls;
    e->by_calls[calls < CALLS_COUNTED ? calls : CALLS_COUNTED - 1]++;
}
