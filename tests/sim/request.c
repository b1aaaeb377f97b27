/* What clients ask for and what they say came of it, as the seed has it. */
#include "request.h"

#include <stdio.h>

struct idem_request request_plain(const struct key *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.scope = key->name->scope;
    request.key = key->name->key;
    request.on_expired_lease = IDEM_RERUN;
    request.lease_ms = IDEM_LEASE_MIN_MS;
    request.attempts_max = 0;
    return request;
}

static struct idem_slice fingerprint(struct world *w, unsigned no)
{
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN];
    struct idem_slice parts[] = {
        idem_str("POST /pay"),
        idem_str(no == 0 ? "to=a" : "to=b"),
    };

    if (prints[no][0] == 0 &&
        idem_fingerprint(parts, 2, idem_str(""), prints[no]) != 0) {
        return idem_str("");
    }
    if (memcmp(prints[0], prints[1], IDEM_FINGERPRINT_LEN) == 0) {
        violate(w, "I11", "two requests have one fingerprint");
    }
    return idem_bytes(prints[no], IDEM_FINGERPRINT_LEN);
}

static void set_times(struct world *w, struct idem_request *request)
{
    bool finite = !rng_chance(&w->rng, w->config.forever_permille);
    int64_t lease_ms = rng_between(&w->rng, 2000, w->config.lease_max_ms);
    unsigned kind = rng_below(&w->rng, 10);

    request->lease_ms = finite ? lease_ms : IDEM_NEVER;
    if (kind < 5) {
        request->retention_ms = lease_ms + rng_between(&w->rng, 0, 5000);
    } else if (kind == 9) {
        request->retention_ms = IDEM_NEVER;
    }
    if (rng_chance(&w->rng, 200)) {
        request->expect_ms = rng_between(&w->rng, 1000, 6000);
    }
}

void request_choose(struct client *c, const struct key *key,
                    struct idem_request *request)
{
    static const uint32_t caps[] = {0, 0, 1, 2, 3, 5};
    static const char *const owners[] = {"worker", "worker", "host/1", ""};
    struct world *w = c->world;
    unsigned print = rng_below(&w->rng, 20);

    *request = request_plain(key);
    if (rng_chance(&w->rng, w->config.hold_permille)) {
        request->on_expired_lease = IDEM_HOLD;
    }
    set_times(w, request);
    request->owner = idem_str(owners[rng_below(&w->rng, 4)]);
    request->attempts_max = w->config.hot ? 0 : caps[rng_below(&w->rng, 6)];
    if (print < 9) {
        request->fingerprint = fingerprint(w, print == 0);
    }
    if (rng_chance(&w->rng, 200)) {
        request->input = idem_str("what the work is about");
    }
    if (rng_chance(&w->rng, w->config.wait_permille)) {
        request->wait_ms = rng_between(&w->rng, 100, w->config.wait_max_ms);
        request->flags = rng_below(&w->rng, 2) != 0 ? IDEM_WAIT_THEN_RUN : 0;
    }
}

/* The result of a failed try is told from all others by its length and its number. */
static void set_budget(struct world *w, struct outcome *o)
{
    static const uint32_t most[] = {0, 1, 2, 3};
    static const int64_t pauses_ms[] = {0, 0, 300, 4000, 20000};
    unsigned len = rng_below(&w->budget, (unsigned)w->config.result_max + 9);

    o->said.failures_max = most[rng_below(&w->budget, 4)];
    o->said.retry_after_ms = pauses_ms[rng_below(&w->budget, 5)];
    if (rng_chance(&w->budget, 500)) {
        memset(o->bytes, 'f', len);
        (void)snprintf(o->meta, sizeof(o->meta), "%u", w->calls_len);
        o->said.result.bytes = idem_bytes(o->bytes, len);
        o->said.result.meta = idem_str(o->meta);
    }
}

void outcome_make(struct client *c, enum idem_status status,
                  struct outcome *ret_outcome)
{
    struct world *w = c->world;
    unsigned most = (unsigned)w->config.result_max;
    const unsigned lens[] = {0, 1, 20, most, most + 1, most + OUTCOME_MORE};
    struct outcome *o = ret_outcome;
    unsigned len = lens[rng_below(&w->rng, 6)];

    memset(&o->said, 0, sizeof(o->said));
    o->said.status = status;
    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        rng_fill(&w->rng, (uint8_t *)o->bytes, len);
        (void)snprintf(o->meta, sizeof(o->meta), "%u", w->calls_len);
        o->said.result.bytes = idem_bytes(o->bytes, len);
        o->said.result.meta = idem_str(o->meta);
        o->said.result.content_type = idem_str("text/plain");
    }
    if (status != IDEM_STATUS_COMPLETED) {
        o->said.text = idem_str("so it is");
    }
    if (status == IDEM_STATUS_RETRY && w->config.budgets) {
        set_budget(w, o);
    }
}
