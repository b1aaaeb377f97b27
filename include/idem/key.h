/* idem/key.h: what makes the key of a JSON text: a jq program that selects from it,
 * and the ways in which other libraries make theirs. */
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

/* What was selected, to be compared: the values as an array of JSON in canonical
 * form, so that texts that mean the same are the same. It is valid until the next
 * call.
 *
 * IDEM_ENOTFOUND  Nothing, null, or nothing but nulls.
 * IDEM_EINVALID   A number whose exponent has more than 17 digits.
 * IDEM_ENOMEM
 */
int idem_selector_values(struct idem_selector *selector,
                         struct idem_slice *ret_values,
                         struct idem_error *ret_error);

/* ---- Selecting with jq ------------------------------------------------- */

/* A jq program, compiled once and run over one JSON text after the other.
 *
 *     struct idem_select *select;
 *     struct idem_slice key;
 *
 *     idem_select_create(".detail.orderId", NULL, &select, &why);
 *     for each event
 *         idem_select_run(select, event, &key, &why);
 *     idem_select_destroy(select);
 *
 * A run has a process of its own, so that a program that does not end, or asks for
 * too much memory, costs the caller an error and nothing else. The process has no
 * descriptor of the caller's, and one that is kept serves one text after the other.
 * Numbers come out with the very digits that they went in with, although jq itself
 * would round them.
 *
 * libjq is loaded by the first idem_select_create(). Like the program jq it knows
 * what is defined in ~/.jq. The object is used by one thread at a time. */
struct idem_select;

struct idem_select_options {
    size_t size;         /* sizeof, set by IDEM_SELECT_OPTIONS_INIT. */
    size_t input_max;    /* Bytes of a JSON text; at most 16 MiB. */
    size_t output_max;   /* Bytes of what is selected, as JSON. */
    uint64_t memory_max; /* Bytes that a run may take. */
    int64_t timeout_ms;  /* That a run may take. */
    bool allow_null;     /* Else null, and [null,null], are errors. */
    bool several; /* The program may give several values: the output is an array
                     of them, of one value too. Else several are an error. */
    size_t
        keep; /* Processes that stay for the next runs, at most 64; 0: each run
                     has a new one. */
};
#define IDEM_SELECT_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(struct idem_select_options), (size_t)16 * 1024 * 1024,          \
            (size_t)1024 * 1024, (uint64_t)256 * 1024 * 1024, 2000, false,     \
            false, 0                                                           \
    }

/* Compiles @program, of at most 64 KiB. @options may be NULL.
 *
 * IDEM_EINVALID  It is not a valid jq program; the sentence is jq's. Or an option is
 *                out of range.
 * IDEM_ECONFIG   libjq is not installed, or this libidem was built without it.
 * IDEM_ENOMEM
 */
int idem_select_create(const char *program,
                       const struct idem_select_options *options,
                       struct idem_select **ret_select,
                       struct idem_error *ret_error);

/* Runs the program over @json. Just one value must come of it, unless several is
 * set: compact JSON, which is valid until the next run or the end of @select. Where
 * its process ends without an answer, because somebody killed it or because of the
 * program, a second one runs it once more, within the same time.
 *
 * Nothing, null, and an array or object with nothing but nulls in it come of an
 * input that lacks what was to be selected, and would give all such inputs one
 * key: they are errors unless allow_null is set.
 *
 * IDEM_EINVALID      @json is no JSON (a member's name that comes twice, half a
 *                    surrogate pair, more than 200 levels), or too long; or the
 *                    program fails, gives none or several values, or too long a
 *                    one, takes too much time or memory, or computes with a number
 *                    that jq cannot hold. The sentence says which.
 * IDEM_EUNAVAILABLE  A process or socket could not be made.
 * IDEM_ENOMEM
 */
int idem_select_run(struct idem_select *select, struct idem_slice json,
                    struct idem_slice *ret_output,
                    struct idem_error *ret_error);

/* True if the last run failed because the program took too long or too much memory,
 * or because its processes crashed or were killed: the same text may be answered at
 * another time. */
bool idem_select_cut_off(const struct idem_select *select);

/* The text of an output that is a string: without quotation marks and escapes, and
 * valid as long as the output. Any other output is returned as it is.
 *
 * This is how an output becomes a key that a person can read. */
struct idem_slice idem_select_text(struct idem_select *select,
                                   struct idem_slice output);

/* Ends the processes that were kept, and waits for them. All selections that were
 * started must be destroyed before. NULL is allowed. */
void idem_select_destroy(struct idem_select *select);

