/* The canonical text of a value: ours, or that of another library. */
#ifndef IDEM_KEY_CANONICAL_H
#define IDEM_KEY_CANONICAL_H

#include "key/tree.h"

#include <idem/key.h>

/* Appends the canonical text of the node @number, 0 for the whole @tree: what a flavour makes its digest
 * of, or for IDEM_FLAVOUR_NONE the one text of all that means the same. That has
 * the members of objects in the order of their code points, no blanks, the escapes
 * that JSON needs, and numbers as idem__number_decimal() writes them.
 *
 * IDEM_EINVALID  The flavour has no text for it, or none that is always the same;
 *                there is half a surrogate pair in it, or a number whose exponent
 *                is too long, for IDEM_FLAVOUR_NONE.
 * IDEM_ENOMEM
 */
int idem__canonical(const struct idem__tree *tree, uint32_t number,
                    enum idem_flavour flavour, struct idem__buffer *out,
                    struct idem_error *ret_error);

/* Appends @text, which is UTF-8, as ours has a string. */
void idem__canonical_string(struct idem__buffer *out, struct idem_slice text);

#endif
