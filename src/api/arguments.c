/* Checks the arguments of callers: each member and its range. */
#include "api/call.h"

#include "core/error.h"

#define ZEROS "00000000000000000000000000000000"

static int too_long(const char *name, size_t max, struct idem_error *error)
{
    return idem__error(error, IDEM_EINVALID, "%s: at most %zu bytes", name,
                       max);
}

int idem__check_names(struct idem_slice scope, struct idem_slice key,
                      struct idem_error *error)
{
    if ((key.base == NULL && key.len > 0) ||
        (scope.base == NULL && scope.len > 0)) {
        return idem__error(error, IDEM_EINVALID, "key, scope: no bytes given");
    }
    if (key.len == 0) {
        return idem__error(error, IDEM_EINVALID, "key must not be empty");
    }
    if (key.len > IDEM_KEY_MAX) {
        return too_long("key", IDEM_KEY_MAX, error);
    }
    if (scope.len > IDEM_SCOPE_MAX) {
        return too_long("scope", IDEM_SCOPE_MAX, error);
    }
    return 0;
}

int idem__check_duration(const char *name, int64_t ms, int64_t min_ms,
                         bool may_be_never, struct idem_error *error)
{
    if (ms == IDEM_NEVER && may_be_never) {
        return 0;
    }
    if (ms < min_ms || ms > IDEM_DURATION_MAX_MS) {
        return idem__error(error, IDEM_EINVALID, "%s: %lld to %lld ms%s", name,
                           (long long)min_ms, (long long)IDEM_DURATION_MAX_MS,
                           may_be_never ? ", or never" : "");
    }
    return 0;
}

static int check_durations(const struct idem_request *request,
                           struct idem_error *error)
{
    int rc = idem__check_duration("lease", request->lease_ms, IDEM_LEASE_MIN_MS,
                                  true, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__check_duration("retention", request->retention_ms, 1, true,
                              error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__check_duration("expect", request->expect_ms, 0, false, error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__check_duration("wait", request->wait_ms, 0, false, error);
    if (rc != 0) {
        return rc;
    }
    if (request->lease_ms != IDEM_NEVER &&
        request->lease_ms > request->retention_ms) {
        return idem__error(error, IDEM_EINVALID,
                           "retention must not be shorter than the lease");
    }
    return 0;
}

/* A traceparent has four fields in hexadecimal: version, trace, parent and flags. Zeros
 * as trace or parent mean that there is none. */
struct idem_slice idem__traceparent(struct idem_slice text)
{
    static const char form[] =
        "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    static const struct idem_slice none = {NULL, 0};
    const char *p = text.base;
    size_t i;

    if (text.len != IDEM_TRACEPARENT_LEN) {
        return none;
    }
    for (i = 0; i < text.len; i++) {
        bool is_hex =
            (p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f');

        if (form[i] == 'x' ? !is_hex : p[i] != form[i]) {
            return none;
        }
    }
    if (memcmp(p + 3, ZEROS, 32) == 0 || memcmp(p + 36, ZEROS, 16) == 0) {
        return none;
    }
    return text;
}

int idem__check_request(const struct idem_request *request,
                        struct idem_error *error)
{
    int rc;

    if (request == NULL || request->size != sizeof(*request)) {
        return idem__error(error, IDEM_EINVALID,
                           "request: begin with IDEM_REQUEST_INIT");
    }
    rc = idem__check_names(request->scope, request->key, error);
    if (rc == 0) {
        rc = check_durations(request, error);
    }
    if (rc != 0) {
        return rc;
    }
    if (request->on_expired_lease != IDEM_RERUN &&
        request->on_expired_lease != IDEM_HOLD) {
        return idem__error(error, IDEM_EINVALID,
                           "on_expired_lease must be IDEM_RERUN or IDEM_HOLD");
    }
    if (request->owner.len > IDEM_OWNER_MAX) {
        return too_long("owner", IDEM_OWNER_MAX, error);
    }
    if (request->fingerprint.len != 0 &&
        request->fingerprint.len != IDEM_FINGERPRINT_LEN) {
        return idem__error(
            error, IDEM_EINVALID,
            "fingerprint: leave it empty, or give the %d bytes of "
            "idem_fingerprint()",
            IDEM_FINGERPRINT_LEN);
    }
    if (request->input.len > IDEM_RESULT_MAX) {
        return too_long("input", IDEM_RESULT_MAX, error);
    }
    if ((request->flags &
         ~(unsigned)(IDEM_WAIT_THEN_RUN | IDEM_LIKELY_REPLAY)) != 0) {
        return idem__error(error, IDEM_EINVALID, "flags: unknown flag");
    }
    return 0;
}
