/* Sets and measures leases, retention and history for all decisions. */
#include "core/decide.h"

#include "base/host.h"
#include "core/identity.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* After a release, only the fence has to be remembered. */
#define RELEASED_RETENTION_MS (24 * 3600 * 1000)

bool idem__is_counted_here(const struct idem_record *record,
                           const struct idem_now *now)
{
    static const uint8_t none[16];

    /* An id of zeros names no boot: the layout of another library has no place for an id,
     * and its lease must not pass for one that this boot set. */
    return memcmp(record->boot_id, now->boot_id, sizeof(none)) == 0 &&
           memcmp(record->boot_id, none, sizeof(none)) != 0;
}

/* The time left on the lease: by the boot clock alone if this boot set the lease, else by
 * store time, with @margin_ms added to the end. */
static int64_t left_with(const struct idem_record *record,
                         const struct idem_now *now, int64_t margin_ms)
{
    int64_t left;

    if (record->retry && record->lease_ms == 0) {
        return 0; /* Without a pause no time is left, whatever a clock shows. */
    }
    if (record->lease_end_ms == IDEM_NEVER) {
        return IDEM_NEVER;
    }
    /* The boot clock is exact for a lease that this boot set: nobody can set it, and it
     * counts while the host sleeps. */
    if (idem__is_counted_here(record, now)) {
        left = record->lease_end_boot_ms - now->boot_ms;
    } else {
        /* Use the earliest possible store time, so that no caller takes over too soon. */
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

int64_t idem__deadline(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_IN_PROGRESS ? record->lease_end_ms
                                                     : record->expires_ms;
}

/* How far two clocks may differ. AWS accepts signatures that are 15 minutes off, so one
 * host may be that fast while another is that slow. */
#define CLOCKS_APART_MS ((int64_t)30 * 60 * 1000)

/* The latest end of a lease of @lease_ms that was set no later than now. */
static int64_t latest_end(int64_t lease_ms, const struct idem_now *now)
{
    return idem__time_add(idem__time_add(now->store_ms + now->store_err_ms,
                                         CLOCKS_APART_MS),
                          lease_ms);
}

/* Sets the expiry of a record in progress whose lease ends at @end_ms. */
static void set_open_expiry(struct idem_record *record, int64_t end_ms)
{
    /* Under hold the record never expires: the work may have been done, and only a person
     * may end the record (specification 5). */
    record->expires_ms = record->on_expired_lease == IDEM_RERUN
                             ? idem__time_add(end_ms, record->retention_ms)
                             : IDEM_NEVER;
}

/* The end on record is the latest possible store time plus the length. The owner counts
 * the same length from before its request, so it stops first. */
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

bool idem__lease_bound(struct idem_record *record, const struct idem_now *now)
{
    int64_t latest_ms = latest_end(record->lease_ms, now);

    if (record->lease_end_ms == IDEM_NEVER ||
        record->lease_end_ms <= latest_ms) {
        return false;
    }
    /* The owner stops earlier anyway: it counts the length from before its request. */
    record->lease_end_ms = latest_ms;
    set_open_expiry(record, latest_ms);
    return true;
}

/* The margin is for callers that would take over. As part of the lease it would grow the
 * lease with every renewal. If the end on record stays, its length stays with it, because
 * idem__lease_bound() compares the two. */
void idem__lease_extend(struct idem_record *record, int64_t lease_ms,
                        const struct idem_now *now)
{
    struct idem_record before = *record;
    int64_t left;
    bool stays;

    /* A renewal must not preserve an end that a wrong clock wrote (specification 6). */
    (void)idem__lease_bound(&before, now);
    left = left_with(&before, now, /* margin_ms= */ 0);
    idem__lease_set(record, lease_ms, now);
    /* The end on record may be later: an earlier call requested a longer lease, or
     * another clock wrote it. Other callers rely on that end, so it stays. */
    stays = record->lease_end_ms < before.lease_end_ms;
    if (stays) {
        record->lease_end_ms = before.lease_end_ms;
        set_open_expiry(record, before.lease_end_ms);
    }
    /* Do the same for the end by the boot clock. */
    if (lease_ms < left) {
        record->lease_end_boot_ms = idem__time_add(now->boot_ms, left);
        stays = true;
    }
    if (stays && record->lease_ms < before.lease_ms) {
        record->lease_ms = before.lease_ms;
    }
}

void idem__lease_end(struct idem_record *record, const struct idem_now *now)
{
    /* Set the end so far back that every boot and host finds the lease over. Retention
     * still counts from now. */
    int64_t past_ms = now->store_ms - now->store_err_ms - now->margin_ms;

    record->lease_end_ms = past_ms > 0 ? past_ms : 0;
    record->lease_end_boot_ms = now->boot_ms > 0 ? now->boot_ms : 0;
    memcpy(record->boot_id, now->boot_id, sizeof(record->boot_id));
    set_open_expiry(record, now->store_ms + now->store_err_ms);
}

bool idem__tells_of_work(enum idem_past_end end)
{
    return end == IDEM_PAST_TAKEN_OVER || end == IDEM_PAST_RETRIED ||
           end == IDEM_PAST_REOPENED;
}

/* True if the oldest past attempt, which no longer fits, is the only one that shows
 * that the work may have been done. */
static bool oldest_is_needed(const struct idem_record *record)
{
    size_t i;

    for (i = 0; i < IDEM_HISTORY_MAX - 1; i++) {
        if (record->history[i].end != IDEM_PAST_RELEASED) {
            return false;
        }
    }
    return idem__tells_of_work(record->history[i].end);
}

/* The history is read first, because a program that does not know in_doubt may have
 * written the record. in_doubt remembers an attempt that eight released attempts have
 * pushed out of the history. */
uint64_t idem__in_doubt(const struct idem_record *record)
{
    size_t i;

    for (i = 0; i < record->history_len; i++) {
        const struct idem_past *past = &record->history[i];

        if (past->end == IDEM_PAST_RESOLVED) {
            /* The person has settled all attempts up to the one that the decision was
             * about; only a later one is in doubt. */
            return record->in_doubt > past->fence ? record->in_doubt : 0;
        }
        if (idem__tells_of_work(past->end)) {
            return past->fence;
        }
    }
    return record->in_doubt;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t idem__not_before(const struct idem_record *record, int64_t ms)
{
    return later(later(ms, record->created_ms),
                 later(record->started_ms, record->ended_ms));
}

void idem__history_push(struct idem_record *record, struct idem_slice owner,
                        int64_t ended_ms, enum idem_past_end end)
{
    size_t kept = record->history_len;

    if (kept == IDEM_HISTORY_MAX) {
        kept--;
        /* Eight released attempts must not push out the only one that may have done the
         * work: the second oldest, which did nothing, goes instead. */
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
        .ended_ms = idem__not_before(record, ended_ms),
        .end = end,
    };
    record->history_len = kept + 1;
}

static struct idem_slice first_line(struct idem_slice s)
{
    const char *end = s.len == 0 ? NULL : memchr(s.base, '\n', s.len);

    return end == NULL
               ? s
               : idem_bytes(s.base, (size_t)(end - (const char *)s.base));
}

static struct idem_slice cut(struct idem_slice s, size_t max)
{
    return idem_bytes(s.base, s.len < max ? s.len : max);
}

void idem__history_decide(struct idem_record *record, struct idem_slice who,
                          const struct idem_now *now, enum idem_past_end end)
{
    struct idem_past *past = &record->history[0];

    /* The fence rises before the attempt is pushed, so that the entry has the new one. */
    record->fence += idem__is_decided(record);
    idem__history_push(record, who, now->store_ms, end);
    past->was = record->status;
    past->meta = cut(first_line(record->result.meta), IDEM_PAST_META_MAX);
    past->text = cut(record->error.len > 0 ? record->error : record->note,
                     IDEM_PAST_TEXT_MAX);
}

/* If an earlier attempt may have done the work, that is remembered for the whole
 * retention, although the last attempt did nothing. */
static int64_t released_retention(const struct idem_record *record)
{
    return idem__in_doubt(record) != 0
               ? later(record->retention_ms, RELEASED_RETENTION_MS)
               : RELEASED_RETENTION_MS;
}

static int64_t expiry_of(const struct idem_record *record, int64_t ended_ms)
{
    switch (record->status) {
    case IDEM_STATUS_COMPLETED:
        return idem__time_add(ended_ms, record->retention_ms);
    case IDEM_STATUS_RELEASED:
        return idem__time_add(ended_ms, released_retention(record));
    /* A failed or unknown record waits for a person, however long that takes. For a
     * record that waits for a retry, set_pause() sets the expiry. */
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RETRY:
        break;
    }
    return IDEM_NEVER;
}

/* A record that waits to be run again has the pause as its lease, so that the rules for the
 * end of a lease apply to it. Without a pause the lease is over by every clock. */
static void set_pause(struct idem_record *record, int64_t pause_ms,
                      const struct idem_now *now)
{
    if (pause_ms > 0) {
        idem__lease_set(record, pause_ms, now);
    } else {
        record->lease_ms = 0;
        idem__lease_end(record, now);
    }
}

int idem__outcome_set(struct idem_record *record,
                      const struct idem_outcome *outcome,
                      const struct idem_now *now)
{
    bool failed = outcome->status == IDEM_STATUS_FAILED;
    bool retry = outcome->status == IDEM_STATUS_RETRY;
    struct idem_slice none = {NULL, 0};
    int rc;

    assert(outcome->status != IDEM_STATUS_IN_PROGRESS);
    /* The digest comes first, because only it can fail. */
    rc = idem__body_digest(outcome->result.bytes, record->result_digest);
    if (rc != 0) {
        return rc;
    }
    record->status = retry ? IDEM_STATUS_IN_PROGRESS : outcome->status;
    record->by_lease = false;
    record->retry = retry;
    record->result = outcome->result;
    record->result_len = outcome->result.bytes.len;
    record->error = failed ? outcome->text : none;
    record->note = failed ? none : outcome->text;
    record->ended_ms = idem__not_before(record, now->store_ms);
    /* Retention counts from the latest possible store time, so the record is kept at
     * least as long as promised. */
    record->expires_ms = expiry_of(record, now->store_ms + now->store_err_ms);
    /* The pause comes after expiry_of(), whose expiry it replaces. */
    if (retry) {
        set_pause(record, outcome->retry_after_ms, now);
    }
    return 0;
}

void idem__result_clear(struct idem_record *record)
{
    memset(&record->result, 0, sizeof(record->result));
    memset(record->result_digest, 0, sizeof(record->result_digest));
    record->result_len = 0;
    record->error = idem_bytes(NULL, 0);
    record->note = idem_bytes(NULL, 0);
}

bool idem__is_decided(const struct idem_record *record)
{
    const struct idem_past *last = &record->history[0];

    /* An attempt that started since has a higher fence than the entry. */
    return record->history_len > 0 && last->fence == record->fence &&
           (last->end == IDEM_PAST_RESOLVED || last->end == IDEM_PAST_REOPENED);
}

bool idem__is_reopened(const struct idem_record *record)
{
    return record->retry && idem__is_decided(record) &&
           record->history[0].end == IDEM_PAST_REOPENED;
}

void idem__refuse(struct idem_decision *decision, int code, const char *format,
                  ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(decision->text, sizeof(decision->text), format, args);
    va_end(args);
    decision->code = code;
    /* A rule may have filled in next before it refuses: do not write any of it. */
    decision->change = IDEM_CHANGE_NONE;
}

/* Fences are times in ms, so idem never assigns one that high: a record that was imported
 * or written by another program had it, and may have been purged since. */
bool idem__refuse_fence(struct idem_decision *decision)
{
    bool bad = decision->next.fence > INT64_MAX;

    if (bad) {
        idem__refuse(
            decision, IDEM_ECORRUPT,
            "no fence left for a new attempt: the record, or a purged one, has "
            "%lld, above all that idem assigns",
            (long long)INT64_MAX);
    }
    return bad;
}

bool idem__decide_expired(const struct idem_record *record,
                          const struct idem_now *now)
{
    /* Use the earliest possible store time: a record that is forgotten too early lets its
     * work be done twice; a record that is kept too long is only replayed for longer. */
    return record->expires_ms != IDEM_NEVER &&
           now->store_ms - now->store_err_ms - now->doubt_ms >=
               record->expires_ms;
}

bool idem__decide_overdue(const struct idem_record *record,
                          const struct idem_now *now)
{
    if (record->status != IDEM_STATUS_IN_PROGRESS) {
        return false;
    }
    if (record->retry && idem__lease_left(record, now) > 0) {
        return false; /* No caller may run it before the pause ends. */
    }
    /* An ended lease shows that the owner has not reported. A record marked retry is
     * different: its attempt has reported. */
    return (record->expected_ms != 0 && now->store_ms > record->expected_ms) ||
           (!record->retry && idem__lease_left(record, now) == 0);
}
