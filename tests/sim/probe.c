/* When nothing goes wrong any more, every key has to come to an end. */
#include "work.h"

#include "calls.h"
#include "client.h"
#include "request.h"

enum {
    POLLS_MAX = 40,
    POLL_MS = 1000
};

/* BUSY is fine for as long as it says, the largest error of a clock, and a poll
 * longer. */
struct patience {
    int64_t until; /* True time; 0: not asked yet. */
    unsigned polls;
};

static void check_busy(struct client *c, const struct idem_attempt *attempt,
                       struct patience *p)
{
    struct world *w = c->world;

    if (p->until == 0) {
        p->until = w->now + attempt->lease_left_ms + 3 * POLL_MS;
    } else if (w->now > p->until) {
        violate(w, "I21", "BUSY %lld ms after the lease was to end",
                (long long)(w->now - p->until));
    }
}

static void settle(struct client *c, struct key *key, uint64_t fence)
{
    struct outcome outcome;
    int rc;

    outcome_make(c, IDEM_STATUS_RELEASED, &outcome);
    rc = call_resolve(c, key, fence, &outcome.said, /* flags= */ 0);
    if (rc != 0) {
        violate(c->world, "I21", "what was left open cannot be resolved: %s",
                idem_error_name(rc));
    }
}

static void finish(struct client *c, struct held *held)
{
    struct outcome outcome;
    int rc;

    outcome_make(c, IDEM_STATUS_COMPLETED, &outcome);
    rc = call_end(c, held, &outcome.said);
    if (rc != 0) {
        violate(c->world, "I21", "nothing is wrong, and complete says %s",
                idem_error_name(rc));
    }
    call_drop(held);
}

/* One poll. False: there is no more to be done for @key. */
static bool poll(struct client *c, struct key *key, struct patience *p)
{
    struct idem_request request = request_plain(key);
    struct idem_attempt *attempt;
    struct held *held;
    enum idem_verdict verdict;
    int64_t left_ms;
    uint64_t fence;
    int rc = call_begin(c, key, &request, &held, &attempt);

    if (rc != 0) {
        violate(c->world, "I21", "nothing is wrong, and begin says %s",
                idem_error_name(rc));
        return false;
    }
    if (held != NULL) {
        finish(c, held);
        return true; /* Now it has to be replayed. */
    }
    verdict = attempt->verdict;
    fence = attempt->record->fence;
    left_ms = attempt->lease_left_ms;
    if (verdict == IDEM_BUSY && left_ms != IDEM_NEVER) {
        check_busy(c, attempt, p);
    }
    idem_attempt_destroy(attempt);
    if (verdict == IDEM_FAILED || verdict == IDEM_UNKNOWN ||
        (verdict == IDEM_BUSY && left_ms == IDEM_NEVER)) {
        settle(c, key, fence); /* These wait for a person. */
    } else if (verdict == IDEM_BUSY) {
        client_sleep(c, left_ms < POLL_MS ? POLL_MS : left_ms);
    }
    return verdict != IDEM_REPLAY;
}

void probe_main(void *arg)
{
    struct client *c = arg;
    struct world *w = c->world;
    unsigned i;

    for (i = 0; i < w->config.keys && !w->violation.found; i++) {
        struct patience patience = {0, 0};

        while (poll(c, &w->keys[i], &patience)) {
            if (++patience.polls > POLLS_MAX) {
                violate(w, "I21", "key %u does not come to an end", i);
                break;
            }
        }
    }
}
