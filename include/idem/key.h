/* idem/key.h: keys from JSON texts: by a selector, or as other libraries make them. */
#ifndef IDEM_KEY_H
#define IDEM_KEY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Selectors --------------------------------------------------------- */

/* A selector selects the part of a JSON text that is the key or is compared, in a small
 * part of jq's language, which docs/selectors.md describes. Compile it once, and run it
 * over one text after another.
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
 * A run takes microseconds, and is limited in steps and memory whatever the text; it
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

/* The text is the event of an HTTP request: Idempotency-Key in its .headers gets a
 * lower-case name and the value that idem_http_key() reads. */
#define IDEM_SELECTOR_HTTP 1u

/* Runs the selector over @json; the functions below return the selected values, until
 * the next run.
 *
 * IDEM_EINVALID  @json is not JSON (also: a member's name that comes twice, half a
 *                surrogate pair, more than 200 levels, 16 MiB or 1,048,576 values);
 *                or the selector cannot be run over it; or that takes too much.
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
 * a space); header names are in lower case; a name that comes several times has an
 * array of its values, and Idempotency-Key is the key that idem_http_key() reads. A
 * body that is a JSON array or object is JSON, whatever its Content-Type; any other
 * body is a text. A value or body that is not UTF-8 is null.
 *
 * IDEM_EINVALID  As idem_selector_run(); or the name of an argument or header is not
 *                UTF-8, or Idempotency-Key is not a key or two different ones.
 * IDEM_ENOMEM
 */
int idem_selector_run_request(struct idem_selector *selector,
                              const struct idem_selector_request *request,
                              struct idem_error *ret_error);

struct idem_key_text {
    char text[IDEM_KEY_MAX + 1]; /* NUL-terminated. */
    size_t len;
};

/* The key of the selected value. The key of a text, number or boolean is its text: 42
 * and 42.0 are "42". If the selector makes one key of several values, with "," or "[
 * ]":
 *
 *     =["t1","42"]            of .tenant, .id
 *     =#HEAD#SHA-256          of what has more than IDEM_KEY_MAX bytes
 *     ==x                     of the text "=x", so that it is neither
 *
 * IDEM_ENOTFOUND  Nothing, null, or nothing but nulls.
 * IDEM_EINVALID   An object, an array of the text, a text that is empty or has a NUL,
 *                 or a list one of whose parts is null; or as many values as the
 *                 selector does not say.
 * IDEM_ENOMEM
 */
int idem_key_of(struct idem_selector *selector, struct idem_key_text *ret_key,
                struct idem_error *ret_error);

/* The selected values, for a comparison: a JSON array in canonical form, so that texts
 * with the same meaning are equal. Valid until the next call.
 *
 * IDEM_ENOTFOUND  Nothing, or only null, is selected.
 * IDEM_EINVALID   A number whose exponent has more than 17 digits.
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

/* NULL, and IDEM_FLAVOUR_NONE: there is none. */
const char *idem_flavour_name(enum idem_flavour flavour);
enum idem_flavour idem_flavour_find(const char *name);

/* Accept null and values that contain only nulls, all of which have the same key in
 * these libraries. */
#define IDEM_FLAVOUR_NULL 1u

/* The key that the library makes of @json, the value that its own selector would
 * select. @prefix is the part before the "#": FUNCTION.module.qualname (python),
 * FUNCTION (typescript), or the prefix that it was given.
 *
 * IDEM_EINVALID  @json is not JSON (see idem_selector_run()), or the library has no
 *                key for it, or none that is always the same; there is no prefix;
 *                or the key has more than IDEM_KEY_MAX bytes.
 * IDEM_ENOMEM
 */
int idem_flavour_key(enum idem_flavour flavour, const char *prefix,
                     struct idem_slice json, unsigned flags,
                     struct idem_key_text *ret_key,
                     struct idem_error *ret_error);

/* The same for the one value that the last run of @selector selected. */
int idem_flavour_key_of(enum idem_flavour flavour, const char *prefix,
                        struct idem_selector *selector, unsigned flags,
                        struct idem_key_text *ret_key,
                        struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
