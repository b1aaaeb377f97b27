/* idem/memory.h: the store in memory, for tests and as the reference. */
#ifndef IDEM_MEMORY_H
#define IDEM_MEMORY_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Opens an empty store in the memory of this process, like idem_open("memory:", ...).
 * idem_close() deletes its records. @options may be NULL: IDEM_OPEN_OPTIONS_INIT.
 *
 * IDEM_EINVALID  @options is out of range.
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
