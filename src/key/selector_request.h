/* An HTTP request as a tree, which selectors select from. */
#ifndef IDEM_KEY_SELECTOR_REQUEST_H
#define IDEM_KEY_SELECTOR_REQUEST_H

#include "key/tree.h"

#include <idem/key.h>

/* Adds what idem_selector_run_request() describes to an empty @tree.
 *
 * IDEM_EINVALID  The name of an argument or header is not UTF-8, or the body is
 *                too long.
 * IDEM_ENOMEM
 */
int idem__request_tree(const struct idem_selector_request *request,
                       struct idem__tree *tree, struct idem_error *ret_error);

/* Reads the header Idempotency-Key in .headers of the node 0, if it is there, as
 * idem_http_key() does: its name is in lower case then, and its value the key.
 *
 * IDEM_EINVALID  It is not a key, or there are two that differ.
 * IDEM_ENOMEM
 */
int idem__request_read_key(struct idem__tree *tree,
                           struct idem_error *ret_error);

#endif
