/* Items with a status, a time of deletion and the end of a lease: those of Powertools for
 * AWS Lambda, and those of the tables in two articles on idempotency.
 *
 *                 powertools-*            idempotency-store  http-idempotency
 *     key         id                      idempotencyKey     idempotencyKey
 *     status      status                  status             status
 *       working   INPROGRESS              IN_PROGRESS        IN_PROGRESS
 *       done      COMPLETED               COMPLETED          COMPLETED, FAILED
 *     deleted by  expiration, s           expiryTimestamp    expiry, s
 *     lease end   in_progress_expiration  expiryTimestamp, s lockExpiry, s
 *                 in ms
 *     result      data: S with JSON;      responseData:      responsePayload:
 *                 TypeScript: the value   the value          S with JSON
 *     input                               eventData
 *
 * Powertools takes an item over once it is past expiration, or is INPROGRESS and past
 * in_progress_expiration; an INPROGRESS item without that attribute it never takes over. So
 * work that nobody may run again (failed, unknown, held) is INPROGRESS without it, and never
 * expires. Work that was released, or must run again, can be taken over at once; Powertools
 * does not learn that this is a takeover.
 *
 * The table of the HTTP article differs in two ways. Its function takes a missing lockExpiry
 * for one that is over, so "never" is the year 9999. And failed work is FAILED: its function
 * replays the answer, and does not run the work again.
 *
 * The consumer of the article on events claims only a key without an item: past its
 * expiryTimestamp an item still waits until DynamoDB deletes it. So a release deletes
 * the item. A lease there ends before the function does: the article gives it nine tenths of
 * the time that the function has left, which is at most 15 minutes.
 */
#include "aws/dynamodb/layout/foreign.h"
#include "base/host.h"
#include "core/error.h"

/* The end of the year 9999 means never. */
#define NEVER_S ((int64_t)253402300799)
#define NEVER_MS (NEVER_S * 1000)

/* The library takes over by the clock of its host, which may be fast. */
#define CLOCKS_MS 2000

/* Nine tenths of 15 minutes end 90 s early; two times are rounded to seconds. */
#define LATE_MS ((int64_t)92 * 1000)

/* The longest lease that we expect of Powertools, and of a function on Lambda. */
#define FOREIGN_LEASE_MS ((int64_t)60 * 1000)
#define LAMBDA_LEASE_MS ((int64_t)15 * 60 * 1000)

struct idem__leased_words {
    const char *owner; /* Of the library's attempts. */
    const char *in_progress;
    const char *completed;
    const char *failed; /* NULL: failed work stays in progress, for ever. */
    int64_t lock_unit_ms;
    /* The lock of an item that the library must not take over; -1: it has none. */
    int64_t never_lock;
    int64_t late_ms;  /* How long the library may work after its lease. */
    int64_t lease_ms; /* The longest lease that the library takes. */
    bool bare;        /* An item without a status is a lock. */
};

/* The library's attributes. "Lock" is the end of the lease. */
struct times {
    const char *status;
    int64_t expires_s;
    int64_t lock; /* -1: the item has none. */
};

static int64_t to_s(int64_t ms)
{
    return ms == IDEM_NEVER || ms / 1000 >= NEVER_S ? NEVER_S
                                                    : (ms + 999) / 1000;
}

/* When the library may take over work in progress, or a released record. */
static int64_t lock_of(const struct idem__leased_words *w,
                       const struct idem_record *record)
{
    int64_t end_ms = record->lease_end_ms;

    if (record->status == IDEM_STATUS_RELEASED || record->retry) {
        return 1;
    }
    if (record->on_expired_lease != IDEM_RERUN || end_ms >= NEVER_MS) {
        return w->never_lock;
    }
    return (end_ms + CLOCKS_MS + w->lock_unit_ms - 1) / w->lock_unit_ms;
}

