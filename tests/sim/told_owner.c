/* What the verbs of an owner were answered, and what it counts on. */
#include "told.h"

#include "host.h"
#include "ledger.h"
#include "queue/op.h"
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

int64_t counted(const struct held *held)
{
    return idem__attempt_lease_end(idem__attempt_of(held->attempt));
}

/* What is lost is not counted on any more. */
static void check_not_counted(struct client *c, const struct held *held)
{
    if (counted(held) != 0) {
        violate(c->world, "I10", "it goes on counting on a lease that is over");
    }
}

/* LOST, and yet the record says what was asked, or waits for it. */
static void check_lost(struct client *c, const struct held *held,
                       enum idem_status asked, uint64_t content)
{
    const struct view *view = own_view(held);

    if (view == NULL) {
        return;
    }
    if ((view->status == IDEM_STATUS_IN_PROGRESS && !view->retry) ||
        (view->status == asked && asked == IDEM_STATUS_COMPLETED &&
         view->content == content)) {
        violate(c->world, "I8", "LOST, and the record is its own");
    }
}

static uint64_t kept_content(const struct client *c,
                             const struct idem_outcome *outcome)
{
    struct idem_result result = outcome->result;

    if (result.bytes.len > c->world->config.result_max) {
        result.bytes.len = 0;
        result.not_kept = true;
    }
    return content_of(&result);
}

static void acknowledged(struct key *key, const struct completion *completion)
{
    struct sight now = {
        .fence = completion->fence,
        .completed = completion->reopened_ms == IDEM_NEVER,
        .acknowledged = true,
        .expires_ms = completion->expires_ms,
    };

    told_see(key, &now);
}

void told_end(struct client *c, const struct held *held,
              const struct idem_outcome *outcome, int rc)
{
    const struct idem_record *record = held->attempt->record;
    const struct completion *completion;
    uint64_t content = kept_content(c, outcome);

    told_code(c, rc);
    if (rc == IDEM_ELOST) {
        check_lost(c, held, outcome->status, content);
        check_not_counted(c, held);
    }
    if (rc != 0) {
        return;
    }
    check_not_counted(c, held);
    if (idem_record_status(record) != outcome->status &&
        !(outcome->status == IDEM_STATUS_RETRY &&
          record->status == IDEM_STATUS_FAILED && outcome->failures_max > 0 &&
          record->failures >= outcome->failures_max)) {
        violate(c->world, "API", "an attempt ended as %d and shows %d",
                (int)outcome->status, (int)idem_record_status(record));
    }
    if (outcome->status != IDEM_STATUS_COMPLETED) {
        return;
    }
    completion =
        ledger_recorded(held->key, held->fence, content, c->call->asked_ms);
    if (completion == NULL) {
        violate(c->world, "I6",
                "a completion that was acknowledged is not "
                "on record");
    }
    if (content_of(&record->result) != content) {
        violate(c->world, "I7",
                "the first caller is shown another result "
                "than it gave");
    }
    if (completion != NULL) {
        acknowledged(held->key, completion);
    }
}

/* A record must not give its lease away while the owner counts on it. */
static void check_counted(struct client *c, const struct held *held)
{
    const struct view *view = &c->call->wrote;
    int64_t end_ms = counted(held);
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

void told_renewed(struct client *c, const struct held *held, int64_t counted_ms,
                  int rc)
{
    told_code(c, rc);
    if (rc == IDEM_ELOST) {
        check_lost(c, held, IDEM_STATUS_IN_PROGRESS, /* content= */ 0);
        check_not_counted(c, held);
        return;
    }
    if (rc == 0) {
        check_counted(c, held);
    } else if (counted(held) < counted_ms) {
        violate(c->world, "I10", "%s is taken for the loss of the lease",
                idem_error_name(rc));
    }
}

void told_expired(struct client *c, const struct held *held, int rc)
{
    told_code(c, rc);
    if (rc == IDEM_ELOST) {
        check_lost(c, held, IDEM_STATUS_IN_PROGRESS, /* content= */ 0);
    }
    if ((rc == 0 || rc == IDEM_ELOST || rc == IDEM_EUNKNOWN) &&
        counted(held) != 0) {
        violate(c->world, "I9", "%s, and it goes on counting on its lease",
                idem_error_name(rc));
    }
}
