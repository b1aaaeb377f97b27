/* Remembers the claims that this handle made and has not ended, as it last wrote them, so
 * that an owner ends its attempt in one request, without a read.
 *
 * It is only a cache. A write that is based on a remembered claim is conditional on the
 * record being unchanged, and a claim that is not remembered is read first. */
#ifndef IDEM_STORE_REMOTE_CLAIMS_H
#define IDEM_STORE_REMOTE_CLAIMS_H

#include <idem.h>

#include "base/bytes.h"

struct idem__claims;

/* NULL: memory ran out. */
struct idem__claims *idem__claims_create(void);
void idem__claims_destroy(struct idem__claims *claims);

/* Remembers the @n @parts that were written for @id, unless they are large. Forgets the
 * oldest claim if there are too many. */
void idem__claims_put(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      const struct idem_slice *parts, size_t n);

/* Copies the parts that are remembered for @id to @memory, one after the other, and
 * empties it first. False: nothing is remembered, or memory ran out. */
bool idem__claims_get(struct idem__claims *claims,
                      const uint8_t id[IDEM_ID_LEN],
                      struct idem__buffer *memory);

void idem__claims_forget(struct idem__claims *claims,
                         const uint8_t id[IDEM_ID_LEN]);

#endif
