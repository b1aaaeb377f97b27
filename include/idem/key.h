/* idem/key.h: makes keys from JSON texts, with a selector or like other libraries. */
#ifndef IDEM_KEY_H
#define IDEM_KEY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Selectors --------------------------------------------------------- */

/* A selector names the part of a JSON text that becomes the key or that is compared, in
 * a small subset of jq's language, which docs/selectors.md describes. Compile it once,
 * and run it over one text after another.
 *
 *     struct idem_selector *selector;
 *     struct idem_key_text key;
 *
 *     idem_selector_create(".detail.orderId", &selector, &why);
 *     for each event
 *         idem_selector_run(selector, event, 0, &why);
 *         idem_key_of(selector, &key, &why);
 *     idem_selector_destroy(selector);
 *
 * A run takes microseconds, has limits on steps and memory whatever the text is, and
 * reads nothing but the text. Numbers keep their digits. The next run reuses the
 * memory. Only one thread at a time may use a selector. */
struct idem_selector;

/* Compiles @text, of at most 4,096 bytes. The caller destroys *@ret_selector.
 *
 * IDEM_EINVALID  @text is not a selector: the error names the place and, if
 *                possible, what to write instead.
 * IDEM_ENOMEM
 */
int idem_selector_create(const char *text, struct idem_selector **ret_selector,
                         struct idem_error *ret_error);

/* NULL is allowed. */
void idem_selector_destroy(struct idem_selector *selector);

/* For an event that is an HTTP request: the Idempotency-Key in its .headers gets a
 * lower-case name and the value that idem_http_key() reads. */
#define IDEM_SELECTOR_HTTP 1u

/* Runs the selector over @json; the functions below return the selected values, until
 * the next run.
 *
 * IDEM_EINVALID  @json is not JSON, has a name twice in an object or half a surrogate
 *                pair in a text, or has more than 200 levels, 16 MiB or 1,048,576
 *                values; or the selector fails on it, or exceeds its limits of steps or
 *                memory.
 * IDEM_ENOMEM
 */
int idem_selector_run(struct idem_selector *selector, struct idem_slice json,
                      unsigned flags, struct idem_error *ret_error);

struct idem_selector_header {
    struct idem_slice name;
    struct idem_slice value;
};

/* An HTTP request, with its bytes as they were sent. */
struct idem_selector_request {
    struct idem_slice method;
    struct idem_slice target; /* "/orders?a=1" */
    const struct idem_selector_header *headers;
    size_t headers_len;
    struct idem_slice body;
};

/* Runs the selector over a request, which it sees as
 *
 *     {"method":"POST",
 *      "path":"/orders",
 *      "query":{"a":"1"},
 *      "headers":{"content-type":"application/json"},
 *      "body":{"order":42}}
 *
 * The path is as the client sent it. Names and values of the query are decoded ("+" is
 * a space); header names are in lower case; a name that occurs several times has an
 * array of its values, and the value of Idempotency-Key is the key that idem_http_key()
 * reads. A body that is a JSON array or object counts as JSON, whatever its
 * Content-Type; any other body is a text. A value or body that is not UTF-8 is null.
 *
 * IDEM_EINVALID  As for idem_selector_run(); or the name of an argument or header is
 *                not UTF-8, or Idempotency-Key is not a key, or occurs with two
 *                different keys.
 * IDEM_ENOMEM
 */
int idem_selector_run_request(struct idem_selector *selector,
                              const struct idem_selector_request *request,
                              struct idem_error *ret_error);

struct idem_key_text {
    char text[IDEM_KEY_MAX + 1]; /* NUL-terminated. */
    size_t len;
};

/* Makes the key of the selected values. The key of a text, number or boolean is its
 * text: 42 and 42.0 give "42". Three kinds of key begin with "=":
 *
 *     =["t1","42"]            several values, selected with "," or "[ ]": .tenant, .id
 *     =#HEAD#SHA-256          a key of more than IDEM_KEY_MAX bytes, shortened
 *     ==x                     the text "=x", escaped so that it is not one of these
 *
 * IDEM_ENOTFOUND  The selector selected nothing, or only nulls.
 * IDEM_EINVALID   The value is an object, an array from the input, or a text that is
 *                 empty or has a NUL; a part of a list is null; or the selector gave
 *                 another number of values than it announces.
 * IDEM_ENOMEM
 */
int idem_key_of(struct idem_selector *selector, struct idem_key_text *ret_key,
                struct idem_error *ret_error);

/* Returns the selected values for a comparison: a JSON array in canonical form, so that
 * texts with the same meaning are equal. Valid until the next call.
 *
 * IDEM_ENOTFOUND  The selector selected nothing, or only nulls.
 * IDEM_EINVALID   A number has an exponent of more than 17 digits, or the values have
 *                 too many bytes.
 * IDEM_ENOMEM
 */
int idem_selector_values(struct idem_selector *selector,
                         struct idem_slice *ret_values,
                         struct idem_error *ret_error);

/* ---- Keys of other libraries ------------------------------------------- */

/* Flavour and name. A key of Powertools for AWS Lambda is a prefix and the MD5 of a
 * canonical text. Each language has its own canonical text, so their keys differ. */
#define IDEM_FLAVOUR_MAP(IDEM__X)                                              \
    IDEM__X(PYTHON, "python")                                                  \
    IDEM__X(TYPESCRIPT, "typescript")

enum idem_flavour {
    IDEM_FLAVOUR_NONE = 0,
#define IDEM__X(name, word) IDEM_FLAVOUR_##name,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
};

/* Return the name of @flavour, or NULL; and the flavour of @name, or
 * IDEM_FLAVOUR_NONE. */
const char *idem_flavour_name(enum idem_flavour flavour);
enum idem_flavour idem_flavour_find(const char *name);

/* Accept null, an empty text and values that contain only nulls. Without this flag they
 * are refused, because every event that lacks the selected member would have that same
 * key. */
#define IDEM_FLAVOUR_NULL 1u

/* Makes the key that the library makes of @json, the value that its own selector would
 * select. @prefix is the part before the "#": FUNCTION.module.qualname (python),
 * FUNCTION (typescript), or the prefix that it was given.
 *
 * IDEM_EINVALID  @json is not JSON (see idem_selector_run()), or the library makes no
 *                key of it, or not always the same one; @prefix is NULL; or the key has
 *                more than IDEM_KEY_MAX bytes.
 * IDEM_ENOMEM
 */
int idem_flavour_key(enum idem_flavour flavour, const char *prefix,
                     struct idem_slice json, unsigned flags,
                     struct idem_key_text *ret_key,
                     struct idem_error *ret_error);

/* Makes the same key of the one value that the last run of @selector selected. */
int idem_flavour_key_of(enum idem_flavour flavour, const char *prefix,
                        struct idem_selector *selector, unsigned flags,
                        struct idem_key_text *ret_key,
                        struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
