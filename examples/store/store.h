/* A store of idem in a key-value file. */
#ifndef EXAMPLE_STORE_STORE_H
#define EXAMPLE_STORE_STORE_H

#include <idem/kind.h>

/* Opens the store in the file @path, and creates it unless @options say otherwise.
 * All processes of a host may have it open. @path is not kept.
 *
 * IDEM_EINVALID   Options out of range.
 * IDEM_ENOTFOUND  It does not exist and may not be created.
 * IDEM_ECONFIG    It cannot be opened: no directory, another program's file.
 * IDEM_EDENIED, IDEM_EFULL, IDEM_ECORRUPT, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int kv_store_open(const char *path, const struct idem_open_options *options,
                  struct idem_store **ret_store, struct idem_error *ret_error);

/* "kv:FILE" of idem_open(). */
extern const struct idem_store_kind idem_kv_kind;

#endif
