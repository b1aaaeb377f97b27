/* Decides whether a client accepts the content coding of a recorded body. */
#include "http/multipart.h"

#include <idem/http.h>

#include <strings.h>

/* A member of a list: "gzip;q=0.5". */
struct member {
    struct idem_slice coding;
    struct idem_slice parameters;
};

static struct idem_slice trimmed(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }
    while (p < end && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return idem_bytes(p, (size_t)(end - p));
}

/* Takes the next member off @rest, and skips empty ones. */
static bool next_member(struct idem_slice *rest, struct member *ret_member)
{
    while (rest->len > 0) {
        const char *p = rest->base;
        const char *comma = memchr(p, ',', rest->len);
        const char *end = comma != NULL ? comma : p + rest->len;
        const char *semicolon = memchr(p, ';', (size_t)(end - p));
        size_t taken = (size_t)(end - p) + (comma != NULL);

        ret_member->coding = trimmed(p, semicolon != NULL ? semicolon : end);
        ret_member->parameters =
            trimmed(semicolon != NULL ? semicolon + 1 : end, end);
        *rest = idem_bytes(p + taken, rest->len - taken);
        if (ret_member->coding.len > 0) {
            return true;
        }
    }
    return false;
}

/* Drops the "x-" of x-gzip and x-compress, which are aliases (RFC 9110 sections
 * 8.4.1.1, 8.4.1.3). */
static struct idem_slice canonical(struct idem_slice name)
{
    if (idem__http_is(name, "x-gzip") || idem__http_is(name, "x-compress")) {
        return idem_bytes((const char *)name.base + 2, name.len - 2);
    }
    return name;
}

static bool is_same(struct idem_slice a, struct idem_slice b)
{
    a = canonical(a);
    b = canonical(b);
    return a.len == b.len && strncasecmp(a.base, b.base, a.len) == 0;
}

/* True for a weight of 0, "q=0.000", which means "not acceptable". */
static bool is_refused(struct idem_slice parameters)
{
    const char *p = parameters.base;
    size_t i;

    if (parameters.len < 3 || (p[0] | 0x20) != 'q' || p[1] != '=' ||
        p[2] != '0' || (parameters.len > 3 && p[3] != '.')) {
        return false;
    }
    for (i = 4; i < parameters.len; i++) {
        if (p[i] != '0') {
            return false;
        }
    }
    return true;
}

static bool accepts_one(struct idem_slice accept, struct idem_slice coding)
{
    struct member member;
    bool any = false;

    if (idem__http_is(coding, "identity")) {
        return true;
    }
    while (next_member(&accept, &member)) {
        if (is_same(member.coding, coding)) {
            return !is_refused(member.parameters);
        }
        if (idem__http_is(member.coding, "*")) {
            any = !is_refused(member.parameters);
        }
    }
    return any;
}

bool idem_http_accepts(struct idem_slice accept, struct idem_slice codings)
{
    struct member member;

    if (accept.base == NULL) {
        return true;
    }
    while (next_member(&codings, &member)) {
        if (!accepts_one(accept, member.coding)) {
            return false;
        }
    }
    return true;
}
