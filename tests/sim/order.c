/* Choosing by chance or by priority. */
#include "order.h"

#include "client.h"
#include "flight.h"
#include "swizzle.h"

enum {
    /* Change points lie within so many steps: most schedules are as long. */
    CHANGES_WITHIN = 160,
    /* What is drawn is above this, what has fallen behind below. */
    PRIORITY_MIN = 1000,
};

unsigned order_priority(struct world *w)
{
    return PRIORITY_MIN + rng_below(&w->rng, 1000000000);
}

void order_start(struct world *w)
{
    struct order *order = &w->order;
    unsigned i;

    swizzle_start(w);
    if (w->config.class != CLASS_PRIORITY) {
        return;
    }
    order->time = order_priority(w);
    order->behind = PRIORITY_MIN;
    order->changes_len = rng_below(&w->rng, CHANGES_MAX + 1);
    for (i = 0; i < order->changes_len; i++) {
        order->changes[i] = 1 + rng_below(&w->rng, CHANGES_WITHIN);
    }
}

unsigned order_gather(struct world *w, struct choice choices[CHOICES_MAX])
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

/* ---- Priorities ---- */

static unsigned *priority(struct world *w, const struct choice *choice)
{
    if (choice->client != NULL) {
        return &choice->client->priority;
    }
    return choice->flight != NULL ? &choice->flight->priority : &w->order.time;
}

static struct choice *highest(struct world *w, struct choice *choices,
                              unsigned n)
{
    struct choice *best = choices;
    unsigned i;

    for (i = 1; i < n; i++) {
        if (*priority(w, &choices[i]) > *priority(w, best)) {
            best = &choices[i];
        }
    }
    return best;
}

static bool is_change_point(const struct world *w)
{
    unsigned i;

    for (i = 0; i < w->order.changes_len; i++) {
        if (w->order.changes[i] == w->steps) {
            return true;
        }
    }
    return false;
}

static struct choice by_priority(struct world *w, struct choice *choices,
                                 unsigned n)
{
    struct choice *best;

    if (order_next_time(w) != INT64_MAX) {
        choices[n++] = (struct choice){NULL, NULL};
    }
    best = highest(w, choices, n);
    if (is_change_point(w)) {
        *priority(w, best) = --w->order.behind;
        w->stats->faults[FAULT_FELL_BEHIND]++;
        best = highest(w, choices, n);
    }
    return *best;
}

struct choice order_choose(struct world *w, struct choice *choices, unsigned n)
{
    if (w->config.class == CLASS_PRIORITY && !w->quiet) {
        return by_priority(w, choices, n);
    }
    return choices[rng_below(&w->rng, n)];
}

/* ---- Time ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t client_time(const struct world *w, const struct client *c)
{
    if (c->state == CLIENT_GONE || swizzle_holds_client(w, c)) {
        return INT64_MAX;
    }
    return later(c->state == CLIENT_READY ? w->now : c->wake_at,
                 c->paused_until);
}

static int64_t flight_time(const struct world *w, const struct flight *f)
{
    if (f->stage == FLIGHT_FREE || f->stage == FLIGHT_LATENT ||
        swizzle_holds_flight(w, f)) {
        return INT64_MAX;
    }
    return f->client == NULL ? f->due_at
                             : later(f->due_at, f->client->paused_until);
}

int64_t order_next_time(const struct world *w)
{
    int64_t next = INT64_MAX;
    bool alive = false;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        int64_t at = client_time(w, &w->clients[i]);

        next = at > w->now && at < next ? at : next;
        alive = alive || w->clients[i].state != CLIENT_GONE;
    }
    for (i = 0; i < w->flights_len; i++) {
        int64_t at = flight_time(w, &w->flights[i]);

        next = at > w->now && at < next ? at : next;
        alive = alive || w->flights[i].stage == FLIGHT_SENT;
    }
    if (alive && swizzle_next_time(w) < next) {
        next = swizzle_next_time(w);
    }
    return next;
}
