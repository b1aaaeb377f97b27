/* The items of Locker.
 *
 *     token               S  the key
 *     status              S  inProgress or error; completed work has none
 *     lockedBy            S  whoever says this may end it
 *     created, expectedCompletion, actualCompletion   S  as Date writes itself
 *     result              S  JSON
 *     error               S
 *     ttl                 N  seconds, for DynamoDB to delete by; Locker itself
 *                            writes milliseconds, which DynamoDB never reaches
 *
 * Locker never takes anything over, and knows what was released only as an item that
 * is not there. So what is to be run again stays locked for it until idem has run
 * it.
 */
#include "base/host.h"
#include "core/error.h"
#include "store/dynamodb/foreign.h"

#include <stdio.h>
#include <time.h>

enum {
    TEXT_MAX = IDEM_OWNER_MAX + 32,
};

/* Seconds of the year 5138: a larger ttl is in milliseconds. */
#define MS_FROM ((int64_t)100000000000)

/* Of the year 9999; a Date has no more digits. */
#define LAST_MS ((int64_t)253402300799999)

struct words {
    const char *status; /* NULL: none. */
    char locked_by[TEXT_MAX];
    char created[32];
    char expected[32]; /* "": none. */
    char actual[32];   /* Likewise. */
    char error[IDEM_TEXT_MAX + 64];
    int64_t ttl_s; /* -1: none. */
};

static void date(int64_t ms, char to[32])
{
    time_t s = (time_t)((ms < LAST_MS ? ms : LAST_MS) / 1000);
    struct tm tm;
    char text[24];

    (void)gmtime_r(&s, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(to, 32, "%s.%03dZ", text, (int)(ms % 1000));
}

/* Locker ends whatever has its own lockedBy: it must not be another attempt's. */
static void name_owner(const struct idem_record *record, char to[TEXT_MAX])
{
    (void)snprintf(to, TEXT_MAX, "%.*s%s#%llu", (int)record->owner.len,
                   record->owner.len == 0 ? ""
                                          : (const char *)record->owner.base,
                   record->owner.len == 0 ? "idem" : "",
                   (unsigned long long)record->fence);
    if (!idem__json_is_utf8(idem_str(to))) {
        (void)snprintf(to, TEXT_MAX, "idem#%llu",
                       (unsigned long long)record->fence);
    }
}

static void set_error(const struct idem_record *record, char *to, size_t cap)
{
    struct idem_slice text =
        record->status == IDEM_STATUS_FAILED ? record->error : record->note;

    (void)snprintf(to, cap, "%s%.*s",
                   record->status == IDEM_STATUS_FAILED ? ""
                                                        : "outcome unknown: ",
                   (int)text.len, text.len == 0 ? "" : (const char *)text.base);
    if (!idem__json_is_utf8(idem_str(to))) {
        (void)snprintf(to, cap, "%s", idem_status_name(record->status));
    }
}

static void words_of(const struct idem_record *record, struct words *ret)
{
    int64_t expected_ms =
        record->expected_ms > 0 ? record->expected_ms : record->lease_end_ms;

    memset(ret, 0, sizeof(*ret));
    name_owner(record, ret->locked_by);
    date(record->created_ms, ret->created);
    if (expected_ms != IDEM_NEVER) {
        date(expected_ms, ret->expected);
    }
    if (record->status != IDEM_STATUS_IN_PROGRESS) {
        date(record->ended_ms, ret->actual);
    }
    ret->ttl_s = record->expires_ms == IDEM_NEVER
                     ? -1
                     : (record->expires_ms + IDEM__TTL_GUARD_MS) / 1000 + 1;
    switch (record->status) {
    case IDEM_STATUS_IN_PROGRESS:
        ret->status = "inProgress";
        break;
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_UNKNOWN:
        ret->status = "error";
        set_error(record, ret->error, sizeof(ret->error));
        break;
    case IDEM_STATUS_COMPLETED:
    case IDEM_STATUS_RELEASED: /* Deleted. */
    case IDEM_STATUS_RETRY:    /* Stored as in progress. */
        break;
    }
}

static void add(struct idem__buffer *out, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        idem__foreign_name(out, name);
        idem__json_s(out, text);
    }
}

