/* Writes the server's own answers: problems of RFC 9457, and Retry-After. */
#include "base/bytes.h"

#include <assert.h>
#include <idem/http.h>
#include <stdio.h>

/* The remedy for the client, by kind. */
static const char *const details[] = {
    [IDEM_HTTP_KEY_MISSING] =
        "Send the header with a key of your own, such as a random UUID.",
    [IDEM_HTTP_KEY_INVALID] =
        "Send one key of 1 to 255 visible ASCII characters, best in quotes.",
    [IDEM_HTTP_SCOPE_MISSING] = "Authenticate, and send the request again.",
    [IDEM_HTTP_SCOPE_AMBIGUOUS] =
        "Send the header that names the client once, with one value.",
    [IDEM_HTTP_KEY_UNSELECTED] =
        "This service takes the key from the request. Send the member or "
        "header that it selects: a text, a number or a boolean. It does not "
        "read a compressed body.",
    [IDEM_HTTP_FINGERPRINT_UNSELECTED] =
        "This service compares selected parts of the request. Send the members "
        "or headers that it selects. It does not read a compressed body.",
    [IDEM_HTTP_UPGRADE] = "Send the request without the key.",
    [IDEM_HTTP_UNAUTHENTICATED] = "Authenticate, and send the request again.",
    [IDEM_HTTP_NOT_ACCEPTABLE] =
        "Send the request again with the Accept-Encoding of the first one.",
    [IDEM_HTTP_IN_PROGRESS] =
        "Send the same request again later; see Retry-After.",
    [IDEM_HTTP_OUTCOME_UNKNOWN] =
        "The request may have been executed, and is not executed again. A "
        "person must look.",
    [IDEM_HTTP_FAILED] =
        "The request is not executed again. A person must look.",
    [IDEM_HTTP_NOT_KEPT] =
        "The request was executed, and is not executed again. Look for its "
        "effect.",
    [IDEM_HTTP_TOO_LARGE] = "Send a smaller request.",
    [IDEM_HTTP_MISMATCH] =
        "The key belongs to a different request. Use a new key.",
    [IDEM_HTTP_RATE_LIMITED] =
        "Nothing was executed. Send the same request, with the same key, "
        "later; see Retry-After.",
    [IDEM_HTTP_CORRUPT] = "This request was not executed. A person must look.",
    [IDEM_HTTP_SCOPE_UNSET] =
        "Nothing was done. Set IDEM_LAMBDA_SCOPE to a selector that names the "
        "caller, such as .requestContext.authorizer.jwt.claims.sub, or to global "
        "if all callers may see each other's responses.",
    [IDEM_HTTP_UPSTREAM] =
        "The request may have been executed. Send it again, with the same key, "
        "to learn its outcome.",
    [IDEM_HTTP_UNAVAILABLE] = "Send the same request again later.",
};

static const struct idem_http_problem problems[] = {
#define IDEM__X(name, status, type, title)                                     \
    [IDEM_HTTP_##name] = {status, type, title},
    IDEM_HTTP_PROBLEM_MAP(IDEM__X)
#undef IDEM__X
};

const struct idem_http_problem *idem_http_problem_of(
    enum idem_http_problem_kind kind)
{
    assert((size_t)kind < sizeof(problems) / sizeof(problems[0]));
    return &problems[kind];
}

/* Adds the member "error" and returns the new length of the body. Text that does not
 * fit is cut between two characters. */
static size_t add_error(char *buf, size_t len, struct idem_slice error)
{
    static const char end[] = "\"}\n";
    const uint8_t *p = error.base;
    size_t i = 0;

    len -= strlen("}\n");
    len += (size_t)sprintf(buf + len, ",\"error\":\"");
    while (i < error.len &&
           len + strlen("\\u0000") + sizeof(end) <= IDEM_HTTP_PROBLEM_MAX) {
        size_t n = p[i] < 0x80 ? 1 : idem__utf8_len(p + i, error.len - i);

        if (n == 0) {
            break;
        }
        if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"' || p[i] == '\\') {
            len += (size_t)sprintf(buf + len, "\\u%04x", p[i]);
        } else {
            memcpy(buf + len, p + i, n);
            len += n;
        }
        i += n;
    }
    memcpy(buf + len, end, sizeof(end));
    return len + strlen(end);
}

size_t idem_http_problem_body(enum idem_http_problem_kind kind,
                              struct idem_slice error,
                              char buf[IDEM_HTTP_PROBLEM_MAX])
{
    const struct idem_http_problem *problem = idem_http_problem_of(kind);
    int len =
        snprintf(buf, IDEM_HTTP_PROBLEM_MAX,
                 "{\"type\":\"" IDEM_HTTP_PROBLEM_TYPE "%s\","
                 "\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}\n",
                 problem->type, problem->title, problem->status, details[kind]);

    assert(len > 0 && len < IDEM_HTTP_PROBLEM_MAX / 2);
    return error.len > 0 ? add_error(buf, (size_t)len, error) : (size_t)len;
}

/* ---- When to retry while an attempt is in progress ---- */

enum {
    FIRST_S = 1,
    LAST_S = 30,
};

int64_t idem_http_attempt_age(const struct idem_attempt *busy)
{
    const struct idem_record *record = busy->record;
    int64_t age_ms;

    if (record->lease_end_ms == IDEM_NEVER || busy->lease_left_ms <= 0) {
        return 0;
    }
    age_ms = record->lease_end_ms - busy->lease_left_ms - record->started_ms;
    return age_ms > 0 ? age_ms : 0;
}

/* Half the age: a caller that follows it waits at most half as long again as the work
 * took. The length of the lease does not matter, because most work ends long before its
 * lease. */
int idem_http_retry_after(int64_t age_ms)
{
    int64_t s = age_ms / 2000;

    if (s < FIRST_S) {
        return FIRST_S;
    }
    return s > LAST_S ? LAST_S : (int)s;
}
