/* Decides how a record changes when a person sets the store's time back. */
#include "base/host.h"
#include "core/decide.h"

/* The shortest retention, that of a released record (lease.c). */
#define KEPT_MIN_MS (24 * 3600 * 1000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns @at_ms, which was counted as @length_ms from a moment that is now in the
 * future: at most @length_ms from now. */
static int64_t due(int64_t at_ms, int64_t length_ms, int64_t now_ms)
{
    return at_ms == IDEM_NEVER
               ? IDEM_NEVER
               : earlier(at_ms, idem__time_add(now_ms, length_ms));
}

static void set_back(struct idem_record *record, int64_t now_ms)
{
    /* Take the length before started_ms changes below. */
    int64_t expect_ms = record->expected_ms - record->started_ms;

    if (record->expected_ms != 0) {
        record->expected_ms = due(record->expected_ms, expect_ms, now_ms);
    }
    record->created_ms = earlier(record->created_ms, now_ms);
    record->started_ms = earlier(record->started_ms, now_ms);
    record->ended_ms = earlier(record->ended_ms, now_ms);
    /* lease_end_boot_ms stays: the boot clock, which nobody sets, measures a lease of
     * this boot. */
    record->lease_end_ms = due(record->lease_end_ms, record->lease_ms, now_ms);
    /* Keep the record for a whole retention from now: when it really ended is unknown,
     * and it must not be forgotten sooner than promised. */
    if (record->expires_ms != IDEM_NEVER) {
        int64_t kept_ms =
            record->status == IDEM_STATUS_IN_PROGRESS
                ? idem__time_add(record->lease_ms, record->retention_ms)
                : record->retention_ms;

        record->expires_ms =
            earlier(record->expires_ms,
                    idem__time_add(now_ms, kept_ms > KEPT_MIN_MS
                                               ? kept_ms
                                               : KEPT_MIN_MS));
    }
}

void idem__decide_clock_back(const struct idem_record *found,
                             const struct idem_now *now,
                             struct idem_decision *ret_decision)
{
    memset(ret_decision, 0, sizeof(*ret_decision));
    /* Leave a record without a time in the future alone. So a second run, after a first
     * that died, finds only the rest. */
    if (found->created_ms <= now->store_ms &&
        found->started_ms <= now->store_ms &&
        found->ended_ms <= now->store_ms) {
        return;
    }
    ret_decision->next = *found;
    set_back(&ret_decision->next, now->store_ms);
    ret_decision->change = IDEM_CHANGE_REPLACE;
}
