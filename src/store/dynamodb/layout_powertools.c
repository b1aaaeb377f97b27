/* The items of Powertools for AWS Lambda.
 *
 *     id                      S  the key
 *     status                  S  INPROGRESS or COMPLETED
 *     expiration              N  when it counts no more, in seconds; DynamoDB
 *                                deletes by it
 *     in_progress_expiration  N  when another may take over, in milliseconds
 *     data                       the result: S with JSON; TypeScript: the value
 *
 * Whoever uses Powertools takes over what is past expiration, and what is INPROGRESS
 * and past in_progress_expiration; without that attribute it is never taken over. So
 * what must not be run again by anybody, failed, unknown and held work, is INPROGRESS
 * without it, and never expires; what was released, or is to be run again, can be
 * taken over at once (by Powertools without being told that it is a takeover).
 */
#include "base/host.h"
#include "core/error.h"
#include "store/dynamodb/foreign.h"

/* The year 9999: never. */
#define NEVER_S ((int64_t)253402300799)

/* Powertools takes over just at the time, by the clock of its host. */
#define CLOCKS_MS 2000

#define FOREIGN_LEASE_MS ((int64_t)60 * 1000)

struct words {
    const char *status;
    int64_t expires_s;
    int64_t takeover_ms; /* -1: none. */
};

static int64_t to_s(int64_t ms)
{
    return ms == IDEM_NEVER || ms / 1000 >= NEVER_S ? NEVER_S
                                                    : (ms + 999) / 1000;
}

static void words_of(const struct idem_record *record, struct words *ret)
{
    ret->status = "INPROGRESS";
    ret->expires_s = to_s(record->expires_ms);
    ret->takeover_ms = -1;
    switch (record->status) {
    case IDEM_STATUS_COMPLETED:
        ret->status = "COMPLETED";
        break;
    case IDEM_STATUS_RELEASED:
        ret->takeover_ms = 1;
        break;
    case IDEM_STATUS_IN_PROGRESS:
        if (record->retry) {
            ret->takeover_ms = 1;
        } else if (record->on_expired_lease == IDEM_RERUN &&
                   record->lease_end_ms != IDEM_NEVER) {
            ret->takeover_ms = idem__time_add(record->lease_end_ms, CLOCKS_MS);
        }
        break;
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_RETRY: /* Stored as in progress. */
        break;
    }
}

static void write(struct idem__buffer *out, const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    idem__foreign_name(out, "status");
    idem__json_s(out, words.status);
    idem__foreign_name(out, "expiration");
    idem__json_n(out, (uint64_t)words.expires_s);
    if (words.takeover_ms >= 0) {
        idem__foreign_name(out, "in_progress_expiration");
        idem__json_n(out, (uint64_t)words.takeover_ms);
    }
}

/* A number that is not there is -1; one that is none is -2. */
static int64_t number(json_object *object, const char *name)
{
    int64_t value;
    int rc = idem__foreign_number(object, name, &value);

    return rc == 1 ? value : rc == 0 ? -1 : -2;
}

static bool agrees(json_object *object, const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    return idem__foreign_is(object, "status", words.status) &&
           number(object, "expiration") == words.expires_s &&
           number(object, "in_progress_expiration") == words.takeover_ms;
}

/* A fence is above those that a claim of ours had before: it is a time to come. */
static void set_fence(struct idem_record *record, int64_t takeover_ms)
{
    int64_t fence = record->expires_ms == IDEM_NEVER ? 1 : record->expires_ms;

    fence = fence > takeover_ms ? fence : takeover_ms;
    fence = fence < 1 ? 1 : fence;
    record->fence =
        record->fence >= (uint64_t)fence ? record->fence + 1 : (uint64_t)fence;
}

static int read(json_object *object, struct idem_record *record,
                struct idem__buffer *memory, bool *ret_result,
                struct idem_error *error)
{
    int64_t expires_s = number(object, "expiration");
    int64_t takeover_ms = number(object, "in_progress_expiration");

    (void)memory;
    if (expires_s < -1 || takeover_ms < -1 || expires_s > NEVER_S) {
        return idem__foreign_corrupt(error, "its times are none");
    }
    record->owner = idem_str("Powertools");
    record->on_expired_lease = IDEM_RERUN;
    /* The length of a lease that is told by expiration alone is not known. */
    record->lease_ms = takeover_ms >= 0 ? FOREIGN_LEASE_MS : IDEM_NEVER;
    record->expires_ms =
        expires_s < 0 || expires_s == NEVER_S ? IDEM_NEVER : expires_s * 1000;
    record->lease_end_ms = takeover_ms >= 0 ? takeover_ms : record->expires_ms;
    set_fence(record, takeover_ms);
    if (idem__foreign_is(object, "status", "COMPLETED")) {
        record->status = IDEM_STATUS_COMPLETED;
        *ret_result = true;
        return 0;
    }
    if (idem__foreign_is(object, "status", "INPROGRESS")) {
        record->status = IDEM_STATUS_IN_PROGRESS;
        return 0;
    }
    return idem__foreign_corrupt(error, "its status is not one of Powertools");
}

static const char *const control[] = {"status", "expiration",
                                      "in_progress_expiration", NULL};

const struct idem__foreign idem__foreign_powertools = {
    .key = "id",
    .ttl = "expiration",
    .result = "data",
    .control = control,
    .write = write,
    .agrees = agrees,
    .read = read,
};

const struct idem__foreign idem__foreign_powertools_native = {
    .key = "id",
    .ttl = "expiration",
    .result = "data",
    .native = true,
    .control = control,
    .write = write,
    .agrees = agrees,
    .read = read,
};
