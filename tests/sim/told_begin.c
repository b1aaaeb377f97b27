/* What a begin was answered. */
#include "told.h"

#include "history.h"
#include "ledger.h"
#include "queue/op.h"
#include "table.h"

static void check_started(struct client *c, const struct idem_request *request,
                          const struct idem_attempt *a)
{
    struct start *start = ledger_start(c->call->key, a->fence);

    if (start == NULL ||
        memcmp(start->nonce, a->record->nonce, sizeof(start->nonce)) != 0) {
        violate(c->world, "I14", "STARTED without a claim on record");
        return;
    }
    if (start->told) {
        violate(c->world, "I1", "two owners are told fence %llu",
                (unsigned long long)a->fence);
    }
    start->told = true;
    if (c->call->busy_fence != 0 &&
        (request->flags & IDEM_WAIT_THEN_RUN) == 0) {
        violate(c->world, "I25", "a waiter starts that did not ask to");
    }
}

/* A claim that another ended before its owner was told of it: by the stores of services, who
 * come to their answers in several steps, it is taken back. */
static void check_own_claim(struct client *c, const struct idem_attempt *a)
{
    const struct idem_record *r = a->record;
    const struct start *start = ledger_start(c->call->key, a->fence);
    enum mode mode = c->world->config.mode;

    if (mode != DYNAMODB && mode != POSTGRES) {
        return;
    }
    if (r->by_lease && start != NULL && !start->told &&
        memcmp(idem__attempt_of((struct idem_attempt *)(uintptr_t)a)->nonce,
               r->nonce, sizeof(r->nonce)) == 0) {
        violate(c->world, "I8", "%s by the end of its own lease",
                idem_verdict_name(a->verdict));
    }
}

/* Two requests under one key. */
static void check_fingerprint(struct client *c,
                              const struct idem_request *request,
                              const struct idem_attempt *a)
{
    struct idem_slice had = a->record->fingerprint;
    struct idem_slice asked = request->fingerprint;
    bool differ =
        had.len > 0 && asked.len > 0 && hash_of(had, 1) != hash_of(asked, 1);

    if (differ != (a->verdict == IDEM_MISMATCH) &&
        !(differ && a->verdict == IDEM_RELEASED)) {
        violate(c->world, "I11", "verdict %s for %s request",
                idem_verdict_name(a->verdict), differ ? "another" : "the same");
    }
}

static void check_verdict(struct client *c, const struct idem_attempt *a)
{
    static const enum idem_status statuses[VERDICTS] = {
        [IDEM_STARTED] = IDEM_STATUS_IN_PROGRESS,
        [IDEM_REPLAY] = IDEM_STATUS_COMPLETED,
        [IDEM_FAILED] = IDEM_STATUS_FAILED,
        [IDEM_UNKNOWN] = IDEM_STATUS_UNKNOWN,
        [IDEM_BUSY] = IDEM_STATUS_IN_PROGRESS,
    };
    const struct idem_record *r = a->record;
    struct call *call = c->call;

    if (statuses[a->verdict] != 0 && statuses[a->verdict] != r->status) {
        violate(c->world, "API", "verdict %s with a record of status %d",
                idem_verdict_name(a->verdict), (int)r->status);
    }
    if (a->verdict == IDEM_REPLAY) {
        told_result(c, r);
    } else if (a->verdict == IDEM_BUSY &&
               memcmp(call->unsure_nonce, r->nonce, 16) == 0) {
        violate(c->world, "I8", "BUSY because of its own lost answer");
    }
    if (call->busy_fence != 0 && a->verdict != IDEM_BUSY) {
        scene(c->world,
              a->verdict == IDEM_STARTED ? SCENE_WAITED_RUN : SCENE_WAITED);
        if (r->fence != 0 && r->fence < call->busy_fence) {
            violate(c->world, "I25", "a waiter is shown an older attempt");
        }
    }
}

void told_begin(struct client *c, const struct idem_request *request, int rc,
                const struct idem_attempt *attempt)
{
    history_told(c, rc, attempt, /* record= */ NULL);
    told_after(c, rc, request->wait_ms);
    if (rc != 0) {
        return;
    }
    c->world->stats->verdicts[attempt->verdict]++;
    note(c->world, EV_VERDICT, c, attempt->verdict,
         (int64_t)attempt->record->fence);
    if (attempt->verdict == IDEM_STARTED) {
        check_started(c, request, attempt);
    }
    told_shown(c, attempt->record);
    check_fingerprint(c, request, attempt);
    check_own_claim(c, attempt);
    check_verdict(c, attempt);
}
