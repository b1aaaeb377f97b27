/* Crashes, pauses, clocks, disks and bits. */
#include "faults.h"

#include "client.h"
#include "explore.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "ledger.h"
#include "service.h"
#include "swizzle.h"
#include "table.h"
#include "work.h"

static struct client *any_client(struct world *w)
{
    return &w->clients[rng_below(&w->rng, w->config.clients)];
}

static void strike_pause(struct world *w)
{
    struct client *c = any_client(w);
    int64_t ms = rng_between(&w->rng, 50, 15000);
    unsigned i;

    if (c->state == CLIENT_GONE) {
        return;
    }
    w->checking = true;
    for (i = 0; i < HELD_MAX; i++) {
        if (ledger_live(&c->held[i]) &&
            idem_attempt_lease_left_ms(c->held[i].attempt) < ms) {
            w->stats->faults[FAULT_PAUSED]++;
        }
    }
    w->checking = false;
    c->paused_until = w->now + ms;
    note(w, EV_PAUSE, c, ms, 0);
}

static void crash(struct world *w, struct client *c)
{
    unsigned i;

    if (c->state == CLIENT_GONE) {
        return;
    }
    client_crash(w, c);
    w->stats->faults[FAULT_CRASHED]++;
    for (i = 0; w->config.threads && i < w->config.clients; i++) {
        struct client *other = &w->clients[i];

        if (other->state != CLIENT_GONE && service_together(other, c)) {
            client_crash(w, other);
        }
    }
}

static void strike_crash(struct world *w)
{
    crash(w, any_client(w));
    if (w->config.mode == EMBEDDED && rng_chance(&w->rng, 300)) {
        embedded_reopen(w);
    }
}

bool faults_restart(struct world *w)
{
    struct client *c = any_client(w);

    if (c->state != CLIENT_GONE || w->restarts == w->config.restarts) {
        return false;
    }
    w->restarts++;
    w->stats->faults[FAULT_RESTARTED]++;
    c->rounds = 1 + rng_below(&w->rng, 2) + w->config.rounds_each / 10;
    client_start(w, c, work_main);
    return true;
}

/* On a remote store's client an hour, on the store's own host a day. */
static int64_t wall_error(struct world *w)
{
    int64_t most = w->config.mode == EMBEDDED ? DAY_MS : HOUR_MS;

    return rng_between(&w->rng, -most, most);
}

/* Nothing keeps the clock right, and it is ahead; or something does. */
static void draw_doubt(struct world *w, struct host *host)
{
    static const int64_t most[] = {2 * HOUR_MS, 3 * (int64_t)DAY_MS,
                                   20 * (int64_t)DAY_MS};
    unsigned how = rng_below(&w->aside, 3);

    host->unsynchronised = rng_chance(&w->aside, 600);
    host->wall_off_ms =
        host->unsynchronised ? rng_between(&w->aside, 0, most[how]) : 0;
}

static void strike_jump(struct world *w)
{
    struct host *host = any_client(w)->host;
    int64_t before_ms = host->wall_off_ms;

    host->wall_off_ms = wall_error(w);
    if (w->config.doubtful) {
        draw_doubt(w, host);
    }
    if (w->config.mode == DYNAMODB) { /* It stays what the service accepts. */
        host->wall_off_ms /= 4;
    }
    w->stats->faults[FAULT_JUMPED]++;
    note(w, EV_JUMP, NULL, host->wall_off_ms, before_ms);
}

static void strike_reboot(struct world *w)
{
    struct host *host = any_client(w)->host;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        if (w->clients[i].host == host) {
            crash(w, &w->clients[i]);
        }
    }
    host_boot(w, host,
              rng_chance(&w->rng, 500) ? host->wall_off_ms : wall_error(w));
    if (w->config.doubtful) {
        draw_doubt(w, host);
        w->stats->faults[FAULT_UNSYNCHRONISED] += host->unsynchronised;
    }
    w->stats->faults[FAULT_REBOOTED]++;
    history_reboot();
    note(w, EV_REBOOT, NULL, host->wall_off_ms, host->up_boot_ms);
    if (w->config.mode == EMBEDDED) {
        embedded_open(w);
        embedded_reopen(w);
    }
    (void)faults_restart(w);
}

