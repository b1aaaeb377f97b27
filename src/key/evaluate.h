/* Runs a compiled jq program over a JSON text, in this process.
 *
 * libjq cannot be stopped, and ends the process when memory runs out: this is
 * for a child that has limits (child.h).
 */
#ifndef IDEM_KEY_EVALUATE_H
#define IDEM_KEY_EVALUATE_H

#include "key/libjq.h"
#include "key/tree.h"

#include <idem/key.h>

/* Zeroed before the first text. */
struct idem__evaluation {
    const struct idem__libjq *jq;
    jq_state *state; /* The program. */
    const struct idem_select_options *options;

    struct idem__tree input;
    struct idem__tree plain;
    struct idem__tree marked;
    struct idem__buffer marks; /* The input with marks for numbers. */
    struct idem__buffer plain_text;
    struct idem__buffer marked_text;
    struct idem__buffer output;
};

/* Reads @json, which must stay. IDEM_EINVALID, IDEM_ENOMEM */
int idem__evaluate_read(struct idem__evaluation *e, struct idem_slice json,
                        struct idem_error *ret_error);

/* Runs the program over what was read: the part that needs limits. The output is
 * valid until the next one.
 *
 * IDEM_EINVALID  The program fails, gives none or several values, null, too long a
 *                value, or computes with a number that jq cannot hold.
 * IDEM_ENOMEM
 */
int idem__evaluate_run(struct idem__evaluation *e,
                       struct idem_slice *ret_output,
                       struct idem_error *ret_error);

void idem__evaluation_free(struct idem__evaluation *e);

#endif
