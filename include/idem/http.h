/* idem/http.h: the Idempotency-Key header, without a server.
 *
 * The parts, besides a store, that a server in front of any HTTP service needs: the
 * syntax of a key, the fingerprint of a request, the conversion of a response into a
 * result and back, and the server's own answers; <idem/outcome.h> maps a status to an
 * outcome. Nothing here uses a socket or a clock, or keeps any state.
 *
 *     idem_http_key()                    the header's value -> a key
 *     idem_http_fingerprint()            the request -> its fingerprint
 *     |
 *     |   idem_begin(), and by its verdict:
 *     |
 *     +-- IDEM_STARTED   the work is done; its answer:
 *     |     idem_outcome_of_status()     its status -> completed, released, ...
 *     |     idem_http_head_open(), _add()    status and headers -> result.meta
 *     +-- IDEM_REPLAY    idem_http_head_read(), _next()    and back
 *     +-- anything else  idem_http_problem_of(), _problem_body()
 */
#ifndef IDEM_HTTP_H
#define IDEM_HTTP_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- The key ----------------------------------------------------------- */

/* Reads the value of an Idempotency-Key header. Both forms below give the same key:
 *
 *     "order-42"     a String of RFC 8941: visible ASCII and spaces; a backslash
 *                    escapes a quote and a backslash
 *     order-42       raw, as many clients send it: visible ASCII except the quote,
 *                    the backslash, the comma and the semicolon
 *
 * Spaces and tabs around the value do not count. @buf receives the key, without a NUL,
 * and *@ret_len its length.
 *
 * IDEM_EINVALID  The value has neither form: it is empty or only spaces, longer than
 *                IDEM_KEY_MAX, a list, or has parameters or other bytes.
 */
int idem_http_key(struct idem_slice value, char buf[IDEM_KEY_MAX],
                  size_t *ret_len, struct idem_error *ret_error);

/* ---- The fingerprint --------------------------------------------------- */

/* Computes the fingerprint of a request: two requests have the same one if their @parts
 * have equal bytes, and their bodies equal meanings. The Content-Type decides what a
 * body means:
 *
 *     application/json, ...+json    a JSON value of at most IDEM_HTTP_JSON_MAX bytes:
 *                                   its canonical form. The order of members, blanks,
 *                                   escapes and the spelling of numbers do not
 *                                   count; 1.0 is 1, and "1" is not.
 *     multipart/form-data           the parts of the form, each as it was sent: its
 *                                   header lines and bytes, but not the boundary.
 *     none                          a JSON array or object as with application/json
 *     anything else                 its bytes
 *
 * A body that does not match its type is compared by its bytes too: JSON that is
 * compressed, or has a name twice in an object or half a surrogate pair.
 *
 * IDEM_EINVALID  More than 65,533 parts, or a secret longer than IDEM_SECRET_MAX.
 * IDEM_ENOMEM
 */
