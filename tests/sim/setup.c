/* Clearing and furnishing a world. */
#include "setup.h"

#include "flight.h"
#include "host.h"
#include "service.h"

void setup_clear(struct world *w, uint64_t seed, struct stats *stats, bool live)
{
    memset(&w->quiet, 0,
           offsetof(struct world, hosts) - offsetof(struct world, quiet));
    memset(&w->flights_len, 0,
           offsetof(struct world, calls) - offsetof(struct world, flights_len));
    memset(&w->calls_len, 0, sizeof(*w) - offsetof(struct world, calls_len));
    memset(&w->config, 0, sizeof(w->config));
    w->seed = seed;
    w->rng.state = seed * 0x2545f4914f6cdd1dULL + 1;
    w->aside.state = seed * 0x9fb21c651e98df25ULL + 1;
    w->budget.state = seed * 0xd1342543de82ef95ULL + 1;
    w->memory.state = seed * 0xaf251af3b0f025b5ULL + 1;
    w->stats = stats;
    w->violation.found = false;
    trace_start(&w->trace, seed, live);
    heap_use(&w->heap);
}

static void set_up_keys(struct world *w)
{
    /* Two of them read the same when scope and key are put side by side, and
     * two have the same key. */
    static struct name names[KEYS_MAX] = {
        {{"a", 1}, {"bc", 2}, {0}},
        {{"ab", 2}, {"c", 1}, {0}},
        {{"", 0}, {"bc", 2}, {0}},
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
        key->corrections = 0;
        key->completions_len = 0;
        memset(&key->seen, 0, sizeof(*key) - offsetof(struct key, seen));
        key->kept.until_ms = IDEM_NEVER;
    }
}

static void set_up_hosts(struct world *w)
{
    bool remote = w->config.mode != EMBEDDED;
    unsigned i;

    for (i = 0; i < (remote ? w->config.clients : 1); i++) {
        struct host *host = &w->hosts[i];
        int64_t off_ms = remote ? rng_between(&w->rng, -HOUR_MS, HOUR_MS) : 0;

        host_boot(w, host, off_ms);
        host->drift_ppm = remote ? rng_between(&w->rng, -200, 200) : 0;
        if (w->config.mode == POSTGRES) {
            /* A server tells the time to the millisecond: of a day 200 ppm of either
             * clock are 4 ms apart. */
            host->drift_ppm = host->drift_ppm * 199 / 200;
        }
    }
}

static unsigned host_of(const struct world *w, unsigned client)
{
    return w->config.mode == EMBEDDED ? 0 : service_host(w, client);
}

void setup_world(struct world *w)
{
    const struct service *service = service_of(w->config.mode);
    unsigned i;

    w->now = 1700000000000 + rng_between(&w->rng, 0, DAY_MS);
    w->start_ms = w->now;
    set_up_keys(w);
    set_up_hosts(w);
    if (w->config.mode == EMBEDDED) {
        embedded_open(w);
    } else if (service != NULL) {
        service->open(w);
    }
    for (i = 0; i < FLIGHTS_MAX; i++) {
        w->flights[i].stage = FLIGHT_FREE;
    }
    for (i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &w->clients[i];

        c->world = w;
        c->no = (int)i;
        c->host = &w->hosts[host_of(w, i)];
        c->state = CLIENT_GONE;
        c->births = 0;
        c->replays = NULL;
    }
}

void setup_undo(struct world *w)
{
    const struct service *service = service_of(w->config.mode);
    unsigned i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        heap_reclaim(&w->clients[i].heap);
    }
    heap_reclaim(&w->heap);
    if (service != NULL) {
        service->close();
    }
}
