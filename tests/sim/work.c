/* What clients do. Every choice is the seed's. */
#include "work.h"

#include "queue/op.h"
#include "calls.h"
#include "client.h"
#include "ledger.h"
#include "request.h"
#include "told.h"

#include <idem/operator.h>

static void pass_on(struct client *c, const struct held *held)
{
    struct world *w = c->world;

    if (rng_chance(&w->rng, w->config.token_permille) &&
        idem_attempt_token(held->attempt, w->token) == 0) {
        w->token_key = held->key;
        w->token_fence = held->fence;
    }
}

/* ---- Effects ---- */

/* For as long as it was claimed for, or a shorter time. */
static int renew(struct client *c, struct held *held)
{
    bool shorter = rng_chance(&c->world->rng, 150);

    return call_renew(c, held, shorter ? IDEM_LEASE_MIN_MS : 0);
}

/* Works for a while, and no longer than the lease lets it. False: the lease was
 * over before anything began. */
static bool work(struct client *c, struct held *held,
                 const struct idem_request *request)
{
    static const unsigned parts[] = {0, 20, 60, 160};
    struct world *w = c->world;
    int64_t lease_ms =
        request->lease_ms == IDEM_NEVER ? 5000 : request->lease_ms;
    int64_t left_ms = lease_ms * parts[rng_below(&w->rng, 4)] / 100;
    bool renews = rng_chance(&w->rng, 500);

    pass_on(c, held);
    if (idem_attempt_lease_left_ms(held->attempt) == 0) {
        scene(w, SCENE_TOO_LATE);
        return false;
    }
    ledger_effect(c, held, request->on_expired_lease);
    while (left_ms > 0 && idem_attempt_lease_left_ms(held->attempt) > 0) {
        int64_t step_ms = left_ms < lease_ms / 3 ? left_ms : lease_ms / 3;

        client_sleep(c, step_ms);
        left_ms -= step_ms;
        if (renews && left_ms > 0 && renew(c, held) == IDEM_ELOST) {
            break;
        }
    }
    note(w, EV_EFFECT_END, c, held->key->no, (int64_t)held->fence);
    return true;
}

/* How work that @ran ends; 0: without a word. */
static enum idem_status choose_end(struct world *w, bool ran)
{
    static const enum idem_status ends[ENDS] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,  IDEM_STATUS_RELEASED,
        IDEM_STATUS_UNKNOWN,   (enum idem_status)0, IDEM_STATUS_RETRY,
    };
    static const unsigned after_none[ENDS] = {0, 5, 60, 5, 30, 8};
    const unsigned *weights = ran ? w->config.ends : after_none;

    return ends[rng_weighted(&w->rng, weights, ENDS)];
}

/* ---- Ending ---- */

static bool worth_a_retry(struct world *w, int rc)
{
    return (idem_error_kind(rc) == IDEM_KIND_RETRY || rc == IDEM_EFULL) &&
           rng_chance(&w->rng, 700);
}

static void end_with_retries(struct client *c, struct held *held,
                             enum idem_status status)
{
    struct outcome outcome;
    unsigned tries = 0;
    int rc;

    outcome_make(c, status, &outcome);
    do {
        rc = call_end(c, held, &outcome.said);
        if (rc != 0) {
            client_sleep(c, rng_between(&c->world->rng, 1, 800));
        }
    } while (worth_a_retry(c->world, rc) && ++tries < 4);
    if (rc == 0 && rng_chance(&c->world->rng, 100)) {
        (void)call_end(c, held, &outcome.said); /* The same again. */
    }
}

/* Says something late, or something else than before. */
static void say_more(struct client *c, struct held *held)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,
        IDEM_STATUS_RELEASED,  IDEM_STATUS_UNKNOWN,   IDEM_STATUS_RETRY,
    };
    unsigned what = rng_below(&c->world->rng, 9);

    if (what == 8) {
        (void)call_expire(c, held);
        if (rng_chance(&c->world->rng, 300)) {
            (void)renew(c, held); /* On second thoughts. */
        }
    } else if (what >= 6) {
        (void)call_renew(c, held, what == 6 ? 0 : IDEM_LEASE_MIN_MS);
    } else {
        end_with_retries(c, held, ends[what]);
    }
}

static void after_work(struct client *c, struct held *held, bool ran)
{
    struct world *w = c->world;
    enum idem_status status = choose_end(w, ran);

    pass_on(c, held);
    if (status != 0) {
        end_with_retries(c, held, status);
    } else if (rng_chance(&w->rng, 400)) {
        (void)call_expire(c, held);
    }
    if (rng_chance(&w->rng, 150)) {
        client_sleep(c, rng_between(&w->rng, 0, 9000));
        say_more(c, held);
    }
    if (!rng_chance(&w->rng, 350)) {
        call_drop(held);
    }
}

