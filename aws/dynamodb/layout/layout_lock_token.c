/* The items of the table in the article on lock tokens.
 *
 *     lockToken           S  the key
 *     status              S  inProgress or error; missing for completed work
 *     lockedBy            S  the owner; only a program that gives it may end the work
 *     created, expectedCompletion, actualCompletion   S  as JavaScript writes a Date
 *     result              S  JSON; of failed work the error
 *     ttl                 N  when DynamoDB may delete the item, in seconds
 *
 * Programs of the article take nothing over, and have no lease: work that died is in
 * progress until a person decides. To them a released record is a missing item, so a release
 * deletes the item; and work that must run again stays locked until idem has run it.
 */
#include "aws/dynamodb/layout/foreign.h"
#include "base/host.h"
#include "core/error.h"

#include <stdio.h>
#include <time.h>

enum {
    TEXT_MAX = IDEM_OWNER_MAX + 32,
};

/* The end of the year 9999: later ones need more digits. */
#define LAST_MS ((int64_t)253402300799999)

/* The attributes of the article. "", NULL or -1: the item does not have it. */
struct words {
    const char *status;
    char locked_by[TEXT_MAX];
    char created[32];
    char expected[32];
    char actual[32];
    char error[IDEM_TEXT_MAX + 64];
    int64_t ttl_s;
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

/* The fence makes lockedBy unlike that of any other attempt: a program that compares it
 * cannot end this one by mistake. */
static void name_owner(const struct idem_record *record, char to[TEXT_MAX])
{
    (void)snprintf(to, TEXT_MAX, "%.*s%s#%llu", (int)record->owner.len,
                   record->owner.len == 0 ? ""
                                          : (const char *)record->owner.base,
                   record->owner.len == 0 ? "idem" : "",
                   (unsigned long long)record->fence);
    if (!idem__utf8_is(idem_str(to))) {
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
    if (!idem__utf8_is(idem_str(to))) {
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

static void write(struct idem__buffer *out,
                  const struct idem__table_conf *table,
                  const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    add(out, table->attrs[IDEM__ATTR_STATUS], words.status);
    add(out, "lockedBy", words.locked_by);
    add(out, "created", words.created);
    add(out, "expectedCompletion", words.expected);
    add(out, "actualCompletion", words.actual);
    if (words.ttl_s >= 0) {
        idem__foreign_name(out, table->attrs[IDEM__ATTR_EXPIRY]);
        idem__json_n(out, (uint64_t)words.ttl_s);
    }
}

static bool tells_error(const struct idem__item *item,
                        struct idem__buffer *text)
{
    struct words words;

    words_of(&item->record, &words);
    idem__buffer_str(text, words.error);
    return words.error[0] != '\0';
}

static bool agrees(const struct idem__table_conf *table, json_object *object,
                   const struct idem_record *record)
{
    struct words words;

    words_of(record, &words);
    return idem__foreign_is(object, table->attrs[IDEM__ATTR_STATUS],
                            words.status) &&
           idem__foreign_is(object, "lockedBy", words.locked_by) &&
           idem__foreign_is(object, "actualCompletion",
                            words.actual[0] == '\0' ? NULL : words.actual);
}

/* ---- Reading ---- */

static int corrupt_date(struct idem_error *error, const char *name)
{
    return idem__foreign_corrupt(
        error, "its \"%s\" is not a date in UTC like 2024-04-27T14:02:40.123Z",
        name);
}

/* Reads what follows the seconds: a fraction or none, and the zone, which must be UTC, as
 * "Z" or as "+00:00". Returns the milliseconds, or -1. */
static int read_fraction(const char *text)
{
    int ms = 0;
    int unit = 100;

    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10) {
            ms += (*text - '0') * unit;
        }
    }
    return strcmp(text, "Z") == 0 || strcmp(text, "+00:00") == 0 ? ms : -1;
}

/* Reads "2024-04-27T14:02:40.123Z", also with more digits or none, or with "+00:00" as
 * Python writes it. Refuses any other zone, and none, so that no date is hours off. *@ret_ms
 * is 0 if the attribute is missing. */
static int read_date(json_object *object, const char *name, int64_t *ret_ms,
                     struct idem_error *error)
{
    struct tm tm = {0};
    struct idem_slice text;
    char buf[40], again[32];
    int ms = -1, n = 0;

    *ret_ms = 0;
    if (idem__foreign_is(object, name, NULL)) {
        return 0;
    }
    if (idem__json_attribute(object, name, "S", &text) == 1 &&
        text.len < sizeof(buf)) {
        memcpy(buf, text.base, text.len);
        buf[text.len] = '\0';
        (void)sscanf(buf, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon,
                     &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n);
        ms = read_fraction(buf + n);
    }
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
    if (n != 19 || ms < 0 || *ret_ms < 0) {
        return corrupt_date(error, name);
    }
    /* The same date again: sscanf() takes blanks and signs, and timegm() a month 13. */
    date(*ret_ms, again);
    return memcmp(buf, again, (size_t)n) == 0 ? 0 : corrupt_date(error, name);
}

static int read_ttl(const struct idem__table_conf *table, json_object *object,
                    int64_t *ret_ms, struct idem_error *error)
{
    const char *name = table->attrs[IDEM__ATTR_EXPIRY];
    int64_t ttl;
    int rc = idem__foreign_number(object, name, &ttl);

    *ret_ms = IDEM_NEVER;
    if (rc < 0 || (rc == 1 && ttl > LAST_MS / 1000)) {
        return idem__foreign_corrupt(error, "its \"%s\" is not a time", name);
    }
    if (rc == 1) {
        *ret_ms = ttl * 1000;
    }
    return 0;
}

static int read_times(const struct idem__table_conf *table, json_object *object,
                      struct idem_record *record, struct idem_error *error)
{
    const struct {
        const char *name;
        int64_t *to;
    } dates[] = {
        {"created", &record->created_ms},
        {"expectedCompletion", &record->expected_ms},
        {"actualCompletion", &record->ended_ms},
    };
    int rc = read_ttl(table, object, &record->expires_ms, error);
    size_t i;

    for (i = 0; rc == 0 && i < sizeof(dates) / sizeof(dates[0]); i++) {
        rc = read_date(object, dates[i].name, dates[i].to, error);
    }
    record->started_ms = record->created_ms;
    return rc;
}

static int read_status(const struct idem__table_conf *table,
                       json_object *object, struct idem_record *record,
                       struct idem__buffer *memory, bool *ret_result,
                       struct idem_error *error)
{
    const char *status = table->attrs[IDEM__ATTR_STATUS];
    const char *why = table->attrs[IDEM__ATTR_DATA];

    if (idem__foreign_is(object, status, NULL)) {
        record->status = IDEM_STATUS_COMPLETED;
        *ret_result = true;
        return 0;
    }
    record->expires_ms = IDEM_NEVER;
    if (idem__foreign_is(object, status, "inProgress")) {
        record->status = IDEM_STATUS_IN_PROGRESS;
        record->ended_ms = 0;
        return 0;
    }
    record->status = IDEM_STATUS_FAILED;
    *ret_result = true;
    if (!idem__foreign_is(object, status, "error")) {
        return idem__foreign_corrupt(
            error, "its \"%s\" is not inProgress or error, nor absent", status);
    }
    return idem__foreign_text(object, why, IDEM_TEXT_MAX, memory,
                              &record->error) == 0
               ? 0
               : idem__foreign_corrupt(error, "its \"%s\" is not a string",
                                       why);
}

static int read(const struct idem__table_conf *table, json_object *object,
                struct idem_record *record, struct idem__buffer *memory,
                bool *ret_result, struct idem_error *error)
{
    if (read_times(table, object, record, error) != 0) {
        return IDEM_ECORRUPT;
    }
    record->on_expired_lease = IDEM_HOLD;
    record->lease_ms = IDEM_NEVER;
    record->lease_end_ms = IDEM_NEVER;
    record->fence = record->fence >= (uint64_t)record->created_ms
                        ? record->fence + 1
                        : (uint64_t)record->created_ms;
    record->fence += record->fence == 0; /* No date. */
    if (idem__foreign_text(object, "lockedBy", IDEM_OWNER_MAX, memory,
                           &record->owner) != 0) {
        return idem__foreign_corrupt(error, "its \"lockedBy\" is not a string");
    }
    return read_status(table, object, record, memory, ret_result, error);
}

/* ---- The layouts ---- */

static const char *const control[] = {"lockedBy", "actualCompletion", NULL};
static const char *const fixed[] = {"created", "expectedCompletion", NULL};

static const char *const gives_up[] = {
    "it has no scopes and no rate limits, a key is a text, and a result of more "
    "than 120 KiB becomes a tombstone",
    "it has no lease: work that died there is in progress until a person "
    "decides, and is never taken over",
    "a release deletes the item, with the count of its attempts and the mark "
    "that the work may have been done",
    "payloads are compared between attempts of idem only",
    "a program that ends a lock without comparing lockedBy overwrites a "
    "person's decision",
    NULL,
};

const struct idem__foreign idem__foreign_lock_token = {
    .kind = {.name = "lock-token",
             .ops = &idem__foreign_ops,
             .attrs = {[IDEM__ATTR_KEY] = "lockToken",
                       [IDEM__ATTR_STATUS] = "status",
                       [IDEM__ATTR_EXPIRY] = "ttl",
                       [IDEM__ATTR_DATA] = "result"},
             .status_index = true,
             .drops = true,
             .control = control,
             .fixed = fixed,
             .gives_up = gives_up},
    .write = write,
    .agrees = agrees,
    .read = read,
    .tells = tells_error,
};
