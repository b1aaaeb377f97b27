/* Scripts. Where a client is in its script, and whatever it remembers from one
 * call to the next, goes through rest(): it is part of the state. */
#include "script.h"

#include "calls.h"
#include "client.h"
#include "ledger.h"
#include "request.h"
#include "state.h"
#include "told.h"

#include <idem/operator.h>

enum {
    TRIES = 3
};

/* There is as much time for work in either mode. */
static int64_t lease_ms(const struct client *c)
{
    return c->world->config.mode == EMBEDDED
               ? IDEM_LEASE_MIN_MS
               : IDEM_LEASE_MIN_MS + REMOTE_STOP_MS - EMBEDDED_STOP_MS + 500;
}

/* The client is between two calls, at this line of its script for the first time
 * with @note, which is all that it has in mind. */
static void rest_at(struct client *c, int line, int64_t note)
{
    c->script_step++;
    state_rest(c, line, note);
}

static void rest_for_at(struct client *c, int line, int64_t note, int64_t ms)
{
    rest_at(c, line, note);
    client_sleep(c, ms);
}

#define rest(c, note) rest_at(c, __LINE__, note)
#define rest_for(c, note, ms) rest_for_at(c, __LINE__, note, ms)

static const struct script *script_of(const struct client *c)
{
    return c->world->script;
}

static struct key *key_of(struct client *c)
{
    return &c->world->keys[0];
}

static struct idem_request request_of(struct client *c)
{
    const struct script *script = script_of(c);
    struct idem_request request = request_plain(key_of(c));

    request.on_expired_lease = script->policy;
    request.lease_ms = lease_ms(c);
    if (script->forgets) {
        request.retention_ms = lease_ms(c);
    }
    request.owner = idem_str(c->no == 0 ? "a" : "b");
    return request;
}

static struct idem_outcome outcome_of(enum idem_status status, const char *text)
{
    struct idem_outcome outcome = {.status = status};

    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        outcome.result.bytes = idem_str(text);
        outcome.result.meta = idem_str("0");
    }
    if (status != IDEM_STATUS_COMPLETED) {
        outcome.text = idem_str(text);
    }
    return outcome;
}

static bool worth_a_retry(int rc)
{
    return idem_error_kind(rc) == IDEM_KIND_RETRY || rc == IDEM_EFULL;
}

static void end(struct client *c, struct held *held, enum idem_status status,
                const char *text, bool again)
{
    struct idem_outcome outcome = outcome_of(status, text);
    unsigned tries;

    if (status == IDEM_STATUS_RETRY) {
        outcome.failures_max = script_of(c)->failures_max;
        outcome.retry_after_ms = script_of(c)->retry_after_ms;
    }

    for (tries = 0; tries < 2; tries++) {
        int rc = call_end(c, held, &outcome);

        if (!worth_a_retry(rc)) {
            return;
        }
        rest_for(c, 2 * tries + again, 500);
    }
}

/* The end of work that was begun. */
static void work(struct client *c, struct held *held)
{
    const struct script *script = script_of(c);
    const char *text = c->no == 0 ? "done by a" : "done by b";

    if (idem_attempt_lease_left_ms(held->attempt) == 0) {
        return;
    }
    ledger_effect(c, held, script->policy);
    if (script->work_ms > 0) {
        rest_for(c, 0, script->work_ms);
    }
    if (script->renews && call_renew(c, held, 0) == IDEM_ELOST) {
        return;
    }
    if (script->work_ms > 0) {
        rest_for(c, 0, script->work_ms);
    }
    if (script->end != 0) {
        end(c, held, script->end, text, /* again= */ false);
    } else {
        (void)call_expire(c, held);
    }
    if (script->says_more) {
        rest(c, 0);
        end(c, held, IDEM_STATUS_COMPLETED, "something else",
            /* again= */ true);
    }
}

/* One look. True: there is more to be done, after a pause. */
static bool look(struct client *c, const struct idem_request *request,
                 int64_t *ret_pause_ms)
{
    struct idem_attempt *attempt = NULL;
    struct held *held = NULL;
    bool again;
    int rc = call_begin(c, key_of(c), request, &held, &attempt);

    *ret_pause_ms = 500;
    if (rc != 0) {
        return worth_a_retry(rc);
    }
    if (held != NULL) {
        work(c, held);
        call_drop(held);
        return false;
    }
    again = attempt->verdict == IDEM_BUSY || attempt->verdict == IDEM_RELEASED;
    if (attempt->verdict == IDEM_BUSY && attempt->lease_left_ms > 0) {
        *ret_pause_ms = attempt->lease_left_ms;
    }
    idem_attempt_destroy(attempt);
    return again;
}