static void times_of(const struct idem__table_conf *table,
                     const struct idem_record *record, struct times *ret)
{
    const struct idem__leased_words *w = idem__foreign_of(table)->words;
    bool locks = table->attrs[IDEM__ATTR_LOCK][0] != '\0';

    ret->status = w->in_progress;
    ret->expires_s = to_s(record->expires_ms);
    ret->lock = -1;
    switch (record->status) {
    case IDEM_STATUS_COMPLETED:
        ret->status = w->completed;
        break;
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RELEASED:
        ret->lock = locks ? lock_of(w, record) : -1;
        break;
    case IDEM_STATUS_FAILED:
        ret->status = w->failed != NULL ? w->failed : w->in_progress;
        ret->lock = locks && w->failed == NULL ? w->never_lock : -1;
        break;
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_RETRY: /* Stored as in progress. */
        ret->lock = locks ? w->never_lock : -1;
        break;
    }
}

static void write(struct idem__buffer *out,
                  const struct idem__table_conf *table,
                  const struct idem_record *record)
{
    struct times times;

    times_of(table, record, &times);
    idem__foreign_name(out, table->attrs[IDEM__ATTR_STATUS]);
    idem__json_s(out, times.status);
    idem__foreign_name(out, table->attrs[IDEM__ATTR_EXPIRY]);
    idem__json_n(out, (uint64_t)times.expires_s);
    if (times.lock >= 0) {
        idem__foreign_name(out, table->attrs[IDEM__ATTR_LOCK]);
        idem__json_n(out, (uint64_t)times.lock);
    }
}

/* -1: the attribute is missing; -2: it is not a number. */
static int64_t number(json_object *object, const char *name)
{
    int64_t value;
    int rc = name[0] == '\0' ? 0 : idem__foreign_number(object, name, &value);

    return rc == 1 ? value : rc == 0 ? -1 : -2;
}

static bool agrees(const struct idem__table_conf *table, json_object *object,
                   const struct idem_record *record)
{
    struct times times;

    times_of(table, record, &times);
    return idem__foreign_is(object, table->attrs[IDEM__ATTR_STATUS],
                            times.status) &&
           number(object, table->attrs[IDEM__ATTR_EXPIRY]) == times.expires_s &&
           number(object, table->attrs[IDEM__ATTR_LOCK]) == times.lock;
}

/* ---- Reading ---- */

/* The library has no fences. Ours are times of claims, so the end of a lease, or of a
 * retention, is above those that our own claims of the key had before. */
static void set_fence(struct idem_record *record, int64_t time_ms,
                      int64_t lock_ms)
{
    int64_t fence = time_ms > lock_ms ? time_ms : lock_ms;

    fence = fence < 1 ? 1 : fence;
    record->fence =
        record->fence >= (uint64_t)fence ? record->fence + 1 : (uint64_t)fence;
}

static int read_times(const struct idem__table_conf *table, json_object *object,
                      struct times *ret, struct idem_error *error)
{
    const char *expiry = table->attrs[IDEM__ATTR_EXPIRY];
    const char *lock = table->attrs[IDEM__ATTR_LOCK];
    int64_t unit_ms = idem__foreign_of(table)->words->lock_unit_ms;

    ret->expires_s = number(object, expiry);
    ret->lock = number(object, lock);
    if (ret->expires_s < -1 || ret->expires_s > NEVER_S) {
        return idem__foreign_corrupt(error,
                                     "its \"%s\" is not a time in seconds",
                                     expiry);
    }
    if (ret->lock < -1 || ret->lock > NEVER_MS / unit_ms) {
        return idem__foreign_corrupt(error, "its \"%s\" is not a time in %s",
                                     lock,
                                     unit_ms == 1 ? "milliseconds" : "seconds");
    }
    return 0;
}

/* Sets the lease of an item in progress. In a layout where the same attribute ends the lease
 * and the retention, an item that is past it has not expired: it may be taken over. */
static void set_lease(const struct idem__table_conf *table,
                      const struct times *times, bool bare,
                      struct idem_record *record)
{
    const struct idem__leased_words *w = idem__foreign_of(table)->words;
    bool locks = table->attrs[IDEM__ATTR_LOCK][0] != '\0';

    record->status = IDEM_STATUS_IN_PROGRESS;
    if (bare) {
        record->on_expired_lease = IDEM_HOLD;
    }
    if (times->lock >= 0 && times->lock < NEVER_MS / w->lock_unit_ms) {
        record->lease_end_ms = times->lock * w->lock_unit_ms;
        record->lease_ms = w->lease_ms;
    } else if (times->lock < 0) {
        record->lease_end_ms = record->expires_ms;
    }
    if (!locks && record->expires_ms != IDEM_NEVER) {
        record->lease_end_ms = record->expires_ms + w->late_ms;
        record->lease_ms = bare ? IDEM_NEVER : w->lease_ms;
        record->expires_ms = IDEM_NEVER;
    }
}

