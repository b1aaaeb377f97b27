/* The text of a value that a flavour makes its digest of. */
#ifndef IDEM_KEY_CANONICAL_H
#define IDEM_KEY_CANONICAL_H

#include "key/tree.h"

#include <idem/key.h>

/* Appends the canonical text of the whole @tree.
 *
 * IDEM_EINVALID  The flavour has no text for it, or none that is always the same.
 * IDEM_ENOMEM
 */
int idem__canonical(const struct idem__tree *tree, enum idem_flavour flavour,
                    struct idem__buffer *out, struct idem_error *ret_error);

#endif
