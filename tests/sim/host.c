/* Clocks that drift, jump and start again. */
#include "host.h"

#include "client.h"
#include "service.h"
#include "state.h"

#include <time.h>
#include <unistd.h>

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __real_clock_gettime(clockid_t id, struct timespec *ret);
pid_t __wrap_getpid(void);

static struct world *the_world;

void host_boot(struct world *w, struct host *host, int64_t wall_off_ms)
{
    the_world = w;
    host->up_at = w->now;
    host->up_boot_ms = rng_between(&w->rng, 1000, 9000);
    host->wall_off_ms = wall_off_ms;
    host->unsynchronised = false;
    rng_fill(&w->rng, host->boot_id, sizeof(host->boot_id));
    host->boot_id[0] |= 1; /* All zeros would mean that there is none. */
}

int64_t host_boot_ms(const struct world *w, const struct host *host)
{
    int64_t up = w->now - host->up_at;

    return host->up_boot_ms + up + up * host->drift_ppm / 1000000;
}

int64_t host_when(const struct host *host, int64_t boot_ms)
{
    int64_t shown = boot_ms - host->up_boot_ms;

    return host->up_at + shown - shown * host->drift_ppm / 1000000;
}

void host_read(const struct world *w, const struct host *host,
               struct idem_clock_reading *ret_reading)
{
    ret_reading->wall_ms = w->now + host->wall_off_ms;
    ret_reading->boot_ms = host_boot_ms(w, host);
    memcpy(ret_reading->boot_id, host->boot_id, sizeof(host->boot_id));
    ret_reading->unsynchronised = host->unsynchronised;
}

/* ---- Store time, in truth ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void boot_truth(struct world *w)
{
    const struct host *host = &w->hosts[0];
    struct idem_anchor *truth = &w->truth;
    bool first = truth->store_ms == 0 && w->saved_ms == 0;
    int64_t known_ms = later(truth->sure_ms, w->saved_ms);

    truth->store_ms = later(w->now + host->wall_off_ms, known_ms);
    truth->sure_ms =
        host->unsynchronised && !first ? known_ms : truth->store_ms;
    truth->boot_ms = host_boot_ms(w, host);
    memcpy(truth->boot_id, host->boot_id, sizeof(host->boot_id));
}

static bool truth_is_of_this_boot(const struct world *w)
{
    return memcmp(w->truth.boot_id, w->hosts[0].boot_id,
                  sizeof(w->truth.boot_id)) == 0;
}

void truth_look(struct world *w)
{
    const struct host *host = &w->hosts[0];
    struct idem_anchor *truth = &w->truth;
    int64_t passed_ms;
    int64_t wall_ms;

    if (!truth_is_of_this_boot(w)) {
        boot_truth(w);
        return;
    }
    passed_ms = host_boot_ms(w, host) - truth->boot_ms;
    if (truth->sure_ms == truth->store_ms) {
        return;
    }
    if (!host->unsynchronised) {
        /* What the clock shows, between what was sure and what was shown. */
        wall_ms = w->now + host->wall_off_ms - passed_ms;
        if (wall_ms < truth->store_ms) {
            truth->store_ms = later(wall_ms, truth->sure_ms);
        }
        truth->sure_ms = truth->store_ms;
        w->stats->faults[FAULT_PUT_RIGHT]++;
    } else if (passed_ms >= truth->store_ms - truth->sure_ms) {
        truth->sure_ms = truth->store_ms;
        w->believed = true;
        w->stats->faults[FAULT_BELIEVED]++;
    }
}

int64_t truth_ms(struct world *w)
{
    const struct service *service = service_of(w->config.mode);

    if (w->config.mode != EMBEDDED) {
        return service != NULL ? service->ms(w) : w->now;
    }
    if (!truth_is_of_this_boot(w)) {
        boot_truth(w);
    }
    return w->truth.store_ms + host_boot_ms(w, &w->hosts[0]) - w->truth.boot_ms;
}

int64_t truth_sure_ms(struct world *w)
{
    const struct service *service = service_of(w->config.mode);
    int64_t truth = truth_ms(w);

    if (service != NULL) {
        return service->latest_ms(w);
    }
    return w->config.mode != EMBEDDED
               ? truth
               : truth - (w->truth.store_ms - w->truth.sure_ms);
}

/* ---- What the library calls ---- */

static bool clock_is_away(struct world *w)
{
    const struct config *config = &w->config;

    if (w->checking) {
        return false;
    }
    if (++w->clock_reads == config->clock_at && !w->quiet) {
        w->stats->faults[FAULT_CLOCK_AWAY]++;
        return true;
    }
    return config->clock_permille > 0 &&
           fault(w, FAULT_CLOCK_AWAY, config->clock_permille);
}

static int hook_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    struct client *c = ctx;
    struct world *w = c->world;

    if (clock_is_away(w)) {
        return -1;
    }
    host_read(w, c->host, ret_reading);
    if (!w->checking) {
        state_told(c, (uint64_t)ret_reading->boot_ms);
    }
    return 0;
}

static int hook_random(void *ctx, void *buf, size_t len)
{
    struct client *c = ctx;
    struct world *w = c->world;

    if (w->config.clock_permille > 0 &&
        fault(w, FAULT_RANDOM_AWAY, w->config.clock_permille)) {
        return -1;
    }
    rng_fill(w->explore != NULL ? &c->random : &w->rng, buf, len);
    return 0;
}

static void hook_sleep(void *ctx, int64_t ms)
{
    client_sleep(ctx, ms);
}

struct idem_host host_hooks(struct client *client)
{
    return (struct idem_host){
        .ctx = client,
        .clock = hook_clock,
        .random = hook_random,
        .sleep = hook_sleep,
    };
}

/* The linker gives these to all that is linked in: deadlines of the library are
 * counted on CLOCK_MONOTONIC, which is the boot clock of whoever runs. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    struct world *w = the_world;
    int64_t ms;

    if (w == NULL || id != CLOCK_MONOTONIC) {
        return __real_clock_gettime(id, ret);
    }
    ms = host_boot_ms(w, w->running != NULL ? w->running->host : w->hosts);
    if (w->running != NULL) {
        state_told(w->running, (uint64_t)ms);
    }
    ret->tv_sec = (time_t)(ms / 1000);
    ret->tv_nsec = (long)(ms % 1000) * 1000000;
    return 0;
}

/* Asked for several times in every call, and a system call each time. */
pid_t __wrap_getpid(void)
{
    return 1;
}
