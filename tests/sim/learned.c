/* An interval for store time less boot clock: each answer narrows it, drift
 * widens it again. */
#include "learned.h"

#include "host.h"

enum {
    DRIFT_MAX_PPM = 500,
    REMOTE_MARGIN_MS = 2000
};

static int64_t drift(int64_t ms)
{
    return ms * DRIFT_MAX_PPM / 1000000 + 1;
}

static void age(struct client *c, int64_t boot_ms)
{
    struct learned *l = &c->learned;

    if (boot_ms > l->at_ms) {
        l->low_ms -= drift(boot_ms - l->at_ms);
        l->high_ms += drift(boot_ms - l->at_ms);
        l->at_ms = boot_ms;
    }
}

void learned_add(struct client *c, int64_t date_ms, int64_t sent_boot_ms)
{
    struct learned *l = &c->learned;
    int64_t boot_ms = host_boot_ms(c->world, c->host);
    int64_t trip_ms = boot_ms - sent_boot_ms;
    int64_t low = date_ms - boot_ms;
    int64_t high = date_ms + 999 + trip_ms + drift(trip_ms) - boot_ms;

    if (!l->known) {
        *l = (struct learned){true, boot_ms, low, high};
        return;
    }
    age(c, boot_ms);
    l->low_ms = l->low_ms > low ? l->low_ms : low;
    l->high_ms = l->high_ms < high ? l->high_ms : high;
}

static void fill(struct client *c, struct idem_now *now)
{
    memset(now, 0, sizeof(*now));
    now->boot_ms = host_boot_ms(c->world, c->host);
    memcpy(now->boot_id, c->host->boot_id, sizeof(now->boot_id));
    now->margin_ms = REMOTE_MARGIN_MS;
}

bool learned_now(struct client *c, struct idem_now *ret_now)
{
    const struct learned *l = &c->learned;

    if (!l->known) {
        return false;
    }
    fill(c, ret_now);
    age(c, ret_now->boot_ms);
    ret_now->store_ms = ret_now->boot_ms + (l->low_ms + l->high_ms) / 2;
    ret_now->store_err_ms = (l->high_ms - l->low_ms + 1) / 2 + 1;
    if (c->world->now < ret_now->store_ms - ret_now->store_err_ms ||
        c->world->now > ret_now->store_ms + ret_now->store_err_ms) {
        violate(c->world, "SIM", "the learned interval misses the truth");
    }
    return true;
}

int64_t learned_latest(const struct client *c, int64_t boot_ms)
{
    return boot_ms + c->learned.high_ms;
}

void learned_by_wall(struct client *c, struct idem_now *ret_now)
{
    fill(c, ret_now);
    ret_now->store_ms = c->world->now + c->host->wall_off_ms;
}
