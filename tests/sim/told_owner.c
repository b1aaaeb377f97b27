/* What the verbs of an owner were answered, and what it counts on. */
#include "told.h"

#include "host.h"
#include "ledger.h"
#include "queue/attempt.h"
#include "table.h"

/* The record, if it is still that of @held. */
static const struct view *own_view(const struct held *held)
{
    const struct view *view = &stored(held->key)->view;

    return view->exists && view->fence == held->fence &&
                   memcmp(view->nonce, held->nonce, 16) == 0
               ? view
               : NULL;
}

/* LOST, and yet the record says what was asked, or waits for it. */
static void check_lost(struct client *c, const struct held *held,
                       enum idem_status asked, uint64_t content)
{
    const struct view *view = own_view(held);

    if (view == NULL) {
        return;
    }
    if (view->status == IDEM_STATUS_IN_PROGRESS ||
        (view->status == asked && asked == IDEM_STATUS_COMPLETED &&
         view->content == content)) {
        violate(c->world, "I8", "LOST, and the record is its own");
    }
}

static uint64_t kept_content(const struct idem_outcome *outcome)
{
    struct idem_result result = outcome->result;

    if (result.bytes.len > RESULT_MAX) {
        result.bytes.len = 0;
        result.not_kept = true;
    }
    return content_of(&result);
}

void told_end(struct client *c, const struct held *held,
              const struct idem_outcome *outcome, int rc)
{
    const struct idem_record *record = held->attempt->record;
    const struct completion *completion;
    uint64_t content = kept_content(outcome);

    told_code(c, rc);
    if (rc == IDEM_ELOST) {
        check_lost(c, held, outcome->status, content);
    }
    if (rc != 0) {
        return;
    }
    if (record->status != outcome->status) {
        violate(c->world, "API", "an attempt ended as %d and shows %d",
                (int)outcome->status, (int)record->status);
    }
    if (outcome->status != IDEM_STATUS_COMPLETED) {
        return;
    }
    completion = ledger_completion(held->key, held->fence);
    if (completion == NULL || completion->content != content) {
        violate(c->world, "I6",
                "a completion that was acknowledged is not "
                "on record");
    }
    if (content_of(&record->result) != content) {
        violate(c->world, "I7",
                "the first caller is shown another result "
                "than it gave");
    }
}

/* A record must not give its lease away while the owner counts on it. */
static void check_counted(struct client *c, const struct held *held)
{
    const struct idem__attempt *a = idem__attempt_of(held->attempt);
    const struct view *view = &c->call->wrote;
    int64_t end_ms = idem__attempt_lease_end(a);
    int64_t left = end_ms - host_boot_ms(c->world, c->host);

    note(c->world, EV_LEFT, c, left, (int64_t)held->fence);
    if (!view->exists || view->fence != held->fence ||
        view->lease_end_ms == IDEM_NEVER || left <= 0) {
        return;
    }
    if (memcmp(view->boot_id, c->host->boot_id, 16) == 0 &&
        end_ms > view->lease_end_boot_ms) {
        violate(c->world, "I9",
                "an owner counts more than its lease, by %lld "
                "ms of the boot clock",
                (long long)(end_ms - view->lease_end_boot_ms));
    }
    if (truth_ms(c->world) + left > view->lease_end_ms + 1500) {
        violate(c->world, "I9",
                "an owner counts more than its lease, by %lld "
                "ms of store time",
                (long long)(truth_ms(c->world) + left - view->lease_end_ms));
    }
}

void told_owner(struct client *c, const struct held *held)
{
    c->world->checking = true;
    check_counted(c, held);
    ledger_started(c, held);
    c->world->checking = false;
}

void told_renewed(struct client *c, const struct held *held, int rc)
{
    told_code(c, rc);
    if (rc == IDEM_ELOST) {
        check_lost(c, held, IDEM_STATUS_IN_PROGRESS, /* content= */ 0);
    } else if (rc == 0) {
        check_counted(c, held);
    }
}
