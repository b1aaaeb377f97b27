/* What a caller does, as its seed has it. */
#include "caller.h"

#include <idem/operator.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RESULT_LEN = 20000,
    SHORT_LEN = 60,
    KEYS_EVERY_MS = 800
};

static unsigned below(struct caller *c, unsigned n)
{
    uint64_t z = c->seed += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (unsigned)((z ^ z >> 31) % n);
}

static void pause_ms(int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}

/* Everybody turns to new keys at the same time: otherwise most of what is asked
 * finds what was done long ago. */
static struct caller_key choose_key(struct caller *c)
{
    struct caller_key key;
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    (void)snprintf(key.name, sizeof(key.name), "k%lld.%u",
                   (long long)((ts.tv_sec * 1000 + ts.tv_nsec / 1000000) /
                               KEYS_EVERY_MS),
                   below(c, c->keys));
    return key;
}

/* ---- What is asked for ---- */

static struct idem_request choose_request(struct caller *c,
                                          const struct caller_key *key)
{
    static const uint32_t caps[] = {0, 0, 0, 2, 5};
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1, 'a'}, {1, 'b'}};
    unsigned print = below(c, 8);
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key->name);
    request.on_expired_lease = below(c, 8) == 0 ? IDEM_HOLD : IDEM_RERUN;
    request.owner = idem_str("caller");
    request.lease_ms = c->lease_ms + below(c, 500);
    request.retention_ms = request.lease_ms + below(c, 1500);
    request.attempts_max = caps[below(c, 5)];
    if (print < 4) {
        request.fingerprint =
            idem_bytes(prints[print == 0], IDEM_FINGERPRINT_LEN);
    }
    if (below(c, 8) == 0) {
        request.wait_ms = 1 + below(c, 400);
        request.flags = below(c, 2) == 0 ? IDEM_WAIT_THEN_RUN : 0;
    }
    return request;
}

static struct idem_outcome choose_outcome(struct caller *c,
                                          enum idem_status status,
                                          char bytes[RESULT_LEN])
{
    struct idem_outcome outcome = {.status = status};
    size_t len = below(c, 10) == 0 ? RESULT_LEN : below(c, SHORT_LEN);

    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        memset(bytes, (int)below(c, 256), len);
        outcome.result.bytes = idem_bytes(bytes, len);
        outcome.result.content_type = idem_str("text/plain");
    }
    if (status != IDEM_STATUS_COMPLETED) {
        outcome.text = idem_str("so it is");
    }
    return outcome;
}

/* ---- Calls ---- */

static int end_it(struct idem_attempt *attempt,
                  const struct idem_outcome *outcome)
{
    switch (outcome->status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &outcome->result, NULL);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, outcome->text, &outcome->result, NULL);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, outcome->text, NULL);
    case IDEM_STATUS_RETRY:
        return idem_retry(attempt, outcome->text, NULL);
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return idem_unknown(attempt, outcome->text, NULL);
}

static void end(struct caller *c, struct caller_held *held)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_RELEASED,  IDEM_STATUS_RELEASED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_FAILED,    IDEM_STATUS_UNKNOWN,  IDEM_STATUS_RETRY,
    };
    char bytes[RESULT_LEN];
    struct idem_outcome outcome = choose_outcome(c, ends[below(c, 9)], bytes);
    struct call_id id = write_end(&c->writer, held->key.name, held->id,
                                  held->attempt->fence, &outcome);

    write_answer(&c->writer, id, end_it(held->attempt, &outcome), NULL, NULL);
}

static void renew(struct caller *c, struct caller_held *held)
{
    int64_t lease_ms = c->lease_ms + below(c, 1000);
    struct call_id id = write_renew(&c->writer, held->key.name, held->id,
                                    held->attempt->fence, lease_ms);

    write_answer(&c->writer, id, idem_renew(held->attempt, lease_ms, NULL),
                 NULL, NULL);
}

static void expire(struct caller *c, struct caller_held *held)
{
    struct call_id id = write_expire(&c->writer, held->key.name, held->id,
                                     held->attempt->fence);

    write_answer(&c->writer, id, idem_expire(held->attempt, NULL), NULL, NULL);
}