/* Begins, works and ends; asks again where another is at work. */
static void worker(void *arg)
{
    struct client *c = arg;
    struct idem_request request = request_of(c);
    int64_t pause_ms;
    unsigned tries;

    rest(c, 0);
    for (tries = 0; tries < TRIES; tries++) {
        if (!look(c, &request, &pause_ms)) {
            return;
        }
        rest_for(c, tries, pause_ms);
    }
}

/* Waits for what the other does. */
static void waiter(void *arg)
{
    struct client *c = arg;
    struct idem_request request = request_of(c);
    int64_t pause_ms;

    request.wait_ms = script_of(c)->wait_ms;
    rest(c, 0);
    if (look(c, &request, &pause_ms)) {
        rest_for(c, 0, pause_ms);
        (void)look(c, &request, &pause_ms);
    }
}

/* Comes when the lease must be over, and decides for what is left open. */
static void person(void *arg)
{
    struct client *c = arg;
    struct idem_request request = request_of(c);
    struct idem_outcome outcome =
        outcome_of(IDEM_STATUS_COMPLETED, "looked into it");
    enum idem_status status;
    uint64_t fence = 0;
    int64_t pause_ms;
    int rc;

    rest_for(c, 0, lease_ms(c));
    (void)look(c, &request, &pause_ms); /* Closes what is held. */
    rest(c, 0);
    rc = call_get(c, key_of(c), &fence, &status);
    rest_for(c, rc == 0 ? (int64_t)fence : 0, 500);
    if (rc == 0) {
        (void)call_resolve(c, key_of(c), fence, &outcome, /* flags= */ 0);
    }
}

/* Decides about what the other does or did, and then begins, too. */
static void decider(void *arg)
{
    struct client *c = arg;
    const struct script *script = script_of(c);
    struct idem_request request = request_of(c);
    struct idem_outcome outcome = outcome_of(script->decides, "looked into it");
    enum idem_status status;
    uint64_t fence = 0;
    int64_t pause_ms;
    int rc;

    rest_for(c, 0, script->looks_ms);
    rc = call_get(c, key_of(c), &fence, &status);
    rest(c, rc == 0 ? (int64_t)fence : 0);
    if (rc == 0) {
        (void)call_resolve(c, key_of(c), fence, &outcome, script->flags);
    }
    rest(c, 0);
    (void)look(c, &request, &pause_ms);
}

/* Deletes what is over, and begins a new life. */
static void sweeper(void *arg)
{
    struct client *c = arg;
    struct idem_request request = request_of(c);
    int64_t pause_ms;
    unsigned tries;

    for (tries = 0; tries < 2; tries++) {
        rest_for(c, tries, lease_ms(c));
        (void)call_purge(c, /* max= */ 0);
    }
    rest(c, 0);
    (void)look(c, &request, &pause_ms);
}

const struct script scripts[] = {
    {"rerun", worker, IDEM_RERUN, IDEM_STATUS_COMPLETED, .work_ms = 1000,
     .renews = true},
    {"late", worker, IDEM_RERUN, IDEM_STATUS_COMPLETED, .work_ms = 1500,
     .says_more = true},
    {"hold", person, IDEM_HOLD, IDEM_STATUS_COMPLETED, .work_ms = 1000,
     .renews = true},
    {"release", waiter, IDEM_RERUN, IDEM_STATUS_RELEASED, .work_ms = 500,
     .wait_ms = 1000},
    {"expire", worker, IDEM_RERUN, 0, .work_ms = 500, .renews = true},
    {"forget", sweeper, IDEM_RERUN, IDEM_STATUS_COMPLETED, .forgets = true,
     .work_ms = 500},
    {"retry", worker, IDEM_HOLD, IDEM_STATUS_RETRY, .work_ms = 500,
     .says_more = true},
    {"budget", worker, IDEM_RERUN, IDEM_STATUS_RETRY, .failures_max = 2,
     .retry_after_ms = 1000, .work_ms = 500, .says_more = true},
    {"reopen", decider, IDEM_RERUN, IDEM_STATUS_COMPLETED, .work_ms = 500,
     .says_more = true, .decides = IDEM_STATUS_RETRY, .looks_ms = 1500},
    {"mend", decider, IDEM_RERUN, IDEM_STATUS_RETRY, .work_ms = 500,
     .says_more = true, .decides = IDEM_STATUS_RETRY, .looks_ms = 1500},
    {"force", decider, IDEM_HOLD, IDEM_STATUS_COMPLETED, .work_ms = 1000,
     .renews = true, .decides = IDEM_STATUS_RELEASED,
     .flags = IDEM_RESOLVE_FORCE, .looks_ms = 500},
};

const unsigned scripts_len = sizeof(scripts) / sizeof(scripts[0]);

coro_fn *script_role(const struct script *script, unsigned no)
{
    return no == 0 ? worker : script->other;
}