/* ---- Rounds ---- */

static void resolve(struct client *c, struct key *key, uint64_t fence)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED,
        IDEM_STATUS_FAILED,
        IDEM_STATUS_RELEASED,
        IDEM_STATUS_RETRY,
    };
    bool force = rng_chance(&c->world->aside, c->world->config.force_permille);
    unsigned flags = force ? IDEM_RESOLVE_FORCE : 0;
    struct outcome outcome;

    outcome_make(c, ends[rng_below(&c->world->rng, 4)], &outcome);
    outcome.said.text = idem_str("looked into it");
    if (rng_chance(&c->world->rng, 100)) {
        fence--;
    }
    (void)call_resolve(c, key, fence, &outcome.said, flags);
}

static void not_started(struct client *c, struct key *key,
                        struct idem_attempt *attempt)
{
    uint64_t fence = attempt->record->fence;
    bool closed =
        attempt->verdict == IDEM_FAILED || attempt->verdict == IDEM_UNKNOWN;

    idem_attempt_destroy(attempt);
    if (closed && rng_chance(&c->world->rng, 400)) {
        resolve(c, key, fence);
    }
}

static void round_begin(struct client *c, struct key *key)
{
    struct world *w = c->world;
    struct idem_request request;
    struct idem_attempt *attempt;
    struct held *held;
    unsigned tries = 0;
    int rc;

    request_choose(c, key, &request);
    do {
        if (tries > 0) {
            client_sleep(c, rng_between(&w->rng, 1, 2000));
        }
        rc = call_begin(c, key, &request, &held, &attempt);
    } while (worth_a_retry(w, rc) && ++tries < 3);
    if (rc != 0) {
        return;
    }
    if (held == NULL) {
        not_started(c, key, attempt);
    } else {
        after_work(c, held, work(c, held, &request));
    }
}

/* What the work that idem_once() runs needs to know. */
struct once {
    struct client *c;
    struct key *key;
    const struct idem_request *request;
    struct held *held; /* NULL: it did not run. */
    struct outcome outcome;
};

static void once_work(void *ctx, struct idem_attempt *attempt,
                      struct idem_outcome *ret_outcome)
{
    struct once *once = ctx;
    struct client *c = once->c;
    enum idem_status status;
    bool ran;

    told_begin(c, once->request, 0, attempt);
    once->held = call_keep(c, once->key, attempt);
    told_owner(c, once->held);
    ran = work(c, once->held, once->request);
    status = choose_end(c->world, ran);
    outcome_make(c, status, &once->outcome);
    *ret_outcome = once->outcome.said;
    if (status == 0) {
        once->outcome.said.status = IDEM_STATUS_UNKNOWN;
    }
    scene(c->world, SCENE_BY_ONCE);
    ledger_over(c->world, once->key, once->held->fence,
                once->outcome.said.status);
    once->held->over = true;
    call_enter(c, once->key, IDEM_OP_END);
}

static void round_once(struct client *c, struct key *key)
{
    struct idem_request request;
    struct idem_attempt *attempt = NULL;
    struct once once = {.c = c, .key = key, .request = &request};
    int rc;

    request_choose(c, key, &request);
    call_enter(c, key, IDEM_OP_BEGIN);
    rc = idem_once(&c->door.base, &request, once_work, &once, &attempt, NULL);
    if (once.held == NULL) {
        told_begin(c, &request, rc, attempt);
        if (rc == 0) {
            not_started(c, key, attempt);
        }
        return;
    }
    told_end(c, once.held, &once.outcome.said, rc);
    if (!rng_chance(&c->world->rng, 350)) {
        call_drop(once.held);
    }
}

static void round_token(struct client *c)
{
    struct world *w = c->world;
    struct held held = {.key = w->token_key, .fence = w->token_fence};

    if (w->token[0] == '\0' ||
        idem_attempt_from_token(&c->door.base, w->token, &held.attempt, NULL) !=
            0) {
        return;
    }
    memcpy(held.nonce, idem__attempt_of(held.attempt)->nonce, 16);
    scene(w, SCENE_BY_TOKEN);
    if (rng_chance(&w->rng, 500)) {
        (void)call_expire(c, &held);
    } else {
        say_more(c, &held);
    }
    idem_attempt_destroy(held.attempt);
}

static void round_late(struct client *c)
{
    struct held *held = &c->held[rng_below(&c->world->rng, HELD_MAX)];

    if (held->attempt != NULL) {
        say_more(c, held);
    }
}

