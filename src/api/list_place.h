/* A place in a list as text, by which another process goes on with it. */
#ifndef IDEM_API_LIST_PLACE_H
#define IDEM_API_LIST_PLACE_H

#include "contract/store.h"

#include <idem/operator.h>

/* Writes the cursor of the list @op of @store. */
void idem__list_place_write(const struct idem_store *store,
                            const struct idem_op *op,
                            char place[IDEM_PLACE_MAX]);

/* Sets the cursor of @op, whose filter is set, to @place. 0, or IDEM_EINVALID: it
 * was not written for a list of this kind of store with this filter. */
int idem__list_place_read(const struct idem_store *store,
                          const char place[IDEM_PLACE_MAX], struct idem_op *op);

#endif