/* ---- Selecting without waiting ----------------------------------------- */

/* A run that is waited for together with other things, by programs that have an
 * event loop; idem_select_run() is this with a poll() of its own.
 *
 *     idem_select_start(select, event, &selection, &why);
 *     watch idem_selection_fd() for reading, and the time that
 *         idem_selection_left_ms() leaves; at either:
 *         if (idem_selection_ready(selection))
 *             stop watching;
 *             idem_selection_output(selection, &key, &why);
 *             idem_selection_destroy(selection);
 *
 * A program may have many runs at a time; each is a process, so the caller bounds
 * their number. Another part of the program may wait for all children (a handler of
 * SIGCHLD with waitpid(-1), as nginx has): it is the end of the descriptor that
 * counts, and a number that is used again is never sent a signal. */
struct idem_selection;

/* Starts a run over @json, which is not needed any more when this returns.
 *
 * IDEM_EINVALID      @json is too long. Any other fault of it is the answer of
 *                    the selection.
 * IDEM_EUNAVAILABLE  A process or socket could not be made.
 * IDEM_ENOMEM
 */
int idem_select_start(struct idem_select *select, struct idem_slice json,
                      struct idem_selection **ret_selection,
                      struct idem_error *ret_error);

struct idem_select_header {
    struct idem_slice name;
    struct idem_slice value;
};

/* An HTTP request, with its bytes as they were sent. */
struct idem_select_request {
    struct idem_slice method;
    struct idem_slice target; /* "/orders?a=1" */
    const struct idem_select_header *headers;
    size_t headers_len;
    struct idem_slice body;
};

/* Starts a run over a request, which the program sees as
 *
 *     {"method":"POST",
 *      "path":"/orders",
 *      "query":{"a":"1"},
 *      "headers":{"content-type":"application/json"},
 *      "body":{"order":42}}
 *
 * The path is as it was sent. Names and values of the query are decoded ("+" is a
 * space); names of headers are in lower case; a name that comes several times has an
 * array of its values. The body is JSON where it is an array or object, whatever its
 * Content-Type; else it is a text. Null takes the place of a value or body that is
 * not UTF-8.
 *
 * The text is made in the process of the run: nothing of this takes the caller's
 * time, and nothing of @request is needed any more when this returns.
 *
 * The errors of idem_select_start(). */
int idem_select_start_request(struct idem_select *select,
                              const struct idem_select_request *request,
                              struct idem_selection **ret_selection,
                              struct idem_error *ret_error);

/* Readable when there may be an answer. It belongs to the selection, and to another
 * one afterwards: stop watching it before idem_selection_destroy(). */
int idem_selection_fd(const struct idem_selection *selection);

/* Milliseconds that are left of the time that the run may take; never negative. 0:
 * idem_selection_ready() is true. */
int64_t idem_selection_left_ms(const struct idem_selection *selection);

/* Reads what there is, without waiting. True: there is an output or an error. */
bool idem_selection_ready(struct idem_selection *selection);

/* The output, as of idem_select_run(); it is valid as long as the selection.
 *
 * IDEM_EINVALID, IDEM_ENOMEM  As idem_select_run(); or it is not ready.
 */
int idem_selection_output(const struct idem_selection *selection,
                          struct idem_slice *ret_output,
                          struct idem_error *ret_error);

/* As idem_select_text(), of the output. */
struct idem_slice idem_selection_text(const struct idem_selection *selection);

/* True if the error is that the program took too long or too much memory, or that its
 * process crashed or was killed: the same input may be answered at another time, and
 * nothing here asks again. */
bool idem_selection_cut_off(const struct idem_selection *selection);

/* At any time: a run that is not ready is ended. NULL is allowed. */
void idem_selection_destroy(struct idem_selection *selection);

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

struct idem_flavour_text {
    char text[IDEM_KEY_MAX + 1]; /* NUL-terminated. */
    size_t len;
};

/* The key that the library makes of @json, what its own selector would select.
 * @prefix is the part before the "#": FUNCTION.module.qualname (python), FUNCTION
 * (typescript), or the prefix that it was given.
 *
 * IDEM_EINVALID  @json is no JSON (see idem_select_run()), or the library has no
 *                key for it, or none that is always the same; there is no prefix;
 *                or the key has more than IDEM_KEY_MAX bytes.
 * IDEM_ENOMEM
 */
int idem_flavour_key(enum idem_flavour flavour, const char *prefix,
                     struct idem_slice json, unsigned flags,
                     struct idem_flavour_text *ret_key,
                     struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
