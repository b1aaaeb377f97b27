/* idem/key.h: what makes the key of a JSON text: a selector of a part of it, and the
 * ways in which other libraries make theirs. */
#ifndef IDEM_KEY_H
#define IDEM_KEY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Selectors --------------------------------------------------------- */

/* A selector says what of a JSON text is the key, or is to be compared: a small part
 * of jq's language, which docs/selectors.md describes. It is compiled once and run
 * over one text after the other.
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
 * A run takes microseconds, and is bounded in steps and memory whatever the text is;
 * it reads nothing but the text. Numbers keep their digits. The memory of a run is
 * used again by the next one. The object is used by one thread at a time. */
struct idem_selector;

/* Compiles @text, of at most 4,096 bytes.
 *
 * IDEM_EINVALID  It is not a selector: the sentence has the place, and what to write
 *                instead where there is something.
 * IDEM_ENOMEM
 */
int idem_selector_create(const char *text, struct idem_selector **ret_selector,
                         struct idem_error *ret_error);

/* NULL is allowed. */
void idem_selector_destroy(struct idem_selector *selector);

/* The text is the event of an HTTP request: in its .headers, Idempotency-Key is read
 * as idem_http_key() does, and named in lower case. */
#define IDEM_SELECTOR_HTTP 1u

/* Runs the selector over @json; the functions below say what it selects, until the
 * next run.
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
 * The path is as it was sent. Names and values of the query are decoded ("+" is a
 * space); names of headers are in lower case; a name that comes several times has an
 * array of its values, and Idempotency-Key is the key that idem_http_key() reads. The
 * body is JSON where it is an array or object, whatever its Content-Type; else it is
 * a text. Null takes the place of a value or body that is not UTF-8.
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

/* The key of what was selected. That of a text is the text, and that of a number or
 * boolean as well: 42 and 42.0 are "42". Several of them are one key where the
 * selector says so, with "," or "[ ]":
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

/* The selected values, for a comparison: an array of JSON in canonical form, so that
 * texts with the same meaning are equal. It is valid until the next
 * call.
 *
 * IDEM_ENOTFOUND  Nothing, null, or nothing but nulls.
 * IDEM_EINVALID   A number whose exponent has more than 17 digits.
 * IDEM_ENOMEM
 */
int idem_selector_values(struct idem_selector *selector,
                         struct idem_slice *ret_values,
                         struct idem_error *ret_error);

/* ---- Keys of other libraries ------------------------------------------- */

/* Flavour and name: Powertools for AWS Lambda, the MD5 of a canonical text after a
 * prefix. Each language has a canonical text of its own, so that the two do not agree
 * on a key. */
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

/* idem_flavour_key() takes null, and what has nothing but nulls in it, for which
 * these libraries have one key. */
#define IDEM_FLAVOUR_NULL 1u

/* The key that the library makes of @json, what its own selector would select.
 * @prefix is the part before the "#": FUNCTION.module.qualname (python), FUNCTION
 * (typescript), or the prefix that it was given.
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