static void round_person(struct client *c, struct key *key)
{
    enum idem_status status;
    uint64_t fence;

    if (call_get(c, key, &fence, &status) == 0 &&
        rng_chance(&c->world->rng, 600)) {
        client_sleep(c, rng_between(&c->world->rng, 0,
                                    c->world->config.decide_ms));
        resolve(c, key, fence);
    }
}

/* Brings back a copy of a record that was made a while ago, with a fence as a
 * store whose clock is ahead would have given it. */
static void round_import(struct client *c, struct key *key)
{
    struct world *w = c->world;
    struct idem_answer *answer;
    struct idem_record copy;
    /* DynamoDB forgets a fence two hours after its record is over; clocks that
     * are an hour off use that up. */
    unsigned ahead_ms = w->config.mode == DYNAMODB ? 1000 : HOUR_MS;
    int rc;

    call_enter(c, key, IDEM_OP_GET);
    rc = idem_get(&c->door.base, key->name->scope, key->name->key, &answer,
                  NULL);
    told_record(c, rc, rc == 0 ? idem_answer_record(answer) : NULL);
    if (rc != 0) {
        return;
    }
    copy = *idem_answer_record(answer);
    if (copy.status != IDEM_STATUS_IN_PROGRESS && copy.history_len == 0) {
        client_sleep(c, rng_between(&w->rng, 0, 12000));
        copy.fence = key->fence_max + 1 + rng_below(&w->rng, ahead_ms);
        if (copy.expires_ms != IDEM_NEVER) {
            copy.expires_ms += rng_between(&w->rng, 200, 15000);
        }
        (void)call_import(c, key, &copy);
        client_sleep(c, rng_between(&w->rng, 0, 15000));
        (void)call_purge(c, rng_below(&w->rng, 3));
    }
    idem_answer_destroy(answer);
}

static void round_any(struct client *c)
{
    struct world *w = c->world;
    struct key *key = &w->keys[rng_below(&w->rng, w->config.keys)];

    switch (rng_weighted(&w->rng, w->config.rounds, ROUNDS)) {
    case 0:
        round_begin(c, key);
        break;
    case 1:
        round_once(c, key);
        break;
    case 2:
        round_late(c);
        break;
    case 3:
        round_token(c);
        break;
    case 4:
        round_person(c, key);
        break;
    case 5:
        (void)call_purge(c, rng_below(&w->rng, 3));
        break;
    default:
        round_import(c, key);
        break;
    }
}

static void draw(struct world *w, const unsigned *usual, unsigned *weights,
                 unsigned n)
{
    static const unsigned times[] = {0, 1, 1, 6};
    unsigned i;

    for (i = 0; i < n; i++) {
        weights[i] = usual[i] * times[rng_below(&w->rng, 4)];
    }
}

void work_choose(struct world *w)
{
    static const unsigned rounds[ROUNDS] = {57, 14, 8, 6, 8, 6, 3};
    static const unsigned ends[ENDS] = {60, 7, 10, 7, 12, 10};
    static const unsigned holds[] = {0, 350, 350, 800};
    static const unsigned waits[] = {0, 300, 300, 800};
    struct config *config = &w->config;

    draw(w, rounds, config->rounds, ROUNDS);
    draw(w, ends, config->ends, ENDS);
    config->rounds[0] += 10; /* Without claims there is nothing to do. */
    config->ends[0] += 10;
    config->hold_permille = holds[rng_below(&w->rng, 4)];
    config->wait_permille = waits[rng_below(&w->rng, 4)];
    config->rest_ms = rng_chance(&w->rng, 300) ? 50 : 1500;
    config->decide_ms = 3000;
    config->wait_max_ms = rng_chance(&w->rng, 500) ? 3000 : 15000;
    config->lease_max_ms = rng_chance(&w->rng, 300) ? 2500 : 10000;
    config->forever_permille = rng_chance(&w->rng, 100) ? 300 : 20;
    config->token_permille = rng_chance(&w->rng, 200) ? 500 : 50;
    config->hot = rng_chance(&w->rng, 150) && config->rounds_each == 0;
    if (config->hot) {
        config->keys = 1;
        config->ends[2] += 60;
        config->ends[4] += 60;
        config->ends[5] += 30;
        config->hold_permille = 0;
        config->wait_permille = 500;
        config->rest_ms = 50;
        config->lease_max_ms = 2500;
    }
}

void work_main(void *arg)
{
    struct client *c = arg;
    struct world *w = c->world;
    unsigned i;

    while (c->rounds > 0 && !w->quiet && w->calls_len + 60 < CALLS_MAX) {
        c->rounds--;
        round_any(c);
        client_sleep(c, rng_between(&w->rng, 0, w->config.rest_ms));
    }
    for (i = 0; i < HELD_MAX; i++) {
        call_drop(&c->held[i]);
    }
}