static void resolve(struct caller *c, const struct caller_key *key,
                    uint64_t fence)
{
    static const enum idem_status ends[] = {IDEM_STATUS_COMPLETED,
                                            IDEM_STATUS_RELEASED,
                                            IDEM_STATUS_RELEASED,
                                            IDEM_STATUS_RETRY};
    char bytes[RESULT_LEN];
    struct idem_outcome outcome = choose_outcome(c, ends[below(c, 4)], bytes);
    const char *who = below(c, 2) == 0 ? "ann" : "bob";
    bool reopens = outcome.status == IDEM_STATUS_RETRY;
    bool force = !reopens && below(c, 4) == 0;
    struct call_id id =
        write_resolve(&c->writer, key->name, fence, who, &outcome, force);
    int rc = reopens ? idem_reopen(c->store, idem_str(""), idem_str(key->name),
                                   fence, idem_str(who), outcome.text, NULL)
                     : idem_resolve(c->store, idem_str(""), idem_str(key->name),
                                    fence, idem_str(who), &outcome,
                                    force ? IDEM_RESOLVE_FORCE : 0, NULL);

    write_answer(&c->writer, id, rc, NULL, NULL);
}

static void get(struct caller *c, const struct caller_key *key)
{
    struct call_id id = write_get(&c->writer, key->name);
    struct idem_answer *answer = NULL;
    const struct idem_record *record = NULL;
    int rc =
        idem_get(c->store, idem_str(""), idem_str(key->name), &answer, NULL);

    if (rc == 0) {
        record = idem_answer_record(answer);
    }
    write_answer(&c->writer, id, rc, NULL, record);
    if (rc == 0 && below(c, 3) == 0) {
        resolve(c, key, record->fence);
    }
    idem_answer_destroy(answer);
}

static void purge(struct caller *c)
{
    struct call_id id = write_purge(&c->writer);

    write_answer(&c->writer, id, idem_purge(c->store, below(c, 3), NULL, NULL),
                 NULL, NULL);
}

/* Mostly for a moment; sometimes it goes on for good. */
static void work(struct caller *c, struct caller_held *held)
{
    unsigned how = below(c, 10);

    pause_ms(below(c, 12));
    if (how < 4) {
        end(c, held);
    } else if (how < 8) {
        expire(c, held);
    }
}

static void begin(struct caller *c, const struct caller_key *key)
{
    struct idem_request request = choose_request(c, key);
    struct call_id id = write_begin(&c->writer, key->name, &request);
    struct caller_held *held = &c->held[below(c, CALLER_HELD)];
    struct idem_attempt *attempt = NULL;
    int rc = idem_begin(c->store, &request, &attempt, NULL);

    write_answer(&c->writer, id, rc, attempt, NULL);
    if (rc != 0) {
        return;
    }
    if (attempt->verdict == IDEM_STARTED) {
        idem_attempt_destroy(held->attempt);
        *held = (struct caller_held){attempt, id, *key};
        work(c, held);
        return;
    }
    if ((attempt->verdict == IDEM_UNKNOWN || attempt->verdict == IDEM_FAILED) &&
        below(c, 2) == 0) {
        resolve(c, key, attempt->record->fence);
    }
    idem_attempt_destroy(attempt);
}

/* ---- All of it ---- */

static void call_any(struct caller *c)
{
    struct caller_held *held = &c->held[below(c, CALLER_HELD)];
    struct caller_key key = choose_key(c);
    unsigned what = below(c, 100);

    if (what < 8) {
        get(c, &key);
    } else if (what < 10) {
        purge(c);
    } else if (what < 70 || held->attempt == NULL) {
        begin(c, &key);
    } else if (what < 86) {
        end(c, held);
    } else if (what < 94) {
        renew(c, held);
    } else {
        expire(c, held);
    }
}

static void pause_any(struct caller *c)
{
    unsigned how = below(c, 100);

    if (how < 3) {
        pause_ms(500 + below(c, 2200));
    } else if (how < 30) {
        pause_ms(below(c, 20));
    }
}

void caller_run(struct caller *caller)
{
    unsigned i;

    while (caller->writer.calls < caller->ops) {
        call_any(caller);
        pause_any(caller);
    }
    for (i = 0; i < CALLER_HELD; i++) {
        idem_attempt_destroy(caller->held[i].attempt);
    }
}
