/* Calls of every kind, chosen by a seed. */
#include "any.h"

#include <stdlib.h>
#include <string.h>

enum {
    RESULT_LEN = 20000,
    SHORT_LEN = 60,
    KEYS_EVERY_MS = 800
};

static unsigned below(struct any *any, unsigned n)
{
    return rng_below(&any->caller.rng, n);
}

/* All callers turn to new keys at the same time: otherwise most calls would find
 * operations that ended long ago. */
static void choose_key(struct any *any, char key[40])
{
    (void)snprintf(key, 40, "k%u.%lld.%u", any->history,
                   (long long)(caller_now_ms() / KEYS_EVERY_MS),
                   below(any, any->caller.keys));
}

/* ---- Arguments ---- */

static struct idem_request choose_request(struct any *any, const char *key)
{
    static const uint32_t caps[] = {0, 0, 0, 2, 5};
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1, 'a'}, {1, 'b'}};
    unsigned print = below(any, 8);
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = below(any, 8) == 0 ? IDEM_HOLD : IDEM_RERUN;
    request.owner = idem_str("caller");
    request.lease_ms = any->lease_min_ms + below(any, 500);
    request.retention_ms = request.lease_ms + below(any, 1500);
    request.attempts_max = caps[below(any, 5)];
    if (print < 4) {
        request.fingerprint =
            idem_bytes(prints[print == 0], IDEM_FINGERPRINT_LEN);
    }
    if (below(any, 8) == 0) {
        request.wait_ms = 1 + below(any, 400);
        request.flags = below(any, 2) == 0 ? IDEM_WAIT_THEN_RUN : 0;
    }
    return request;
}

static struct idem_outcome choose_outcome(struct any *any,
                                          enum idem_status status,
                                          char bytes[RESULT_LEN])
{
    struct idem_outcome outcome = {.status = status};
    size_t len = below(any, 10) == 0 ? RESULT_LEN : below(any, SHORT_LEN);

    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        memset(bytes, (int)below(any, 256), len);
        outcome.result.bytes = idem_bytes(bytes, len);
        outcome.result.content_type = idem_str("text/plain");
    }
    if (status != IDEM_STATUS_COMPLETED) {
        outcome.text = idem_str("so it is");
    }
    if (status == IDEM_STATUS_RETRY) {
        outcome.failures_max = below(any, 4);
        outcome.retry_after_ms = below(any, 2) * below(any, 300);
    }
    return outcome;
}

/* ---- Calls ---- */

static void end(struct any *any, const struct caller_held *held)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_RELEASED,  IDEM_STATUS_RELEASED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_FAILED,    IDEM_STATUS_UNKNOWN,  IDEM_STATUS_RETRY,
    };
    char bytes[RESULT_LEN];
    struct idem_outcome outcome =
        choose_outcome(any, ends[below(any, 9)], bytes);

    (void)caller_end(&any->caller, held, &outcome);
}

static void renew(struct any *any, const struct caller_held *held)
{
    (void)caller_renew(&any->caller, held,
                       any->lease_min_ms + below(any, 1000));
}

static void resolve(struct any *any, const char *key, uint64_t fence)
{
    static const enum idem_status ends[] = {IDEM_STATUS_COMPLETED,
                                            IDEM_STATUS_RELEASED,
                                            IDEM_STATUS_RELEASED,
                                            IDEM_STATUS_RETRY};
    char bytes[RESULT_LEN];
    struct idem_outcome outcome =
        choose_outcome(any, ends[below(any, 4)], bytes);
    const char *who = below(any, 2) == 0 ? "ann" : "bob";
    bool force = outcome.status != IDEM_STATUS_RETRY && below(any, 4) == 0;

    (void)caller_resolve(&any->caller, key, fence, who, &outcome, force);
}

static void get(struct any *any, const char *key)
{
    uint64_t fence = caller_get(&any->caller, key);

    if (fence > 0 && below(any, 3) == 0) {
        resolve(any, key, fence);
    }
}

/* Works, mostly for a moment; sometimes the work never ends. */
static void work(struct any *any, const struct caller_held *held)
{
    unsigned how = below(any, 10);

    caller_pause(below(any, 12));
    if (how < 4) {
        end(any, held);
    } else if (how < 8) {
        (void)caller_expire(&any->caller, held);
    }
}

static void begin(struct any *any, const char *key)
{
    struct idem_request request = choose_request(any, key);
    struct caller_held *slot = &any->held[below(any, ANY_HELD)];
    struct caller_held held;
    enum idem_verdict verdict;

    if (caller_begin(&any->caller, key, &request, &held) != 0) {
        return;
    }
    verdict = held.attempt->verdict;
    if (verdict == IDEM_STARTED) {
        idem_attempt_destroy(slot->attempt);
        *slot = held;
        work(any, slot);
        return;
    }
    if ((verdict == IDEM_UNKNOWN || verdict == IDEM_FAILED) &&
        below(any, 2) == 0) {
        resolve(any, key, held.attempt->record->fence);
    }
    idem_attempt_destroy(held.attempt);
}

/* ---- All of it ---- */

static void call_any(struct any *any)
{
    struct caller_held *held = &any->held[below(any, ANY_HELD)];
    unsigned what = below(any, 100);
    char key[40];

    choose_key(any, key);
    if (what < 8) {
        get(any, key);
    } else if (what < 10) {
        (void)caller_purge(&any->caller, below(any, 3));
    } else if (what < 70 || held->attempt == NULL) {
        begin(any, key);
    } else if (what < 86) {
        end(any, held);
    } else if (what < 94) {
        renew(any, held);
    } else {
        (void)caller_expire(&any->caller, held);
    }
}

static void pause_any(struct any *any)
{
    unsigned how = below(any, 100);

    if (how < 3) {
        caller_pause(500 + below(any, 2200));
    } else if (how < 30) {
        caller_pause(below(any, 20));
    }
}

void any_run(struct caller *caller)
{
    struct any *any = (struct any *)caller;
    unsigned i;

    while (caller_goes_on(caller)) {
        call_any(any);
        pause_any(any);
    }
    for (i = 0; i < ANY_HELD; i++) {
        idem_attempt_destroy(any->held[i].attempt);
    }
}
