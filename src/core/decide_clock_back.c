/* Decides the new form of a record once the store's time was set back. */
#include "base/host.h"
#include "core/decide.h"

/* A released record lives for a day at least. */
#define KEPT_MIN_MS (24 * 3600 * 1000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A deadline that is a length of time from a moment in the future. */
static int64_t due(int64_t at_ms, int64_t length_ms, int64_t now_ms)
{
    return at_ms == IDEM_NEVER
               ? IDEM_NEVER
               : earlier(at_ms, idem__time_add(now_ms, length_ms));
}

static void set_back(struct idem_record *record, int64_t now_ms)
{
    /* A length of time, taken before started_ms changes below. */
    int64_t expect_ms = record->expected_ms - record->started_ms;

    if (record->expected_ms != 0) {
        record->expected_ms = due(record->expected_ms, expect_ms, now_ms);
    }
    record->created_ms = earlier(record->created_ms, now_ms);
    record->started_ms = earlier(record->started_ms, now_ms);
    record->ended_ms = earlier(record->ended_ms, now_ms);
    /* The end by the boot clock stays: a lease of this boot goes by that one. */
    record->lease_end_ms = due(record->lease_end_ms, record->lease_ms, now_ms);
    /* A whole retention from now: it is remembered for no less than it was
     * promised, whenever it really ended. */
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
    /* A record without a time in the future is left alone. So a second run, after a first
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