static void write(struct idem__buffer *out, const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    add(out, "status", words.status);
    add(out, "lockedBy", words.locked_by);
    add(out, "created", words.created);
    add(out, "expectedCompletion", words.expected);
    add(out, "actualCompletion", words.actual);
    add(out, "error", words.error);
    if (words.ttl_s >= 0) {
        idem__foreign_name(out, "ttl");
        idem__json_n(out, (uint64_t)words.ttl_s);
    }
}

static bool agrees(json_object *object, const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    return idem__foreign_is(object, "status", words.status) &&
           idem__foreign_is(object, "lockedBy", words.locked_by) &&
           idem__foreign_is(object, "actualCompletion",
                            words.actual[0] == '\0' ? NULL : words.actual);
}

/* "2024-04-27T14:02:40.123Z"; 0: it is no date. */
static int64_t read_date(json_object *object, const char *name)
{
    struct tm tm = {0};
    struct idem_slice text;
    char buf[32];
    int ms = 0, n = 0;

    if (idem__json_attribute(object, name, "S", &text) != 1 ||
        text.len >= sizeof(buf)) {
        return 0;
    }
    memcpy(buf, text.base, text.len);
    buf[text.len] = '\0';
    n = sscanf(buf, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms);
    tm.tm_year -= 1900;
    tm.tm_mon--;
    return n < 6 || timegm(&tm) < 0 ? 0 : (int64_t)timegm(&tm) * 1000 + ms;
}

static int64_t read_ttl(json_object *object)
{
    int64_t ttl;

    if (idem__foreign_number(object, "ttl", &ttl) != 1) {
        return IDEM_NEVER;
    }
    return ttl < MS_FROM ? ttl * 1000 : ttl;
}

static int read_status(json_object *object, struct idem_record *record,
                       struct idem__buffer *memory, bool *ret_result)
{
    if (idem__foreign_is(object, "status", NULL)) {
        record->status = IDEM_STATUS_COMPLETED;
        record->ended_ms = read_date(object, "actualCompletion");
        record->expires_ms = read_ttl(object);
        *ret_result = true;
        return 0;
    }
    record->expires_ms = IDEM_NEVER;
    if (idem__foreign_is(object, "status", "inProgress")) {
        record->status = IDEM_STATUS_IN_PROGRESS;
        return 0;
    }
    record->status = IDEM_STATUS_FAILED;
    record->ended_ms = read_date(object, "actualCompletion");
    return idem__foreign_is(object, "status", "error")
               ? idem__foreign_text(object, "error", IDEM_TEXT_MAX, memory,
                                    &record->error)
               : IDEM_ECORRUPT;
}

static int read(json_object *object, struct idem_record *record,
                struct idem__buffer *memory, bool *ret_result,
                struct idem_error *error)
{
    record->created_ms = read_date(object, "created");
    record->started_ms = record->created_ms;
    record->expected_ms = read_date(object, "expectedCompletion");
    record->on_expired_lease = IDEM_HOLD;
    record->lease_ms = IDEM_NEVER;
    record->lease_end_ms = IDEM_NEVER;
    record->fence = record->fence >= (uint64_t)record->created_ms
                        ? record->fence + 1
                        : (uint64_t)record->created_ms;
    record->fence += record->fence == 0; /* No date. */
    if (idem__foreign_text(object, "lockedBy", IDEM_OWNER_MAX, memory,
                           &record->owner) != 0 ||
        read_status(object, record, memory, ret_result) != 0) {
        return idem__foreign_corrupt(error, "it is not a lock of Locker");
    }
    return 0;
}

static const char *const control[] = {"status", "lockedBy", "actualCompletion",
                                      "ttl", NULL};

const struct idem__foreign idem__foreign_locker = {
    .key = "token",
    .ttl = "ttl",
    .result = "result",
    .deletes = true,
    .control = control,
    .write = write,
    .agrees = agrees,
    .read = read,
};
