/* Calling, noting, checking. */
#include "calls.h"

#include "../lib/verbs.h"
#include "ledger.h"
#include "told.h"

#include <idem/operator.h>

void call_drop(struct held *held)
{
    idem_attempt_destroy(held->attempt);
    held->attempt = NULL;
}

struct held *call_keep(struct client *c, struct key *key,
                       struct idem_attempt *attempt)
{
    const struct start *start = ledger_start(key, attempt->fence);
    struct held *held = c->held;
    unsigned i;

    for (i = 0; i < HELD_MAX && held->attempt != NULL; i++) {
        held = &c->held[i];
    }
    if (held->attempt != NULL) {
        call_drop(held);
    }
    *held = (struct held){
        .attempt = attempt,
        .key = key,
        .fence = attempt->fence,
        .over = start != NULL && start->over, /* While the answer came. */
    };
    memcpy(held->nonce, attempt->record->nonce, sizeof(held->nonce));
    return held;
}

int call_begin(struct client *c, struct key *key,
               const struct idem_request *request, struct held **ret_held,
               struct idem_attempt **ret_attempt)
{
    struct idem_attempt *attempt = NULL;
    int rc;

    call_enter(c, key, IDEM_OP_BEGIN);
    note(c->world, EV_BEGIN, c, request->on_expired_lease, request->lease_ms);
    rc = idem_begin(&c->door.base, request, &attempt, NULL);
    told_begin(c, request, rc, attempt);
    *ret_attempt = attempt;
    *ret_held = NULL;
    if (rc == 0 && attempt->verdict == IDEM_STARTED) {
        *ret_held = call_keep(c, key, attempt);
        told_owner(c, *ret_held);
    }
    return rc;
}

int call_end(struct client *c, struct held *held,
             const struct idem_outcome *outcome)
{
    int rc;

    ledger_over(c->world, held->key, held->fence, outcome->status);
    held->over = true;
    call_enter(c, held->key, IDEM_OP_END);
    rc = verb_end(held->attempt, outcome);
    told_end(c, held, outcome, rc);
    return rc;
}

int call_renew(struct client *c, struct held *held, int64_t lease_ms)
{
    int64_t counted_ms = counted(held);
    int rc;

    call_enter(c, held->key, IDEM_OP_RENEW);
    rc = idem_renew(held->attempt, lease_ms, NULL);
    told_renewed(c, held, counted_ms, rc);
    if (rc == IDEM_ELOST) {
        held->over = true;
    }
    return rc;
}

int call_expire(struct client *c, struct held *held)
{
    int rc;

    ledger_over(c->world, held->key, held->fence, IDEM_STATUS_IN_PROGRESS);
    held->over = true;
    call_enter(c, held->key, IDEM_OP_EXPIRE);
    rc = idem_expire(held->attempt, NULL);
    told_expired(c, held, rc);
    return rc;
}

int call_get(struct client *c, struct key *key, uint64_t *ret_fence,
             enum idem_status *ret_status)
{
    struct idem_answer *answer = NULL;
    const struct idem_record *record = NULL;
    int rc;

    call_enter(c, key, IDEM_OP_GET);
    rc = idem_get(&c->door.base, key->name->scope, key->name->key, &answer,
                  NULL);
    if (rc == 0) {
        record = idem_answer_record(answer);
        *ret_fence = record->fence;
        *ret_status = record->status;
    }
    told_record(c, rc, record);
    idem_answer_destroy(answer);
    return rc;
}

int call_resolve(struct client *c, struct key *key, uint64_t fence,
                 const struct idem_outcome *outcome, unsigned flags)
{
    int rc;

    call_enter(c, key, IDEM_OP_RESOLVE);
    rc = verb_resolve(&c->door.base, key->name->scope, key->name->key, fence,
                      "somebody", outcome, flags);
    told_resolved(c, rc);
    return rc;
}

int call_import(struct client *c, struct key *key,
                const struct idem_record *record)
{
    int rc;

    call_enter(c, key, IDEM_OP_IMPORT);
    rc = idem_import(&c->door.base, record, NULL, NULL);
    told_code(c, rc);
    return rc;
}

int call_purge(struct client *c, uint64_t max)
{
    uint64_t purged;
    int rc;

    call_enter(c, NULL, IDEM_OP_PURGE);
    rc = idem_purge(&c->door.base, max, &purged, NULL);
    told_code(c, rc);
    return rc;
}
