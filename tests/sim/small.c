/* One execution of a small world. */
#include "small.h"

#include "client.h"
#include "faults.h"
#include "flight.h"
#include "ledger.h"
#include "setup.h"
#include "state.h"
#include "work.h"

enum {
    SMALL_CLIENTS = 2,
    RESTARTS_MAX = 1, /* Of each client. */
    GRID_MS = 500,
    TIMEOUT_MS = 500,
    QUIET_STEPS_MAX = 6000,
    /* Each client, killed, started again; what is under way; time; the end. */
    OPTIONS_MAX = 3 * SMALL_CLIENTS + FLIGHTS_MAX + 2,
};

const char *small_fault_name(enum small_fault fault)
{
#define X(name, text) text,
    static const char *const names[] = {SMALL_FAULT_MAP(X)};
#undef X

    return names[fault];
}

int64_t small_wake(const struct world *w, int64_t ms)
{
    int64_t until = w->now + ms - w->start_ms;

    return w->start_ms + (until + GRID_MS - 1) / GRID_MS * GRID_MS;
}

enum act {
    ACT_RUN,
    ACT_FLIGHT,
    ACT_TIME,
    ACT_RESTART,
    ACT_END,
    ACT_KILL
};

struct option {
    enum act act;
    unsigned no; /* Of the client or the flight. */
};

struct options {
    struct option at[OPTIONS_MAX];
    unsigned len;
};

static void add(struct options *options, enum act act, unsigned no)
{
    options->at[options->len++] = (struct option){act, no};
}

/* Time passes in steps: until somebody sleeps or waits no longer. */
static int64_t next_wake(const struct world *w)
{
    int64_t next = INT64_MAX;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        const struct client *c = &w->clients[i];
        bool waits = c->state == CLIENT_ASLEEP || c->state == CLIENT_WAITING;

        if (waits && c->wake_at > w->now && c->wake_at < next) {
            next = c->wake_at;
        }
    }
    return next;
}

static bool may_delay(const struct world *w)
{
    return !w->quiet && w->explore->delays < w->explore->delays_max;
}

static bool restarts_left(const struct client *c)
{
    return c->state == CLIENT_GONE && c->killed && c->births <= RESTARTS_MAX;
}

static void add_ready(const struct world *w, struct options *options)
{
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        if (client_ready(w, &w->clients[i])) {
            add(options, ACT_RUN, i);
        }
    }
}

/* In an order that depends on nothing but the state: where a flight lies does
 * not belong to it. */
static void add_flights(const struct world *w, struct options *options)
{
    uint64_t states[FLIGHTS_MAX];
    unsigned ready = 0;
    unsigned len = 0;
    unsigned at;
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        ready += flight_ready(w, &w->flights[i]);
    }
    for (i = 0; i < w->flights_len; i++) {
        const struct flight *f = &w->flights[i];
        struct option *option = &options->at[options->len];
        uint64_t state;

        if (!flight_ready(w, f)) {
            continue;
        }
        state = ready > 1 ? state_of_flight(w, f) : 0;
        for (at = len; at > 0 && states[at - 1] > state; at--, option--) {
            states[at] = states[at - 1];
            *option = *(option - 1);
        }
        states[at] = state;
        *option = (struct option){ACT_FLIGHT, i};
        options->len++;
        len++;
    }
}

static void gather(const struct world *w, bool faults, struct options *options)
{
    bool done;
    unsigned i;

    options->len = 0;
    add_ready(w, options);
    add_flights(w, options);
    if (next_wake(w) != INT64_MAX && (options->len == 0 || may_delay(w))) {
        add(options, ACT_TIME, 0);
    }
    done = options->len == 0;
    for (i = 0; faults && i < w->config.clients; i++) {
        if (restarts_left(&w->clients[i])) {
            add(options, ACT_RESTART, i);
        }
    }
    if (done && options->len > 0) {
        add(options, ACT_END, 0);
    }
    for (i = 0; faults && i < w->config.clients; i++) {
        if (w->clients[i].state != CLIENT_GONE &&
            explore_may_fault(w->explore)) {
            add(options, ACT_KILL, i);
        }
    }
}

static void kill_client(struct world *w, unsigned no)
{
    w->explore->faults++;
    w->explore->by_fault[SMALL_CRASH]++;
    client_crash(w, &w->clients[no]);
    w->clients[no].killed = true;
    if (w->config.mode == EMBEDDED) {
        embedded_reopen(w);
    }
}

/* False: all is over. */
static bool act(struct world *w, const struct option *option)
{
    switch (option->act) {
    case ACT_RUN:
        client_resume(w, &w->clients[option->no]);
        break;
    case ACT_FLIGHT:
        flight_step(w, &w->flights[option->no]);
        break;
    case ACT_TIME:
        w->now = next_wake(w);
        break;
    case ACT_RESTART:
        client_start(w, &w->clients[option->no],
                     script_role(w->script, option->no));
        break;
    case ACT_KILL:
        kill_client(w, option->no);
        break;
    case ACT_END:
        return false;
    }
    w->steps++;
    return true;
}

/* True if it came to an end; false if all that follows is known. */
static bool run_with_choices(struct world *w)
{
    struct options options;
    bool more = true;
    unsigned chosen;

    while (more && !w->violation.found) {
        if (explore_asks(w->explore) && explore_met(w->explore, state_of(w))) {
            return false;
        }
        gather(w, /* faults= */ true, &options);
        if (options.len == 0) {
            return true;
        }
        chosen = explore_choose(w->explore, options.len);
        w->explore->delays += chosen > 0 && options.at[chosen].act == ACT_TIME;
        more = act(w, &options.at[chosen]);
    }
    return true;
}

/* Nothing breaks and nobody chooses: the first that can go on goes on. */
static void run_to_rest(struct world *w)
{
    unsigned until = w->steps + QUIET_STEPS_MAX;
    struct options options;

    gather(w, /* faults= */ false, &options);
    while (!w->violation.found && options.len > 0) {
        (void)act(w, &options.at[0]);
        gather(w, /* faults= */ false, &options);
        if (w->steps > until) {
            violate(w, "I21", "it does not come to rest");
        }
    }
}

static void start_clients(struct world *w)
{
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        client_start(w, &w->clients[i], script_role(w->script, i));
    }
}

void small_run(struct world *w, const struct script *script, enum mode mode,
               struct explore *e, struct stats *stats, bool live)
{
    setup_clear(w, /* seed= */ 0, stats, live);
    w->config.mode = mode;
    w->config.clients = SMALL_CLIENTS;
    w->config.keys = 1;
    w->config.timeout_ms = TIMEOUT_MS;
    w->config.result_max = RESULT_USUAL;
    w->explore = e;
    w->script = script;
    setup_world(w);
    start_clients(w);

    if (run_with_choices(w)) {
        faults_end(w);
        run_to_rest(w);
        ledger_kept(w);
        if (!w->violation.found) {
            client_start(w, &w->clients[0], probe_main);
            run_to_rest(w);
        }
        if (!w->violation.found && w->heap.blocks != 0) {
            violate(w, "LEAK", "operations leave %zu blocks behind",
                    w->heap.blocks);
        }
        explore_ended(e, w->store_calls);
    }
    setup_undo(w);
    w->explore = NULL;
    stats->steps += w->steps;
}
