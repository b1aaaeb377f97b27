/* idem/key.h: what makes the key of a JSON text: a jq program that selects from it. */
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
};
#define IDEM_SELECT_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(struct idem_select_options), (size_t)16 * 1024 * 1024,          \
            (size_t)1024 * 1024, (uint64_t)256 * 1024 * 1024, 2000, false      \
    }

/* Compiles @program, of at most 64 KiB. @options may be NULL.
 *
 * IDEM_EINVALID  It is no program of jq's; the sentence is jq's. Or an option is
 *                out of range.
 * IDEM_ECONFIG   libjq is not installed, or this libidem was built without it.
 * IDEM_ENOMEM
 */
int idem_select_create(const char *program,
                       const struct idem_select_options *options,
                       struct idem_select **ret_select,
                       struct idem_error *ret_error);

/* Runs the program over @json. Just one value must come of it: compact JSON, which
 * is valid until the next run or the end of @select.
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

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