static int read(const struct idem__table_conf *table, json_object *object,
                struct idem_record *record, struct idem__buffer *memory,
                bool *ret_result, struct idem_error *error)
{
    const struct idem__leased_words *w = idem__foreign_of(table)->words;
    const char *status = table->attrs[IDEM__ATTR_STATUS];
    bool bare = w->bare && idem__foreign_is(object, status, NULL);
    struct times times;

    if (read_times(table, object, &times, error) != 0) {
        return IDEM_ECORRUPT;
    }
    record->owner = idem_str(w->owner);
    record->on_expired_lease = IDEM_RERUN;
    /* The item has the end of the lease, and not its length. */
    record->lease_ms = IDEM_NEVER;
    record->lease_end_ms = IDEM_NEVER;
    record->expires_ms = times.expires_s < 0 || times.expires_s == NEVER_S
                             ? IDEM_NEVER
                             : times.expires_s * 1000;
    set_fence(record, record->expires_ms == IDEM_NEVER ? 1 : record->expires_ms,
              times.lock < 0 || times.lock == NEVER_MS / w->lock_unit_ms
                  ? 0
                  : times.lock * w->lock_unit_ms);
    if (bare || idem__foreign_is(object, status, w->in_progress)) {
        set_lease(table, &times, bare, record);
        return 0;
    }
    *ret_result = true;
    if (idem__foreign_is(object, status, w->completed)) {
        record->status = IDEM_STATUS_COMPLETED;
        return 0;
    }
    if (w->failed != NULL && idem__foreign_is(object, status, w->failed)) {
        record->status = IDEM_STATUS_FAILED;
        return idem__foreign_text(object, table->attrs[IDEM__ATTR_DATA],
                                  IDEM_TEXT_MAX, memory, &record->error) == 0
                   ? 0
                   : idem__foreign_corrupt(error, "its \"%s\" is not a string",
                                           table->attrs[IDEM__ATTR_DATA]);
    }
    return idem__foreign_corrupt(error, "its \"%s\" is not one of %s, %s%s%s",
                                 status, w->in_progress, w->completed,
                                 w->failed != NULL ? ", " : "",
                                 w->failed != NULL ? w->failed : "");
}

/* ---- The answer of the HTTP article ---- */

/* The function of the article replays an ended item without a look whether it has an answer,
 * and dies of one that it cannot parse. So every ended item has an answer. */
static bool tells_http(const struct idem__item *item, struct idem__buffer *text)
{
    const struct idem_record *record = &item->record;
    struct idem_result result = record->result;
    struct idem__buffer body = {.len = 0};

    result.bytes = item->result.stored;
    if ((record->status == IDEM_STATUS_COMPLETED ||
         record->status == IDEM_STATUS_FAILED) &&
        !result.not_kept && idem__envelope_write(text, &result)) {
        return true;
    }
    if (record->status == IDEM_STATUS_COMPLETED && record->result_len > 0) {
        return false;
    }
    if (record->status == IDEM_STATUS_COMPLETED && !record->result.not_kept) {
        idem__buffer_str(text, "null");
        return true;
    }
    if (record->status != IDEM_STATUS_FAILED &&
        record->status != IDEM_STATUS_COMPLETED) {
        return false;
    }
    idem__buffer_str(&body, "{\"error\":");
    idem__json_string(&body, record->status == IDEM_STATUS_COMPLETED
                                 ? idem_str("The answer was not kept")
                             : idem__utf8_is(record->error)
                                 ? record->error
                                 : idem_str("The work failed"));
    idem__buffer_str(&body, "}");
    idem__buffer_str(text, "{\"statusCode\":500,\"body\":");
    idem__json_string(text, idem__buffer_slice(&body));
    idem__buffer_str(text, "}");
    text->failed = text->failed || body.failed;
    idem__buffer_free(&body);
    return true;
}

/* ---- The layouts ---- */

#define NO_SCOPES                                                              \
    "it has no scopes and no rate limits, a key is a text, and a result of "   \
    "more than 120 KiB becomes a tombstone"

