/* idem/key.h: what makes the key of a JSON text: a jq program that selects from it,
 * and the ways in which other libraries make theirs. */
#ifndef IDEM_KEY_H
#define IDEM_KEY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

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
 * A run has its own short-lived process, so that a program that does not end, or
 * asks for too much memory, costs the caller an error and nothing else. Numbers
 * come out with the very digits that they went in with, although jq itself would
 * round them.
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
};
#define IDEM_SELECT_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(struct idem_select_options), (size_t)16 * 1024 * 1024,          \
            (size_t)1024 * 1024, (uint64_t)256 * 1024 * 1024, 2000, false,     \
            false                                                              \
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
 * set: compact JSON, which is valid until the next run or the end of @select.
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
 * IDEM_EUNAVAILABLE  There is no process or pipe to be had.
 * IDEM_ENOMEM
 */
int idem_select_run(struct idem_select *select, struct idem_slice json,
                    struct idem_slice *ret_output,
                    struct idem_error *ret_error);

/* The text of an output that is a string: without quotation marks and escapes, and
 * valid as long as the output. Any other output is returned as it is.
 *
 * This is how an output becomes a key that a person can read. */
struct idem_slice idem_select_text(struct idem_select *select,
                                   struct idem_slice output);

void idem_select_destroy(struct idem_select *select);

/* ---- Keys of other libraries ------------------------------------------- */

/* Flavour, name, whether its keys were compared with the library's own.
 *
 * python, typescript, java and dotnet are Powertools for AWS Lambda: the MD5 of a
 * canonical text behind a prefix. Each has a canonical text of its own, so that no
 * two of them agree on a key. locker takes its token as it is. */
#define IDEM_FLAVOUR_MAP(IDEM__X)                                              \
    IDEM__X(PYTHON, "python", true)                                            \
    IDEM__X(TYPESCRIPT, "typescript", true)                                    \
    IDEM__X(JAVA, "java", false)                                               \
    IDEM__X(DOTNET, "dotnet", false)                                           \
    IDEM__X(LOCKER, "locker", false)

enum idem_flavour {
    IDEM_FLAVOUR_NONE = 0,
#define IDEM__X(name, word, proved) IDEM_FLAVOUR_##name,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
};

/* NULL, and IDEM_FLAVOUR_NONE: there is none. */
const char *idem_flavour_name(enum idem_flavour flavour);
enum idem_flavour idem_flavour_find(const char *name);

/* False: its keys were read off its source, and compared with nothing. */
bool idem_flavour_proved(enum idem_flavour flavour);

/* idem_flavour_key() takes null, and what has nothing but nulls in it, which some
 * of these libraries give one key for all. */
#define IDEM_FLAVOUR_NULL 1u

struct idem_flavour_text {
    char text[IDEM_KEY_MAX + 1]; /* NUL-terminated. */
    size_t len;
};

/* The key that the library makes of @json, what its own selector would select.
 * @prefix is what stands before the "#": FUNCTION.module.qualname (python),
 * FUNCTION (typescript), FUNCTION.method (java), FUNCTION.Method (dotnet), or the
 * prefix that it was given; locker has none (NULL).
 *
 * IDEM_EINVALID  @json is no JSON (see idem_select_run()), or the library has no
 *                key for it, or none that is always the same; there is a prefix
 *                too many or too few; or the key has more than IDEM_KEY_MAX bytes.
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