static void strike_full(struct world *w)
{
    const struct service *service = service_of(w->config.mode);

    if (service != NULL && service->strike != NULL) {
        service->strike(w);
    }
    if (w->config.mode != EMBEDDED) {
        return;
    }
    if (!w->disk_full) {
        w->stats->faults[FAULT_DISK_FULL]++;
    }
    w->disk_full = !w->disk_full;
    note(w, EV_FULL, NULL, w->disk_full, 0);
}

static void flip(struct world *w, struct key *key, enum event event)
{
    const struct service *service = service_of(w->config.mode);

    if (service != NULL) {
        service->flip(key);
    } else {
        key->rows[key->at].bytes[key->flipped_at] ^= key->flipped_bits;
    }
    note(w, event, NULL, (int64_t)key->flipped_at, key->no);
}

/* Which byte; false: there is none. */
static bool choose_flip(struct world *w, struct key *key)
{
    const struct service *service = service_of(w->config.mode);
    const struct version *row = stored(key);

    if (row->rev == 0) {
        return false;
    }
    if (service != NULL) {
        return service->choose_flip(w, key);
    }
    key->flipped_at =
        rng_below(&w->rng, (unsigned)(row->head_len + row->result_len));
    return true;
}

static void strike_flip(struct world *w)
{
    struct key *key = &w->keys[rng_below(&w->rng, w->config.keys)];

    if (key->flipped) {
        flip(w, key, EV_REPAIR);
        key->flipped = false;
    } else if (choose_flip(w, key)) {
        key->flipped_bits = (uint8_t)(1 << rng_below(&w->rng, 8));
        key->flipped = true;
        key->flips++;
        w->stats->faults[FAULT_FLIPPED]++;
        flip(w, key, EV_FLIP);
    }
}

static void strike_idle(struct world *w)
{
    static const int64_t longest[] = {60000, HOUR_MS, 5 * HOUR_MS,
                                      30 * HOUR_MS};
    unsigned how = rng_below(&w->rng, 4);
    int64_t ms = rng_between(&w->rng, 0, longest[how]);
    unsigned i;

    w->now += ms;
    for (i = 0; i < w->config.clients; i++) {
        w->clients[i].stalled_ms += ms;
    }
    w->stats->faults[FAULT_IDLE]++;
    note(w, EV_IDLE, NULL, ms, 0);
}

void faults_strike(struct world *w)
{
    static void (*const strikes[])(struct world *) = {
        strike_pause, strike_crash, strike_jump, strike_reboot,
        strike_full,  strike_flip,  strike_idle,
    };
    static const unsigned weights[] = {6, 7, 4, 2, 3, 2, 2};

    if (w->config.doubtful && rng_chance(&w->aside, 500)) {
        (rng_chance(&w->aside, 500) ? strike_jump : strike_reboot)(w);
        return;
    }
    strikes[rng_weighted(&w->rng, weights, 7)](w);
}

void faults_end(struct world *w)
{
    unsigned i;

    w->quiet = true;
    swizzle_end(w);
    w->disk_full = false;
    for (i = 0; i < w->config.keys; i++) {
        if (w->keys[i].flipped) {
            flip(w, &w->keys[i], EV_REPAIR);
            w->keys[i].flipped = false;
        }
    }
    for (i = 0; i < w->config.clients; i++) {
        w->clients[i].paused_until = 0;
    }
    if (w->config.mode == EMBEDDED) {
        embedded_reopen(w);
    }
    note(w, EV_QUIET, NULL, w->steps, 0);
}

unsigned faults_fate(struct world *w, const unsigned *weights, unsigned n,
                     unsigned small)
{
    unsigned fate;

    if (w->quiet) {
        return 0;
    }
    if (w->explore != NULL) {
        fate = explore_fault(w->explore, small);
        w->explore->by_fault[fate]++;
        return fate;
    }
    return rng_chance(&w->rng, w->config.fate_permille)
               ? rng_weighted(&w->rng, weights, n)
               : 0;
}
