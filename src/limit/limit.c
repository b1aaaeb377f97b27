/* Checks the bounds of a limit, and computes its windows and their identity. */
#include "limit/limit.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/host.h"
#include "core/error.h"

/* The last millisecond of the year 9999. */
#define AT_MAX_MS 253402300799999LL

static int check_name(const char *name, struct idem_slice s,
                      struct idem_error *error)
{
    if (s.len >= 1 && s.len <= IDEM_LIMIT_NAME_MAX) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "%s: it must be 1 to %d bytes long", name,
                       IDEM_LIMIT_NAME_MAX);
}

static int check_numbers(const struct idem_limit_request *limit,
                         struct idem_error *error)
{
    if (limit->max < 1 || limit->max > IDEM_LIMIT_MAX) {
        return idem__error(error, IDEM_EINVALID, "max: it must be 1 to %lld",
                           IDEM_LIMIT_MAX);
    }
    if (limit->cost < 1 || limit->cost > limit->max) {
        return idem__error(
            error, IDEM_EINVALID,
            "cost: it must be 1 to max, which is %llu; a request "
            "that costs more can never be admitted",
            (unsigned long long)limit->max);
    }
    if (limit->per_ms < IDEM_LIMIT_SECOND ||
        limit->per_ms > IDEM_LIMIT_PER_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "per: it must be 1 s to 366 days");
    }
    if (limit->late_ms < 0 || limit->late_ms > IDEM_DURATION_MAX_MS) {
        return idem__error(error, IDEM_EINVALID,
                           "late: it must be 0 to a hundred years");
    }
    if (limit->at_ms < 0 || limit->at_ms > AT_MAX_MS) {
        return idem__error(error, IDEM_EINVALID,
                           "at: it must be the time of the event, in "
                           "milliseconds since 1970, up to the year 9999");
    }
    if (limit->start_ms < 0 || limit->start_ms > limit->at_ms) {
        return idem__error(error, IDEM_EINVALID,
                           "start: it must be when a window begins, not after "
                           "at, in milliseconds since 1970");
    }
    return 0;
}

int idem__limit_check(const struct idem_limit_request *limit,
                      struct idem_error *error)
{
    int rc;

    if (limit->size != sizeof(*limit)) {
        return idem__error(error, IDEM_EINVALID,
                           "limit: begin with IDEM_LIMIT_INIT");
    }
    rc = check_name("name", limit->name, error);
    if (rc != 0) {
        return rc;
    }
    rc = check_name("subject", limit->subject, error);
    if (rc != 0) {
        return rc;
    }
    rc = check_name("request", limit->request, error);
    if (rc != 0) {
        return rc;
    }
    return check_numbers(limit, error);
}

void idem__limit_window(const struct idem_limit_request *limit,
                        int64_t *ret_start_ms, int64_t *ret_end_ms)
{
    int64_t past_ms = (limit->at_ms - limit->start_ms) % limit->per_ms;

    *ret_start_ms = limit->at_ms - past_ms;
    *ret_end_ms = *ret_start_ms + limit->per_ms;
}

/* Returns the last moment at which the store decides a new request of the window. */
static int64_t closes(const struct idem_limit_request *limit)
{
    int64_t start_ms;
    int64_t end_ms;

    idem__limit_window(limit, &start_ms, &end_ms);
    return idem__time_add(end_ms, limit->late_ms);
}

int64_t idem__limit_expires(const struct idem_limit_request *limit)
{
    return idem__time_add(closes(limit), IDEM__LIMIT_GRACE_MS);
}

int idem__limit_ids(const struct idem_limit_request *limit,
                    uint8_t ret_window[IDEM_ID_LEN],
                    uint8_t ret_request[IDEM_ID_LEN])
{
    uint8_t numbers[4 * 8];
    struct idem_slice window[] = {
        idem_str("idem-limit1"),
        {numbers, sizeof(numbers)},
        limit->name,
        limit->subject,
    };
    struct idem_slice request[] = {
        idem_str("idem-limit1-request"),
        {ret_window, IDEM_ID_LEN},
        limit->request,
    };
    int64_t start_ms;
    int64_t end_ms;
    int rc;

    idem__limit_window(limit, &start_ms, &end_ms);
    idem__put_u64(numbers, limit->name.len);
    idem__put_u64(numbers + 8, limit->subject.len);
    idem__put_u64(numbers + 16, (uint64_t)limit->per_ms);
    idem__put_u64(numbers + 24, (uint64_t)start_ms);
    rc = idem__sha256(window, 4, ret_window);
    return rc != 0 ? rc : idem__sha256(request, 3, ret_request);
}

int idem__limit_in_time(const struct idem_limit_request *limit,
                        const struct idem_now *now, struct idem_error *error)
{
    int64_t earliest_ms = now->store_ms - now->store_err_ms;
    int64_t latest_ms = idem__time_add(now->store_ms, now->store_err_ms);

    char away[IDEM__SPAN_MAX];
    char bound[IDEM__SPAN_MAX];

    if (limit->at_ms > idem__time_add(latest_ms, IDEM_LIMIT_AHEAD_MS)) {
        idem__span(limit->at_ms - now->store_ms, away);
        idem__span(IDEM_LIMIT_AHEAD_MS, bound);
        return idem__error(error, IDEM_EINVALID,
                           "at: %lld is %s in the future; events may be at "
                           "most %s ahead",
                           (long long)limit->at_ms, away, bound);
    }
    if (earliest_ms > closes(limit)) {
        idem__span(now->store_ms - (closes(limit) - limit->late_ms), away);
        idem__span(limit->late_ms, bound);
        return idem__error(
            error, IDEM_EINVALID,
            "at: the window of %lld ended %s ago, and its count is kept for %s "
            "(late)",
            (long long)limit->at_ms, away, bound);
    }
    return 0;
}

bool idem__limit_expired(int64_t expires_ms, const struct idem_now *now)
{
    return now->store_ms - now->store_err_ms - now->doubt_ms > expires_ms;
}
