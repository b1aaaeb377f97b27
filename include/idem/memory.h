/* idem/memory.h: the store in memory, for tests and as the reference. */
#ifndef IDEM_MEMORY_H
#define IDEM_MEMORY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Opens an empty store in this process, which ends with idem_close(). The same as
 * idem_open("memory:", ...).
 *
 * IDEM_EINVALID  Options out of range.
 * IDEM_ENOMEM
 */
int idem_memory_open(const struct idem_open_options *options,
                     struct idem_store **ret_store,
                     struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
