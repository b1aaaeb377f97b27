/* Rounds of stops and starts.
 *
 * What can be stopped: each client as a process, the line between each client
 * and its store, and the store itself. */
#include "swizzle.h"

static unsigned process_of(const struct client *c)
{
    return (unsigned)c->no;
}

static unsigned line_of(const struct client *c)
{
    return CLIENTS_MAX + (unsigned)c->no;
}

static const unsigned the_store = 2 * CLIENTS_MAX;

static bool stopped(const struct world *w, unsigned target)
{
    return (w->swizzle.stopped & 1U << target) != 0;
}

bool swizzle_holds_client(const struct world *w, const struct client *c)
{
    return stopped(w, process_of(c));
}

/* A remote store's client does its part of the work itself; an embedded one's
 * is done by whoever has the lock. */
bool swizzle_holds_flight(const struct world *w, const struct flight *f)
{
    bool remote = w->config.mode != EMBEDDED;
    bool alone = f->stage == FLIGHT_WAITING || f->stage == FLIGHT_PAUSED;
    bool at_client =
        f->stage == FLIGHT_QUEUED || f->stage == FLIGHT_BACK || alone;
    bool at_store = f->stage == FLIGHT_SENT || !remote;

    if (w->swizzle.stopped == 0) {
        return false;
    }
    if (at_store && stopped(w, the_store)) {
        return true;
    }
    if (f->client == NULL) {
        return false;
    }
    return (!alone && stopped(w, line_of(f->client))) ||
           (remote && at_client && stopped(w, process_of(f->client)));
}

/* ---- Drawing up a round ---- */

static unsigned choose_targets(struct world *w, unsigned targets[TARGETS_MAX])
{
    unsigned n = 0;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        if (rng_chance(&w->rng, 600)) {
            targets[n++] = process_of(&w->clients[i]);
        }
        if (rng_chance(&w->rng, 400)) {
            targets[n++] = line_of(&w->clients[i]);
        }
    }
    if (n < 2 || rng_chance(&w->rng, 300)) {
        targets[n++] = the_store;
    }
    return n;
}

static void shuffle(struct world *w, unsigned *targets, unsigned n)
{
    unsigned i;

    for (i = n; i > 1; i--) {
        unsigned at = rng_below(&w->rng, i);
        unsigned last = targets[i - 1];

        targets[i - 1] = targets[at];
        targets[at] = last;
    }
}

static int64_t add_turns(struct world *w, unsigned *targets, unsigned n,
                         bool stop, int64_t at, int64_t gap_ms)
{
    struct swizzle *s = &w->swizzle;
    unsigned i;

    shuffle(w, targets, n);
    for (i = 0; i < n; i++) {
        at += rng_between(&w->rng, 0, gap_ms);
        s->turns[s->turns_len++] = (struct turn){at, targets[i], stop};
    }
    return at;
}

/* Longer than a lease, a renewal, or an operation. */
static void draw_up(struct world *w)
{
    static const int64_t gaps_ms[] = {3000, 600, 40};
    unsigned targets[TARGETS_MAX];
    unsigned n = choose_targets(w, targets);
    int64_t gap_ms = gaps_ms[rng_below(&w->rng, 3)];
    int64_t at = w->now + rng_between(&w->rng, 0, 3000);

    w->swizzle.turns_len = 0;
    w->swizzle.next = 0;
    at = add_turns(w, targets, n, /* stop= */ true, at, gap_ms);
    at += rng_between(&w->rng, 0, 2 * gap_ms);
    (void)add_turns(w, targets, n, /* stop= */ false, at, gap_ms);
}

/* ---- Going through it ---- */

void swizzle_start(struct world *w)
{
    w->swizzle.stopped = 0;
    w->swizzle.next = 0;
    w->swizzle.turns_len = 0;
    if (w->config.class == CLASS_SWIZZLE) {
        draw_up(w);
    }
}

void swizzle_go(struct world *w)
{
    struct swizzle *s = &w->swizzle;

    while (s->next < s->turns_len && s->turns[s->next].at <= w->now) {
        const struct turn *turn = &s->turns[s->next++];

        note(w, turn->stop ? EV_STOP : EV_START, NULL, turn->target, 0);
        if (turn->stop) {
            s->stopped |= 1U << turn->target;
            w->stats->faults[FAULT_STOPPED]++;
        } else {
            s->stopped &= ~(1U << turn->target);
        }
    }
    if (s->next == s->turns_len && s->turns_len > 0) {
        draw_up(w);
    }
}

void swizzle_end(struct world *w)
{
    w->swizzle.stopped = 0;
    w->swizzle.next = 0;
    w->swizzle.turns_len = 0;
}

int64_t swizzle_next_time(const struct world *w)
{
    const struct swizzle *s = &w->swizzle;

    return s->next < s->turns_len ? s->turns[s->next].at : INT64_MAX;
}