int idem_http_fingerprint(const struct idem_slice *parts, size_t parts_len,
                          struct idem_slice content_type,
                          struct idem_slice body, struct idem_slice secret,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

#define IDEM_HTTP_JSON_MAX (1L << 20)

/* Computes the same fingerprint with @json, a JSON value selected from the request, in
 * place of the body; it counts by its canonical form. The errors of
 * idem_http_fingerprint(). */
int idem_http_fingerprint_selected(
    const struct idem_slice *parts, size_t parts_len, struct idem_slice json,
    struct idem_slice secret, uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* The fingerprint of a body that comes in pieces. It keeps the pieces of JSON until the
 * end, and only a hash of any other body. */
struct idem_http_fingerprint;

/* Starts the fingerprint of a body of @body_len bytes. The caller ends or destroys
 * *@ret_print.
 *
 * IDEM_EINVALID  As for idem_http_fingerprint().
 * IDEM_ENOMEM
 */
int idem_http_fingerprint_create(const struct idem_slice *parts,
                                 size_t parts_len,
                                 struct idem_slice content_type,
                                 uint64_t body_len, struct idem_slice secret,
                                 struct idem_http_fingerprint **ret_print);

/* Adds the next bytes of the body. */
void idem_http_fingerprint_add(struct idem_http_fingerprint *print,
                               struct idem_slice piece);

/* Ends the fingerprint, and destroys @print whatever this returns.
 *
 * IDEM_EINVALID  More or fewer bytes were added than idem_http_fingerprint_create() was
 *                told.
 * IDEM_ENOMEM
 */
int idem_http_fingerprint_end(struct idem_http_fingerprint *print,
                              uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* Destroys a fingerprint that was not ended. NULL is allowed. */
void idem_http_fingerprint_destroy(struct idem_http_fingerprint *print);

/* ---- An answer as a result --------------------------------------------- */

/* True if @name is a valid name of a header and @value a valid value: neither has
 * control bytes that would end a line, and the name is not empty. */
bool idem_http_header_valid(struct idem_slice name, struct idem_slice value);

/* True for headers that belong to the first caller, or to one connection or moment:
 * Set-Cookie, credentials, Connection, Date, CORS and the like. The functions below
 * neither record nor replay them. */
bool idem_http_header_never(struct idem_slice name);

/* True for the headers that every front end records and replays: those that describe
 * the body, Location, and those that the user names in @more, a list separated by
 * commas (may be NULL). A result keeps the content type separately. */
bool idem_http_header_kept(struct idem_slice name, const char *more);

/* Checks @names, such a list (may be NULL). A header that is never replayed is an
 * error, because the front end would leave it out silently.
 *
 * IDEM_EINVALID  One of @names is not the name of a header, or is never replayed.
 */
int idem_http_headers_check(const char *names, struct idem_error *ret_error);

/* True if a client accepts a body with the Content-Encoding @codings: its
 * Accept-Encoding, @accept, allows each of them (RFC 9110 section 12.5.3). A client
 * without that header (@accept.base is NULL) accepts any. */
bool idem_http_accepts(struct idem_slice accept, struct idem_slice codings);

/* The head of a response, while it is written: result.meta is its first len bytes.
 *
 *     HTTP 201\n
 *     Location: /orders/42\n
 *
 * The content type is not part of the head: it goes into result.content_type.
 */
struct idem_http_head {
    char *base; /* The caller's. IDEM_META_MAX bytes are always enough. */
    size_t cap;
    size_t len;
};

/* Starts a head in the @cap bytes at @base.
 *
 * IDEM_EINVALID  @status is not from 200 to 599.
 * IDEM_EFULL     @cap is too small.
 */
int idem_http_head_open(struct idem_http_head *head, char *base, size_t cap,
                        int status);

/* Marks a response that an outcome table names complete (<idem/outcome.h>) as a
 * success, unless its status is one. Call it before adding headers.
 *
 * IDEM_EFULL  The mark does not fit.
 */
int idem_http_head_complete(struct idem_http_head *head);

/* Adds a header, unless idem_http_header_never() holds for it.
 *
 * IDEM_EINVALID  The header is not valid. Nothing was added.
 * IDEM_EFULL     The header does not fit. Nothing was added.
 */
int idem_http_head_add(struct idem_http_head *head, struct idem_slice name,
                       struct idem_slice value);

/* Reads the status of the head @meta; *@ret_rest is for idem_http_head_next(). An empty
 * @meta, which a person's decision leaves, means 200.
 *
 * IDEM_ECORRUPT  @meta does not begin like a head.
 */
int idem_http_head_read(struct idem_slice meta, int *ret_status,
                        struct idem_slice *ret_rest);

/* Returns true and the next header, or false and *@ret_code 0 at the end. Trusts
 * nothing: an invalid header ends the list with *@ret_code IDEM_ECORRUPT, and a header
 * that is never replayed is skipped. The slices point into the head. */
bool idem_http_head_next(struct idem_slice *rest, struct idem_slice *ret_name,
                         struct idem_slice *ret_value, int *ret_code);

/* ---- The server's own answers ------------------------------------------ */

/* Name, status, last part of the type, title. */
#define IDEM_HTTP_PROBLEM_MAP(IDEM__X)                                         \
    IDEM__X(KEY_MISSING, 400, "key-missing", "Idempotency-Key is missing")     \
    IDEM__X(KEY_INVALID, 400, "key-invalid", "Idempotency-Key is not valid")   \
    IDEM__X(SCOPE_MISSING, 400, "scope-missing",                               \
            "The client of this Idempotency-Key is unknown")                   \
    IDEM__X(SCOPE_AMBIGUOUS, 400, "scope-ambiguous",                           \
            "The request names several clients for its Idempotency-Key")       \
    IDEM__X(KEY_UNSELECTED, 400, "key-not-selected",                           \
            "The request has no value for its idempotency key")                \
    IDEM__X(FINGERPRINT_UNSELECTED, 400, "fingerprint-not-selected",           \
            "The request lacks the parts that are compared")                   \
    IDEM__X(UPGRADE, 400, "upgrade",                                           \
            "A request with an Idempotency-Key cannot be upgraded")            \
    IDEM__X(UNAUTHENTICATED, 401, "unauthenticated",                           \
            "The caller of this request is unknown")                           \
    IDEM__X(NOT_ACCEPTABLE, 406, "encoding-not-acceptable",                    \
            "The recorded response has an encoding that is not accepted")      \
    IDEM__X(IN_PROGRESS, 409, "in-progress",                                   \
            "A request is outstanding for this Idempotency-Key")               \
    IDEM__X(OUTCOME_UNKNOWN, 409, "outcome-unknown",                           \
            "The outcome of the request with this Idempotency-Key is unknown") \
    IDEM__X(FAILED, 409, "failed",                                             \
            "The request with this Idempotency-Key failed for good")           \
    IDEM__X(NOT_KEPT, 409, "response-not-kept",                                \
            "The request with this Idempotency-Key was executed, but its "     \
            "response was not kept")                                           \
    IDEM__X(TOO_LARGE, 413, "request-too-large",                               \
            "The request is too large for an Idempotency-Key")                 \
    IDEM__X(MISMATCH, 422, "request-mismatch",                                 \
            "Idempotency-Key is already used")                                 \
    IDEM__X(RATE_LIMITED, 429, "rate-limited", "Too many requests")            \
    IDEM__X(CORRUPT, 500, "record-corrupt",                                    \
            "The record of this Idempotency-Key cannot be trusted")            \
    IDEM__X(                                                                   \
        SCOPE_UNSET, 500, "scope-not-configured",                              \
        "This function has no setting for the scope of an Idempotency-Key")    \
    IDEM__X(UPSTREAM, 502, "upstream-broke-off",                               \
            "The upstream sent an incomplete response; the outcome of the "    \
            "request is unknown")                                              \
    IDEM__X(UNAVAILABLE, 503, "store-unavailable",                             \
            "The Idempotency-Key cannot be looked up; this request was not "   \
            "executed")

enum idem_http_problem_kind {
#define IDEM__X(name, status, type, title) IDEM_HTTP_##name,
    IDEM_HTTP_PROBLEM_MAP(IDEM__X)
#undef IDEM__X
};

#define IDEM_HTTP_PROBLEM_TYPE "urn:idem:problem:" /* Precedes the name. */
#define IDEM_HTTP_PROBLEM_CONTENT "application/problem+json"
#define IDEM_HTTP_PROBLEM_MAX 1024 /* Bytes of a body. */

struct idem_http_problem {
    int status;
    const char *type; /* Its last part: "in-progress". */
    const char *title;
};

/* Returns the problem of @kind, which must be an enum idem_http_problem_kind; never
 * NULL. */
const struct idem_http_problem *idem_http_problem_of(
    enum idem_http_problem_kind kind);

/* Writes the body of a problem as RFC 9457 defines it, NUL-terminated, and returns its
 * length. It contains no byte of the request. @error, the error of the record, becomes
 * the member "error", cut where it no longer fits or is not UTF-8; an empty @error
 * leaves the member out. */
size_t idem_http_problem_body(enum idem_http_problem_kind kind,
                              struct idem_slice error,
                              char buf[IDEM_HTTP_PROBLEM_MAX]);

/* Returns the Retry-After of IN_PROGRESS, in seconds: half of @age_ms, from 1 to 30, so
 * that clients soon retry work of a few seconds, whatever its lease. */
int idem_http_retry_after(int64_t age_ms);

/* Returns how long the attempt that made @busy (IDEM_BUSY, with a record) had been
 * running when the store answered, in milliseconds; 0 if its lease does not end, or is
 * over. */
int64_t idem_http_attempt_age(const struct idem_attempt *busy);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