static const char *const powertools_gives_up[] = {
    NO_SCOPES,
    "Powertools ends its attempts without a condition: a function that was "
    "paused past its lease overwrites an attempt of idem, or deletes it",
    "payloads are compared between attempts of idem only",
    NULL,
};

static const char *const store_gives_up[] = {
    NO_SCOPES,
    "the consumer claims only keys without an item: an attempt that idem left "
    "in progress waits for idem, or until DynamoDB deletes it",
    "the consumer ends any item that is IN_PROGRESS: a consumer that was "
    "paused past its lease overwrites an attempt of idem",
    "a release deletes the item, with the count of its attempts and the mark "
    "that the work may have been done",
    "payloads are compared between attempts of idem only",
    NULL,
};

static const char *const http_gives_up[] = {
    NO_SCOPES,
    "the function ends its attempts without a condition: an attempt that "
    "outlives its lockExpiry overwrites an attempt of idem, or its result",
    "the function takes over its own work once that is past its lockExpiry, "
    "and knows no hold: such work may run twice",
    "payloads are compared between attempts of idem only",
    NULL,
};

static const struct idem__leased_words powertools_words = {
    .owner = "Powertools",
    .in_progress = "INPROGRESS",
    .completed = "COMPLETED",
    .lock_unit_ms = 1,
    .never_lock = -1,
    .lease_ms = FOREIGN_LEASE_MS,
};

static const struct idem__leased_words store_words = {
    .owner = "idempotency-store",
    .in_progress = "IN_PROGRESS",
    .completed = "COMPLETED",
    .lock_unit_ms = 1000,
    .never_lock = -1,
    .late_ms = LATE_MS,
    .lease_ms = LAMBDA_LEASE_MS,
    .bare = true,
};

static const struct idem__leased_words http_words = {
    .owner = "http-idempotency",
    .in_progress = "IN_PROGRESS",
    .completed = "COMPLETED",
    .failed = "FAILED",
    .lock_unit_ms = 1000,
    .never_lock = NEVER_S,
    .lease_ms = LAMBDA_LEASE_MS,
};

#define LEASED .write = write, .agrees = agrees, .read = read

#define POWERTOOLS(title)                                                      \
    LEASED, .words = &powertools_words,                                        \
            .kind = {.name = (title),                                          \
                     .ops = &idem__foreign_ops,                                \
                     .attrs = {[IDEM__ATTR_KEY] = "id",                        \
                               [IDEM__ATTR_STATUS] = "status",                 \
                               [IDEM__ATTR_EXPIRY] = "expiration",             \
                               [IDEM__ATTR_LOCK] = "in_progress_expiration",   \
                               [IDEM__ATTR_DATA] = "data"},                    \
                     .sorts = true,                                            \
                     .gives_up = powertools_gives_up}

const struct idem__foreign idem__foreign_powertools = {
    POWERTOOLS("powertools-python"),
};

const struct idem__foreign idem__foreign_powertools_native = {
    POWERTOOLS("powertools-typescript"),
    .native = true,
};

const struct idem__foreign idem__foreign_idempotency_store = {
    .kind = {.name = "idempotency-store",
             .ops = &idem__foreign_ops,
             .attrs = {[IDEM__ATTR_KEY] = "idempotencyKey",
                       [IDEM__ATTR_STATUS] = "status",
                       [IDEM__ATTR_EXPIRY] = "expiryTimestamp",
                       [IDEM__ATTR_DATA] = "responseData"},
             .input = "eventData",
             .drops = true,
             .gives_up = store_gives_up},
    .native = true,
    .words = &store_words,
    LEASED,
};

const struct idem__foreign idem__foreign_http_idempotency = {
    .kind = {.name = "http-idempotency",
             .ops = &idem__foreign_ops,
             .attrs = {[IDEM__ATTR_KEY] = "idempotencyKey",
                       [IDEM__ATTR_STATUS] = "status",
                       [IDEM__ATTR_EXPIRY] = "expiry",
                       [IDEM__ATTR_LOCK] = "lockExpiry",
                       [IDEM__ATTR_DATA] = "responsePayload"},
             .gives_up = http_gives_up},
    .answers = true,
    .words = &http_words,
    LEASED,
    .tells = tells_http,
};
