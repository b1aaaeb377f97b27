/* Leases, retention and history: what the decisions share. */
#include "core/decide.h"

#include "base/host.h"
#include "core/digest.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* After a release nothing needs to be remembered but the fence. */
#define RELEASED_RETENTION_MS (24 * 3600 * 1000)

static bool same_boot(const struct idem_record *record,
                      const struct idem_now *now)
{
    static const uint8_t none[16];

    return memcmp(record->boot_id, now->boot_id, sizeof(none)) == 0 &&
           memcmp(record->boot_id, none, sizeof(none)) != 0;
}

/* How long the lease still runs, if one that another boot counts is over only
 * @margin_ms after its end. */
static int64_t left_with(const struct idem_record *record,
                         const struct idem_now *now, int64_t margin_ms)
{
    int64_t left;

    if (record->lease_end_ms == IDEM_NEVER) {
        return IDEM_NEVER;
    }
    if (same_boot(record, now)) {
        left = record->lease_end_boot_ms - now->boot_ms;
    } else {
        left = idem__time_add(record->lease_end_ms, margin_ms) -
               (now->store_ms - now->store_err_ms);
    }
    return left > 0 ? left : 0;
}

int64_t idem__lease_left(const struct idem_record *record,
                         const struct idem_now *now)
{
    return left_with(record, now, now->margin_ms);
}

/* @end_ms: of the lease. */
static void set_open_expiry(struct idem_record *record, int64_t end_ms)
{
    record->expires_ms = record->on_expired_lease == IDEM_RERUN
                             ? idem__time_add(end_ms, record->retention_ms)
                             : IDEM_NEVER;
}

/* The owner counts its lease from before it asked, so its end is never later
 * than the upper bound of store time now plus the length. */
void idem__lease_set(struct idem_record *record, int64_t lease_ms,
                     const struct idem_now *now)
{
    record->lease_ms = lease_ms;
    record->lease_end_ms =
        idem__time_add(now->store_ms + now->store_err_ms, lease_ms);
    record->lease_end_boot_ms = idem__time_add(now->boot_ms, lease_ms);
    memcpy(record->boot_id, now->boot_id, sizeof(record->boot_id));
    set_open_expiry(record, record->lease_end_ms);
}

/* The margin is for those who would take over. It is no part of the lease, which
 * would grow by it with every renewal. */
void idem__lease_extend(struct idem_record *record, int64_t lease_ms,
                        const struct idem_now *now)
{
    int64_t left = left_with(record, now, /* margin_ms= */ 0);
    int64_t end_ms = record->lease_end_ms;

    idem__lease_set(record, lease_ms, now);
    if (record->lease_end_ms < end_ms) {
        record->lease_end_ms = end_ms;
        set_open_expiry(record, end_ms);
    }
    if (lease_ms < left) {
        record->lease_end_boot_ms = idem__time_add(now->boot_ms, left);
    }
}

void idem__lease_end(struct idem_record *record, const struct idem_now *now)
{
    /* So far back that another boot or host, too, finds it over. The record is
     * kept from now on all the same. */
    int64_t past_ms = now->store_ms - now->store_err_ms - now->margin_ms;

    record->lease_end_ms = past_ms > 0 ? past_ms : 0;
    record->lease_end_boot_ms = now->boot_ms > 0 ? now->boot_ms : 0;
    memcpy(record->boot_id, now->boot_id, sizeof(record->boot_id));
    set_open_expiry(record, now->store_ms + now->store_err_ms);
}

/* True if the oldest past attempt, for which there is no room any more, is the
 * only one that tells that the work may have been done. */
static bool oldest_is_needed(const struct idem_record *record)
{
    size_t i;

    for (i = 0; i < IDEM_HISTORY_MAX - 1; i++) {
        if (record->history[i].end != IDEM_PAST_RELEASED) {
            return false;
        }
    }
    return record->history[i].end == IDEM_PAST_TAKEN_OVER;
}

void idem__history_push(struct idem_record *record, struct idem_slice owner,
                        int64_t ended_ms, enum idem_past_end end)
{
    size_t kept = record->history_len;

    if (kept == IDEM_HISTORY_MAX) {
        kept--;
        if (end == IDEM_PAST_RELEASED && oldest_is_needed(record)) {
            record->history[kept - 1] = record->history[kept];
        }
    }
    memmove(record->history + 1, record->history,
            kept * sizeof(record->history[0]));
    record->history[0] = (struct idem_past){
        .owner = owner,
        .fence = record->fence,
        .started_ms = record->started_ms,
        .ended_ms = ended_ms,
        .end = end,
    };
    record->history_len = kept + 1;
}

static int64_t expiry_of(enum idem_status status, int64_t ended_ms,
                         int64_t retention_ms)
{
    switch (status) {
    case IDEM_STATUS_COMPLETED:
        return idem__time_add(ended_ms, retention_ms);
    case IDEM_STATUS_RELEASED:
        return idem__time_add(ended_ms, RELEASED_RETENTION_MS);
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return IDEM_NEVER;
}

int idem__outcome_set(struct idem_record *record,
                      const struct idem_outcome *outcome,
                      const struct idem_now *now)
{
    bool failed = outcome->status == IDEM_STATUS_FAILED;
    struct idem_slice none = {NULL, 0};
    int rc;

    assert(outcome->status != IDEM_STATUS_IN_PROGRESS);
    rc = idem__body_digest(outcome->result.bytes, record->result_digest);
    if (rc != 0) {
        return rc;
    }
    record->status = outcome->status;
    record->by_lease = false;
    record->result = outcome->result;
    record->result_len = outcome->result.bytes.len;
    record->error = failed ? outcome->text : none;
    record->note = failed ? none : outcome->text;
    record->ended_ms = now->store_ms;
    record->expires_ms =
        expiry_of(outcome->status, now->store_ms + now->store_err_ms,
                  record->retention_ms);
    return 0;
}

void idem__refuse(struct idem_decision *decision, int code, const char *format,
                  ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(decision->text, sizeof(decision->text), format, args);
    va_end(args);
    decision->code = code;
    decision->change = IDEM_CHANGE_NONE;
}

bool idem_decide_expired(const struct idem_record *record,
                         const struct idem_now *now)
{
    return record->expires_ms != IDEM_NEVER &&
           now->store_ms - now->store_err_ms >= record->expires_ms;
}

bool idem_decide_overdue(const struct idem_record *record,
                         const struct idem_now *now)
{
    if (record->status != IDEM_STATUS_IN_PROGRESS) {
        return false;
    }
    return (record->expected_ms != 0 && now->store_ms > record->expected_ms) ||
           idem__lease_left(record, now) == 0;
}
