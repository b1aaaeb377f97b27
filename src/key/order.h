/* The order of an object's members, which each language has its own of. */
#ifndef IDEM_KEY_ORDER_H
#define IDEM_KEY_ORDER_H

#include "key/tree.h"

#include <idem/key.h>

/* Sorts @members, the numbers of an object's nodes, as the flavour does.
 *
 * IDEM_EINVALID  It depends on more than the names.
 */
int idem__order(const struct idem__tree *tree, enum idem_flavour flavour,
                uint32_t *members, size_t len, struct idem_error *ret_error);

#endif
