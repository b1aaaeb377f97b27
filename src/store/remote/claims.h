/* The claims that this handle made and has not ended, as they were last written, so
 * that an owner ends its attempt in one request.
 *
 * Nothing relies on it. A record that is found here is overwritten only on condition
 * that it is still the same; one that is not found is read first. */
#ifndef IDEM_STORE_REMOTE_CLAIMS_H
#define IDEM_STORE_REMOTE_CLAIMS_H

#include <idem.h>

#include "base/bytes.h"

struct idem__claims;

/* NULL: no memory. */
struct idem__claims *idem__claims_create(void);
void idem__claims_destroy(struct idem__claims *claims);

/* Remembers the @n @parts of what was written for @id, unless they are large;
 * forgets the oldest claim where there are too many. */
void idem__claims_put(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      const struct idem_slice *parts, size_t n);

/* The parts that are remembered for @id, one after the other; copied to @memory, which
 * is emptied first. False: nothing, or no memory. */
bool idem__claims_get(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      struct idem__buffer *memory);

void idem__claims_forget(struct idem__claims *claims,
                         const uint8_t id[IDEM_ID_LEN]);

#endif
